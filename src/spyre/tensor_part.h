// How one core's part of a tensor lies in memory, by the file's own extents, splits and gaps: strides of each dim,
// where a core's part begins, which elements it covers.
// Must not know: JSON, OpSpecs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/superdsc_model.h"

namespace kerntrail::spyre {

// Begin and end in each device dim, outermost first, sticks counted whole.
using Box = std::vector<std::pair<std::int64_t, std::int64_t>>;
bool overlap(const Box& a, const Box& b);

struct TensorPart {
  // Elements between neighbours of a dim of SdscModel::dims; 0 where the tensor does not move with it. Of the stick
  // dim: between sticks.
  std::vector<std::int64_t> stride;
  std::int64_t word = 2;                // bytes of an element
  std::int64_t bytes = 0;               // of the whole tensor; of a core's part in LX
  std::vector<std::int64_t> extents;    // device dims, outermost first, without the stick
  std::vector<std::int64_t> per_core;   // of each of these what one core covers
  std::vector<std::size_t> dims;        // the dim of each

  // Bytes from the tensor's first element to a core's part; 0 in LX.
  std::int64_t start(const SdscModel& model, std::size_t core) const;
  // The elements of a core's part that begins `offset` bytes behind the first core's; nothing where it leaves the
  // tensor.
  std::optional<Box> box_at(std::int64_t offset) const;

  std::size_t stick = 0;
  std::int64_t stick_elements = 64;
  bool in_lx = false;
};

// kTooLarge, kSchema (extents that are no whole sticks).
Expected<TensorPart> tensor_part(const SdscModel& model, const SdscTensor& tensor);

}  // namespace kerntrail::spyre
