// The device side of a bundle: layouts, coordinates, places in memory and core splits for a list of OpSpecs whose host
// side (iteration space, buffers, indices) is known.
// Must not know: the JSON that is written from it (superdsc.h), torch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre {

// Something a reader of the bundle should know that is no error. Codes are stable:
//   laid-out-at-load      a kernel input is not in its default layout: who loads it permutes it
//   padded-at-load        a kernel input has rows on the device that the host does not have; they must be zero
//   unwritten-padding     the same for a tensor made by the bundle: nothing zeroes those rows
//   segments-numbered-on  more tensors than the device has numbered segments; the extra ones get the next numbers
//   float32-not-listed    an operation that the device has no float32 form of
// and, from validate.h, the codes listed there.
struct Diagnostic {
  std::string code;
  std::string message;
  std::string where;  // "op 3 (add)", "buffer buf1", or a path inside a JSON document

  bool operator==(const Diagnostic&) const = default;
};

// Which release of the format is written. kEarly: nodes say nothing of indirect access. kJune: they do, but there is no
// debug_handle_. kJuly: debug_handle_ comes first. kJulyTransform: handles end with transform_history.
enum class Generation : std::uint8_t { kEarly, kJune, kJuly, kJulyTransform };
std::string_view generation_name(Generation generation);  // "early", "june", "july", "july-transform"
Expected<Generation> generation_from_name(std::string_view name);
// kConcrete: byte addresses. kSymbolic: negative symbol ids, bound when the bundle is launched.
enum class AddressMode : std::uint8_t { kConcrete, kSymbolic };

struct EmitOptions {
  Generation generation = Generation::kJuly;
  AddressMode address_mode = AddressMode::kConcrete;
  std::int64_t max_cores = 32;
  bool keep_splits = false;  // take the splits of the iteration spaces as given instead of dividing
  bool keep_device_side = false;  // take layouts, coordinates, splits and places as given: nothing is planned
  bool lx_addresses_as_numbers = false;  // as branches wrote them; else decimal strings, as everywhere
  bool op_in_file_names = false;  // "sdsc_0_add.json" instead of "sdsc_0.json"
  std::int64_t tensor_limit = 0;  // kernel tensors a bundle may touch; 0: no limit
};

inline constexpr std::int64_t kSegmentBytes = 0x400000000;  // 16 GiB
inline constexpr std::int64_t kDeviceSegments = 7;
inline constexpr std::int64_t kPoolBytes = kSegmentBytes - 0x80000000;  // 2 GiB head room

// kUnsupported or kUsage for options that are not carried (symbolic addresses, a limit).
Expected<void> check_emit_options(const EmitOptions& options);

// The generation that a kernel's handles were made for: with a transform history, kJulyTransform.
Generation generation_of(const std::vector<OpSpec>& specs);

// Fills layout, device_coordinates, memory and base of every argument, and the splits unless `keep_splits`.
// A buffer (by name) has one layout in the whole bundle. A kernel input that some operation needs with another stick
// is laid out that way at load; a tensor made by the bundle cannot be, and gives kUnsupported (a restickify). What a
// restickify (ReStickifyOpHBM) makes is laid out as those who read it need it.
// Limit: every kernel input that the bundle does not write counts as loaded by the host; where another kernel makes it,
// the layout it has there is not known here. Errors: kUnsupported (option or operation outside what is carried),
// kSchema (contradictions in the specs). On error the specs are left as they were.
Expected<void> plan_bundle(std::vector<OpSpec>& specs, const EmitOptions& options,
                           std::vector<Diagnostic>& diagnostics);

}  // namespace kerntrail::spyre
