#include "invariants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "kerntrail/lineage.h"
#include "kerntrail/matrix.h"
#include "kerntrail/report.h"

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

}  // namespace

void expect_invariants(const Capture& capture) {
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
