// The content of one SuperDSC file as plain values: dims, tensors, cores, addresses, by the format's rules.
// Must not know: JSON, how layouts and splits were chosen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/op_rules.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre {

struct SdscDim {
  std::string label;
  std::int64_t size = 1;   // iterations, rounded up to whole sticks for a stick dim
  std::int64_t split = 1;

  std::int64_t per_core() const { return size / split; }
};

// scale_ of a dim in a tensor.
inline constexpr int kScaleNormal = 1;
inline constexpr int kScaleReduced = -1;     // the tensor does not have the dim
inline constexpr int kScaleSparse = -2;      // the op's stick dim, of which the tensor holds one element a stick

// One dim of a tensor, in the tensor's own order: innermost non-stick dim first.
struct SdscTensorDim {
  std::size_t dim = 0;           // index into SdscModel::dims
  int scale = kScaleNormal;
  std::int64_t gap = 0;          // device elements of the dim that are not iterated
};

struct SdscTensor {
  std::string label;             // layout label: "INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX"
  std::size_t first_of_label = 0;  // the tensor whose order and stick the label has
  std::vector<SdscTensorDim> order;
  std::size_t stick = 0;         // index into SdscModel::dims
  std::int64_t stick_elements = 64;
  std::string data_format;
  bool in_lx = false;
  std::vector<std::int64_t> addresses;  // bytes, a core each

  const SdscTensorDim* find(std::size_t dim) const;
};

struct SdscModel {
  std::string op;
  OpKind kind = OpKind::kPointwise;
  std::vector<SdscDim> dims;      // iteration order
  std::int64_t cores = 1;
  std::vector<std::vector<std::int64_t>> slices;  // [core][dim]
  std::vector<SdscTensor> tensors;                // arguments in order
};

// `spec` must have its device side. Errors: kSchema for contradictions (a split that cuts a stick, an address that is
// no multiple of 128), kUnsupported for coordinates of a form the format cannot say.
Expected<SdscModel> make_superdsc_model(const OpSpec& spec, std::int64_t max_cores);

// The variable inside the stick of an argument, absent where the stick holds one element.
Expected<std::optional<std::string>> stick_symbol(const TensorArg& arg);

}  // namespace kerntrail::spyre
