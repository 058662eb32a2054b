#include "kerntrail/drops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "analyse/drop_builder.h"
#include "analyse/drop_finder.h"
#include "analyse/fates.h"
#include "analyse/observer_rules.h"
#include "analyse/pass_path.h"
#include "analyse/settings.h"
#include "analyse/survival.h"
#include "base/parallel.h"

namespace kerntrail {

std::string_view reason_name(Reason v) {
  constexpr std::array<std::string_view, kReasons> kNames{
      "not_created_yet", "carried_by", "dropped", "inherited_gap", "never_made", "orphan", "synthesised", "unknown"};
  return kNames[static_cast<std::size_t>(v)];
}

std::string_view quality_name(Quality v) {
  constexpr std::array<std::string_view, kQualities> kNames{"kept",    "collapsed",     "overwritten",
                                                            "vacuous", "compiler_made", "conflict"};
  return kNames[static_cast<std::size_t>(v)];
}

std::string_view fate_name(Fate v) {
  constexpr std::array<std::string_view, kFates> kNames{"survived", "replaced", "merged", "elided",
                                                        "folded",   "dead",     "unseen"};
  return kNames[static_cast<std::size_t>(v)];
}

std::string_view site_kind_name(SiteKind v) {
  constexpr std::array<std::string_view, 5> kNames{"pass", "gap", "border", "tracing", "copy"};
  return kNames[static_cast<std::size_t>(v)];
}

std::string_view loss_way_name(LossWay v) {
  constexpr std::array<std::string_view, 3> kNames{"in_place", "at_birth", "from_stage"};
  return kNames[static_cast<std::size_t>(v)];
}

CaptureState capture_state(const Capture& capture) {
  CaptureState result;
  result.torn = !capture.end.has_value();
  result.partial = capture.end.has_value() && !capture.end->complete;
  result.level = analyse::setting(capture.run.settings, "level");
  for (const Note& note : capture.notes) {
    if (note.code == "torn-capture") result.torn_note = note.text;
  }
  return result;
}

std::string_view observer_rule_id(ObserverRule v) {
  constexpr std::array<std::string_view, 5> kNames{"a", "b", "c", "d", "e"};
  return kNames[static_cast<std::size_t>(v)];
}

namespace analyse {
namespace {

// A backward section shows only what is its own: the stages shared with the forward are in the forward's.
bool belongs_to(const Capture& capture, const Pipeline& pipeline, std::string_view key) {
  if (pipeline.direction != "backward") return true;
  for (const Column& column : pipeline.columns) {
    if (column.key != key) continue;
    return std::any_of(column.snapshots.begin(), column.snapshots.end(), [&](SnapshotId id) {
      return capture.graphs[index(capture.snapshots[index(id)].graph)].direction == "backward";
    });
  }
  return false;
}

// By default every stage, but a kernel that is seen through the files of its bundle not a second time.
void choose_stages(const Capture& capture, const Pipeline& pipeline, const std::vector<std::string>& wanted,
                   Drops& drops) {
  const bool all = wanted.size() == 1 && wanted.front() == "all";
  const bool bundles = std::any_of(pipeline.columns.begin(), pipeline.columns.end(),
                                   [](const Column& column) { return column.key == "superdsc"; });
  std::erase_if(drops.stages, [&](const StageTally& stage) {
    const bool by_default = wanted.empty() && !(stage.key == "kernel" && bundles);
    const bool named = all || by_default || std::find(wanted.begin(), wanted.end(), stage.key) != wanted.end();
    return !named || !belongs_to(capture, pipeline, stage.key);
  });
}

// Stages are walked in order, so that a unit comes up again long after its first time.
template <class Found>
void add_heir(Found& found, UnitId unit) {
  if (unit != found.unit) found.heirs.push_back(unit);
}

template <class Found>
void sort_heirs(std::vector<Found>& all) {
  for (Found& found : all) {
    std::sort(found.heirs.begin(), found.heirs.end());
    found.heirs.erase(std::unique(found.heirs.begin(), found.heirs.end()), found.heirs.end());
  }
}

// Keeps the orphans that the shown stages have or lead to, with the fields that are missing for that reason.
void gather_orphans(Drops& drops) {
  UnitMap<std::size_t> place;
  for (std::size_t i = 0; i < drops.orphans.size(); ++i) place[drops.orphans[i].unit] = i;
  for (const StageTally& stage : drops.stages) {
    for (const FieldTally& field : stage.fields) {
      for (const FieldUnit& unit : field.units) {
        const auto at = place.find(unit.orphan);
        if (at == place.end()) continue;
        Orphan& found = drops.orphans[at->second];
        if (std::find(found.fields.begin(), found.fields.end(), field.attr) == found.fields.end())
          found.fields.push_back(field.attr);
        found.in_stage = found.in_stage || unit.unit == found.unit;
        add_heir(found, unit.unit);
      }
    }
  }
  std::erase_if(drops.orphans, [](const Orphan& found) { return found.fields.empty(); });
  for (Orphan& found : drops.orphans) std::sort(found.fields.begin(), found.fields.end());
  sort_heirs(drops.orphans);
}

// Keeps what the shown stages refer to, ordered by where it happened, and numbers it anew.
void renumber(Drops& drops) {
  std::vector<bool> used_loss(drops.losses.size(), false), used_mark(drops.marks.size(), false);
  for (Loss& loss : drops.losses) loss.in_stage = false;
  std::unordered_set<UnitId> shown;
  for (const StageTally& stage : drops.stages) {
    for (const FieldTally& field : stage.fields) {
      for (const FieldUnit& unit : field.units) {
        shown.insert(unit.unit);
        if (unit.mark != kNoIndex) {
          used_mark[unit.mark] = true;
          add_heir(drops.marks[unit.mark], unit.unit);
        }
        if (unit.loss == kNoIndex) continue;
        used_loss[unit.loss] = true;
        if (unit.reason == Reason::kDropped) drops.losses[unit.loss].in_stage = true;
        if (unit.reason == Reason::kInheritedGap) add_heir(drops.losses[unit.loss], unit.unit);
      }
    }
  }
  sort_heirs(drops.losses);
  sort_heirs(drops.marks);
  for (std::size_t i = 0; i < drops.marks.size(); ++i) {
    if (drops.marks[i].after_stages && shown.contains(drops.marks[i].unit)) used_mark[i] = true;
  }
  std::vector<std::uint32_t> site_order(drops.sites.size()), site_at(drops.sites.size());
  std::iota(site_order.begin(), site_order.end(), 0U);
  std::stable_sort(site_order.begin(), site_order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return drops.sites[a].at < drops.sites[b].at; });
  std::vector<DropSite> sites;
  for (std::uint32_t i = 0; i < site_order.size(); ++i) {
    site_at[site_order[i]] = i;
    sites.push_back(std::move(drops.sites[site_order[i]]));
  }
  drops.sites = std::move(sites);
  for (Orphan& found : drops.orphans) {
    if (found.site != kNoIndex) found.site = site_at[found.site];
  }
  std::sort(drops.orphans.begin(), drops.orphans.end(),
            [](const Orphan& a, const Orphan& b) { return std::pair(a.site, a.unit) < std::pair(b.site, b.unit); });
  const auto reorder = [&](auto& items, const std::vector<bool>& used, auto less) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      if (items[i].site != kNoIndex) items[i].site = site_at[items[i].site];
      if (used[i]) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return less(items[a], items[b]); });
    std::vector<std::uint32_t> place(items.size(), kNoIndex);
    std::remove_reference_t<decltype(items)> kept;
    for (std::uint32_t i : order) {
      place[i] = static_cast<std::uint32_t>(kept.size());
      kept.push_back(std::move(items[i]));
    }
    items = std::move(kept);
    return place;
  };
  const auto less = [](const auto& a, const auto& b) {
    return std::tuple(a.site, a.unit, a.field) < std::tuple(b.site, b.unit, b.field);
  };
  const auto loss_at = reorder(drops.losses, used_loss, less);
  const auto mark_at = reorder(drops.marks, used_mark, less);
  for (StageTally& stage : drops.stages) {
    for (FieldTally& field : stage.fields) {
      for (FieldUnit& unit : field.units) {
        if (unit.loss != kNoIndex) unit.loss = loss_at[unit.loss];
        if (unit.mark != kNoIndex) unit.mark = mark_at[unit.mark];
      }
    }
  }
}

bool in_direction(const Graph& graph, std::string_view direction) {
  if (direction.empty()) return true;
  return direction == "backward" ? graph.direction == "backward" : graph.direction != "backward";
}

void tally_passes(const Capture& capture, const PassIndex& passes, const FateFinder& fates, Drops& drops) {
  std::map<PassId, std::array<std::size_t, 3>> charged;
  for (const Loss& loss : drops.losses) {
    if (has(drops.sites[loss.site].pass)) ++charged[drops.sites[loss.site].pass][0];
  }
  for (const Mark& mark : drops.marks) {
    if (mark.site != kNoIndex && has(drops.sites[mark.site].pass)) ++charged[drops.sites[mark.site].pass][1];
  }
  for (const ObserverFinding& finding : drops.findings) {
    if (finding.intent == kNoIndex) ++charged[finding.pass][2];
  }
  for (PassId id : passes.passes_of(drops.compile)) {
    const Pass& pass = capture.passes[index(id)];
    const auto here = charged.find(id);
    if (here == charged.end() && !in_direction(capture.graphs[index(pass.graph)], drops.direction)) continue;
    PassTally tally = fates.over(id);
    if (here != charged.end()) {
      tally.losses = here->second[0];
      tally.marks = here->second[1];
      tally.findings = here->second[2];
    } else if (tally.created + tally.left + tally.changed + tally.retargeted == 0) {
      continue;
    }
    drops.passes.push_back(std::move(tally));
  }
}

// What says that something is missing from the capture, rather than from the program.
std::vector<Note> notes_of(const Capture& capture, CompileId compile) {
  constexpr std::array<std::string_view, 3> kCodes{"backward-not-observed", "not-observed", "compile-not-finished"};
  std::vector<Note> result;
  for (const Note& note : capture.notes) {
    if (note.compile == compile && std::find(kCodes.begin(), kCodes.end(), note.code) != kCodes.end())
      result.push_back(note);
  }
  return result;
}

class Labels {
 public:
  Labels(const Capture& capture, const PassIndex& passes, Drops& drops)
      : capture_(capture), passes_(passes), names_(capture), drops_(drops) {}

  void all() {
    for (const AttrKind& kind : capture_.attr_kinds) drops_.fields.push_back(kind.name);
    for (const StageTally& stage : drops_.stages) {
      for (const FieldTally& field : stage.fields) {
        for (const FieldUnit& unit : field.units) this->unit(unit.unit);
      }
    }
    for (const Loss& loss : drops_.losses) several(loss.unit, loss.had);
    for (const Mark& mark : drops_.marks) several(mark.unit, mark.others);
    for (const Orphan& orphan : drops_.orphans) unit(orphan.unit);
    for (const ObserverFinding& found : drops_.findings) {
      several(found.unit, found.lost);
      unit(found.now);
      pass(found.pass);
    }
    for (const DeclaredUse& use : drops_.declared) {
      unit(use.unit);
      pass(use.pass);
    }
    for (const DropSite& site : drops_.sites) pass(site.pass);
    for (const PassTally& tally : drops_.passes) {
      pass(tally.pass);
      leavers(tally.leavers);
    }
    for (const StageInterval& interval : drops_.intervals) leavers(interval.leavers);
  }

 private:
  void unit(UnitId id) {
    if (!has(id)) return;
    auto [place, fresh] = drops_.units.try_emplace(id);
    if (!fresh) return;
    place->second.id = unit_name(capture_, id);
    if (capture_.snapshots.empty()) return;
    const auto last = id_at<SnapshotId>(capture_.snapshots.size() - 1);
    if (const Observation* seen = present(capture_, id, names_["name"], last))
      place->second.name = capture_.text(seen->text);
    const SnapshotId first = passes_.first_seen(id);
    if (const Observation* seen = present(capture_, id, names_["target"], first))
      place->second.target = capture_.text(seen->text);
  }
  void several(UnitId id, const std::vector<UnitId>& more) {
    unit(id);
    for (UnitId other : more) unit(other);
  }
  void leavers(const std::vector<UnitFate>& fates) {
    for (const UnitFate& fate : fates) {
      unit(fate.unit);
      unit(fate.by);
    }
  }
  void pass(PassId id) {
    if (!has(id)) return;
    const Pass& pass = capture_.passes[index(id)];
    auto [place, fresh] = drops_.pass_labels.try_emplace(id);
    if (!fresh) return;
    place->second = {pass.name,
                     pass.subsystem,
                     place_text(capture_, pass.loc),
                     {},
                     pass.kind,
                     graph_name(capture_, pass.graph),
                     capture_.graphs[index(pass.graph)].path};
    const auto path = shown_path(capture_, id);
    place->second.within.assign(path.rbegin() + 1, path.rend());
  }

  const Capture& capture_;
  const PassIndex& passes_;
  AttrNames names_;
  Drops& drops_;
};

}  // namespace

DropBuilder::DropBuilder(const Capture& capture, const std::vector<Intent>& intents)
    : capture_(capture), passes_(capture), intents_(capture, intents) {}

Drops DropBuilder::build(const Pipeline& pipeline, EdgeFinder& edges, const std::vector<std::string>& stages) const {
  Drops result;
  result.compile = pipeline.compile;
  result.direction = pipeline.direction;
  result.state = capture_state(capture_);
  // A capture that broke off, or a compile in which no pass did anything, was watched all the same.
  result.passes_recorded =
      passes_.has_passes(pipeline.compile) || (!result.state.level.empty() && result.state.level != "borders");
  result.all_stages = stages.empty() || (stages.size() == 1 && stages.front() == "all");
  result.notes = notes_of(capture_, pipeline.compile);
  result.intents = intents_.all();
  std::vector<std::size_t> all(pipeline.columns.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const Matrix matrix = matrix_of(capture_, pipeline, all, edges);
  DropFinder(capture_, pipeline, matrix, edges, passes_, intents_).fill(result);
  choose_stages(capture_, pipeline, stages, result);
  gather_orphans(result);
  renumber(result);
  if (result.passes_recorded) follow_passes(pipeline, edges, result);
  Labels(capture_, passes_, result).all();
  return result;
}

void DropBuilder::follow_passes(const Pipeline& pipeline, EdgeFinder& edges, Drops& result) const {
  const auto shown = [&](auto test) { return std::any_of(result.stages.begin(), result.stages.end(), test); };
  const bool ir = shown([&](const StageTally& s) { return capture_.stages[index(s.stage)].layer == "IR"; });
  if (ir) {
    result.findings = observer_findings(capture_, passes_, intents_, pipeline.compile, pipeline.direction);
  }
  const FateFinder fates(capture_, passes_, intents_);
  tally_passes(capture_, passes_, fates, result);
  for (std::size_t b = 1; b < pipeline.columns.size(); ++b) {
    const Column& first = pipeline.columns[b - 1];
    const Column& next = pipeline.columns[b];
    const bool nodes = next.layer == "FX" || next.key == "ir_post_pass";
    const auto is = [&](const std::string& key) { return shown([&](const StageTally& t) { return t.key == key; }); };
    if (first.layer == next.layer && nodes && is(first.key) && is(next.key))
      result.intervals.push_back(fates.between(pipeline, edges, b - 1, b));
  }
}

}  // namespace analyse

Expected<std::vector<Drops>> drops(const Capture& capture, const DropOptions& options) {
  KERNTRAIL_TRY(const auto parts, analyse::parts_of(capture, options.analysis, analyse::Directions::kApart));
  const analyse::DropBuilder builder(capture, options.intents);
  std::vector<Drops> result(parts.size());
  base::parallel_for(parts.size(), [&](std::size_t i) {
    analyse::EdgeFinder edges(capture, parts[i].pipeline);
    result[i] = builder.build(parts[i].pipeline, edges, options.analysis.stages);
  });
  return result;
}

namespace {

std::string group_title(const Drops& drops, DropGrouping by, std::uint32_t site, AttrId field, UnitId unit) {
  switch (by) {
    case DropGrouping::kPass: return drops.sites[site].title;
    case DropGrouping::kLine:
      return drops.sites[site].place.empty() ? drops.sites[site].title : drops.sites[site].place;
    case DropGrouping::kField: return drops.fields[index(field)];
    case DropGrouping::kUnit: return drops.units.at(unit).id;
  }
  return {};
}

// What puts two things into one group: a pass, however often and on however many graphs it ran, is one; so is a line in
// two passes.
std::pair<std::uint64_t, std::string> group_key(const Drops& drops, DropGrouping by, std::uint32_t site, AttrId field,
                                                UnitId unit) {
  if (by == DropGrouping::kUnit) return {index(unit), {}};
  std::string title = group_title(drops, by, site, field, unit);
  if (by != DropGrouping::kPass) return {kNoIndex, std::move(title)};
  const DropSite& at = drops.sites[site];
  return {static_cast<std::uint64_t>(at.kind), at.subsystem + "\n" + title};
}

}  // namespace

std::vector<DropGroup> group_drops(const Drops& drops, DropGrouping by) {
  std::vector<DropGroup> result;
  std::map<std::pair<std::uint64_t, std::string>, std::size_t> groups;
  const bool by_site = by == DropGrouping::kPass || by == DropGrouping::kLine;
  const auto group = [&](std::uint32_t site, AttrId field, UnitId unit) -> DropGroup& {
    const auto [place, fresh] = groups.try_emplace(group_key(drops, by, site, field, unit), result.size());
    if (fresh) result.push_back({group_title(drops, by, site, field, unit), {}, {}});
    return result[place->second];
  };
  for (std::uint32_t i = 0; i < drops.losses.size(); ++i) {
    const Loss& loss = drops.losses[i];
    group(loss.site, loss.field, loss.unit).losses.push_back(i);
  }
  for (std::uint32_t i = 0; i < drops.marks.size(); ++i) {
    const Mark& mark = drops.marks[i];
    if (mark.site == kNoIndex && by_site) continue;
    group(mark.site, mark.field, mark.unit).marks.push_back(i);
  }
  if (by_site) {  // in the order in which it happened, whether something was lost or only spoilt
    const auto first = [&](const DropGroup& g) {
      return g.losses.empty() ? drops.marks[g.marks.front()].site : drops.losses[g.losses.front()].site;
    };
    std::stable_sort(result.begin(), result.end(),
                     [&](const DropGroup& a, const DropGroup& b) { return first(a) < first(b); });
  }
  return result;
}

}  // namespace kerntrail
