// Element types: torch's spelling, host size, device format.
#include <array>

#include <fmt/format.h>

#include "spyre/layout.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t host_bytes;
  std::string_view format;  // empty: the device has none
  std::size_t device_bytes; // 0: the device has none
};

// bool and bfloat16 are carried as fp16; int64 is narrowed.
constexpr std::array<DTypeRow, 9> kDTypes{{
    {DType::kFloat16, "float16", 2, "SEN169_FP16", 2},
    {DType::kBFloat16, "bfloat16", 2, "SEN169_FP16", 2},
    {DType::kFloat32, "float32", 4, "IEEE_FP32", 4},
    {DType::kFloat64, "float64", 8, "", 0},
    {DType::kBool, "bool", 1, "SEN169_FP16", 2},
    {DType::kInt8, "int8", 1, "SENINT8", 1},
    {DType::kUInt8, "uint8", 1, "SENUINT32", 4},
    {DType::kInt32, "int32", 4, "IEEE_INT32", 4},
    {DType::kInt64, "int64", 8, "IEEE_INT32", 4},
}};

const DTypeRow& row_of(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  return kDTypes[index < kDTypes.size() ? index : 0];
}

}  // namespace

std::string_view dtype_name(DType dtype) { return row_of(dtype).name; }
std::size_t dtype_size(DType dtype) { return row_of(dtype).host_bytes; }
std::string_view device_format(DType dtype) { return row_of(dtype).format; }
std::size_t device_element_size(DType dtype) { return row_of(dtype).device_bytes; }

Expected<DType> dtype_from_name(std::string_view name) {
  std::string_view short_name = name;
  constexpr std::string_view kPrefix = "torch.";
  if (short_name.starts_with(kPrefix)) short_name.remove_prefix(kPrefix.size());
  for (const DTypeRow& row : kDTypes) {
    if (row.name == short_name) return row.dtype;
  }
  return fail(ErrorCode::kUnsupported, fmt::format("element type '{}' is not carried", name));
}

std::int64_t stick_elements(DType dtype) {
  const std::size_t bytes = device_element_size(dtype);
  return bytes == 0 ? 0 : kStickBytes / static_cast<std::int64_t>(bytes);
}

}  // namespace kerntrail::spyre
