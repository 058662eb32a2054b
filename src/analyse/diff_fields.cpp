// Fields, drops and qualities of matched units. A difference is charged to the loss that the side lacking the field
// traces it to, and shown where it begins; units that lack the field for the same loss follow from it.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyse/diff_part.h"
#include "base/strings.h"

namespace kerntrail {

std::string_view drop_change_name(DropChange v) {
  constexpr std::string_view kNames[] = {"new", "fixed", "moved", "shifted", "apart"};
  return kNames[static_cast<std::size_t>(v)];
}

namespace analyse {
namespace {

// One field of one unit as a side has it.
struct Cell {
  const FieldUnit* unit = nullptr;  // nullptr: the stage has no such field there
  const Drops* drops = nullptr;
  bool created = true;

  bool usable() const { return unit != nullptr && created && unit->state != State::kUnreadable; }
  bool has() const { return unit->state == State::kPresent || unit->reason == Reason::kCarriedBy; }
  const Loss* loss() const { return unit->loss == kNoIndex ? nullptr : &drops->losses[unit->loss]; }
};

// The tallies of one stage of one side, found by unit.
class StageCells {
 public:
  StageCells(const DiffSide& side, std::string_view key) {
    for (const Drops* drops : side.drops) {
      for (const StageTally& stage : drops->stages) {
        if (stage.key != key || stage.fields.empty()) continue;
        const std::size_t tally = tallies_.size();
        tallies_.push_back({drops, &stage});
        const auto& units = stage.fields.front().units;
        for (std::size_t i = 0; i < units.size(); ++i) at_.try_emplace(units[i].unit, tally, i);
      }
    }
  }

  std::vector<std::string> fields() const {
    std::vector<std::string> out;
    for (const auto& [drops, stage] : tallies_) {
      for (const FieldTally& field : stage->fields) {
        if (std::find(out.begin(), out.end(), field.name) == out.end()) out.push_back(field.name);
      }
    }
    return out;
  }

  // Fields are asked for by their place in this list from now on.
  void bind(const std::vector<std::string>& fields) {
    for (const auto& [drops, stage] : tallies_) {
      std::vector<const FieldTally*>& row = bound_.emplace_back();
      for (const std::string& name : fields) {
        const auto found = std::find_if(stage->fields.begin(), stage->fields.end(),
                                        [&](const FieldTally& tally) { return tally.name == name; });
        row.push_back(found == stage->fields.end() ? nullptr : &*found);
      }
    }
  }

  Cell cell(UnitId unit, std::size_t field) const {
    const auto found = at_.find(unit);
    if (found == at_.end()) return {};
    const auto [tally, place] = found->second;
    const FieldTally* row = bound_[tally][field];
    return row == nullptr ? Cell{} : Cell{&row->units[place], tallies_[tally].first, row->created};
  }

 private:
  std::vector<std::pair<const Drops*, const StageTally*>> tallies_;
  std::vector<std::vector<const FieldTally*>> bound_;  // by tally, then field
  std::unordered_map<UnitId, std::pair<std::size_t, std::size_t>> at_;
};

// As DropSite::title spells them: passes within passes, without the compiler's functions around them.
std::set<std::string> pass_paths(const DiffSide& side) {
  const Capture& capture = *side.capture;
  std::vector<std::string> around(capture.passes.size());  // a parent begins before its children
  std::set<std::string> out;
  for (std::size_t i = 0; i < capture.passes.size(); ++i) {
    const Pass& pass = capture.passes[i];
    if (has(pass.parent) && index(pass.parent) < i) around[i] = around[index(pass.parent)];
    const bool inner = pass.kind == PassKind::kPass && !around[i].empty();
    const std::string path = inner ? around[i] + " / " + pass.name : pass.name;
    if (capture.graphs[index(pass.graph)].compile == side.compile) out.insert(path);
    if (pass.kind == PassKind::kPass && !pass.name.empty()) around[i] = path;
  }
  return out;
}

// "torch/_inductor/x.py:12 (f)" -> "x.py" and "(f)"
std::pair<std::string_view, std::string_view> file_and_function(std::string_view place) {
  const std::size_t colon = place.rfind(':');
  const std::size_t bracket = place.rfind(" (");
  return {base::basename(place.substr(0, colon)),
          bracket == std::string_view::npos ? std::string_view() : place.substr(bracket)};
}

// The line alone: both places without their folders.
std::string_view without_folder(std::string_view place) {
  const std::size_t colon = place.rfind(':');
  const std::size_t slash = place.substr(0, colon).rfind('/');
  return slash == std::string_view::npos ? place : place.substr(slash + 1);
}

class Fields {
 public:
  Fields(const DiffSides& sides, DiffPart& part)
      : sides_(sides),
        part_(part),
        old_passes_(pass_paths(sides.old)),
        new_passes_(pass_paths(sides.now)),
        parents_{parents_of(sides.old), parents_of(sides.now)} {}

  void compare() {
    for (const StageMatch& stage : part_.stages) {
      stage_ = &stage;
      StageCells old(sides_.old, stage.key);
      StageCells now(sides_.now, stage.key);
      fields_ = now.fields();
      old.bind(fields_);
      now.bind(fields_);
      old_ = &old;
      new_ = &now;
      for (const UnitMatch& pair : stage.pairs) compare_pair({pair.old_unit, pair.new_unit});
      for (const UnitGroup& group : stage.groups) compare_group(group);
      for (UnitId unit : stage.only_new) apart(unit);
    }
    finish_drops();
  }

 private:
  // What a difference is traced to: whose loss or orphan it is, and where. Without either, the unit alone.
  struct Root {
    const Drops* drops = nullptr;
    UnitId unit = UnitId::kNone;
    std::uint32_t site = kNoIndex;

    bool operator<(const Root& o) const { return std::tie(drops, unit, site) < std::tie(o.drops, o.unit, o.site); }
  };

  Root root_of(const Cell& cell, bool in_new, const std::string& field) {
    if (const Loss* loss = cell.loss()) return {cell.drops, loss->unit, loss->site};
    if (has(cell.unit->orphan)) {
      auto& sites = orphans_[cell.drops];
      if (sites.empty()) {
        for (const Orphan& orphan : cell.drops->orphans) sites.try_emplace(orphan.unit, orphan.site);
      }
      const auto found = sites.find(cell.unit->orphan);
      if (found != sites.end()) return {cell.drops, found->first, found->second};
    }
    // Nothing was lost: it was never made, here or in what the unit comes from.
    const auto from = parents_[in_new ? 1 : 0].find(cell.unit->unit);
    if (from != parents_[in_new ? 1 : 0].end()) {
      for (UnitId parent : from->second) {
        const auto root = traced_.find({in_new, parent, field});
        if (root != traced_.end()) return root->second;
      }
    }
    return {cell.drops, cell.unit->unit, kNoIndex};
  }

  static std::unordered_map<UnitId, std::vector<UnitId>> parents_of(const DiffSide& side) {
    std::unordered_map<UnitId, std::vector<UnitId>> out;
    if (side.lineage == nullptr) return out;
    for (const LineageEdge& edge : side.lineage->edges) {
      const UnitId from = side.lineage->nodes[edge.from].unit;
      const UnitId to = side.lineage->nodes[edge.to].unit;
      if (has(from) && from != to) out[to].push_back(from);
    }
    return out;
  }

  std::uint32_t site(const Drops* drops, std::uint32_t i, bool in_new) {
    if (i == kNoIndex) return kNoIndex;
    const auto [at, added] = sites_at_.try_emplace({drops, i}, static_cast<std::uint32_t>(part_.sites.size()));
    if (!added) return at->second;
    const DropSite& from = drops->sites[i];
    DiffSite out{in_new, from.title, from.subsystem, from.pattern, from.place, from.kind};
    if (from.kind == SiteKind::kPass) out.in_other = (in_new ? old_passes_ : new_passes_).count(out.path) != 0;
    // Directions of a compile have lists of their own.
    for (std::uint32_t s = 0; s < part_.sites.size(); ++s) {
      const DiffSite& known = part_.sites[s];
      if (known.in_new == in_new && known.path == out.path && known.place == out.place &&
          known.pattern == out.pattern && known.subsystem == out.subsystem)
        return at->second = s;
    }
    part_.sites.push_back(std::move(out));
    return at->second;
  }

  void compare_pair(const UnitPair& units) {
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const std::string& field = fields_[f];
      const Cell a = old_->cell(units.old_unit, f);
      const Cell b = new_->cell(units.new_unit, f);
      if (a.unit != nullptr && b.unit != nullptr && a.created && b.created && !(a.usable() && b.usable()))
        ++part_.unreadable;
      if (!a.usable() || !b.usable()) continue;
      if (a.has() != b.has()) {
        changed(a.has() ? Change::kLost : Change::kGained, a.has() ? b : a, units, field, 0, 1);
      } else if (!a.has()) {
        both_absent(a, b, units, field);
      } else if (a.unit->state == State::kPresent && b.unit->state == State::kPresent &&
                 a.unit->quality != b.unit->quality) {
        quality(a, b, units, field);
      }
    }
  }

  // Where a difference begins, or what it follows from. `lacking`: of the side without the field.
  void changed(Change change, const Cell& lacking, const UnitPair& units, const std::string& field,
               std::size_t of_group, std::size_t affected) {
    const bool in_new = change == Change::kLost;
    const Root root = root_of(lacking, in_new, field);
    const UnitId own = lacking.unit->unit;
    traced_.try_emplace({in_new, own, field}, root);
    Begun& begun = begun_[root];
    if (!begun.changes.empty()) {
      const auto same = begun.changes.find(own);
      if (same != begun.changes.end()) {
        FieldChange& known = part_.fields[same->second];
        if (known.stage == stage_->key) known.fields.push_back(field);
        return;  // else the same unit, at a later stage too
      }
      FieldChange& first = part_.fields[begun.first];
      if (first.stage != stage_->key || begun.at_root) {
        if (begun.followers.insert(own).second) ++first.followers;
        if (first.follower_stages.empty() || first.follower_stages.back() != stage_->key)
          first.follower_stages.push_back(stage_->key);
        return;
      }
    }
    FieldChange out;
    out.change = change;
    out.stage = stage_->key;
    out.units = units;
    out.of_group = of_group;
    out.affected = affected;
    out.fields = {field};
    out.site = site(root.drops, root.site, in_new);
    out.reason = reason_name(lacking.unit->reason);
    begun.at_root = begun.at_root || own == root.unit;
    const auto at = static_cast<std::uint32_t>(part_.fields.size());
    if (begun.changes.empty()) begun.first = at;
    begun.changes.emplace(own, at);
    part_.fields.push_back(std::move(out));
  }

  enum class SiteRelation : std::uint8_t { kSame, kShifted, kMoved };

  SiteRelation relation(std::uint32_t old_site, std::uint32_t new_site) const {
    if (old_site == kNoIndex || new_site == kNoIndex) return SiteRelation::kSame;  // nothing to tell them apart by
    const DiffSite& a = part_.sites[old_site];
    const DiffSite& b = part_.sites[new_site];
    if (a.path != b.path || a.pattern != b.pattern) return SiteRelation::kMoved;
    if (without_folder(a.place) == without_folder(b.place)) return SiteRelation::kSame;
    return file_and_function(a.place) == file_and_function(b.place) ? SiteRelation::kShifted : SiteRelation::kMoved;
  }

  void both_absent(const Cell& a, const Cell& b, const UnitPair& units, const std::string& field) {
    const Loss* was = a.loss();
    const Loss* now = b.loss();
    if (was == nullptr || now == nullptr) return;
    const std::uint32_t old_site = site(a.drops, was->site, false);
    const std::uint32_t new_site = site(b.drops, now->site, true);
    const SiteRelation how = relation(old_site, new_site);
    if (how == SiteRelation::kSame) return;
    const auto key = std::make_tuple(old_site, new_site, was->unit, now->unit);
    const auto [at, added] = moved_.try_emplace(key);
    Moved& moved = at->second;
    if (added) {
      moved.units = units;
      moved.change = how == SiteRelation::kShifted ? DropChange::kShifted : DropChange::kMoved;
      moved.order = moved_.size();
    }
    if (moved.units == units) {
      if (std::find(moved.fields.begin(), moved.fields.end(), field) == moved.fields.end())
        moved.fields.push_back(field);
    } else {
      moved.followers.insert(units.new_unit);
    }
  }

  void quality(const Cell& a, const Cell& b, const UnitPair& units, const std::string& field) {
    const bool by_new = b.unit->quality != Quality::kKept;
    const Cell& doubtful = by_new ? b : a;
    const Mark* mark = doubtful.unit->mark == kNoIndex ? nullptr : &doubtful.drops->marks[doubtful.unit->mark];
    const UnitId from = mark == nullptr ? doubtful.unit->unit : mark->unit;
    const auto key = std::make_tuple(by_new, from, a.unit->quality, b.unit->quality, field);
    const auto [at, added] = doubts_.try_emplace(key, part_.qualities.size());
    if (!added) {
      QualityChange& first = part_.qualities[at->second];
      if (!(first.units == units)) ++first.followers;
      return;
    }
    QualityChange out{stage_->key, field, units, a.unit->quality, b.unit->quality};
    if (mark != nullptr) out.site = site(doubtful.drops, mark->site, by_new);
    part_.qualities.push_back(std::move(out));
  }

  static std::vector<Cell> cells(const std::vector<UnitId>& units, const StageCells& side, std::size_t field) {
    std::vector<Cell> out;
    for (UnitId unit : units) {
      const Cell cell = side.cell(unit, field);
      if (!cell.usable()) return {};
      out.push_back(cell);
    }
    return out;
  }

  // Units that can't be told apart are compared by number; those that are grouped otherwise only where one side lacks
  // nothing, and the other lost the field right there.
  void compare_group(const UnitGroup& group) {
    const bool by_number = group.kind == GroupKind::kAmbiguous && group.old_units.size() == group.new_units.size();
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const std::string& field = fields_[f];
      const std::vector<Cell> a = cells(group.old_units, *old_, f);
      const std::vector<Cell> b = cells(group.new_units, *new_, f);
      if (a.empty() || b.empty()) continue;
      const auto having = [](const std::vector<Cell>& all) {
        return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const Cell& c) { return c.has(); }));
      };
      const std::size_t old_has = having(a);
      const std::size_t new_has = having(b);
      if (by_number && old_has != new_has) {
        const bool lost = new_has < old_has;
        group_changed(lost ? Change::kLost : Change::kGained, lost ? b : a, field, group,
                      lost ? old_has - new_has : new_has - old_has, false);
      } else if (!by_number && old_has == a.size() && new_has < b.size()) {
        group_changed(Change::kLost, b, field, group, b.size() - new_has, true);
      } else if (!by_number && new_has == b.size() && old_has < a.size()) {
        group_changed(Change::kGained, a, field, group, a.size() - old_has, true);
      }
    }
  }

  void group_changed(Change change, const std::vector<Cell>& side, const std::string& field, const UnitGroup& group,
                     std::size_t affected, bool only_dropped) {
    for (const Cell& cell : side) {
      if (cell.has() || (only_dropped && cell.unit->reason != Reason::kDropped)) continue;
      const UnitPair units =
          change == Change::kLost ? UnitPair{UnitId::kNone, cell.unit->unit} : UnitPair{cell.unit->unit, UnitId::kNone};
      changed(change, cell, units, field, change == Change::kLost ? group.new_units.size() : group.old_units.size(),
              affected);
      return;
    }
  }

  void apart(UnitId unit) {
    const std::string& stage = apart_stage_.try_emplace(unit, stage_->key).first->second;
    if (stage != stage_->key) return;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const Cell cell = new_->cell(unit, f);
      if (!cell.usable() || cell.has() || cell.unit->reason != Reason::kDropped) continue;
      const Loss* loss = cell.loss();
      if (loss == nullptr || loss->unit != unit) continue;
      auto& units = apart_[site(cell.drops, loss->site, true)];
      if (units.empty() || units.back().first.new_unit != unit) units.push_back({{UnitId::kNone, unit}, {}});
      units.back().second.push_back(fields_[f]);
    }
  }

  void finish_drops() {
    // By place: what is new or fixed there.
    std::map<std::tuple<DropChange, std::uint32_t>, std::size_t> at;
    for (const FieldChange& field : part_.fields) {
      if (field.site == kNoIndex) continue;
      const bool lost = field.change == Change::kLost;
      const DropChange change = lost ? DropChange::kNew : DropChange::kFixed;
      const auto [found, added] = at.try_emplace({change, field.site}, part_.drops.size());
      if (added) {
        DropDiff one;
        one.change = change;
        (lost ? one.new_site : one.old_site) = field.site;
        part_.drops.push_back(std::move(one));
      }
      DropDiff& drop = part_.drops[found->second];
      drop.units.emplace_back(field.units, field.fields);
      drop.followers += field.followers;
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> moved_at;
    std::vector<const std::pair<const std::tuple<std::uint32_t, std::uint32_t, UnitId, UnitId>, Moved>*> order;
    for (const auto& one : moved_) order.push_back(&one);
    std::sort(order.begin(), order.end(),
              [](const auto* x, const auto* y) { return x->second.order < y->second.order; });
    for (const auto* one : order) {
      const auto& [old_site, new_site, was, now] = one->first;
      const auto [found, added] = moved_at.try_emplace({old_site, new_site}, part_.drops.size());
      if (added) part_.drops.push_back({one->second.change, old_site, new_site, {}, 0});
      DropDiff& drop = part_.drops[found->second];
      drop.units.emplace_back(one->second.units, one->second.fields);
      drop.followers += one->second.followers.size();
    }
    for (auto& [new_site, units] : apart_) part_.drops.push_back({DropChange::kApart, kNoIndex, new_site, units, 0});
    std::stable_sort(part_.drops.begin(), part_.drops.end(),
                     [](const DropDiff& x, const DropDiff& y) { return x.change < y.change; });
  }

  struct Begun {
    std::unordered_map<UnitId, std::uint32_t> changes;  // of which unit: into DiffPart::fields
    std::uint32_t first = 0;
    std::set<UnitId> followers;
    bool at_root = false;  // one of them is the unit that the loss is of
  };
  struct Moved {
    UnitPair units;
    DropChange change = DropChange::kMoved;
    std::vector<std::string> fields;
    std::set<UnitId> followers;
    std::size_t order = 0;
  };

  const DiffSides& sides_;
  DiffPart& part_;
  std::set<std::string> old_passes_, new_passes_;
  std::unordered_map<UnitId, std::vector<UnitId>> parents_[2];  // of OLD, of NEW: by lineage
  std::map<std::tuple<bool, UnitId, std::string>, Root> traced_;  // differences so far: side that lacks, unit, field
  const StageMatch* stage_ = nullptr;
  const StageCells* old_ = nullptr;
  const StageCells* new_ = nullptr;
  std::vector<std::string> fields_;
  std::unordered_map<UnitId, std::string> apart_stage_;  // where a unit without counterpart is first seen
  std::unordered_map<const Drops*, std::unordered_map<UnitId, std::uint32_t>> orphans_;
  std::map<std::pair<const Drops*, std::uint32_t>, std::uint32_t> sites_at_;
  std::map<Root, Begun> begun_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, UnitId, UnitId>, Moved> moved_;
  std::map<std::tuple<bool, UnitId, Quality, Quality, std::string>, std::size_t> doubts_;
  std::map<std::uint32_t, std::vector<std::pair<UnitPair, std::vector<std::string>>>> apart_;
};

}  // namespace

void compare_fields(const DiffSides& sides, DiffPart& part) { Fields(sides, part).compare(); }

}  // namespace analyse
}  // namespace kerntrail
