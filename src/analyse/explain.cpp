#include "kerntrail/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyse/explain_ends.h"
#include "analyse/explain_subjects.h"
#include "analyse/pipeline.h"
#include "analyse/rules.h"
#include "kerntrail/drops.h"

namespace kerntrail {
namespace analyse {
namespace {

// The fields that lead a unit of a layer on to the stage above it, the best first.
std::vector<std::string_view> leading_fields(const Capture& capture, UnitId unit) {
  switch (capture.units[index(unit)].kind) {
    case UnitKind::kFxNode: return {"stack_trace", "from_node"};
    case UnitKind::kOperation: return {"origins"};
    case UnitKind::kOpSpec:
    case UnitKind::kBundleFile: return {"debug_handle"};
    default: return {};
  }
}

class Explainer {
 public:
  Explainer(const Capture& capture, const Lineage& lineage, const std::vector<Drops>& drops)
      : capture_(capture),
        lineage_(lineage),
        drops_(of_compile(drops, lineage.compile)),
        ends_of_(capture, lineage, drops_) {
    into_.resize(lineage.nodes.size());
    out_.resize(lineage.nodes.size());
    for (std::size_t e = 0; e < lineage.edges.size(); ++e) {
      into_[lineage.edges[e].to].push_back(e);
      out_[lineage.edges[e].from].push_back(e);
    }
  }

  // `subject` at all the layers that show it.
  Explanation explain(const std::vector<std::uint32_t>& subject) {
    Explanation out;
    const LineageNode& node = lineage_.nodes[subject.front()];
    out.compile = lineage_.compile;
    out.id = id_of(subject.front());
    out.name = node.name;
    out.detail = node.detail;
    out.stage = lineage_.layers[node.layer].title;
    out.direction = node.direction;
    out.witnessed = lineage_.witnessed;
    const auto up = reach(lineage_, subject, false);
    const auto down = reach(lineage_, subject, true);
    const std::set<std::uint32_t> own(subject.begin(), subject.end());
    out.comes_from = layers(up, own, true);
    out.becomes = layers(down, own, false);
    find_breaks(up, out);
    out.ends = ends_of_.among(node.layer == 0 ? down : subject);
    recover(up, out);
    doubts(up, down, out);
    return out;
  }

 private:
  static std::vector<const Drops*> of_compile(const std::vector<Drops>& all, CompileId compile) {
    std::vector<const Drops*> out;
    for (const Drops& one : all) {
      if (one.compile == compile) out.push_back(&one);
    }
    return out;
  }

  std::string id_of(std::uint32_t i) const {
    const LineageNode& node = lineage_.nodes[i];
    return has(node.unit) ? unit_name(capture_, node.unit) : fmt::format("{}:{}", node.file, node.line);
  }

  // Of the edges between a node and the rest of the way the strongest one.
  void note_link(std::uint32_t i, const std::set<std::uint32_t>& way, bool upwards, ExplainedUnit& out) const {
    const LineageEdge* best = nullptr;
    for (std::size_t e : upwards ? out_[i] : into_[i]) {
      const LineageEdge& edge = lineage_.edges[e];
      if (way.count(upwards ? edge.to : edge.from) == 0) continue;
      if (best == nullptr || edge.evidence < best->evidence) best = &edge;
    }
    if (best == nullptr) return;
    out.evidence = best->evidence;
    out.strength = best->strength;
    out.ambiguous = best->ambiguous;
  }

  std::vector<ExplainedLayer> layers(const std::vector<std::uint32_t>& nodes, const std::set<std::uint32_t>& own,
                                     bool upwards) const {
    std::map<std::uint32_t, ExplainedLayer> by_layer;
    const std::set<std::uint32_t> way(nodes.begin(), nodes.end());
    for (std::uint32_t i : nodes) {
      const LineageNode& node = lineage_.nodes[i];
      const bool same = has(node.unit) && std::any_of(own.begin(), own.end(), [&](std::uint32_t o) {
                          return lineage_.nodes[o].unit == node.unit;
                        });
      if (own.count(i) != 0 || same) continue;
      ExplainedLayer& layer = by_layer[node.layer];
      layer.key = lineage_.layers[node.layer].key;
      layer.title = lineage_.layers[node.layer].title;
      ExplainedUnit unit{node.unit, id_of(i), node.name, node.detail};
      note_link(i, way, upwards, unit);
      layer.units.push_back(std::move(unit));
    }
    std::vector<ExplainedLayer> out;
    for (auto& [layer, units] : by_layer) out.push_back(std::move(units));
    return out;
  }

  struct Cell {
    const FieldUnit* found = nullptr;
    const Drops* drops = nullptr;
  };

  // Of a unit that several stages show, at the last.
  Cell cell(UnitId unit, std::string_view field) {
    if (cells_.empty()) {
      for (const Drops* drops : drops_) {
        for (const StageTally& stage : drops->stages) {
          for (const FieldTally& tally : stage.fields) {
            for (const FieldUnit& one : tally.units) cells_[{one.unit, tally.name}] = {&one, drops};
          }
        }
      }
    }
    const auto found = cells_.find({unit, field});
    return found == cells_.end() ? Cell{} : found->second;
  }

  bool names_a_line(UnitId unit) {
    const Cell own = cell(unit, "stack_trace");
    return own.found != nullptr && own.found->state == State::kPresent;
  }

  // Whether the compiler's own records lead along an edge. That a unit was seen being made is ours, equal lines are
  // derived: they stand for a record only where the unit has a source line of its own.
  bool holds(const LineageEdge& edge) {
    if (edge.strength != Strength::kDerived && edge.evidence != Evidence::kBirth) return true;
    return names_a_line(lineage_.nodes[edge.to].unit);
  }

  void add_site(const Drops& drops, std::uint32_t site, BrokenLink& out) const {
    if (site == kNoIndex) return;
    out.pass = drops.sites[site].title;
    out.place = drops.sites[site].place;
  }

  void find_breaks(const std::vector<std::uint32_t>& up, Explanation& out) {
    std::set<UnitId> done;
    for (std::uint32_t i : up) {
      const LineageNode& node = lineage_.nodes[i];
      if (!has(node.unit) || done.count(node.unit) != 0) continue;
      const bool led =
          std::any_of(into_[i].begin(), into_[i].end(), [&](std::size_t e) { return holds(lineage_.edges[e]); });
      if (led || names_a_line(node.unit)) {
        done.insert(node.unit);  // at an earlier stage it is itself, led on
        continue;
      }
      done.insert(node.unit);
      BrokenLink link;
      link.unit = node.unit;
      link.id = id_of(i);
      link.name = node.name;
      link.stage = lineage_.layers[node.layer].title;
      for (std::string_view field : leading_fields(capture_, node.unit)) {
        const auto [found, drops] = cell(node.unit, field);
        if (found == nullptr || found->state == State::kPresent) continue;
        const bool traced = found->reason == Reason::kDropped || found->reason == Reason::kInheritedGap;
        if (link.field.empty() || traced) describe(*drops, *found, field, link);
        if (traced) break;
      }
      if (link.field.empty()) link.meaning = "Nothing recorded leads on from it.";
      add_break(std::move(link), out.breaks);
    }
  }

  // Units that lack the same for the same reason are one break.
  static void add_break(BrokenLink link, std::vector<BrokenLink>& breaks) {
    for (BrokenLink& known : breaks) {
      if (std::tie(known.stage, known.field, known.reason, known.evidence, known.had, known.pass, known.place) !=
          std::tie(link.stage, link.field, link.reason, link.evidence, link.had, link.pass, link.place))
        continue;
      known.also.push_back(fmt::format("{} ({})", link.name, link.id));
      return;
    }
    breaks.push_back(std::move(link));
  }

  void describe(const Drops& drops, const FieldUnit& found, std::string_view field, BrokenLink& out) const {
    out.field = field;
    out.reason = reason_name(found.reason);
    out.meaning = meaning_of("reason", out.reason);
    if (found.loss != kNoIndex) {
      const Loss& loss = drops.losses[found.loss];
      out.evidence = loss.way == LossWay::kInPlace ? "identity" : std::string(loss.evidence);
      out.had.clear();
      for (UnitId unit : loss.had) {
        const auto label = drops.units.find(unit);
        if (label == drops.units.end()) continue;
        out.had.push_back(label->second.name.empty() ? label->second.id : label->second.name);
      }
      add_site(drops, loss.site, out);
    } else if (has(found.orphan)) {
      for (const Orphan& orphan : drops.orphans) {
        if (orphan.unit == found.orphan) add_site(drops, orphan.site, out);
      }
    }
  }

  // Source lines that only derived edges lead to.
  void recover(const std::vector<std::uint32_t>& up, Explanation& out) {
    const std::set<std::uint32_t> way(up.begin(), up.end());
    std::vector<std::uint32_t> recorded;
    for (std::uint32_t i : up) {
      if (lineage_.nodes[i].layer == 0) recorded.push_back(i);
    }
    const auto firm = firmly_reached(way);
    for (std::uint32_t i : recorded) {
      if (firm.count(i) != 0) continue;
      const LineageNode& node = lineage_.nodes[i];
      RecoveredSource source{node.file, node.line, node.name, Evidence::kIdentity, false};
      for (std::uint32_t below : reach(lineage_, {i}, true)) {
        for (std::size_t e : out_[below]) {
          const LineageEdge& edge = lineage_.edges[e];
          if (way.count(edge.from) == 0 || way.count(edge.to) == 0 || holds(edge)) continue;
          source.evidence = std::max(source.evidence, edge.evidence);
          source.ambiguous = source.ambiguous || edge.ambiguous;
        }
      }
      out.recovered.push_back(std::move(source));
    }
  }

  // Sources from which recorded edges alone lead to the end of the way.
  std::set<std::uint32_t> firmly_reached(const std::set<std::uint32_t>& way) {
    std::set<std::uint32_t> firm;
    std::vector<std::uint32_t> open;
    const auto is_end = [&](std::uint32_t i) {
      return std::none_of(out_[i].begin(), out_[i].end(),
                          [&](std::size_t e) { return way.count(lineage_.edges[e].to) != 0; });
    };
    for (std::uint32_t i : way) {
      if (is_end(i)) open.push_back(i);
    }
    while (!open.empty()) {
      const std::uint32_t i = open.back();
      open.pop_back();
      if (!firm.insert(i).second) continue;
      for (std::size_t e : into_[i]) {
        if (holds(lineage_.edges[e]) && way.count(lineage_.edges[e].from) != 0) open.push_back(lineage_.edges[e].from);
      }
    }
    return firm;
  }

  void doubts(const std::vector<std::uint32_t>& up, const std::vector<std::uint32_t>& down, Explanation& out) {
    std::set<UnitId> units;
    for (const auto* side : {&up, &down}) {
      for (std::uint32_t i : *side) units.insert(lineage_.nodes[i].unit);
    }
    units.erase(UnitId::kNone);
    for (const ContradictedClaim& claim : lineage_.contradicted) {
      const UnitId about = lineage_.nodes[claim.node].unit;
      if (units.count(about) == 0) continue;
      out.contradicted.push_back(claim);
      out.contradicted_units.push_back(
          fmt::format("{} ({})", lineage_.nodes[claim.node].name, unit_name(capture_, about)));
    }
    for (const Rewrite& rewrite : lineage_.rewrites) {
      if (units.count(rewrite.node) == 0) continue;
      out.rewrites.push_back(rewrite);
      const auto node = std::find_if(lineage_.nodes.begin(), lineage_.nodes.end(),
                                     [&](const LineageNode& one) { return one.unit == rewrite.node; });
      out.rewritten.push_back(fmt::format("{} ({})", node->name, unit_name(capture_, rewrite.node)));
    }
  }

  const Capture& capture_;
  const Lineage& lineage_;
  std::vector<const Drops*> drops_;
  EndFinder ends_of_;
  std::vector<std::vector<std::size_t>> into_, out_;
  std::map<std::pair<UnitId, std::string_view>, Cell> cells_;
};

// Of a line the units that claim it falsely, of a unit the lines that it claims falsely.
void add_lines(const Lineage& lineage, const std::vector<std::uint32_t>& subject, const std::vector<Verification>& all,
               Explanation& out) {
  const LineageNode& asked = lineage.nodes[subject.front()];
  std::set<std::pair<UnitId, std::string>> done;
  for (const Verification& one : all) {
    if (one.compile != lineage.compile) continue;
    for (const UnitVerdict& unit : one.units) {
      for (const LineVerdict& line : unit.lines) {
        const bool meant =
            asked.layer == 0 ? line.file == asked.file && line.line == asked.line : unit.unit == asked.unit;
        if (!meant || !line.claimed || !contradicts(line.support)) continue;
        const std::string place = fmt::format("{}:{}", line.file, line.line);
        if (!done.insert({unit.unit, place}).second) continue;
        const VerifyLabel& label = one.labels.at(unit.unit);
        out.lines.push_back({fmt::format("{} ({})", label.name, label.id), place, line.support});
      }
    }
  }
}

}  // namespace
}  // namespace analyse

Expected<std::vector<Explanation>> explain(const Capture& capture, const std::string& what,
                                           const AnalysisOptions& options) {
  AnalysisOptions asked = options;
  if (asked.stages.empty()) asked.stages = {"all"};
  const CompileId named = analyse::compile_in(capture, what);
  if (asked.compile.empty() && has(named)) asked.compile = compile_name(named);
  KERNTRAIL_TRY(const auto all, lineages(capture, asked));
  std::vector<std::pair<const Lineage*, std::vector<std::vector<std::uint32_t>>>> found;
  for (const Lineage& lineage : all) {
    KERNTRAIL_TRY(auto subjects, analyse::subjects_of(capture, lineage, what));
    if (!subjects.empty()) found.emplace_back(&lineage, std::move(subjects));
  }
  if (found.empty())
    return fail(ErrorCode::kUsage, fmt::format("the capture has no unit, source line or handle \"{}\"", what));
  // Losses and verdicts cost most: only of the compile that is asked about, where it is one.
  DropOptions lost_in;
  lost_in.analysis.compile = found.size() == 1 ? compile_name(found.front().first->compile) : asked.compile;
  KERNTRAIL_TRY(const auto lost, drops(capture, lost_in));
  std::vector<Verification> verified;
  if (std::any_of(found.begin(), found.end(), [](const auto& one) { return one.first->witnessed; })) {
    if (auto judged = verify(capture, lost_in.analysis)) verified = std::move(*judged);
  }
  std::vector<Explanation> out;
  for (const auto& [lineage, subjects] : found) {
    analyse::Explainer explainer(capture, *lineage, lost);
    for (const auto& subject : subjects) {
      out.push_back(explainer.explain(subject));
      analyse::add_lines(*lineage, subject, verified, out.back());
    }
  }
  return out;
}

}  // namespace kerntrail
