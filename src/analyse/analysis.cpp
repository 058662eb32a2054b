#include "kerntrail/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "analyse/survival.h"
#include "analyse/values.h"
#include "base/strings.h"

namespace kerntrail {
namespace analyse {
namespace {

constexpr std::size_t kNames = 6;
constexpr std::array<std::string_view, 3> kCarriers{"origins", "origin_node", "traceback"};

template <class Map>
std::vector<std::pair<std::string, std::size_t>> by_frequency(const Map& counts) {
  std::vector<std::pair<std::string, std::size_t>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

std::string setting(const Settings& settings, std::string_view key) {
  for (const auto& [name, value] : settings) {
    if (name == key) return value;
  }
  return {};
}

class Analyst {
 public:
  Analyst(const Capture& capture, const PassIndex& passes, const ReportSection& section)
      : capture_(capture),
        passes_(passes),
        section_(section),
        pipeline_(pipeline_of(capture, section.compile, section.direction)),
        names_(capture) {}

  AnalysisSection build() {
    out_.compile = section_.compile;
    out_.direction = section_.direction;
    for (AttrId field : tracked_attrs(capture_, pipeline_)) out_.fields.push_back(field_origin(field));
    add_flow();
    add_derivable();
    add_caveats();
    return std::move(out_);
  }

 private:
  // --- how values come about
  FieldOrigin field_origin(AttrId field) {
    const AttrKind& kind = capture_.attr_kinds[index(field)];
    FieldOrigin out;
    out.field = kind.name;
    out.layer = kind.layer;
    out.derived = kind.name == "get_stack_traces";
    std::map<std::string, std::size_t> types, makers;
    std::set<UnitId> done;
    for (const Column& column : pipeline_.columns) {
      FieldOrigin::At at{column.key, column.title, 0, column.units.size(), 0};
      for (const ColumnUnit& unit : column.units) {
        const Observation* seen = capture_.at(unit.unit, field, unit.snapshot);
        if (seen == nullptr || seen->state == State::kNoSlot) continue;
        ++at.slots;
        if (seen->state != State::kPresent) continue;
        ++at.present;
        if (done.insert(unit.unit).second) count_value(kind, field, unit, *seen, out, types, makers);
      }
      if (at.slots > 0) out.stages.push_back(at);
      if (at.present > 0 && out.first_stage.empty()) out.first_stage = column.title;
    }
    out.types = by_frequency(types);
    for (auto& [maker, times] : by_frequency(makers)) out.makers.push_back(maker);
    return out;
  }

  void count_value(const AttrKind& kind, AttrId field, const ColumnUnit& unit, const Observation& seen,
                   FieldOrigin& out, std::map<std::string, std::size_t>& types,
                   std::map<std::string, std::size_t>& makers) {
    if (has(seen.python_type)) ++types[std::string(capture_.text(seen.python_type))];
    if (out.derived) return;
    const Observation* first = nullptr;
    SnapshotId since = SnapshotId::kNone;
    capture_.each_version(unit.unit, field, [&](SnapshotId at, const Observation& value) {
      if (first != nullptr || value.state != State::kPresent) return;
      first = &value;
      since = at;
    });
    const SnapshotId born = passes_.first_seen(unit.unit);
    const bool in_first_graph = !pipeline_.columns.empty() && pipeline_.columns.front().holds(unit.unit);
    const ChargedBirth birth = passes_.charged(unit.unit);
    if (has(born) && since > born) {
      ++out.written;
      ++makers[maker_of(capture_.snapshots[index(since)].pass, since)];
      return;
    }
    if (in_first_graph && birth.sources.empty()) {
      ++out.traced;
      return;
    }
    // A backward node stands beside its forward nodes: autograd hands their values on.
    std::vector<UnitId> sources = birth.sources;
    for (std::uint32_t i : passes_.births_of(unit.unit))
      sources.insert(sources.end(), capture_.births[i].sources.begin(), capture_.births[i].sources.end());
    const bool copied = std::any_of(sources.begin(), sources.end(), [&](UnitId source) {
      bool same = false;
      capture_.each_version(source, field, [&](SnapshotId, const Observation& value) {
        same = same || (value.state == State::kPresent && first != nullptr &&
                        kept_of(capture_, kind.type, value, *first) == Kept::kAll);
      });
      return same;
    });
    if (copied) {
      ++out.copied;
      return;
    }
    ++out.generated;
    ++makers[birth.birth != nullptr && has(birth.birth->pass) ? maker_of(birth.birth->pass, since)
                                                              : "into " + stage_of(born)];
  }

  std::string maker_of(PassId pass, SnapshotId look) const {
    if (!has(pass)) return "before " + stage_of(look);
    const Pass& one = capture_.passes[index(pass)];
    return one.kind == PassKind::kGap ? "no pass: " + one.name : one.name;
  }

  std::string stage_of(SnapshotId look) const {
    if (has(look) && has(capture_.snapshots[index(look)].stage))
      return capture_.stages[index(capture_.snapshots[index(look)].stage)].title;
    for (std::size_t i = has(look) ? index(look) : capture_.snapshots.size(); i < capture_.snapshots.size(); ++i) {
      const Snapshot& later = capture_.snapshots[i];
      if (has(later.stage) && capture_.graphs[index(later.graph)].compile == section_.compile)
        return capture_.stages[index(later.stage)].title;
    }
    return "a later stage";
  }

  // --- flow
  void add_flow() {
    const Column* before = nullptr;
    for (const Column& column : pipeline_.columns) {
      FlowStage stage{column.key, column.title, column.noun, column.units.size(), 0, {}, {}};
      if (before != nullptr && before->noun == column.noun) {
        for (const ColumnUnit& unit : column.units) stage.fresh += before->holds(unit.unit) ? 0U : 1U;
      }
      for (const FieldOrigin& field : out_.fields) {
        for (const FieldOrigin::At& at : field.stages) {
          const bool own = field.layer == column.layer || at.present > 0;
          if (at.stage == column.key && own) stage.fields.emplace_back(field.field, at.present);
        }
      }
      out_.flow.push_back(std::move(stage));
      before = &column;
    }
    add_losses();
    add_overwritten();
    for (FlowStage& stage : out_.flow) {
      std::stable_sort(stage.losses.begin(), stage.losses.end(),
                       [](const FlowLoss& a, const FlowLoss& b) { return a.units > b.units; });
    }
  }

  // The arrow into the first stage whose last look comes after the site.
  std::size_t arrow_of(const DropSite& site) const {
    for (std::size_t c = 0; c < pipeline_.columns.size(); ++c) {
      if (pipeline_.columns[c].key == site.to) return c;
    }
    // A pass by the next look at its own graph: graphs within others are looked at in between.
    const GraphId graph = has(site.pass) ? capture_.passes[index(site.pass)].graph : GraphId::kNone;
    for (const bool same_graph : {true, false}) {
      for (std::size_t c = 0; c < pipeline_.columns.size(); ++c) {
        const auto& looks = pipeline_.columns[c].snapshots;
        const bool shows = std::any_of(looks.begin(), looks.end(), [&](SnapshotId look) {
          return look >= site.at && (!same_graph || capture_.snapshots[index(look)].graph == graph);
        });
        if (has(site.at) && shows) return c;
      }
    }
    return pipeline_.columns.empty() ? 0 : pipeline_.columns.size() - 1;
  }

  FlowLoss loss_at(const DropSite& site) const {
    FlowLoss out;
    out.title = site.title;
    out.pattern = site.pattern;
    out.place = site.place;
    return out;
  }

  std::string name_of(UnitId unit) const {
    const auto found = section_.drops.units.find(unit);
    if (found == section_.drops.units.end()) return {};
    return found->second.name.empty() ? found->second.id : found->second.name;
  }

  void add_losses() {
    struct Group {
      std::set<std::string> fields;
      std::set<UnitId> units;
      std::string evidence;
    };
    std::map<std::uint32_t, Group> groups;
    for (const Loss& loss : section_.drops.losses) {
      Group& group = groups[loss.site];
      group.fields.insert(section_.drops.fields[index(loss.field)]);
      group.units.insert(loss.unit);
      if (group.evidence.empty()) group.evidence = loss.evidence;
    }
    for (const auto& [site, group] : groups) add_loss(site, group.fields, group.units, group.evidence, false);
  }

  void add_overwritten() {
    std::map<std::uint32_t, std::pair<std::set<std::string>, std::set<UnitId>>> groups;
    for (const Mark& mark : section_.drops.marks) {
      if (mark.quality != Quality::kOverwritten || mark.site == kNoIndex) continue;
      groups[mark.site].first.insert(section_.drops.fields[index(mark.field)]);
      groups[mark.site].second.insert(mark.unit);
    }
    for (const auto& [site, group] : groups) add_loss(site, group.first, group.second, {}, true);
  }

  void add_loss(std::uint32_t site, const std::set<std::string>& fields, const std::set<UnitId>& units,
                const std::string& evidence, bool wrong) {
    if (out_.flow.empty()) return;
    FlowLoss loss = loss_at(section_.drops.sites[site]);
    loss.fields.assign(fields.begin(), fields.end());
    loss.units = units.size();
    for (UnitId unit : units) {
      if (loss.names.size() < kNames) loss.names.push_back(name_of(unit));
    }
    loss.evidence = evidence;
    loss.wrong = wrong;
    out_.flow[arrow_of(section_.drops.sites[site])].losses.push_back(std::move(loss));
  }

  // --- what a handle could be made of
  void add_derivable() {
    EdgeFinder edges(capture_, pipeline_);
    for (std::size_t c = 0; c < pipeline_.columns.size(); ++c) {
      const Column& column = pipeline_.columns[c];
      if (column.key != "op_spec" && column.key != "superdsc" && (column.key != "kernel" || !out_.derivable.empty()))
        continue;
      std::size_t ir = c;
      while (ir-- > 0) {
        if (pipeline_.columns[ir].key.rfind("ir_", 0) == 0) break;
      }
      if (ir >= pipeline_.columns.size() || column.units.empty()) continue;
      out_.derivable.push_back(derivable(column, c, ir, edges));
    }
  }

  Derivable derivable(const Column& column, std::size_t c, std::size_t ir, EdgeFinder& edges) {
    Derivable out{column.key, column.title, column.noun, column.units.size(), 0, {}, {}};
    const Column& operations = pipeline_.columns[ir];
    std::map<std::string, std::size_t> through;
    std::map<std::string, Carrier> carriers;
    for (std::size_t p = 0; p < column.units.size(); ++p) {
      const ColumnUnit& unit = column.units[p];
      if (present(capture_, unit.unit, names_["debug_handle"], unit.snapshot) != nullptr) ++out.have_handle;
      std::set<std::string> reached;
      std::set<std::string> carried;
      bool contradicted = false;
      for (const Parent& parent : edges.table(c, ir)[p]) {
        const SnapshotId look = operations.units[operations.positions.at(parent.unit)].snapshot;
        contradicted = add_operation(parent.unit, look, edges, carried, reached) || contradicted;
      }
      for (const std::string& field : carried) {
        Carrier& carrier = carriers[field];
        carrier.field = field;
        ++carrier.present;
        carrier.contradicted += contradicted && field == "origins" ? 1U : 0U;
      }
      for (const std::string& field : reached) ++through[field];
    }
    for (std::string_view field : kCarriers) {  // the most complete first
      const auto found = carriers.find(std::string(field));
      if (found == carriers.end()) continue;
      found->second.units = column.units.size();
      out.carriers.push_back(found->second);
    }
    std::stable_sort(out.carriers.begin(), out.carriers.end(),
                     [](const Carrier& a, const Carrier& b) { return a.present > b.present; });
    out.through = by_frequency(through);
    return out;
  }

  // True where the witness contradicts one of its origins.
  bool add_operation(UnitId operation, SnapshotId look, EdgeFinder& edges, std::set<std::string>& carried,
                     std::set<std::string>& reached) {
    bool contradicted = false;
    for (std::string_view field : kCarriers) {
      const Observation* seen = present(capture_, operation, names_[field], look);
      if (seen == nullptr) continue;
      carried.insert(std::string(field));
      if (field != "origins") continue;
      for (UnitId node : seen->refs) {
        if (edges.witness().of(operation) != nullptr && contradicts(edges.support().support(operation, node)))
          contradicted = true;
        for (const FieldOrigin& fx : out_.fields) {
          if (fx.layer == "FX" && present(capture_, node, names_[fx.field], look) != nullptr) reached.insert(fx.field);
        }
      }
    }
    return contradicted;
  }

  // --- what is true of this run only
  void caveat(std::string code, std::string text) { out_.caveats.push_back({std::move(code), std::move(text)}); }

  void add_caveats() {
    const FieldOrigin* origins = nullptr;
    for (const FieldOrigin& field : out_.fields) {
      if (field.field == "origins") origins = &field;
      const bool slots =
          std::any_of(field.stages.begin(), field.stages.end(), [](const auto& at) { return at.slots > 0; });
      if (slots && field.first_stage.empty())
        caveat("unused-slot",
               fmt::format("{} is a slot that nothing fills: it is there at {}, and holds nothing on any "
                           "unit of any stage",
                           field.field, field.stages.front().title));
    }
    partial_fields();
    if (origins != nullptr) compare_origin_node(*origins);
    for (const FlowStage& stage : out_.flow) {
      const bool ir = stage.key == "ir_post_pass" && stage.fresh > 0;
      if (ir)
        caveat("count-depends-on-schedule",
               fmt::format("{} of the {} {}s of {} were inserted by passes over the IR: a test should ask that every "
                           "one carries origins, never for a number of them",
                           stage.fresh, stage.units, stage.noun, stage.title));
    }
  }

  void partial_fields() {
    for (const FieldOrigin& field : out_.fields) {
      if (field.field != "from_node") continue;
      for (const FieldOrigin::At& at : field.stages) {
        if (at.stage != "fx_post_grad" || at.present == at.units) continue;
        caveat(
            "from-node-depends-on-run",
            fmt::format("from_node is there on {} of {} {}s of {} at torch's provenance level {}: it depends on how a "
                        "node was made and on that setting, so a tool must not count on it",
                        at.present, at.units, "node", at.title, level()));
      }
    }
  }

  std::string level() const {
    const std::string value = setting(capture_.run.settings, "provenance_level");
    return value.empty() ? "(not recorded)" : value;
  }

  void compare_origin_node(const FieldOrigin& origins) {
    for (const FieldOrigin& field : out_.fields) {
      if (field.field != "origin_node") continue;
      for (const FieldOrigin::At& at : field.stages) {
        const auto all = std::find_if(origins.stages.begin(), origins.stages.end(),
                                      [&](const auto& other) { return other.stage == at.stage; });
        if (all == origins.stages.end() || at.present >= all->present) continue;
        caveat("origin-node-is-optional",
               fmt::format("origin_node is there on {} of {} units of {}, origins on {}: origins holds all that "
                           "origin_node could name",
                           at.present, at.units, at.title, all->present));
      }
    }
  }

  const Capture& capture_;
  const PassIndex& passes_;
  const ReportSection& section_;
  Pipeline pipeline_;
  AttrNames names_;
  AnalysisSection out_;
};

void add_run_caveats(const Capture& capture, const Report& report, Analysis& out) {
  const auto say = [&](std::string code, std::string text) {
    out.caveats.push_back({std::move(code), std::move(text)});
  };
  if (report.torn) say("torn", "The capture has no end record: what came after is not in it");
  if (report.partial) say("partial", "Something was lost while the capture was made; its notes say what");
  const std::string level = setting(capture.run.settings, "level");
  if (level == kFilesLevel) {
    say("files-only",
        "Only the files of a bundle were read: no compile was watched, so nothing is known of earlier stages, and "
        "nothing can be called lost");
    return;
  }
  if (capture.passes.empty() && !capture.compiles.empty())
    say("no-passes",
        "No passes are in it (recorded at level borders?): losses are placed between stages, and nothing is known of "
        "which pass made what");
  if (level != "truth" && !level.empty())
    say("no-witness",
        fmt::format("Nothing was witnessed (level {}): what the compiler says of its IR and kernels is its "
                    "own word",
                    level));
  if (setting(capture.run.settings, "force_disable_caches") == "False")
    say("caches-on", "Inductor's caches were on: compiles served from them were not observed");
  for (const ReportSection& section : report.sections) {
    if (!section.observed)
      say("not-observed",
          fmt::format("Compile {} was not observed: nothing is said of it", compile_name(section.compile)));
  }
  for (const HookSummary& hook : report.hooks) {
    if (hook.value.rfind("error:", 0) == 0)
      say("hook-failed", fmt::format("Hook {} failed while it watched ({})", hook.name, hook.value));
  }
}

}  // namespace
}  // namespace analyse

Expected<Analysis> make_analysis(const Capture& capture, const ReportOptions& options) {
  Analysis out;
  ReportOptions whole = options;
  if (whole.analysis.stages.empty()) whole.analysis.stages = {"all"};
  KERNTRAIL_TRY(out.report, make_report(capture, whole));
  // A kernel that is seen as its bundle files is no stage to lose anything at.
  KERNTRAIL_TRY(auto lost, drops(capture, {options.analysis, {}}));
  for (ReportSection& section : out.report.sections) {
    for (Drops& one : lost) {
      if (one.compile == section.compile && one.direction == section.direction) section.drops = std::move(one);
    }
  }
  const analyse::PassIndex passes(capture);
  for (const ReportSection& section : out.report.sections) {
    if (section.observed) out.sections.push_back(analyse::Analyst(capture, passes, section).build());
  }
  analyse::add_run_caveats(capture, out.report, out);
  return out;
}

}  // namespace kerntrail
