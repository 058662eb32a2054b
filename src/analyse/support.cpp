#include "analyse/support.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "analyse/pipeline.h"

namespace kerntrail {

std::string_view support_name(Support v) {
  constexpr std::array<std::string_view, kSupports> kNames{"computes", "constant", "moves",     "index",
                                                           "control",  "encloses", "elsewhere", "nowhere"};
  return kNames[static_cast<std::size_t>(v)];
}

namespace analyse {
namespace {

// Sorted. Names of operator packets, and of Python's getitem.
constexpr std::string_view kViews[] = {"_conj",
                                       "_neg_view",
                                       "_reshape_alias",
                                       "_unsafe_view",
                                       "alias",
                                       "as_strided",
                                       "broadcast_in_dim",
                                       "broadcast_to",
                                       "chunk",
                                       "conj",
                                       "detach",
                                       "diagonal",
                                       "expand",
                                       "expand_as",
                                       "flatten",
                                       "getitem",
                                       "imag",
                                       "lift_fresh",
                                       "mT",
                                       "movedim",
                                       "narrow",
                                       "permute",
                                       "real",
                                       "reshape",
                                       "select",
                                       "slice",
                                       "split",
                                       "split_dim",
                                       "split_with_sizes",
                                       "squeeze",
                                       "swapaxes",
                                       "t",
                                       "tensor_split",
                                       "transpose",
                                       "unbind",
                                       "unflatten",
                                       "unfold",
                                       "unsafe_chunk",
                                       "unsafe_split",
                                       "unsafe_split_with_sizes",
                                       "unsqueeze",
                                       "view",
                                       "view_as",
                                       "view_as_real"};
static_assert(std::is_sorted(std::begin(kViews), std::end(kViews)));

// Whether a graph is one of the regions, or lies in one.
bool within(std::string_view path, const std::vector<std::string_view>& regions) {
  return std::any_of(regions.begin(), regions.end(), [&](std::string_view region) {
    return path.starts_with(region) && (path.size() == region.size() || path[region.size()] == '.');
  });
}

}  // namespace

bool is_view(std::string_view target) {
  return std::binary_search(std::begin(kViews), std::end(kViews), short_target(target));
}

SupportFinder::SupportFinder(const Capture& capture, const WitnessIndex& witness, CompileId compile)
    : capture_(capture), witness_(witness) {
  const auto target = capture.find_attr("target");
  const auto inputs = capture.find_attr("inputs");
  if (!target || !inputs || witness.empty()) return;  // nothing will be asked
  std::unordered_map<TextId, bool> known;  // targets repeat
  const Capture::Range near = capture.units_of(compile);
  for (std::size_t i = near.first; i < near.last; ++i) {
    const auto unit = id_at<UnitId>(i);
    if (capture.units[i].kind != UnitKind::kFxNode || capture.compile_of(unit) != compile) continue;
    const Observation* last_target = nullptr;
    Node node;
    capture.each_version(unit, *target, [&](SnapshotId, const Observation& seen) { last_target = &seen; });
    capture.each_version(unit, *inputs, [&](SnapshotId, const Observation& seen) { node.inputs = &seen; });
    if (last_target != nullptr) {
      auto [place, fresh] = known.try_emplace(last_target->text);
      if (fresh) place->second = is_view(capture.text(last_target->text));
      node.is_view = place->second;
    }
    nodes_[unit] = node;
    if (node.inputs == nullptr) continue;
    for (UnitId input : node.inputs->refs) users_.add(input, unit);
  }
  users_.close();
  find_regions(compile);
}

// A get_attr node holds the sub-graph that its target names, as seen from the node's own graph; what takes such nodes
// as operands calls what they hold.
void SupportFinder::find_regions(CompileId compile) {
  std::unordered_set<std::string_view> paths;
  for (const Graph& graph : capture_.graphs) {
    if (graph.compile == compile && !graph.path.empty()) paths.insert(graph.path);
  }
  if (paths.empty()) return;
  const auto op = capture_.find_attr("op");
  const auto target = capture_.find_attr("target");
  const auto text = [&](UnitId unit, std::optional<AttrId> attr) {
    std::string_view last;
    if (attr)
      capture_.each_version(unit, *attr, [&](SnapshotId, const Observation& seen) { last = capture_.text(seen.text); });
    return last;
  };
  for (const auto& [unit, node] : nodes_) {
    if (text(unit, op) != "get_attr") continue;
    const std::string& around = path_of(unit);
    const auto found =
        paths.find(around.empty() ? std::string(text(unit, target)) : around + "." + std::string(text(unit, target)));
    if (found == paths.end()) continue;
    regions_[unit].push_back(*found);
    for (UnitId user : users_.of(unit)) regions_[user].push_back(*found);
  }
  find_region_workers();
}

void SupportFinder::find_region_workers() {
  std::map<std::string_view, std::vector<UnitId>> by_path;  // there are many nodes and few sub-graphs
  for (const auto& [unit, node] : nodes_) {
    const std::vector<UnitId>& workers = witness_.workers(unit);
    if (path_of(unit).empty() || workers.empty()) continue;
    auto& all = by_path[path_of(unit)];
    all.insert(all.end(), workers.begin(), workers.end());
  }
  for (const auto& [holder, regions] : regions_) {
    std::vector<UnitId> workers;
    for (const auto& [path, all] : by_path) {
      if (within(path, regions)) workers.insert(workers.end(), all.begin(), all.end());
    }
    if (workers.empty()) continue;
    std::sort(workers.begin(), workers.end());
    workers.erase(std::unique(workers.begin(), workers.end()), workers.end());
    region_workers_[holder] = std::move(workers);
    enclosing_.push_back(holder);
  }
  std::sort(enclosing_.begin(), enclosing_.end());
}

const std::string& SupportFinder::path_of(UnitId node) const {
  return capture_.graphs[index(capture_.units[index(node)].graph)].path;
}

bool SupportFinder::encloses(UnitId node, const Work& work) const {
  const auto held = regions_.find(node);
  if (held == regions_.end()) return false;
  return std::any_of(work.begin(), work.end(),
                     [&](const auto& one) { return within(path_of(one.first), held->second); });
}

Support SupportFinder::support(UnitId unit, UnitId node) const {
  const Work* work = witness_.of(unit);
  if (work != nullptr) {
    const auto found = std::find_if(work->begin(), work->end(), [&](const auto& one) { return one.first == node; });
    if (found != work->end()) return found->second;
  }
  if (view_of(unit, node)) return Support::kIndex;
  if (work != nullptr && encloses(node, *work)) return Support::kEncloses;
  return workers(node).empty() ? Support::kNowhere : Support::kElsewhere;
}

const std::vector<UnitId>& SupportFinder::workers(UnitId node) const {
  const auto held = region_workers_.find(node);
  return held == region_workers_.end() ? witness_.workers(node) : held->second;
}

// Through views alone, up or down, it is connected with a node that the unit works for.
bool SupportFinder::view_of(UnitId unit, UnitId node) const {
  const auto is = [&](UnitId one) {
    const auto found = nodes_.find(one);
    return found != nodes_.end() && found->second.is_view;
  };
  const Work* work = witness_.of(unit);
  if (work == nullptr || !is(node)) return false;
  const auto worked_for = [&](UnitId one) {
    return std::any_of(work->begin(), work->end(), [&](const auto& known) { return known.first == one; });
  };
  const auto inputs_of = [&](UnitId one) -> std::span<const UnitId> {
    const auto found = nodes_.find(one);
    if (found == nodes_.end() || found->second.inputs == nullptr) return {};
    return found->second.inputs->refs;
  };
  for (const bool up : {true, false}) {
    std::vector<UnitId> open{node};
    std::unordered_set<UnitId> seen{node};
    while (!open.empty()) {
      const UnitId one = open.back();
      open.pop_back();
      for (UnitId other : up ? inputs_of(one) : users_.of(one)) {
        if (!seen.insert(other).second) continue;
        if (worked_for(other)) return true;
        if (is(other)) open.push_back(other);
      }
    }
  }
  return false;
}

}  // namespace analyse
}  // namespace kerntrail
