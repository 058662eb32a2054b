#include "analyse/edges.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "analyse/handles.h"
#include "analyse/pass_index.h"
#include "analyse/trusted.h"

namespace kerntrail {

std::string_view edge_kind_name(EdgeKind v) {
  constexpr std::array<std::string_view, 7> kNames{"traced",  "copied",     "decomposed", "fused",
                                                   "lowered", "serialised", "same"};
  return kNames[static_cast<std::size_t>(v)];
}

namespace {

struct EvidenceRow {
  std::string_view name;
  Strength strength;
};

// By Evidence. Derived: nothing recorded says so, it follows from equal locations or from the graph.
constexpr std::array<EvidenceRow, 13> kEvidence{{
    {"identity", Strength::kExact},
    {"link", Strength::kExact},
    {"witness", Strength::kExact},
    {"bundle-order", Strength::kExact},
    {"stack-trace", Strength::kRecorded},
    {"from-node", Strength::kRecorded},
    {"birth", Strength::kRecorded},
    {"origins", Strength::kClaimed},
    {"handle", Strength::kClaimed},
    {"claim", Strength::kClaimed},
    {"location", Strength::kDerived},
    {"sibling", Strength::kDerived},
    {"producer", Strength::kDerived},
}};

}  // namespace

std::string_view evidence_name(Evidence v) { return kEvidence[static_cast<std::size_t>(v)].name; }
Strength strength_of(Evidence v) { return kEvidence[static_cast<std::size_t>(v)].strength; }
std::string_view strength_name(Strength v) {
  constexpr std::array<std::string_view, 4> kNames{"exact", "recorded", "claimed", "derived"};
  return kNames[static_cast<std::size_t>(v)];
}

namespace analyse {
namespace {

bool before(const std::vector<std::size_t>& columns, std::size_t limit) {
  return std::all_of(columns.begin(), columns.end(), [&](std::size_t c) { return c < limit; });
}

Evidence weaker(Evidence a, Evidence b) { return std::max(a, b); }

}  // namespace

EdgeFinder::EdgeFinder(const Capture& capture, const Pipeline& pipeline)
    : capture_(capture),
      pipeline_(pipeline),
      names_(capture),
      witness_(capture, pipeline.compile),
      support_(capture, witness_, pipeline.compile) {
  index_columns();
  index_links();
  index_births();
  index_bundles();
  index_handles();
  index_owners();
  index_reverse();
}

UnitId EdgeFinder::kernel_of(UnitId file) const {
  auto found = kernel_of_.find(file);
  return found == kernel_of_.end() ? UnitId::kNone : found->second;
}

const std::vector<UnitId>& EdgeFinder::claimed(UnitId kernel) const {
  static const std::vector<UnitId> kNothing;
  auto found = claimed_.find(kernel);
  return found == claimed_.end() ? kNothing : found->second;
}

void EdgeFinder::index_columns() {
  for (std::size_t c = 0; c < pipeline_.columns.size(); ++c) {
    for (const ColumnUnit& unit : pipeline_.columns[c].units) {
      columns_of_[unit.unit].push_back(c);
      last_look_[unit.unit] = unit.snapshot;
    }
  }
}

void EdgeFinder::index_links() {
  for (const Link& link : capture_.links) {
    for (UnitId to : link.to) {
      if (capture_.compile_of(to) != pipeline_.compile) continue;
      if (link.kind == "bundle_file") {
        // A file is written for its kernel, but lies before it in the pipeline.
        for (UnitId kernel : link.from) {
          if (kernel_of_.try_emplace(to, kernel).second) files_of_[kernel].push_back(to);
        }
        continue;
      }
      if (link.kind == "print_op_specs") continue;  // the kernel's operations lead there too
      auto& from = linked_from_[to];
      from.insert(from.end(), link.from.begin(), link.from.end());
    }
  }
  // What the compiler's mapping adds to the origins it is made of is nothing; it may leave some out.
  std::unordered_set<UnitId> by_origins;
  for (const Claim& claim : capture_.claims) {
    if (claim.evidence == "origins") by_origins.insert(claim.kernel);
  }
  for (const Claim& claim : capture_.claims) {
    if (claim.claimant != "compiler" || capture_.compile_of(claim.kernel) != pipeline_.compile) continue;
    if (claim.evidence != "origins" && by_origins.contains(claim.kernel)) continue;
    auto& units = claimed_[claim.kernel];
    units.insert(units.end(), claim.units.begin(), claim.units.end());
  }
}

// Sources of a unit by the best evidence for its birth; those that no stage shows stand for what they were made of.
void EdgeFinder::index_births() {
  struct Best {
    std::size_t rank = 0;
    std::vector<UnitId> sources;
    bool ambiguous = false;
    bool of_autograd = false;
    bool is_copy = false;
  };
  UnitMap<Best> best;
  for (const Birth& birth : capture_.births) {
    if (birth.sources.empty() || capture_.compile_of(birth.unit) != pipeline_.compile) continue;
    const std::size_t rank = charging_rank(birth.evidence);
    auto [place, fresh] = best.try_emplace(birth.unit);
    if (!fresh && place->second.rank < rank) continue;
    if (fresh || place->second.rank > rank)
      place->second = {rank, {}, false, birth.evidence == "sequence", birth.evidence == "copy"};
    place->second.sources.insert(place->second.sources.end(), birth.sources.begin(), birth.sources.end());
    place->second.ambiguous = place->second.sources.size() > 1 && birth.evidence == "match";
  }
  for (const auto& [unit, how] : best) {
    if (columns_of_.count(unit) == 0) continue;
    std::vector<Fact> facts;
    std::unordered_set<UnitId> seen = {unit};
    // With each source: whether a match on the way names it among others.
    std::vector<std::pair<UnitId, bool>> open;
    const auto follow = [&](const Best& step, bool ambiguous) {
      for (auto it = step.sources.rbegin(); it != step.sources.rend(); ++it)
        open.emplace_back(*it, ambiguous || step.ambiguous);
    };
    follow(how, false);
    while (!open.empty()) {
      const auto [source, ambiguous] = open.back();
      open.pop_back();
      if (!seen.insert(source).second) continue;
      // A backward node stands beside its forward nodes: it comes from what they came from.
      const bool transparent = columns_of_.count(source) == 0 || how.of_autograd;
      const auto further = transparent ? best.find(source) : best.end();
      if (further == best.end())
        facts.push_back({source, Evidence::kBirth, ambiguous});
      else
        follow(further->second, ambiguous);
    }
    // A copy was seen being made of one node: that says more than any chain it carries along.
    (how.is_copy && how.sources.size() == 1 ? copy_of_ : born_of_).emplace(unit, std::move(facts));
  }
}

// The n-th OpSpec made from a kernel's operations is the n-th file of its bundle.
void EdgeFinder::index_bundles() {
  UnitMap<UnitId> kernel_of_operation;
  for (const auto& [kernel, files] : files_of_) {
    auto operations = linked_from_.find(kernel);
    if (operations == linked_from_.end()) continue;
    for (UnitId operation : operations->second) {
      auto [place, fresh] = kernel_of_operation.try_emplace(operation, kernel);
      if (!fresh) place->second = std::min(place->second, kernel);
    }
  }
  std::map<UnitId, std::vector<UnitId>> specs;
  for (const Column& column : pipeline_.columns) {
    for (const ColumnUnit& unit : column.units) {
      if (capture_.units[index(unit.unit)].kind != UnitKind::kOpSpec ||
          columns_of_[unit.unit].front() != index_of(column))
        continue;
      auto from = linked_from_.find(unit.unit);
      if (from == linked_from_.end() || from->second.empty()) continue;
      auto kernel = kernel_of_operation.find(from->second.front());
      if (kernel != kernel_of_operation.end()) specs[kernel->second].push_back(unit.unit);
    }
  }
  for (const auto& [kernel, members] : specs) pair_bundle(files_of_[kernel], members);
}

void EdgeFinder::pair_bundle(const std::vector<UnitId>& files, const std::vector<UnitId>& specs) {
  if (specs.size() != files.size()) return;  // a loop or a parse error: places say nothing, handle ids may
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string in_file = handle_id(files[i]);
    const std::string in_spec = handle_id(specs[i]);
    const bool disagree = !in_file.empty() && !in_spec.empty() && in_file != in_spec;
    if (disagree) disagreeing_.push_back(files[i]);
    bundle_specs_[files[i]].push_back({specs[i], Evidence::kBundleOrder, disagree});
  }
}

std::size_t EdgeFinder::index_of(const Column& column) const {
  return static_cast<std::size_t>(&column - pipeline_.columns.data());
}

std::string EdgeFinder::handle_id(UnitId unit) const {
  auto look = last_look_.find(unit);
  if (look == last_look_.end()) return {};
  auto view = read_handle(capture_, present(capture_, unit, names_["debug_handle"], look->second));
  return view ? view->id : std::string();
}

void EdgeFinder::index_handles() {
  std::unordered_map<std::string, std::vector<UnitId>> by_id;
  for (const Column& column : pipeline_.columns) {
    for (const ColumnUnit& unit : column.units) {
      if (capture_.units[index(unit.unit)].kind != UnitKind::kOpSpec) continue;
      const std::string id = handle_id(unit.unit);
      if (!id.empty()) by_id[id].push_back(unit.unit);
    }
  }
  if (by_id.empty()) return;
  for (const Column& column : pipeline_.columns) {
    for (const ColumnUnit& unit : column.units) {
      if (capture_.units[index(unit.unit)].kind != UnitKind::kBundleFile) continue;
      auto found = by_id.find(handle_id(unit.unit));
      if (found == by_id.end()) continue;
      for (UnitId spec : found->second) {
        handle_specs_[unit.unit].push_back({spec, Evidence::kHandle, found->second.size() > 1});
      }
    }
  }
}

// An FX node belongs to the first OpSpec that lists it among its buffer's origins; where there is none (stock back
// ends), to the first operation of the last IR stage.
void EdgeFinder::index_owners() {
  const auto own = [&](const ColumnUnit& unit, AttrId attr) {
    if (const Observation* seen = present(capture_, unit.unit, attr, unit.snapshot)) {
      for (UnitId node : seen->refs) owner_.try_emplace(node, unit.unit);
    }
  };
  for (const Column& column : pipeline_.columns) {
    for (const ColumnUnit& unit : column.units) {
      if (capture_.units[index(unit.unit)].kind == UnitKind::kOpSpec) own(unit, names_["buffer_origins"]);
    }
  }
  for (auto column = pipeline_.columns.rbegin(); column != pipeline_.columns.rend(); ++column) {
    for (const ColumnUnit& unit : column->units) {
      if (capture_.units[index(unit.unit)].kind == UnitKind::kOperation) own(unit, names_["origins"]);
    }
  }
}

void EdgeFinder::index_reverse() {
  for (const auto& column : pipeline_.columns) {
    for (const ColumnUnit& unit : column.units) {
      if (last_look_[unit.unit] != unit.snapshot) continue;
      for (const Tier& tier : tiers(unit.unit, unit.snapshot)) {
        for (const Fact& fact : tier) {
          auto& list = reverse_[fact.from];
          if (list.empty() || list.back().first != unit.unit) list.emplace_back(unit.unit, fact.evidence);
        }
      }
    }
  }
}

void EdgeFinder::add_refs(Tier& tier, UnitId unit, AttrId attr, SnapshotId snapshot, Evidence evidence) const {
  if (const Observation* seen = present(capture_, unit, attr, snapshot)) {
    for (UnitId ref : seen->refs) tier.push_back({ref, evidence});
  }
}

// The nodes that the unit was seen working for, and of those that the compiler names beside them the views that it
// looks through. What the witness contradicts leads nowhere.
void EdgeFinder::add_origins(Tier& tier, UnitId unit, SnapshotId snapshot) const {
  Tier claimed;
  add_refs(claimed, unit, names_["origins"], snapshot, Evidence::kOrigins);
  if (claimed.empty()) add_refs(claimed, unit, names_["buffer_origins"], snapshot, Evidence::kOrigins);
  const Work* work = witness_.of(unit);
  if (work == nullptr || work->empty()) {
    tier.insert(tier.end(), claimed.begin(), claimed.end());
    return;
  }
  for (const auto& [node, support] : *work) tier.push_back({node, Evidence::kWitness});
  for (const Fact& fact : claimed) {
    const bool known = std::any_of(work->begin(), work->end(), [&](const auto& one) { return one.first == fact.from; });
    if (!known && !contradicts(support_.support(unit, fact.from))) tier.push_back(fact);
  }
}

// What is known of where a unit comes from, best first. The first tier that leads anywhere answers.
EdgeFinder::Tiers EdgeFinder::tiers(UnitId unit, SnapshotId snapshot) const {
  Tiers result;
  if (auto found = linked_from_.find(unit); found != linked_from_.end()) {
    for (UnitId from : found->second) result[0].push_back({from, Evidence::kLink});
  }
  if (auto found = files_of_.find(unit); found != files_of_.end()) {
    for (UnitId file : found->second) result[1].push_back({file, Evidence::kLink});
  }
  if (auto found = bundle_specs_.find(unit); found != bundle_specs_.end()) result[2] = found->second;
  if (auto found = handle_specs_.find(unit); found != handle_specs_.end()) result[3] = found->second;
  if (auto found = copy_of_.find(unit); found != copy_of_.end()) {
    result[4] = found->second;
    return result;
  }
  // What a pass wrote over it names another node.
  if (const Observation* chain = trusted_value(capture_, unit, names_["from_node"], snapshot).value) {
    for (UnitId ref : chain->refs) result[4].push_back({ref, Evidence::kFromNode});
  }
  add_origins(result[4], unit, snapshot);
  if (auto found = born_of_.find(unit); found != born_of_.end()) result[5] = found->second;
  if (auto found = claimed_.find(unit); found != claimed_.end()) {
    for (UnitId claimed : found->second) result[6].push_back({claimed, Evidence::kClaim});
  }
  return result;
}

std::vector<Parent> EdgeFinder::follow_fact(const Fact& fact, std::size_t to, std::size_t from) {
  const Column& target = pipeline_.columns[from];
  if (target.holds(fact.from)) return {{fact.from, fact.evidence, fact.ambiguous}};
  std::vector<Parent> result;
  auto seen = columns_of_.find(fact.from);
  if (seen == columns_of_.end() || before(seen->second, from)) {
    // It lies before `from`, or in no snapshot: what else came from it there?
    auto others = reverse_.find(fact.from);
    if (others == reverse_.end()) return {};
    for (const auto& [unit, evidence] : others->second) {
      if (target.holds(unit)) result.push_back({unit, weaker(fact.evidence, evidence), fact.ambiguous});
    }
    const bool one_of = fact.evidence == Evidence::kFromNode || fact.evidence == Evidence::kOrigins;
    if (one_of && result.size() > 1) {
      for (Parent& parent : result) parent.ambiguous = true;
    }
    return result;
  }
  for (auto column = seen->second.rbegin(); column != seen->second.rend(); ++column) {
    if (*column >= to || *column <= from) continue;
    const ParentTable& between = table(*column, from);
    for (Parent parent : between[pipeline_.columns[*column].positions.at(fact.from)]) {
      parent.evidence = weaker(parent.evidence, fact.evidence);
      parent.ambiguous = parent.ambiguous || fact.ambiguous;
      result.push_back(parent);
    }
    break;
  }
  return result;
}

// Duplicates keep their strongest evidence.
void EdgeFinder::sort_parents(std::vector<Parent>& parents, std::size_t from) const {
  const auto& positions = pipeline_.columns[from].positions;
  std::sort(parents.begin(), parents.end(), [&](const Parent& a, const Parent& b) {
    const std::size_t pa = positions.at(a.unit);
    const std::size_t pb = positions.at(b.unit);
    if (pa != pb) return pa < pb;
    if (a.ambiguous != b.ambiguous) return b.ambiguous;
    return a.evidence < b.evidence;
  });
  parents.erase(
      std::unique(parents.begin(), parents.end(), [](const Parent& a, const Parent& b) { return a.unit == b.unit; }),
      parents.end());
}

std::vector<Parent> EdgeFinder::follow(const Tier& tier, std::size_t to, std::size_t from) {
  std::vector<Parent> result;
  for (const Fact& fact : tier) {
    auto some = follow_fact(fact, to, from);
    result.insert(result.end(), some.begin(), some.end());
  }
  sort_parents(result, from);
  return result;
}

std::vector<Parent> EdgeFinder::by_location(UnitId unit, SnapshotId snapshot, std::size_t from) {
  auto [place, fresh] = locations_.try_emplace(from);
  if (fresh) {
    for (const ColumnUnit& other : pipeline_.columns[from].units) {
      if (auto source = trusted_source(capture_, names_["stack_trace"], other.unit, other.snapshot)) {
        place->second[source->key].push_back(other.unit);
      }
    }
  }
  auto source = trusted_source(capture_, names_["stack_trace"], unit, snapshot);
  if (!source) return {};
  auto found = place->second.find(source->key);
  if (found == place->second.end()) return {};
  std::vector<Parent> result;
  for (UnitId match : found->second) result.push_back({match, Evidence::kLocation, found->second.size() > 1});
  return result;
}

std::vector<Parent> EdgeFinder::own_parents(const ColumnUnit& unit, std::size_t to, std::size_t from) {
  if (pipeline_.columns[from].holds(unit.unit)) return {{unit.unit, Evidence::kIdentity, false}};
  for (const Tier& tier : tiers(unit.unit, unit.snapshot)) {
    auto result = follow(tier, to, from);
    if (!result.empty()) return result;
  }
  return by_location(unit.unit, unit.snapshot, from);
}

// FX nodes without a parent of their own: those of the nodes lowered together with them, else those of the nearest
// producers that have some.
void EdgeFinder::attach_sourceless(std::size_t to, ParentTable& result) {
  const Column& column = pipeline_.columns[to];
  UnitMap<std::size_t> group_of_owner;
  std::vector<std::vector<std::size_t>> members;
  std::vector<std::size_t> group(column.units.size());
  for (std::size_t i = 0; i < column.units.size(); ++i) {
    auto owner = owner_.find(column.units[i].unit);
    const UnitId key = owner == owner_.end() ? column.units[i].unit : owner->second;
    group[i] = group_of_owner.try_emplace(key, members.size()).first->second;
    if (group[i] == members.size()) members.emplace_back();
    members[group[i]].push_back(i);
  }
  // A source is coded as unit * 2 + ambiguous; where both spellings arrive, the clear one wins.
  const auto code = [](const Parent& p) { return index(p.unit) * 2 + (p.ambiguous ? 1U : 0U); };
  std::vector<std::vector<std::uint64_t>> own(members.size());
  std::vector<std::vector<std::size_t>> producers(members.size());
  for (std::size_t g = 0; g < members.size(); ++g) {
    for (std::size_t i : members[g]) {
      for (const Parent& parent : result[i]) own[g].push_back(code(parent));
      const Observation* inputs = present(capture_, column.units[i].unit, names_["inputs"], column.units[i].snapshot);
      if (inputs == nullptr) continue;
      for (UnitId input : inputs->refs) {
        auto place = column.positions.find(input);
        if (place != column.positions.end() && group[place->second] != g) producers[g].push_back(group[place->second]);
      }
    }
    std::sort(own[g].begin(), own[g].end());
    own[g].erase(std::unique(own[g].begin(), own[g].end()), own[g].end());
  }
  const auto nearest = nearest_sources(own, producers);
  for (std::size_t i = 0; i < column.units.size(); ++i) {
    if (!result[i].empty()) continue;
    const bool sibling = !own[group[i]].empty();
    for (std::uint64_t value : sibling ? own[group[i]] : nearest[group[i]]) {
      result[i].push_back(
          {id_at<UnitId>(value / 2), sibling ? Evidence::kSibling : Evidence::kProducer, value % 2 != 0});
    }
  }
}

const ParentTable& EdgeFinder::table(std::size_t to, std::size_t from) {
  const std::pair key{to, from};
  if (auto found = tables_.find(key); found != tables_.end()) return found->second;
  const Column& column = pipeline_.columns[to];
  ParentTable result(column.units.size());
  for (std::size_t i = 0; i < column.units.size(); ++i) result[i] = own_parents(column.units[i], to, from);
  const bool fx = std::any_of(column.units.begin(), column.units.end(), [&](const ColumnUnit& u) {
    return capture_.units[index(u.unit)].kind == UnitKind::kFxNode;
  });
  if (fx) {
    attach_sourceless(to, result);
    for (auto& parents : result) sort_parents(parents, from);
  }
  return tables_.emplace(key, std::move(result)).first->second;
}

}  // namespace analyse
}  // namespace kerntrail
