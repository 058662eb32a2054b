#include "analyse/match_nodes.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

using base::hash64;

constexpr std::size_t kCodes = 32;  // source lines of one unit that are told apart

std::uint64_t text_hash(std::string_view text) { return hash64(text, 1); }

std::string_view text_at(const Capture& capture, const AttrNames& names, std::string_view attr,
                         const ColumnUnit& unit) {
  const Observation* seen = present(capture, unit.unit, names[attr], unit.snapshot);
  return seen == nullptr ? std::string_view() : capture.text(seen->text);
}

// The innermost module a node belongs to, without the compiler's own key for it.
std::uint64_t module_of(const Capture& capture, const AttrNames& names, const ColumnUnit& unit) {
  const std::string_view text = text_at(capture, names, "nn_module_stack", unit);
  const std::size_t at = text.rfind("\"name\":\"");
  if (at == std::string_view::npos) return 0;
  const std::string_view name = text.substr(at + 8);
  return text_hash(name.substr(0, name.find('"')));
}

std::uint64_t strict_of(const Capture& capture, const AttrNames& names, const ColumnUnit& unit) {
  const Graph& graph = capture.graphs[index(capture.units[index(unit.unit)].graph)];
  std::uint64_t h = hash64(graph.direction, text_hash(graph.path));
  return hash64(text_at(capture, names, "ir_classes", unit), hash64(text_at(capture, names, "type", unit), h));
}

void sort_unique(std::vector<std::uint64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

std::uint64_t label_of(const Capture& capture, const AttrNames& names, const ColumnUnit& unit) {
  const UnitKind kind = capture.units[index(unit.unit)].kind;
  std::uint64_t h = hash64(static_cast<std::uint64_t>(kind), 2);
  for (std::string_view attr : {"op", "target", "ir_class", "data_class", "group_class", "class"}) {
    const std::string_view text = text_at(capture, names, attr, unit);
    // Most targets have no address in them.
    h = text.find(" at 0x") == std::string_view::npos ? hash64(text, h) : hash64(base::without_addresses(text), h);
  }
  if (kind != UnitKind::kBundleFile) return h;
  std::string keys(text_at(capture, names, "op_keys", unit));  // ["1_add"]: the number is its place
  std::erase_if(keys, [](char c) { return c >= '0' && c <= '9'; });
  return hash64(keys, h);
}

std::uint64_t code_of(const Capture& capture, const AttrNames& names, const ColumnUnit& unit) {
  const Observation* seen = present(capture, unit.unit, names["stack_trace"], unit.snapshot);
  if (seen == nullptr) return 0;
  const Loc* loc = capture.innermost_user(seen->loc);
  if (loc != nullptr && has(loc->code)) return text_hash(base::trim(capture.text(loc->code)));
  const auto source = source_in(capture, seen);
  if (source && !source->code.empty()) return text_hash(source->code);
  const std::string_view line = last_code_line(capture.text(seen->text));
  return line.empty() ? 0 : text_hash(line);
}

NodeReader::NodeReader(const Capture& capture, const Pipeline& pipeline, EdgeFinder& edges)
    : capture_(capture), pipeline_(pipeline), edges_(edges), names_(capture) {}

void NodeReader::add_inputs(const ColumnUnit& unit, const Column& column, MatchNode& node) const {
  const Observation* seen = present(capture_, unit.unit, names_["inputs"], unit.snapshot);
  if (seen == nullptr) return;
  for (UnitId ref : seen->refs) {
    MatchNode::Input input;
    const auto found = column.positions.find(ref);
    if (found != column.positions.end()) {
      input.place = static_cast<std::uint32_t>(found->second);
    } else {
      const ColumnUnit leaf{ref, unit.snapshot};
      input.leaf = hash64(text_at(capture_, names_, "type", leaf), 3);
      input.leaf_id = index(ref) + 1;  // until identify_leaves()
    }
    node.inputs.push_back(input);
  }
}

MatchSide NodeReader::read(std::size_t at, std::optional<std::size_t> before,
                           const std::unordered_map<UnitId, std::uint64_t>& matched) {
  const Column& column = pipeline_.columns[at];
  MatchSide side;
  side.reserve(column.units.size());
  const ParentTable* parents = before ? &edges_.table(at, *before) : nullptr;
  for (std::size_t i = 0; i < column.units.size(); ++i) {
    const ColumnUnit& unit = column.units[i];
    MatchNode node;
    node.unit = unit.unit;
    node.label = label_of(capture_, names_, unit);
    node.strict = strict_of(capture_, names_, unit);
    node.module = module_of(capture_, names_, unit);
    const auto prior = matched.find(unit.unit);
    if (prior != matched.end()) node.prior = prior->second;
    add_inputs(unit, column, node);
    auto& codes = codes_[unit.unit];
    if (codes.empty()) {
      if (const std::uint64_t own = code_of(capture_, names_, unit)) codes.push_back(own);
    }
    const bool own = !codes.empty();
    for (std::size_t p = 0; parents != nullptr && p < (*parents)[i].size(); ++p) {
      const Parent& parent = (*parents)[i][p];
      if (strength_of(parent.evidence) == Strength::kDerived) continue;
      const auto pair = matched.find(parent.unit);
      if (pair != matched.end()) node.parents.push_back(pair->second);
      node.of_strangers = true;
      if (own || parent.unit == unit.unit) continue;
      const auto& theirs = codes_[parent.unit];
      auto& mine = codes_[unit.unit];  // the map may have grown
      mine.insert(mine.end(), theirs.begin(), theirs.end());
    }
    node.of_strangers = node.of_strangers && node.parents.empty();
    std::sort(node.parents.begin(), node.parents.end());
    node.parents.erase(std::unique(node.parents.begin(), node.parents.end(),
                                   [](std::uint64_t a, std::uint64_t b) { return a == b && a % 2 != 0; }),
                       node.parents.end());
    auto& all = codes_[unit.unit];
    sort_unique(all);
    if (all.size() > kCodes) all = {all.front() ^ hash64(all.size(), all.back())};
    node.codes = all;
    side.push_back(std::move(node));
  }
  return side;
}

std::vector<Leaf> NodeReader::leaves(std::size_t at) const {
  std::vector<Leaf> out;
  const Column& column = pipeline_.columns[at];
  for (SnapshotId snapshot : column.snapshots) {
    for (UnitId unit : capture_.snapshots[index(snapshot)].units) {
      const ColumnUnit leaf{unit, snapshot};
      if (column.holds(unit) || text_at(capture_, names_, "op", leaf) != "placeholder") continue;
      out.push_back({unit, text_hash(text_at(capture_, names_, "type", leaf)),
                     text_hash(text_at(capture_, names_, "name", leaf))});
    }
  }
  return out;
}

void identify_leaves(MatchSide& old, const std::vector<Leaf>& old_leaves, MatchSide& now,
                     const std::vector<Leaf>& new_leaves) {
  std::multiset<std::uint64_t> old_names, new_names;
  for (const Leaf& leaf : old_leaves) old_names.insert(leaf.name);
  for (const Leaf& leaf : new_leaves) new_names.insert(leaf.name);
  const bool by_name = old_names == new_names;
  const bool by_order = std::equal(old_leaves.begin(), old_leaves.end(), new_leaves.begin(), new_leaves.end(),
                                   [](const Leaf& a, const Leaf& b) { return a.kind == b.kind; });
  const auto identify = [&](MatchSide& side, const std::vector<Leaf>& leaves) {
    std::unordered_map<std::uint64_t, std::uint64_t> ids;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      ids[index(leaves[i].unit) + 1] = by_name ? leaves[i].name : by_order ? i + 1 : 0;
    for (MatchNode& node : side) {
      for (MatchNode::Input& input : node.inputs) {
        if (input.leaf_id == 0) continue;
        const auto found = ids.find(input.leaf_id);
        input.leaf_id = found == ids.end() ? 0 : found->second;
      }
    }
  };
  identify(old, old_leaves);
  identify(now, new_leaves);
}

}  // namespace kerntrail::analyse
