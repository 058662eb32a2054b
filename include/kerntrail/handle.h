// Source locations and debug handles as plain values: what a kernel file says of where it comes from.
// Must not know: how a handle is derived from a graph or how its id is computed (src/spyre/handle.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kerntrail {

// A place in user code. Lines are 1-based, columns 0-based; `end_*` absent where only a line is known.
struct SourceLoc {
  std::string file;
  std::int64_t start_line = 0;
  std::int64_t start_col = 0;
  std::optional<std::int64_t> end_line;
  std::optional<std::int64_t> end_col;

  bool operator==(const SourceLoc&) const = default;
};

// One step of a buffer's history below the FX graph: a rewrite, fusion, decomposition, clone or remap by a pass.
struct ProvenanceTransform {
  std::string kind;
  std::string pass_name;
  std::optional<std::string> reason;

  bool operator==(const ProvenanceTransform&) const = default;
};

// The record that travels from an IR buffer to its kernel file. An absent source or aten op is a normal value:
// the constituents disagree, or none had one.
struct DebugHandle {
  std::uint64_t id = 0;  // 63 bits; a decimal string in JSON, since JavaScript is exact only to 2^53
  std::optional<SourceLoc> source;
  std::optional<std::string> aten_op;  // e.g. "aten.addmm.default"
  std::vector<std::string> ir_chain;   // sorted FX origin names, then the buffer's own name
  std::vector<DebugHandle> fused_from; // one per origin where there is more than one origin
  // What passes did to the buffer, oldest first. Absent: the handle's generation has no such field.
  std::optional<std::vector<ProvenanceTransform>> transform_history;

  bool operator==(const DebugHandle&) const = default;
};

}  // namespace kerntrail
