// The capture as three flat tables that join on unit ids.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analyse/pipeline.h"
#include "base/strings.h"
#include "kerntrail/lineage.h"
#include "render/exports.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

class Tables {
 public:
  Tables(const Capture& capture, const std::vector<CompileId>& compiles)
      : capture_(capture), names_(capture), chosen_(compiles.begin(), compiles.end()) {}

  std::string units() {
    row({"unit", "compile", "graph", "graph_kind", "direction", "path", "kind", "name", "first_stage", "last_stage",
         "seen_only_as"});
    const auto looks = stages_of_units();
    for (std::size_t i = 0; i < capture_.units.size(); ++i) {
      const auto id = id_at<UnitId>(i);
      if (!is_chosen(id)) continue;
      const Unit& unit = capture_.units[i];
      const Graph& graph = capture_.graphs[index(unit.graph)];
      const auto seen = looks.find(id);
      row({unit_name(capture_, id), compile_name(graph.compile), graph_name(capture_, unit.graph), graph.kind,
           graph.direction, graph.path, std::string(unit_kind_name(unit.kind)), name_of(id),
           seen == looks.end() ? "" : seen->second.first, seen == looks.end() ? "" : seen->second.second,
           unit.seen_only_as});
    }
    return std::move(out_);
  }

  std::string attrs() {
    row({"unit", "attr", "look", "stage", "pass", "state", "python_type", "value", "repr", "file", "line", "function",
         "refs"});
    for (std::size_t i = 0; i < capture_.units.size(); ++i) {
      const auto unit = id_at<UnitId>(i);
      if (!is_chosen(unit)) continue;
      for (std::size_t a = 0; a < capture_.attr_kinds.size(); ++a) {
        capture_.each_version(unit, id_at<AttrId>(a), [&](SnapshotId since, const Observation& seen) {
          attr(unit, capture_.attr_kinds[a].name, since, seen);
        });
      }
    }
    return std::move(out_);
  }

  std::string edges(const std::vector<Lineage>& lineages) {
    row({"from", "to", "type", "kind", "evidence", "strength", "ambiguous", "pass"});
    for (const Link& link : capture_.links) {
      for (UnitId from : link.from) {
        for (UnitId to : link.to) edge(from, to, "link", link.kind, "");
      }
    }
    for (const Birth& birth : capture_.births) {
      for (UnitId from : birth.sources) edge(from, birth.unit, "birth", birth.evidence, pass_name(birth.pass));
    }
    for (const Claim& claim : capture_.claims) {
      for (UnitId from : claim.units) edge(from, claim.kernel, "claim", claim.evidence, "");
    }
    references();
    for (const Lineage& lineage : lineages) {
      for (const LineageEdge& one : lineage.edges)
        row({node(lineage, one.from), node(lineage, one.to), "lineage", std::string(edge_kind_name(one.kind)),
             std::string(evidence_name(one.evidence)), std::string(strength_name(one.strength)),
             one.ambiguous ? "true" : "false", one.pass});
    }
    return std::move(out_);
  }

 private:
  void row(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) out_ += ',';
      // A NUL ends a field, or the file, for some readers.
      out_ += csv_field(base::replace_all(cells[i], std::string_view("\0", 1), "\xEF\xBF\xBD"));
    }
    out_ += "\n";
  }

  bool is_chosen(UnitId unit) const { return chosen_.count(capture_.compile_of(unit)) != 0; }

  std::string name_of(UnitId unit) const {
    std::string_view name;
    if (has(names_["name"])) {
      capture_.each_version(unit, names_["name"],
                            [&](SnapshotId, const Observation& o) { name = capture_.text(o.text); });
    }
    return std::string(name);
  }

  // First and last stage that shows a unit.
  std::unordered_map<UnitId, std::pair<std::string, std::string>> stages_of_units() const {
    std::unordered_map<UnitId, std::pair<std::string, std::string>> result;
    for (const Snapshot& snapshot : capture_.snapshots) {
      if (!has(snapshot.stage)) continue;
      const std::string& key = capture_.stages[index(snapshot.stage)].key;
      for (UnitId unit : snapshot.units) result.try_emplace(unit, key, key).first->second.second = key;
    }
    return result;
  }

  std::string pass_name(PassId pass) const { return has(pass) ? capture_.passes[index(pass)].name : std::string(); }

  void attr(UnitId unit, const std::string& name, SnapshotId since, const Observation& seen) {
    const Snapshot& look = capture_.snapshots[index(since)];
    std::vector<std::string> refs;
    for (UnitId ref : seen.refs) refs.push_back(unit_name(capture_, ref));
    const Loc* place = has(seen.loc) ? capture_.innermost_user(seen.loc) : nullptr;
    const bool is_range = place != nullptr && place->kind == LocKind::kRange;
    row({unit_name(capture_, unit), name, fmt::format("{}", index(since)),
         has(look.stage) ? capture_.stages[index(look.stage)].key : "", pass_name(look.pass),
         std::string(state_name(seen.state)), std::string(capture_.text(seen.python_type)),
         std::string(capture_.text(seen.text)), std::string(capture_.text(seen.repr)),
         is_range ? std::string(capture_.text(place->text)) : "",
         is_range && place->line > 0 ? fmt::format("{}", place->line) : "",
         is_range ? std::string(capture_.text(place->function)) : "", base::join(refs, " ")});
  }

  void edge(UnitId from, UnitId to, std::string type, std::string kind, std::string pass) {
    if (is_chosen(to))
      row({unit_name(capture_, from), unit_name(capture_, to), std::move(type), std::move(kind), "", "", "",
           std::move(pass)});
  }

  // What units refer to in the end: inputs, origins and the like.
  void references() {
    for (std::size_t i = 0; i < capture_.units.size(); ++i) {
      for (std::size_t a = 0; a < capture_.attr_kinds.size(); ++a) {
        const AttrKind& kind = capture_.attr_kinds[a];
        if (kind.type != ValueType::kRef && kind.type != ValueType::kRefs) continue;
        const Observation* last = nullptr;
        capture_.each_version(id_at<UnitId>(i), id_at<AttrId>(a), [&](SnapshotId, const Observation& o) { last = &o; });
        if (last == nullptr) continue;
        for (UnitId from : last->refs) edge(from, id_at<UnitId>(i), "attr", kind.name, "");
      }
    }
  }

  // A source line is no unit: "file:line".
  std::string node(const Lineage& lineage, std::uint32_t at) const {
    const LineageNode& node = lineage.nodes[at];
    return has(node.unit) ? unit_name(capture_, node.unit) : fmt::format("{}:{}", node.file, node.line);
  }

  const Capture& capture_;
  analyse::AttrNames names_;
  std::unordered_set<CompileId> chosen_;
  std::string out_;
};

}  // namespace

Expected<std::string> table_csv(const Capture& capture, std::string_view table, const AnalysisOptions& options) {
  KERNTRAIL_TRY(const auto compiles, analyse::select_compiles(capture, options));
  Tables tables(capture, compiles);
  if (table == "units") return tables.units();
  if (table == "attrs") return tables.attrs();
  if (table != "edges")
    return fail(ErrorCode::kUsage, fmt::format("no table \"{}\"; there are units, attrs, edges", table));
  AnalysisOptions every = options;
  every.stages = {"all"};
  every.passes = true;
  KERNTRAIL_TRY(const auto lineages, kerntrail::lineages(capture, every));
  return tables.edges(lineages);
}

}  // namespace kerntrail::render
