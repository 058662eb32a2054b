#include "read/record_reader.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <unordered_map>

#include "base/strings.h"
#include "model/json_text.h"
#include "read/attr_line.h"
#include "read/record_parser.h"

namespace kerntrail::read {
namespace {

using model::RecordKind;

constexpr std::int64_t kMaxId = kNoIndex - 1;  // ids are 32 bits; the last value means "none"
constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kUnitKinds = 8;
constexpr std::string_view kLetters = "nospklfu";

// The members of each kind of record; places in these lists are what the functions below ask for.
constexpr std::string_view kRunMembers[] = {"format", "tool", "torch", "python", "platform", "settings"};
constexpr std::string_view kStageMembers[] = {"key", "title", "noun", "layer", "order"};
constexpr std::string_view kAttrKindMembers[] = {"name", "type", "layer", "first_stage", "provenance"};
constexpr std::string_view kHookMembers[] = {"phase", "label", "attribute", "state",      "detail",
                                             "lost",  "fired", "errors",    "last_error", "restored"};
constexpr std::string_view kTextMembers[] = {"id", "text", "json"};
constexpr std::string_view kLocMembers[] = {"id",   "kind",   "file",  "name",     "text",    "function",
                                            "code", "line",   "col",   "end_line", "end_col", "class",
                                            "rule", "callee", "child", "caller",   "parts"};
constexpr std::string_view kCompileMembers[] = {"id", "torch_id", "attempt", "backend", "attributes"};
constexpr std::string_view kGraphMembers[] = {"id", "kind", "direction", "path"};
constexpr std::string_view kUnitMembers[] = {"id", "graph", "kind", "seen_only_as"};
constexpr std::string_view kAttrMembers[] = {"unit", "attr", "at",  "state", "python_type",
                                             "repr", "text", "loc", "refs"};
constexpr std::string_view kSnapshotMembers[] = {"id", "stage", "graph", "units", "digest", "full", "pass"};
constexpr std::string_view kPassMembers[] = {"phase",   "id",         "graph",    "name",    "subsystem",
                                             "kind",    "parent",     "loc",      "created", "erased",
                                             "changed", "retargeted", "replaced", "by"};
constexpr std::string_view kBirthMembers[] = {"unit", "pass", "evidence", "pattern", "pattern_loc", "loc", "sources"};
constexpr std::string_view kLinkMembers[] = {"kind", "from", "to"};
constexpr std::string_view kClaimMembers[] = {"kernel", "claimant", "evidence", "units"};
constexpr std::string_view kNoteMembers[] = {"code", "severity", "text", "compile", "graph"};
constexpr std::string_view kVolatileValueMembers[] = {"of", "key", "value"};
constexpr std::string_view kSourceMembers[] = {"file", "sha256", "lines"};
constexpr std::string_view kEndMembers[] = {"status", "counts"};

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
template <class Id>
using Names = std::unordered_map<std::string, Id, NameHash, std::equal_to<>>;

// "c0", "c0.g1", "c0.n3": letter 0 for a compile.
struct IdParts {
  std::uint32_t compile = 0;
  char letter = 0;
  std::uint32_t ordinal = 0;
};

// Digits without a sign and without leading zeros, so that an id has one spelling.
bool take_number(std::string_view& text, std::uint32_t& out) {
  if (text.empty() || text[0] < '0' || text[0] > '9' ||
      (text[0] == '0' && text.size() > 1 && text[1] >= '0' && text[1] <= '9'))
    return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || out > kMaxId) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::optional<IdParts> parse_id(std::string_view text) {
  IdParts id;
  if (!text.starts_with('c')) return std::nullopt;
  text.remove_prefix(1);
  if (!take_number(text, id.compile)) return std::nullopt;
  if (text.empty()) return id;
  if (text.size() < 3 || text[0] != '.') return std::nullopt;
  id.letter = text[1];
  text.remove_prefix(2);
  if (!take_number(text, id.ordinal) || !text.empty()) return std::nullopt;
  return id;
}

std::optional<std::uint64_t> parse_digest(std::string_view text) {
  std::uint64_t value = 0;
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

}  // namespace

struct RecordReader::State_ {
  explicit State_(model::Sink& s) : sink(s) {}

  model::Sink& sink;
  RecordParser record;
  AttrLine attr_line;
  bool first = true;
  Names<StageId> stages;
  Names<AttrId> attrs;
  std::uint32_t next_stage = 0, next_attr = 0, next_graph = 0, next_unit = 0;
  struct CompileTable {
    std::vector<GraphId> graphs;
    std::array<std::vector<UnitId>, kUnitKinds> units;
  };
  std::vector<CompileTable> compiles;

  template <class Enum, class FromName>
  Enum enumeration(std::size_t i, FromName from_name, Enum otherwise, bool required = false);
  template <class Id>
  Id number(std::size_t i);  // kNone where absent
  std::string string(std::size_t i) { return std::string(record.text(i, {})); }
  std::string needed(std::size_t i) { return std::string(record.text(i)); }
  Settings settings(std::size_t i);
  std::optional<UnitId> find_unit(std::string_view text) const;
  UnitId unit_id(std::string_view text);
  GraphId graph_id(std::string_view text);
  CompileId compile_id(std::string_view text);
  std::vector<UnitId> unit_ids(std::size_t i);
  bool undeclared(std::string_view what, std::string_view name) {
    return record.refuse(ErrorCode::kReference, fmt::format("{} \"{}\" was never declared", what, base::cut(name, 80)));
  }

  void check_version();
  void read(RecordKind kind);
  void run();
  void stage();
  void attr_kind();
  void hook();
  void text();
  void loc();
  void compile();
  void graph();
  void unit();
  void attr();
  bool attr_as_written(std::string_view line);
  void snapshot();
  void pass();
  void birth();
  void link();
  void claim();
  void note();
  void volatile_value();
  void source();
  void end();
};

template <class Enum, class FromName>
Enum RecordReader::State_::enumeration(std::size_t i, FromName from_name, Enum otherwise, bool required) {
  const std::string_view name = required ? record.text(i) : record.text(i, {});
  if (!record.ok() || (!required && !record.has(i))) return otherwise;
  const auto value = from_name(name);
  if (!value)
    record.refuse(ErrorCode::kSchema, fmt::format("\"{}\" is no value this format knows", base::cut(name, 80)));
  return value.value_or(otherwise);
}

template <class Id>
Id RecordReader::State_::number(std::size_t i) {
  return record.has(i) ? static_cast<Id>(static_cast<std::uint32_t>(record.integer(i, 0, kMaxId))) : Id::kNone;
}

Settings RecordReader::State_::settings(std::size_t i) {
  Settings out;
  for (const auto& [key, value] : record.text_members(i)) out.emplace_back(std::string(key), std::string(value));
  return out;
}

CompileId RecordReader::State_::compile_id(std::string_view text) {
  const auto id = parse_id(text);
  if (id && id->letter == 0 && id->compile < compiles.size()) return static_cast<CompileId>(id->compile);
  undeclared("compile", text);
  return CompileId::kNone;
}

GraphId RecordReader::State_::graph_id(std::string_view text) {
  const auto id = parse_id(text);
  if (id && id->letter == 'g' && id->compile < compiles.size() && id->ordinal < compiles[id->compile].graphs.size()) {
    return compiles[id->compile].graphs[id->ordinal];
  }
  undeclared("graph", text);
  return GraphId::kNone;
}

std::optional<UnitId> RecordReader::State_::find_unit(std::string_view text) const {
  const auto id = parse_id(text);
  const std::size_t kind = id ? kLetters.find(id->letter) : std::string_view::npos;
  if (kind == std::string_view::npos || id->compile >= compiles.size()) return std::nullopt;
  const auto& units = compiles[id->compile].units[kind];
  return id->ordinal < units.size() ? std::optional(units[id->ordinal]) : std::nullopt;
}

UnitId RecordReader::State_::unit_id(std::string_view text) {
  if (const auto unit = find_unit(text)) return *unit;
  undeclared("unit", text);
  return UnitId::kNone;
}

std::vector<UnitId> RecordReader::State_::unit_ids(std::size_t i) {
  std::vector<UnitId> out;
  if (!record.has(i)) return out;
  const auto& names = record.texts(i);
  out.reserve(names.size());
  for (const std::string_view name : names) {
    out.push_back(unit_id(name));
    if (!record.ok()) break;
  }
  return out;
}

void RecordReader::State_::run() {
  if (!record.expect(kRunMembers)) return;
  RunInfo info{static_cast<int>(record.integer(0, 1, std::numeric_limits<int>::max())),
               string(1),
               string(2),
               string(3),
               string(4),
               settings(5)};
  if (record.ok()) sink.run(info);
}

void RecordReader::State_::stage() {
  if (!record.expect(kStageMembers)) return;
  constexpr std::int64_t kLow = std::numeric_limits<int>::min(), kHigh = std::numeric_limits<int>::max();
  const Stage value{needed(0), string(1), string(2), string(3), static_cast<int>(record.integer(4, kLow, kHigh, 0))};
  if (!record.ok()) return;
  const StageId id = id_at<StageId>(next_stage++);
  stages.emplace(value.key, id);
  sink.stage(id, value);
}

void RecordReader::State_::attr_kind() {
  if (!record.expect(kAttrKindMembers)) return;
  const AttrKind value{needed(0), enumeration(1, value_type_from_name, ValueType::kText, true), string(2), string(3),
                       record.boolean(4, false)};
  if (!record.ok()) return;
  const AttrId id = id_at<AttrId>(next_attr++);
  attrs.emplace(value.name, id);
  sink.attr_kind(id, value);
}

void RecordReader::State_::hook() {
  if (!record.expect(kHookMembers)) return;
  const std::string_view phase = record.text(0);
  if (record.ok() && phase != "start" && phase != "end")
    record.refuse(ErrorCode::kSchema, "\"phase\" must be start or end");
  const HookRecord value{needed(1),       string(2), enumeration(3, hook_state_from_name, HookState::kInstalled, true),
                         string(4),       string(5), record.count(6),
                         record.count(7), string(8), record.boolean(9, true)};
  if (record.ok()) sink.hook(value, phase == "end");
}

void RecordReader::State_::text() {
  if (!record.expect(kTextMembers)) return;
  const TextId id = static_cast<TextId>(static_cast<std::uint32_t>(record.integer(0, 0, kMaxId)));
  if (record.has(1) == record.has(2)) {
    record.refuse(ErrorCode::kSchema, "a text record needs either \"text\" or \"json\"");
  } else if (record.has(1)) {
    const std::string_view value = record.text(1);
    if (record.ok()) sink.text(id, value, false);
  } else if (record.ok()) {
    sink.text(id, model::without_white_space(record.raw(2)), true);
  }
}

void RecordReader::State_::loc() {
  if (!record.expect(kLocMembers)) {
    return;
  }
  const LocId id = static_cast<LocId>(static_cast<std::uint32_t>(record.integer(0, 0, kMaxId)));
  Loc value;
  value.kind = enumeration(1, loc_kind_from_name, LocKind::kOpaque, true);
  // One slot, spelled by what it holds in this kind.
  const std::size_t text_place = value.kind == LocKind::kRange ? 2 : value.kind == LocKind::kNamed ? 3 : 4;
  const std::size_t child_place = value.kind == LocKind::kCall ? 13 : 14;
  for (const std::size_t i : {std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{13}, std::size_t{14}}) {
    if (record.has(i) && i != text_place && i != child_place) {
      record.refuse(ErrorCode::kSchema,
                    fmt::format("a {} loc spells its text or child differently", loc_kind_name(value.kind)));
    }
  }
  value.text = number<TextId>(text_place);
  value.function = number<TextId>(5);
  value.code = number<TextId>(6);
  value.line = record.integer(7, kLowest, kHighest, 0);
  value.col = record.integer(8, kLowest, kHighest, -1);
  value.end_line = record.integer(9, kLowest, kHighest, 0);
  value.end_col = record.integer(10, kLowest, kHighest, -1);
  value.frame_class = enumeration(11, frame_class_from_name, FrameClass::kUnknown);
  value.rule = enumeration(12, frame_rule_from_name, FrameRule::kNone);
  value.child = number<LocId>(child_place);
  value.caller = number<LocId>(15);
  for (const std::int64_t part : record.integers(16, 0, kMaxId))
    value.parts.push_back(static_cast<LocId>(static_cast<std::uint32_t>(part)));
  if (record.ok()) sink.loc(id, value);
}

void RecordReader::State_::compile() {
  if (!record.expect(kCompileMembers)) return;
  const auto id = parse_id(record.text(0));
  if (record.ok() && (!id || id->letter != 0)) record.refuse(ErrorCode::kSchema, "\"id\" must read like \"c0\"");
  const Compile value{string(1), record.integer(2, kLowest, kHighest, 0), string(3), settings(4)};
  if (!record.ok()) return;
  if (id->compile == compiles.size()) compiles.emplace_back();
  sink.compile(static_cast<CompileId>(id->compile), value);
}

void RecordReader::State_::graph() {
  if (!record.expect(kGraphMembers)) return;
  const std::string_view name = record.text(0);
  const auto id = parse_id(name);
  if (record.ok() && (!id || id->letter != 'g')) record.refuse(ErrorCode::kSchema, "\"id\" must read like \"c0.g1\"");
  if (record.ok() && id->compile >= compiles.size()) undeclared("compile", name.substr(0, name.find('.')));
  Graph value{CompileId::kNone, 0, string(1), string(2), string(3)};
  if (!record.ok()) return;
  value.compile = static_cast<CompileId>(id->compile);
  value.ordinal = id->ordinal;
  const GraphId number = id_at<GraphId>(next_graph++);
  auto& known = compiles[id->compile].graphs;
  if (id->ordinal == known.size()) known.push_back(number);
  sink.graph(number, value);
}

void RecordReader::State_::unit() {
  if (!record.expect(kUnitMembers)) return;
  const auto id = parse_id(record.text(0));
  const std::string_view graph_name = record.text(1);
  Unit value{GraphId::kNone, enumeration(2, unit_kind_from_name, UnitKind::kOther, true), 0, string(3)};
  if (!record.ok()) return;
  if (!id || id->letter != unit_kind_letter(value.kind)) {
    record.refuse(ErrorCode::kSchema, fmt::format("the \"id\" of this kind of unit must read like \"c0.{}3\"",
                                                  unit_kind_letter(value.kind)));
    return;
  }
  value.graph = graph_id(graph_name);
  if (!record.ok()) return;
  if (parse_id(graph_name)->compile != id->compile) {
    record.refuse(ErrorCode::kReference, "the unit's id and its graph's id name different compiles");
    return;
  }
  value.ordinal = id->ordinal;
  const UnitId number = id_at<UnitId>(next_unit++);
  auto& known = compiles[id->compile].units[static_cast<std::size_t>(value.kind)];
  if (id->ordinal == known.size()) known.push_back(number);
  sink.unit(number, value);
}

void RecordReader::State_::attr() {
  if (!record.expect(kAttrMembers)) return;
  const std::string_view unit_name = record.text(0), attr_name = record.text(1);
  if (!record.ok()) return;
  model::AttrChange change;
  change.unit = unit_id(unit_name);
  const auto attr = attrs.find(attr_name);
  if (attr == attrs.end())
    undeclared("attr", attr_name);
  else
    change.attr = attr->second;
  change.at = static_cast<SnapshotId>(static_cast<std::uint32_t>(record.integer(2, 0, kMaxId)));
  change.value.state = enumeration(3, state_from_name, State::kNoSlot, true);
  change.value.python_type = number<TextId>(4);
  change.value.repr = number<TextId>(5);
  change.value.text = number<TextId>(6);
  change.value.loc = number<LocId>(7);
  change.value.refs = unit_ids(8);
  if (record.ok()) sink.attr(change);
}

// Takes an attr record in our writer's spelling whose names are all known; anything else, mistakes too, is left to the
// general parser, which finds the words for it.
bool RecordReader::State_::attr_as_written(std::string_view line) {
  if (!scan_attr_line(line, attr_line)) return false;
  const auto attr = attrs.find(attr_line.attr);
  const auto unit = find_unit(attr_line.unit);
  const auto state = state_from_name(attr_line.state);
  if (attr == attrs.end() || !unit || !state) return false;
  model::AttrChange change;
  change.unit = *unit;
  change.attr = attr->second;
  change.at = static_cast<SnapshotId>(attr_line.at);
  change.value.state = *state;
  change.value.python_type = static_cast<TextId>(attr_line.python_type);
  change.value.repr = static_cast<TextId>(attr_line.repr);
  change.value.text = static_cast<TextId>(attr_line.text);
  change.value.loc = static_cast<LocId>(attr_line.loc);
  change.value.refs.reserve(attr_line.refs.size());
  for (const std::string_view name : attr_line.refs) {
    const auto ref = find_unit(name);
    if (!ref) return false;
    change.value.refs.push_back(*ref);
  }
  sink.attr(change);
  return true;
}

void RecordReader::State_::snapshot() {
  if (!record.expect(kSnapshotMembers)) return;
  const SnapshotId id = static_cast<SnapshotId>(static_cast<std::uint32_t>(record.integer(0, 0, kMaxId)));
  const std::string_view stage_key = record.text(1, {}), graph_name = record.text(2), digest_text = record.text(4);
  Snapshot value;
  value.full = record.boolean(5, false);
  if (!record.ok()) return;
  value.pass = number<PassId>(6);
  if (record.has(1)) {
    const auto stage = stages.find(stage_key);
    if (stage == stages.end())
      undeclared("stage", stage_key);
    else
      value.stage = stage->second;
  }
  value.graph = graph_id(graph_name);
  const auto digest = parse_digest(digest_text);
  if (!digest) record.refuse(ErrorCode::kSchema, "\"digest\" must be 16 hexadecimal digits");
  value.digest = digest.value_or(0);
  value.units = unit_ids(3);
  if (record.ok()) sink.snapshot(id, value);
}

void RecordReader::State_::pass() {
  if (!record.expect(kPassMembers)) return;
  const std::string_view phase = record.text(0);
  if (record.ok() && phase != "start" && phase != "end")
    record.refuse(ErrorCode::kSchema, "\"phase\" must be start or end");
  const PassId id = static_cast<PassId>(static_cast<std::uint32_t>(record.integer(1, 0, kMaxId)));
  Pass value;
  const bool at_end = phase == "end";
  for (std::size_t i = 2; i < std::size(kPassMembers) && record.ok(); ++i) {
    if (record.has(i) && (i >= 8) != at_end)
      record.refuse(ErrorCode::kSchema, fmt::format("\"{}\" has no place at the {} of a pass", kPassMembers[i], phase));
  }
  if (!at_end) {
    const std::string_view graph_name = record.text(2);
    value.name = string(3);
    value.subsystem = string(4);
    value.kind = enumeration(5, pass_kind_from_name, PassKind::kPass, true);
    value.parent = number<PassId>(6);
    value.loc = number<LocId>(7);
    if (record.ok()) value.graph = graph_id(graph_name);
  } else {
    value.created = unit_ids(8);
    value.erased = unit_ids(9);
    value.changed = unit_ids(10);
    value.retargeted = unit_ids(11);
    const std::vector<UnitId> from = unit_ids(12);
    const std::vector<UnitId> to = unit_ids(13);
    if (record.ok() && from.size() != to.size())
      record.refuse(ErrorCode::kSchema, "\"replaced\" and \"by\" differ in length");
    for (std::size_t i = 0; record.ok() && i < from.size(); ++i) value.replaced.emplace_back(from[i], to[i]);
  }
  if (record.ok()) sink.pass(id, value, at_end);
}

void RecordReader::State_::birth() {
  if (!record.expect(kBirthMembers)) return;
  const std::string_view unit = record.text(0);
  Birth value;
  value.pass = number<PassId>(1);
  value.evidence = needed(2);
  value.pattern = string(3);
  value.pattern_loc = number<LocId>(4);
  value.loc = number<LocId>(5);
  if (record.ok()) value.unit = unit_id(unit);
  value.sources = unit_ids(6);
  if (record.ok()) sink.birth(value);
}

void RecordReader::State_::link() {
  if (!record.expect(kLinkMembers)) return;
  Link value{needed(0), unit_ids(1), {}};
  value.to = unit_ids(2);
  if (record.ok()) sink.link(value);
}

void RecordReader::State_::claim() {
  if (!record.expect(kClaimMembers)) return;
  const std::string_view kernel = record.text(0);
  Claim value{UnitId::kNone, needed(1), string(2), unit_ids(3)};
  if (record.ok()) value.kernel = unit_id(kernel);
  if (record.ok()) sink.claim(value);
}

void RecordReader::State_::note() {
  if (!record.expect(kNoteMembers)) return;
  Note value{needed(0), enumeration(1, severity_from_name, Severity::kInfo, true), string(2), CompileId::kNone,
             GraphId::kNone};
  if (record.has(3) && record.ok()) value.compile = compile_id(record.text(3));
  if (record.has(4) && record.ok()) value.graph = graph_id(record.text(4));
  if (record.ok()) sink.note(value);
}

void RecordReader::State_::volatile_value() {
  if (!record.expect(kVolatileValueMembers)) return;
  const Volatile value{needed(0), needed(1), string(2)};
  if (!record.ok()) return;
  // What reads like an id must be one; other names ("run") are free.
  if (const auto id = parse_id(value.of)) {
    if (id->letter == 0)
      compile_id(value.of);
    else if (id->letter == 'g')
      graph_id(value.of);
    else
      unit_id(value.of);
  }
  if (record.ok()) sink.volatile_value(value);
}

void RecordReader::State_::source() {
  if (!record.expect(kSourceMembers)) return;
  SourceFile value{needed(0), string(1), {}};
  for (const auto& [number, text] : record.text_members(2)) {
    std::int64_t line = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), line);
    if (error != std::errc() || end != number.data() + number.size() || line < 1 || number[0] == '0') {
      record.refuse(ErrorCode::kSchema, fmt::format("\"{}\" is no line number", base::cut(number, 80)));
      return;
    }
    value.lines.emplace(line, text);
  }
  if (record.ok()) sink.source(value);
}

void RecordReader::State_::end() {
  if (!record.expect(kEndMembers)) return;
  const std::string_view status = record.text(0);
  if (record.ok() && status != "complete" && status != "partial")
    record.refuse(ErrorCode::kSchema, "\"status\" must be complete or partial");
  EndRecord value{status == "complete", {}};
  for (const auto& [kind, count] : record.count_members(1)) value.counts.emplace(kind, count);
  if (record.ok()) sink.end(value);
}

void RecordReader::State_::read(RecordKind kind) {
  using Method = void (State_::*)();
  static constexpr std::array<Method, model::kRecordKinds> kMethods = {
      &State_::run,      &State_::stage,          &State_::attr_kind, &State_::hook, &State_::text,
      &State_::loc,      &State_::compile,        &State_::graph,     &State_::unit, &State_::attr,
      &State_::snapshot, &State_::pass,           &State_::birth,     &State_::link, &State_::claim,
      &State_::note,     &State_::volatile_value, &State_::source,    &State_::end};
  (this->*kMethods[static_cast<std::size_t>(kind)])();
}

// A newer format may have other members; its version is all that may be asked of it.
void RecordReader::State_::check_version() {
  if (record.kind() != "run") {
    record.refuse(ErrorCode::kSchema,
                  fmt::format("the first record must be \"run\", not \"{}\"", base::cut(record.kind(), 80)));
    return;
  }
  const auto version = record.peek_integer("format");
  if (version && *version > kFormatVersion) {
    record.refuse(ErrorCode::kTooNew,
                  fmt::format("has format version {}; this build reads up to version {}", *version, kFormatVersion));
  }
}

RecordReader::RecordReader(model::Sink& sink) : state_(std::make_unique<State_>(sink)) {}
RecordReader::~RecordReader() = default;

Expected<RecordKind> RecordReader::line(std::string_view line) {
  RecordParser& record = state_->record;
  if (!state_->first && state_->attr_as_written(line)) return RecordKind::kAttr;
  if (!record.parse(line)) return tl::unexpected<Error>(*record.error());
  if (std::exchange(state_->first, false)) state_->check_version();
  if (!record.ok()) return tl::unexpected<Error>(*record.error());
  const auto kind = model::record_kind_from_name(record.kind());
  if (!kind)
    return fail(ErrorCode::kSchema,
                fmt::format("no record of this format is called \"{}\"", base::cut(record.kind(), 80)));
  state_->read(*kind);
  if (!record.ok()) return tl::unexpected<Error>(*record.error());
  return *kind;
}

}  // namespace kerntrail::read
