// One SuperDSC file back to plain values, and from these to the OpSpec that it was written from.
// What is read is what the file says; whether it obeys the format's rules is for validate.h, and whether writing it
// again gives the same bytes shows that nothing was left out.
// Must not know: bundles, files and directories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "kerntrail/expected.h"
#include "spyre/plan.h"
#include "spyre/superdsc_model.h"

namespace kerntrail::spyre {

// Bytes of one file, cores and dims that are read; more is a damaged file. (Nesting and duplicate keys: base::Json.)
inline constexpr std::size_t kMaxSuperdscBytes = std::size_t{64} << 20;
inline constexpr std::int64_t kMaxCoresRead = 1 << 12;
inline constexpr std::size_t kMaxDimsRead = 16;
inline constexpr std::size_t kMaxTensorsRead = 64;

struct SuperdscContent {
  std::int64_t ordinal = 0;  // of the top key "<ordinal>_<operation>"
  // Dims, slices, tensors and addresses as the file has them; `op` is the file's name of it ("sumnonstick").
  SdscModel model;
  std::optional<DebugHandle> handle;
  std::vector<std::pair<std::string, std::int64_t>> constants;         // name, encoded value
  std::vector<std::pair<std::size_t, std::int64_t>> masks;             // dim, elements that are no padding
  bool output_is_input = false;   // the output is listed among the inputs: an accumulator
  bool symbolic = false;          // some address is a symbol's number
  EmitOptions style;              // how the file is written: generation, kind of LX addresses, cores
};

// kSyntax, kSchema, kTooLarge with the JSON path; kUnsupported for a file of data movements (no dscs_).
Expected<SuperdscContent> decode_superdsc(const base::Json& document);
Expected<SuperdscContent> decode_superdsc_text(std::string_view text);

// The operation with its device side and a host side that fits it: loops c0, c1, ... over the padded extents, arguments
// named t0, t1, ... (the same place is the same name; argument numbers as in the file's order), layouts from extents
// and gaps, the base from core 0. kUnsupported for symbolic addresses and element formats that host tensors do not
// have. What a file does not say cannot come back: extents before padding, the base of a view (bundle_reader.h finds it
// from the other files), an argument's number.
Expected<OpSpec> recover_op_spec(const SuperdscContent& content);

// The first place where two documents differ, key order included; empty where they are equal.
std::string first_difference(const base::Json& a, const base::Json& b);

}  // namespace kerntrail::spyre
