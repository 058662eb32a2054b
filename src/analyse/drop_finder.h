// Judges the fields of one pipeline's units, stage by stage: reason where absent, quality where present. Keeps what it
// found (sites, losses, marks, declared uses) for the result.
// Must not know: output formats.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyse/drop_sites.h"
#include "analyse/edges.h"
#include "analyse/intents.h"
#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "analyse/values.h"
#include "kerntrail/drops.h"
#include "kerntrail/matrix.h"

namespace kerntrail::analyse {

// Why a field is absent, with what it leads back to.
struct Absence {
  Reason reason = Reason::kUnknown;
  std::uint32_t loss = kNoIndex;
  Reason root = Reason::kUnknown;
  std::uint32_t intent = kNoIndex;
  PassId pass = PassId::kNone;  // synthesised: the declared pass
  bool guessed = false;  // unknown: its sources are only guessed
  UnitId orphan = UnitId::kNone;  // orphan, or inherited from one: that unit
};

// Keeps references; all must outlive it. Columns of `matrix` are those of the pipeline, all of them.
class DropFinder {
 public:
  DropFinder(const Capture& capture, const Pipeline& pipeline, const Matrix& matrix, EdgeFinder& edges,
             const PassIndex& passes, const IntentTable& intents);

  // Fills stages, sites, losses, marks, orphans (without fields) and declared uses.
  void fill(Drops& result);

 private:
  using FieldKey = std::pair<UnitId, AttrId>;
  struct FieldKeyHash {
    std::size_t operator()(const FieldKey& key) const {
      return std::hash<std::uint64_t>()((static_cast<std::uint64_t>(index(key.first)) << 32U) ^ index(key.second));
    }
  };
  // A source as it was when something was made of it.
  struct SourceState {
    const Observation* value = nullptr;  // nullptr: it did not have the field
    SnapshotId when = SnapshotId::kNone;
  };
  struct Where {
    std::size_t column, row, position;
  };

  // reasons
  void judge_column(std::size_t column);
  void judge(const Where& where);
  bool is_of_autograd(UnitId unit) const;
  std::string_view held_by_members(const Where& where, const ColumnUnit& unit, AttrId field) const;
  Absence absence(const Where& where, const ColumnUnit& unit, AttrId field);
  std::optional<Absence> lost_in_place(UnitId unit, AttrId field, SnapshotId until);
  Absence by_birth(UnitId unit, AttrId field);
  std::optional<Absence> decide(UnitId unit, AttrId field, std::vector<FieldKey>& needed);
  static Absence inherit(const std::vector<Absence>& sources);
  Absence base(UnitId unit, AttrId field) const;
  Absence by_stages(const Where& where, const ColumnUnit& unit, AttrId field);
  Absence without_parents(const Where& where, const ColumnUnit& unit, AttrId field);
  Absence orphan(UnitId unit);
  Absence from_parents(const Where& where, std::size_t above, std::span<const Parent> parents, AttrId field);
  Absence dropped_between(const Where& where, std::size_t above, std::span<const Parent> parents,
                          const std::vector<UnitId>& had, AttrId field);
  bool born_here(UnitId unit, AttrId field, const Column& column) const;
  SourceState source_state(const ChargedBirth& birth, UnitId source, UnitId unit, AttrId field) const;
  bool could_not_have(UnitId source, AttrId field) const;
  std::string last_stage_of(UnitId unit, SnapshotId before) const;
  std::string first_stage_of(UnitId unit) const;
  std::uint32_t birth_site(const ChargedBirth& birth, UnitId unit);
  std::uint32_t add_loss(Loss loss);
  Absence declared(std::uint32_t intent, PassId pass) const;
  std::string_view target_of(UnitId unit) const;
  const FieldUnit* cell_of(std::size_t column, UnitId unit, AttrId field) const;

  // qualities (drop_qualities.cpp)
  void judge_value(const Where& where, const ColumnUnit& unit, AttrId field, FieldUnit& cell);
  void judge_after_stages();
  bool changed_in_place(const ColumnUnit& unit, AttrId field, FieldUnit& cell);
  std::optional<Mark> wrong_at_birth(const ColumnUnit& unit, AttrId field);
  std::optional<Mark> worth_little(UnitId unit, AttrId field, SnapshotId until);
  std::uint32_t wrong_before(UnitId unit, AttrId field);
  std::uint32_t wrong_at(UnitId unit, AttrId field, SnapshotId until, std::vector<FieldKey>& needed);
  std::optional<std::uint32_t> decide_mark(UnitId unit, AttrId field, std::vector<FieldKey>& needed);
  bool in_conflict(const Where& where, const ColumnUnit& unit, AttrId field, FieldUnit& cell);
  bool stack_and_chain(const Where& where, const ColumnUnit& unit, AttrId field, FieldUnit& cell);
  bool handle_and_origins(const Where& where, const ColumnUnit& unit, AttrId field, FieldUnit& cell);
  std::uint32_t spoilt(const Where& where, const ColumnUnit& unit, AttrId field);
  bool is_vacuous(const Observation& value, SnapshotId until) const;
  bool reaches_line(UnitId root, SnapshotId until, const std::optional<SourceKey>& line) const;
  std::vector<UnitId> owners_before(PassId pass, AttrId field, const ValueKey& value, UnitId but);
  void refer(FieldUnit& cell, std::uint32_t mark) const;
  std::uint32_t add_mark(Mark mark);
  void mark(FieldUnit& cell, Mark mark) { refer(cell, add_mark(std::move(mark))); }
  void use_intent(UnitId unit, AttrId field, PassId pass, std::uint32_t intent);

  ValueType type_of(AttrId field) const { return capture_.attr_kinds[index(field)].type; }

  const Capture& capture_;
  const Pipeline& pipeline_;
  const Matrix& matrix_;
  EdgeFinder& edges_;
  const PassIndex& passes_;
  const IntentTable& intents_;
  AttrNames names_;
  SiteTable sites_;
  std::vector<AttrId> fields_;
  std::unordered_map<AttrId, std::size_t> row_of_;
  std::vector<int> created_;        // by row: order of the stage where the field comes to exist
  std::vector<int> graph_order_;    // by graph: order of its last stage; lowest int where no stage shows it
  std::vector<bool> pre_grad_;      // by graph: it is the graph that was traced from source
  bool has_pre_grad_ = false;
  SnapshotId breaks_off_in_ = SnapshotId::kNone;  // the last look at a stage of a torn capture
  std::unordered_set<UnitId> disagreeing_;  // files whose handle and place name different OpSpecs
  std::vector<StageTally> stages_;
  std::vector<std::vector<bool>> done_;  // column, position: judged already
  std::unordered_map<FieldKey, Absence, FieldKeyHash> known_, open_;
  std::vector<Loss> losses_;
  std::unordered_map<FieldKey, std::vector<std::uint32_t>, FieldKeyHash> losses_of_;
  std::vector<Orphan> orphans_;
  std::unordered_set<UnitId> is_orphan_;
  std::vector<Mark> marks_;
  std::unordered_map<FieldKey, std::vector<std::uint32_t>, FieldKeyHash> marks_of_;
  std::unordered_map<FieldKey, std::uint32_t, FieldKeyHash>
      born_wrong_;  // the mark of what it was made of, or kNoIndex
  std::unordered_set<FieldKey, FieldKeyHash> marking_;
  std::vector<DeclaredUse> declared_;
  std::unordered_map<FieldKey, std::vector<std::uint32_t>, FieldKeyHash> declared_of_;
  using Owners = std::unordered_map<ValueKey, std::vector<UnitId>, ValueKeyHash>;
  std::unordered_map<std::uint64_t, Owners> owners_;  // pass and field -> values before it
};

}  // namespace kerntrail::analyse
