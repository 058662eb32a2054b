#include "analyse/match.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"

namespace kerntrail {

std::string_view match_reason_name(MatchReason v) {
  constexpr std::string_view kNames[] = {"same-unit", "structure",   "inputs",  "users",
                                         "lineage",   "source-line", "position"};
  return kNames[static_cast<std::size_t>(v)];
}

std::string_view group_kind_name(GroupKind v) { return v == GroupKind::kAmbiguous ? "ambiguous" : "regrouped"; }

namespace analyse {
namespace {

using base::hash64;

// Which parts of a node make a key. Parts of `optional` only subdivide: a node without them has a 0 there.
enum Part : unsigned {
  kStrict = 1,    // type, direction, path
  kUp = 2,        // all it is made of
  kDown = 4,      // all that is made of it
  kParents = 8,   // matched units of the stage before; must have some
  kCodes = 16,    // code texts; must have some
  kModule = 32,   // must have one
  kAnchors = 64,  // the matched units before and after it
  kPrior = 128,
  kLeaves = 512,  // which parameters and inputs it takes; must take some
  // Not a part: nodes of other parents, or whose codes have nothing in common, are no match.
  kCareful = 256,
  kBare = 2048,  // not a part: only nodes of which nothing but kind and type is known, not even an operand or a user
  kRootless = 1024,  // not a part: only nodes without parents; what has some is grouped by them
};

struct Tier {
  unsigned parts;
  MatchReason reason;
};

// From the strictest on. A tier that matches something starts the list again, as every match tells its neighbours
// apart.
constexpr Tier kTiers[] = {
    {kPrior, MatchReason::kSameUnit},
    {kStrict | kUp | kDown, MatchReason::kStructure},
    {kStrict | kUp | kDown | kLeaves, MatchReason::kStructure},
    {kStrict | kUp | kDown | kParents, MatchReason::kStructure},
    {kStrict | kUp | kDown | kCodes, MatchReason::kStructure},
    {kStrict | kUp | kDown | kModule, MatchReason::kStructure},
    {kUp | kDown, MatchReason::kStructure},
    {kStrict | kUp | kParents, MatchReason::kInputs},
    {kStrict | kUp | kCodes, MatchReason::kInputs},
    {kStrict | kUp | kModule, MatchReason::kInputs},
    {kStrict | kDown | kParents, MatchReason::kUsers},
    {kStrict | kDown | kCodes, MatchReason::kUsers},
    {kStrict | kDown | kModule, MatchReason::kUsers},
    {kStrict | kUp | kCareful, MatchReason::kInputs},
    {kStrict | kDown | kCareful, MatchReason::kUsers},
    {kStrict | kParents | kCodes, MatchReason::kLineage},
    {kStrict | kParents | kCareful, MatchReason::kLineage},
    {kParents | kCareful, MatchReason::kLineage},
    {kStrict | kCodes | kModule | kCareful, MatchReason::kSourceLine},
    {kStrict | kCodes | kCareful, MatchReason::kSourceLine},
    {kCodes | kModule | kCareful, MatchReason::kSourceLine},
    {kCodes | kCareful, MatchReason::kSourceLine},
    {kUp | kCareful, MatchReason::kInputs},
    {kDown | kCareful, MatchReason::kUsers},
    {kStrict | kAnchors | kCareful, MatchReason::kPosition},
    {kAnchors | kCareful, MatchReason::kPosition},
    {kStrict | kBare, MatchReason::kStructure},
};

// What units that are left over have in common where they can't be told apart.
constexpr unsigned kAlike[] = {kStrict | kUp | kDown, kStrict | kParents, kStrict | kCodes | kRootless,
                               kStrict | kBare};

constexpr int kRestarts = 40;  // each costs a walk over both sides; beyond, the list is only walked on

constexpr std::uint64_t kSeed = 0x6B65726E;

std::uint64_t hash_all(const std::vector<std::uint64_t>& values) {
  std::uint64_t h = hash64(values.size(), kSeed);
  for (std::uint64_t v : values) h = hash64(v, h);
  return h;
}

bool disjoint(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  if (a.empty() || b.empty()) return false;  // nothing known: nothing against it
  std::size_t i = 0;
  for (std::size_t j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) return false;
    (a[i] < b[j] ? i : j) += 1;
  }
  return true;
}

// One side while it is being matched.
class Side {
 public:
  Side(const MatchSide& nodes, const MatchSide& other) : nodes_(nodes), pair_(nodes.size(), 0) {
    std::unordered_set<std::uint64_t> labels;
    for (const MatchNode& node : other) labels.insert(node.label);
    transparent_.reserve(nodes.size());
    for (const MatchNode& node : nodes) {
      transparent_.push_back(labels.count(node.label) == 0);
      parents_.push_back(hash_all(node.parents));
      codes_.push_back(hash_all(node.codes));
      std::uint64_t leaves = 0;
      for (const MatchNode::Input& input : node.inputs) {
        if (input.leaf_id != 0) leaves = hash64(input.leaf_id, leaves + 1);
      }
      leaves_.push_back(leaves);
    }
  }

  const MatchNode& node(std::uint32_t i) const { return nodes_[i]; }
  std::size_t size() const { return nodes_.size(); }
  bool open(std::uint32_t i) const { return pair_[i] == 0; }
  void close(std::uint32_t i, std::uint64_t pair) { pair_[i] = hash64(pair, kSeed); }

  // Colours from what is matched by now. A unit of a kind that only this side has is looked through.
  void colour() {
    const std::size_t n = nodes_.size();
    up_.assign(n, 0);
    down_.assign(n, 0);
    for (std::uint32_t i = 0; i < n; ++i) up_[i] = up_of(i);
    for (std::uint32_t i = static_cast<std::uint32_t>(n); i-- > 0;) {
      const std::uint64_t given = transparent_[i] && open(i) ? down_[i] : hash64(own(i), pair_[i] != 0 ? 0 : down_[i]);
      for (const MatchNode::Input& input : nodes_[i].inputs) {
        if (input.place < i) down_[input.place] += given;  // the order of users does not matter
      }
    }
    anchors();
  }

  // 0: the node lacks a part.
  std::uint64_t key(std::uint32_t i, unsigned parts) const {
    const MatchNode& node = nodes_[i];
    if ((parts & kPrior) != 0) return node.prior;
    if ((parts & kRootless) != 0 && !node.parents.empty()) return 0;
    const bool bare = node.parents.empty() && node.codes.empty() && node.inputs.empty() && down_[i] == 0;
    if ((parts & kBare) != 0 && !bare) return 0;
    std::uint64_t h = hash64(node.label, parts);
    if ((parts & kStrict) != 0) h = hash64(node.strict, h);
    if ((parts & kUp) != 0) h = hash64(up_[i], h);
    if ((parts & kDown) != 0) h = hash64(down_[i], h);
    if ((parts & kParents) != 0) h = node.parents.empty() ? 0 : hash64(parents_[i], h);
    if (h != 0 && (parts & kCodes) != 0) h = node.codes.empty() ? 0 : hash64(codes_[i], h);
    if (h != 0 && (parts & kModule) != 0) h = node.module == 0 ? 0 : hash64(node.module, h);
    if (h != 0 && (parts & kLeaves) != 0) h = leaves_[i] == 0 ? 0 : hash64(leaves_[i], h);
    if (h != 0 && (parts & kAnchors) != 0)
      h = before_[i] == 0 && after_[i] == 0 ? 0 : hash64(after_[i], hash64(before_[i], h));
    return h;
  }
  // To be made of nothing, or used by nothing, says nothing: what is left of such a key must be more than a text.
  bool says(std::uint32_t i, unsigned parts) const {
    const bool up = (parts & kUp) != 0 && !nodes_[i].inputs.empty();
    const bool down = (parts & kDown) != 0 && down_[i] != 0;
    return (parts & (kUp | kDown)) == 0 || up || down || (parts & (kParents | kLeaves)) != 0;
  }

 private:
  std::uint64_t own(std::uint32_t i) const { return pair_[i] != 0 ? pair_[i] : hash64(nodes_[i].label, kSeed); }

  std::uint64_t up_of(std::uint32_t i) const {
    if (pair_[i] != 0) return pair_[i];
    const MatchNode& node = nodes_[i];
    const auto colour = [&](const MatchNode::Input& input) {
      if (input.place == kNoIndex) return input.leaf;
      return input.place < i ? up_[input.place] : hash64(nodes_[input.place].label, kSeed);
    };
    if (transparent_[i] && !node.inputs.empty()) return colour(node.inputs.front());
    std::uint64_t h = own(i);
    for (const MatchNode::Input& input : node.inputs) h = hash64(colour(input), h);
    return h;
  }

  void anchors() {
    before_.assign(nodes_.size(), 0);
    after_.assign(nodes_.size(), 0);
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      before_[i] = last;
      if (pair_[i] != 0) last = pair_[i];
    }
    last = 0;
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      after_[i] = last;
      if (pair_[i] != 0) last = pair_[i];
    }
  }

  const MatchSide& nodes_;
  std::vector<std::uint64_t> pair_, up_, down_, parents_, codes_, leaves_, before_, after_;
  std::vector<bool> transparent_;
};

struct Keyed {
  std::uint64_t key;
  std::uint32_t place;
  bool in_new;

  bool operator<(const Keyed& o) const {
    if (key != o.key) return key < o.key;
    return in_new != o.in_new ? !in_new : place < o.place;
  }
};

class Matcher {
 public:
  Matcher(const MatchSide& old, const MatchSide& now) : old_(old, now), new_(now, old) {}

  SideMatch match() {
    recolour();
    int restarts = 0;
    for (std::size_t t = 0; t < std::size(kTiers);) {
      const bool found = apply(kTiers[t]);
      if (!found) {
        ++t;
        continue;
      }
      recolour();
      t = ++restarts < kRestarts ? 0 : t + 1;
    }
    // More of them on one side: then what each of them stands for is open as well, and so with whom they belong.
    for (unsigned parts : kAlike) gather(parts, true);
    regroup();
    for (unsigned parts : kAlike) gather(parts, false);
    finish();
    return std::move(result_);
  }

 private:
  void recolour() {
    old_.colour();
    new_.colour();
  }

  std::vector<Keyed> keyed(unsigned parts) const {
    std::vector<Keyed> out;
    const auto add = [&](const Side& side, bool in_new) {
      for (std::uint32_t i = 0; i < side.size(); ++i) {
        if (!side.open(i) || !side.says(i, parts)) continue;
        if (const std::uint64_t key = side.key(i, parts)) out.push_back({key, i, in_new});
      }
    };
    add(old_, false);
    add(new_, true);
    std::sort(out.begin(), out.end());
    return out;
  }

  template <class Visit>  // visit(first, middle, last): old places, then new ones, of one key
  static void each_bucket(const std::vector<Keyed>& all, Visit visit) {
    for (std::size_t i = 0; i < all.size();) {
      std::size_t middle = i;
      while (middle < all.size() && all[middle].key == all[i].key && !all[middle].in_new) ++middle;
      std::size_t last = middle;
      while (last < all.size() && all[last].key == all[i].key) ++last;
      if (middle > i && last > middle) visit(i, middle, last);
      i = last;
    }
  }

  // Where a place is all that is left to go by, to come from nothing is a difference too.
  bool agree(std::uint32_t old_place, std::uint32_t new_place, bool by_place) const {
    const MatchNode& a = old_.node(old_place);
    const MatchNode& b = new_.node(new_place);
    if (by_place && a.parents != b.parents) return false;
    if (!same_parents(old_place, new_place)) return false;
    return !disjoint(a.codes, b.codes);
  }

  // False where both come from something, and that is not the same.
  bool same_parents(std::uint32_t old_place, std::uint32_t new_place) const {
    const MatchNode& a = old_.node(old_place);
    const MatchNode& b = new_.node(new_place);
    if (a.of_strangers != b.of_strangers && (!a.parents.empty() || !b.parents.empty())) return false;
    return a.parents.empty() || b.parents.empty() || a.parents == b.parents;
  }

  // Nodes that nothing of the graph leads to, as views of weights, are told apart by how far they are from the end
  // alone: where a layer was added, that is another one's.
  bool only_users_tell(std::uint32_t old_place, std::uint32_t new_place, unsigned parts) const {
    const auto is_root = [](const MatchNode& node) {
      return std::all_of(node.inputs.begin(), node.inputs.end(),
                         [](const MatchNode::Input& input) { return input.place == kNoIndex; });
    };
    return (parts & kDown) != 0 && is_root(old_.node(old_place)) && is_root(new_.node(new_place));
  }

  bool apply(const Tier& tier) {
    const std::vector<Keyed> all = keyed(tier.parts);
    bool found = false;
    each_bucket(all, [&](std::size_t first, std::size_t middle, std::size_t last) {
      if (middle - first != 1 || last - middle != 1) return;
      const std::uint32_t a = all[first].place;
      const std::uint32_t b = all[middle].place;
      if ((tier.parts & kCareful) != 0 && !agree(a, b, (tier.parts & kAnchors) != 0)) return;
      if (only_users_tell(a, b, tier.parts) && !same_parents(a, b)) return;
      result_.pairs.push_back({a, b, tier.reason});
      close(a, b);
      found = true;
    });
    return found;
  }

  void close(std::uint32_t old_place, std::uint32_t new_place) {
    const std::uint64_t pair = ++pairs_;
    old_.close(old_place, pair);
    new_.close(new_place, pair);
  }

  void add_group(PlaceGroup group) {
    const std::uint64_t pair = ++pairs_;
    for (std::uint32_t i : group.old_places) old_.close(i, pair);
    for (std::uint32_t i : group.new_places) new_.close(i, pair);
    result_.groups.push_back(std::move(group));
  }

  void gather(unsigned parts, bool equally_many) {
    const std::vector<Keyed> all = keyed(parts);
    each_bucket(all, [&](std::size_t first, std::size_t middle, std::size_t last) {
      if (equally_many && middle - first != last - middle) return;
      PlaceGroup group;
      for (std::size_t i = first; i < last; ++i)
        (i < middle ? group.old_places : group.new_places).push_back(all[i].place);
      add_group(std::move(group));
    });
  }

  // Units left over that share what they come from: connected by it.
  void regroup() {
    std::unordered_map<std::uint64_t, std::size_t> ids;  // parent -> set
    std::vector<std::size_t> set;
    const auto find = [&](std::size_t i) {
      while (set[i] != i) i = set[i] = set[set[i]];
      return i;
    };
    const auto join = [&](const Side& side) {
      for (std::uint32_t i = 0; i < side.size(); ++i) {
        if (!side.open(i)) continue;
        std::size_t first = kNoIndex;
        for (std::uint64_t parent : side.node(i).parents) {
          const auto [at, added] = ids.try_emplace(parent, set.size());
          if (added) set.push_back(set.size());
          if (first == kNoIndex) first = at->second;
          set[find(at->second)] = find(first);
        }
      }
    };
    join(old_);
    join(new_);
    std::vector<PlaceGroup> groups(set.size());
    const auto place = [&](const Side& side, bool in_new) {
      for (std::uint32_t i = 0; i < side.size(); ++i) {
        if (!side.open(i) || side.node(i).parents.empty()) continue;
        PlaceGroup& group = groups[find(ids.at(side.node(i).parents.front()))];
        (in_new ? group.new_places : group.old_places).push_back(i);
      }
    };
    place(old_, false);
    place(new_, true);
    for (PlaceGroup& group : groups) {
      if (group.old_places.empty() || group.new_places.empty()) continue;
      group.kind = GroupKind::kRegrouped;
      add_group(std::move(group));
    }
  }

  void finish() {
    std::sort(result_.pairs.begin(), result_.pairs.end(),
              [](const PlacePair& a, const PlacePair& b) { return a.new_place < b.new_place; });
    std::sort(result_.groups.begin(), result_.groups.end(),
              [](const PlaceGroup& a, const PlaceGroup& b) { return a.new_places.front() < b.new_places.front(); });
    for (std::uint32_t i = 0; i < old_.size(); ++i) {
      if (old_.open(i)) result_.only_old.push_back(i);
    }
    for (std::uint32_t i = 0; i < new_.size(); ++i) {
      if (new_.open(i)) result_.only_new.push_back(i);
    }
  }

  Side old_, new_;
  SideMatch result_;
  std::uint64_t pairs_ = 0;
};

}  // namespace

SideMatch match_sides(const MatchSide& old, const MatchSide& now) { return Matcher(old, now).match(); }

}  // namespace analyse
}  // namespace kerntrail
