// Which graph nodes each kernel comes from, before and after torch's own passes: what torch writes as
// `inductor_provenance_tracking_node_mappings.json` and `..._kernel_stack_traces`, for any back end, from what the
// compiler claims or from what the witness saw.
// Must not know: how the documents spell it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/expected.h"
#include "kerntrail/options.h"

namespace kerntrail::analyse {

// Names that each key leads to; each key once.
using NameTable = std::vector<std::pair<std::string, std::vector<std::string>>>;

// Whose word on kernels is taken. The two are never mixed.
enum class MappingSource : std::uint8_t { kClaims, kWitness };

struct MappedKernel {
  // "name:handle". The handle is torch's number of one call, where it gave any (provenance level 1 and above); else
  // calls are numbered from 1 in program order.
  std::string key;
  std::vector<std::string> nodes;   // names in the post-grad graph, each once
  std::vector<std::string> stacks;  // texts as found, each once
};

// One lowered graph: a compile, or one direction of it.
struct NodeMapping {
  CompileId compile = CompileId::kNone;
  std::string direction;  // "forward", "backward" where the compile has both
  MappingSource source = MappingSource::kClaims;
  // Post-grad nodes (those of the outermost graph that call something) with the pre-grad nodes that they come from; in
  // the graph's order, only those that come from any.
  NameTable post_to_pre;
  std::vector<MappedKernel> kernels;  // by handle
  bool has_own_handles = false;  // torch numbered nothing
  std::size_t unregistered = 0;  // kernels that torch was never told of: claims leave them out, as torch does
  std::size_t unwitnessed = 0;  // kernels that nothing was seen working in: their lists are empty
};

// One a direction of each compile with anything observed of its kernels or its post-grad graph. Without `source`: the
// witness for compiles that have one, else claims. kUnsupported: the witness is asked for, and nothing was witnessed.
Expected<std::vector<NodeMapping>> node_mappings(const Capture& capture, const AnalysisOptions& options,
                                                 std::optional<MappingSource> source = {});

// Keys and values changed places; keys in the order in which they are first named.
NameTable inverse(const NameTable& table);

}  // namespace kerntrail::analyse
