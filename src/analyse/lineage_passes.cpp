#include "analyse/lineage_passes.h"

#include <set>

#include "analyse/pass_index.h"
#include "analyse/trusted.h"

namespace kerntrail::analyse {
namespace {

constexpr int kMaxDepth = 16;   // of nested passes that are spelled
constexpr int kMaxCopies = 64;  // copies of copies that are followed

// A node that came by copying a graph was made by whatever made the one it copies.
PassId made_in(const Capture& capture, const PassIndex& passes, UnitId unit) {
  for (int steps = 0; steps < kMaxCopies; ++steps) {
    const ChargedBirth birth = passes.charged(unit);
    if (birth.birth == nullptr) return passes.created_in(unit);
    const bool gap = has(birth.birth->pass) && capture.passes[index(birth.birth->pass)].kind == PassKind::kGap;
    if (birth.evidence != "copy" || (has(birth.birth->pass) && !gap)) return birth.birth->pass;
    unit = birth.sources.front();
  }
  return PassId::kNone;
}

// Passes nest, and the innermost name alone may be that of a tool ("pattern_matcher").
std::string path_of(const Capture& capture, PassId id) {
  std::string out = capture.passes[index(id)].name;
  PassId above = capture.passes[index(id)].parent;
  for (int depth = 0; has(above) && depth < kMaxDepth; ++depth, above = capture.passes[index(above)].parent) {
    const Pass& outer = capture.passes[index(above)];
    if (outer.kind == PassKind::kPass && !outer.name.empty()) out = outer.name + " / " + out;
  }
  return out;
}

}  // namespace

void name_passes(const Capture& capture, const PassIndex& passes, Lineage& lineage) {
  for (LineageEdge& edge : lineage.edges) {
    const UnitId unit = lineage.nodes[edge.to].unit;
    if (!has(unit) || edge.kind == EdgeKind::kSame || capture.units[index(unit)].kind != UnitKind::kFxNode) continue;
    const PassId pass = made_in(capture, passes, unit);
    if (has(pass)) edge.pass = path_of(capture, pass);
  }
}

void find_rewrites(const Capture& capture, const PassIndex& passes, Lineage& lineage) {
  TrueSources sources(capture, passes);
  SiteTable sites(capture, passes);
  std::set<UnitId> done;
  for (const LineageNode& node : lineage.nodes) {
    if (!has(node.unit) || capture.units[index(node.unit)].kind != UnitKind::kFxNode) continue;
    if (!done.insert(node.unit).second) continue;
    if (auto rewrite = rewrite_of(capture, sources, sites, node.unit)) lineage.rewrites.push_back(std::move(*rewrite));
  }
}

}  // namespace kerntrail::analyse
