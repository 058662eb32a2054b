// The device operation of the Spyre-format back end as plain values, and its text form.
// An OpSpec is made once from a loop-level buffer, printed into the generated wrapper, parsed back when the wrapper
// runs, written as one SuperDSC file and executed on the host.
// Must not know: torch, Python, how a graph was lowered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "kerntrail/expected.h"
#include "kerntrail/handle.h"

namespace kerntrail::spyre {

// Element types of host tensors that the back end carries.
enum class DType : std::uint8_t { kFloat16, kBFloat16, kFloat32, kFloat64, kBool, kInt8, kUInt8, kInt32, kInt64 };
std::string_view dtype_name(DType dtype);                    // torch's spelling without "torch.": "float16"
Expected<DType> dtype_from_name(std::string_view name);      // accepts "float16" and "torch.float16"
std::size_t dtype_size(DType dtype);                         // bytes of one element on the host
std::string_view device_format(DType dtype);                 // dataFormat_: "SEN169_FP16", "IEEE_FP32", ...
std::size_t device_element_size(DType dtype);  // bytes of one element on the device (stick = 128 bytes)

// One loop variable of the iteration space. Order matters: outer first, reduction variables last.
struct IterDim {
  std::string symbol;  // "c0", "c1", ...
  std::int64_t extent = 1;  // iterations
  std::int64_t split = 1;  // cores that share this variable

  bool operator==(const IterDim&) const = default;
};

// Where a device tensor lives. kHbm: byte base of its segment; kPool: byte offset in the intermediates pool.
enum class Memory : std::uint8_t { kHbm, kLx, kPool };

// How a host tensor lies on the device (spyre-format: stick = 128 bytes, row-major over device_size, last = in stick).
struct DeviceLayout {
  std::vector<std::int64_t> device_size;  // last entry = elements per stick
  std::vector<std::int64_t> stride_map;  // host elements per step of each device dim; -1: no host counterpart

  bool operator==(const DeviceLayout&) const = default;
};

struct TensorArg {
  bool is_input = true;
  std::int64_t arg_index = -1;  // position among the kernel's arguments; -1 = private intermediate
  std::string name;  // buffer name of the host side: "arg0_1", "buf3", "tmp1"
  DType dtype = DType::kFloat32;
  // Host side: extent and strides (elements) of the buffer, and the index of the element touched at one iteration
  // point, an expression over the iteration symbols: "256*c0 + c1".
  std::vector<std::int64_t> host_size;
  std::vector<std::int64_t> host_stride;
  std::string index;
  // Device side. Coordinates are expressions over the iteration symbols: "floor(c1/64)", "c0", "Mod(c1, 64)".
  DeviceLayout layout;
  std::vector<std::string> device_coordinates;
  Memory memory = Memory::kHbm;
  std::int64_t base = 0;  // bytes

  bool operator==(const TensorArg&) const = default;
};

struct OpSpec {
  std::string op;  // device name: "batchmatmul", "add", "relufwd", ...
  bool is_reduction = false;
  std::vector<IterDim> iteration_space;
  std::vector<TensorArg> args;  // inputs in order, the output last
  base::Json op_info = base::JsonObject{};  // {"constants": {...}} and flags
  std::vector<std::string> tiled_symbols;
  base::Json symbolic_dim_bounds = base::JsonObject{};
  std::optional<DebugHandle> debug_handle;

  bool operator==(const OpSpec&) const = default;
};

// The text embedded in generated wrappers: one JSON array, parsed back without loss.
std::string print_op_specs(const std::vector<OpSpec>& specs);
Expected<std::vector<OpSpec>> parse_op_specs(std::string_view text);

// Keys id (decimal string), source, aten_op, ir_chain, fused_from, and last: transform_history (a list of {kind,
// pass_name, reason}) where the handle has one, else fusion_context (null), as July wrote it. Both are read.
base::Json handle_to_json(const DebugHandle& handle);
Expected<DebugHandle> handle_from_json(const base::Json& json);

}  // namespace kerntrail::spyre
