#include "model/recorder.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/hash.h"
#include "base/strings.h"
#include "model/digest.h"
#include "model/json_text.h"
#include "model/records.h"

namespace kerntrail::model {
namespace {

// Longest text kept, in bytes. A record may be 64 MiB long and an escape can take six bytes for one.
constexpr std::size_t kMaxText = std::size_t{8} << 20;
constexpr std::size_t kUnitKinds = 8;

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return static_cast<std::size_t>(base::hash64(s)); }
};

struct LocHash {
  std::size_t operator()(const Loc& l) const {
    std::uint64_t h = static_cast<std::uint64_t>(l.kind);
    for (const std::uint64_t part :
         {std::uint64_t{index(l.text)}, std::uint64_t{index(l.function)}, static_cast<std::uint64_t>(l.line),
          static_cast<std::uint64_t>(l.col), std::uint64_t{index(l.child)}, std::uint64_t{index(l.caller)}}) {
      h = base::hash64(part, h);
    }
    for (const LocId part : l.parts) h = base::hash64(index(part), h);
    return static_cast<std::size_t>(h);
  }
};

std::string clean(std::string_view text) {
  std::string out = base::is_valid_utf8(text) ? std::string(text) : repaired_utf8(text);
  return out.size() <= kMaxText ? std::move(out) : shortened(out, kMaxText);
}

// JSON objects have each key once: the last value wins, in the place of the first.
Settings clean(const Settings& settings) {
  Settings out;
  std::unordered_map<std::string, std::size_t> places;
  for (const auto& [key, value] : settings) {
    std::string name = clean(key);
    const auto [found, fresh] = places.emplace(name, out.size());
    if (fresh)
      out.emplace_back(std::move(name), clean(value));
    else
      out[found->second].second = clean(value);
  }
  return out;
}

}  // namespace

struct Recorder::State_ {
  // The last thing seen in a slot; `hash` and `contribution` belong to `value`.
  struct Slot {
    AttrId attr = AttrId::kNone;
    std::uint32_t seen_at = kNoIndex;  // the last snapshot that listed it
    std::uint64_t contribution = 0;
    Observation value;
  };
  // Slots stand in the order the caller lists them, so that the usual comparison is position by position.
  struct UnitState {
    GraphId graph = GraphId::kNone;
    UnitKind kind = UnitKind::kOther;
    std::uint32_t ordinal = 0;
    std::uint32_t in_snapshot = kNoIndex;
    std::string seen_only_as;
    std::vector<Slot> slots;
  };
  struct GraphState {
    CompileId compile = CompileId::kNone;
    std::uint32_t ordinal = 0;
    bool write_whole = false;
  };
  struct PassState {
    CompileId compile = CompileId::kNone;
    bool looked = false;
    bool ended = false;
  };
  struct CompileState {
    std::uint32_t graphs = 0;
    std::array<std::uint32_t, kUnitKinds> units{};
    bool closed = false;
  };

  explicit State_(Sink& s) : sink(s) {}

  Sink& sink;
  RecordCounts counts;
  bool ended = false;
  bool whole_for_new_graphs = false;
  ContentHashes hashes;
  std::deque<std::string> text_storage;
  std::unordered_map<std::string_view, TextId, TextHash> texts, jsons;
  std::unordered_map<std::string, TextId, TextHash, std::equal_to<>> raw_jsons;  // as given -> its normal form
  std::unordered_map<Loc, LocId, LocHash> locs;
  std::unordered_map<std::string, StageId> stages;
  std::unordered_map<std::string, AttrId, TextHash, std::equal_to<>> attrs;
  std::unordered_map<std::string, bool> hook_ended;
  std::vector<CompileState> compiles;
  std::vector<GraphState> graphs;
  std::vector<UnitState> units;
  std::vector<PassState> passes;
  std::uint32_t snapshots = 0;

  bool open(RecordKind kind);
  TextId intern(std::unordered_map<std::string_view, TextId, TextHash>& table, std::string text, bool is_json);
  void keep_known(Observation& value) const;
  void keep_known(std::vector<UnitId>& ids) const;
  bool take_member(UnitId id, const GraphState& graph, std::uint32_t at);
  void observe(const ObservedUnit& seen, std::uint32_t at, bool whole, SnapshotDigest& digest);
  void write(UnitId unit, AttrId attr, std::uint32_t at, const Observation& value);
  void note(std::string code, Severity severity, std::string text, GraphId graph = GraphId::kNone);
  void note_unseen();
  SnapshotId take(const Snapshot& kind, std::span<const ObservedUnit> seen);
  void keep_of_compile(std::vector<UnitId>& ids, CompileId compile) const;
};

// Every record goes through here: the run record is first whatever the caller does, nothing follows the end.
bool Recorder::State_::open(RecordKind kind) {
  if (ended) return false;
  if (kind != RecordKind::kRun && counts.total() == 0) {
    counts.add(RecordKind::kRun);
    sink.run(RunInfo{});
  }
  if (kind == RecordKind::kEnd)
    ended = true;
  else
    counts.add(kind);
  return true;
}

void Recorder::State_::note(std::string code, Severity severity, std::string text, GraphId graph) {
  if (!open(RecordKind::kNote)) return;
  sink.note(Note{std::move(code), severity, std::move(text),
                 has(graph) ? graphs[index(graph)].compile : CompileId::kNone, graph});
}

Recorder::Recorder(Sink& sink) : state_(std::make_unique<State_>(sink)) {}
Recorder::~Recorder() = default;

void Recorder::run(const RunInfo& run) {
  if (state_->counts.total() != 0 || !state_->open(RecordKind::kRun)) return;
  state_->sink.run(
      {kFormatVersion, clean(run.tool), clean(run.torch), clean(run.python), clean(run.platform), clean(run.settings)});
}

StageId Recorder::stage(const Stage& stage) {
  std::string key = clean(stage.key);
  if (key.empty()) return StageId::kNone;
  const auto [found, fresh] = state_->stages.emplace(key, id_at<StageId>(state_->stages.size()));
  if (fresh && state_->open(RecordKind::kStage)) {
    state_->sink.stage(found->second,
                       {std::move(key), clean(stage.title), clean(stage.noun), clean(stage.layer), stage.order});
  }
  return found->second;
}

AttrId Recorder::attr_kind(const AttrKind& kind) {
  std::string name = clean(kind.name);
  if (name.empty()) return AttrId::kNone;
  const auto [found, fresh] = state_->attrs.emplace(name, id_at<AttrId>(state_->attrs.size()));
  if (fresh && state_->open(RecordKind::kAttrKind)) {
    state_->hashes.add_attr(name);
    state_->sink.attr_kind(found->second,
                           {std::move(name), kind.type, clean(kind.layer), clean(kind.first_stage), kind.provenance});
  }
  return found->second;
}

AttrId Recorder::inventory_attr(std::string_view name) {
  const auto found = state_->attrs.find(name);
  return found != state_->attrs.end() ? found->second : attr_kind({std::string(name), ValueType::kJson, {}, {}, false});
}

// A start is written once; an end without a start gets one, a second end is dropped.
void Recorder::hook(const HookRecord& hook, bool at_end) {
  HookRecord h = hook;
  for (std::string* text : {&h.label, &h.attribute, &h.detail, &h.lost, &h.last_error}) *text = clean(*text);
  const auto [found, fresh] = state_->hook_ended.emplace(h.label, false);
  if (fresh && state_->open(RecordKind::kHook)) {
    HookRecord start = h;
    if (at_end) start = {h.label, h.attribute, h.state, h.detail, h.lost, 0, 0, {}, true};
    state_->sink.hook(start, false);
  }
  if (!at_end || found->second || !state_->open(RecordKind::kHook)) return;
  found->second = true;
  state_->sink.hook(h, true);
}

TextId Recorder::State_::intern(std::unordered_map<std::string_view, TextId, TextHash>& table, std::string text,
                                bool is_json) {
  const auto found = table.find(text);
  if (found != table.end()) return found->second;
  if (!open(RecordKind::kText)) return TextId::kNone;
  const TextId id = id_at<TextId>(text_storage.size());
  const std::string& kept = text_storage.emplace_back(std::move(text));
  table.emplace(kept, id);
  hashes.add_text(kept, is_json);
  sink.text(id, kept, is_json);
  return id;
}

TextId Recorder::text(std::string_view text) {
  const auto found = state_->texts.find(text);
  return found != state_->texts.end() ? found->second : state_->intern(state_->texts, clean(text), false);
}

TextId Recorder::json(std::string_view compact_json) {
  const auto found = state_->jsons.find(compact_json);
  if (found != state_->jsons.end()) return found->second;
  const auto known = state_->raw_jsons.find(compact_json);
  if (known != state_->raw_jsons.end()) return known->second;
  std::string normal = normal_json(clean(compact_json));
  const bool same = normal == compact_json;
  const TextId id = state_->intern(state_->jsons, std::move(normal), true);
  if (!same) state_->raw_jsons.emplace(compact_json, id);
  return id;
}

TextId Recorder::json_value(const base::Json& value) {
  std::string text = value.dump();
  if (text.size() > kMaxText || depth_of(text) > kMaxJsonDepth) return json(std::string_view(text));
  return state_->intern(state_->jsons, std::move(text), true);
}

LocId Recorder::loc(const Loc& loc) {
  Loc l = loc;
  const std::size_t n = state_->locs.size();
  const auto known_text = [&](TextId id) {
    return has(id) && index(id) < state_->text_storage.size() ? id : TextId::kNone;
  };
  const auto known_loc = [&](LocId id) { return has(id) && index(id) < n ? id : LocId::kNone; };
  l.text = known_text(l.text);
  l.function = known_text(l.function);
  l.code = known_text(l.code);
  l.child = known_loc(l.child);
  l.caller = known_loc(l.caller);
  std::erase_if(l.parts, [n](LocId id) { return index(id) >= n; });
  const auto [found, fresh] = state_->locs.emplace(std::move(l), id_at<LocId>(n));
  if (fresh && state_->open(RecordKind::kLoc)) {
    state_->hashes.add_loc(found->first);
    state_->sink.loc(found->second, found->first);
  }
  return found->second;
}

std::string_view Recorder::text_of(TextId id) const {
  return index(id) < state_->text_storage.size() ? std::string_view(state_->text_storage[index(id)]) : std::string_view();
}

CompileId Recorder::compile(const Compile& compile) {
  if (!state_->open(RecordKind::kCompile)) return CompileId::kNone;
  const CompileId id = id_at<CompileId>(state_->compiles.size());
  state_->compiles.emplace_back();
  state_->sink.compile(id,
                       {clean(compile.torch_id), compile.attempt, clean(compile.backend), clean(compile.attributes)});
  return id;
}

GraphId Recorder::graph(CompileId compile, std::string_view kind, std::string_view direction, std::string_view path) {
  if (index(compile) >= state_->compiles.size() || !state_->open(RecordKind::kGraph)) return GraphId::kNone;
  const GraphId id = id_at<GraphId>(state_->graphs.size());
  const std::uint32_t ordinal = state_->compiles[index(compile)].graphs++;
  state_->graphs.push_back({compile, ordinal, state_->whole_for_new_graphs});
  state_->sink.graph(id, {compile, ordinal, clean(kind), clean(direction), clean(path)});
  return id;
}

UnitId Recorder::unit(GraphId graph, UnitKind kind, std::string_view seen_only_as) {
  const auto k = static_cast<std::size_t>(kind);
  if (index(graph) >= state_->graphs.size() || k >= kUnitKinds || !state_->open(RecordKind::kUnit))
    return UnitId::kNone;
  const UnitId id = id_at<UnitId>(state_->units.size());
  const std::uint32_t ordinal = state_->compiles[index(state_->graphs[index(graph)].compile)].units[k]++;
  std::string reason = clean(seen_only_as);
  state_->units.push_back({graph, kind, ordinal, kNoIndex, reason, {}});
  state_->hashes.add_unit(unit_name(id));
  state_->sink.unit(id, {graph, kind, ordinal, std::move(reason)});
  return id;
}

void Recorder::force_full() {
  state_->whole_for_new_graphs = true;
  for (auto& graph : state_->graphs) graph.write_whole = true;
}

// Ids that were never handed out are a mistake of the caller; the file must stay readable all the same.
void Recorder::State_::keep_known(std::vector<UnitId>& ids) const {
  std::erase_if(ids, [this](UnitId id) { return index(id) >= units.size(); });
}

void Recorder::State_::keep_known(Observation& v) const {
  for (TextId* text : {&v.python_type, &v.repr, &v.text}) {
    if (index(*text) >= text_storage.size()) *text = TextId::kNone;
  }
  if (index(v.loc) >= locs.size()) v.loc = LocId::kNone;
  keep_known(v.refs);
}

void Recorder::State_::write(UnitId unit, AttrId attr, std::uint32_t at, const Observation& value) {
  if (open(RecordKind::kAttr)) sink.attr({unit, attr, id_at<SnapshotId>(at), value});
}

// False for a unit that can't be in this snapshot: never declared, of another compile, or in it already.
bool Recorder::State_::take_member(UnitId id, const GraphState& graph, std::uint32_t at) {
  if (index(id) >= units.size()) return false;
  UnitState& unit = units[index(id)];
  if (graphs[index(unit.graph)].compile != graph.compile || unit.in_snapshot == at) return false;
  unit.in_snapshot = at;
  return true;
}

void Recorder::State_::observe(const ObservedUnit& seen, std::uint32_t at, bool whole, SnapshotDigest& digest) {
  std::vector<Slot>& slots = units[index(seen.unit)].slots;
  digest.begin_unit(seen.unit);
  std::size_t listed = 0;
  for (std::size_t i = 0; i < seen.attrs.size(); ++i) {
    const ObservedAttr& a = seen.attrs[i];
    if (a.value.state == State::kNoSlot || index(a.attr) >= attrs.size()) continue;
    std::size_t place = listed;
    if (place >= slots.size() || slots[place].attr != a.attr) {
      for (place = 0; place < slots.size() && slots[place].attr != a.attr;) ++place;
      if (place == slots.size()) slots.emplace_back().attr = a.attr;
    }
    Slot& slot = slots[place];
    if (slot.seen_at == at) continue;  // listed twice: the first counts
    slot.seen_at = at;
    ++listed;
    const bool changed = slot.contribution == 0 || !(slot.value == a.value);
    if (changed) {
      slot.value = a.value;
      keep_known(slot.value);
      slot.contribution = SnapshotDigest::contribution(hashes.attr(a.attr), hashes.observation(slot.value));
    }
    if (changed || whole) write(seen.unit, a.attr, at, slot.value);
    digest.add_contribution(slot.contribution);
  }
  if (listed == slots.size()) return;
  std::erase_if(slots, [&](const Slot& slot) {
    if (slot.seen_at == at) return false;
    write(seen.unit, slot.attr, at, Observation{});
    return true;
  });
}

SnapshotId Recorder::State_::take(const Snapshot& kind, std::span<const ObservedUnit> seen_units) {
  GraphState& g = graphs[index(kind.graph)];
  const std::uint32_t at = snapshots;
  Snapshot record = kind;
  // A pass shows only a part of the graph: whoever waits for a whole one goes on waiting.
  record.full = (has(kind.stage) && std::exchange(g.write_whole, false)) || compiles[index(g.compile)].closed;
  record.units.reserve(seen_units.size());
  SnapshotDigest digest(hashes);
  for (const ObservedUnit& seen : seen_units) {
    if (!take_member(seen.unit, g, at)) continue;
    observe(seen, at, record.full, digest);
    record.units.push_back(seen.unit);
  }
  record.digest = digest.finish();
  if (record.units.size() != seen_units.size()) {
    note("unit-refused", Severity::kWarning,
         fmt::format("snapshot {}: {} left out (listed twice, or of another compile)", at,
                     base::counted(seen_units.size() - record.units.size(), "unit")),
         kind.graph);
  }
  open(RecordKind::kSnapshot);
  ++snapshots;
  sink.snapshot(id_at<SnapshotId>(at), record);
  return id_at<SnapshotId>(at);
}

SnapshotId Recorder::snapshot(StageId stage, GraphId graph, std::span<const ObservedUnit> units) {
  State_& s = *state_;
  if (s.ended || index(stage) >= s.stages.size() || index(graph) >= s.graphs.size()) return SnapshotId::kNone;
  Snapshot kind;
  kind.stage = stage;
  kind.graph = graph;
  return s.take(kind, units);
}

PassId Recorder::begin_pass(const Pass& pass) {
  State_& s = *state_;
  if (index(pass.graph) >= s.graphs.size() || !s.open(RecordKind::kPass)) return PassId::kNone;
  const PassId id = id_at<PassId>(s.passes.size());
  Pass record;
  record.graph = pass.graph;
  record.name = clean(pass.name);
  record.subsystem = clean(pass.subsystem);
  record.kind = pass.kind;
  record.parent = index(pass.parent) < s.passes.size() ? pass.parent : PassId::kNone;
  record.loc = index(pass.loc) < s.locs.size() ? pass.loc : LocId::kNone;
  s.passes.push_back({s.graphs[index(pass.graph)].compile, false, false});
  s.sink.pass(id, record, false);
  return id;
}

SnapshotId Recorder::look(PassId pass, GraphId graph, std::span<const ObservedUnit> units) {
  State_& s = *state_;
  if (s.ended || index(pass) >= s.passes.size() || index(graph) >= s.graphs.size()) return SnapshotId::kNone;
  State_::PassState& state = s.passes[index(pass)];
  if (state.ended || state.looked || state.compile != s.graphs[index(graph)].compile) return SnapshotId::kNone;
  state.looked = true;
  Snapshot kind;
  kind.pass = pass;
  kind.graph = graph;
  return s.take(kind, units);
}

void Recorder::State_::keep_of_compile(std::vector<UnitId>& ids, CompileId compile) const {
  std::erase_if(ids, [&](UnitId id) {
    return index(id) >= units.size() || graphs[index(units[index(id)].graph)].compile != compile;
  });
}

void Recorder::end_pass(PassId pass, const Pass& done) {
  State_& s = *state_;
  if (index(pass) >= s.passes.size() || s.passes[index(pass)].ended || !s.open(RecordKind::kPass)) return;
  const CompileId compile = s.passes[index(pass)].compile;
  s.passes[index(pass)].ended = true;
  Pass record;
  record.created = done.created;
  record.erased = done.erased;
  record.changed = done.changed;
  record.retargeted = done.retargeted;
  for (auto* ids : {&record.created, &record.erased, &record.changed, &record.retargeted})
    s.keep_of_compile(*ids, compile);
  for (const auto& pair : done.replaced) {
    std::vector<UnitId> both = {pair.first, pair.second};
    s.keep_of_compile(both, compile);
    if (both.size() == 2) record.replaced.push_back(pair);
  }
  s.sink.pass(pass, record, true);
}

void Recorder::birth(const Birth& birth) {
  State_& s = *state_;
  if (index(birth.unit) >= s.units.size() || !s.open(RecordKind::kBirth)) return;
  Birth record = birth;
  record.evidence = clean(birth.evidence);
  record.pattern = clean(birth.pattern);
  if (index(record.pass) >= s.passes.size()) record.pass = PassId::kNone;
  if (index(record.loc) >= s.locs.size()) record.loc = LocId::kNone;
  if (index(record.pattern_loc) >= s.locs.size()) record.pattern_loc = LocId::kNone;
  s.keep_known(record.sources);
  s.sink.birth(record);
}

void Recorder::link(std::string_view kind, std::vector<UnitId> from, std::vector<UnitId> to) {
  state_->keep_known(from);
  state_->keep_known(to);
  if (state_->open(RecordKind::kLink)) state_->sink.link({clean(kind), std::move(from), std::move(to)});
}

void Recorder::claim(UnitId kernel, std::string_view claimant, std::string_view evidence, std::vector<UnitId> units) {
  state_->keep_known(units);
  if (index(kernel) >= state_->units.size() || !state_->open(RecordKind::kClaim)) return;
  state_->sink.claim({kernel, clean(claimant), clean(evidence), std::move(units)});
}

void Recorder::note(const Note& note) {
  if (!state_->open(RecordKind::kNote)) return;
  const CompileId compile = index(note.compile) < state_->compiles.size() ? note.compile : CompileId::kNone;
  const GraphId graph = index(note.graph) < state_->graphs.size() ? note.graph : GraphId::kNone;
  state_->sink.note({clean(note.code), note.severity, clean(note.text), compile, graph});
}

void Recorder::volatile_value(std::string_view of, std::string_view key, std::string_view value) {
  if (state_->open(RecordKind::kVolatile)) state_->sink.volatile_value({clean(of), clean(key), clean(value)});
}

void Recorder::source(const SourceFile& source) {
  SourceFile file{clean(source.file), clean(source.sha256), {}};
  std::size_t size = 0;
  for (const auto& [number, text] : source.lines) {
    std::string line = clean(text);
    size += line.size();
    if (size > kMaxText) break;
    if (number > 0) file.lines.emplace(number, std::move(line));
  }
  if (size > kMaxText) {
    state_->note("source-cut", Severity::kWarning,
                 fmt::format("{}: only the first {} lines are embedded (over {} bytes)", file.file, file.lines.size(),
                             kMaxText));
  }
  if (state_->open(RecordKind::kSource)) state_->sink.source(file);
}

void Recorder::close_compile(CompileId compile) {
  if (index(compile) >= state_->compiles.size()) return;
  state_->compiles[index(compile)].closed = true;
  for (auto& unit : state_->units) {
    if (state_->graphs[index(unit.graph)].compile == compile) std::vector<State_::Slot>().swap(unit.slots);
  }
}

// One counted note for the units that exist only because something refers to them.
void Recorder::State_::note_unseen() {
  std::map<std::string_view, std::size_t> reasons;
  std::size_t total = 0;
  for (const UnitState& unit : units) {
    if (unit.in_snapshot != kNoIndex || unit.seen_only_as.empty()) continue;
    if (unit.kind == UnitKind::kKernelCall) continue;  // never in one
    ++reasons[unit.seen_only_as];
    ++total;
  }
  if (total == 0) return;
  std::vector<std::string> parts;
  for (const auto& [reason, count] : reasons) parts.push_back(fmt::format("{} {}", count, reason));
  note("seen-only", Severity::kInfo,
       fmt::format("{} referred to but in no snapshot: {}", base::counted(total, "unit"), base::join(parts, ", ")));
}

void Recorder::end(bool complete) {
  state_->note_unseen();
  if (state_->open(RecordKind::kEnd)) state_->sink.end({complete, state_->counts.by_name()});
}

std::string Recorder::unit_name(UnitId unit) const {
  if (index(unit) >= state_->units.size()) return {};
  const auto& u = state_->units[index(unit)];
  return fmt::format("c{}.{}{}", index(state_->graphs[index(u.graph)].compile), unit_kind_letter(u.kind), u.ordinal);
}

std::string Recorder::graph_name(GraphId graph) const {
  if (index(graph) >= state_->graphs.size()) return {};
  const auto& g = state_->graphs[index(graph)];
  return fmt::format("c{}.g{}", index(g.compile), g.ordinal);
}

GraphId Recorder::graph_of(UnitId unit) const {
  return index(unit) < state_->units.size() ? state_->units[index(unit)].graph : GraphId::kNone;
}

}  // namespace kerntrail::model
