#include "analyse/observer_rules.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analyse/pipeline.h"
#include "base/json.h"

namespace kerntrail::analyse {
namespace {

struct Record {
  std::string kind, pass, reason;
  bool operator==(const Record&) const = default;
};

// What a unit holds of provenance at one look.
struct Holding {
  std::vector<UnitId> origins;  // sorted
  UnitId primary = UnitId::kNone;
  std::vector<Record> history;

  bool any() const { return !origins.empty() || has(primary) || !history.empty(); }
  bool has_origin(UnitId unit) const { return std::binary_search(origins.begin(), origins.end(), unit); }
};

bool is_subsequence(const std::vector<Record>& part, const std::vector<Record>& whole) {
  std::size_t i = 0;
  for (const Record& record : whole) {
    if (i < part.size() && part[i] == record) ++i;
  }
  return i == part.size();
}

std::vector<UnitId> missing(const std::vector<UnitId>& before, const std::vector<UnitId>& after) {
  std::vector<UnitId> result;
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(result));
  return result;
}

class Observer {
 public:
  Observer(const Capture& capture, const PassIndex& passes, const IntentTable& intents)
      : capture_(capture), passes_(passes), intents_(intents) {
    const AttrNames names(capture);
    origins_ = names["origins"];
    primary_ = names["origin_node"];
    history_ = names["history"];
    name_ = names["name"];
  }

  void stage(const Snapshot& snapshot, SnapshotId id) {
    for (UnitId unit : snapshot.units) note_holder(unit, id);
  }

  void pass(PassId id) {
    const Pass& run = capture_.passes[index(id)];
    before_ = passes_.before(id);
    after_ = has(run.last_look) ? run.last_look : before_;
    if (!has(after_)) return;
    std::unordered_map<std::string, UnitId> rebuilt;  // new units by name: the same operation under a new object
    std::vector<UnitId> created, living;
    sort_units(run, created, living);
    for (UnitId unit : created) rebuilt.emplace(name_of(unit, after_), unit);
    if (has(run.last_look)) {
      for (UnitId unit : capture_.snapshots[index(run.last_look)].units) note_holder(unit, run.last_look);
    }
    std::unordered_set<UnitId> continued;
    std::vector<UnitId> vanished;
    for (UnitId unit : run.erased) {
      if (!gone_.insert(unit).second || !is_operation(unit) || !existed(unit)) continue;
      const auto again = rebuilt.find(name_of(unit, before_));
      if (again == rebuilt.end() || again->first.empty()) {
        vanished.push_back(unit);
      } else if (continued.insert(again->second).second) {
        survivor(id, unit, again->second);
      }
    }
    for (UnitId unit : living) survivor(id, unit, unit);
    for (UnitId unit : created) {
      if (continued.count(unit) == 0) new_unit(id, unit);
    }
    answers_.clear();
    for (UnitId unit : vanished) {
      if (!has_survivor(id, unit)) gone(id, unit);
    }
  }

  std::vector<ObserverFinding> take() { return std::move(findings_); }

 private:
  bool is_operation(UnitId unit) const {
    const UnitKind kind = capture_.units[index(unit)].kind;
    return kind == UnitKind::kOperation || kind == UnitKind::kGroup;
  }
  bool existed(UnitId unit) const {
    const SnapshotId first = passes_.first_seen(unit);
    return has(first) && has(before_) && first <= before_;
  }

  void sort_units(const Pass& run, std::vector<UnitId>& created, std::vector<UnitId>& living) const {
    const std::unordered_set<UnitId> erased(run.erased.begin(), run.erased.end());
    std::unordered_set<UnitId> seen;
    const auto add = [&](UnitId unit) {
      if (!is_operation(unit) || erased.count(unit) != 0 || !seen.insert(unit).second) return;
      (existed(unit) ? living : created).push_back(unit);
    };
    if (has(run.last_look)) {
      for (UnitId unit : capture_.snapshots[index(run.last_look)].units) add(unit);
    }
    for (UnitId unit : run.changed) add(unit);
    for (UnitId unit : run.created) add(unit);
  }

  std::string name_of(UnitId unit, SnapshotId look) const {
    const Observation* seen = has(look) ? present(capture_, unit, name_, look) : nullptr;
    return seen == nullptr ? std::string() : std::string(capture_.text(seen->text));
  }

  std::vector<Record> history_of(UnitId unit, SnapshotId look) const {
    std::vector<Record> result;
    const Observation* seen = present(capture_, unit, history_, look);
    if (seen == nullptr) return result;
    const auto parsed = base::Json::parse(capture_.text(seen->text));
    if (!parsed) return result;
    for (const base::Json& entry : parsed->as_array()) {
      result.push_back({std::string(entry["kind"].as_string()), std::string(entry["pass_name"].as_string()),
                        std::string(entry["reason"].as_string())});
    }
    return result;
  }

  Holding holding(UnitId unit, SnapshotId look) const {
    Holding result;
    if (!has(look)) return result;
    if (const Observation* seen = present(capture_, unit, origins_, look)) result.origins = seen->refs;
    std::sort(result.origins.begin(), result.origins.end());
    result.origins.erase(std::unique(result.origins.begin(), result.origins.end()), result.origins.end());
    const Observation* primary = present(capture_, unit, primary_, look);
    if (primary != nullptr && !primary->refs.empty()) result.primary = primary->refs.front();
    result.history = history_of(unit, look);
    return result;
  }

  void note_holder(UnitId unit, SnapshotId look) {
    if (!is_operation(unit)) return;
    const Observation* seen = present(capture_, unit, origins_, look);
    if (seen == nullptr) return;
    for (UnitId origin : seen->refs) {
      const std::uint64_t key = (static_cast<std::uint64_t>(index(origin)) << 32U) ^ index(unit);
      if (noted_.insert(key).second) holders_[origin].push_back(unit);
    }
  }

  void add(ObserverRule rule, PassId pass, UnitId unit, UnitId now, std::vector<UnitId> lost, std::size_t total,
           IntentKind exempt, IntentKind also) {
    ObserverFinding found{rule, pass, unit, now == unit ? UnitId::kNone : now, std::move(lost), total, kNoIndex};
    const std::string_view field = rule == ObserverRule::kOriginNodeLost ? "origin_node"
                                   : rule == ObserverRule::kHistoryCut   ? "history"
                                                                         : "origins";
    for (IntentKind kind : {exempt, also}) {
      const std::uint32_t intent = intents_.find(kind, pass, {}, {}, kind == IntentKind::kRemaps ? field : "");
      if (found.intent == kNoIndex) found.intent = intent;
    }
    findings_.push_back(std::move(found));
  }

  void survivor(PassId pass, UnitId unit, UnitId now) {
    const Holding old = holding(unit, before_);
    const Holding held = holding(now, after_);
    auto lost = missing(old.origins, held.origins);
    const IntentKind remaps = IntentKind::kRemaps;
    if (!lost.empty())
      add(ObserverRule::kOriginsDropped, pass, unit, now, std::move(lost), old.origins.size(), remaps, remaps);
    if (has(old.primary) && !has(held.primary) && !(held.has_origin(old.primary) && fused(pass, old, held)))
      add(ObserverRule::kOriginNodeLost, pass, unit, now, {old.primary}, 1, remaps, remaps);
    if (!is_subsequence(old.history, held.history))
      add(ObserverRule::kHistoryCut, pass, unit, now, {}, old.history.size(), remaps, remaps);
  }

  // The pass wrote a fusion record of its own.
  bool fused(PassId pass, const Holding& old, const Holding& now) const {
    const std::string& name = capture_.passes[index(pass)].name;
    const auto records = [&](const Holding& h) {
      return std::count_if(h.history.begin(), h.history.end(),
                           [&](const Record& r) { return r.kind == "fusion" && r.pass == name; });
    };
    return records(now) > records(old);
  }

  void new_unit(PassId pass, UnitId unit) {
    const Observation* seen = present(capture_, unit, origins_, after_);
    const Observation* slot = has(origins_) ? capture_.at(unit, origins_, after_) : nullptr;
    if (seen != nullptr || (slot != nullptr && slot->state == State::kUnreadable)) return;
    add(ObserverRule::kCreatedSourceless, pass, unit, unit, {}, 0, IntentKind::kSynthesises, IntentKind::kSynthesises);
  }

  // One living unit that holds all that the vanished one held.
  bool has_survivor(PassId pass, UnitId unit) {
    const Holding old = holding(unit, before_);
    if (!old.any()) return true;
    std::string key;
    for (UnitId origin : old.origins) key += std::to_string(index(origin)) + ",";
    key += "|" + std::to_string(index(old.primary));
    for (const Record& r : old.history) key += "|" + r.kind + "|" + r.pass + "|" + r.reason;
    const auto [answer, fresh] = answers_.try_emplace(key, false);
    if (fresh) answer->second = search(pass, old);
    return answer->second;
  }

  bool search(PassId, const Holding& old) const {
    const std::vector<UnitId>* fewest = nullptr;
    const auto offer = [&](UnitId origin) {
      const auto found = holders_.find(origin);
      static const std::vector<UnitId> kNobody;
      const std::vector<UnitId>& list = found == holders_.end() ? kNobody : found->second;
      if (fewest == nullptr || list.size() < fewest->size()) fewest = &list;
    };
    for (UnitId origin : old.origins) offer(origin);
    if (old.origins.empty() && has(old.primary)) offer(old.primary);
    if (fewest == nullptr) return false;  // a history alone: nothing tells who may hold it
    return std::any_of(fewest->begin(), fewest->end(), [&](UnitId other) {
      if (gone_.count(other) != 0) return false;
      const Holding held = holding(other, after_);
      return std::includes(held.origins.begin(), held.origins.end(), old.origins.begin(), old.origins.end()) &&
             (!has(old.primary) || held.primary == old.primary || held.has_origin(old.primary)) &&
             is_subsequence(old.history, held.history);
    });
  }

  void gone(PassId pass, UnitId unit) {
    Holding old = holding(unit, before_);
    const std::size_t total = old.origins.size();
    add(ObserverRule::kVanished, pass, unit, unit, std::move(old.origins), total, IntentKind::kRemoves,
        IntentKind::kRemaps);
  }

  const Capture& capture_;
  const PassIndex& passes_;
  const IntentTable& intents_;
  AttrId origins_, primary_, history_, name_;
  SnapshotId before_ = SnapshotId::kNone, after_ = SnapshotId::kNone;
  std::unordered_map<UnitId, std::vector<UnitId>> holders_;  // origin -> units that held it at some time
  std::unordered_set<std::uint64_t> noted_;
  std::unordered_set<UnitId> gone_;
  std::unordered_map<std::string, bool> answers_;
  std::vector<ObserverFinding> findings_;
};

bool in_direction(const Graph& graph, std::string_view direction) {
  if (direction.empty()) return true;
  return direction == "backward" ? graph.direction == "backward" : graph.direction != "backward";
}

}  // namespace

std::vector<ObserverFinding> observer_findings(const Capture& capture, const PassIndex& passes,
                                               const IntentTable& intents, CompileId compile,
                                               std::string_view direction) {
  std::vector<std::pair<SnapshotId, PassId>> order;  // by when the pass's outcome was seen, inner passes first
  for (PassId id : passes.passes_of(compile)) {
    const Pass& pass = capture.passes[index(id)];
    const Graph& graph = capture.graphs[index(pass.graph)];
    if (graph.kind == "fx" || !in_direction(graph, direction)) continue;
    order.emplace_back(has(pass.last_look) ? pass.last_look : pass.first_look, id);
  }
  if (order.empty()) return {};
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Observer observer(capture, passes, intents);
  std::size_t next = 0;
  const SnapshotId end = order.back().first;
  for (std::size_t s = 0; s <= index(end) && s < capture.snapshots.size(); ++s) {
    const auto id = id_at<SnapshotId>(s);
    const Snapshot& snapshot = capture.snapshots[s];
    while (next < order.size() && order[next].first == id && !has(capture.passes[index(order[next].second)].last_look))
      observer.pass(order[next++].second);
    if (has(snapshot.stage) && capture.graphs[index(snapshot.graph)].compile == compile) observer.stage(snapshot, id);
    while (next < order.size() && order[next].first == id) observer.pass(order[next++].second);
  }
  while (next < order.size()) observer.pass(order[next++].second);
  return observer.take();
}

}  // namespace kerntrail::analyse
