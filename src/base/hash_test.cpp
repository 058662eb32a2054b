#include "base/hash.h"

#include <gtest/gtest.h>

namespace kerntrail::base {
namespace {

TEST(Hash, Sha256OfKnownText) {
  const auto digest = sha256("abc");
  EXPECT_EQ(hex(digest.data(), digest.size()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, SeedChains) {
  EXPECT_NE(hash64("a", 0), hash64("a", 1));
  EXPECT_NE(hash64(std::uint64_t{1}, 0), hash64(std::uint64_t{256}, 0));
  EXPECT_EQ(hex64(0x0123456789abcdefULL), "0123456789abcdef");
}

}  // namespace
}  // namespace kerntrail::base
