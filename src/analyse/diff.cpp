#include "kerntrail/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyse/diff_part.h"
#include "analyse/edges.h"
#include "analyse/match_nodes.h"
#include "analyse/pipeline.h"
#include "base/hash.h"

namespace kerntrail {
namespace analyse {
namespace {

using CompilePair = std::pair<std::pair<CompileId, CompileId>, std::string>;

// A compile by the graph that it was given.
struct CompileSketch {
  CompileId id = CompileId::kNone;
  std::string torch_id;
  std::uint64_t whole = 0, ops = 0;  // labels and codes in order; labels in order
  std::vector<std::uint64_t> labels;  // sorted
};

std::vector<CompileSketch> sketches_of(const Capture& capture, const std::set<CompileId>& compiles) {
  std::vector<CompileSketch> out;
  const AttrNames names(capture);
  for (CompileId id : compiles) {
    CompileSketch one;
    one.id = id;
    one.torch_id = capture.compiles[index(id)].torch_id;
    const Pipeline pipeline = pipeline_of(capture, id);
    if (pipeline.columns.empty()) continue;
    for (const ColumnUnit& unit : pipeline.columns.front().units) {
      const std::uint64_t label = label_of(capture, names, unit);
      one.labels.push_back(label);
      one.ops = base::hash64(label, one.ops);
      one.whole = base::hash64(code_of(capture, names, unit), base::hash64(label, one.whole));
    }
    std::sort(one.labels.begin(), one.labels.end());
    out.push_back(std::move(one));
  }
  return out;
}

// At least half of what the two do is the same.
bool similar(const CompileSketch& a, const CompileSketch& b) {
  std::vector<std::uint64_t> both;
  std::set_intersection(a.labels.begin(), a.labels.end(), b.labels.begin(), b.labels.end(), std::back_inserter(both));
  return 4 * both.size() >= a.labels.size() + b.labels.size();
}

class CompileMatcher {
 public:
  CompileMatcher(std::vector<CompileSketch> old, std::vector<CompileSketch> now)
      : old_(std::move(old)), new_(std::move(now)), old_done_(old_.size()), new_done_(new_.size()) {}

  std::vector<CompilePair> match() {
    by_key([](const CompileSketch& s) { return s.whole; }, "equal graphs and source lines");
    by_key([](const CompileSketch& s) { return s.ops; }, "equal graphs");
    by_likeness(true, "the same compile id, similar graphs");
    by_likeness(false, "similar graphs");
    std::sort(pairs_.begin(), pairs_.end(),
              [](const auto& a, const auto& b) { return a.first.second < b.first.second; });
    return std::move(pairs_);
  }

 private:
  // Compiles of equal graphs repeat: the n-th is the n-th.
  template <class Key>
  void by_key(Key key, const char* why) {
    std::map<std::uint64_t, std::vector<std::size_t>> old;
    for (std::size_t i = old_.size(); i-- > 0;) {
      if (!old_done_[i]) old[key(old_[i])].push_back(i);
    }
    for (std::size_t j = 0; j < new_.size(); ++j) {
      const auto found = old.find(key(new_[j]));
      if (new_done_[j] || found == old.end() || found->second.empty()) continue;
      add(found->second.back(), j, why);
      found->second.pop_back();
    }
  }

  void by_likeness(bool same_id, const char* why) {
    constexpr std::size_t kTried = 64;  // of those left over: compiles come in the same order more often than not
    for (std::size_t j = 0; j < new_.size(); ++j) {
      std::size_t tried = 0;
      for (std::size_t i = 0; i < old_.size() && !new_done_[j] && tried < kTried; ++i) {
        if (old_done_[i]) continue;
        ++tried;
        if ((!same_id || old_[i].torch_id == new_[j].torch_id) && similar(old_[i], new_[j])) add(i, j, why);
      }
    }
  }

  void add(std::size_t i, std::size_t j, const char* why) {
    old_done_[i] = new_done_[j] = true;
    pairs_.push_back({{old_[i].id, new_[j].id}, why});
  }

  std::vector<CompileSketch> old_, new_;
  std::vector<bool> old_done_, new_done_;
  std::vector<CompilePair> pairs_;
};

// Everything computed of one capture before compiles are compared.
struct Analysed {
  const Capture* capture = nullptr;
  std::vector<Drops> drops;
  std::vector<Lineage> lineages;
  std::vector<Verification> verified;
  bool witnessed = false;
  std::set<std::string> stages;

  std::set<CompileId> compiles() const {
    std::set<CompileId> out;
    for (const Drops& one : drops) out.insert(one.compile);
    return out;
  }
  DiffSide side(CompileId compile) const {
    DiffSide out;
    out.capture = capture;
    out.compile = compile;
    for (const Drops& one : drops) {
      if (one.compile == compile) out.drops.push_back(&one);
    }
    for (const Lineage& one : lineages) {
      if (one.compile == compile) out.lineage = &one;
    }
    for (const Verification& one : verified) {
      if (one.compile == compile) out.verification = &one;
    }
    return out;
  }
};

Expected<Analysed> analysed(const Capture& capture, const AnalysisOptions& options) {
  Analysed out;
  out.capture = &capture;
  DropOptions drop_options;
  drop_options.analysis = options;
  KERNTRAIL_TRY(out.drops, drops(capture, drop_options));
  for (const Drops& one : out.drops) {
    for (const StageTally& stage : one.stages) out.stages.insert(stage.key);
  }
  auto verified = verify(capture, options);
  out.witnessed = verified.has_value();
  if (verified) out.verified = std::move(*verified);
  return out;
}

UnitLabel label_text(const Capture& capture, UnitId unit) {
  UnitLabel out;
  out.id = unit_name(capture, unit);
  if (capture.snapshots.empty()) return out;
  const auto last = id_at<SnapshotId>(capture.snapshots.size() - 1);
  out.name = capture.text_of(unit, "name", last);
  out.target = capture.text_of(unit, "target", last);
  if (out.target.empty() && capture.units[index(unit)].kind == UnitKind::kOpSpec)
    out.target = capture.text_of(unit, "op", last);
  return out;
}

class PartBuilder {
 public:
  PartBuilder(const Analysed& old, const Analysed& now, const CompilePair& pair)
      : sides_{old.side(pair.first.first), now.side(pair.first.second)},
        old_pipeline_(pipeline_of(*old.capture, pair.first.first)),
        new_pipeline_(pipeline_of(*now.capture, pair.first.second)),
        old_edges_(*old.capture, old_pipeline_),
        new_edges_(*now.capture, new_pipeline_) {
    part_.old_compile = pair.first.first;
    part_.new_compile = pair.first.second;
    part_.matched_by = pair.second;
  }

  DiffPart build() {
    match_stages();
    compare_fields(sides_, part_);
    compare_links(sides_, part_);
    add_labels();
    return std::move(part_);
  }

 private:
  static std::map<std::string, std::size_t> columns(const DiffSide& side, const Pipeline& pipeline) {
    std::set<std::string> shown;
    for (const Drops* drops : side.drops) {
      for (const StageTally& stage : drops->stages) shown.insert(stage.key);
    }
    std::map<std::string, std::size_t> out;
    for (std::size_t i = 0; i < pipeline.columns.size(); ++i) {
      if (shown.count(pipeline.columns[i].key) != 0) out[pipeline.columns[i].key] = i;
    }
    return out;
  }

  void match_stages() {
    const auto old_columns = columns(sides_.old, old_pipeline_);
    const auto new_columns = columns(sides_.now, new_pipeline_);
    for (const auto& [key, at] : old_columns) {
      if (new_columns.count(key) == 0) part_.stages_only_old.push_back(key);
    }
    NodeReader old_reader(*sides_.old.capture, old_pipeline_, old_edges_);
    NodeReader new_reader(*sides_.now.capture, new_pipeline_, new_edges_);
    std::optional<std::size_t> old_before, new_before;
    for (std::size_t at = 0; at < new_pipeline_.columns.size(); ++at) {
      const std::string& key = new_pipeline_.columns[at].key;
      const auto old_at = old_columns.find(key);
      if (new_columns.count(key) == 0) continue;
      if (old_at == old_columns.end()) {
        part_.stages_only_new.push_back(key);
        continue;
      }
      MatchSide old = old_reader.read(old_at->second, old_before, sides_.old.tokens);
      MatchSide now = new_reader.read(at, new_before, sides_.now.tokens);
      identify_leaves(old, old_reader.leaves(old_at->second), now, new_reader.leaves(at));
      add_stage(new_pipeline_.columns[at], old, now);
      old_before = old_at->second;
      new_before = at;
    }
  }

  void add_stage(const Column& column, const MatchSide& old, const MatchSide& now) {
    const SideMatch found = match_sides(old, now);
    StageMatch out{column.key, column.title, column.noun, old.size(), now.size(), {}, {}, {}, {}};
    for (const PlacePair& pair : found.pairs) {
      const UnitId a = old[pair.old_place].unit;
      const UnitId b = now[pair.new_place].unit;
      out.pairs.push_back({a, b, pair.reason});
      if (pair.reason != MatchReason::kSameUnit) sides_.old.tokens[a] = sides_.now.tokens[b] = token(true);
    }
    for (const PlaceGroup& group : found.groups) {
      UnitGroup one{group.kind, {}, {}};
      const std::uint64_t shared =
          token(group.kind == GroupKind::kAmbiguous && group.old_places.size() == group.new_places.size());
      for (std::uint32_t i : group.old_places) {
        one.old_units.push_back(old[i].unit);
        sides_.old.tokens[old[i].unit] = shared;
      }
      for (std::uint32_t i : group.new_places) {
        one.new_units.push_back(now[i].unit);
        sides_.now.tokens[now[i].unit] = shared;
      }
      out.groups.push_back(std::move(one));
    }
    // A unit that an earlier stage matched, and whose counterpart has gone, is matched no more.
    for (std::uint32_t i : found.only_old) {
      out.only_old.push_back(old[i].unit);
      sides_.old.tokens.erase(old[i].unit);
    }
    for (std::uint32_t i : found.only_new) {
      out.only_new.push_back(now[i].unit);
      sides_.now.tokens.erase(now[i].unit);
    }
    part_.stages.push_back(std::move(out));
  }

  std::uint64_t token(bool one_by_one) { return 2 * ++tokens_ + (one_by_one ? 0 : 1); }

  void add_label(const UnitPair& units) {
    const auto add = [](const DiffSide& side, UnitId unit, std::unordered_map<UnitId, UnitLabel>& into) {
      if (has(unit) && into.count(unit) == 0) into.emplace(unit, label_text(*side.capture, unit));
    };
    add(sides_.old, units.old_unit, part_.old_labels);
    add(sides_.now, units.new_unit, part_.new_labels);
  }

  void add_labels() {
    for (const StageMatch& stage : part_.stages) {
      for (const UnitMatch& pair : stage.pairs) add_label({pair.old_unit, pair.new_unit});
      for (const UnitGroup& group : stage.groups) {
        for (UnitId unit : group.old_units) add_label({unit, UnitId::kNone});
        for (UnitId unit : group.new_units) add_label({UnitId::kNone, unit});
      }
      for (UnitId unit : stage.only_old) add_label({unit, UnitId::kNone});
      for (UnitId unit : stage.only_new) add_label({UnitId::kNone, unit});
    }
    for (const TruthDiff& one : part_.contradictions) add_label(one.units);
  }

  DiffSides sides_;
  Pipeline old_pipeline_, new_pipeline_;
  EdgeFinder old_edges_, new_edges_;
  DiffPart part_;
  std::uint64_t tokens_ = 0;
};

bool better(const QualityChange& change) { return change.now == Quality::kKept; }

void add_totals(const DiffPart& part, DiffTotals& out) {
  for (const FieldChange& field : part.fields)
    (field.change == Change::kLost ? out.fields_lost : out.fields_gained) += field.fields.size() * field.affected;
  for (const LinkDiff& link : part.links) ++(link.worse() ? out.links_worse : out.links_better);
  for (const DropDiff& drop : part.drops) {
    if (drop.change == DropChange::kNew) ++out.drops_new;
    if (drop.change == DropChange::kFixed) ++out.drops_fixed;
    if (drop.change == DropChange::kMoved) ++out.drops_moved;
  }
  for (const QualityChange& change : part.qualities) ++(better(change) ? out.doubts_gone : out.doubts_new);
  for (const TruthDiff& one : part.contradictions) ++(one.in_new ? out.doubts_new : out.doubts_gone);
  for (const StageMatch& stage : part.stages) {
    out.matched += stage.pairs.size();
    for (const UnitGroup& group : stage.groups) out.ambiguous += group.new_units.size();
    out.only_old += stage.only_old.size();
    out.only_new += stage.only_new.size();
  }
}

std::uint32_t only_cause(const std::vector<Difference>& settings) {
  std::uint32_t cause = kNoIndex;
  for (std::uint32_t i = 0; i < settings.size(); ++i) {
    if (!settings[i].can_matter) continue;
    if (cause != kNoIndex) return kNoIndex;
    cause = i;
  }
  return cause;
}

bool has_looks(const Capture& capture, std::string_view key) {
  const auto stage = capture.find_stage(key);
  return stage && std::any_of(capture.snapshots.begin(), capture.snapshots.end(),
                              [&](const Snapshot& look) { return look.stage == *stage; });
}

Expected<void> add_lineages(Analysed& side, const std::vector<std::string>& stages) {
  if (stages.empty()) return {};
  AnalysisOptions options;
  options.stages = stages;
  // Without the kernels, their files would stand for them.
  if (std::find(stages.begin(), stages.end(), "kernel") == stages.end() && has_looks(*side.capture, "kernel"))
    options.stages.emplace_back("kernel");
  KERNTRAIL_TRY(side.lineages, lineages(*side.capture, options));
  return {};
}

}  // namespace
}  // namespace analyse

using namespace analyse;

Expected<Diff> diff(const Capture& old, const Capture& now, const AnalysisOptions& options) {
  AnalysisOptions stages;
  stages.stages = options.stages;
  KERNTRAIL_TRY(Analysed a, analysed(old, stages));
  KERNTRAIL_TRY(Analysed b, analysed(now, stages));
  std::vector<std::string> shared;
  std::set_intersection(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(), std::back_inserter(shared));
  KERNTRAIL_CHECK(add_lineages(a, shared));
  KERNTRAIL_CHECK(add_lineages(b, shared));
  Diff out;
  out.unlike = incomparable(old, now);
  out.settings = differing_settings(old, now);
  out.cause = out.unlike.empty() ? only_cause(out.settings) : kNoIndex;
  if (a.witnessed != b.witnessed) out.not_witnessed = a.witnessed ? 2 : 1;
  std::set<CompileId> old_left = a.compiles();
  std::set<CompileId> new_left = b.compiles();
  for (const CompilePair& pair : CompileMatcher(sketches_of(old, old_left), sketches_of(now, new_left)).match()) {
    old_left.erase(pair.first.first);
    new_left.erase(pair.first.second);
    out.parts.push_back(PartBuilder(a, b, pair).build());
    add_totals(out.parts.back(), out.totals);
  }
  out.only_old.assign(old_left.begin(), old_left.end());
  out.only_new.assign(new_left.begin(), new_left.end());
  return out;
}

}  // namespace kerntrail
