#include "kerntrail/capture.h"

#include <fmt/format.h>

#include <algorithm>

namespace kerntrail {
namespace {

// Locations that share parts can spell out far more paths than there are locations; no stack is near this long.
constexpr int kMaxSteps = 100000;

}  // namespace

// Kept sorted by (attr, since): a lookup is a binary search, all attrs of a unit are one sweep.
void Capture::set(UnitId unit, AttrId attr, SnapshotId since, Observation observation) {
  if (index(unit) >= versions_.size()) versions_.resize(index(unit) + 1);
  auto& list = versions_[index(unit)];
  const auto before = [](const Version& v, const std::pair<AttrId, SnapshotId>& key) {
    return v.attr != key.first ? v.attr < key.first : v.since < key.second;
  };
  const auto place = std::lower_bound(list.begin(), list.end(), std::pair(attr, since), before);
  if (place != list.end() && place->attr == attr && place->since == since)
    place->observation = std::move(observation);
  else
    list.insert(place, Version{attr, since, std::move(observation)});
}

const Observation* Capture::at(UnitId unit, AttrId attr, SnapshotId snapshot) const {
  if (index(unit) >= versions_.size()) return nullptr;
  const auto& list = versions_[index(unit)];
  const auto after = [](const std::pair<AttrId, SnapshotId>& key, const Version& v) {
    return v.attr != key.first ? key.first < v.attr : key.second < v.since;
  };
  auto found = std::upper_bound(list.begin(), list.end(), std::pair(attr, snapshot), after);
  if (found == list.begin()) return nullptr;
  --found;
  if (found->attr != attr || found->observation.state == State::kNoSlot) return nullptr;
  return &found->observation;
}

std::vector<std::pair<AttrId, const Observation*>> Capture::attrs_at(UnitId unit, SnapshotId snapshot) const {
  std::vector<std::pair<AttrId, const Observation*>> out;
  if (index(unit) >= versions_.size()) return out;
  for (const Version& v : versions_[index(unit)]) {
    if (v.since > snapshot) continue;
    if (!out.empty() && out.back().first == v.attr)
      out.back().second = &v.observation;
    else
      out.emplace_back(v.attr, &v.observation);
  }
  std::erase_if(out, [](const auto& entry) { return entry.second->state == State::kNoSlot; });
  return out;
}

std::optional<StageId> Capture::find_stage(std::string_view key) const {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].key == key) return id_at<StageId>(i);
  }
  return std::nullopt;
}

std::optional<AttrId> Capture::find_attr(std::string_view name) const {
  for (std::size_t i = 0; i < attr_kinds.size(); ++i) {
    if (attr_kinds[i].name == name) return id_at<AttrId>(i);
  }
  return std::nullopt;
}

std::vector<StageId> Capture::stages_in_order() const {
  std::vector<StageId> out;
  for (std::size_t i = 0; i < stages.size(); ++i) out.push_back(id_at<StageId>(i));
  std::stable_sort(out.begin(), out.end(),
                   [this](StageId a, StageId b) { return stages[index(a)].order < stages[index(b)].order; });
  return out;
}

void Capture::note_ranges() {
  ranges_.assign(compiles.size(), {});
  const auto note = [&](CompileId compile, Range CompileRanges::* of, std::size_t place) {
    Range& range = ranges_[index(compile)].*of;
    if (range.last == 0) range.first = place;
    range.last = place + 1;
  };
  for (std::size_t i = 0; i < units.size(); ++i) note(compile_of(id_at<UnitId>(i)), &CompileRanges::units, i);
  for (std::size_t i = 0; i < snapshots.size(); ++i)
    note(compile_of(id_at<SnapshotId>(i)), &CompileRanges::snapshots, i);
  for (std::size_t i = 0; i < links.size(); ++i) {
    for (UnitId to : links[i].to) note(compile_of(to), &CompileRanges::links, i);
  }
  for (std::size_t i = 0; i < births.size(); ++i) note(compile_of(births[i].unit), &CompileRanges::births, i);
  for (std::size_t i = 0; i < claims.size(); ++i) note(compile_of(claims[i].kernel), &CompileRanges::claims, i);
}

std::vector<SnapshotId> Capture::snapshots_of(CompileId compile, StageId stage) const {
  std::vector<SnapshotId> out;
  const Range near = snapshots_near(compile);
  for (std::size_t i = near.first; i < near.last; ++i) {
    if (snapshots[i].stage == stage && compile_of(id_at<SnapshotId>(i)) == compile) out.push_back(id_at<SnapshotId>(i));
  }
  return out;
}

CompileId Capture::compile_of(UnitId unit) const { return graphs[index(units[index(unit)].graph)].compile; }
CompileId Capture::compile_of(SnapshotId snapshot) const {
  return graphs[index(snapshots[index(snapshot)].graph)].compile;
}

std::string_view Capture::text_of(UnitId unit, std::string_view attr, SnapshotId snapshot) const {
  const auto id = find_attr(attr);
  if (!id) return {};
  const Observation* seen = at(unit, *id, snapshot);
  return seen ? text(seen->text) : std::string_view();
}

const Loc* Capture::innermost_user(LocId chain) const {
  const Loc* innermost = nullptr;
  std::vector<LocId> open = {chain};
  for (int steps = 0; !open.empty() && steps < kMaxSteps; ++steps) {
    const Loc* here = loc(open.back());
    open.pop_back();
    if (!here) continue;
    switch (here->kind) {
      case LocKind::kRange:
        if (here->frame_class == FrameClass::kUser) return here;
        if (!innermost) innermost = here;
        break;
      case LocKind::kCall:  // the callee stands further in than the caller
        open.push_back(here->caller);
        open.push_back(here->child);
        break;
      case LocKind::kNamed: open.push_back(here->child); break;
      case LocKind::kFused: open.insert(open.end(), here->parts.rbegin(), here->parts.rend()); break;
      case LocKind::kOpaque: break;
    }
  }
  return innermost;
}

std::string compile_name(CompileId id) { return fmt::format("c{}", index(id)); }

std::string look_text(const Capture& capture, const Snapshot& snapshot) {
  if (has(snapshot.stage)) return fmt::format("stage \"{}\"", capture.stages[index(snapshot.stage)].key);
  return fmt::format("pass {} \"{}\"", index(snapshot.pass), capture.passes[index(snapshot.pass)].name);
}

std::string graph_name(const Capture& capture, GraphId id) {
  const Graph& graph = capture.graphs[index(id)];
  return fmt::format("c{}.g{}", index(graph.compile), graph.ordinal);
}

std::string unit_name(const Capture& capture, UnitId id) {
  const Unit& unit = capture.units[index(id)];
  return fmt::format("c{}.{}{}", index(capture.compile_of(id)), unit_kind_letter(unit.kind), unit.ordinal);
}

}  // namespace kerntrail
