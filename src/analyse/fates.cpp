#include "analyse/fates.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace kerntrail::analyse {
namespace {

// Targets of nodes that only stand for a constant.
constexpr std::array<std::string_view, 5> kConstants{"aten.full.default", "aten.scalar_tensor", "aten.zeros.default",
                                                     "aten.ones.default", "prims.full"};

constexpr int kMaxSteps = 64;  // replacements of replacements that are followed

}  // namespace

FateFinder::FateFinder(const Capture& capture, const PassIndex& passes, const IntentTable& intents)
    : capture_(capture), passes_(passes), intents_(intents) {
  const AttrNames names(capture);
  inputs_ = names["inputs"];
  op_ = names["op"];
  target_ = names["target"];
}

bool FateFinder::is_constant(UnitId unit) const {
  const SnapshotId seen = passes_.first_seen(unit);
  if (!has(seen)) return false;
  const Observation* op = present(capture_, unit, op_, seen);
  if (op != nullptr && capture_.text(op->text) == "get_attr") return true;
  const Observation* target = present(capture_, unit, target_, seen);
  if (target == nullptr) return false;
  const std::string_view text = capture_.text(target->text);
  return std::any_of(kConstants.begin(), kConstants.end(),
                     [&](std::string_view constant) { return text.substr(0, constant.size()) == constant; });
}

// Inputs as they were before the pass, or, of a unit made within it, at its look.
bool FateFinder::was_input(UnitId input, UnitId of, PassId pass) const {
  const Pass& run = capture_.passes[index(pass)];
  for (SnapshotId look : {passes_.before(pass), run.last_look}) {
    if (!has(look)) continue;
    const Observation* seen = present(capture_, of, inputs_, look);
    if (seen == nullptr) continue;
    return std::any_of(seen->refs.begin(), seen->refs.end(), [&](UnitId ref) { return became(ref, input); });
  }
  return false;
}

// An input that had itself been replaced by then stands for what replaced it.
bool FateFinder::became(UnitId unit, UnitId other) const {
  for (int steps = 0; has(unit) && steps < kMaxSteps; ++steps) {
    if (unit == other) return true;
    unit = passes_.replaced(unit).by;
  }
  return false;
}

UnitFate FateFinder::fate_of(UnitId unit, PassId erased) const {
  UnitFate result;
  result.unit = unit;
  const PassIndex::Taken taken = passes_.replaced(unit);
  const PassId by_pass = has(taken.by) ? taken.pass : erased;
  result.by = taken.by;
  const Observation* target =
      has(passes_.first_seen(unit)) ? present(capture_, unit, target_, passes_.first_seen(unit)) : nullptr;
  const std::string_view name = target == nullptr ? std::string_view() : capture_.text(target->text);
  for (PassId pass : {by_pass, erased}) {
    if (intents_.find(IntentKind::kRemoves, pass, {}, name, {}) != kNoIndex) result.declared = true;
  }
  if (!has(taken.by)) {
    // Inside of what a pattern matched: the new unit stands for it too.
    result.by = passes_.heir(unit);
    result.fate = has(result.by) ? Fate::kReplaced : Fate::kDead;
  } else if (was_input(taken.by, unit, taken.pass)) {
    result.fate = Fate::kElided;
  } else if (is_constant(taken.by)) {
    result.fate = Fate::kFolded;
  } else {
    const SnapshotId first = passes_.first_seen(taken.by);
    const SnapshotId begun = capture_.passes[index(taken.pass)].first_look;
    const bool older = passes_.created_in(taken.by) != taken.pass && has(first) && first < begun;
    result.fate = older ? Fate::kMerged : Fate::kReplaced;
  }
  return result;
}

// Units made and erased within the pass never entered it.
bool FateFinder::entered(UnitId unit, PassId pass) const {
  for (PassId made = passes_.created_in(unit); has(made); made = capture_.passes[index(made)].parent) {
    if (made == pass) return false;
    if (has(capture_.passes[index(made)].parent) && capture_.passes[index(made)].parent >= made) break;  // damaged
  }
  return true;
}

PassTally FateFinder::over(PassId id) const {
  const Pass& pass = capture_.passes[index(id)];
  PassTally result;
  result.pass = id;
  result.created = pass.created.size();
  result.changed = pass.changed.size();
  result.retargeted = pass.retargeted.size();
  std::unordered_set<UnitId> seen;
  for (UnitId unit : pass.erased) {
    if (!seen.insert(unit).second || !entered(unit, id)) continue;
    result.leavers.push_back(fate_of(unit, id));
    ++result.fates[static_cast<std::size_t>(result.leavers.back().fate)];
  }
  result.left = result.leavers.size();
  return result;
}

StageInterval FateFinder::between(const Pipeline& pipeline, EdgeFinder& edges, std::size_t a, std::size_t b) const {
  const Column& first = pipeline.columns[a];
  const Column& next = pipeline.columns[b];
  StageInterval result;
  result.from = first.key;
  result.to = next.key;
  result.entering = first.units.size();
  // All that units of the next stage were made of, however indirectly. A joint graph goes on in both directions.
  std::unordered_set<UnitId> used, there;
  std::vector<UnitId> work;
  for (SnapshotId look : capture_.snapshots_of(pipeline.compile, next.stage)) {
    const auto& units = capture_.snapshots[index(look)].units;
    there.insert(units.begin(), units.end());
    work.insert(work.end(), units.begin(), units.end());
  }
  for (std::size_t p = 0; p < next.units.size(); ++p) {
    if (!passes_.births_of(next.units[p].unit).empty()) continue;
    for (const Parent& parent : edges.table(b, a)[p]) work.push_back(parent.unit);
  }
  while (!work.empty()) {
    const UnitId unit = work.back();
    work.pop_back();
    if (!used.insert(unit).second) continue;
    const ChargedBirth birth = passes_.charged(unit);
    work.insert(work.end(), birth.sources.begin(), birth.sources.end());
  }
  // Not erased, nothing made of it, and yet something reads it: it went where nobody watched.
  std::unordered_set<UnitId> read;
  for (SnapshotId look : first.snapshots) {
    for (UnitId unit : capture_.snapshots[index(look)].units) {
      if (const Observation* inputs = present(capture_, unit, inputs_, look))
        read.insert(inputs->refs.begin(), inputs->refs.end());
    }
  }
  for (const ColumnUnit& unit : first.units) {
    if (there.count(unit.unit) != 0) {
      ++result.fates[static_cast<std::size_t>(Fate::kSurvived)];
      continue;
    }
    UnitFate fate;
    fate.unit = unit.unit;
    const bool erased = has(passes_.erased_in(unit.unit));
    if (erased) {
      fate = fate_of(unit.unit, passes_.erased_in(unit.unit));
    } else {
      fate.fate = used.count(unit.unit) != 0   ? Fate::kReplaced
                  : read.count(unit.unit) != 0 ? Fate::kUnseen
                                               : Fate::kDead;
    }
    ++result.fates[static_cast<std::size_t>(fate.fate)];
    result.leavers.push_back(fate);
  }
  return result;
}

}  // namespace kerntrail::analyse
