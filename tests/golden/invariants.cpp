#include "invariants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <tuple>

#include "kerntrail/drops.h"
#include "kerntrail/lineage.h"
#include "kerntrail/matrix.h"
#include "kerntrail/report.h"
#include "kerntrail/verify.h"

namespace kerntrail::testing {
namespace {

void expect_cell(const MatrixCell& cell, std::size_t units) {
  EXPECT_EQ(cell.total, units);
  EXPECT_EQ(cell.units.size(), units);
  EXPECT_EQ(cell.present + cell.empty + cell.no_slot + cell.unreadable, cell.total);
  EXPECT_EQ(cell.present + cell.carried + cell.lost + cell.not_before + cell.unreadable, cell.total);
  std::size_t carried = 0;
  for (const CellUnit& unit : cell.units) {
    EXPECT_EQ(unit.verdict == Verdict::kOwn, unit.state == State::kPresent);
    EXPECT_EQ(unit.verdict == Verdict::kUnreadable, unit.state == State::kUnreadable);
    EXPECT_EQ(unit.verdict == Verdict::kCarried, !unit.carrier.empty());
    carried += unit.verdict == Verdict::kCarried ? 1U : 0U;
  }
  EXPECT_EQ(carried, cell.carried);
  if (cell.glyph == Glyph::kAll) {
    EXPECT_EQ(cell.present, cell.total);
  }
  if (cell.glyph == Glyph::kSome) {
    EXPECT_TRUE(cell.present > 0 && cell.present < cell.total);
  }
  if (cell.glyph == Glyph::kDash) {
    EXPECT_TRUE(!cell.created || (cell.carried > 0 && cell.lost == 0));
  }
  if (cell.glyph == Glyph::kNone) {
    EXPECT_EQ(cell.present, 0U);
  }
}

void expect_lineage(const Lineage& lineage) {
  std::set<std::tuple<std::uint32_t, UnitId, std::string, std::int64_t>> keys;
  for (const LineageNode& node : lineage.nodes) {
    EXPECT_LT(node.layer, lineage.layers.size());
    EXPECT_TRUE(keys.insert({node.layer, node.unit, node.file, node.line}).second) << "a node twice: " << node.name;
  }
  std::set<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (const LineageEdge& edge : lineage.edges) {
    ASSERT_LT(edge.from, lineage.nodes.size());
    ASSERT_LT(edge.to, lineage.nodes.size());
    EXPECT_LT(lineage.nodes[edge.from].layer, lineage.nodes[edge.to].layer);
    EXPECT_TRUE(edges.insert({edge.from, edge.to}).second) << "an edge twice";
    EXPECT_EQ(edge.strength, strength_of(edge.evidence));
  }
  // What `a` reaches forwards is what reaches `a` backwards.
  const std::size_t tried = std::min<std::size_t>(lineage.nodes.size(), 40);
  for (std::uint32_t a = 0; a < tried; ++a) {
    for (std::uint32_t b : reach(lineage, {a}, true)) {
      const auto back = reach(lineage, {b}, false);
      EXPECT_TRUE(std::binary_search(back.begin(), back.end(), a));
    }
    const Lineage near = around(lineage, {a});
    EXPECT_LE(near.edges.size(), lineage.edges.size());
    for (const LineageEdge& edge : near.edges) EXPECT_LT(edge.to, near.nodes.size());
  }
}

template <class Counts>
std::size_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

template <class Found>
bool is_of(const Found& found, UnitId unit) {
  return found.unit == unit || std::binary_search(found.heirs.begin(), found.heirs.end(), unit);
}

void expect_field(const Drops& drops, const StageTally& stage, const FieldTally& field) {
  EXPECT_EQ(field.units.size(), stage.units);
  EXPECT_EQ(field.present + field.absent + field.unreadable, stage.units);
  EXPECT_EQ(sum(field.qualities), field.present);
  EXPECT_EQ(sum(field.reasons), field.absent);
  std::array<std::size_t, kQualities> qualities{};
  std::array<std::size_t, kReasons> reasons{};
  for (const FieldUnit& unit : field.units) {
    if (unit.state == State::kUnreadable) continue;
    if (unit.state == State::kPresent) {
      ++qualities[static_cast<std::size_t>(unit.quality)];
      EXPECT_EQ(unit.quality == Quality::kKept, unit.mark == kNoIndex);
      if (unit.mark == kNoIndex) continue;
      ASSERT_LT(unit.mark, drops.marks.size());
      EXPECT_TRUE(is_of(drops.marks[unit.mark], unit.unit));
      EXPECT_EQ(drops.marks[unit.mark].field, field.attr);
      EXPECT_EQ(drops.marks[unit.mark].quality, unit.quality);
      continue;
    }
    ++reasons[static_cast<std::size_t>(unit.reason)];
    EXPECT_EQ(unit.reason == Reason::kCarriedBy, !unit.carrier.empty());
    if (unit.loss != kNoIndex) {
      ASSERT_LT(unit.loss, drops.losses.size());
      EXPECT_TRUE(is_of(drops.losses[unit.loss], unit.unit));
    }
    EXPECT_EQ(unit.reason == Reason::kOrphan, has(unit.orphan) && unit.orphan == unit.unit);
    EXPECT_EQ(has(unit.orphan), unit.root == Reason::kOrphan || unit.reason == Reason::kOrphan);
    if (unit.reason == Reason::kDropped) {
      ASSERT_NE(unit.loss, kNoIndex);
      EXPECT_EQ(drops.losses[unit.loss].unit, unit.unit);
      EXPECT_EQ(drops.losses[unit.loss].field, field.attr);
    }
  }
  EXPECT_EQ(qualities, field.qualities);
  EXPECT_EQ(reasons, field.reasons);
}

// Every loss and mark is referred to by a stage, stands in exactly one group, and its site exists.
void expect_groups(const Drops& drops) {
  for (const DropGrouping by : {DropGrouping::kPass, DropGrouping::kLine, DropGrouping::kField, DropGrouping::kUnit}) {
    std::vector<std::size_t> losses(drops.losses.size(), 0), marks(drops.marks.size(), 0);
    for (const DropGroup& group : group_drops(drops, by)) {
      EXPECT_FALSE(group.losses.empty() && group.marks.empty());
      for (std::uint32_t i : group.losses) ++losses.at(i);
      for (std::uint32_t i : group.marks) ++marks.at(i);
    }
    for (std::size_t n : losses) EXPECT_EQ(n, 1U);
    for (std::size_t i = 0; i < marks.size(); ++i) {
      const bool unplaced = drops.marks[i].site == kNoIndex && (by == DropGrouping::kPass || by == DropGrouping::kLine);
      EXPECT_EQ(marks[i], unplaced ? 0U : 1U);
    }
  }
}

// One rule decides in both what is present and what another field carries; groups' members are drops' own addition.
void expect_as_in_matrix(const Capture& capture) {
  const auto all = matrices(capture, {{"all"}, {}});
  const auto lost = drops(capture, {{{"all"}, {}}, {}});
  ASSERT_TRUE(all && lost);
  ASSERT_EQ(all->size(), lost->size());
  for (std::size_t i = 0; i < all->size(); ++i) {
    for (const StageTally& stage : (*lost)[i].stages) {
      const auto& columns = (*all)[i].columns;
      const auto column =
          std::find_if(columns.begin(), columns.end(), [&](const MatrixColumn& c) { return c.key == stage.key; });
      ASSERT_NE(column, columns.end());
      for (std::size_t r = 0; r < stage.fields.size(); ++r) {
        const MatrixCell& cell = (*all)[i].rows[r].cells[static_cast<std::size_t>(column - columns.begin())];
        EXPECT_EQ(cell.present, stage.fields[r].present);
        EXPECT_EQ(cell.unreadable, stage.fields[r].unreadable);
        for (std::size_t u = 0; u < cell.units.size(); ++u) {
          const FieldUnit& unit = stage.fields[r].units[u];
          if (capture.units[index(unit.unit)].kind == UnitKind::kGroup || !cell.created) continue;
          const bool absent = unit.state != State::kPresent && unit.state != State::kUnreadable;
          EXPECT_EQ(cell.units[u].verdict == Verdict::kCarried, absent && unit.reason == Reason::kCarriedBy)
              << stage.key << " " << stage.fields[r].name;
        }
      }
    }
  }
}

void expect_drops(const Drops& drops) {
  std::vector<bool> used(drops.losses.size(), false);
  for (const StageTally& stage : drops.stages) {
    for (const FieldTally& field : stage.fields) {
      expect_field(drops, stage, field);
      for (const FieldUnit& unit : field.units) {
        if (unit.loss != kNoIndex && unit.loss < used.size()) used[unit.loss] = true;
      }
    }
  }
  for (std::size_t i = 0; i < drops.losses.size(); ++i) {
    EXPECT_TRUE(used[i]) << "a loss that no stage knows of";
    ASSERT_LT(drops.losses[i].site, drops.sites.size());
    EXPECT_FALSE(drops.losses[i].had.empty());
    EXPECT_LE(drops.losses[i].had.size(), drops.losses[i].sources);
  }
  std::set<UnitId> orphans;
  for (const Orphan& orphan : drops.orphans) {
    EXPECT_TRUE(orphans.insert(orphan.unit).second) << "each once";
    EXPECT_FALSE(orphan.fields.empty());
    EXPECT_TRUE(orphan.site == kNoIndex || orphan.site < drops.sites.size());
    EXPECT_TRUE(orphan.in_stage || !orphan.heirs.empty());
  }
  for (const PassTally& pass : drops.passes) {
    EXPECT_EQ(sum(pass.fates), pass.left);
    EXPECT_EQ(pass.leavers.size(), pass.left);
  }
  for (const StageInterval& interval : drops.intervals) EXPECT_EQ(sum(interval.fates), interval.entering);
  expect_groups(drops);
}

// Where anything was witnessed: verdicts sum to the rows, a node or line is judged once a claim, what is done elsewhere
// says where.
void expect_verdicts(const Capture& capture) {
  const auto all = verify(capture);
  if (!all) {
    EXPECT_EQ(all.error().code, ErrorCode::kUnsupported);
    return;
  }
  for (const Verification& one : *all) {
    std::size_t nodes = 0, lines = 0, row_nodes = 0, row_lines = 0, row_units = 0;
    for (const UnitVerdict& unit : one.units) {
      nodes += unit.nodes.size();
      lines += unit.lines.size();
      std::set<UnitId> judged;
      for (const NodeVerdict& node : unit.nodes) {
        EXPECT_TRUE(judged.insert(node.node).second);
        EXPECT_EQ(node.support == Support::kElsewhere, !node.elsewhere.empty());
        EXPECT_TRUE(node.claimed || !contradicts(node.support)) << "missed, but nothing is done for it";
      }
      std::set<std::pair<std::string, std::int64_t>> places;
      for (const LineVerdict& line : unit.lines) {
        EXPECT_TRUE(places.insert({line.file, line.line}).second);
        EXPECT_EQ(line.support == Support::kElsewhere, !line.elsewhere.empty());
        EXPECT_TRUE(line.claimed || !contradicts(line.support));
      }
    }
    for (const ScoreRow& row : one.rows) {
      row_nodes += row.nodes.total() + row.nodes.missed;
      row_lines += row.lines.total() + row.lines.missed;
      row_units += row.units;
      EXPECT_LE(row.lines.worked(), row.lines.right());
      EXPECT_TRUE(row.nodes.precision() >= 0 && row.nodes.precision() <= 1);
    }
    EXPECT_EQ(nodes, row_nodes);
    EXPECT_EQ(lines, row_lines);
    EXPECT_EQ(one.units.size(), row_units);
  }
}

}  // namespace

void expect_drops(const Capture& capture) {
  expect_as_in_matrix(capture);
  for (const AnalysisOptions& analysis : {AnalysisOptions{}, AnalysisOptions{{"all"}, {}}}) {
    const auto all = drops(capture, {analysis, {}});
    ASSERT_TRUE(all) << all.error().text();
    for (const Drops& one : *all) expect_drops(one);
  }
}

void expect_invariants(const Capture& capture) {
  expect_verdicts(capture);
  expect_drops(capture);
  for (const AnalysisOptions& options : {AnalysisOptions{}, AnalysisOptions{{"all"}, {}}}) {
    auto all = matrices(capture, options);
    ASSERT_TRUE(all) << all.error().text();
    for (const Matrix& matrix : *all) {
      for (const MatrixRow& row : matrix.rows) {
        ASSERT_EQ(row.cells.size(), matrix.columns.size());
        for (std::size_t i = 0; i < row.cells.size(); ++i) expect_cell(row.cells[i], matrix.columns[i].units);
      }
    }
    auto every = lineages(capture, options);
    ASSERT_TRUE(every) << every.error().text();
    for (const Lineage& lineage : *every) expect_lineage(lineage);
    ReportOptions report_options;
    report_options.analysis = options;
    auto report = make_report(capture, report_options);
    ASSERT_TRUE(report) << report.error().text();
    for (const ReportSection& section : report->sections) {
      for (const StageTable& table : section.tables) {
        for (const DetailRow& row : table.rows) EXPECT_EQ(row.fields.size(), table.fields.size());
      }
    }
  }
}

}  // namespace kerntrail::testing
