#include "analyse/pass_index.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace kerntrail::analyse {
namespace {

// Strongest first. What a pass declares itself goes before what was observed from outside.
constexpr std::array<std::string_view, 8> kChargingOrder{"rewrite",     "fusion", "decomposition", "match",
                                                         "replacement", "users",  "frame",         "copy"};

// Leaves the first of equal units, and not `unit` itself. Lists are short; a long one is looked through by a set.
void keep_first(std::vector<UnitId>& units, UnitId unit) {
  constexpr std::size_t kShort = 16;
  std::unordered_set<UnitId> seen;
  const bool is_long = units.size() > kShort;
  auto end = units.begin();
  for (const UnitId one : units) {
    const bool fresh = is_long ? seen.insert(one).second : std::find(units.begin(), end, one) == end;
    if (fresh && one != unit) *end++ = one;
  }
  units.erase(end, units.end());
}

}  // namespace

std::size_t charging_rank(std::string_view evidence) {
  return static_cast<std::size_t>(std::find(kChargingOrder.begin(), kChargingOrder.end(), evidence) -
                                  kChargingOrder.begin());
}

PassIndex::PassIndex(const Capture& capture)
    : capture_(capture),
      birth_start_(capture.units.size() + 1, 0),
      first_seen_(capture.units.size(), SnapshotId::kNone),
      previous_(capture.snapshots.size(), SnapshotId::kNone),
      erased_in_(capture.units.size(), PassId::kNone),
      created_in_(capture.units.size(), PassId::kNone),
      replaced_(capture.units.size()),
      heir_(capture.units.size(), UnitId::kNone),
      passes_of_(capture.compiles.size()) {
  rank_.reserve(capture.births.size());
  for (const Birth& birth : capture.births) {
    rank_.push_back(static_cast<std::uint8_t>(charging_rank(birth.evidence)));
    ++birth_start_[index(birth.unit) + 1];
    for (UnitId source : birth.sources) {
      if (!has(heir_[index(source)]) && source != birth.unit) heir_[index(source)] = birth.unit;
    }
  }
  for (std::size_t i = 1; i < birth_start_.size(); ++i) birth_start_[i] += birth_start_[i - 1];
  birth_order_.resize(capture.births.size());
  std::vector<std::uint32_t> next(birth_start_.begin(), birth_start_.end() - 1);
  for (std::size_t i = 0; i < capture.births.size(); ++i)
    birth_order_[next[index(capture.births[i].unit)]++] = static_cast<std::uint32_t>(i);
  std::vector<SnapshotId> last_look(capture.graphs.size(), SnapshotId::kNone);
  for (std::size_t i = 0; i < capture.snapshots.size(); ++i) {
    const Snapshot& snapshot = capture.snapshots[i];
    previous_[i] = std::exchange(last_look[index(snapshot.graph)], id_at<SnapshotId>(i));
    for (UnitId unit : snapshot.units) {
      if (!has(first_seen_[index(unit)])) first_seen_[index(unit)] = id_at<SnapshotId>(i);
    }
  }
  for (std::size_t i = 0; i < capture.passes.size(); ++i) {
    const Pass& pass = capture.passes[i];
    const auto id = id_at<PassId>(i);
    passes_of_[index(capture.graphs[index(pass.graph)].compile)].push_back(id);
    // An inner pass begins after the one around it, so the innermost has the last word.
    for (UnitId unit : pass.created) created_in_[index(unit)] = id;
    for (UnitId unit : pass.erased) erased_in_[index(unit)] = id;
    for (const auto& [from, to] : pass.replaced) replaced_[index(from)] = {to, id};
  }
}

bool PassIndex::has_passes(CompileId compile) const { return !passes_of_[index(compile)].empty(); }

std::span<const std::uint32_t> PassIndex::births_of(UnitId unit) const {
  const std::size_t first = birth_start_[index(unit)];
  return {birth_order_.data() + first, birth_start_[index(unit) + 1] - first};
}

ChargedBirth PassIndex::charged(UnitId unit) const {
  ChargedBirth result;
  const auto births = births_of(unit);
  if (births.empty()) return result;
  result.birth = &capture_.births[births.front()];
  std::size_t best = kChargingOrder.size();
  for (std::uint32_t i : births) {
    if (rank_[i] >= best || capture_.births[i].sources.empty()) continue;
    best = rank_[i];
    result.birth = &capture_.births[i];
  }
  if (best == kChargingOrder.size()) return result;
  result.evidence = kChargingOrder[best];
  for (std::uint32_t i : births) {
    if (rank_[i] == best)
      result.sources.insert(result.sources.end(), capture_.births[i].sources.begin(), capture_.births[i].sources.end());
  }
  keep_first(result.sources, unit);
  if (result.sources.empty()) result.evidence = {};
  return result;
}

bool PassIndex::names_predecessors(std::string_view evidence) {
  return charging_rank(evidence) <= charging_rank("replacement");
}

SnapshotId PassIndex::before(PassId pass) const {
  const SnapshotId first = capture_.passes[index(pass)].first_look;
  if (!has(first) || index(first) == 0) return SnapshotId::kNone;
  return id_at<SnapshotId>(index(first) - 1);
}

}  // namespace kerntrail::analyse
