#include "analyse/explain_ends.h"

#include <fmt/format.h>

#include "analyse/end_reasons.h"
#include "analyse/rules.h"

namespace kerntrail::analyse {

EndFinder::EndFinder(const Capture& capture, const Lineage& lineage, const std::vector<const Drops*>& drops)
    : capture_(capture), lineage_(lineage), goes_on_(lineage.nodes.size(), false) {
  for (const LineageEdge& edge : lineage.edges) goes_on_[edge.from] = true;
  for (const Drops* one : drops) note_fates(*one);
  for (const Birth& birth : capture.births_of(lineage.compile)) {
    for (UnitId source : birth.sources) made_of_.add(source, birth.unit);
  }
  made_of_.close();
}

// Passes that run later overrule earlier ones: a pass may only say what it did itself.
void EndFinder::note_fates(const Drops& drops) {
  for (const StageInterval& interval : drops.intervals) {
    for (const UnitFate& fate : interval.leavers) between_stages_[fate.unit] = {&fate, &drops, PassId::kNone};
  }
  for (const PassTally& pass : drops.passes) {
    for (const UnitFate& fate : pass.leavers) in_passes_[fate.unit] = {&fate, &drops, pass.pass};
  }
}

// A pass knows most; a node that a stage of its own layer took over went with that. A node of the graph traced from
// source dies with what was interpreted of it.
const EndFinder::Known* EndFinder::fate_of(UnitId unit) const {
  for (const auto* fates : {&in_passes_, &between_stages_}) {
    if (const auto found = fates->find(unit); found != fates->end()) return &found->second;
  }
  const Known* last = nullptr;
  for (UnitId made : made_of_.of(unit)) {
    if (const auto found = in_passes_.find(made); found != in_passes_.end()) last = &found->second;
  }
  return last;
}

void EndFinder::describe(const Known& known, EndedUnit& out) const {
  out.fate = fate_name(known.fate->fate);
  out.why = meaning_of("fate", out.fate);
  if (known.fate->fate == Fate::kUnseen) {
    if (std::string why = why_unseen(capture_, out.unit); !why.empty()) out.why = std::move(why);
  }
  const auto by = known.drops->units.find(known.fate->by);
  if (by != known.drops->units.end()) out.by = by->second.name.empty() ? by->second.id : by->second.name;
  const auto label = known.drops->pass_labels.find(known.pass);
  if (label == known.drops->pass_labels.end()) return;
  out.pass = label->second.name;
  out.place = label->second.place;
}

std::vector<EndedUnit> EndFinder::among(const std::vector<std::uint32_t>& nodes) const {
  std::vector<EndedUnit> out;
  const std::size_t last = lineage_.layers.size() - 1;
  for (std::uint32_t i : nodes) {
    const LineageNode& node = lineage_.nodes[i];
    if (node.layer == last || goes_on_[i] || !has(node.unit)) continue;
    const LineageLayer& layer = lineage_.layers[node.layer];
    EndedUnit end{node.unit, unit_name(capture_, node.unit), node.name, layer.title, {}, {}, {}, {}, {}};
    if (const Known* known = fate_of(node.unit)) {
      describe(*known, end);
    } else {
      end.why = why_it_ends(capture_, node.unit, layer.key, lineage_.witnessed);
    }
    out.push_back(std::move(end));
  }
  return out;
}

}  // namespace kerntrail::analyse
