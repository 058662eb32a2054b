#include "analyse/support.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "analyse/pipeline.h"

namespace kerntrail {

std::string_view support_name(Support v) {
  constexpr std::array<std::string_view, kSupports> kNames{"computes", "constant",  "moves",  "index",
                                                           "control",  "elsewhere", "nowhere"};
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
  for (std::size_t i = 0; i < capture.units.size(); ++i) {
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
}

Support SupportFinder::support(UnitId unit, UnitId node) const {
  const Work* work = witness_.of(unit);
  if (work != nullptr) {
    const auto found = std::find_if(work->begin(), work->end(), [&](const auto& one) { return one.first == node; });
    if (found != work->end()) return found->second;
  }
  if (view_of(unit, node)) return Support::kIndex;
  return witness_.workers(node).empty() ? Support::kNowhere : Support::kElsewhere;
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
