// How a debug handle is derived from an operation's origins (July 2026 recipe), and its id.
// Must not know: torch or Python objects; callers copy what they see of a node into OriginFacts first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/handle.h"

namespace kerntrail::spyre {

// What one FX node says of itself; absent where the node has no such metadata.
struct OriginFacts {
  std::string name;                        // "mm_default_1"
  std::optional<std::string> stack_trace;  // Python traceback text as in meta["stack_trace"]
  std::optional<std::string> aten;         // text of original_aten: "aten.addmm.default"

  bool operator==(const OriginFacts&) const = default;
};

// The innermost frame (`File "<path>", line <n>`) whose path does not contain "/torch/", else the innermost frame;
// column 0, no end. Nothing where the text holds no frame. Any text is accepted; a line number beyond int64 is no
// frame.
std::optional<SourceLoc> source_from_stack_trace(std::string_view stack_trace);

// "file:start_line:start_col", the text the id hashes.
std::string source_text(const SourceLoc& source);

// First eight bytes (big-endian, shifted right by one: 63 bits) of SHA-256 over
// "source text|aten|chain joined by ','", where an absent part is the empty string.
std::uint64_t debug_handle_id(const std::optional<SourceLoc>& source, const std::optional<std::string>& aten,
                              const std::vector<std::string>& chain);

// No origins: no handle. With an origin node its aten op is the handle's, and its source where it has one, else the one
// source all origins agree on. Without: the one distinct source and the one distinct aten op, or none.
// The chain is the sorted origin names and then `buffer_name`; with more than one origin each becomes a constituent.
std::optional<DebugHandle> build_debug_handle(const std::vector<OriginFacts>& origins,
                                              const std::optional<OriginFacts>& origin_node,
                                              const std::string& buffer_name);

}  // namespace kerntrail::spyre
