// How a host tensor lies on the device: default layouts, device coordinates of a host index, offsets.
// Stick = 128 bytes; a device tensor is row-major over device_size, whose last entry is one stick.
// Must not know: operations, kernels, which layout an operation asks for (plan.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/index_expr.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre {

inline constexpr std::int64_t kStickBytes = 128;
inline constexpr std::size_t kMaxDeviceRank = 6;
// In a dim order: no host dimension lies in the stick, one valid element a stick.
inline constexpr int kSparse = -1;

std::int64_t stick_elements(DType dtype);  // 64 for float16, 32 for float32; 0 where the device has no such format
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& size);

// Device dims of a host tensor (d0 .. dn-1): [d1 .. d(n-2), ceil(d(n-1) / e), d0, e]. `dim_order` permutes the host
// dimensions first (empty: as they are); a trailing kSparse adds an empty stick. A host dimension of extent 1 has
// stride -1. `padded_size` (empty: none) gives the extents to reserve on the device, each >= the host's; one more entry
// is the number of elements to reserve in the stick of a tensor that has no host dimension there. Errors: kSchema for
// ranks, orders or extents that make no sense, kUnsupported for a type without a device format, an empty tensor or a
// device rank above kMaxDeviceRank.
Expected<DeviceLayout> default_layout(const std::vector<std::int64_t>& host_size,
                                      const std::vector<std::int64_t>& host_stride, DType dtype,
                                      const std::vector<int>& dim_order = {},
                                      const std::vector<std::int64_t>& padded_size = {});

// 128 * product of device_size without its last entry; kTooLarge where that leaves int64.
Expected<std::int64_t> layout_bytes(const DeviceLayout& layout);

// One expression over the iteration symbols for each device dim, so that for every point of `space`
// sum(coordinate * stride_map) equals the index. A term never carries into the next device dim: where that cannot be
// shown, or a coefficient is negative, the answer is kUnsupported with the reason.
Expected<std::vector<std::string>> compute_coordinates(const LinearForm& index, const std::vector<IterDim>& space,
                                                       const DeviceLayout& layout);

// Host elements from the buffer's first one; dims without a host counterpart do not count.
Expected<std::int64_t> host_offset(const DeviceLayout& layout, const std::vector<std::int64_t>& coordinates);
// Device elements from the tensor's first one (row-major); kSchema for a coordinate outside its dim.
Expected<std::int64_t> device_offset(const DeviceLayout& layout, const std::vector<std::int64_t>& coordinates);

}  // namespace kerntrail::spyre
