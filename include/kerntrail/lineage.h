// The lineage of one compile: source lines, the units of each stage, and the edges between neighbouring stages, with
// the evidence for each edge. Nodes are keyed by (layer, unit), never by text.
// Must not know: output formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/options.h"
#include "kerntrail/verify.h"

namespace kerntrail {

enum class EdgeKind : std::uint8_t {
  kTraced,      // source line -> the first graph that shows it
  kCopied,      // one unit became one unit of the same layer
  kDecomposed,  // one unit became several of the same layer
  kFused,       // several units became one
  kLowered,     // a unit became one of a lower layer
  kSerialised,  // a unit was written to a file
  kSame,        // the same unit, seen at both stages
};

// What says that an edge holds, strongest first.
enum class Evidence : std::uint8_t {
  kIdentity,     // it is the same object
  kLink,         // two sides of one observed call
  kWitness,      // the unit was seen working for the node (level truth)
  kBundleOrder,  // place in the bundle of its kernel (ambiguous where the debug handles of the two disagree)
  kStackTrace,   // the unit's own stack trace names the source line
  kFromNode,     // the node's own `from_node` chain
  kBirth,        // a pass, a copy or an interpreter was seen making the node of others
  kOrigins,      // the `origins` that the compiler keeps
  kHandle,       // equal debug handle ids
  kClaim,        // the compiler's claim about a kernel
  kLocation,     // equal user source location
  kSibling,      // the unit has no source; the units lowered together with it have
  kProducer,     // the unit has no source; this is the nearest source-bearing unit whose value it consumes
};

enum class Strength : std::uint8_t { kExact, kRecorded, kClaimed, kDerived };

struct LineageNode {
  std::uint32_t layer = 0;
  UnitId unit = UnitId::kNone;  // kNone: a source line
  std::string name;             // unit's name, or the code text of a source line
  std::string detail;           // what it does: "linear", "batchmatmul"; may be empty
  std::string direction;  // "forward", "backward" where the compile has both and the unit is in one; else empty
  std::string file;  // source lines only
  std::int64_t line = 0;  // 1-based; 0 for units
};

struct LineageEdge {
  std::uint32_t from = 0, to = 0;  // indices into Lineage::nodes; from's layer is above to's
  EdgeKind kind = EdgeKind::kCopied;
  Evidence evidence = Evidence::kIdentity;
  Strength strength = Strength::kExact;
  bool ambiguous = false;  // several units answer the same evidence; all are kept
  std::string pass;        // with AnalysisOptions::passes: the pass that made `to`, an FX node; else empty

  bool operator==(const LineageEdge&) const = default;
};

struct LineageLayer {
  std::string key, title;
};

// The compiler says that a node of the lineage comes from a unit, and the witness contradicts: no edge says so.
struct ContradictedClaim {
  std::uint32_t node = 0;          // index into Lineage::nodes
  UnitId claimed = UnitId::kNone;
  std::string name, detail;        // of the claimed unit
  Support support = Support::kNowhere;
};

struct Lineage {
  CompileId compile = CompileId::kNone;
  std::vector<LineageLayer> layers;  // the first is the source layer
  std::vector<LineageNode> nodes;  // by layer, then in the stage's order (sources: by file and line)
  std::vector<LineageEdge> edges;  // by layer of `to`, then by `from`, then by `to`
  bool witnessed = false;  // some unit has a witness: what rests on the compiler's word alone is worth a mark
  std::vector<ContradictedClaim> contradicted;  // by node
  std::vector<Rewrite> rewrites;  // of its FX nodes, in order: where edges and the node's own fields disagree
};

std::string_view edge_kind_name(EdgeKind v);
std::string_view evidence_name(Evidence v);
std::string_view strength_name(Strength v);
// The one table: how strong each evidence is.
Strength strength_of(Evidence v);

// One lineage a compile of which something was observed. kUsage: unknown stage or compile.
Expected<std::vector<Lineage>> lineages(const Capture& capture, const AnalysisOptions& options = {});

// Which nodes a question names. Exactly one of the three is set.
struct LineageQuery {
  std::string line;  // "file.py:25"; the file by its path, absolute or not, or its last components
  std::string node;  // name of a unit at any stage but the last layer of kernels, or its id ("c0.n3")
  std::string kernel;  // name or id of a kernel
};

// The nodes that match, in order; empty when nothing does. kUsage: a malformed line.
Expected<std::vector<std::uint32_t>> find_nodes(const Lineage& lineage, const Capture& capture,
                                                const LineageQuery& query);

// All that leads to `start` and all that `start` leads to, both directions, edges kept between kept nodes only along
// those paths. Node and edge order is the lineage's.
Lineage around(const Lineage& lineage, const std::vector<std::uint32_t>& start);

// Node indices reached from `start` along edges (forwards) or against them, `start` included, ascending.
std::vector<std::uint32_t> reach(const Lineage& lineage, const std::vector<std::uint32_t>& start, bool forwards);

}  // namespace kerntrail
