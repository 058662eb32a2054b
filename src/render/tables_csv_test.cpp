// Tables of captures: every row has its header's cells whatever the texts, ids join, and nothing reads as a formula.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "cases.h"
#include "kerntrail/lineage.h"
#include "model/capture_fixtures.h"
#include "model/recorder.h"
#include "model/replay.h"
#include "render/exports.h"

namespace kerntrail::render {
namespace {

using Row = std::vector<std::string>;

// An RFC 4180 reader of its own.
std::vector<Row> rows_of(const std::string& text) {
  std::vector<Row> rows;
  Row row;
  std::string cell;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      EXPECT_TRUE(cell.empty()) << "a quote inside a bare cell";
      quoted = true;
    } else if (c == ',' || c == '\n') {
      row.push_back(std::move(cell));
      cell.clear();
      if (c == '\n') rows.push_back(std::move(row)), row.clear();
    } else {
      cell += c;
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_TRUE(row.empty() && cell.empty()) << "the last row has no end";
  return rows;
}

std::vector<Row> table(const Capture& capture, std::string_view name) {
  const auto text = table_csv(capture, name);
  EXPECT_TRUE(text) << (text ? "" : text.error().text());
  auto rows = text ? rows_of(*text) : std::vector<Row>();
  for (const Row& row : rows) {
    EXPECT_EQ(row.size(), rows.front().size());
    for (const std::string& cell : row) {
      EXPECT_EQ(cell.find('\0'), std::string::npos);
      EXPECT_TRUE(cell.empty() || std::string("=+-@\t\r").find(cell.front()) == std::string::npos) << cell;
    }
  }
  return rows;
}

std::set<std::string> column(const std::vector<Row>& rows, std::size_t c) {
  std::set<std::string> out;
  for (std::size_t i = 1; i < rows.size(); ++i) out.insert(rows[i][c]);
  return out;
}

TEST(TablesCsv, IdsOfAllTablesJoin) {
  for (const testing::GoldenCase& golden : testing::golden_cases()) {
    const Capture capture = golden.build().capture;
    const auto units = table(capture, "units");
    EXPECT_EQ(units.size(), capture.units.size() + 1) << golden.name;
    const auto ids = column(units, 0);
    EXPECT_EQ(ids.size(), capture.units.size());
    for (const std::string& unit : column(table(capture, "attrs"), 0)) EXPECT_EQ(ids.count(unit), 1U) << unit;
    const auto edges = table(capture, "edges");
    for (std::size_t i = 1; i < edges.size(); ++i) {
      EXPECT_EQ(ids.count(edges[i][1]), 1U) << edges[i][1];
      const bool is_line = edges[i][2] == "lineage" && edges[i][0].find(':') != std::string::npos;
      EXPECT_TRUE(is_line || ids.count(edges[i][0]) == 1) << edges[i][0];
    }
  }
}

TEST(TablesCsv, LinksBirthsClaimsAndLineageAreEdges) {
  const auto edges = table(testing::witnessed().capture, "edges");
  EXPECT_EQ(column(edges, 2), (std::set<std::string>{"link", "birth", "claim", "attr", "lineage"}));
  const auto one = [&](const Row& wanted) { return std::find(edges.begin(), edges.end(), wanted) != edges.end(); };
  EXPECT_TRUE(one({"c0.o1", "c0.k1", "link", "define_kernel", "", "", "", ""}));
  EXPECT_TRUE(one({"c0.n11", "c0.k1", "claim", "origins", "", "", "", ""}));
  EXPECT_TRUE(one({"model.py:3", "c0.n0", "lineage", "traced", "stack-trace", "recorded", "false", ""}));
}

TEST(TablesCsv, RandomCapturesOfHostileTextsStayTables) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    model::Replay replay;
    model::Recorder recorder(replay);
    model::fixtures::record_random(recorder, seed, 60);
    ASSERT_EQ(replay.error(), nullptr) << replay.error()->text();
    const Capture capture = replay.take();
    for (std::string_view name : kTables) table(capture, name);
  }
}

TEST(TablesCsv, AnUnknownTableIsRefused) {
  EXPECT_FALSE(table_csv(testing::witnessed().capture, "lines"));
  EXPECT_FALSE(table_csv(testing::witnessed().capture, "units", {{}, "c9", false}));
}

}  // namespace
}  // namespace kerntrail::render
