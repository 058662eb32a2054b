#include "analyse/edges.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

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

bool before(std::span<const std::size_t> columns, std::size_t limit) {
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

void EdgeFinder::index_columns() {
  for (std::size_t c = 0; c < pipeline_.columns.size(); ++c) {
    for (const ColumnUnit& unit : pipeline_.columns[c].units) {
      columns_of_.add(unit.unit, c);
      last_look_[unit.unit] = unit.snapshot;
    }
  }
  columns_of_.close();
}

void EdgeFinder::index_links() {
  for (const Link& link : capture_.links_of(pipeline_.compile)) {
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
      for (UnitId from : link.from) linked_from_.add(to, from);
    }
  }
  linked_from_.close();
  // What the compiler's mapping adds to the origins it is made of is nothing; it may leave some out.
  std::unordered_set<UnitId> by_origins;
  for (const Claim& claim : capture_.claims_of(pipeline_.compile)) {
    if (claim.evidence == "origins") by_origins.insert(claim.kernel);
  }
  for (const Claim& claim : capture_.claims_of(pipeline_.compile)) {
    if (claim.claimant != "compiler" || capture_.compile_of(claim.kernel) != pipeline_.compile) continue;
    if (claim.evidence != "origins" && by_origins.contains(claim.kernel)) continue;
    for (UnitId unit : claim.units) claimed_.add(claim.kernel, unit);
  }
  claimed_.close();
}

// Sources of a unit by the best evidence for its birth; those that no stage shows stand for what they were made of.
void EdgeFinder::index_births() {
  struct Best {
    std::size_t rank = 0;
    const std::vector<UnitId>* first = nullptr;  // of the only birth; of several of one rank `all` holds the sources
    std::vector<UnitId> all;
    bool ambiguous = false;
    bool of_autograd = false;
    bool is_copy = false;

    std::span<const UnitId> sources() const { return all.empty() ? std::span(*first) : std::span(all); }
  };
  UnitMap<Best> best;
  for (const Birth& birth : capture_.births_of(pipeline_.compile)) {
    if (birth.sources.empty() || capture_.compile_of(birth.unit) != pipeline_.compile) continue;
    const std::size_t rank = charging_rank(birth.evidence);
    auto [place, fresh] = best.try_emplace(birth.unit);
    Best& how = place->second;
    if (!fresh && how.rank < rank) continue;
    if (fresh || how.rank > rank) {
      how = {rank, &birth.sources, {}, false, birth.evidence == "sequence", birth.evidence == "copy"};
    } else {
      if (how.all.empty()) how.all = *how.first;
      how.all.insert(how.all.end(), birth.sources.begin(), birth.sources.end());
    }
    how.ambiguous = how.sources().size() > 1 && birth.evidence == "match";
  }
  UnitMap<std::uint32_t> seen;  // the walk that came by last
  std::uint32_t walk = 0;
  std::vector<std::pair<UnitId, bool>> open;  // with each source: whether a match on the way names it among others
  for (const auto& [unit, how] : best) {
    if (!columns_of_.has(unit)) continue;
    // A copy was seen being made of one node: that says more than any chain it carries along.
    UnitLists<Fact>& facts = how.is_copy && how.sources().size() == 1 ? copy_of_ : born_of_;
    seen[unit] = ++walk;
    const auto follow = [&](const Best& step, bool ambiguous) {
      const auto sources = step.sources();
      for (auto it = sources.rbegin(); it != sources.rend(); ++it) open.emplace_back(*it, ambiguous || step.ambiguous);
    };
    follow(how, false);
    while (!open.empty()) {
      const auto [source, ambiguous] = open.back();
      open.pop_back();
      if (std::exchange(seen[source], walk) == walk) continue;
      // A backward node stands beside its forward nodes: it comes from what they came from.
      const bool transparent = how.of_autograd || !columns_of_.has(source);
      const auto further = transparent ? best.find(source) : best.end();
      if (further == best.end())
        facts.add(unit, {source, Evidence::kBirth, ambiguous});
      else
        follow(further->second, ambiguous);
    }
  }
  copy_of_.close();
  born_of_.close();
}

// The n-th OpSpec made from a kernel's operations is the n-th file of its bundle.
void EdgeFinder::index_bundles() {
  UnitMap<UnitId> kernel_of_operation;
  for (const auto& [kernel, files] : files_of_) {
    for (UnitId operation : linked_from_.of(kernel)) {
      auto [place, fresh] = kernel_of_operation.try_emplace(operation, kernel);
      if (!fresh) place->second = std::min(place->second, kernel);
    }
  }
  std::map<UnitId, std::vector<UnitId>> specs;
  for (const Column& column : pipeline_.columns) {
    for (const ColumnUnit& unit : column.units) {
      if (capture_.units[index(unit.unit)].kind != UnitKind::kOpSpec ||
          columns_of_.of(unit.unit).front() != index_of(column))
        continue;
      const auto from = linked_from_.of(unit.unit);
      if (from.empty()) continue;
      auto kernel = kernel_of_operation.find(from.front());
      if (kernel != kernel_of_operation.end()) specs[kernel->second].push_back(unit.unit);
    }
  }
  for (const auto& [kernel, members] : specs) pair_bundle(files_of_[kernel], members);
  bundle_specs_.close();
}

void EdgeFinder::pair_bundle(const std::vector<UnitId>& files, const std::vector<UnitId>& specs) {
  if (specs.size() != files.size()) return;  // a loop or a parse error: places say nothing, handle ids may
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string in_file = handle_id(files[i]);
    const std::string in_spec = handle_id(specs[i]);
    const bool disagree = !in_file.empty() && !in_spec.empty() && in_file != in_spec;
    if (disagree) disagreeing_.push_back(files[i]);
    bundle_specs_.add(files[i], {specs[i], Evidence::kBundleOrder, disagree});
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
        handle_specs_.add(unit.unit, {spec, Evidence::kHandle, found->second.size() > 1});
      }
    }
  }
  handle_specs_.close();
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
  Tier all;
  for (const auto& column : pipeline_.columns) {
    for (const ColumnUnit& unit : column.units) {
      if (last_look_[unit.unit] != unit.snapshot) continue;
      all.clear();
      for (std::size_t which = 0; which < kTiers; ++which) add_tier(which, unit.unit, unit.snapshot, all);
      for (const Fact& fact : all) reverse_.add(fact.from, {unit.unit, fact.evidence});
    }
  }
  reverse_.close([](const auto& a, const auto& b) { return a.first == b.first; });
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
void EdgeFinder::add_tier(std::size_t which, UnitId unit, SnapshotId snapshot, Tier& tier) const {
  const auto append = [&](std::span<const Fact> facts) { tier.insert(tier.end(), facts.begin(), facts.end()); };
  switch (which) {
    case 0:
      for (UnitId from : linked_from_.of(unit)) tier.push_back({from, Evidence::kLink});
      return;
    case 1:
      if (auto found = files_of_.find(unit); found != files_of_.end()) {
        for (UnitId file : found->second) tier.push_back({file, Evidence::kLink});
      }
      return;
    case 2: return append(bundle_specs_.of(unit));
    case 3: return append(handle_specs_.of(unit));
    case 4:
      if (copy_of_.has(unit)) return append(copy_of_.of(unit));
      // What a pass wrote over it names another node.
      if (const Observation* chain = trusted_value(capture_, unit, names_["from_node"], snapshot).value) {
        for (UnitId ref : chain->refs) tier.push_back({ref, Evidence::kFromNode});
      }
      return add_origins(tier, unit, snapshot);
    case 5: return append(born_of_.of(unit));
    default:
      if (copy_of_.has(unit)) return;
      for (UnitId claimed : claimed_.of(unit)) tier.push_back({claimed, Evidence::kClaim});
  }
}

void EdgeFinder::follow_fact(const Fact& fact, std::size_t to, std::size_t from, std::vector<Parent>& result) {
  const Column& target = pipeline_.columns[from];
  if (target.holds(fact.from)) {
    result.push_back({fact.from, fact.evidence, fact.ambiguous});
    return;
  }
  const auto columns = columns_of_.of(fact.from);
  if (columns.empty() || before(columns, from)) {
    // It lies before `from`, or in no snapshot: what else came from it there?
    const std::size_t start = result.size();
    for (const auto& [unit, evidence] : reverse_.of(fact.from)) {
      if (target.holds(unit)) result.push_back({unit, weaker(fact.evidence, evidence), fact.ambiguous});
    }
    const bool one_of = fact.evidence == Evidence::kFromNode || fact.evidence == Evidence::kOrigins;
    if (one_of && result.size() > start + 1) {
      for (std::size_t i = start; i < result.size(); ++i) result[i].ambiguous = true;
    }
    return;
  }
  for (auto column = columns.rbegin(); column != columns.rend(); ++column) {
    if (*column >= to || *column <= from) continue;
    const ParentTable& between = table(*column, from);
    for (Parent parent : between[pipeline_.columns[*column].positions.at(fact.from)]) {
      parent.evidence = weaker(parent.evidence, fact.evidence);
      parent.ambiguous = parent.ambiguous || fact.ambiguous;
      result.push_back(parent);
    }
    break;
  }
}

// Duplicates keep their strongest evidence.
void EdgeFinder::sort_parents(std::vector<Parent>& parents, std::size_t start, std::size_t from) const {
  if (parents.size() < start + 2) return;
  const auto begin = parents.begin() + static_cast<std::ptrdiff_t>(start);
  const auto& positions = pipeline_.columns[from].positions;
  std::sort(begin, parents.end(), [&](const Parent& a, const Parent& b) {
    const std::size_t pa = positions.at(a.unit);
    const std::size_t pb = positions.at(b.unit);
    if (pa != pb) return pa < pb;
    if (a.ambiguous != b.ambiguous) return b.ambiguous;
    return a.evidence < b.evidence;
  });
  parents.erase(std::unique(begin, parents.end(), [](const Parent& a, const Parent& b) { return a.unit == b.unit; }),
                parents.end());
}

void EdgeFinder::add_by_location(UnitId unit, SnapshotId snapshot, std::size_t from, std::vector<Parent>& result) {
  auto [place, fresh] = locations_.try_emplace(from);
  if (fresh) {
    for (const ColumnUnit& other : pipeline_.columns[from].units) {
      if (auto source = trusted_source(capture_, names_["stack_trace"], other.unit, other.snapshot)) {
        place->second[source->key].push_back(other.unit);
      }
    }
  }
  auto source = trusted_source(capture_, names_["stack_trace"], unit, snapshot);
  if (!source) return;
  auto found = place->second.find(source->key);
  if (found == place->second.end()) return;
  for (UnitId match : found->second) result.push_back({match, Evidence::kLocation, found->second.size() > 1});
}

void EdgeFinder::add_own_parents(const ColumnUnit& unit, std::size_t to, std::size_t from,
                                 std::vector<Parent>& result) {
  if (pipeline_.columns[from].holds(unit.unit)) {
    result.push_back({unit.unit, Evidence::kIdentity, false});
    return;
  }
  const std::size_t start = result.size();
  Tier tier;
  for (std::size_t which = 0; which < kTiers; ++which) {
    tier.clear();
    add_tier(which, unit.unit, unit.snapshot, tier);
    for (const Fact& fact : tier) follow_fact(fact, to, from, result);
    if (result.size() == start) continue;
    sort_parents(result, start, from);
    return;
  }
  add_by_location(unit.unit, unit.snapshot, from, result);
}

// FX nodes without a parent of their own: those of the nodes lowered together with them, else those of the nearest
// producers that have some.
void EdgeFinder::attach_sourceless(std::size_t to, std::size_t from, ParentTable& result) const {
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
  ParentTable attached;
  for (std::size_t i = 0; i < column.units.size(); ++i) {
    const auto known = result[i];
    attached.all_.insert(attached.all_.end(), known.begin(), known.end());
    if (known.empty()) {
      const bool sibling = !own[group[i]].empty();
      for (std::uint64_t value : sibling ? own[group[i]] : nearest[group[i]]) {
        attached.all_.push_back(
            {id_at<UnitId>(value / 2), sibling ? Evidence::kSibling : Evidence::kProducer, value % 2 != 0});
      }
      sort_parents(attached.all_, attached.starts_.back(), from);
    }
    attached.starts_.push_back(attached.all_.size());
  }
  result = std::move(attached);
}

const ParentTable& EdgeFinder::table(std::size_t to, std::size_t from) {
  const std::pair key{to, from};
  if (auto found = tables_.find(key); found != tables_.end()) return found->second;
  const Column& column = pipeline_.columns[to];
  ParentTable result;
  result.starts_.reserve(column.units.size() + 1);
  for (const ColumnUnit& unit : column.units) {
    add_own_parents(unit, to, from, result.all_);
    result.starts_.push_back(result.all_.size());
  }
  bool fx = false, sourceless = false;
  for (std::size_t i = 0; i < column.units.size(); ++i) {
    fx = fx || capture_.units[index(column.units[i].unit)].kind == UnitKind::kFxNode;
    sourceless = sourceless || result[i].empty();
  }
  if (fx && sourceless) attach_sourceless(to, from, result);
  return tables_.emplace(key, std::move(result)).first->second;
}

}  // namespace analyse
}  // namespace kerntrail
