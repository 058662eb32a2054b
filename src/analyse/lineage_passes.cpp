#include "analyse/lineage_passes.h"

#include <set>

#include "analyse/pass_index.h"
#include "analyse/pass_path.h"
#include "analyse/trusted.h"

namespace kerntrail::analyse {
namespace {

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

}  // namespace

void name_passes(const Capture& capture, const PassIndex& passes, Lineage& lineage) {
  for (LineageEdge& edge : lineage.edges) {
    const UnitId unit = lineage.nodes[edge.to].unit;
    if (!has(unit) || edge.kind == EdgeKind::kSame || capture.units[index(unit)].kind != UnitKind::kFxNode) continue;
    const PassId pass = made_in(capture, passes, unit);
    if (has(pass)) edge.pass = path_text(capture, pass);
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
