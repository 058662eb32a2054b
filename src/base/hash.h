// Hashes: SHA-256 where the value is written down as an identity, XXH3 for digests and tables.
// Must not know: what is hashed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kerntrail::base {

std::array<std::uint8_t, 32> sha256(std::string_view data);
std::string hex(const std::uint8_t* data, std::size_t size);

// XXH3, 64 bits. `seed` chains hashes: hash64(b, hash64(a)).
std::uint64_t hash64(std::string_view data, std::uint64_t seed = 0);
std::uint64_t hash64(std::uint64_t value, std::uint64_t seed);
// Sixteen hexadecimal digits.
std::string hex64(std::uint64_t value);

}  // namespace kerntrail::base
