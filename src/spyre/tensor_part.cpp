#include "spyre/tensor_part.h"

#include <algorithm>

#include <fmt/format.h>

#include "spyre/checked.h"
#include "spyre/layout.h"

namespace kerntrail::spyre {

bool overlap(const Box& a, const Box& b) {
  for (std::size_t d = 0; d < a.size(); ++d) {
    if (a[d].second <= b[d].first || b[d].second <= a[d].first) return false;
  }
  return true;
}

Expected<TensorPart> tensor_part(const SdscModel& model, const SdscTensor& tensor) {
  TensorPart part;
  part.stick = tensor.stick;
  part.stick_elements = tensor.stick_elements;
  part.in_lx = tensor.in_lx;
  part.word = kStickBytes / tensor.stick_elements;
  part.stride.assign(model.dims.size(), 0);
  std::int64_t below = tensor.stick_elements;  // elements of what lies inside the dim
  for (const SdscTensorDim& entry : tensor.order) {
    if (entry.scale == kScaleReduced) continue;
    const SdscDim& dim = model.dims[entry.dim];
    std::int64_t extent = (tensor.in_lx ? dim.per_core() : dim.size) + entry.gap;
    std::int64_t covered = dim.per_core();
    if (entry.scale == kScaleSparse) {
      extent = covered = 1;
    } else {
      part.stride[entry.dim] = below;
    }
    if (entry.dim == tensor.stick && entry.scale == kScaleNormal) {
      if (extent % tensor.stick_elements != 0 || covered % tensor.stick_elements != 0)
        return fail(ErrorCode::kSchema, fmt::format("a core's part of {} is no whole sticks", dim.label));
      extent /= tensor.stick_elements;
      covered /= tensor.stick_elements;
    }
    const auto next = checked_multiply(below, extent);
    if (!next || *next > (std::int64_t{1} << 56)) return fail(ErrorCode::kTooLarge, "a tensor leaves 56 bits");
    below = *next;
    part.extents.insert(part.extents.begin(), extent);
    part.per_core.insert(part.per_core.begin(), covered);
    part.dims.insert(part.dims.begin(), entry.dim);
  }
  part.bytes = below * part.word;
  return part;
}

std::int64_t TensorPart::start(const SdscModel& model, std::size_t core) const {
  if (in_lx) return 0;
  std::int64_t elements = 0;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    if (stride[dims[k]] != 0) elements += model.slices[core][dims[k]] * per_core[k] * stride[dims[k]];
  }
  return elements * word;
}

std::optional<Box> TensorPart::box_at(std::int64_t offset) const {
  const std::int64_t stick_bytes = stick_elements * word;
  if (offset < 0 || offset % stick_bytes != 0) return std::nullopt;
  std::int64_t rest = offset / stick_bytes;
  Box box(extents.size());
  for (std::size_t k = extents.size(); k-- > 0;) {
    const std::int64_t begin = rest % extents[k];
    rest /= extents[k];
    if (begin + per_core[k] > extents[k]) return std::nullopt;
    box[k] = {begin, begin + per_core[k]};
  }
  return rest == 0 ? std::optional(box) : std::nullopt;
}

}  // namespace kerntrail::spyre
