// Lineage of a compile: layers, nodes and edges from the edge finder, and the questions asked of them.
#include "kerntrail/lineage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "analyse/edges.h"
#include "analyse/lineage_builder.h"
#include "analyse/lineage_passes.h"
#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "analyse/trusted.h"
#include "base/parallel.h"
#include "base/strings.h"

namespace kerntrail {
namespace analyse {

LineageBuilder::LineageBuilder(const Capture& capture, const Pipeline& pipeline, std::vector<std::size_t> columns)
    : capture_(capture),
      pipeline_(pipeline),
      columns_(std::move(columns)),
      edges_(capture, pipeline),
      names_(capture),
      both_directions_(directions_of(capture, pipeline.compile).size() > 1) {}

Lineage LineageBuilder::build() {
  result_.compile = pipeline_.compile;
  result_.layers.push_back({"source", "Source"});
  for (std::size_t c : columns_) {
    result_.layers.push_back({pipeline_.columns[c].key, pipeline_.columns[c].title});
  }
  collapse_ = std::none_of(columns_.begin(), columns_.end(),
                           [&](std::size_t c) { return pipeline_.columns[c].key == "kernel"; });
  for (std::size_t i = 0; i < columns_.size(); ++i) add_layer(i);
  for (std::size_t i = 0; i < columns_.size(); ++i) connect_layer(i);
  place_sources();
  name_kinds();
  add_contradicted();
  return std::move(result_);
}

bool LineageBuilder::is_bundle_layer(std::size_t i) const {
  return collapse_ && pipeline_.columns[columns_[i]].key == "superdsc";
}

void LineageBuilder::add_node(std::size_t i, UnitId unit, SnapshotId snapshot) {
  const auto layer = static_cast<std::uint32_t>(i + 1);
  if (!nodes_.try_emplace({layer, unit}, result_.nodes.size()).second) return;
  LineageNode node{layer, unit, display_name(capture_, names_["name"], unit, snapshot), {}, {}, {}, 0};
  const std::string& direction = capture_.graphs[index(capture_.units[index(unit)].graph)].direction;
  if (both_directions_ && (direction == "forward" || direction == "backward")) node.direction = direction;
  const UnitKind kind = capture_.units[index(unit)].kind;
  if (kind == UnitKind::kFxNode) {
    const std::string_view op = short_target(capture_.text_of(unit, "target", snapshot));
    if (!op.empty() && node.name.compare(0, op.size(), op) != 0) node.detail = op;
  } else if (kind == UnitKind::kOpSpec) {
    node.detail = capture_.text_of(unit, "op", snapshot);
  }
  result_.nodes.push_back(std::move(node));
}

// A bundle file stands for its kernel, unless kernels have a layer of their own; kernels without a file are shown too.
void LineageBuilder::add_layer(std::size_t i) {
  const Column& column = pipeline_.columns[columns_[i]];
  if (!is_bundle_layer(i)) {
    for (const ColumnUnit& unit : column.units) add_node(i, unit.unit, unit.snapshot);
    return;
  }
  for (const ColumnUnit& unit : column.units) {
    const UnitId kernel = edges_.kernel_of(unit.unit);
    add_node(i, has(kernel) ? kernel : unit.unit, has(kernel) ? kernel_look(kernel, unit.snapshot) : unit.snapshot);
  }
  for (const Column& other : pipeline_.columns) {
    if (other.key != "kernel") continue;
    for (const ColumnUnit& unit : other.units) add_node(i, unit.unit, unit.snapshot);
  }
}

SnapshotId LineageBuilder::kernel_look(UnitId kernel, SnapshotId otherwise) const {
  for (const Column& column : pipeline_.columns) {
    auto place = column.positions.find(kernel);
    if (place != column.positions.end()) return column.units[place->second].snapshot;
  }
  return otherwise;
}

void LineageBuilder::connect_layer(std::size_t i) {
  const std::size_t to = columns_[i];
  const Column& column = pipeline_.columns[to];
  const bool bundles = is_bundle_layer(i);
  for (std::size_t p = 0; p < column.units.size(); ++p) {
    const UnitId kernel = bundles ? edges_.kernel_of(column.units[p].unit) : UnitId::kNone;
    connect(i, to, p, has(kernel) ? kernel : column.units[p].unit);
  }
  if (!bundles) return;
  std::set<UnitId> reached;
  for (const LineageEdge& edge : result_.edges) reached.insert(result_.nodes[edge.to].unit);
  for (std::size_t c = 0; c < pipeline_.columns.size(); ++c) {
    if (pipeline_.columns[c].key != "kernel") continue;
    for (std::size_t p = 0; p < pipeline_.columns[c].units.size(); ++p) {
      const UnitId kernel = pipeline_.columns[c].units[p].unit;
      if (reached.count(kernel) == 0) connect(i, c, p, kernel);
    }
  }
}

// Edges from the nearest shown layer that leads to the unit, else from the source lines it can be traced to.
void LineageBuilder::connect(std::size_t i, std::size_t to, std::size_t p, UnitId shown) {
  const std::uint32_t target = nodes_.at({static_cast<std::uint32_t>(i + 1), shown});
  for (std::size_t above = i; above-- > 0;) {
    const auto parents = edges_.table(to, columns_[above])[p];
    if (parents.empty()) continue;
    for (const Parent& parent : parents) {
      add_edge(nodes_.at({static_cast<std::uint32_t>(above + 1), parent.unit}), target, parent.evidence,
               parent.ambiguous);
    }
    return;
  }
  for (const SourceParent& source : sources(to, p)) {
    pending_sources_.push_back({source, target});
  }
}

const std::vector<LineageBuilder::SourceParent>& LineageBuilder::sources(std::size_t column, std::size_t p) {
  auto [place, fresh] = sources_.try_emplace({column, p});
  if (!fresh) return place->second;
  const ColumnUnit& unit = pipeline_.columns[column].units[p];
  if (auto own = trusted_source(capture_, names_["stack_trace"], unit.unit, unit.snapshot)) {
    place->second.push_back({*own, Evidence::kStackTrace, false});
    return place->second;
  }
  std::vector<SourceParent> found;
  for (std::size_t above = column; above-- > 0 && found.empty();) {
    for (const Parent& parent : edges_.table(column, above)[p]) {
      for (SourceParent source : sources(above, pipeline_.columns[above].positions.at(parent.unit))) {
        source.evidence = std::max(source.evidence, parent.evidence);
        source.ambiguous = source.ambiguous || parent.ambiguous;
        found.push_back(source);
      }
    }
  }
  return sources_[{column, p}] = std::move(found);
}

void LineageBuilder::add_edge(std::uint32_t from, std::uint32_t to, Evidence evidence, bool ambiguous) {
  auto [place, fresh] = edge_at_.try_emplace({from, to}, result_.edges.size());
  if (fresh) {
    result_.edges.push_back({from, to, EdgeKind::kCopied, evidence, strength_of(evidence), ambiguous, {}});
    return;
  }
  LineageEdge& edge = result_.edges[place->second];
  edge.ambiguous = edge.ambiguous && ambiguous;
  if (evidence < edge.evidence) {
    edge.evidence = evidence;
    edge.strength = strength_of(evidence);
  }
}

// Source nodes come first, by file and line; everything else moves down by their number.
void LineageBuilder::place_sources() {
  std::map<std::pair<std::string, std::int64_t>, std::string> lines;
  for (const auto& [source, target] : pending_sources_) {
    std::string& code = lines[{std::string(capture_.text(source.line.key.file)), source.line.key.line}];
    if (code.empty()) code = source.line.code;
  }
  const auto shift = static_cast<std::uint32_t>(lines.size());
  for (LineageEdge& edge : result_.edges) {
    edge.from += shift;
    edge.to += shift;
  }
  edge_at_.clear();
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> index_of;
  std::vector<LineageNode> nodes;
  nodes.reserve(lines.size() + result_.nodes.size());
  for (const auto& [place, code] : lines) {
    index_of[place] = static_cast<std::uint32_t>(nodes.size());
    nodes.push_back({0,
                     UnitId::kNone,
                     code.empty() ? fmt::format("{}:{}", base::basename(place.first), place.second) : code,
                     {},
                     {},
                     place.first,
                     place.second});
  }
  nodes.insert(nodes.end(), std::make_move_iterator(result_.nodes.begin()),
               std::make_move_iterator(result_.nodes.end()));
  result_.nodes = std::move(nodes);
  for (const auto& [source, target] : pending_sources_) {
    const std::uint32_t from = index_of.at({std::string(capture_.text(source.line.key.file)), source.line.key.line});
    // Reaching over hidden stages keeps the weakest evidence of the way.
    add_edge(from, target + shift, source.evidence, source.ambiguous);
  }
}

void LineageBuilder::name_kinds() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> out;  // (node, layer of target) -> edges
  std::vector<std::size_t> in(result_.nodes.size(), 0);
  const auto layer = [&](std::uint32_t node) { return result_.nodes[node].layer; };
  for (const LineageEdge& edge : result_.edges) {
    ++out[{edge.from, layer(edge.to)}];
    ++in[edge.to];
  }
  for (LineageEdge& edge : result_.edges) {
    if (layer(edge.from) == 0) {
      edge.kind = EdgeKind::kTraced;
    } else if (edge.evidence == Evidence::kIdentity) {
      edge.kind = EdgeKind::kSame;
    } else {
      const Column& a = pipeline_.columns[columns_[layer(edge.from) - 1]];
      const Column& b = pipeline_.columns[columns_[layer(edge.to) - 1]];
      edge.kind = kind_between(a, b, out[{edge.from, layer(edge.to)}], in[edge.to]);
    }
  }
  std::sort(result_.edges.begin(), result_.edges.end(), [&](const LineageEdge& a, const LineageEdge& b) {
    return std::tuple(layer(a.to), a.from, a.to) < std::tuple(layer(b.to), b.from, b.to);
  });
}

// What the compiler says of the units shown, and the witness contradicts.
void LineageBuilder::add_contradicted() {
  const WitnessIndex& witness = edges_.witness();
  result_.witnessed = !witness.empty();
  if (!result_.witnessed) return;
  const SnapshotId last = id_at<SnapshotId>(capture_.snapshots.size() - 1);
  for (std::size_t i = 0; i < result_.nodes.size(); ++i) {
    const UnitId unit = result_.nodes[i].unit;
    if (!has(unit) || witness.of(unit) == nullptr) continue;
    const auto named = edges_.claimed(unit);
    std::vector<UnitId> claimed(named.begin(), named.end());
    for (std::string_view attr : {"origins", "buffer_origins"}) {
      const Observation* seen = present(capture_, unit, names_[attr], last);
      if (seen != nullptr) claimed.insert(claimed.end(), seen->refs.begin(), seen->refs.end());
    }
    std::set<UnitId> done;
    for (UnitId node : claimed) {
      if (!done.insert(node).second) continue;
      const Support support = edges_.support().support(unit, node);
      if (!contradicts(support)) continue;
      const std::string_view op = short_target(capture_.text_of(node, "target", last));
      result_.contradicted.push_back({static_cast<std::uint32_t>(i), node,
                                      display_name(capture_, names_["name"], node, last), std::string(op), support});
    }
  }
}

EdgeKind LineageBuilder::kind_between(const Column& a, const Column& b, std::size_t out, std::size_t in) {
  if (b.key == "superdsc") return in > 1 ? EdgeKind::kFused : EdgeKind::kSerialised;
  if (b.key == "kernel" && in > 1) return EdgeKind::kFused;
  if (a.layer != b.layer) return EdgeKind::kLowered;
  if (out > 1) return EdgeKind::kDecomposed;
  return in > 1 ? EdgeKind::kFused : EdgeKind::kCopied;
}

}  // namespace analyse

Expected<std::vector<Lineage>> lineages(const Capture& capture, const AnalysisOptions& options) {
  KERNTRAIL_TRY(const auto parts, analyse::parts_of(capture, options, analyse::Directions::kTogether));
  const analyse::PassIndex passes(capture);
  std::vector<Lineage> result(parts.size());
  base::parallel_for(parts.size(), [&](std::size_t i) {
    result[i] = analyse::LineageBuilder(capture, parts[i].pipeline, parts[i].columns).build();
    if (options.passes) analyse::name_passes(capture, passes, result[i]);
    analyse::find_rewrites(capture, passes, result[i]);
  });
  return result;
}

namespace {

bool ends_with_path(std::string_view path, std::string_view tail) {
  if (tail.empty() || path == tail) return path == tail;
  return path.size() > tail.size() && path.ends_with(tail) && path[path.size() - tail.size() - 1] == '/';
}

// "lib/model.py" answers to itself and to "model.py", never to "odel.py": 2. A capture may know less of a path than the
// asker (its last parts only): then that answers to any longer path that ends in it: 1.
int names_file(std::string_view asked, std::string_view file) {
  while (asked.starts_with("./")) asked.remove_prefix(2);
  while (file.starts_with("./")) file.remove_prefix(2);
  if (ends_with_path(file, asked)) return 2;
  return !file.empty() && ends_with_path(asked, file) ? 1 : 0;
}

Expected<std::pair<std::string, std::int64_t>> parse_place(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::int64_t line = 0;
  if (colon != std::string::npos && colon > 0) {
    const char* first = text.data() + colon + 1;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(first, last, line);
    if (error == std::errc() && end == last && line > 0) return std::pair{text.substr(0, colon), line};
  }
  return fail(ErrorCode::kUsage, fmt::format("\"{}\" is no source line: write it as file.py:25", text));
}

}  // namespace

Expected<std::vector<std::uint32_t>> find_nodes(const Lineage& lineage, const Capture& capture,
                                                const LineageQuery& query) {
  std::vector<std::uint32_t> found;
  std::pair<std::string, std::int64_t> place;
  if (!query.line.empty()) {
    KERNTRAIL_TRY(place, parse_place(query.line));
  }
  int best = 1;  // of a line: how well the file was named so far
  for (std::size_t i = 0; i < lineage.nodes.size(); ++i) {
    const LineageNode& node = lineage.nodes[i];
    bool hit = false;
    if (!query.line.empty()) {
      const int named = node.layer == 0 && node.line == place.second ? names_file(place.first, node.file) : 0;
      hit = named >= best;
      if (named > best) {
        best = named;
        found.clear();
      }
    } else if (has(node.unit)) {
      const UnitKind kind = capture.units[index(node.unit)].kind;
      const bool kernel = kind == UnitKind::kKernel || kind == UnitKind::kBundleFile;
      const std::string& asked = query.kernel.empty() ? query.node : query.kernel;
      hit = (query.kernel.empty() || kernel) && (asked == node.name || asked == unit_name(capture, node.unit));
    }
    if (hit) found.push_back(static_cast<std::uint32_t>(i));
  }
  return found;
}

std::vector<std::uint32_t> reach(const Lineage& lineage, const std::vector<std::uint32_t>& start, bool forwards) {
  std::vector<std::vector<std::uint32_t>> next(lineage.nodes.size());
  for (const LineageEdge& edge : lineage.edges) {
    next[forwards ? edge.from : edge.to].push_back(forwards ? edge.to : edge.from);
  }
  std::vector<bool> seen(lineage.nodes.size(), false);
  std::vector<std::uint32_t> work;
  for (std::uint32_t node : start) {
    if (!seen[node]) work.push_back(node);
    seen[node] = true;
  }
  while (!work.empty()) {
    const std::uint32_t node = work.back();
    work.pop_back();
    for (std::uint32_t other : next[node]) {
      if (!seen[other]) work.push_back(other);
      seen[other] = true;
    }
  }
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) result.push_back(static_cast<std::uint32_t>(i));
  }
  return result;
}

Lineage around(const Lineage& lineage, const std::vector<std::uint32_t>& start) {
  constexpr std::uint32_t kOut = kNoIndex;
  std::vector<bool> below(lineage.nodes.size(), false);
  std::vector<bool> above(lineage.nodes.size(), false);
  for (std::uint32_t node : reach(lineage, start, true)) below[node] = true;
  for (std::uint32_t node : reach(lineage, start, false)) above[node] = true;
  Lineage result{lineage.compile, lineage.layers, {}, {}, lineage.witnessed, {}, {}};
  std::vector<std::uint32_t> place(lineage.nodes.size(), kOut);
  for (std::size_t i = 0; i < lineage.nodes.size(); ++i) {
    if (!below[i] && !above[i]) continue;
    place[i] = static_cast<std::uint32_t>(result.nodes.size());
    result.nodes.push_back(lineage.nodes[i]);
  }
  for (LineageEdge edge : lineage.edges) {
    const bool on_a_way = (below[edge.from] && below[edge.to]) || (above[edge.from] && above[edge.to]);
    if (!on_a_way) continue;
    edge.from = place[edge.from];
    edge.to = place[edge.to];
    result.edges.push_back(edge);
  }
  for (ContradictedClaim claim : lineage.contradicted) {
    if (place[claim.node] == kOut) continue;
    claim.node = place[claim.node];
    result.contradicted.push_back(std::move(claim));
  }
  std::set<UnitId> units;
  for (const LineageNode& node : result.nodes) units.insert(node.unit);
  for (const Rewrite& rewrite : lineage.rewrites) {
    if (units.count(rewrite.node) != 0) result.rewrites.push_back(rewrite);
  }
  return result;
}

}  // namespace kerntrail
