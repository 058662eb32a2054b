// A capture as plain values: all that was observed in one run, as facts. Readers fill it, analyses walk it.
// Ids are dense indices into the capture's own tables; their text forms ("c0.n3") are made by the functions below.
// Must not know: torch, Spyre, file formats, conclusions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail {

inline constexpr int kFormatVersion = 1;
inline constexpr std::uint32_t kNoIndex = 0xFFFFFFFFU;

enum class TextId : std::uint32_t { kNone = kNoIndex };
enum class LocId : std::uint32_t { kNone = kNoIndex };
enum class StageId : std::uint32_t { kNone = kNoIndex };
enum class AttrId : std::uint32_t { kNone = kNoIndex };
enum class CompileId : std::uint32_t { kNone = kNoIndex };
enum class GraphId : std::uint32_t { kNone = kNoIndex };
enum class UnitId : std::uint32_t { kNone = kNoIndex };
enum class SnapshotId : std::uint32_t { kNone = kNoIndex };
enum class PassId : std::uint32_t { kNone = kNoIndex };

template <class Id>
constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}
template <class Id>
constexpr bool has(Id id) {
  return id != Id::kNone;
}
template <class Id>
constexpr Id id_at(std::size_t i) {
  return static_cast<Id>(static_cast<std::uint32_t>(i));
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// Run setting `level` of a capture that was read from the files of a bundle, not recorded from a compile.
inline constexpr std::string_view kFilesLevel = "files";

// Who wrote the capture and the settings that change provenance (level, caches, backend, metadata rule, ...).
struct RunInfo {
  int format_version = kFormatVersion;
  std::string tool;
  std::string torch;
  std::string python;
  std::string platform;
  Settings settings;
};

// A place in the pipeline where the probe looks. Columns follow `order`.
struct Stage {
  std::string key;    // "fx_pre_grad"
  std::string title;  // "FX Graph (pre-grad)"
  std::string noun;   // one unit of it: "compute node"
  std::string layer;  // "FX", "IR", "Spyre", "backend", "source"
  int order = 0;
};

enum class ValueType : std::uint8_t { kText, kStack, kRef, kRefs, kOp, kModules, kNodeSources, kHandle, kLoc, kJson };

// Something observed of units. `provenance`: tracked in matrix and tables; the rest is inventory.
struct AttrKind {
  std::string name;
  ValueType type = ValueType::kText;
  std::string layer;        // where the field lives: "FX", "IR", "Spyre"; empty for inventory
  std::string first_stage;  // key of the stage where the field comes to exist; may name a stage not captured
  bool provenance = false;
};

enum class HookState : std::uint8_t { kInstalled, kAbsent, kFailed };

struct HookRecord {
  std::string label;      // stable name of the row in the hook table
  std::string attribute;  // "torch._inductor.compile_fx._recursive_post_grad_passes"
  HookState state = HookState::kInstalled;
  std::string detail;  // reason when absent or failed
  std::string lost;    // what the capture lacks without it
  std::uint64_t fired = 0;
  std::uint64_t errors = 0;
  std::string last_error;
  bool restored = true;  // the original was found and put back by identity
};

enum class LocKind : std::uint8_t { kRange, kCall, kFused, kNamed, kOpaque };
enum class FrameClass : std::uint8_t { kUnknown, kUser, kLibrary, kCompiler, kGenerated };
// Which rule gave the class: file below torch's own packages, below site-packages or the standard library, a name
// that is no file ("<eval>"), or none of these.
enum class FrameRule : std::uint8_t { kNone, kTorchPath, kSitePackages, kStandardLibrary, kNotAFile, kElsewhere };

struct Loc {
  LocKind kind = LocKind::kOpaque;
  // range: text = file (relative to the working directory where below it), function, code = the line as the trace
  // printed it. named: text = name, child. opaque: text. call: child = callee (inner), caller (outer). fused: parts.
  TextId text = TextId::kNone;
  TextId function = TextId::kNone;
  TextId code = TextId::kNone;
  std::int64_t line = 0;  // 1-based; 0 = unknown
  std::int64_t col = -1;  // 0-based; -1 = unknown
  std::int64_t end_line = 0;
  std::int64_t end_col = -1;
  FrameClass frame_class = FrameClass::kUnknown;
  FrameRule rule = FrameRule::kNone;
  LocId child = LocId::kNone;
  LocId caller = LocId::kNone;
  std::vector<LocId> parts;

  bool operator==(const Loc&) const = default;
};

// One call of the backend for one Dynamo graph, in the order they begin.
struct Compile {
  std::string torch_id;  // torch's own compile id, e.g. "0/0"; repeats after a reset
  std::int64_t attempt = 0;
  std::string backend;   // "inductor", "kerntrail_spyre"
  Settings attributes;
};

// One container of units: an FX graph, the operations of a lowering, the OpSpecs or kernels of a compile.
struct Graph {
  CompileId compile = CompileId::kNone;
  std::uint32_t ordinal = 0;  // counted per compile: "c0.g2"
  std::string kind;           // "fx", "ir", "op_spec", "kernel", "bundle"
  std::string direction;      // "none", "joint", "forward", "backward", "inference"
  std::string path;           // sub-graph path inside its parent, empty for the root
};

enum class UnitKind : std::uint8_t { kFxNode, kOperation, kGroup, kOpSpec, kKernel, kKernelCall, kBundleFile, kOther };

struct Unit {
  GraphId graph = GraphId::kNone;
  UnitKind kind = UnitKind::kOther;
  std::uint32_t ordinal = 0;   // counted per compile and kind
  std::string seen_only_as;    // why it exists although no snapshot holds it; empty for ordinary units
};

// What was seen in a slot. present: something in it; empty: the slot is there and holds None or an empty container;
// no_slot: no such slot (an attr without a record is no_slot too); unreadable: the read failed.
// hasattr is therefore `state != no_slot`.
enum class State : std::uint8_t { kPresent, kEmpty, kNoSlot, kUnreadable };

// Which of the parts are used depends on the attr kind's ValueType:
// text, op: text · stack: text (as found) + loc (call chain, innermost first) · ref, refs: refs · loc: loc ·
// modules, node_sources, handle, json: text = compact JSON (+ refs of node_sources resolved to units, + loc).
struct Observation {
  State state = State::kNoSlot;
  TextId python_type = TextId::kNone;  // type(value).__name__
  TextId repr = TextId::kNone;         // repr(value) without addresses, at most 200 code points, where not derivable
  TextId text = TextId::kNone;
  LocId loc = LocId::kNone;
  std::vector<UnitId> refs;

  bool operator==(const Observation&) const = default;
};

// One look at one graph. A stage border looks at every unit; the end of a pass only at those the pass made or changed
// (and at sources of theirs that did not live until its end), with `pass` set instead of `stage`.
struct Snapshot {
  StageId stage = StageId::kNone;
  GraphId graph = GraphId::kNone;
  std::vector<UnitId> units;  // in the container's order
  std::uint64_t digest = 0;   // over (unit, attr, state, value) as taken from the live objects
  bool full = false;          // every attr was written, not only differences
  PassId pass = PassId::kNone;
};

// How the compiler came to a change. pass: a pass of the compiler or of a back end. stage: one of the compiler's own
// functions around passes. gap: changes found between two looks that no pass accounts for.
enum class PassKind : std::uint8_t { kPass, kStage, kGap };

// One run of one compiler pass on one graph. Passes nest; each node belongs to the innermost pass that saw it made.
struct Pass {
  GraphId graph = GraphId::kNone;
  // As the compiler calls it; of a slot for passes of the caller's "slot / name of what is in it"; of a gap: the two
  // looks it lies between.
  std::string name;
  std::string subsystem;  // the compiler's group of passes, "post_grad_passes"; may be empty
  PassKind kind = PassKind::kPass;
  PassId parent = PassId::kNone;
  LocId loc = LocId::kNone;                  // where the pass is defined, or was called, where known
  SnapshotId first_look = SnapshotId::kNone; // the next snapshot to be taken when it began
  // Known at its end; a pass that never ends (the compile raised, the file is torn) has `ended` false.
  bool ended = false;
  SnapshotId last_look = SnapshotId::kNone;  // its own look; kNone where nothing was made or changed
  std::vector<UnitId> created, erased;
  std::vector<UnitId> changed;     // survived with other tracked fields
  std::vector<UnitId> retargeted;  // survived with another target
  std::vector<std::pair<UnitId, UnitId>> replaced;  // every use of the first was given to the second
};

// Why a unit exists: one piece of evidence for where it came from. A unit may have several of different kinds.
// match: made while a pattern was applied to `sources`. replacement: it took over the uses of `sources`. users: units
// made of it did. frame: made while the compiler interpreted `sources`. copy: a copy of `sources`. sequence: a backward
// node of these forward nodes, by autograd's number. rewrite, fusion, decomposition: declared by the pass itself.
// created: nothing is known of its sources.
struct Birth {
  UnitId unit = UnitId::kNone;
  PassId pass = PassId::kNone;  // innermost pass it was made in; kNone outside any
  std::string evidence;
  std::string pattern;  // of a match: the pattern's name
  LocId pattern_loc = LocId::kNone;  // of a match: where the function that writes the replacement is defined
  LocId loc = LocId::kNone;  // the compiler's frames that made it, innermost first, from the responsible one on
  std::vector<UnitId> sources;
};

// Two sides of one call: exact. Kinds: "create_op_spec" (operation -> OpSpec), "define_kernel" (operations ->
// kernel), "bundle_file" (kernel -> file, in bundle order), "print_op_specs" (OpSpecs -> kernel, in the order of its
// text, each time that text was generated), "fuse" (operations -> scheduler group), "emit_kernel" (groups
// -> kernel), "call_kernel" (kernel -> call, in program order).
struct Link {
  std::string kind;
  std::vector<UnitId> from;
  std::vector<UnitId> to;
};

// Who says that `kernel` comes from `units`. Claimants are never mixed.
struct Claim {
  UnitId kernel = UnitId::kNone;
  std::string claimant;  // "compiler"
  std::string evidence;  // "origins": of the operations it was made from; "mapping": the compiler's own node mapping
  std::vector<UnitId> units;
};

enum class Severity : std::uint8_t { kInfo, kWarning, kError };

// A diagnostic with a stable code: what was not observed and why, what failed, what was refused.
struct Note {
  std::string code;
  Severity severity = Severity::kInfo;
  std::string text;
  CompileId compile = CompileId::kNone;
  GraphId graph = GraphId::kNone;
};

// Differs from run to run; digests and comparisons ignore it. `of` is the text id of what it belongs to, or "run".
struct Volatile {
  std::string of;
  std::string key;
  std::string value;
};

// User source embedded in the capture (never library files).
struct SourceFile {
  std::string file;  // as in Loc ranges
  std::string sha256;  // of the whole file at capture time; empty where it could not be read
  std::map<std::int64_t, std::string> lines;  // 1-based; all of them for --source files
};

struct EndRecord {
  bool complete = false;  // false: "partial", something was lost; notes say what
  std::map<std::string, std::uint64_t> counts;  // records by kind
};

std::string_view value_type_name(ValueType v);
std::optional<ValueType> value_type_from_name(std::string_view name);
std::string_view state_name(State v);
std::optional<State> state_from_name(std::string_view name);
std::string_view hook_state_name(HookState v);
std::optional<HookState> hook_state_from_name(std::string_view name);
std::string_view loc_kind_name(LocKind v);
std::optional<LocKind> loc_kind_from_name(std::string_view name);
std::string_view frame_class_name(FrameClass v);
std::optional<FrameClass> frame_class_from_name(std::string_view name);
std::string_view frame_rule_name(FrameRule v);
std::optional<FrameRule> frame_rule_from_name(std::string_view name);
std::string_view unit_kind_name(UnitKind v);
std::optional<UnitKind> unit_kind_from_name(std::string_view name);
char unit_kind_letter(UnitKind v);  // n o s p k l f u
std::string_view pass_kind_name(PassKind v);
std::optional<PassKind> pass_kind_from_name(std::string_view name);
std::string_view severity_name(Severity v);
std::optional<Severity> severity_from_name(std::string_view name);

// The whole of a capture, replayed. Filled through model/replay.h; read-only for everybody else.
class Capture {
 public:
  RunInfo run;
  std::vector<Stage> stages;  // by StageId, in declaration order; use stages_in_order() for columns
  std::vector<AttrKind> attr_kinds;  // by AttrId
  std::vector<HookRecord> hooks;  // final state of each hook (start record, then updated by the end record)
  std::vector<std::string> texts;  // by TextId
  std::vector<bool> text_is_json;
  std::vector<Loc> locs;  // by LocId
  std::vector<Compile> compiles;  // by CompileId; "c0" is index 0
  std::vector<Graph> graphs;  // by GraphId
  std::vector<Unit> units;  // by UnitId
  std::vector<Snapshot> snapshots;  // by SnapshotId, in the order they were taken
  std::vector<Pass> passes;  // by PassId, in the order they began
  std::vector<Birth> births;  // in file order
  std::vector<Link> links;
  std::vector<Claim> claims;
  std::vector<Note> notes;
  std::vector<Volatile> volatiles;
  std::vector<SourceFile> sources;
  std::optional<EndRecord> end;  // absent: the capture is torn

  // What was known of (unit, attr) at a snapshot; nullptr = no_slot. The unit need not be in that snapshot.
  const Observation* at(UnitId unit, AttrId attr, SnapshotId snapshot) const;
  // All attrs of a unit at a snapshot, in AttrId order, no_slot left out.
  std::vector<std::pair<AttrId, const Observation*>> attrs_at(UnitId unit, SnapshotId snapshot) const;
  void set(UnitId unit, AttrId attr, SnapshotId since, Observation observation);
  // Every recorded state of (unit, attr), oldest first: visit(since, observation). A state written again is a version
  // too.
  template <class Visit>
  void each_version(UnitId unit, AttrId attr, Visit&& visit) const {
    if (index(unit) >= versions_.size()) return;
    const auto& list = versions_[index(unit)];
    auto version =
        std::lower_bound(list.begin(), list.end(), attr, [](const Version& v, AttrId a) { return v.attr < a; });
    for (; version != list.end() && version->attr == attr; ++version) visit(version->since, version->observation);
  }

  std::optional<StageId> find_stage(std::string_view key) const;
  std::optional<AttrId> find_attr(std::string_view name) const;
  std::vector<StageId> stages_in_order() const;
  // Snapshots of a compile at a stage, in the order they were taken (several graphs: several snapshots).
  std::vector<SnapshotId> snapshots_of(CompileId compile, StageId stage) const;
  CompileId compile_of(UnitId unit) const;
  CompileId compile_of(SnapshotId snapshot) const;

  // Records among which all of one compile's are: those of other compiles may stand between them where two were under
  // way at once. Everything where the ranges were never noted. A link is of the compiles of its `to`.
  struct Range {
    std::size_t first = 0, last = 0;  // [first, last)
  };
  Range units_of(CompileId compile) const { return range_of(compile, &CompileRanges::units, units.size()); }
  Range snapshots_near(CompileId compile) const {
    return range_of(compile, &CompileRanges::snapshots, snapshots.size());
  }
  std::span<const Link> links_of(CompileId compile) const {
    return part(links, range_of(compile, &CompileRanges::links, links.size()));
  }
  std::span<const Birth> births_of(CompileId compile) const {
    return part(births, range_of(compile, &CompileRanges::births, births.size()));
  }
  std::span<const Claim> claims_of(CompileId compile) const {
    return part(claims, range_of(compile, &CompileRanges::claims, claims.size()));
  }
  // Notes them; to be called again after records were added.
  void note_ranges();

  std::string_view text(TextId id) const { return has(id) ? std::string_view(texts[index(id)]) : std::string_view(); }
  const Loc* loc(LocId id) const { return has(id) ? &locs[index(id)] : nullptr; }
  // Text attr helpers: empty where absent.
  std::string_view text_of(UnitId unit, std::string_view attr, SnapshotId snapshot) const;
  // The innermost range of a chain whose class is user; else the innermost range; else nullptr.
  const Loc* innermost_user(LocId chain) const;

 private:
  struct Version {
    AttrId attr;
    SnapshotId since;
    Observation observation;
  };
  struct CompileRanges {
    Range units, snapshots, links, births, claims;
  };

  Range range_of(CompileId compile, Range CompileRanges::* of, std::size_t all) const {
    return index(compile) < ranges_.size() ? ranges_[index(compile)].*of : Range{0, all};
  }
  template <class T>
  static std::span<const T> part(const std::vector<T>& list, const Range& range) {
    return std::span(list).subspan(range.first, range.last - range.first);
  }

  std::vector<std::vector<Version>> versions_;  // by UnitId, sorted by attr, then snapshot
  std::vector<CompileRanges> ranges_;  // by CompileId
};

// "c0", "c0.g1", "c0.n3"
std::string compile_name(CompileId id);
// `stage "fx_aten"` or `pass 12 "remove_noop_ops"`.
std::string look_text(const Capture& capture, const Snapshot& snapshot);
std::string graph_name(const Capture& capture, GraphId id);
std::string unit_name(const Capture& capture, UnitId id);

}  // namespace kerntrail
