#include "kerntrail/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analyse/caveats.h"
#include "analyse/edges.h"
#include "analyse/field_origins.h"
#include "analyse/frequency.h"
#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "analyse/report_parts.h"

namespace kerntrail {
namespace analyse {
namespace {

constexpr std::size_t kNames = 6;
constexpr std::array<std::string_view, 3> kCarriers{"origins", "origin_node", "traceback"};

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
    out_.fields = field_origins(capture_, passes_, pipeline_);
    add_flow();
    add_derivable();
    out_.caveats = section_caveats(capture_, out_);
    return std::move(out_);
  }

 private:
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

  const Capture& capture_;
  const PassIndex& passes_;
  const ReportSection& section_;
  Pipeline pipeline_;
  AttrNames names_;
  AnalysisSection out_;
};

}  // namespace
}  // namespace analyse

Expected<Analysis> make_analysis(const Capture& capture, const ReportOptions& options) {
  Analysis out;
  ReportOptions whole = options;
  if (whole.analysis.stages.empty()) whole.analysis.stages = {"all"};
  // A kernel that is seen as its bundle files has a table, and is no stage to lose anything at.
  const analyse::ReportParts quoted{false, false, false, options.analysis.stages};
  KERNTRAIL_TRY(out.report, analyse::report_of(capture, whole, quoted));
  const analyse::PassIndex passes(capture);
  for (const ReportSection& section : out.report.sections) {
    if (section.observed) out.sections.push_back(analyse::Analyst(capture, passes, section).build());
  }
  out.caveats = analyse::run_caveats(capture, out.report);
  return out;
}

}  // namespace kerntrail
