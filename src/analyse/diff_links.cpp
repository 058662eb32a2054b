// Source lines of both sides brought together by their text, wherever they moved; then the links from lines to kernels,
// the lines that stacks name, and the claims against the witness.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analyse/diff_part.h"
#include "analyse/pipeline.h"
#include "analyse/sources.h"
#include "base/strings.h"

namespace kerntrail {

std::string_view link_rank_name(LinkRank v) {
  constexpr std::string_view kNames[] = {"recorded", "seen", "derived", "none"};
  return kNames[static_cast<std::size_t>(v)];
}

namespace analyse {
namespace {

constexpr std::size_t kBlamed = 256;  // changes of fields that links are blamed on: each costs a walk

struct LineRef {
  std::string file, code;
  std::int64_t line = 0;
};

LinkRank rank_of(const LineageEdge& edge) {
  if (edge.strength == Strength::kDerived) return LinkRank::kDerived;
  return edge.evidence == Evidence::kBirth || edge.evidence == Evidence::kWitness ? LinkRank::kSeen
                                                                                  : LinkRank::kRecorded;
}

using LineSet = std::vector<std::pair<std::uint32_t, LinkRank>>;  // by line, each once, the best rank

// `own`: the line that the giving unit's own stack names, however it is known where the unit comes from.
void merge(LineSet& into, const LineSet& from, LinkRank edge, std::uint32_t own = kNoIndex) {
  const std::size_t middle = into.size();
  for (const auto& [line, rank] : from) into.emplace_back(line, line == own ? edge : std::max(rank, edge));
  std::inplace_merge(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(middle), into.end());
  into.erase(std::unique(into.begin(), into.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
             into.end());
}

// The snapshot at which a column shows each unit.
class SnapshotTable {
 public:
  SnapshotTable(const DiffSide& side, std::string_view key) {
    const Capture& capture = *side.capture;
    const auto stage = capture.find_stage(key);
    if (!stage) return;
    for (SnapshotId id : capture.snapshots_of(side.compile, *stage)) {
      for (UnitId unit : capture.snapshots[index(id)].units) at_.try_emplace(unit, id);
    }
  }
  SnapshotId operator[](UnitId unit) const {
    const auto found = at_.find(unit);
    return found == at_.end() ? SnapshotId::kNone : found->second;
  }

 private:
  std::unordered_map<UnitId, SnapshotId> at_;
};

// The lineage of one side with the lines that lead to each node.
class Way {
 public:
  explicit Way(const DiffSide& side) : lineage_(*side.lineage) {
    sets_.resize(lineage_.nodes.size());
    out_.resize(lineage_.nodes.size());
    for (std::uint32_t i = 0; i < lineage_.nodes.size(); ++i) {
      const LineageNode& node = lineage_.nodes[i];
      if (has(node.unit)) {
        at_[{lineage_.layers[node.layer].key, node.unit}] = i;
        all_of_[node.unit].push_back(i);
        continue;
      }
      sets_[i].emplace_back(static_cast<std::uint32_t>(lines_.size()), LinkRank::kRecorded);
      line_at_[{node.file, node.line}] = static_cast<std::uint32_t>(lines_.size());
      lines_.push_back({node.file, node.name, node.line});
    }
    note_own(side);
    for (const LineageEdge& edge : lineage_.edges) {  // by layer of `to`: what leads to `from` is complete
      merge(sets_[edge.to], sets_[edge.from], rank_of(edge), own_[edge.from]);
      out_[edge.from].push_back(edge.to);
    }
  }

  const std::vector<LineRef>& lines() const { return lines_; }
  bool shows(const std::string& stage) const {
    const auto layer = std::find_if(lineage_.layers.begin(), lineage_.layers.end(),
                                    [&](const LineageLayer& one) { return one.key == stage; });
    return layer != lineage_.layers.end();
  }
  const LineSet& lines_to(const std::string& stage, UnitId unit) const {
    static const LineSet kNothing;
    const auto found = at_.find({stage, unit});
    return found == at_.end() ? kNothing : sets_[found->second];
  }
  std::uint32_t line(std::string_view file, std::int64_t line) const {
    const auto found = line_at_.find({std::string(file), line});
    return found == line_at_.end() ? kNoIndex : found->second;
  }
  // All lines that lead to a unit at any stage.
  std::set<std::uint32_t> lines_of(UnitId unit) const {
    std::set<std::uint32_t> out;
    const auto found = all_of_.find(unit);
    if (found == all_of_.end()) return out;
    for (std::uint32_t i : found->second) {
      for (const auto& [line, rank] : sets_[i]) out.insert(line);
    }
    return out;
  }
  // Units that a unit becomes, itself among them.
  std::set<UnitId> becomes(UnitId unit) const {
    std::set<UnitId> out;
    const auto found = all_of_.find(unit);
    if (found == all_of_.end()) return out;
    std::vector<std::uint32_t> open = found->second;
    std::vector<bool> seen(lineage_.nodes.size(), false);
    while (!open.empty()) {
      const std::uint32_t i = open.back();
      open.pop_back();
      if (seen[i]) continue;
      seen[i] = true;
      out.insert(lineage_.nodes[i].unit);
      open.insert(open.end(), out_[i].begin(), out_[i].end());
    }
    return out;
  }

 private:
  void note_own(const DiffSide& side) {
    const Capture& capture = *side.capture;
    const AttrId stack = AttrNames(capture)["stack_trace"];
    own_.assign(lineage_.nodes.size(), kNoIndex);
    std::map<std::string, SnapshotTable> tables;
    for (std::uint32_t i = 0; i < lineage_.nodes.size(); ++i) {
      const LineageNode& node = lineage_.nodes[i];
      if (!has(node.unit) || capture.units[index(node.unit)].kind != UnitKind::kFxNode) continue;
      const std::string& key = lineage_.layers[node.layer].key;
      const SnapshotTable& table = tables.try_emplace(key, side, key).first->second;
      const auto named = source_of(capture, stack, node.unit, table[node.unit]);
      if (named) own_[i] = line(capture.text(named->key.file), named->key.line);
    }
  }

  const Lineage& lineage_;
  std::vector<std::uint32_t> own_;
  std::vector<LineRef> lines_;
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> line_at_;
  std::vector<LineSet> sets_;
  std::vector<std::vector<std::uint32_t>> out_;
  std::map<std::pair<std::string, UnitId>, std::uint32_t> at_;
  std::unordered_map<UnitId, std::vector<std::uint32_t>> all_of_;
};

// Which line of NEW is which of OLD: by file and text where no other reads alike; else by the matched units that name
// them; else in order, where as many lines read alike on both sides; else the line that did not move.
class LineMap {
 public:
  LineMap(const std::vector<LineRef>& old, const std::vector<LineRef>& now)
      : old_(old), new_(now), to_new_(old.size(), kNoIndex), to_old_(now.size(), kNoIndex) {
    by_key([](const LineRef& l) { return fmt::format("{}\n{}", base::basename(l.file), l.code); }, false);
  }

  // What neither its text nor a unit tells.
  void pair_rest() {
    by_key([](const LineRef& l) { return fmt::format("{}\n{}", base::basename(l.file), l.code); }, true);
    by_key([](const LineRef& l) { return fmt::format("{}\n{}\n{}", base::basename(l.file), l.code, l.line); }, false);
    by_key([](const LineRef& l) { return l.code; }, false);
  }

  // Two matched units name these: a line whose text was edited.
  void pair(std::uint32_t a, std::uint32_t b) {
    if (a == kNoIndex || b == kNoIndex || to_new_[a] != kNoIndex || to_old_[b] != kNoIndex) return;
    to_new_[a] = b;
    to_old_[b] = a;
  }

  std::uint32_t to_new(std::uint32_t i) const { return to_new_[i]; }
  std::uint32_t to_old(std::uint32_t i) const { return to_old_[i]; }
  std::size_t unmatched() const {
    return static_cast<std::size_t>(std::count(to_new_.begin(), to_new_.end(), kNoIndex) +
                                    std::count(to_old_.begin(), to_old_.end(), kNoIndex));
  }

 private:
  template <class Key>
  void by_key(Key key, bool in_order) {
    std::map<std::string, std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> all;
    for (std::uint32_t i = 0; i < old_.size(); ++i) {
      if (to_new_[i] == kNoIndex) all[key(old_[i])].first.push_back(i);
    }
    for (std::uint32_t i = 0; i < new_.size(); ++i) {
      if (to_old_[i] == kNoIndex) all[key(new_[i])].second.push_back(i);
    }
    for (const auto& [text, both] : all) {
      if (both.first.size() != both.second.size() || (!in_order && both.first.size() != 1)) continue;
      for (std::size_t i = 0; i < both.first.size(); ++i) pair(both.first[i], both.second[i]);  // by file and line
    }
  }

  const std::vector<LineRef>& old_;
  const std::vector<LineRef>& new_;
  std::vector<std::uint32_t> to_new_, to_old_;
};

class Links {
 public:
  Links(const DiffSides& sides, DiffPart& part)
      : sides_(sides), part_(part), old_(sides.old), new_(sides.now), lines_(old_.lines(), new_.lines()) {}

  void compare() {
    stacks();
    part_.lines_unmatched = lines_.unmatched();
    find_causes();
    if (const StageMatch* last = last_stage()) {
      for (const UnitMatch& pair : last->pairs)
        compare_sets(last->key, {pair.old_unit}, {pair.new_unit}, {pair.old_unit, pair.new_unit});
      for (const UnitGroup& group : last->groups)
        compare_sets(last->key, group.old_units, group.new_units, {group.old_units.front(), group.new_units.front()});
    }
    if (sides_.old.verification != nullptr && sides_.now.verification != nullptr) compare_truth();
  }

 private:
  // Lines that the stacks of matched nodes name. First pass: lines without a counterpart, by the units that name them;
  // second: units that name another line.
  void stacks() {
    const AttrNames old_names(*sides_.old.capture);
    const AttrNames new_names(*sides_.now.capture);
    std::map<std::tuple<std::string, std::int64_t, std::string, std::int64_t>, std::size_t> known;
    for (int round = 0; round < 2; ++round) {
      if (round == 1) lines_.pair_rest();
      for (const StageMatch& stage : part_.stages) {
        const SnapshotTable old_at(sides_.old, stage.key);
        const SnapshotTable new_at(sides_.now, stage.key);
        for (const UnitMatch& match : stage.pairs) {
          if (sides_.now.capture->units[index(match.new_unit)].kind != UnitKind::kFxNode) break;
          const auto a =
              source_of(*sides_.old.capture, old_names["stack_trace"], match.old_unit, old_at[match.old_unit]);
          const auto b =
              source_of(*sides_.now.capture, new_names["stack_trace"], match.new_unit, new_at[match.new_unit]);
          if (!a || !b) continue;
          const std::string old_file(sides_.old.capture->text(a->key.file));
          const std::string new_file(sides_.now.capture->text(b->key.file));
          const std::uint32_t from = old_.line(old_file, a->key.line);
          const std::uint32_t to = new_.line(new_file, b->key.line);
          if (from == kNoIndex || to == kNoIndex) continue;
          if (round == 0) {
            lines_.pair(from, to);
          } else if (lines_.to_new(from) != kNoIndex && lines_.to_new(from) != to) {
            const auto [at, added] =
                known.try_emplace({old_file, a->key.line, new_file, b->key.line}, part_.values.size());
            if (!added) {
              ++part_.values[at->second].followers;
              continue;
            }
            part_.values.push_back({stage.key,
                                    {match.old_unit, match.new_unit},
                                    fmt::format("{}:{}", old_file, a->key.line),
                                    fmt::format("{}:{}", new_file, b->key.line),
                                    a->code,
                                    b->code,
                                    0});
          }
        }
      }
    }
  }

  struct Cause {
    bool lost = false;
    std::uint32_t site = kNoIndex;
    std::set<UnitId> kernels;  // of the side that lacks the field: what the unit becomes
    std::set<std::uint32_t> lines;  // of the other side: what leads to its counterpart
  };

  void find_causes() {
    for (const FieldChange& change : part_.fields) {
      if (causes_.size() == kBlamed) break;
      if (change.site == kNoIndex) continue;
      const bool lost = change.change == Change::kLost;
      const UnitId lacking = lost ? change.units.new_unit : change.units.old_unit;
      const UnitId having = lost ? change.units.old_unit : change.units.new_unit;
      if (!has(having)) continue;
      causes_.push_back(
          {lost, change.site, (lost ? new_ : old_).becomes(lacking), (lost ? old_ : new_).lines_of(having)});
    }
  }

  std::uint32_t cause(bool worse, UnitId kernel, std::uint32_t line) const {
    for (const Cause& one : causes_) {
      if (one.lost == worse && one.kernels.count(kernel) != 0 && one.lines.count(line) != 0) return one.site;
    }
    return kNoIndex;
  }

  // The last compared stage that both lineages show: kernels, or the files of their bundles.
  const StageMatch* last_stage() const {
    for (auto stage = part_.stages.rbegin(); stage != part_.stages.rend(); ++stage) {
      if (old_.shows(stage->key) && new_.shows(stage->key)) return &*stage;
    }
    return nullptr;
  }

  static LineSet all_lines(const Way& way, const std::string& stage, const std::vector<UnitId>& units) {
    LineSet out;
    for (UnitId unit : units) merge(out, way.lines_to(stage, unit), LinkRank::kRecorded);
    return out;
  }

  void compare_sets(const std::string& stage, const std::vector<UnitId>& old_units,
                    const std::vector<UnitId>& new_units, const UnitPair& shown) {
    std::map<std::uint32_t, std::pair<LinkRank, LinkRank>> ranks;  // by NEW's line
    for (const auto& [line, rank] : all_lines(old_, stage, old_units)) {
      if (lines_.to_new(line) != kNoIndex)
        ranks.try_emplace(lines_.to_new(line), LinkRank::kNone, LinkRank::kNone).first->second.first = rank;
    }
    for (const auto& [line, rank] : all_lines(new_, stage, new_units)) {
      if (lines_.to_old(line) != kNoIndex)
        ranks.try_emplace(line, LinkRank::kNone, LinkRank::kNone).first->second.second = rank;
    }
    for (const auto& [line, rank] : ranks) {
      if (rank.first == rank.second) {
        ++part_.links_same;
        continue;
      }
      const LineRef& now = new_.lines()[line];
      LinkDiff out{now.file,   now.line,   old_.lines()[lines_.to_old(line)].line, now.code, shown,
                   rank.first, rank.second};
      out.site = out.worse() ? cause(true, shown.new_unit, lines_.to_old(line)) : cause(false, shown.old_unit, line);
      part_.links.push_back(std::move(out));
    }
  }

  // What is contradicted on a side, in words that are equal on both: unit, evidence, node or line.
  using Said = std::tuple<std::uint64_t, std::string, std::uint64_t, std::uint32_t>;
  struct Shown {
    UnitId unit;
    std::string what;
  };

  std::map<Said, Shown> contradicted(const DiffSide& side, const Way& way, bool in_new) const {
    std::map<Said, Shown> out;
    const auto token = [&](UnitId unit) {
      const auto found = side.tokens.find(unit);
      return found == side.tokens.end() ? 0 : found->second;
    };
    for (const UnitVerdict& unit : side.verification->units) {
      const std::uint64_t own = token(unit.unit);
      if (own == 0) continue;
      for (const NodeVerdict& node : unit.nodes) {
        if (!node.claimed || !contradicts(node.support) || token(node.node) == 0) continue;
        const auto label = side.verification->labels.find(node.node);
        out.try_emplace({own, unit.evidence, token(node.node), 0},
                        Shown{unit.unit, label == side.verification->labels.end() ? "" : label->second.name});
      }
      for (const LineVerdict& line : unit.lines) {
        if (!line.claimed || !contradicts(line.support)) continue;
        std::uint32_t at = way.line(line.file, line.line);
        if (at != kNoIndex && !in_new) at = lines_.to_new(at);
        if (at == kNoIndex) continue;
        out.try_emplace({own, unit.evidence, 0, at}, Shown{unit.unit, fmt::format("{}:{}", line.file, line.line)});
      }
    }
    return out;
  }

  void compare_truth() {
    part_.witnessed = true;
    std::map<std::tuple<std::string, std::string, std::string>, TruthRow> rows;
    const auto add = [&](const Verification& one, bool in_new) {
      for (const ScoreRow& row : one.rows) {
        TruthRow& into = rows[{row.stage, row.evidence, row.unit_class}];
        into.stage = row.stage;
        into.unit_class = row.unit_class;
        into.evidence = row.evidence;
        (in_new ? into.new_lines : into.old_lines) += row.lines;
        (in_new ? into.new_nodes : into.old_nodes) += row.nodes;
      }
    };
    add(*sides_.old.verification, false);
    add(*sides_.now.verification, true);
    for (auto& [key, row] : rows) part_.truth.push_back(std::move(row));
    const auto was = contradicted(sides_.old, old_, false);
    const auto now = contradicted(sides_.now, new_, true);
    for (const auto& [key, shown] : now) {
      if (was.count(key) == 0)
        part_.contradictions.push_back({true, {UnitId::kNone, shown.unit}, std::get<1>(key), shown.what});
    }
    for (const auto& [key, shown] : was) {
      if (now.count(key) == 0)
        part_.contradictions.push_back({false, {shown.unit, UnitId::kNone}, std::get<1>(key), shown.what});
    }
  }

  const DiffSides& sides_;
  DiffPart& part_;
  Way old_, new_;
  LineMap lines_;
  std::vector<Cause> causes_;
};

}  // namespace

void compare_links(const DiffSides& sides, DiffPart& part) {
  if (sides.old.lineage == nullptr || sides.now.lineage == nullptr) return;
  Links(sides, part).compare();
}

}  // namespace analyse
}  // namespace kerntrail
