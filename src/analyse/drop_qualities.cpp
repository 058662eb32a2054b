// How good present values are: the half of DropFinder that judges them.
#include <algorithm>
#include <unordered_set>

#include "analyse/drop_finder.h"
#include "analyse/handles.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

constexpr std::size_t kMaxOthers = 16;  // units kept as evidence for one value

// Read through the origins whenever it is asked for: it has no value of its own that anything could overwrite.
bool is_accessor(std::string_view field) { return field == "get_stack_traces"; }

void add_once(std::vector<std::string>& texts, std::string text) {
  if (texts.size() < kMaxOthers && std::find(texts.begin(), texts.end(), text) == texts.end())
    texts.push_back(std::move(text));
}

}  // namespace

// One quality a value. What is wrong goes before what is merely less than it could be; what came with the value from a
// unit that this one was made of is that unit's mark.
void DropFinder::judge_value(const Where& where, const ColumnUnit& unit, AttrId field, FieldUnit& cell) {
  const AttrKind& kind = capture_.attr_kinds[index(field)];
  if (is_accessor(kind.name)) return;
  if (changed_in_place(unit, field, cell)) return;
  const bool own_layer = kind.layer == pipeline_.columns[where.column].layer;
  std::optional<Mark> at_birth;
  if (own_layer) at_birth = wrong_at_birth(unit, field);
  if (at_birth && at_birth->quality == Quality::kOverwritten) return mark(cell, std::move(*at_birth));
  const std::uint32_t before = own_layer && !at_birth ? wrong_before(unit.unit, field) : kNoIndex;
  if (before != kNoIndex && marks_[before].quality == Quality::kOverwritten) return refer(cell, before);
  if (in_conflict(where, unit, field, cell)) return;
  if (before != kNoIndex) return refer(cell, before);
  if (auto little = worth_little(unit.unit, field, unit.snapshot)) return mark(cell, std::move(*little));
  if (at_birth) mark(cell, std::move(*at_birth));
}

// A chain that leads nowhere, a stack of the compiler's own.
std::optional<Mark> DropFinder::worth_little(UnitId unit, AttrId field, SnapshotId until) {
  const ValueType type = type_of(field);
  const Observation& value = *present(capture_, unit, field, until);
  Mark found;
  if (type == ValueType::kNodeSources && is_vacuous(value, until)) found.quality = Quality::kVacuous;
  if (type == ValueType::kStack && is_compiler_made(capture_, value.loc)) found.quality = Quality::kCompilerMade;
  if (found.quality == Quality::kKept) return std::nullopt;
  found.unit = unit;
  found.field = field;
  found.now = short_value(capture_, type, value);
  SnapshotId given = SnapshotId::kNone;
  capture_.each_version(unit, field, [&](SnapshotId since, const Observation& seen) {
    if (!has(given) && seen.state == State::kPresent) given = since;
  });
  const SnapshotId first = passes_.first_seen(unit);
  const ChargedBirth birth = passes_.charged(unit);
  if (has(first) && given > first) {
    found.site = sites_.change(given);
  } else if (birth.birth != nullptr && (has(birth.birth->pass) || !birth.sources.empty())) {
    found.site = birth_site(birth, unit);
  }
  return found;
}

// The mark of the units that this one was made of, where it has its value from none but marked ones; else kNoIndex. A
// chain of units may be as long as the capture: worked off with a stack of its own.
std::uint32_t DropFinder::wrong_before(UnitId unit, AttrId field) {
  std::vector<FieldKey> work{{unit, field}};
  while (!work.empty()) {
    const FieldKey key = work.back();
    if (born_wrong_.count(key) != 0) {
      work.pop_back();
      continue;
    }
    marking_.insert(key);
    std::vector<FieldKey> needed;
    if (const auto decided = decide_mark(key.first, key.second, needed)) {
      born_wrong_[key] = *decided;
      marking_.erase(key);
      work.pop_back();
    } else {
      work.insert(work.end(), needed.begin(), needed.end());
    }
  }
  return born_wrong_.at({unit, field});
}

std::optional<std::uint32_t> DropFinder::decide_mark(UnitId unit, AttrId field, std::vector<FieldKey>& needed) {
  const ChargedBirth birth = passes_.charged(unit);
  const ValueType type = type_of(field);
  const Observation* first = nullptr;
  capture_.each_version(unit, field, [&](SnapshotId, const Observation& seen) {
    if (first == nullptr && seen.state == State::kPresent) first = &seen;
  });
  std::uint32_t found = kNoIndex;
  if (first == nullptr) return found;
  for (UnitId source : birth.sources) {
    const SourceState state = source_state(birth, source, unit, field);
    if (state.value == nullptr || kept_of(capture_, type, *state.value, *first) != Kept::kAll) continue;
    const std::size_t before = needed.size();
    const std::uint32_t wrong = wrong_at(source, field, state.when, needed);
    if (needed.size() > before) continue;
    if (wrong == kNoIndex) {  // this one says so rightly
      needed.clear();
      return wrong;
    }
    if (found == kNoIndex) found = wrong;
  }
  if (!needed.empty()) return std::nullopt;
  return found;
}

// What is wrong with a value that something was made with; asks for what must be decided first.
std::uint32_t DropFinder::wrong_at(UnitId unit, AttrId field, SnapshotId until, std::vector<FieldKey>& needed) {
  FieldUnit nowhere;
  if (changed_in_place({unit, until}, field, nowhere)) return nowhere.mark;
  auto at_birth = wrong_at_birth({unit, until}, field);
  if (at_birth && at_birth->quality == Quality::kOverwritten) return add_mark(std::move(*at_birth));
  if (!at_birth) {
    const auto before = born_wrong_.find({unit, field});
    if (before == born_wrong_.end() && marking_.count({unit, field}) == 0) {
      needed.emplace_back(unit, field);
      return kNoIndex;
    }
    if (before != born_wrong_.end() && before->second != kNoIndex) return before->second;
  }
  if (auto little = worth_little(unit, field, until)) return add_mark(std::move(*little));
  return at_birth ? add_mark(std::move(*at_birth)) : kNoIndex;
}

// The last change that no intent declares and after which the value no longer says what it said at first.
bool DropFinder::changed_in_place(const ColumnUnit& unit, AttrId field, FieldUnit& cell) {
  const ValueType type = type_of(field);
  const std::string_view name = capture_.attr_kinds[index(field)].name;
  const Observation* base = nullptr;
  const Observation* last = nullptr;
  const Observation* before_change = nullptr;
  SnapshotId changed = SnapshotId::kNone;
  std::vector<std::pair<PassId, std::uint32_t>> uses;
  capture_.each_version(unit.unit, field, [&](SnapshotId since, const Observation& seen) {
    if (since > unit.snapshot || seen.state != State::kPresent) return;
    if (base == nullptr) {
      base = &seen;
    } else if (kept_of(capture_, type, *last, seen) != Kept::kAll) {
      const PassId pass = capture_.snapshots[index(since)].pass;
      const std::uint32_t intent =
          has(pass) || passes_.has_passes(pipeline_.compile)
              ? intents_.find(IntentKind::kRemaps, pass, {}, target_of(unit.unit), name)
              : intents_.perhaps(IntentKind::kRemaps, pipeline_.compile, target_of(unit.unit), name);
      if (intent != kNoIndex) {
        uses.emplace_back(pass, intent);
        base = &seen;
      } else {
        changed = since;
        before_change = last;
      }
    }
    last = &seen;
  });
  for (const auto& [pass, intent] : uses) use_intent(unit.unit, field, pass, intent);
  if (!has(changed) || last == nullptr) return false;
  const Kept kept = kept_of(capture_, type, *base, *last);
  if (kept == Kept::kAll) return false;
  Mark found;
  found.unit = unit.unit;
  found.field = field;
  found.quality = kept == Kept::kPart ? Quality::kCollapsed : Quality::kOverwritten;
  found.site = sites_.change(changed);
  found.evidence = "identity";
  found.was = short_value(capture_, type, *before_change);
  found.now = short_value(capture_, type, *last);
  const PassId pass = capture_.snapshots[index(changed)].pass;
  if (has(pass) && !is_references(type)) {
    found.others = owners_before(pass, field, value_key(capture_, type, *last), unit.unit);
    const ValueKey former = value_key(capture_, type, *before_change);
    for (UnitId other : found.others) {
      const Observation* now = present(capture_, other, field, changed);
      found.swapped = found.swapped || (now != nullptr && value_key(capture_, type, *now) == former);
    }
  }
  mark(cell, std::move(found));
  return true;
}

// Units that live on after the last stage that shows them, as the graph that was traced from source does while its
// passes run: what was made of them has the values they had in the end.
void DropFinder::judge_after_stages() {
  UnitMap<const Column*> last;
  for (const Column& column : pipeline_.columns) {
    if (column.layer != "FX") continue;
    for (const ColumnUnit& unit : column.units) last[unit.unit] = &column;
  }
  for (const Column& column : pipeline_.columns) {
    for (const ColumnUnit& unit : column.units) {
      const auto shown = last.find(unit.unit);
      if (shown == last.end() || shown->second != &column || has(passes_.erased_in(unit.unit))) continue;
      for (const AttrId field : fields_) {
        const AttrKind& kind = capture_.attr_kinds[index(field)];
        if (kind.layer != column.layer || is_accessor(kind.name)) continue;
        bool later = false;
        capture_.each_version(unit.unit, field,
                              [&](SnapshotId since, const Observation&) { later = later || since > unit.snapshot; });
        if (!later) continue;
        FieldUnit nowhere;  // no stage has a cell for this
        changed_in_place({unit.unit, id_at<SnapshotId>(capture_.snapshots.size() - 1)}, field, nowhere);
        if (nowhere.mark != kNoIndex && sites_[marks_[nowhere.mark].site].at > unit.snapshot)
          marks_[nowhere.mark].after_stages = true;
      }
    }
  }
}

// Compared with what the sources said when the unit was made.
std::optional<Mark> DropFinder::wrong_at_birth(const ColumnUnit& unit, AttrId field) {
  const ChargedBirth birth = passes_.charged(unit.unit);
  if (birth.sources.empty()) return std::nullopt;
  const ValueType type = type_of(field);
  const Observation* first = nullptr;
  capture_.each_version(unit.unit, field, [&](SnapshotId, const Observation& seen) {
    if (first == nullptr && seen.state == State::kPresent) first = &seen;
  });
  std::unordered_set<ValueKey, ValueKeyHash> different;
  std::vector<UnitId> given_up;
  std::vector<std::string> values;  // of those
  std::size_t sources = 0;
  bool carried = false;
  const Observation* example = nullptr;
  for (UnitId source : birth.sources) {
    const Observation* value = source_state(birth, source, unit.unit, field).value;
    if (value == nullptr) continue;
    if (is_references(type) && value->refs.empty()) {  // names nothing that was seen: nothing to compare
      carried = true;
      continue;
    }
    different.insert(value_key(capture_, type, *value));
    ++sources;
    const bool names_it =
        is_references(type) && std::find(first->refs.begin(), first->refs.end(), source) != first->refs.end();
    const bool kept = names_it || kept_of(capture_, type, *value, *first) == Kept::kAll;
    carried = carried || kept;
    if (example == nullptr || (!kept && given_up.empty())) example = value;
    if (kept) continue;
    if (given_up.size() < kMaxOthers) given_up.push_back(source);
    if (std::string text = short_value(capture_, type, *value); !text.empty()) add_once(values, std::move(text));
  }
  if (different.empty() || given_up.empty()) return std::nullopt;
  if (is_references(type) && first->refs.empty()) return std::nullopt;  // vacuous, not wrong
  const std::uint32_t intent = intents_.find(IntentKind::kRemaps, birth.birth->pass, birth.birth->pattern,
                                             target_of(unit.unit), capture_.attr_kinds[index(field)].name);
  if (intent != kNoIndex) {
    use_intent(unit.unit, field, birth.birth->pass, intent);
    return std::nullopt;
  }
  Mark found;
  found.unit = unit.unit;
  found.field = field;
  // An operator that names itself says nothing false, but nothing of what it came from either.
  const bool names_itself = !carried && type == ValueType::kOp && capture_.text(first->text) == target_of(unit.unit);
  found.quality = carried ? Quality::kCollapsed : names_itself ? Quality::kCompilerMade : Quality::kOverwritten;
  found.site = birth_site(birth, unit.unit);
  found.evidence = birth.evidence;
  found.sources = sources;
  found.different = different.size();
  found.others = std::move(given_up);
  found.given_up = std::move(values);
  found.was = example == nullptr ? std::string() : short_value(capture_, type, *example);
  found.now = short_value(capture_, type, *first);
  return found;
}

bool DropFinder::reaches_line(UnitId root, SnapshotId until, const std::optional<SourceKey>& line) const {
  if (!pre_grad_[index(capture_.units[index(root)].graph)]) return false;
  const Observation* stack = present(capture_, root, names_["stack_trace"], until);
  if (stack == nullptr) return false;
  return !line || line_of(capture_, *stack) == line;
}

// Nothing in the chain is a node of the graph traced from source that has a stack. Without such a graph in the
// capture, nobody can tell.
bool DropFinder::is_vacuous(const Observation& value, SnapshotId until) const {
  if (!has_pre_grad_) return false;
  return std::none_of(value.refs.begin(), value.refs.end(),
                      [&](UnitId root) { return reaches_line(root, until, std::nullopt); });
}

// Two fields of one unit that name different lines of source.
bool DropFinder::in_conflict(const Where& where, const ColumnUnit& unit, AttrId field, FieldUnit& cell) {
  const std::string& name = capture_.attr_kinds[index(field)].name;
  if (name == "stack_trace" || name == "from_node") return stack_and_chain(where, unit, field, cell);
  return name == "debug_handle" && handle_and_origins(where, unit, field, cell);
}

// Where the value of one is already known to be wrong or only a part, that the other differs follows from it and is no
// finding of its own: the mark says so.
bool DropFinder::stack_and_chain(const Where& where, const ColumnUnit& unit, AttrId field, FieldUnit& cell) {
  const bool of_chain = field == names_["from_node"];
  const AttrId other = of_chain ? names_["stack_trace"] : names_["from_node"];
  const Observation* stack = present(capture_, unit.unit, names_["stack_trace"], unit.snapshot);
  const Observation* chain = present(capture_, unit.unit, names_["from_node"], unit.snapshot);
  if (stack == nullptr || chain == nullptr) return false;
  const auto line = line_of(capture_, *stack);
  if (!line || is_vacuous(*chain, unit.snapshot)) return false;
  Mark found;
  found.unit = unit.unit;
  found.field = field;
  found.quality = Quality::kConflict;
  found.against = other;
  for (UnitId root : chain->refs) {
    if (reaches_line(root, unit.snapshot, line)) return false;
    if (!reaches_line(root, unit.snapshot, std::nullopt)) continue;
    if (found.others.size() < kMaxOthers) found.others.push_back(root);
    const Observation& said = *present(capture_, root, names_["stack_trace"], unit.snapshot);
    add_once(found.given_up, short_value(capture_, ValueType::kStack, said));
  }
  if (found.given_up.empty()) return false;
  if (spoilt(where, unit, field) != kNoIndex) return false;
  if (const std::uint32_t cause = spoilt(where, unit, other); cause != kNoIndex) {
    marks_[cause].against = field;
    return false;
  }
  found.was = found.given_up.front();
  found.now = short_value(capture_, ValueType::kStack, *stack);
  if (of_chain) std::swap(found.was, found.now);
  mark(cell, std::move(found));
  return true;
}

bool DropFinder::handle_and_origins(const Where& where, const ColumnUnit& unit, AttrId field, FieldUnit& cell) {
  Mark found;
  found.unit = unit.unit;
  found.field = field;
  found.quality = Quality::kConflict;
  if (pipeline_.columns[where.column].key == "superdsc" && disagreeing_.count(unit.unit) != 0) {
    mark(cell, std::move(found));
    return true;
  }
  const Observation* origins = present(capture_, unit.unit, names_["buffer_origins"], unit.snapshot);
  const auto handle = read_handle(capture_, present(capture_, unit.unit, field, unit.snapshot));
  if (origins == nullptr || !handle || !handle->has_source()) return false;
  for (UnitId origin : origins->refs) {
    const Observation* seen = present(capture_, origin, names_["stack_trace"], unit.snapshot);
    const auto line = seen == nullptr ? std::nullopt : line_of(capture_, *seen);
    if (!line) continue;
    if (line->line == handle->start_line && base::basename(capture_.text(line->file)) == base::basename(handle->file))
      return false;
    if (found.others.size() < kMaxOthers) found.others.push_back(origin);
    add_once(found.given_up, short_value(capture_, ValueType::kStack, *seen));
  }
  if (found.others.empty()) return false;
  found.against = names_["buffer_origins"];
  found.was = found.given_up.front();
  found.now = handle->place();
  mark(cell, std::move(found));
  return true;
}

// The mark that says that a present value is overwritten or collapsed, of this unit or of those it has it from.
std::uint32_t DropFinder::spoilt(const Where& where, const ColumnUnit& unit, AttrId field) {
  FieldUnit nowhere;
  if (changed_in_place(unit, field, nowhere)) return nowhere.mark;
  if (capture_.attr_kinds[index(field)].layer != pipeline_.columns[where.column].layer) return kNoIndex;
  if (auto at_birth = wrong_at_birth(unit, field)) {
    const bool spoils = at_birth->quality == Quality::kOverwritten || at_birth->quality == Quality::kCollapsed;
    return spoils ? add_mark(std::move(*at_birth)) : kNoIndex;
  }
  const std::uint32_t before = wrong_before(unit.unit, field);
  if (before == kNoIndex) return kNoIndex;
  const Quality quality = marks_[before].quality;
  return quality == Quality::kOverwritten || quality == Quality::kCollapsed ? before : kNoIndex;
}

// Units that a pass touched, by the value they had before it.
std::vector<UnitId> DropFinder::owners_before(PassId pass, AttrId field, const ValueKey& value, UnitId but) {
  const std::uint64_t key = (static_cast<std::uint64_t>(index(pass)) << 32U) ^ index(field);
  auto [place, fresh] = owners_.try_emplace(key);
  if (fresh) {
    const Pass& run = capture_.passes[index(pass)];
    const SnapshotId before = passes_.before(pass);
    const ValueType type = type_of(field);
    std::unordered_set<UnitId> seen;
    const auto add = [&](UnitId unit) {
      if (!has(before) || !seen.insert(unit).second) return;
      if (const Observation* had = present(capture_, unit, field, before))
        place->second[value_key(capture_, type, *had)].push_back(unit);
    };
    for (UnitId unit : run.changed) add(unit);
    for (UnitId unit : run.erased) add(unit);
    for (const auto& [from, to] : run.replaced) add(from);
    if (has(run.last_look)) {
      for (UnitId unit : capture_.snapshots[index(run.last_look)].units) add(unit);
    }
  }
  std::vector<UnitId> result;
  const auto found = place->second.find(value);
  if (found == place->second.end()) return result;
  for (UnitId unit : found->second) {
    if (unit != but && result.size() < kMaxOthers) result.push_back(unit);
  }
  return result;
}

std::uint32_t DropFinder::add_mark(Mark found) {
  auto& known = marks_of_[{found.unit, found.field}];
  for (std::uint32_t i : known) {
    if (marks_[i].quality == found.quality && marks_[i].site == found.site) return i;
  }
  known.push_back(static_cast<std::uint32_t>(marks_.size()));
  marks_.push_back(std::move(found));
  return known.back();
}

void DropFinder::refer(FieldUnit& cell, std::uint32_t mark) const {
  cell.mark = mark;
  cell.quality = marks_[mark].quality;
}

void DropFinder::use_intent(UnitId unit, AttrId field, PassId pass, std::uint32_t intent) {
  auto& known = declared_of_[{unit, field}];
  for (std::uint32_t i : known) {
    if (declared_[i].intent == intent && declared_[i].pass == pass) return;
  }
  known.push_back(static_cast<std::uint32_t>(declared_.size()));
  declared_.push_back({unit, field, pass, intent});
}

}  // namespace kerntrail::analyse
