#include "render/drops_markdown.h"

#include <gtest/gtest.h>

#include <string>

namespace kerntrail::render {
namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Loss loss(std::uint32_t unit, bool in_stage) {
  Loss loss;
  loss.unit = static_cast<UnitId>(unit);
  loss.field = static_cast<AttrId>(0U);
  loss.way = LossWay::kAtBirth;
  loss.evidence = "match";
  loss.sources = 55;
  for (std::uint32_t u = 0; u < 6; ++u) loss.had.push_back(static_cast<UnitId>(u));
  loss.in_stage = in_stage;
  return loss;
}

// Two runs of one pass, another pass, and a stage that shows nothing.
Drops sample() {
  Drops drops;
  drops.compile = static_cast<CompileId>(0U);
  drops.passes_recorded = true;
  drops.fields = {"stack_trace"};
  for (std::uint32_t u = 0; u < 9; ++u)
    drops.units[static_cast<UnitId>(u)] = {"c0.n" + std::to_string(u), "n" + std::to_string(u), {}};
  for (std::uint32_t p = 0; p < 3; ++p) {
    PassTally tally;
    tally.pass = static_cast<PassId>(p);
    tally.created = p + 1;
    tally.fates[static_cast<std::size_t>(Fate::kDead)] = 2;
    drops.passes.push_back(tally);
    drops.pass_labels[tally.pass] = {
        p == 1 ? "slot / Mine" : "pattern_matcher", "", "", {"pass_pattern_0"}, PassKind::kPass};
  }
  DropSite site;
  site.pass = static_cast<PassId>(0U);
  drops.sites.push_back(site);
  drops.losses = {loss(7, true), loss(8, false)};
  for (const char* key : {"fx_joint", "empty_one"}) {
    StageTally stage;
    stage.key = key;
    stage.units = stage.key == "fx_joint" ? 2 : 0;
    FieldTally field;
    field.name = "stack_trace";
    stage.fields.push_back(field);
    drops.stages.push_back(stage);
  }
  return drops;
}

TEST(DropsMarkdown, RunsOfOnePassAreOneRow) {
  const std::string text = drops_markdown({sample()}, DropGrouping::kPass);
  EXPECT_TRUE(holds(text, "| `pass_pattern_0` / `pattern_matcher`, 2 times | 4 | 0 | 0 | 4 dead | 0 | 0 |")) << text;
  EXPECT_TRUE(holds(text, "| `pass_pattern_0` / `slot` / `Mine` | 2 | 0 | 0 | 2 dead | 0 | 0 |")) << text;
}

TEST(DropsMarkdown, GoneBeforeTheNextStageIsExplainedOnce) {
  Drops drops = sample();
  const std::string text = drops_markdown({drops}, DropGrouping::kPass);
  EXPECT_TRUE(holds(text, "†: gone before the next stage")) << text;
  EXPECT_TRUE(holds(text, "| `n8` (c0.n8) † | `stack_trace` |")) << text;
  EXPECT_TRUE(holds(text, "| `n7` (c0.n7) | `stack_trace` |")) << text;
  drops.losses[1].in_stage = true;
  EXPECT_FALSE(holds(drops_markdown({drops}, DropGrouping::kPass), "†"));
}

TEST(DropsMarkdown, AMatchSaysHowManyHadTheField) {
  const std::string text = drops_markdown({sample()}, DropGrouping::kPass);
  EXPECT_TRUE(holds(text, "made for a match of 55 nodes, 6 of which had it: `n0`, `n1`, `n2`, `n3` and 2 more"))
      << text;
}

TEST(DropsMarkdown, TotalsLeaveOutRowsOfNothing) {
  Drops drops = sample();
  FieldTally never;
  never.name = "traceback";
  never.absent = 2;
  never.reasons[static_cast<std::size_t>(Reason::kNeverMade)] = 2;
  drops.stages[0].fields.push_back(never);
  const std::string text = drops_markdown({drops}, DropGrouping::kPass);
  EXPECT_TRUE(holds(text, "| fx_joint | `stack_trace` | 2 |")) << text;
  EXPECT_FALSE(holds(text, "| empty_one |")) << text;
  EXPECT_FALSE(holds(text, "| `traceback` |")) << text;
  EXPECT_TRUE(holds(text, "Never made at any of these stages, so never lost: `traceback`.")) << text;
}

}  // namespace
}  // namespace kerntrail::render
