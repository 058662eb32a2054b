#include "spyre/constants.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kerntrail::spyre {
namespace {

// The format read back by its definition.
double decode(std::uint16_t bits) {
  const int magnitude = bits & 0x7fff;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (magnitude == 0x7fff) return sign * std::numeric_limits<double>::infinity();
  if (magnitude == 0) return sign * 0.0;
  return sign * std::ldexp(1.0 + (magnitude % 512) / 512.0, magnitude / 512 - 31);
}

TEST(EncodeDlfloat16, KnowsItsLandmarks) {
  EXPECT_EQ(encode_dlfloat16(0.0), 0x0000);
  EXPECT_EQ(encode_dlfloat16(-0.0), 0x8000);
  EXPECT_EQ(encode_dlfloat16(1.0), 31 * 512);
  EXPECT_EQ(encode_dlfloat16(-1.5), 0x8000 | (31 * 512 + 256));
  EXPECT_EQ(encode_dlfloat16(std::ldexp(1.0 + 510.0 / 512, 32)), 0x7ffe);
  EXPECT_EQ(encode_dlfloat16(std::numeric_limits<double>::infinity()), 0x7fff);
  EXPECT_EQ(encode_dlfloat16(std::numeric_limits<double>::quiet_NaN()) & 0x7fff, 0x7fff);
  EXPECT_EQ(encode_dlfloat16(1e300), 0x7fff);
  EXPECT_EQ(encode_dlfloat16(1e-300), 0);
  EXPECT_EQ(encode_dlfloat16(std::ldexp(1.0, -31)), 1);
  EXPECT_EQ(encode_dlfloat16(1.0 + 1.0 / 1024), 31 * 512);
  EXPECT_EQ(encode_dlfloat16(1.0 + 3.0 / 1024), 31 * 512 + 2);
}

TEST(EncodeDlfloat16, IsTheInverseOfReadingEveryPattern) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    ASSERT_EQ(encode_dlfloat16(decode(pattern)), pattern);
  }
}

RC_GTEST_PROP(EncodeDlfloat16, PicksTheNearestPattern, ()) {
  const double value = std::ldexp(*rc::gen::inRange(1 << 20, 1 << 21), *rc::gen::inRange(-50, 11));
  const std::uint16_t bits = encode_dlfloat16(value);
  RC_PRE(bits > 1 && bits < 0x7ffe);
  const double error = std::fabs(decode(bits) - value);
  RC_ASSERT(error <= std::fabs(decode(static_cast<std::uint16_t>(bits - 1)) - value));
  RC_ASSERT(error <= std::fabs(decode(static_cast<std::uint16_t>(bits + 1)) - value));
}

TEST(EncodeConstant, FollowsTheFormat) {
  EXPECT_EQ(encode_constant(1.0, DType::kFloat16).value(), 31 * 512);
  EXPECT_EQ(encode_constant(1.0, DType::kFloat32).value(), 0x3f800000);
  EXPECT_EQ(encode_constant(-5, DType::kInt32).value(), -5);
  EXPECT_EQ(encode_constant(0.5, DType::kInt32).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(encode_constant(1.0, DType::kFloat64).error().code, ErrorCode::kUnsupported);
}

TEST(DecodeConstant, IsTheInverseOfEncoding) {
  for (std::int64_t pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto value = decode_constant(pattern, DType::kFloat16);
    ASSERT_TRUE(value);
    EXPECT_EQ(encode_dlfloat16(*value), pattern);
  }
  EXPECT_EQ(decode_constant(0x3f800000, DType::kFloat32), 1.0);
  EXPECT_EQ(decode_constant(-7, DType::kInt32), -7.0);
  EXPECT_FALSE(decode_constant(0x10000, DType::kFloat16));
  EXPECT_FALSE(decode_constant(-1, DType::kFloat32));
  EXPECT_FALSE(decode_constant(std::int64_t{1} << 40, DType::kInt32));
  EXPECT_FALSE(decode_constant(0, DType::kInt8));
}

}  // namespace
}  // namespace kerntrail::spyre
