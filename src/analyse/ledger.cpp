#include "analyse/ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "analyse/synthetic.h"

namespace kerntrail::analyse {
namespace {

constexpr std::array<std::string_view, kIdFates> kFateNames{"survived", "carried", "duplicated", "merged",
                                                            "elided",   "lost",    "overwritten"};

using Ids = std::vector<std::uint32_t>;

bool holds(const Ids& ids, std::uint32_t id) { return std::binary_search(ids.begin(), ids.end(), id); }

// What one node says of where it is from. The stack trace decides where there is one, since it names the source line.
struct Claim {
  Ids stack, source;
  bool has_stack = false, has_source = false;
  const Ids& ids() const { return has_stack ? stack : source; }
  bool is_empty() const { return !has_stack && !has_source; }
};

Claim claim_of(const NodeAfter& node, std::string_view tag, std::size_t given) {
  Claim out;
  out.has_stack = node.stack_trace && !node.stack_trace->empty();
  if (out.has_stack) out.stack = ids_of_stack(*node.stack_trace, tag);
  out.has_source = !node.from_node.empty();
  for (const std::string& source : node.from_node)
    if (const auto id = id_of_source(source, tag)) out.source.push_back(*id);
  std::sort(out.source.begin(), out.source.end());
  out.source.erase(std::unique(out.source.begin(), out.source.end()), out.source.end());
  for (Ids* ids : {&out.stack, &out.source})
    std::erase_if(*ids, [&](std::uint32_t id) { return id == 0 || id > given; });
  return out;
}

const HeldField* held(const std::vector<HeldField>& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const HeldField& f) { return f.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

class Judge {
 public:
  explicit Judge(const PassObservation& seen)
      : seen_(seen),
        nodes_(seen.given.size() + seen.made.size() + 1),
        made_heirs_(seen.given.size() + 1),
        kept_heirs_(seen.given.size() + 1),
        takers_(seen.given.size() + 1) {}

  Expected<Ledger> run();

 private:
  struct Known {
    const NodeAfter* after = nullptr;  // null: not in the graph that the pass left
    Claim claim;
    const Replaced* replaced = nullptr;
    const Touched* erased = nullptr;
    const Touched* written = nullptr;
  };

  Expected<void> index_events();
  void index_claims(Ledger& out);
  bool is_given(NodeKey key) const { return key <= seen_.given.size(); }
  const std::string& name(NodeKey key) const;
  std::string made_at(NodeKey key) const;
  std::string touched_at(const Touched* touched) const { return touched == nullptr ? std::string() : touched->loc; }

  LedgerEntry judge(std::uint32_t id);
  void judge_kept(LedgerEntry& entry) const;
  bool judge_named(LedgerEntry& entry) const;
  bool judge_replaced(LedgerEntry& entry) const;
  void judge_erased(LedgerEntry& entry) const;
  NodeKey end_of(NodeKey key) const;
  bool was_computed_from(NodeKey node, NodeKey source) const;
  bool is_dead(NodeKey key) const;
  bool stands_for_others(NodeKey target) const;
  void add_heirs(LedgerEntry& entry, const std::vector<NodeKey>& heirs) const;

  const PassObservation& seen_;
  std::vector<Known> nodes_;                      // by key
  std::vector<std::vector<NodeKey>> made_heirs_;  // by id: new nodes that name it
  std::vector<std::vector<NodeKey>> kept_heirs_;  // kept nodes that name it beside their own id
  std::vector<std::vector<NodeKey>> takers_;      // kept nodes that name it in place of their own id
  std::vector<LedgerEntry> entries_;              // by id - 1; users before what they use
};

const std::string& Judge::name(NodeKey key) const {
  return is_given(key) ? seen_.given[key - 1].name : seen_.made[key - 1 - seen_.given.size()].name;
}

std::string Judge::made_at(NodeKey key) const {
  return is_given(key) ? std::string() : seen_.made[key - 1 - seen_.given.size()].loc;
}

Expected<void> Judge::index_events() {
  const auto known = [&](NodeKey key) { return key > 0 && key < nodes_.size(); };
  const auto wrong = [](std::string_view what, NodeKey key) {
    return fail(ErrorCode::kReference, fmt::format("{} names node {}, which is not known", what, key));
  };
  for (const GivenNode& node : seen_.given)
    for (const auto* keys : {&node.inputs, &node.users})
      for (const NodeKey key : *keys)
        if (key > seen_.given.size()) return wrong("an input or a user", key);
  for (const NodeAfter& node : seen_.after) {
    if (!known(node.key)) return wrong("the graph after the pass", node.key);
    if (nodes_[node.key].after != nullptr)
      return fail(ErrorCode::kReference, fmt::format("node {} is in the graph twice", node.key));
    nodes_[node.key].after = &node;
    nodes_[node.key].claim = claim_of(node, seen_.tag, seen_.given.size());
  }
  for (const Replaced& event : seen_.replaced) {
    if (!known(event.from) || !known(event.to))
      return wrong("a replacement", known(event.from) ? event.to : event.from);
    nodes_[event.from].replaced = &event;
  }
  for (const Touched& event : seen_.erased) {
    if (!known(event.node)) return wrong("an erasure", event.node);
    nodes_[event.node].erased = &event;
  }
  for (const Touched& event : seen_.written) {
    if (!known(event.node)) return wrong("a write", event.node);
    nodes_[event.node].written = &event;
  }
  return {};
}

void Judge::index_claims(Ledger& out) {
  for (const NodeAfter& node : seen_.after) {
    const Claim& claim = nodes_[node.key].claim;
    if (is_given(node.key)) {
      ++out.kept;
      const bool names_itself = holds(claim.ids(), node.key);
      for (const std::uint32_t id : claim.ids())
        if (id != node.key) (names_itself ? kept_heirs_ : takers_)[id].push_back(node.key);
      continue;
    }
    if (claim.ids().empty()) {
      out.fabricated.push_back({name(node.key), made_at(node.key),
                                claim.is_empty() ? "names no source" : "names a source that nobody gave"});
      continue;
    }
    ++out.inheriting;
    for (const std::uint32_t id : claim.ids()) made_heirs_[id].push_back(node.key);
  }
}

void Judge::add_heirs(LedgerEntry& entry, const std::vector<NodeKey>& heirs) const {
  const auto lacks = [&](NodeKey heir, const std::string& field) {
    const Known& node = nodes_[heir];
    if (field == "stack_trace") return !holds(node.claim.stack, entry.id);
    if (field == "from_node") return !holds(node.claim.source, entry.id);
    return held(node.after->fields, field) == nullptr;
  };
  // Nodes with equal values can't be told apart by them, and need not be.
  const auto differs = [&](NodeKey heir, const std::string& field) {
    const Known& node = nodes_[heir];
    const HeldField* now = held(node.after->fields, field);
    return now != nullptr && std::none_of(node.claim.ids().begin(), node.claim.ids().end(), [&](std::uint32_t id) {
             const HeldField* was = held(seen_.given[id - 1].fields, field);
             return was != nullptr && was->value == now->value;
           });
  };
  for (const NodeKey heir : heirs) entry.heirs.push_back(name(heir));
  entry.is_named = true;
  for (const auto& [field, value] : seen_.given[entry.id - 1].fields) {
    const auto any = [&](const auto& is_so) {
      return std::any_of(heirs.begin(), heirs.end(), [&](NodeKey heir) { return is_so(heir, field); });
    };
    if (any(lacks)) {
      entry.without.push_back(field);
    } else if (any(differs)) {
      entry.altered.push_back(field);
    }
  }
}

// The node is still there: what it says itself decides, whoever else names its id.
void Judge::judge_kept(LedgerEntry& entry) const {
  const Known& node = nodes_[entry.id];
  if (holds(node.claim.ids(), entry.id)) {
    std::vector<NodeKey> heirs{entry.id};
    heirs.insert(heirs.end(), made_heirs_[entry.id].begin(), made_heirs_[entry.id].end());
    add_heirs(entry, heirs);
    entry.fate = heirs.size() > 1 ? IdFate::kDuplicated : IdFate::kSurvived;
    if (heirs.size() > 1) {
      entry.loc = made_at(heirs.back());
      entry.why = "a new node names it too";
    } else if (!entry.without.empty() || !entry.altered.empty()) {
      entry.loc = touched_at(node.written);
      entry.why = entry.without.empty() ? "a field of the node was written" : "the node lost a field";
    }
    return;
  }
  entry.loc = touched_at(node.written);
  entry.is_named = !made_heirs_[entry.id].empty() || !kept_heirs_[entry.id].empty() || !takers_[entry.id].empty();
  entry.fate = node.claim.is_empty() ? IdFate::kLost : IdFate::kOverwritten;
  if (node.claim.is_empty()) {
    entry.why = "the node's provenance was taken away";
  } else if (node.claim.ids().empty()) {
    entry.why = "the node names a source that nobody gave";
  } else {
    entry.why = fmt::format("the node now names {}", name(node.claim.ids().front()));
  }
}

// The node is gone, but nodes name its id.
bool Judge::judge_named(LedgerEntry& entry) const {
  const auto& made = made_heirs_[entry.id];
  if (!made.empty()) {
    add_heirs(entry, made);
    entry.loc = made_at(made.back());
    const bool is_alone = nodes_[made.front()].claim.ids().size() == 1;
    entry.fate = made.size() > 1 ? IdFate::kDuplicated : is_alone ? IdFate::kCarried : IdFate::kMerged;
    entry.why = made.size() > 1 ? "several new nodes name it" : is_alone ? "" : "a new node names it beside others";
    return true;
  }
  const auto& kept = kept_heirs_[entry.id];
  if (kept.empty()) return false;
  add_heirs(entry, kept);
  entry.fate = IdFate::kMerged;
  entry.loc = touched_at(nodes_[kept.back()].written);
  entry.why = "a node that was there names it beside its own";
  return true;
}

// Where a chain of replacements ends; the node itself where it was not replaced.
NodeKey Judge::end_of(NodeKey key) const {
  NodeKey at = key;
  for (std::size_t steps = 0; steps < nodes_.size() && nodes_[at].after == nullptr; ++steps) {
    const Replaced* next = nodes_[at].replaced;
    if (next == nullptr) break;
    at = next->to;
  }
  return at;
}

bool Judge::was_computed_from(NodeKey node, NodeKey source) const {
  std::vector<bool> seen(seen_.given.size() + 1);
  std::vector<NodeKey> open{node};
  while (!open.empty()) {
    const NodeKey at = open.back();
    open.pop_back();
    for (const NodeKey input : seen_.given[at - 1].inputs) {
      if (input == source) return true;
      if (input == 0 || seen[input]) continue;
      seen[input] = true;
      open.push_back(input);
    }
  }
  return false;
}

// Whether a new node names an id whose node it replaced as well: several computations became this one.
bool Judge::stands_for_others(NodeKey target) const {
  const Ids& ids = nodes_[target].claim.ids();
  return std::any_of(ids.begin(), ids.end(),
                     [&](std::uint32_t id) { return nodes_[id].after == nullptr && end_of(id) == target; });
}

bool Judge::judge_replaced(LedgerEntry& entry) const {
  const NodeKey target = end_of(entry.id);
  if (target == entry.id || nodes_[target].after == nullptr) return false;
  entry.loc = nodes_[entry.id].replaced->loc;
  entry.heirs = {name(target)};
  entry.is_named = holds(nodes_[target].claim.ids(), entry.id);
  if (is_given(target)) {
    const bool is_source = was_computed_from(entry.id, target);
    entry.fate = is_source ? IdFate::kElided : IdFate::kMerged;
    entry.why = is_source ? "replaced by what it was computed from" : "replaced by a node that was there";
  } else if (stands_for_others(target)) {
    entry.fate = IdFate::kMerged;
    entry.why = "replaced by a new node that names only others";
  } else {
    entry.fate = IdFate::kLost;
    entry.loc = made_at(target);
    entry.why = nodes_[target].claim.ids().empty() ? "replaced by a new node that does not name it"
                                                   : "replaced by a new node that names another";
  }
  return true;
}

// Whether nothing needed it any more: no users, or only such as left nothing behind.
bool Judge::is_dead(NodeKey key) const {
  const GivenNode& node = seen_.given[key - 1];
  return node.is_pure && std::all_of(node.users.begin(), node.users.end(), [&](NodeKey user) {
           if (user <= key) return false;  // the output, or a graph that is not in order
           const IdFate fate = entries_[user - 1].fate;
           return nodes_[user].after == nullptr && (fate == IdFate::kElided || fate == IdFate::kMerged) &&
                  !entries_[user - 1].is_named;
         });
}

void Judge::judge_erased(LedgerEntry& entry) const {
  const NodeKey last = end_of(entry.id);  // gone too, where it is another
  entry.loc = touched_at(nodes_[last].erased);
  const auto& takers = takers_[entry.id];
  if (!takers.empty()) {
    add_heirs(entry, takers);
    entry.fate = takers.size() > 1 ? IdFate::kDuplicated : IdFate::kCarried;
    entry.loc = touched_at(nodes_[takers.back()].written);
    entry.why = "a node that was there names it in place of its own";
  } else if (last == entry.id && is_dead(entry.id)) {
    entry.fate = IdFate::kElided;
    entry.why = "nothing needed it any more";
  } else {
    entry.fate = IdFate::kLost;
    entry.why = last != entry.id                 ? "what replaced it was erased"
                : nodes_[last].erased == nullptr ? "not in the graph that the pass left, and nothing there names it"
                                                 : "erased, and nothing that is there names it";
  }
}

LedgerEntry Judge::judge(std::uint32_t id) {
  LedgerEntry entry;
  entry.id = id;
  entry.node = name(id);
  if (nodes_[id].after != nullptr) {
    judge_kept(entry);
  } else if (!judge_named(entry) && !judge_replaced(entry)) {
    judge_erased(entry);
  }
  return entry;
}

Expected<Ledger> Judge::run() {
  KERNTRAIL_CHECK(index_events());
  Ledger out;
  out.pass = seen_.pass;
  index_claims(out);
  entries_.resize(seen_.given.size());
  for (std::size_t id = entries_.size(); id > 0; --id) entries_[id - 1] = judge(static_cast<std::uint32_t>(id));
  out.entries = std::move(entries_);
  return out;
}

// Shell patterns of * and ?.
bool matches(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    for (std::size_t skip = 0; skip <= text.size(); ++skip)
      if (matches(text.substr(skip), pattern.substr(1))) return true;
    return false;
  }
  return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) &&
         matches(text.substr(1), pattern.substr(1));
}

bool is_allowed(const std::vector<std::string>& allow, std::string_view fault, std::string_view node) {
  return std::any_of(allow.begin(), allow.end(), [&](std::string_view rule) {
    const std::size_t colon = rule.find(':');
    if (rule.substr(0, colon) != fault) return false;
    const std::string_view pattern = colon == std::string_view::npos ? "*" : rule.substr(colon + 1);
    return pattern.empty() || matches(node, pattern);
  });
}

// Empty where nothing is wrong with it.
std::string_view fault_of(const LedgerEntry& entry, const std::vector<std::string>& fields) {
  const auto asked = [&](const std::vector<std::string>& some) {
    return std::any_of(some.begin(), some.end(), [&](const std::string& field) {
      return std::find(fields.begin(), fields.end(), field) != fields.end();
    });
  };
  if (entry.fate == IdFate::kLost || entry.fate == IdFate::kOverwritten) return id_fate_name(entry.fate);
  if (entry.fate == IdFate::kMerged && !entry.is_named) return id_fate_name(entry.fate);
  if (asked(entry.without)) return "incomplete";
  return asked(entry.altered) ? "altered" : "";
}

}  // namespace

std::string_view id_fate_name(IdFate fate) { return kFateNames[static_cast<std::size_t>(fate)]; }

std::vector<LedgerFault> ledger_faults(const Ledger& ledger, const FaultRules& rules) {
  std::vector<LedgerFault> out;
  for (std::size_t i = 0; i < ledger.entries.size(); ++i) {
    const std::string_view fault = fault_of(ledger.entries[i], rules.fields);
    if (!fault.empty() && !is_allowed(rules.allow, fault, ledger.entries[i].node)) out.push_back({fault, false, i});
  }
  for (std::size_t i = 0; i < ledger.fabricated.size(); ++i)
    if (!is_allowed(rules.allow, "fabricated", ledger.fabricated[i].node)) out.push_back({"fabricated", true, i});
  return out;
}

std::string allow_error(std::string_view rule) {
  const std::string_view kind = rule.substr(0, rule.find(':'));
  if (std::find(std::begin(kFaultNames), std::end(kFaultNames), kind) != std::end(kFaultNames)) return {};
  return fmt::format("allow: '{}' is none of {} (alone, or with a colon and the name of a node)", rule,
                     fmt::join(kFaultNames, ", "));
}

bool is_touched(const Ledger& ledger) {
  return ledger.inheriting > 0 || !ledger.fabricated.empty() ||
         std::any_of(ledger.entries.begin(), ledger.entries.end(), [](const LedgerEntry& entry) {
           return entry.fate != IdFate::kSurvived || !entry.without.empty() || !entry.altered.empty();
         });
}

Expected<Ledger> judge_pass(const PassObservation& seen) { return Judge(seen).run(); }

}  // namespace kerntrail::analyse
