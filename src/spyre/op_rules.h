// What the format says of an operation by its name and loops alone: its kind, which loops are written down, their
// labels. Must not know: layouts, addresses, JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre {

enum class OpKind : std::uint8_t {
  kPointwise,   // all arguments share one stick variable, or have none
  kMatmul,      // sticks are K, N, N; loops are batch.., M, N, K
  kConversion,  // pointwise between element formats
  kRestickify,  // one input, one output, different stick variables
};

// kUnsupported for operations whose rules are not carried; kSchema for an argument list that fits no operation.
Expected<OpKind> op_kind(const OpSpec& spec);
// Whether the device has the operation in IEEE_FP32.
bool has_float32_form(std::string_view op);

// The loop variables of N and K of a matmul: the last two of its iteration space.
inline const IterDim& matmul_n(const OpSpec& spec) { return spec.iteration_space[spec.iteration_space.size() - 2]; }
inline const IterDim& matmul_k(const OpSpec& spec) { return spec.iteration_space.back(); }

// One dim as it is written into a SuperDSC file.
struct EmittedDim {
  std::string label;                    // "mb", "out", ...
  std::string symbol;                   // empty: no loop variable behind it
  std::int64_t extent = 1;              // iterations that count; a dim without a variable has 1
  std::int64_t split = 1;
  bool is_reduction = false;
  bool is_one_stick = false;            // stands for the stick of tensors that have no stick variable
  std::optional<std::size_t> position;  // in the iteration space
};

// Loops of extent 1 are dropped, except that an operation keeps a stick dim: where the output has no stick variable a
// dim of one stick takes its place (N of a matmul; appended otherwise). A conversion of one dim gets a leading dim
// of 1. `output_stick`: the output's stick variable, absent where it has none.
Expected<std::vector<EmittedDim>> emitted_dims(const OpSpec& spec, OpKind kind,
                                               const std::optional<std::string>& output_stick);

}  // namespace kerntrail::spyre
