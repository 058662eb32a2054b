// Two captures compared although names, counts and fusion changed: units matched by structure, lineage and source line,
// each match with its reason; fields and links gained and lost, drops new, fixed and moved, claims truer or less true.
// OLD and NEW: the capture before and the one after. What can't be told apart is kept apart, never guessed.
// Must not know: output formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/drops.h"
#include "kerntrail/options.h"
#include "kerntrail/verify.h"

namespace kerntrail {

// One way in which two captures are unlike. Values as the captures have them; either may be empty.
struct Difference {
  std::string code;  // stable: "model", "provenance-level", "capture-level", "caches", "backend", "torn", "partial",
                     // "nothing-compiled"; of a mere setting "setting", "version", "source"
  std::string name;  // "setting metadata", "torch", "file model.py"
  std::string was, now;
  bool can_matter = true;  // it may change what a compile does; false: where a file lies, how the capture was begun
};

// Why the two can't be compared: what would make every difference between them meaningless. Empty: they can.
std::vector<Difference> incomparable(const Capture& old, const Capture& now);
// Everything else recorded that differs: versions, run settings, compile attributes, source files.
std::vector<Difference> differing_settings(const Capture& old, const Capture& now);

// Why two units are held to be the same one, strongest first.
enum class MatchReason : std::uint8_t {
  kSameUnit,  // the pair was matched at an earlier stage, and both live on
  kStructure,  // same op and type, made of the same, used by the same
  kInputs,  // same op, made of the same
  kUsers,  // same op, used by the same
  kLineage,  // same op, comes from matched units of the stage before
  kSourceLine,  // same op, same code text of the source line
  kPosition,  // same op, the only one between the same matched neighbours
};
inline constexpr std::size_t kMatchReasons = 7;
std::string_view match_reason_name(MatchReason v);  // "same-unit", "structure", ...

struct UnitMatch {
  UnitId old_unit = UnitId::kNone, new_unit = UnitId::kNone;
  MatchReason reason = MatchReason::kStructure;
};

enum class GroupKind : std::uint8_t {
  kAmbiguous,  // alike in everything that is compared: which is which can't be told
  kRegrouped,  // made of the same units of the stage before, in other portions: another fusion or decomposition
};
std::string_view group_kind_name(GroupKind v);  // "ambiguous", "regrouped"

struct UnitGroup {
  GroupKind kind = GroupKind::kAmbiguous;
  std::vector<UnitId> old_units, new_units;  // neither empty
};

// Pairs, groups and rest add up to the counted units of each side.
struct StageMatch {
  std::string key, title, noun;
  std::size_t old_total = 0, new_total = 0;
  std::vector<UnitMatch> pairs;  // in NEW's order
  std::vector<UnitGroup> groups;
  std::vector<UnitId> only_old, only_new;
};

// A unit of each side; kNone: there is none. Of a group one member: NEW's first that it holds for.
struct UnitPair {
  UnitId old_unit = UnitId::kNone, new_unit = UnitId::kNone;

  bool operator==(const UnitPair&) const = default;
};

// A place that losses are charged to, of one side.
struct DiffSite {
  bool in_new = false;  // whose it is
  std::string path;  // "outer / inner" of a pass; "between a and b" of a border
  std::string subsystem, pattern, place;  // as in DropSite
  SiteKind kind = SiteKind::kPass;
  // Of a pass: whether one of that path ran in the other capture too.
  bool in_other = true;
};

enum class Change : std::uint8_t { kLost, kGained };

// A field that is there (or carried) on one side and absent on the other, where that begins; what follows from it at
// later units is counted, not listed.
struct FieldChange {
  Change change = Change::kLost;
  std::string stage;  // key
  UnitPair units;
  std::size_t of_group = 0;  // 0: a matched pair; else how many alike units there are, `affected` of which changed
  std::size_t affected = 1;
  std::vector<std::string> fields;
  std::uint32_t site = kNoIndex;  // into DiffPart::sites: of the side that lacks it
  std::string reason;  // of the side that lacks it: word of the axis `reason`
  std::size_t followers = 0;  // later units that lack or have a field for this reason
  std::vector<std::string> follower_stages;  // keys, in order
};

enum class DropChange : std::uint8_t {
  kNew,  // NEW loses what OLD had
  kFixed,  // OLD lost what NEW has
  kMoved,  // both lose it, in another pass or at another border
  kShifted,  // both lose it in the same pass, at another line
  kApart,  // NEW loses it on a unit that has no counterpart in OLD, or that is grouped otherwise
};
std::string_view drop_change_name(DropChange v);  // "new", "fixed", "moved", "shifted", "apart"

struct DropDiff {
  DropChange change = DropChange::kNew;
  std::uint32_t old_site = kNoIndex, new_site = kNoIndex;  // into DiffPart::sites
  std::vector<std::pair<UnitPair, std::vector<std::string>>> units;  // where it begins, and the fields
  std::size_t followers = 0;
};

// What a present value is worth on each side, where that differs.
struct QualityChange {
  std::string stage, field;
  UnitPair units;
  Quality was = Quality::kKept, now = Quality::kKept;
  std::uint32_t site = kNoIndex;  // of the side that is not `kept`, where known
  std::size_t followers = 0;
};

// A unit whose stack names another source line than its counterpart's, lines matched.
struct ValueChange {
  std::string stage;
  UnitPair units;
  std::string was, now;  // "model.py:25"
  std::string was_code, now_code;
  std::size_t followers = 0;
};

// How a source line leads to a kernel, best first.
enum class LinkRank : std::uint8_t {
  kRecorded,  // through what the compiler itself keeps
  kSeen,  // partly only through what was seen from outside: a birth, a witness
  kDerived,  // partly through equal lines or neighbours
  kNone,
};
std::string_view link_rank_name(LinkRank v);  // "recorded", "seen", "derived", "none"

struct LinkDiff {
  std::string file;  // of NEW, else of OLD
  std::int64_t line = 0, old_line = 0;  // 0: not there
  std::string code;
  UnitPair kernels;  // or files of a bundle; of a group its first
  LinkRank was = LinkRank::kNone, now = LinkRank::kNone;
  std::uint32_t site = kNoIndex;  // where a unit on the way lost or lacks what would lead on, where known

  bool worse() const { return now > was; }
};

// A unit that the compiler says comes from something, against the witness.
struct TruthDiff {
  bool in_new = false;  // contradicted in NEW only; else in OLD only
  UnitPair units;
  std::string evidence, what;  // "origins"; "model.py:25" or a node's name
};

struct TruthRow {
  std::string stage, unit_class, evidence;
  Score old_lines, new_lines, old_nodes, new_nodes;
};

// One compile of each side.
struct DiffPart {
  CompileId old_compile = CompileId::kNone, new_compile = CompileId::kNone;
  std::string matched_by;  // why the two compiles are held to be the same
  std::vector<StageMatch> stages;  // those that both captured
  std::vector<std::string> stages_only_old, stages_only_new;  // keys: not compared
  std::vector<DiffSite> sites;
  std::vector<FieldChange> fields;
  std::vector<DropDiff> drops;
  std::vector<QualityChange> qualities;
  std::vector<ValueChange> values;
  std::vector<LinkDiff> links;
  std::size_t links_same = 0, lines_unmatched = 0;
  bool witnessed = false;  // both sides
  std::vector<TruthRow> truth;
  std::vector<TruthDiff> contradictions;
  std::size_t unreadable = 0;  // fields that could not be read on a side: not compared
  std::unordered_map<UnitId, UnitLabel> old_labels, new_labels;  // of every unit mentioned
};

struct DiffTotals {
  std::size_t fields_lost = 0, fields_gained = 0;  // where it begins
  std::size_t links_worse = 0, links_better = 0;
  std::size_t drops_new = 0, drops_fixed = 0, drops_moved = 0;  // places
  std::size_t doubts_new = 0, doubts_gone = 0;  // qualities, contradictions
  std::size_t matched = 0, ambiguous = 0, only_old = 0,
              only_new = 0;  // counted over stages; ambiguous: of NEW, all groups

  bool worse() const { return fields_lost + links_worse + drops_new + doubts_new > 0; }
  bool same() const { return !worse() && fields_gained + links_better + drops_fixed + drops_moved + doubts_gone == 0; }
};

struct Diff {
  std::vector<Difference> unlike;  // incomparable(): compared all the same
  std::vector<Difference> settings;
  // Of `settings`, the only one that can matter; kNoIndex where there is none or are several: then no setting is
  // blamed.
  std::uint32_t cause = kNoIndex;
  std::vector<DiffPart> parts;
  std::vector<CompileId> only_old, only_new;
  std::size_t not_witnessed = 0;  // 0: both or neither was; 1: OLD was not, 2: NEW was not
  DiffTotals totals;
};

// Compares what can be matched, whatever incomparable() says. Of `options` the stages count; none: every one that both
// captured, but kernels that are seen as bundle files. kUsage: a stage that one of the captures does not have.
Expected<Diff> diff(const Capture& old, const Capture& now, const AnalysisOptions& options = {});

}  // namespace kerntrail
