// Device layouts, coordinates and offsets.
#include "spyre/layout.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "spyre/checked.h"

namespace kerntrail::spyre {
namespace {

struct HostDim {
  std::int64_t size = 1;     // to reserve on the device
  std::int64_t stride = -1;  // -1: nothing to step over on the host
  std::int64_t host_size = 1;
};

Expected<void> check_shape(const std::vector<std::int64_t>& size, const std::vector<std::int64_t>& stride,
                           const std::vector<std::int64_t>& padded) {
  if (size.size() != stride.size()) return fail(ErrorCode::kSchema, "a tensor has as many strides as extents");
  if (!padded.empty() && padded.size() != size.size() && padded.size() != size.size() + 1) {
    return fail(ErrorCode::kSchema, "padded extents must be given for every dimension");
  }
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (size[i] == 0) return fail(ErrorCode::kUnsupported, "an empty tensor has no device layout");
    if (size[i] < 0 || stride[i] < 0) return fail(ErrorCode::kSchema, "extents and strides may not be negative");
    if (!padded.empty() && padded[i] < size[i]) return fail(ErrorCode::kSchema, "a padded extent is below the extent");
  }
  return {};
}

// The host dimensions in device order of importance: permuted, the last one in the stick.
Expected<std::vector<HostDim>> ordered_dims(const std::vector<std::int64_t>& size,
                                            const std::vector<std::int64_t>& stride, const std::vector<int>& order,
                                            const std::vector<std::int64_t>& padded) {
  std::vector<int> dims = order;
  if (dims.empty()) {
    dims.resize(size.size());
    std::iota(dims.begin(), dims.end(), 0);
  }
  const bool sparse = !dims.empty() && dims.back() == kSparse;
  if (dims.size() != size.size() + (sparse ? 1 : 0))
    return fail(ErrorCode::kSchema, "the dim order does not fit the rank");
  std::vector<bool> seen(size.size(), false);
  std::vector<HostDim> out;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (sparse && i + 1 == dims.size()) break;
    const auto dim = static_cast<std::size_t>(dims[i]);
    if (dims[i] < 0 || dim >= size.size() || seen[dim])
      return fail(ErrorCode::kSchema, "the dim order is no permutation");
    seen[dim] = true;
    out.push_back({padded.empty() ? size[dim] : padded[dim], size[dim] == 1 ? -1 : stride[dim], size[dim]});
  }
  if (sparse || out.empty())
    out.push_back({padded.size() > size.size() ? std::max<std::int64_t>(padded.back(), 1) : 1, -1, 1});
  return out;
}

// What one device dim holds of one variable.
struct Digit {
  std::string text;        // "", or an expression in the variable
  std::int64_t most = 0;   // its largest value
};

// One device dim that has a host counterpart and more than one place, by rising stride.
struct Place {
  std::size_t dim = 0;
  std::int64_t stride = 1;
  std::int64_t size = 1;
};

std::vector<Place> places_of(const DeviceLayout& layout) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < layout.device_size.size(); ++i) {
    if (layout.device_size[i] > 1 && layout.stride_map[i] > 0) {
      places.push_back({i, layout.stride_map[i], layout.device_size[i]});
    }
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.stride < b.stride; });
  return places;
}

tl::unexpected<Error> unaligned(std::string_view what) {
  return fail(ErrorCode::kUnsupported, fmt::format("the index does not follow the device dims: {}", what));
}

// The digit of `coefficient * symbol` (0 <= symbol < extent) in the place `places[k]`, or an empty one.
Expected<Digit> digit_of(const std::vector<Place>& places, std::size_t k, const std::string& symbol,
                         std::int64_t coefficient, std::int64_t extent) {
  const Place& place = places[k];
  const auto last = checked_multiply(coefficient, extent - 1);  // largest host offset of the term
  if (!last) return fail(ErrorCode::kTooLarge, "an index leaves 64 bits");
  if (place.stride > *last) return Digit{};
  const bool has_next = k + 1 < places.size();
  const std::int64_t next = has_next ? places[k + 1].stride : 0;
  if (has_next && coefficient >= next) return Digit{};  // a larger dim takes the whole term, or refuses it
  std::string text = symbol;
  const std::int64_t most = *last / place.stride;
  if (coefficient >= place.stride) {
    if (coefficient % place.stride != 0) return unaligned("a step is no multiple of a dim's stride");
    const std::int64_t factor = coefficient / place.stride;
    if (factor != 1) text = fmt::format("{}*{}", factor, symbol);
  } else if (place.stride % coefficient != 0) {
    return unaligned("a dim's stride is no multiple of a step");
  }
  const bool wraps = has_next && next <= *last;
  if (wraps && next % place.stride != 0) return unaligned("a variable runs over dims whose strides do not divide");
  const std::int64_t ratio = wraps ? next / place.stride : 0;
  if (coefficient < place.stride) {
    const std::int64_t divisor = place.stride / coefficient;
    text = wraps ? fmt::format("Mod(floor({}/{}), {})", symbol, divisor, ratio)
                 : fmt::format("floor({}/{})", symbol, divisor);
  } else if (wraps) {
    if (ratio % (coefficient / place.stride) != 0) return unaligned("a step does not divide a dim");
    text = fmt::format("Mod({}, {})", text, ratio);
  }
  return Digit{std::move(text), wraps ? std::min(most, ratio - 1) : most};
}

}  // namespace

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& size) {
  std::vector<std::int64_t> stride(size.size(), 1);
  for (std::size_t i = size.size(); i-- > 1;) {
    stride[i - 1] = checked_multiply(stride[i], std::max<std::int64_t>(size[i], 1)).value_or(0);
  }
  return stride;
}

Expected<DeviceLayout> default_layout(const std::vector<std::int64_t>& host_size,
                                      const std::vector<std::int64_t>& host_stride, DType dtype,
                                      const std::vector<int>& dim_order, const std::vector<std::int64_t>& padded_size) {
  KERNTRAIL_CHECK(check_shape(host_size, host_stride, padded_size));
  const std::int64_t e = stick_elements(dtype);
  if (e == 0) return fail(ErrorCode::kUnsupported, fmt::format("{} has no device format", dtype_name(dtype)));
  KERNTRAIL_TRY(const std::vector<HostDim> dims, ordered_dims(host_size, host_stride, dim_order, padded_size));

  const HostDim& stick = dims.back();
  // Sticks that exist by padding only have no host counterpart.
  const bool only_padding = stick.host_size <= e && stick.size > e;
  std::int64_t count_stride = -1;
  if (stick.stride >= 0 && !only_padding) {
    const auto step = checked_multiply(stick.stride, e);
    if (!step) return fail(ErrorCode::kTooLarge, "a stride leaves 64 bits");
    count_stride = *step;
  }
  DeviceLayout layout;
  const auto push = [&](std::int64_t size, std::int64_t stride) {
    layout.device_size.push_back(size);
    layout.stride_map.push_back(stride);
  };
  for (std::size_t i = 1; i + 1 < dims.size(); ++i) push(dims[i].size, dims[i].stride);
  push(ceil_divide(stick.size, e), count_stride);
  if (dims.size() > 1) push(dims.front().size, dims.front().stride);
  push(e, stick.stride);
  if (layout.device_size.size() > kMaxDeviceRank) {
    return fail(ErrorCode::kUnsupported, fmt::format("a device tensor has at most {} dims", kMaxDeviceRank));
  }
  KERNTRAIL_CHECK(layout_bytes(layout));
  return layout;
}

Expected<std::int64_t> layout_bytes(const DeviceLayout& layout) {
  std::int64_t bytes = kStickBytes;
  for (std::size_t i = 0; i + 1 < layout.device_size.size(); ++i) {
    const auto next = checked_multiply(bytes, layout.device_size[i]);
    if (!next) return fail(ErrorCode::kTooLarge, "the size of a device tensor leaves 64 bits");
    bytes = *next;
  }
  return bytes;
}

Expected<std::vector<std::string>> compute_coordinates(const LinearForm& index, const std::vector<IterDim>& space,
                                                       const DeviceLayout& layout) {
  const std::size_t rank = layout.device_size.size();
  if (layout.stride_map.size() != rank || rank == 0)
    return fail(ErrorCode::kSchema, "a layout's size and strides differ in rank");
  const std::vector<Place> places = places_of(layout);
  for (std::size_t k = 1; k < places.size(); ++k) {
    if (places[k].stride == places[k - 1].stride) return unaligned("two dims have the same stride");
  }
  std::vector<std::string> texts(rank);
  std::vector<std::int64_t> most(rank, 0);
  for (const auto& [symbol, coefficient] : index.terms) {
    const auto dim = std::find_if(space.begin(), space.end(), [&](const IterDim& d) { return d.symbol == symbol; });
    if (dim == space.end())
      return fail(ErrorCode::kReference, fmt::format("index symbol '{}' is no loop variable", symbol));
    if (coefficient < 0) return unaligned("a negative step");
    if (dim->extent <= 1) continue;
    bool placed = false;
    for (std::size_t k = 0; k < places.size(); ++k) {
      KERNTRAIL_TRY(const Digit digit, digit_of(places, k, symbol, coefficient, dim->extent));
      if (digit.text.empty()) continue;
      placed = true;
      std::string& text = texts[places[k].dim];
      text += (text.empty() ? "" : " + ") + digit.text;
      most[places[k].dim] += digit.most;
    }
    const std::int64_t smallest = places.empty() ? 0 : places.front().stride;
    if (!placed || coefficient % smallest != 0) return unaligned(fmt::format("no dim for '{}'", symbol));
  }
  if (index.constant < 0) return unaligned("a negative offset");
  std::int64_t rest = index.constant;
  for (std::size_t k = places.size(); k-- > 0;) {
    const std::int64_t digit = rest / places[k].stride;
    rest %= places[k].stride;
    if (digit == 0) continue;
    std::string& text = texts[places[k].dim];
    text += (text.empty() ? "" : " + ") + std::to_string(digit);
    most[places[k].dim] += digit;
  }
  if (rest != 0) return unaligned("an offset between two elements");
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (most[places[k].dim] >= places[k].size) return unaligned("a coordinate runs past its dim");
  }
  for (std::string& text : texts) {
    if (text.empty()) text = "0";
  }
  return texts;
}

Expected<std::int64_t> host_offset(const DeviceLayout& layout, const std::vector<std::int64_t>& coordinates) {
  if (coordinates.size() != layout.stride_map.size()) return fail(ErrorCode::kSchema, "one coordinate a device dim");
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    if (layout.stride_map[i] < 0) continue;
    const auto step = checked_multiply(coordinates[i], layout.stride_map[i]);
    const auto next = step ? checked_add(offset, *step) : std::nullopt;
    if (!next) return fail(ErrorCode::kTooLarge, "a host offset leaves 64 bits");
    offset = *next;
  }
  return offset;
}

Expected<std::int64_t> device_offset(const DeviceLayout& layout, const std::vector<std::int64_t>& coordinates) {
  if (coordinates.size() != layout.device_size.size()) return fail(ErrorCode::kSchema, "one coordinate a device dim");
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    if (coordinates[i] < 0 || coordinates[i] >= layout.device_size[i]) {
      return fail(ErrorCode::kSchema, "a coordinate lies outside its device dim");
    }
    const auto scaled = checked_multiply(offset, layout.device_size[i]);
    const auto next = scaled ? checked_add(*scaled, coordinates[i]) : std::nullopt;
    if (!next) return fail(ErrorCode::kTooLarge, "a device offset leaves 64 bits");
    offset = *next;
  }
  return offset;
}

}  // namespace kerntrail::spyre
