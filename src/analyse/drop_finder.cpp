#include "analyse/drop_finder.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <unordered_set>

#include "analyse/survival.h"

namespace kerntrail::analyse {
namespace {

// Fields that name the sources of a unit: without any source they are an orphan's, not one's that nobody made.
constexpr std::array<std::string_view, 4> kNamesSources{"origins", "origin_node", "get_stack_traces", "debug_handle"};

bool names_sources(std::string_view field) {
  return std::find(kNamesSources.begin(), kNamesSources.end(), field) != kNamesSources.end();
}

// Fields that are read through another field of the units they came from.
std::string_view read_through(std::string_view field) {
  return field == "get_stack_traces" ? std::string_view("stack_trace") : std::string_view();
}

}  // namespace

DropFinder::DropFinder(const Capture& capture, const Pipeline& pipeline, const Matrix& matrix, EdgeFinder& edges,
                       const PassIndex& passes, const IntentTable& intents)
    : capture_(capture),
      pipeline_(pipeline),
      matrix_(matrix),
      edges_(edges),
      passes_(passes),
      intents_(intents),
      names_(capture),
      sites_(capture, passes),
      graph_order_(capture.graphs.size(), std::numeric_limits<int>::min()),
      pre_grad_(capture.graphs.size(), false),
      disagreeing_(edges.disagreeing_files().begin(), edges.disagreeing_files().end()) {
  for (const MatrixRow& row : matrix.rows) {
    row_of_[row.attr] = fields_.size();
    fields_.push_back(row.attr);
    created_.push_back(first_order(capture, pipeline, row.attr));
  }
  for (const Column& column : pipeline.columns) {
    for (SnapshotId look : column.snapshots) {
      const std::size_t graph = index(capture.snapshots[index(look)].graph);
      graph_order_[graph] = std::max(graph_order_[graph], column.order);
      if (column.key == "fx_pre_grad") pre_grad_[graph] = has_pre_grad_ = true;
    }
  }
  for (std::size_t s = capture.end ? 0 : capture.snapshots.size(); s-- > 0 && !has(breaks_off_in_);) {
    if (has(capture.snapshots[s].stage)) breaks_off_in_ = id_at<SnapshotId>(s);
  }
}

void DropFinder::fill(Drops& result) {
  for (const Column& column : pipeline_.columns) {
    StageTally stage{column.stage, column.key, column.title, column.noun, column.units.size(), {}};
    for (std::size_t r = 0; r < fields_.size(); ++r) {
      FieldTally tally;
      tally.attr = fields_[r];
      tally.name = matrix_.rows[r].name;
      tally.layer = matrix_.rows[r].layer;
      tally.created = column.order >= created_[r];
      tally.units.resize(column.units.size());
      stage.fields.push_back(std::move(tally));
    }
    stages_.push_back(std::move(stage));
    done_.emplace_back(column.units.size(), false);
    judge_column(stages_.size() - 1);
  }
  judge_after_stages();
  result.stages = std::move(stages_);
  result.sites = sites_.take();
  result.losses = std::move(losses_);
  result.marks = std::move(marks_);
  result.orphans = std::move(orphans_);
  result.declared = std::move(declared_);
}

// Units without births first: those that were made of them ask for their reasons.
void DropFinder::judge_column(std::size_t column) {
  const auto& units = pipeline_.columns[column].units;
  for (const bool born : {false, true}) {
    for (std::size_t p = 0; p < units.size(); ++p) {
      if (passes_.births_of(units[p].unit).empty() == born) continue;
      for (std::size_t r = 0; r < fields_.size(); ++r) judge({column, r, p});
      done_[column][p] = true;
    }
  }
}

void DropFinder::judge(const Where& where) {
  const ColumnUnit& unit = pipeline_.columns[where.column].units[where.position];
  const CellUnit& seen = matrix_.rows[where.row].cells[where.column].units[where.position];
  FieldTally& tally = stages_[where.column].fields[where.row];
  FieldUnit& cell = tally.units[where.position];
  cell.unit = unit.unit;
  cell.state = seen.state;
  if (seen.state == State::kUnreadable) {
    ++tally.unreadable;
    return;
  }
  const AttrId field = fields_[where.row];
  if (seen.state == State::kPresent) {
    judge_value(where, unit, field, cell);
    ++tally.present;
    ++tally.qualities[static_cast<std::size_t>(cell.quality)];
    return;
  }
  Absence why;
  if (!tally.created) {
    why.reason = Reason::kNotCreatedYet;
  } else if (!seen.carrier.empty()) {
    why.reason = Reason::kCarriedBy;
    cell.carrier = seen.carrier;
  } else if (cell.carrier = held_by_members(where, unit, field); !cell.carrier.empty()) {
    why.reason = Reason::kCarriedBy;
  } else if (unit.snapshot != breaks_off_in_) {
    why = absence(where, unit, field);
  }  // else unknown: what links the units of that stage to others was perhaps never written
  cell.reason = why.reason;
  cell.loss = why.loss;
  cell.root = why.root;
  cell.guessed = why.guessed;
  cell.orphan = why.orphan;
  if (why.reason == Reason::kDropped) losses_[why.loss].in_stage = true;
  if (why.reason == Reason::kSynthesised && why.intent != kNoIndex) use_intent(unit.unit, field, why.pass, why.intent);
  ++tally.absent;
  ++tally.reasons[static_cast<std::size_t>(why.reason)];
}

// A group holds its operations, and with them all that they hold.
std::string_view DropFinder::held_by_members(const Where& where, const ColumnUnit& unit, AttrId field) const {
  if (capture_.units[index(unit.unit)].kind != UnitKind::kGroup) return {};
  const Observation* members = present(capture_, unit.unit, names_["operations"], unit.snapshot);
  if (members == nullptr) return {};
  for (std::size_t above = where.column; above-- > 0;) {
    for (UnitId member : members->refs) {
      const FieldUnit* cell = cell_of(above, member, field);
      if (cell == nullptr) continue;
      const bool carried = cell->state != State::kUnreadable && cell->reason == Reason::kCarriedBy;
      if (cell->state == State::kPresent || carried) return "operations";
    }
  }
  return {};
}

Absence DropFinder::absence(const Where& where, const ColumnUnit& unit, AttrId field) {
  if (auto lost = lost_in_place(unit.unit, field, unit.snapshot)) return *lost;
  if (born_here(unit.unit, field, pipeline_.columns[where.column])) return by_birth(unit.unit, field);
  return by_stages(where, unit, field);
}

// Births speak of fields of the unit's own layer; fields of earlier layers are followed through the stages.
bool DropFinder::born_here(UnitId unit, AttrId field, const Column& column) const {
  return capture_.attr_kinds[index(field)].layer == column.layer && !passes_.births_of(unit).empty();
}

std::optional<Absence> DropFinder::lost_in_place(UnitId unit, AttrId field, SnapshotId until) {
  SnapshotId lost = SnapshotId::kNone;
  bool had = false;
  capture_.each_version(unit, field, [&](SnapshotId since, const Observation& seen) {
    if (since > until) return;
    if (seen.state == State::kPresent) {
      had = true;
      lost = SnapshotId::kNone;
    } else if (had && !has(lost)) {
      lost = since;
    }
  });
  if (!had || !has(lost)) return std::nullopt;
  const PassId pass = capture_.snapshots[index(lost)].pass;
  const std::uint32_t intent =
      intents_.find(IntentKind::kRemaps, pass, {}, target_of(unit), capture_.attr_kinds[index(field)].name);
  if (intent != kNoIndex) return declared(intent, pass);
  Loss loss;
  loss.unit = unit;
  loss.field = field;
  loss.site = sites_.change(lost);
  loss.way = LossWay::kInPlace;
  loss.evidence = "identity";
  loss.had = {unit};
  loss.sources = 1;
  loss.before = index(lost) == 0 ? SnapshotId::kNone : id_at<SnapshotId>(index(lost) - 1);
  Absence result;
  result.reason = Reason::kDropped;
  result.loss = add_loss(std::move(loss));
  return result;
}

// A chain of units may be as long as the capture: worked off with a stack of its own. A cycle, which only a damaged
// capture has, ends as unknown.
Absence DropFinder::by_birth(UnitId unit, AttrId field) {
  std::vector<FieldKey> work{{unit, field}};
  while (!work.empty()) {
    const FieldKey key = work.back();
    if (known_.count(key) != 0) {
      work.pop_back();
      continue;
    }
    open_.try_emplace(key);
    std::vector<FieldKey> needed;
    if (auto decided = decide(key.first, key.second, needed)) {
      known_[key] = *decided;
      open_.erase(key);
      work.pop_back();
    } else {
      work.insert(work.end(), needed.begin(), needed.end());
    }
  }
  return known_.at({unit, field});
}

std::optional<Absence> DropFinder::decide(UnitId unit, AttrId field, std::vector<FieldKey>& needed) {
  const ChargedBirth birth = passes_.charged(unit);
  if (birth.birth == nullptr) return base(unit, field);
  const PassId pass = birth.birth->pass;
  const std::string_view name = capture_.attr_kinds[index(field)].name;
  // A unit that stands for others, by a match or a replacement, is made of them whatever its pass declares.
  const bool stands_for_others = passes_.names_predecessors(birth.evidence);
  const std::uint32_t synthesised =
      stands_for_others ? kNoIndex
                        : intents_.find(IntentKind::kSynthesises, pass, birth.birth->pattern, target_of(unit), {});
  if (synthesised != kNoIndex) return declared(synthesised, pass);
  if (birth.sources.empty()) {
    Absence result = has(pass) ? Absence{} : base(unit, field);
    if (is_of_autograd(unit)) result.reason = Reason::kNeverMade;
    return result.reason == Reason::kUnknown ? orphan(unit) : result;
  }
  Loss loss;
  std::vector<Absence> reasons;
  for (UnitId source : birth.sources) {
    const SourceState state = source_state(birth, source, unit, field);
    if (state.value != nullptr) {
      if (!has(loss.before)) loss.before = state.when;
      loss.had.push_back(source);
      continue;
    }
    if (!loss.had.empty()) continue;
    if (could_not_have(source, field)) {
      reasons.push_back(
          {Reason::kNotCreatedYet, kNoIndex, Reason::kUnknown, kNoIndex, PassId::kNone, false, UnitId::kNone});
    } else if (auto lost = has(state.when) ? lost_in_place(source, field, state.when) : std::nullopt) {
      reasons.push_back(*lost);
    } else if (auto known = known_.find({source, field}); known != known_.end()) {
      reasons.push_back(known->second);
    } else if (open_.count({source, field}) == 0) {
      needed.emplace_back(source, field);
    }
  }
  if (!loss.had.empty()) {
    needed.clear();
    const std::uint32_t remaps = intents_.find(IntentKind::kRemaps, pass, birth.birth->pattern, target_of(unit), name);
    if (remaps != kNoIndex) return declared(remaps, pass);
    loss.unit = unit;
    loss.field = field;
    loss.site = birth_site(birth, unit);
    loss.way = LossWay::kAtBirth;
    loss.evidence = birth.evidence;
    loss.sources = birth.sources.size();
    Absence result;
    result.reason = Reason::kDropped;
    result.loss = add_loss(std::move(loss));
    return result;
  }
  if (!needed.empty()) return std::nullopt;
  return inherit(reasons);
}

// Made by autograd for a forward node, not from it: what it lacks was never given to it.
bool DropFinder::is_of_autograd(UnitId unit) const {
  const auto births = passes_.births_of(unit);
  return std::any_of(births.begin(), births.end(),
                     [&](std::uint32_t i) { return capture_.births[i].evidence == "sequence"; });
}

// None of the sources had it. A loss among their reasons is the root; else the plainest of them.
Absence DropFinder::inherit(const std::vector<Absence>& sources) {
  Absence result;
  result.reason = Reason::kInheritedGap;
  const auto all = [&](Reason reason) {
    return !sources.empty() &&
           std::all_of(sources.begin(), sources.end(), [&](const Absence& a) { return a.reason == reason; });
  };
  if (all(Reason::kNotCreatedYet)) {
    result.reason = Reason::kNeverMade;
    return result;
  }
  if (all(Reason::kSynthesised)) return sources.front();
  for (const Absence& source : sources) {
    if (source.loss == kNoIndex) continue;
    result.loss = source.loss;
    result.root = Reason::kDropped;
    return result;
  }
  for (Reason reason : {Reason::kOrphan, Reason::kNeverMade, Reason::kNotCreatedYet, Reason::kSynthesised}) {
    const auto found = std::find_if(sources.begin(), sources.end(), [&](const Absence& a) {
      return a.reason == reason || (a.reason == Reason::kInheritedGap && a.root == reason);
    });
    if (found == sources.end()) continue;
    result.root = reason == Reason::kNotCreatedYet ? Reason::kNeverMade : reason;
    result.orphan = found->orphan;
    return result;
  }
  return result;
}

const FieldUnit* DropFinder::cell_of(std::size_t column, UnitId unit, AttrId field) const {
  const Column& c = pipeline_.columns[column];
  const auto place = c.positions.find(unit);
  if (place == c.positions.end() || !done_[column][place->second]) return nullptr;
  return &stages_[column].fields[row_of_.at(field)].units[place->second];
}

// A unit that nothing tells the birth of: what its first stage says.
Absence DropFinder::base(UnitId unit, AttrId field) const {
  Absence result;
  const SnapshotId first = passes_.first_seen(unit);
  if (has(first) && !is_counted(capture_, names_["op"], unit, first)) {
    result.reason = Reason::kNeverMade;  // placeholders and outputs
    return result;
  }
  for (std::size_t c = 0; c < stages_.size(); ++c) {
    const FieldUnit* cell = cell_of(c, unit, field);
    if (cell == nullptr) continue;
    const bool later = cell->state == State::kPresent || cell->reason == Reason::kNotCreatedYet;
    result.reason = later ? Reason::kNeverMade : cell->reason;
    if (result.reason == Reason::kCarriedBy) result.reason = Reason::kUnknown;  // it had no slot of its own to lose
    result.loss = cell->loss;
    result.root = cell->root;
    result.orphan = cell->orphan;
    return result;
  }
  const std::size_t graph = index(capture_.units[index(unit)].graph);
  if (pre_grad_[graph] && passes_.births_of(unit).empty()) result.reason = Reason::kNeverMade;
  return result;
}

// Before the pass; a source made within it, at the pass's own look; one that came with the graph, when it was last
// seen before the unit was.
DropFinder::SourceState DropFinder::source_state(const ChargedBirth& birth, UnitId source, UnitId unit,
                                                 AttrId field) const {
  SourceState state;
  const SnapshotId first = passes_.first_seen(source);
  if (!has(first)) return state;
  const PassId pass = birth.birth->pass;
  SnapshotId before = SnapshotId::kNone;
  SnapshotId within = passes_.first_seen(unit);
  if (has(pass)) {
    before = passes_.before(pass);
    if (has(capture_.passes[index(pass)].last_look)) within = capture_.passes[index(pass)].last_look;
  } else if (has(within) && index(within) > 0) {
    before = id_at<SnapshotId>(index(within) - 1);
  }
  state.when = has(before) && first <= before ? before : within;
  if (has(state.when)) state.value = present(capture_, source, field, state.when);
  return state;
}

// The field comes to exist at a stage later than any the source's graph was seen at.
bool DropFinder::could_not_have(UnitId source, AttrId field) const {
  const int order = graph_order_[index(capture_.units[index(source)].graph)];
  return order != std::numeric_limits<int>::min() && order < created_[row_of_.at(field)];
}

std::string_view DropFinder::target_of(UnitId unit) const {
  const SnapshotId first = passes_.first_seen(unit);
  const Observation* seen = has(first) ? present(capture_, unit, names_["target"], first) : nullptr;
  return seen == nullptr ? std::string_view() : capture_.text(seen->text);
}

std::string DropFinder::last_stage_of(UnitId unit, SnapshotId before) const {
  for (std::size_t c = pipeline_.columns.size(); c-- > 0;) {
    const Column& column = pipeline_.columns[c];
    const auto place = column.positions.find(unit);
    if (place != column.positions.end() && (!has(before) || column.units[place->second].snapshot < before))
      return column.key;
  }
  const std::size_t graph = index(capture_.units[index(unit)].graph);
  std::string result;
  for (const Column& column : pipeline_.columns) {
    if (column.order == graph_order_[graph]) result = column.key;
  }
  return result;
}

std::string DropFinder::first_stage_of(UnitId unit) const {
  for (const Column& column : pipeline_.columns) {
    if (column.holds(unit)) return column.key;
  }
  for (const Column& column : pipeline_.columns) {  // it did not live until a stage: the first one of its graph
    for (SnapshotId look : column.snapshots) {
      if (capture_.snapshots[index(look)].graph == capture_.units[index(unit)].graph) return column.key;
    }
  }
  return {};
}

std::uint32_t DropFinder::birth_site(const ChargedBirth& birth, UnitId unit) {
  const SnapshotId first = passes_.first_seen(unit);
  if (has(birth.birth->pass)) return sites_.birth(birth, {}, {}, first);
  return sites_.birth(birth, last_stage_of(birth.sources.front(), first), first_stage_of(unit), first);
}

std::uint32_t DropFinder::add_loss(Loss loss) {
  auto& known = losses_of_[{loss.unit, loss.field}];
  for (std::uint32_t i : known) {
    if (losses_[i].site == loss.site && losses_[i].way == loss.way) return i;
  }
  known.push_back(static_cast<std::uint32_t>(losses_.size()));
  losses_.push_back(std::move(loss));
  return known.back();
}

Absence DropFinder::declared(std::uint32_t intent, PassId pass) const {
  return {Reason::kSynthesised, kNoIndex, Reason::kUnknown, intent, pass, false, UnitId::kNone};
}

// What is known without births: the units of the stage before that this one comes from.
Absence DropFinder::by_stages(const Where& where, const ColumnUnit& unit, AttrId field) {
  for (std::size_t above = where.column; above-- > 0;) {
    const auto parents = edges_.table(where.column, above)[where.position];
    if (!parents.empty()) return from_parents(where, above, parents, field);
  }
  return without_parents(where, unit, field);
}

// Charged to what made it, as nothing else can be.
Absence DropFinder::orphan(UnitId unit) {
  Absence result;
  result.reason = Reason::kOrphan;
  result.orphan = unit;
  if (!is_orphan_.insert(unit).second) return result;
  Orphan found;
  found.unit = unit;
  const ChargedBirth birth = passes_.charged(unit);
  const SnapshotId first = passes_.first_seen(unit);
  if (birth.birth != nullptr && has(birth.birth->pass)) {
    found.site = sites_.birth(birth, {}, {}, first);
  } else if (has(passes_.created_in(unit)) && has(first) && has(capture_.snapshots[index(first)].pass)) {
    found.site = sites_.change(first);
  }
  orphans_.push_back(std::move(found));
  return result;
}

Absence DropFinder::without_parents(const Where& where, const ColumnUnit& unit, AttrId field) {
  const Column& column = pipeline_.columns[where.column];
  Absence result;
  PassId pass = passes_.created_in(unit.unit);
  for (std::uint32_t i : passes_.births_of(unit.unit)) {
    if (has(capture_.births[i].pass)) pass = capture_.births[i].pass;
  }
  const std::uint32_t intent = intents_.find(IntentKind::kSynthesises, pass, {}, target_of(unit.unit), {});
  if (intent != kNoIndex) return declared(intent, pass);
  if (where.column == 0 || column.order <= created_[where.row]) {
    const bool first = column.order <= created_[where.row];
    if (first && where.column > 0 && names_sources(capture_.attr_kinds[index(field)].name)) return orphan(unit.unit);
    result.reason = first ? Reason::kNeverMade : Reason::kUnknown;
    return result;
  }
  return column.layer == "FX" || column.layer == "backend" ? result : orphan(unit.unit);
}

Absence DropFinder::from_parents(const Where& where, std::size_t above, std::span<const Parent> parents, AttrId field) {
  const Column& before = pipeline_.columns[above];
  AttrId read = field;
  if (const auto through = read_through(capture_.attr_kinds[index(field)].name);
      !through.empty() && before.layer == "FX" && row_of_.count(names_[through]) != 0)
    read = names_[through];
  // Equal lines and neighbours only suggest where a unit comes from: nothing is concluded from them.
  std::vector<Parent> sure;
  std::copy_if(parents.begin(), parents.end(), std::back_inserter(sure),
               [](const Parent& p) { return strength_of(p.evidence) != Strength::kDerived; });
  const bool guessed = sure.empty();
  const std::span<const Parent> sources = guessed ? parents : std::span<const Parent>(sure);
  std::vector<UnitId> had;
  std::vector<Absence> reasons;
  for (const Parent& parent : sources) {
    const FieldUnit& cell = stages_[above].fields[row_of_.at(read)].units[before.positions.at(parent.unit)];
    // What a backward node has of its forward node stays with it: nothing reads it through the node's origins.
    const bool of_forward = is_of_forward(cell.carrier);
    const bool there = cell.state == State::kPresent ||
                       (cell.state != State::kUnreadable && cell.reason == Reason::kCarriedBy && !of_forward);
    if (there) had.push_back(parent.unit);
    Absence why{cell.state == State::kUnreadable ? Reason::kUnknown
                : of_forward                     ? Reason::kNeverMade
                                                 : cell.reason,
                cell.loss,
                cell.root,
                kNoIndex,
                PassId::kNone,
                cell.guessed,
                cell.orphan};
    if (why.reason == Reason::kSynthesised) {
      const auto uses = declared_of_.find({parent.unit, read});
      if (uses != declared_of_.end()) {
        why.intent = declared_[uses->second.front()].intent;
        why.pass = declared_[uses->second.front()].pass;
      }
    }
    reasons.push_back(why);
  }
  if (guessed) {
    const Absence what = inherit(reasons);
    if (had.empty() && what.reason == Reason::kNeverMade) return what;  // whatever it was made of
    Absence unknown;
    unknown.guessed = true;
    return unknown;
  }
  if (!had.empty()) return dropped_between(where, above, sources, had, field);
  const bool same = sources.front().evidence == Evidence::kIdentity && read == field;
  if (same && reasons.front().reason != Reason::kNotCreatedYet) return reasons.front();
  return inherit(reasons);
}

Absence DropFinder::dropped_between(const Where& where, std::size_t above, std::span<const Parent> parents,
                                    const std::vector<UnitId>& had, AttrId field) {
  const Column& before = pipeline_.columns[above];
  const ColumnUnit& unit = pipeline_.columns[where.column].units[where.position];
  Loss loss;
  loss.unit = unit.unit;
  loss.field = field;
  loss.site = sites_.border(before.key, pipeline_.columns[where.column].key, unit.snapshot);
  loss.way = LossWay::kLowering;
  loss.evidence = evidence_name(parents.front().evidence);
  loss.had = had;
  loss.sources = parents.size();
  loss.before = before.units[before.positions.at(had.front())].snapshot;
  Absence result;
  result.reason = Reason::kDropped;
  result.loss = add_loss(std::move(loss));
  return result;
}

}  // namespace kerntrail::analyse
