#include "base/hash.h"

#include <openssl/evp.h>
// Inputs are mostly 8 bytes long: a call into the library would cost more than hashing them.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdexcept>

namespace kerntrail::base {

std::array<std::uint8_t, 32> sha256(std::string_view data) {
  std::array<std::uint8_t, 32> out{};
  unsigned size = 0;
  // Fails only when the library itself is broken; nothing sensible can follow.
  if (EVP_Digest(data.data(), data.size(), out.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("libcrypto has no SHA-256");
  }
  return out;
}

std::string hex(const std::uint8_t* data, std::size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(size * 2);
  for (std::size_t i = 0; i < size; ++i) {
    out += kDigits[data[i] >> 4];
    out += kDigits[data[i] & 15];
  }
  return out;
}

std::uint64_t hash64(std::string_view data, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

std::uint64_t hash64(std::uint64_t value, std::uint64_t seed) {
  std::uint8_t bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));  // same on every machine
  return XXH3_64bits_withSeed(bytes, sizeof bytes, seed);
}

std::string hex64(std::uint64_t value) {
  std::uint8_t bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * (7 - i)));
  return hex(bytes, sizeof bytes);
}

}  // namespace kerntrail::base
