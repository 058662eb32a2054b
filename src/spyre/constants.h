// Numbers as the device's formats encode them.
// Must not know: JSON, operations.
#pragma once

#include <cstdint>
#include <optional>

#include "kerntrail/expected.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre {

// The 16-bit DLFloat pattern: sign, 6 exponent bits (bias 31), 9 fraction bits, no subnormals. Rounds to nearest, ties
// to even. Exponent and fraction all zero: zero. All ones: infinity and NaN. Numbers past the largest finite one, (1 +
// 510/512) * 2^32, become that infinity; numbers below the smallest one, (1 + 1/512) * 2^-31, round to it or to zero.
std::uint16_t encode_dlfloat16(double value);

// The pattern of `value` in the device format of `dtype`; kUnsupported for a format without a rule, or an integer
// format that cannot hold the value.
Expected<std::int64_t> encode_constant(double value, DType dtype);

// The number that a pattern of the format stands for; infinity and NaN of DLFloat share one pattern, which is infinity
// here. Nothing for a format without a rule or a pattern that the format does not have.
std::optional<double> decode_constant(std::int64_t pattern, DType dtype);

}  // namespace kerntrail::spyre
