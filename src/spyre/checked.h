// Arithmetic on int64 that reports overflow, and the rounding Python uses.
// Must not know: what is counted.
#pragma once

#include <cstdint>
#include <optional>

namespace kerntrail::spyre {

inline std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<std::int64_t> checked_negate(std::int64_t a) {
  std::int64_t r = 0;
  if (__builtin_sub_overflow(std::int64_t{0}, a, &r)) return std::nullopt;
  return r;
}

// Towards minus infinity; b > 0.
inline std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;
}

// In [0, b); b > 0.
inline std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}

// a >= 0, b > 0.
inline std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace kerntrail::spyre
