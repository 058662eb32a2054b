#include "render/mermaid.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "render/outputs.h"

namespace kerntrail::render {
namespace {

Lineage layered(std::size_t sources, std::size_t per_source, const std::string& name) {
  Lineage lineage;
  lineage.layers = {{"source", "Source"}, {"kernel", "Kernel"}};
  for (std::size_t i = 0; i < sources; ++i)
    lineage.nodes.push_back({0, UnitId::kNone, name, "", "", "m.py", static_cast<std::int64_t>(i)});
  for (std::size_t i = 0; i < sources; ++i) {
    for (std::size_t j = 0; j < per_source; ++j) {
      lineage.nodes.push_back({1, id_at<UnitId>(lineage.nodes.size()), name, "op", "", "", 0});
      LineageEdge edge;
      edge.from = static_cast<std::uint32_t>(i);
      edge.to = static_cast<std::uint32_t>(lineage.nodes.size() - 1);
      lineage.edges.push_back(edge);
    }
  }
  return lineage;
}

std::size_t arrows(const std::string& block) {
  std::size_t n = 0;
  for (std::size_t at = block.find(" --> "); at != std::string::npos; at = block.find(" --> ", at + 1)) ++n;
  return n;
}

void expect_limits(const MermaidDrawing& drawing) {
  for (const std::string& block : drawing.blocks) {
    EXPECT_LE(block.size(), kMermaidCharacters);
    EXPECT_LE(arrows(block), kMermaidEdges);
    EXPECT_EQ(block.rfind("flowchart LR\n", 0), 0U);
  }
}

TEST(Mermaid, SmallLineageIsOneBlock) {
  const auto drawing = draw_mermaid(layered(2, 2, "x"));
  ASSERT_EQ(drawing.blocks.size(), 1U);
  EXPECT_EQ(arrows(drawing.blocks.front()), 4U);
  EXPECT_EQ(drawing.left_out_edges, 0U);
}

TEST(Mermaid, LargeLineageIsSplitAndSaysWhatItLeftOut) {
  const auto lineage = layered(2, 2000, "node");
  const auto all = draw_mermaid(lineage, 1000);
  expect_limits(all);
  EXPECT_GT(all.blocks.size(), 8U);
  EXPECT_EQ(all.left_out_edges, 0U);
  EXPECT_EQ(all.left_out_nodes, 0U);
  const auto some = draw_mermaid(lineage, 3);
  expect_limits(some);
  EXPECT_EQ(some.blocks.size(), 3U);
  std::size_t drawn = 0;
  for (const std::string& block : some.blocks) drawn += arrows(block);
  EXPECT_EQ(drawn + some.left_out_edges, lineage.edges.size());
  EXPECT_GT(some.left_out_nodes, 0U);
}

TEST(Mermaid, OneSinkWithTooMuchBehindItIsCut) {
  Lineage lineage;
  lineage.layers = {{"source", "Source"}, {"kernel", "Kernel"}};
  for (std::size_t i = 0; i < 1500; ++i)
    lineage.nodes.push_back({0, UnitId::kNone, "line", "", "", "m.py", static_cast<std::int64_t>(i)});
  lineage.nodes.push_back({1, id_at<UnitId>(0), "kernel", "", "", "", 0});
  for (std::uint32_t i = 0; i < 1500; ++i) {
    LineageEdge edge;
    edge.from = i;
    edge.to = 1500;
    lineage.edges.push_back(edge);
  }
  const auto drawing = draw_mermaid(lineage);
  expect_limits(drawing);
  EXPECT_EQ(drawing.left_out_edges, 0U);
  std::size_t drawn = 0;
  for (const std::string& block : drawing.blocks) drawn += arrows(block);
  EXPECT_EQ(drawn, 1500U);
}

TEST(Mermaid, IdsAreNumbersOnly) {
  const auto drawing = draw_mermaid(layered(1, 1, "end"));
  EXPECT_NE(drawing.blocks.front().find("n0[\"end\"]"), std::string::npos);
  EXPECT_NE(drawing.blocks.front().find("n0 --> n1"), std::string::npos);
}

TEST(Mermaid, TitlesAreShort) {
  EXPECT_EQ(short_title("FX Graph (pre-grad)"), "FX pre-grad");
  EXPECT_EQ(short_title("LoopLevelIR (post-pass)"), "LoopLevelIR post-pass");
  EXPECT_EQ(short_title("SuperDSC JSON"), "SuperDSC");
  EXPECT_EQ(short_title("OpSpec"), "OpSpec");
}

RC_GTEST_PROP(Mermaid, IsWithinLimitsWithHostileLabels, ()) {
  Lineage lineage;
  const auto layers = *rc::gen::inRange<std::uint32_t>(2, 5);
  for (std::uint32_t l = 0; l < layers; ++l) lineage.layers.push_back({"k", *rc::gen::arbitrary<std::string>()});
  const std::string alphabet = *rc::gen::element<std::string>("\"<>&#|`\\", "a", "\n\x1b", "\xF0\x9F\x98\x80");
  for (std::uint32_t l = 0; l < layers; ++l) {
    const auto n = *rc::gen::inRange(1, 120);
    for (int i = 0; i < n; ++i) {
      std::string name;
      for (int k = *rc::gen::inRange(0, 60); k > 0; --k) name += alphabet;
      lineage.nodes.push_back(
          {l, id_at<UnitId>(lineage.nodes.size()), name, *rc::gen::arbitrary<std::string>(), "", "", 0});
    }
  }
  std::set<std::pair<std::uint32_t, std::uint32_t>> made;
  for (int i = *rc::gen::inRange(0, 1200); i > 0; --i) {
    LineageEdge edge;
    edge.from = *rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(lineage.nodes.size()));
    edge.to = *rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(lineage.nodes.size()));
    if (lineage.nodes[edge.from].layer >= lineage.nodes[edge.to].layer || !made.insert({edge.from, edge.to}).second)
      continue;
    lineage.edges.push_back(edge);
  }
  const auto drawing = draw_mermaid(lineage, 10000);
  RC_ASSERT(drawing.left_out_edges == 0U);
  RC_ASSERT(drawing.left_out_nodes == 0U);
  for (const std::string& block : drawing.blocks) {
    RC_ASSERT(block.size() <= kMermaidCharacters);
    RC_ASSERT(arrows(block) <= kMermaidEdges);
    std::istringstream lines(block);
    for (std::string text; std::getline(lines, text);) {  // a label's text never leaves its quotes
      const auto quotes = std::count(text.begin(), text.end(), '"');
      RC_ASSERT(quotes == 0 || quotes == 2);
    }
  }
}

}  // namespace
}  // namespace kerntrail::render
