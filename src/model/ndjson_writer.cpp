#include "model/ndjson_writer.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "model/file_output.h"
#include "model/records.h"

namespace kerntrail::model {
namespace {

// Records collect up to here between snapshots before they go to the compressor or the system.
constexpr std::size_t kBuffer = std::size_t{1} << 18;

// Text form of an id without an allocation: "c12.n345".
class IdText {
 public:
  explicit IdText(std::uint32_t compile) { number('c', compile); }
  IdText(std::uint32_t compile, char letter, std::uint32_t ordinal) : IdText(compile) {
    put('.');
    number(letter, ordinal);
  }
  std::string_view view() const { return {text_, size_}; }

 private:
  // The bound never bites (28 bytes hold two letters, a dot and two numbers); the compiler wants to see it.
  void put(char c) {
    if (size_ < sizeof text_) text_[size_++] = c;
  }
  void number(char letter, std::uint32_t n) {
    put(letter);
    size_ = static_cast<std::size_t>(std::to_chars(text_ + size_, text_ + sizeof text_, n).ptr - text_);
  }
  char text_[28] = {};
  std::size_t size_ = 0;
};

// Most strings of a capture (ids, names, keys) need no escape: those are copied in one piece.
void append_quoted(std::string& out, std::string_view text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
  if (!plain) return base::append_json_string(out, text, false);
  out += '"';
  out += text;
  out += '"';
}

template <class Int>
void append_number(std::string& out, Int value) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// One record: members in a fixed order, defaults left out. Keys are literals without escapes.
class Line {
 public:
  Line(std::string& out, RecordKind kind) : out_(out) {
    out_ += "{\"record\":";
    append_quoted(out_, record_kind_name(kind));
  }
  ~Line() { out_ += "}\n"; }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Line& always(std::string_view key, std::string_view value) {
    begin(key);
    append_quoted(out_, value);
    return *this;
  }
  Line& always(std::string_view key, const char* value) { return always(key, std::string_view(value)); }
  Line& always(std::string_view key, const std::string& value) { return always(key, std::string_view(value)); }
  template <std::integral T>
  Line& always(std::string_view key, T value) {
    begin(key);
    if constexpr (std::is_same_v<T, bool>)
      out_ += value ? "true" : "false";
    else
      append_number(out_, value);
    return *this;
  }
  Line& text(std::string_view key, std::string_view value) { return value.empty() ? *this : always(key, value); }
  template <class T>
  Line& unless(std::string_view key, T value, T usual) {
    return value == usual ? *this : always(key, value);
  }
  template <class Id>
  Line& id(std::string_view key, Id value) {
    return has(value) ? always(key, static_cast<std::uint32_t>(value)) : *this;
  }
  Line& raw(std::string_view key, std::string_view json) {
    begin(key);
    out_ += json;
    return *this;
  }
  // An array: `append` adds one item to the text it is given. Left out where there are no items.
  template <class Items, class Append>
  Line& list(std::string_view key, const Items& items, Append append) {
    return several(key, items, append, '[', ']');
  }
  // An object: `append_key` and `append_value` as above.
  template <class Items, class Key, class Value>
  Line& members(std::string_view key, const Items& items, Key append_key, Value append_value) {
    return several(
        key, items,
        [&](std::string& out, const auto& item) {
          append_key(out, item);
          out += ':';
          append_value(out, item);
        },
        '{', '}');
  }
  Line& settings(std::string_view key, const Settings& values) {
    return members(
        key, values, [](std::string& out, const auto& v) { append_quoted(out, v.first); },
        [](std::string& out, const auto& v) { append_quoted(out, v.second); });
  }

 private:
  void begin(std::string_view key) {
    out_ += ",\"";
    out_ += key;
    out_ += "\":";
  }
  template <class Items, class Append>
  Line& several(std::string_view key, const Items& items, Append append, char open, char close) {
    if (items.empty()) return *this;
    begin(key);
    char before = open;
    for (const auto& item : items) {
      out_ += before;
      append(out_, item);
      before = ',';
    }
    out_ += close;
    return *this;
  }

  std::string& out_;
};

}  // namespace

struct NdjsonWriter::State_ {
  struct UnitName {
    std::uint32_t compile;
    std::uint32_t ordinal;
    char letter;
  };

  std::string own;
  std::string* out = &own;  // the caller's string, or `own` on its way to the file
  std::unique_ptr<FileOutput> file;
  std::optional<Error> error;
  std::vector<std::string> stages, attrs;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> graphs;  // compile, ordinal
  std::vector<UnitName> units;

  IdText graph_id(GraphId id) const { return {graphs[index(id)].first, 'g', graphs[index(id)].second}; }
  IdText unit_id(UnitId id) const {
    const UnitName& u = units[index(id)];
    return {u.compile, u.letter, u.ordinal};
  }
  void units_member(Line& line, std::string_view key, const std::vector<UnitId>& ids) const {
    line.list(key, ids, [this](std::string& to, UnitId id) { append_quoted(to, unit_id(id).view()); });
  }
  void keep(Expected<void> result) {
    if (!result && !error) error = std::move(result.error());
  }
  void flush(bool seal) {
    if (!file) return;
    if (!error) keep(file->write(own));
    if (!error && seal) keep(file->seal());
    own.clear();
  }
  bool looked = false;  // at a stage, since the last settle()
  void flush_if_full() {
    if (file && own.size() >= kBuffer) flush(false);
  }
};

NdjsonWriter::NdjsonWriter() : state_(std::make_unique<State_>()) {}

NdjsonWriter::~NdjsonWriter() { close(); }

Expected<std::unique_ptr<NdjsonWriter>> NdjsonWriter::open(const std::string& path, bool replace) {
  KERNTRAIL_TRY(auto file, FileOutput::open(path, replace));
  std::unique_ptr<NdjsonWriter> writer(new NdjsonWriter);
  writer->state_->file = std::move(file);
  return writer;
}

std::unique_ptr<NdjsonWriter> NdjsonWriter::to_string(std::string& out) {
  std::unique_ptr<NdjsonWriter> writer(new NdjsonWriter);
  writer->state_->out = &out;
  return writer;
}

const Error* NdjsonWriter::error() const { return state_->error ? &*state_->error : nullptr; }

void NdjsonWriter::settle() {
  if (std::exchange(state_->looked, false) && !state_->own.empty()) state_->flush(true);
}

void NdjsonWriter::close() {
  if (!state_->file) return;
  state_->flush(false);
  state_->keep(state_->file->close());
  state_->file.reset();
}

void NdjsonWriter::abandon() {
  if (state_->file) state_->file->abandon();
  state_->file.reset();
  state_->own.clear();
}

void NdjsonWriter::run(const RunInfo& run) {
  Line(*state_->out, RecordKind::kRun)
      .always("format", run.format_version)
      .text("tool", run.tool)
      .text("torch", run.torch)
      .text("python", run.python)
      .text("platform", run.platform)
      .settings("settings", run.settings);
  state_->flush_if_full();
}

void NdjsonWriter::stage(StageId, const Stage& stage) {
  state_->stages.push_back(stage.key);
  Line(*state_->out, RecordKind::kStage)
      .always("key", stage.key)
      .text("title", stage.title)
      .text("noun", stage.noun)
      .text("layer", stage.layer)
      .unless("order", stage.order, 0);
  state_->flush_if_full();
}

void NdjsonWriter::attr_kind(AttrId, const AttrKind& kind) {
  state_->attrs.push_back(kind.name);
  Line(*state_->out, RecordKind::kAttrKind)
      .always("name", kind.name)
      .always("type", value_type_name(kind.type))
      .text("layer", kind.layer)
      .text("first_stage", kind.first_stage)
      .unless("provenance", kind.provenance, false);
  state_->flush_if_full();
}

void NdjsonWriter::hook(const HookRecord& hook, bool at_end) {
  constexpr std::uint64_t kNone = 0;
  Line(*state_->out, RecordKind::kHook)
      .always("phase", at_end ? "end" : "start")
      .always("label", hook.label)
      .text("attribute", hook.attribute)
      .always("state", hook_state_name(hook.state))
      .text("detail", hook.detail)
      .text("lost", hook.lost)
      .unless("fired", hook.fired, kNone)
      .unless("errors", hook.errors, kNone)
      .text("last_error", hook.last_error)
      .unless("restored", hook.restored, true);
  state_->flush_if_full();
}

void NdjsonWriter::text(TextId id, std::string_view text, bool is_json) {
  {
    Line line(*state_->out, RecordKind::kText);
    line.id("id", id);
    if (is_json)
      line.raw("json", text);
    else
      line.always("text", text);
  }
  state_->flush_if_full();
}

void NdjsonWriter::loc(LocId id, const Loc& loc) {
  constexpr std::int64_t kZero = 0, kUnknown = -1;
  {
    Line line(*state_->out, RecordKind::kLoc);
    line.id("id", id).always("kind", loc_kind_name(loc.kind));
    line.id(loc.kind == LocKind::kRange ? "file" : loc.kind == LocKind::kNamed ? "name" : "text", loc.text);
    line.id("function", loc.function).id("code", loc.code);
    line.unless("line", loc.line, kZero).unless("col", loc.col, kUnknown);
    line.unless("end_line", loc.end_line, kZero).unless("end_col", loc.end_col, kUnknown);
    if (loc.frame_class != FrameClass::kUnknown) line.always("class", frame_class_name(loc.frame_class));
    if (loc.rule != FrameRule::kNone) line.always("rule", frame_rule_name(loc.rule));
    line.id(loc.kind == LocKind::kCall ? "callee" : "child", loc.child).id("caller", loc.caller);
    line.list("parts", loc.parts,
              [](std::string& out, LocId part) { append_number(out, static_cast<std::uint32_t>(part)); });
  }
  state_->flush_if_full();
}

void NdjsonWriter::compile(CompileId id, const Compile& compile) {
  constexpr std::int64_t kZero = 0;
  Line(*state_->out, RecordKind::kCompile)
      .always("id", IdText(static_cast<std::uint32_t>(id)).view())
      .text("torch_id", compile.torch_id)
      .unless("attempt", compile.attempt, kZero)
      .text("backend", compile.backend)
      .settings("attributes", compile.attributes);
  state_->flush_if_full();
}

void NdjsonWriter::graph(GraphId id, const Graph& graph) {
  state_->graphs.emplace_back(static_cast<std::uint32_t>(graph.compile), graph.ordinal);
  Line(*state_->out, RecordKind::kGraph)
      .always("id", state_->graph_id(id).view())
      .text("kind", graph.kind)
      .text("direction", graph.direction)
      .text("path", graph.path);
  state_->flush_if_full();
}

void NdjsonWriter::unit(UnitId id, const Unit& unit) {
  state_->units.push_back({state_->graphs[index(unit.graph)].first, unit.ordinal, unit_kind_letter(unit.kind)});
  Line(*state_->out, RecordKind::kUnit)
      .always("id", state_->unit_id(id).view())
      .always("graph", state_->graph_id(unit.graph).view())
      .always("kind", unit_kind_name(unit.kind))
      .text("seen_only_as", unit.seen_only_as);
  state_->flush_if_full();
}

void NdjsonWriter::attr(const AttrChange& change) {
  const Observation& v = change.value;
  {
    Line line(*state_->out, RecordKind::kAttr);
    line.always("unit", state_->unit_id(change.unit).view())
        .always("attr", state_->attrs[index(change.attr)])
        .always("at", static_cast<std::uint32_t>(change.at))
        .always("state", state_name(v.state))
        .id("python_type", v.python_type)
        .id("repr", v.repr)
        .id("text", v.text)
        .id("loc", v.loc);
    state_->units_member(line, "refs", v.refs);
  }
  state_->flush_if_full();
}

void NdjsonWriter::snapshot(SnapshotId id, const Snapshot& snapshot) {
  {
    Line line(*state_->out, RecordKind::kSnapshot);
    line.id("id", id);
    if (has(snapshot.stage)) line.always("stage", state_->stages[index(snapshot.stage)]);
    line.id("pass", snapshot.pass).always("graph", state_->graph_id(snapshot.graph).view());
    state_->units_member(line, "units", snapshot.units);
    line.always("digest", base::hex64(snapshot.digest)).unless("full", snapshot.full, false);
  }
  // A look at a stage makes all before it safe; passes are many and small.
  if (has(snapshot.stage)) {
    state_->flush(true);
    state_->looked = true;
  } else {
    state_->flush_if_full();
  }
}

void NdjsonWriter::pass(PassId id, const Pass& pass, bool at_end) {
  {
    Line line(*state_->out, RecordKind::kPass);
    line.always("phase", at_end ? "end" : "start").id("id", id);
    if (!at_end) {
      line.always("graph", state_->graph_id(pass.graph).view())
          .text("name", pass.name)
          .text("subsystem", pass.subsystem)
          .always("kind", pass_kind_name(pass.kind))
          .id("parent", pass.parent)
          .id("loc", pass.loc);
    } else {
      state_->units_member(line, "created", pass.created);
      state_->units_member(line, "erased", pass.erased);
      state_->units_member(line, "changed", pass.changed);
      state_->units_member(line, "retargeted", pass.retargeted);
      using Pair = std::pair<UnitId, UnitId>;
      line.list("replaced", pass.replaced,
                [this](std::string& to, const Pair& p) { append_quoted(to, state_->unit_id(p.first).view()); });
      line.list("by", pass.replaced,
                [this](std::string& to, const Pair& p) { append_quoted(to, state_->unit_id(p.second).view()); });
    }
  }
  state_->flush_if_full();
}

void NdjsonWriter::birth(const Birth& birth) {
  {
    Line line(*state_->out, RecordKind::kBirth);
    line.always("unit", state_->unit_id(birth.unit).view())
        .id("pass", birth.pass)
        .always("evidence", birth.evidence)
        .text("pattern", birth.pattern)
        .id("pattern_loc", birth.pattern_loc)
        .id("loc", birth.loc);
    state_->units_member(line, "sources", birth.sources);
  }
  state_->flush_if_full();
}

void NdjsonWriter::link(const Link& link) {
  {
    Line line(*state_->out, RecordKind::kLink);
    line.always("kind", link.kind);
    state_->units_member(line, "from", link.from);
    state_->units_member(line, "to", link.to);
  }
  state_->flush_if_full();
}

void NdjsonWriter::claim(const Claim& claim) {
  {
    Line line(*state_->out, RecordKind::kClaim);
    line.always("kernel", state_->unit_id(claim.kernel).view())
        .always("claimant", claim.claimant)
        .text("evidence", claim.evidence);
    state_->units_member(line, "units", claim.units);
  }
  state_->flush_if_full();
}

void NdjsonWriter::note(const Note& note) {
  {
    Line line(*state_->out, RecordKind::kNote);
    line.always("code", note.code).always("severity", severity_name(note.severity)).text("text", note.text);
    if (has(note.compile)) line.always("compile", IdText(static_cast<std::uint32_t>(note.compile)).view());
    if (has(note.graph)) line.always("graph", state_->graph_id(note.graph).view());
  }
  state_->flush_if_full();
}

void NdjsonWriter::volatile_value(const Volatile& value) {
  Line(*state_->out, RecordKind::kVolatile).always("of", value.of).always("key", value.key).text("value", value.value);
  state_->flush_if_full();
}

void NdjsonWriter::source(const SourceFile& source) {
  {
    Line line(*state_->out, RecordKind::kSource);
    line.always("file", source.file).text("sha256", source.sha256);
    line.members(
        "lines", source.lines, [](std::string& out, const auto& v) { append_quoted(out, std::to_string(v.first)); },
        [](std::string& out, const auto& v) { append_quoted(out, v.second); });
  }
  state_->flush_if_full();
}

void NdjsonWriter::end(const EndRecord& end) {
  {
    Line line(*state_->out, RecordKind::kEnd);
    line.always("status", end.complete ? "complete" : "partial");
    line.members(
        "counts", end.counts, [](std::string& out, const auto& v) { append_quoted(out, v.first); },
        [](std::string& out, const auto& v) { append_number(out, v.second); });
  }
  close();
}

}  // namespace kerntrail::model
