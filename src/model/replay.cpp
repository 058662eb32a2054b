#include "model/replay.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "base/hash.h"
#include "model/digest.h"
#include "model/records.h"

namespace kerntrail::model {
namespace {

constexpr std::size_t kUnitKinds = 8;

struct Current {
  AttrId attr;
  std::uint64_t contribution;
};

}  // namespace

struct Replay::State_ {
  ReplayOptions options;
  Capture capture;
  std::optional<Error> error;
  std::string path;
  std::uint64_t line = 0;
  RecordCounts counts;
  ContentHashes hashes;
  std::unordered_map<std::string, std::size_t> stage_keys, attr_names, hook_labels, source_files;
  std::vector<bool> hook_ended;
  std::vector<std::uint32_t> graphs_of;                          // by CompileId: graphs so far
  std::vector<std::array<std::uint32_t, kUnitKinds>> units_of;   // by CompileId and kind: units so far
  std::vector<AttrChange> pending;                               // attr records not yet closed by their snapshot
  std::vector<std::uint64_t> pending_lines;
  std::vector<std::vector<Current>> current;                     // by UnitId: what each attr adds to `sums`
  std::vector<std::uint64_t> sums;                               // by UnitId
  std::vector<std::uint32_t> in_snapshot;                        // by UnitId: the last snapshot that held it

  // True if the record may be looked at: nothing failed before, and it stands where it may stand.
  bool accept(RecordKind kind);
  bool refuse(ErrorCode code, std::string message);
  bool check_id(std::size_t given, std::size_t expected, std::string_view what);
  bool check_texts(std::initializer_list<TextId> ids);
  bool check_loc(LocId id);
  void end_pass(PassId id, const Pass& done);
  bool check_units(const std::vector<UnitId>& ids, std::string_view where);
  bool check_observation(const Observation& value);
  bool check_members(SnapshotId id, const Snapshot& snapshot);
  bool check_look(const Snapshot& snapshot);
  bool check_of_compile(const std::vector<UnitId>& ids, CompileId compile);
  void apply(AttrChange change);
  void forget_unwritten(const Snapshot& snapshot);
  std::uint64_t digest_of(const Snapshot& snapshot);
  std::string name(UnitId id) const { return unit_name(capture, id); }
};

bool Replay::State_::refuse(ErrorCode code, std::string message) {
  if (!error) error = Error{code, std::move(message), path, line};
  return false;
}

bool Replay::State_::accept(RecordKind kind) {
  if (error) return false;
  if (capture.end) return refuse(ErrorCode::kSchema, "a record follows the end record");
  const bool first = counts.total() == 0;
  if (first != (kind == RecordKind::kRun)) {
    return refuse(ErrorCode::kSchema,
                  first ? fmt::format("the first record must be \"run\", not \"{}\"", record_kind_name(kind))
                        : "a second run record");
  }
  if (kind != RecordKind::kEnd) counts.add(kind);
  return true;
}

bool Replay::State_::check_id(std::size_t given, std::size_t expected, std::string_view what) {
  if (given == expected) return true;
  if (given < expected) return refuse(ErrorCode::kReference, fmt::format("{} {} was declared before", what, given));
  return refuse(ErrorCode::kReference,
                fmt::format("{} {} is declared where {} {} comes next", what, given, what, expected));
}

bool Replay::State_::check_texts(std::initializer_list<TextId> ids) {
  for (const TextId id : ids) {
    if (has(id) && index(id) >= capture.texts.size())
      return refuse(ErrorCode::kReference, fmt::format("text {} was never declared", index(id)));
  }
  return true;
}

bool Replay::State_::check_loc(LocId id) {
  if (!has(id) || index(id) < capture.locs.size()) return true;
  return refuse(ErrorCode::kReference, fmt::format("loc {} was never declared", index(id)));
}

bool Replay::State_::check_units(const std::vector<UnitId>& ids, std::string_view where) {
  for (const UnitId id : ids) {
    if (index(id) >= capture.units.size())
      return refuse(ErrorCode::kReference, fmt::format("{} names a unit that was never declared", where));
  }
  return true;
}

bool Replay::State_::check_observation(const Observation& v) {
  return check_texts({v.python_type, v.repr, v.text}) && check_loc(v.loc) && check_units(v.refs, "refs");
}

Replay::Replay(ReplayOptions options) : state_(std::make_unique<State_>()) { state_->options = options; }
Replay::~Replay() = default;

void Replay::set_position(std::string path, std::uint64_t line) {
  state_->path = std::move(path);
  state_->line = line;
}

void Replay::set_line(std::uint64_t line) { state_->line = line; }
const Error* Replay::error() const { return state_->error ? &*state_->error : nullptr; }
const Capture& Replay::capture() const { return state_->capture; }
Capture Replay::take() {
  state_->capture.note_ranges();
  return std::move(state_->capture);
}

void Replay::run(const RunInfo& run) {
  if (state_->error) return;
  if (run.format_version > kFormatVersion) {
    state_->refuse(ErrorCode::kTooNew, fmt::format("has format version {}; this build reads up to version {}",
                                                   run.format_version, kFormatVersion));
  } else if (run.format_version < 1) {
    state_->refuse(ErrorCode::kSchema, fmt::format("format version {} does not exist", run.format_version));
  }
  if (state_->accept(RecordKind::kRun)) state_->capture.run = run;
}

void Replay::stage(StageId id, const Stage& stage) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kStage)) return;
  if (stage.key.empty()) {
    s.refuse(ErrorCode::kSchema, "a stage has an empty key");
  } else if (!s.stage_keys.emplace(stage.key, s.capture.stages.size()).second) {
    s.refuse(ErrorCode::kReference, fmt::format("stage \"{}\" was declared before", stage.key));
  } else if (s.check_id(index(id), s.capture.stages.size(), "stage")) {
    s.capture.stages.push_back(stage);
  }
}

void Replay::attr_kind(AttrId id, const AttrKind& kind) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kAttrKind)) return;
  if (kind.name.empty()) {
    s.refuse(ErrorCode::kSchema, "an attr kind has an empty name");
  } else if (!s.attr_names.emplace(kind.name, s.capture.attr_kinds.size()).second) {
    s.refuse(ErrorCode::kReference, fmt::format("attr \"{}\" was declared before", kind.name));
  } else if (s.check_id(index(id), s.capture.attr_kinds.size(), "attr")) {
    s.hashes.add_attr(kind.name);
    s.capture.attr_kinds.push_back(kind);
  }
}

void Replay::hook(const HookRecord& hook, bool at_end) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kHook)) return;
  const auto [found, fresh] = s.hook_labels.emplace(hook.label, s.capture.hooks.size());
  if (!at_end) {
    if (!fresh)
      return static_cast<void>(
          s.refuse(ErrorCode::kReference, fmt::format("hook \"{}\" was declared before", hook.label)));
    s.capture.hooks.push_back(hook);
    s.hook_ended.push_back(false);
    return;
  }
  if (fresh)
    return static_cast<void>(
        s.refuse(ErrorCode::kReference, fmt::format("hook \"{}\" ends but never started", hook.label)));
  if (s.hook_ended[found->second])
    return static_cast<void>(s.refuse(ErrorCode::kReference, fmt::format("hook \"{}\" ended before", hook.label)));
  s.hook_ended[found->second] = true;
  // The closing record repeats what it knows; what it leaves out stays as it was at the start.
  HookRecord& kept = s.capture.hooks[found->second];
  HookRecord closed = hook;
  if (closed.attribute.empty()) closed.attribute = std::move(kept.attribute);
  if (closed.detail.empty()) closed.detail = std::move(kept.detail);
  if (closed.lost.empty()) closed.lost = std::move(kept.lost);
  kept = std::move(closed);
}

void Replay::text(TextId id, std::string_view text, bool is_json) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kText) || !s.check_id(index(id), s.capture.texts.size(), "text")) return;
  s.capture.texts.emplace_back(text);
  s.capture.text_is_json.push_back(is_json);
  s.hashes.add_text(text, is_json);
}

void Replay::loc(LocId id, const Loc& loc) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kLoc) || !s.check_id(index(id), s.capture.locs.size(), "loc")) return;
  if (!s.check_texts({loc.text, loc.function, loc.code}) || !s.check_loc(loc.child) || !s.check_loc(loc.caller)) return;
  for (const LocId part : loc.parts) {
    if (!has(part)) return static_cast<void>(s.refuse(ErrorCode::kReference, "a part of a loc names nothing"));
    if (!s.check_loc(part)) return;
  }
  s.capture.locs.push_back(loc);
  s.hashes.add_loc(loc);
}

void Replay::compile(CompileId id, const Compile& compile) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kCompile) || !s.check_id(index(id), s.capture.compiles.size(), "compile")) return;
  s.capture.compiles.push_back(compile);
  s.graphs_of.push_back(0);
  s.units_of.emplace_back();
}

void Replay::graph(GraphId id, const Graph& graph) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kGraph) || !s.check_id(index(id), s.capture.graphs.size(), "graph")) return;
  if (index(graph.compile) >= s.capture.compiles.size()) {
    return static_cast<void>(s.refuse(ErrorCode::kReference, "a graph belongs to a compile that was never declared"));
  }
  std::uint32_t& next = s.graphs_of[index(graph.compile)];
  if (!s.check_id(graph.ordinal, next, fmt::format("{} graph", compile_name(graph.compile)))) return;
  ++next;
  s.capture.graphs.push_back(graph);
}

void Replay::unit(UnitId id, const Unit& unit) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kUnit) || !s.check_id(index(id), s.capture.units.size(), "unit")) return;
  if (index(unit.graph) >= s.capture.graphs.size()) {
    return static_cast<void>(s.refuse(ErrorCode::kReference, "a unit belongs to a graph that was never declared"));
  }
  const auto kind = static_cast<std::size_t>(unit.kind);
  if (kind >= kUnitKinds) return static_cast<void>(s.refuse(ErrorCode::kSchema, "a unit is of no known kind"));
  const CompileId compile = s.capture.graphs[index(unit.graph)].compile;
  std::uint32_t& next = s.units_of[index(compile)][kind];
  if (!s.check_id(unit.ordinal, next, fmt::format("{} {}", compile_name(compile), unit_kind_name(unit.kind)))) return;
  ++next;
  s.capture.units.push_back(unit);
  s.hashes.add_unit(s.name(id));
  s.current.emplace_back();
  s.sums.push_back(0);
  s.in_snapshot.push_back(kNoIndex);
}

void Replay::attr(const AttrChange& change) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kAttr)) return;
  if (index(change.unit) >= s.capture.units.size()) {
    s.refuse(ErrorCode::kReference, "an attr belongs to a unit that was never declared");
  } else if (index(change.attr) >= s.capture.attr_kinds.size()) {
    s.refuse(ErrorCode::kReference, "an attr is of a kind that was never declared");
  } else if (index(change.at) != s.capture.snapshots.size()) {
    s.refuse(ErrorCode::kReference, fmt::format("an attr is seen at snapshot {} where snapshot {} comes next",
                                                index(change.at), s.capture.snapshots.size()));
  } else if (s.check_observation(change.value)) {
    s.pending.push_back(change);
    s.pending_lines.push_back(s.line);
  }
}

// A look belongs to a pass that runs, has none yet, and works on a graph of the same compile.
bool Replay::State_::check_look(const Snapshot& snapshot) {
  if (index(snapshot.pass) >= capture.passes.size())
    return refuse(ErrorCode::kReference, fmt::format("pass {} was never declared", index(snapshot.pass)));
  const Pass& pass = capture.passes[index(snapshot.pass)];
  if (pass.ended) return refuse(ErrorCode::kReference, fmt::format("pass {} had ended", index(snapshot.pass)));
  if (has(pass.last_look))
    return refuse(ErrorCode::kReference, fmt::format("pass {} has a second look", index(snapshot.pass)));
  if (index(snapshot.graph) < capture.graphs.size() &&
      capture.graphs[index(snapshot.graph)].compile != capture.graphs[index(pass.graph)].compile)
    return refuse(ErrorCode::kReference, "a look is at a graph of another compile than its pass");
  return true;
}

bool Replay::State_::check_of_compile(const std::vector<UnitId>& ids, CompileId compile) {
  if (!check_units(ids, "a pass")) return false;
  for (const UnitId id : ids) {
    if (capture.compile_of(id) != compile)
      return refuse(ErrorCode::kReference, fmt::format("unit {} is of another compile than the pass", name(id)));
  }
  return true;
}

// The snapshot itself: known stage and graph, units of the graph's compile, each once.
bool Replay::State_::check_members(SnapshotId id, const Snapshot& snapshot) {
  if (!check_id(index(id), capture.snapshots.size(), "snapshot")) return false;
  if (has(snapshot.stage) == has(snapshot.pass))
    return refuse(ErrorCode::kSchema, "a snapshot is of a stage or of a pass, and not of both");
  if (has(snapshot.pass) && !check_look(snapshot)) return false;
  if (has(snapshot.stage) && index(snapshot.stage) >= capture.stages.size())
    return refuse(ErrorCode::kReference, "a snapshot is of a stage that was never declared");
  if (index(snapshot.graph) >= capture.graphs.size())
    return refuse(ErrorCode::kReference, "a snapshot is of a graph that was never declared");
  if (!check_units(snapshot.units, "a snapshot")) return false;
  const CompileId compile = capture.graphs[index(snapshot.graph)].compile;
  for (const UnitId unit : snapshot.units) {
    if (in_snapshot[index(unit)] == static_cast<std::uint32_t>(id))
      return refuse(ErrorCode::kReference, fmt::format("unit {} is in the snapshot twice", name(unit)));
    if (capture.compile_of(unit) != compile) {
      return refuse(ErrorCode::kReference, fmt::format("unit {} is of another compile than graph {}", name(unit),
                                                       graph_name(capture, snapshot.graph)));
    }
    in_snapshot[index(unit)] = static_cast<std::uint32_t>(id);
  }
  return true;
}

void Replay::State_::apply(AttrChange change) {
  const std::size_t unit = index(change.unit);
  const std::uint64_t fresh = SnapshotDigest::contribution(hashes.attr(change.attr), hashes.observation(change.value));
  auto& list = current[unit];
  auto found = list.begin();
  while (found != list.end() && found->attr != change.attr) ++found;
  if (found == list.end()) found = list.insert(found, Current{change.attr, 0});
  sums[unit] += fresh - found->contribution;
  found->contribution = fresh;
  capture.set(change.unit, change.attr, change.at, std::move(change.value));
}

// A full snapshot names every attr its units have: what it leaves out is not there.
void Replay::State_::forget_unwritten(const Snapshot& snapshot) {
  const SnapshotId at = id_at<SnapshotId>(capture.snapshots.size());
  for (const UnitId unit : snapshot.units) {
    for (const Current& known : current[index(unit)]) {
      if (known.contribution != 0) capture.set(unit, known.attr, at, Observation{});
    }
    current[index(unit)].clear();
    sums[index(unit)] = 0;
  }
}

std::uint64_t Replay::State_::digest_of(const Snapshot& snapshot) {
  SnapshotDigest digest(hashes);
  for (const UnitId unit : snapshot.units) {
    digest.begin_unit(unit);
    digest.add_contribution(sums[index(unit)]);
  }
  return digest.finish();
}

void Replay::snapshot(SnapshotId id, const Snapshot& snapshot) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kSnapshot) || !s.check_members(id, snapshot)) return;
  if (snapshot.full) s.forget_unwritten(snapshot);
  for (std::size_t i = 0; i < s.pending.size(); ++i) {
    AttrChange& change = s.pending[i];
    if (s.in_snapshot[index(change.unit)] != static_cast<std::uint32_t>(id)) {
      s.line = s.pending_lines[i];
      s.refuse(ErrorCode::kReference,
               fmt::format("an attr of unit {} belongs to snapshot {}, which does not hold that unit",
                           s.name(change.unit), index(id)));
      return;
    }
    s.apply(std::move(change));
  }
  s.pending.clear();
  s.pending_lines.clear();
  s.capture.snapshots.push_back(snapshot);
  if (has(snapshot.pass)) s.capture.passes[index(snapshot.pass)].last_look = id;
  if (!s.options.check_digests) return;
  const std::uint64_t reached = s.digest_of(snapshot);
  if (reached == snapshot.digest) return;
  s.refuse(ErrorCode::kDigest,
           fmt::format("snapshot {} ({}, graph {}) has digest {}, but the records before it give {}", index(id),
                       look_text(s.capture, snapshot), graph_name(s.capture, snapshot.graph),
                       base::hex64(snapshot.digest), base::hex64(reached)));
}

void Replay::pass(PassId id, const Pass& pass, bool at_end) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kPass)) return;
  if (at_end) return s.end_pass(id, pass);
  if (!s.check_id(index(id), s.capture.passes.size(), "pass") || !s.check_loc(pass.loc)) return;
  if (index(pass.graph) >= s.capture.graphs.size()) {
    s.refuse(ErrorCode::kReference, "a pass runs on a graph that was never declared");
  } else if (has(pass.parent) && index(pass.parent) >= s.capture.passes.size()) {
    s.refuse(ErrorCode::kReference, fmt::format("pass {} was never declared", index(pass.parent)));
  } else {
    s.capture.passes.push_back(pass);
    s.capture.passes.back().first_look = id_at<SnapshotId>(s.capture.snapshots.size());
  }
}

void Replay::State_::end_pass(PassId id, const Pass& done) {
  if (index(id) >= capture.passes.size())
    return static_cast<void>(refuse(ErrorCode::kReference, fmt::format("pass {} ends but never began", index(id))));
  Pass& pass = capture.passes[index(id)];
  if (pass.ended)
    return static_cast<void>(refuse(ErrorCode::kReference, fmt::format("pass {} had ended", index(id))));
  const CompileId compile = capture.graphs[index(pass.graph)].compile;
  for (const auto* ids : {&done.created, &done.erased, &done.changed, &done.retargeted}) {
    if (!check_of_compile(*ids, compile)) return;
  }
  for (const auto& [old_unit, new_unit] : done.replaced) {
    if (!check_of_compile({old_unit, new_unit}, compile)) return;
  }
  pass.ended = true;
  pass.created = done.created;
  pass.erased = done.erased;
  pass.changed = done.changed;
  pass.retargeted = done.retargeted;
  pass.replaced = done.replaced;
}

void Replay::birth(const Birth& birth) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kBirth)) return;
  if (!s.check_units({birth.unit}, "a birth") || !s.check_units(birth.sources, "a birth")) return;
  if (!s.check_loc(birth.loc) || !s.check_loc(birth.pattern_loc)) return;
  if (has(birth.pass) && index(birth.pass) >= s.capture.passes.size()) {
    s.refuse(ErrorCode::kReference, fmt::format("pass {} was never declared", index(birth.pass)));
  } else if (birth.evidence.empty()) {
    s.refuse(ErrorCode::kSchema, "a birth has no evidence");
  } else {
    s.capture.births.push_back(birth);
  }
}

void Replay::link(const Link& link) {
  State_& s = *state_;
  if (s.accept(RecordKind::kLink) && s.check_units(link.from, "a link") && s.check_units(link.to, "a link"))
    s.capture.links.push_back(link);
}

void Replay::claim(const Claim& claim) {
  State_& s = *state_;
  if (s.accept(RecordKind::kClaim) && s.check_units({claim.kernel}, "a claim") && s.check_units(claim.units, "a claim"))
    s.capture.claims.push_back(claim);
}

void Replay::note(const Note& note) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kNote)) return;
  if ((has(note.compile) && index(note.compile) >= s.capture.compiles.size()) ||
      (has(note.graph) && index(note.graph) >= s.capture.graphs.size())) {
    s.refuse(ErrorCode::kReference, "a note names a compile or graph that was never declared");
  } else {
    s.capture.notes.push_back(note);
  }
}

void Replay::volatile_value(const Volatile& value) {
  if (state_->accept(RecordKind::kVolatile)) state_->capture.volatiles.push_back(value);
}

// A file may be told of several times (a compile at a time): equal content is one entry with all lines.
void Replay::source(const SourceFile& source) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kSource)) return;
  const auto [found, fresh] = s.source_files.emplace(source.sha256 + '\n' + source.file, s.capture.sources.size());
  if (fresh) {
    s.capture.sources.push_back(source);
    return;
  }
  auto& kept = s.capture.sources[found->second].lines;
  for (const auto& [number, text] : source.lines) {
    const auto [line, added] = kept.emplace(number, text);
    if (!added && line->second != text) {
      s.refuse(ErrorCode::kReference,
               fmt::format("line {} of source \"{}\" was declared before with other text", number, source.file));
      return;
    }
  }
}

void Replay::end(const EndRecord& end) {
  State_& s = *state_;
  if (!s.accept(RecordKind::kEnd)) return;
  if (!s.pending.empty())
    return static_cast<void>(s.refuse(ErrorCode::kReference, "attr records before the end belong to no snapshot"));
  auto seen = s.counts.by_name();
  for (const auto& [kind, count] : end.counts) {
    const std::uint64_t here = seen.contains(kind) ? seen[kind] : 0;
    if (here != count)
      return static_cast<void>(s.refuse(
          ErrorCode::kSchema, fmt::format("the end record counts {} {} records, the file has {}", count, kind, here)));
  }
  for (const auto& [kind, count] : seen) {
    if (!end.counts.contains(kind))
      return static_cast<void>(
          s.refuse(ErrorCode::kSchema, fmt::format("the end record leaves out {} {} records", count, kind)));
  }
  s.capture.end = end;
}

}  // namespace kerntrail::model
