#include "analyse/field_origins.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyse/frequency.h"
#include "analyse/survival.h"
#include "analyse/values.h"

namespace kerntrail::analyse {
namespace {

class FieldOrigins {
 public:
  FieldOrigins(const Capture& capture, const PassIndex& passes, const Pipeline& pipeline)
      : capture_(capture), passes_(passes), pipeline_(pipeline) {}

  FieldOrigin of(AttrId field) const {
    const AttrKind& kind = capture_.attr_kinds[index(field)];
    FieldOrigin out;
    out.field = kind.name;
    out.layer = kind.layer;
    out.derived = kind.name == "get_stack_traces";
    std::map<std::string, std::size_t> types, makers;
    std::set<UnitId> done;
    for (const Column& column : pipeline_.columns) {
      FieldOrigin::At at{column.key, column.title, 0, column.units.size(), 0};
      for (const ColumnUnit& unit : column.units) {
        const Observation* seen = capture_.at(unit.unit, field, unit.snapshot);
        if (seen == nullptr || seen->state == State::kNoSlot) continue;
        ++at.slots;
        if (seen->state != State::kPresent) continue;
        ++at.present;
        if (done.insert(unit.unit).second) count_value(kind, field, unit, *seen, out, types, makers);
      }
      if (at.slots > 0) out.stages.push_back(at);
      if (at.present > 0 && out.first_stage.empty()) out.first_stage = column.title;
    }
    out.types = by_frequency(types);
    for (auto& [maker, times] : by_frequency(makers)) out.makers.push_back(maker);
    return out;
  }

 private:
  void count_value(const AttrKind& kind, AttrId field, const ColumnUnit& unit, const Observation& seen,
                   FieldOrigin& out, std::map<std::string, std::size_t>& types,
                   std::map<std::string, std::size_t>& makers) const {
    if (has(seen.python_type)) ++types[std::string(capture_.text(seen.python_type))];
    if (out.derived) return;
    const Observation* first = nullptr;
    SnapshotId since = SnapshotId::kNone;
    capture_.each_version(unit.unit, field, [&](SnapshotId at, const Observation& value) {
      if (first != nullptr || value.state != State::kPresent) return;
      first = &value;
      since = at;
    });
    const SnapshotId born = passes_.first_seen(unit.unit);
    const bool in_first_graph = !pipeline_.columns.empty() && pipeline_.columns.front().holds(unit.unit);
    const ChargedBirth birth = passes_.charged(unit.unit);
    if (has(born) && since > born) {
      ++out.written;
      ++makers[maker_of(capture_.snapshots[index(since)].pass, since)];
      return;
    }
    if (in_first_graph && birth.sources.empty()) {
      ++out.traced;
      return;
    }
    // A backward node stands beside its forward nodes: autograd hands their values on.
    std::vector<UnitId> sources = birth.sources;
    for (std::uint32_t i : passes_.births_of(unit.unit))
      sources.insert(sources.end(), capture_.births[i].sources.begin(), capture_.births[i].sources.end());
    const bool copied = std::any_of(sources.begin(), sources.end(), [&](UnitId source) {
      bool same = false;
      capture_.each_version(source, field, [&](SnapshotId, const Observation& value) {
        same = same || (value.state == State::kPresent && first != nullptr &&
                        kept_of(capture_, kind.type, value, *first) == Kept::kAll);
      });
      return same;
    });
    if (copied) {
      ++out.copied;
      return;
    }
    ++out.generated;
    ++makers[birth.birth != nullptr && has(birth.birth->pass) ? maker_of(birth.birth->pass, since)
                                                              : "into " + stage_of(born)];
  }

  std::string maker_of(PassId pass, SnapshotId look) const {
    if (!has(pass)) return "before " + stage_of(look);
    const Pass& one = capture_.passes[index(pass)];
    return one.kind == PassKind::kGap ? "no pass: " + one.name : one.name;
  }

  std::string stage_of(SnapshotId look) const {
    if (has(look) && has(capture_.snapshots[index(look)].stage))
      return capture_.stages[index(capture_.snapshots[index(look)].stage)].title;
    for (std::size_t i = has(look) ? index(look) : capture_.snapshots.size(); i < capture_.snapshots.size(); ++i) {
      const Snapshot& later = capture_.snapshots[i];
      if (has(later.stage) && capture_.graphs[index(later.graph)].compile == pipeline_.compile)
        return capture_.stages[index(later.stage)].title;
    }
    return "a later stage";
  }

  const Capture& capture_;
  const PassIndex& passes_;
  const Pipeline& pipeline_;
};

}  // namespace

std::vector<FieldOrigin> field_origins(const Capture& capture, const PassIndex& passes, const Pipeline& pipeline) {
  const FieldOrigins origins(capture, passes, pipeline);
  std::vector<FieldOrigin> out;
  for (AttrId field : tracked_attrs(capture, pipeline)) out.push_back(origins.of(field));
  return out;
}

}  // namespace kerntrail::analyse
