// Encoding of constants.
#include "spyre/constants.h"

#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace kerntrail::spyre {
namespace {

constexpr std::uint16_t kInfinity = 0x7fff;
constexpr int kBias = 31;
constexpr int kFractionBits = 9;

}  // namespace

std::uint16_t encode_dlfloat16(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (!std::isfinite(value)) return sign | kInfinity;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  // The significand as an integer 2^9 .. 2^10, rounded to nearest even.
  auto significand = static_cast<std::int64_t>(std::nearbyint(std::ldexp(fraction, kFractionBits + 1)));
  std::int64_t biased = exponent - 1 + kBias;
  if (significand == (std::int64_t{1} << (kFractionBits + 1))) {
    significand >>= 1;
    ++biased;
  }
  if (biased < 0) {
    const double smallest = std::ldexp(1.0 + 1.0 / 512, -kBias);
    return std::fabs(value) > smallest / 2 ? static_cast<std::uint16_t>(sign | 1) : sign;
  }
  const std::int64_t magnitude = biased * 512 + (significand - 512);
  if (magnitude >= kInfinity) return sign | kInfinity;
  // 2^-31 itself has the pattern of zero; its nearest neighbour is the smallest number.
  if (magnitude == 0) return static_cast<std::uint16_t>(sign | 1);
  return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(magnitude));
}

std::optional<double> decode_constant(std::int64_t pattern, DType dtype) {
  const std::string_view format = device_format(dtype);
  if (format == "SEN169_FP16" && pattern >= 0 && pattern <= 0xffff) {
    const double sign = (pattern & 0x8000) != 0 ? -1.0 : 1.0;
    const auto magnitude = static_cast<int>(pattern & 0x7fff);
    if (magnitude == 0) return sign * 0.0;
    if (magnitude == kInfinity) return sign * std::numeric_limits<double>::infinity();
    return sign * std::ldexp(512 + magnitude % 512, magnitude / 512 - kBias - kFractionBits);
  }
  if (format == "IEEE_FP32" && pattern >= 0 && pattern <= 0xffffffff)
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(pattern)));
  const bool fits =
      pattern >= std::numeric_limits<std::int32_t>::min() && pattern <= std::numeric_limits<std::int32_t>::max();
  if (format == "IEEE_INT32" && fits) return static_cast<double>(pattern);
  return std::nullopt;
}

Expected<std::int64_t> encode_constant(double value, DType dtype) {
  const std::string_view format = device_format(dtype);
  if (format == "SEN169_FP16") return encode_dlfloat16(value);
  if (format == "IEEE_FP32") return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (format == "IEEE_INT32") {
    const bool fits = value == std::floor(value) && value >= std::numeric_limits<std::int32_t>::min() &&
                      value <= std::numeric_limits<std::int32_t>::max();
    if (fits) return static_cast<std::int64_t>(value);
  }
  return fail(ErrorCode::kUnsupported, fmt::format("constant {} cannot be encoded as {}", value, dtype_name(dtype)));
}

}  // namespace kerntrail::spyre
