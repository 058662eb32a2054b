// Where provenance was lost: for each counted unit and tracked field of each stage, whether it is there and how good it
// is, or why it is absent; each loss once, with the pass and the line of the compiler that it is charged to.
// Four axes, never mixed: state (capture.h), reason of an absent field, fate of a unit, quality of a present value.
// What each word means: analyse/rules.h (docs/rules.md).
// Must not know: output formats.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/options.h"

namespace kerntrail {

// Why a field is absent from a unit.
enum class Reason : std::uint8_t {
  kNotCreatedYet,
  kCarriedBy,  // inside another field of this very unit
  kDropped,  // it, or a unit it was made from, had the field
  kInheritedGap,  // made from units none of which had it
  kNeverMade,  // nothing before could have had it, and nothing made it
  kOrphan,  // nothing links it to a source
  kSynthesised,  // declared by an intent
  kUnknown,
};
inline constexpr std::size_t kReasons = 8;

// How good a present value is.
enum class Quality : std::uint8_t { kKept, kCollapsed, kOverwritten, kVacuous, kCompilerMade, kConflict };
inline constexpr std::size_t kQualities = 6;

// What became of a unit over an interval that it entered.
enum class Fate : std::uint8_t { kSurvived, kReplaced, kMerged, kElided, kFolded, kDead, kUnseen };
inline constexpr std::size_t kFates = 7;

std::string_view reason_name(Reason v);  // "not_created_yet", "carried_by", ...
std::string_view quality_name(Quality v);  // "kept", ..., "compiler_made", ...
std::string_view fate_name(Fate v);  // "survived", ...

// What a pass does on purpose. synthesises: its new units need no source. removes: what it takes away needs no
// survivor. remaps: it may change or drop the listed fields.
enum class IntentKind : std::uint8_t { kSynthesises, kRemoves, kRemaps };
std::string_view intent_kind_name(IntentKind v);

struct Intent {
  // As drops shows it: "outer / inner", the last parts of that, or the innermost name. A final "*" of a part stands for
  // any rest of that part.
  std::string pass;
  IntentKind kind = IntentKind::kSynthesises;
  std::string reason;  // why this is by design
  std::string subsystem;  // only passes of this group; empty: any
  std::string pattern;  // only units made by this pattern; empty: any
  std::vector<std::string> targets;  // only units whose target starts with one of these; empty: any
  std::vector<std::string> fields;  // of remaps: the fields; empty: all
  std::string origin;  // "built-in", or the file that declares it
};

const std::vector<Intent>& builtin_intents();
// A user's file (schemas/intents.schema.json). Errors name line, column and place: "mine.json:7:13: intents[2].kind:
// ...".
Expected<std::vector<Intent>> parse_intents(std::string_view json, std::string_view path);

// An intent that can't cover anything of a capture: what it names is not there.
struct IdleIntent {
  std::size_t intent = 0;  // index into the list that was asked about
  std::string_view member;  // "pass", "subsystem", "pattern" or "fields": the one that names nothing
  std::string named;  // what it says there
  std::vector<std::string> known;  // what the capture has instead, each once
};
std::vector<IdleIntent> idle_intents(const Capture& capture, const std::vector<Intent>& intents);

struct DropOptions {
  AnalysisOptions analysis;  // no stages named: every captured one, but kernels that are seen as bundle files
  std::vector<Intent> intents;  // beside the built-in ones
};

enum class SiteKind : std::uint8_t {
  kPass,  // in a pass, or in one of the compiler's own functions around passes
  kGap,  // between two looks at a graph, by something that is no pass
  kBorder,  // between two stages, nothing closer is known
  kTracing,  // while a graph was interpreted to make another
  kCopy,  // while a graph was copied or cut
};
std::string_view site_kind_name(SiteKind v);  // "pass", "gap", "border", "tracing", "copy"

// A place in the compile to which losses are charged.
struct DropSite {
  SiteKind kind = SiteKind::kPass;
  PassId pass = PassId::kNone;
  std::string from, to;  // keys of the stages it lies between, where known
  std::string after_pass;  // of a border: the last pass seen before it
  std::string title;  // "pass_pattern_0", "between fx_aten and fx_post_grad"
  std::string subsystem;  // the compiler's group of passes
  std::string pattern;  // of a match
  bool by_pass = false;  // `line` is that of the whole pass, as nothing closer is known: no line of the change itself
  bool by_call = false;  // of by_pass: where the pass is called, not where its function is defined
  LocId line = LocId::kNone;  // responsible line; of a match, where the function that writes the replacement is defined
  LocId chain = LocId::kNone;  // the compiler's frames, innermost first
  std::string place;  // "file:line (function)" of `line`; empty where unknown
  std::vector<std::string> frames;  // places of `chain`, innermost first
  SnapshotId at = SnapshotId::kNone;  // the look that first shows what happened
};

enum class LossWay : std::uint8_t {
  kInPlace,  // the unit itself had the field before
  kAtBirth,  // units it was made from had it
  kLowering,  // units of the stage before, that it comes from, had it
};
std::string_view loss_way_name(LossWay v);  // "in_place", "at_birth", "from_stage"

// One field of one unit, lost at one place.
struct Loss {
  UnitId unit = UnitId::kNone;
  AttrId field = AttrId::kNone;
  std::uint32_t site = 0;  // index into Drops::sites
  LossWay way = LossWay::kInPlace;
  std::string_view evidence;  // what names the sources: "match", "replacement", ..., "from-node", "link"; static text
  std::vector<UnitId> had;  // the sources that had it, or the unit itself
  std::size_t sources = 0;  // how many sources the evidence names
  SnapshotId before = SnapshotId::kNone;  // look at which they had it
  bool in_stage = false;  // a stage shown here has the unit without the field; else only others' gaps do
  std::vector<UnitId> heirs;  // units of the stages shown, made of this one, that lack the field for this reason alone
};

// A present value that is not simply kept, of the unit where it came about.
struct Mark {
  UnitId unit = UnitId::kNone;
  AttrId field = AttrId::kNone;
  Quality quality = Quality::kKept;
  std::uint32_t site = kNoIndex;  // where it came about, where that is known
  std::string_view evidence;  // of overwritten and collapsed at birth
  std::vector<UnitId> others;  // overwritten in place: whose value it has now; at birth: the sources whose value was
                               // given up; conflict: those that `from_node` or the origins lead to, whichever field
                               // the mark is of
  bool swapped = false;  // overwritten: one of `others` has this unit's former value
  bool after_stages = false;  // came about after the last stage that shows the unit: no stage counts it
  std::size_t sources = 0;  // at birth: sources that say something
  std::size_t different = 0;  // at birth: different things that they say
  std::vector<UnitId> heirs;  // units of the stages shown, made of this one, that have their value from it
  std::string was, now;  // short texts of the values, where they can be told; conflict: what the other field says (the
                         // first thing), and what this one says
  std::vector<std::string> given_up;  // at birth, and of a conflict: each thing that `others` say, once
  AttrId against = AttrId::kNone;  // conflict: the other field; else one that is in conflict with this for that alone
};

// A unit that nothing links to a source: what it lacks was lost with the link, and no loss is charged for it.
struct Orphan {
  UnitId unit = UnitId::kNone;
  std::uint32_t site = kNoIndex;  // where it was made, where that is known
  std::vector<AttrId> fields;  // that it, or the units made of it, lack for this reason
  bool in_stage = false;  // a stage shown here has the unit; else only others' gaps lead to it
  std::vector<UnitId> heirs;  // units of the stages shown, made of this one, that lack a field for this reason alone
};

// A field of a unit that an intent accounts for: no loss.
struct DeclaredUse {
  UnitId unit = UnitId::kNone;
  AttrId field = AttrId::kNone;
  PassId pass = PassId::kNone;  // kNone: passes were not recorded, and the intent's may be it
  std::uint32_t intent = 0;  // index into Drops::intents
};

struct FieldUnit {
  UnitId unit = UnitId::kNone;
  State state = State::kNoSlot;
  Quality quality = Quality::kKept;  // state present
  Reason reason = Reason::kUnknown;  // state empty or no_slot
  std::string_view carrier;  // carried_by: in which field; static text
  std::uint32_t loss = kNoIndex;  // dropped: it; inherited_gap: its root, where that is a loss
  std::uint32_t mark = kNoIndex;  // present: into Drops::marks; of another unit where the value came from that
  Reason root = Reason::kUnknown;  // inherited_gap: why the first source lacks it
  bool guessed = false;  // unknown: nothing but equal lines or neighbours suggests what the unit was made of
  UnitId orphan = UnitId::kNone;  // orphan: the unit itself; inherited_gap: its root, where that is an orphan
};

// present + absent + unreadable = units; qualities sum to present, reasons to absent.
struct FieldTally {
  AttrId attr = AttrId::kNone;
  std::string name, layer;
  bool created = true;
  std::size_t present = 0, absent = 0, unreadable = 0;
  std::array<std::size_t, kQualities> qualities{};
  std::array<std::size_t, kReasons> reasons{};
  std::vector<FieldUnit> units;  // in the stage's order

  std::size_t of(Reason r) const { return reasons[static_cast<std::size_t>(r)]; }
  std::size_t of(Quality q) const { return qualities[static_cast<std::size_t>(q)]; }
};

struct StageTally {
  StageId stage = StageId::kNone;
  std::string key, title, noun;
  std::size_t units = 0;
  std::vector<FieldTally> fields;
};

struct UnitFate {
  UnitId unit = UnitId::kNone;
  Fate fate = Fate::kDead;
  UnitId by = UnitId::kNone;  // replacement, survivor, input or constant that took over its uses
  bool declared = false;  // an intent of kind removes names the pass
};

// What one pass did. `fates` sum to the units that entered it and left.
struct PassTally {
  PassId pass = PassId::kNone;
  std::size_t created = 0, left = 0, changed = 0, retargeted = 0;
  std::array<std::size_t, kFates> fates{};
  std::vector<UnitFate> leavers;
  std::size_t losses = 0, marks = 0, findings = 0;
};

// From a stage to the next of the same layer; fates sum to the counted units of the first.
struct StageInterval {
  std::string from, to;
  std::size_t entering = 0;
  std::array<std::size_t, kFates> fates{};
  std::vector<UnitFate> leavers;
};

enum class ObserverRule : std::uint8_t {
  kOriginsDropped,  // a: a unit lost some of its origins
  kOriginNodeLost,  // b: it lost its representative origin without a fusion of this pass
  kHistoryCut,  // c: its earlier transform records are no longer all there, in order
  kCreatedSourceless,  // d: a new unit has no origins
  kVanished,  // e: a unit went, and no survivor holds all it held
};
std::string_view observer_rule_id(ObserverRule v);  // "a" to "e"

// A broken rule of passes over IR: every one is kept, several a pass and unit.
struct ObserverFinding {
  ObserverRule rule = ObserverRule::kOriginsDropped;
  PassId pass = PassId::kNone;
  UnitId unit = UnitId::kNone;  // as it was before the pass (d: the new unit)
  UnitId now = UnitId::kNone;  // the unit that stands for it afterwards, where that is another object
  std::vector<UnitId> lost;  // a, b, e: origins that are gone
  std::size_t total = 0;  // a, e: origins it had
  std::uint32_t intent = kNoIndex;  // declared: shown, not counted
};

// How to spell a unit and a pass that the result mentions.
struct UnitLabel {
  std::string id;  // "c0.n3"
  std::string name;  // as last seen; empty where it has none
  std::string target;  // what it calls, as first seen; may be empty
};

struct PassLabel {
  std::string name, subsystem, place;
  std::vector<std::string> within;  // passes around it, innermost first
  PassKind kind = PassKind::kPass;
  std::string graph;  // that it ran on: "c0.g3"
  std::string graph_path;  // of a sub-graph; empty for an outermost graph
};

// What a reader must know of the capture before believing that something is not in it.
struct CaptureState {
  bool torn = false;  // no end record
  bool partial = false;  // the end record says that something was lost
  std::string torn_note;  // where it broke off
  std::string level;  // that it was recorded at; empty where its header does not say
};
CaptureState capture_state(const Capture& capture);

// One compile, or one direction of it. Spells all that it mentions, so that writers need no capture.
struct Drops {
  CompileId compile = CompileId::kNone;
  std::string direction;
  CaptureState state;
  bool passes_recorded = false;  // passes were watched, whether or not one is in the capture
  bool all_stages = true;  // not only those that were asked for
  std::vector<Note> notes;  // of this compile, about what was not observed
  std::vector<StageTally> stages;
  std::vector<DropSite> sites;  // in the order in which they show
  std::vector<Loss> losses;  // by site, unit, field
  std::vector<Mark> marks;
  std::vector<Orphan> orphans;  // by site, unit; those whose site is not known last
  std::vector<Intent> intents;  // built-in, then the caller's
  std::vector<DeclaredUse> declared;
  std::vector<PassTally> passes;  // that made, changed or erased something, or that something is charged to
  std::vector<StageInterval> intervals;  // empty unless passes were recorded
  std::vector<ObserverFinding> findings;
  std::vector<std::string> fields;  // names, by AttrId
  std::unordered_map<UnitId, UnitLabel> units;
  std::unordered_map<PassId, PassLabel> pass_labels;
};

// One a compile and direction that was observed. kUsage: a stage or compile that the capture does not have.
Expected<std::vector<Drops>> drops(const Capture& capture, const DropOptions& options = {});

enum class DropGrouping : std::uint8_t { kPass, kLine, kField, kUnit };

struct DropGroup {
  std::string title;  // pass, place, field or unit
  std::vector<std::uint32_t> losses;  // indices
  std::vector<std::uint32_t> marks;
};

// Every loss and every mark with a site exactly once (by field and unit: every mark). By pass: a pass is one group, however
// often and on however many graphs it ran.
std::vector<DropGroup> group_drops(const Drops& drops, DropGrouping by);

// "file:line (function)" of the innermost frame of a location; empty where it has none.
std::string place_text(const Capture& capture, LocId loc);

}  // namespace kerntrail
