// Conclusions of an analysis follow from the capture: planted facts come out, and nothing that is not there is said.
#include "kerntrail/analysis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "capture_builder.h"
#include "cases.h"

namespace kerntrail {
namespace {

Analysis analysed(const Capture& capture) {
  auto out = make_analysis(capture);
  EXPECT_TRUE(out) << (out ? "" : out.error().text());
  return out ? std::move(*out) : Analysis{};
}

const FieldOrigin& field(const AnalysisSection& section, std::string_view name) {
  for (const FieldOrigin& one : section.fields) {
    if (one.field == name) return one;
  }
  ADD_FAILURE() << "no field " << name;
  static const FieldOrigin kNone;
  return kNone;
}

const FlowStage& stage(const AnalysisSection& section, std::string_view key) {
  for (const FlowStage& one : section.flow) {
    if (one.key == key) return one;
  }
  ADD_FAILURE() << "no stage " << key;
  static const FlowStage kNone;
  return kNone;
}

bool says(const std::vector<Caveat>& caveats, std::string_view code) {
  return std::any_of(caveats.begin(), caveats.end(), [&](const Caveat& caveat) { return caveat.code == code; });
}

TEST(Analysis, ReachesTheConclusionsOfTheReferenceRun) {
  const Analysis all = analysed(testing::build_seed000().capture);
  ASSERT_EQ(all.sections.size(), 1U);
  const AnalysisSection& one = all.sections.front();
  const FieldOrigin& stack = field(one, "stack_trace");
  EXPECT_EQ(stack.first_stage, "FX Graph (pre-grad)");
  ASSERT_FALSE(stack.types.empty());
  EXPECT_EQ(stack.types.front().first, "str");
  EXPECT_TRUE(field(one, "get_stack_traces").derived);
  EXPECT_TRUE(says(one.caveats, "unused-slot")) << "traceback is there and empty";
  EXPECT_TRUE(says(one.caveats, "from-node-depends-on-run")) << "3 of 7";
  EXPECT_FALSE(says(one.caveats, "origin-node-is-optional")) << "5 of 5 here";
  EXPECT_FALSE(says(one.caveats, "count-depends-on-schedule")) << "nothing was inserted";
  EXPECT_TRUE(says(all.caveats, "no-passes"));
  ASSERT_EQ(one.derivable.size(), 2U);
  EXPECT_EQ(one.derivable[0].stage, "op_spec");
  EXPECT_EQ(one.derivable[0].have_handle, 5U);
  EXPECT_EQ(one.derivable[0].carriers.front().field, "origins");
  EXPECT_EQ(one.derivable[0].carriers.front().present, 5U);
  EXPECT_EQ(one.derivable[0].through.front(), (std::pair<std::string, std::size_t>{"original_aten", 5}));
  EXPECT_FALSE(stage(one, "op_spec").losses.empty());
}

TEST(Analysis, CountsHowValuesCameAbout) {
  const Analysis all = analysed(testing::witnessed().capture);
  const AnalysisSection& one = all.sections.front();
  const FieldOrigin& stack = field(one, "stack_trace");
  EXPECT_EQ(stack.traced, 9U);
  EXPECT_EQ(stack.copied, 9U);
  EXPECT_EQ(stack.generated, 0U);
  EXPECT_EQ(field(one, "origins").generated, 3U);
  EXPECT_EQ(field(one, "origins").makers, std::vector<std::string>{"into LoopLevelIR (pre-pass)"});
  EXPECT_FALSE(says(all.caveats, "no-witness"));
  ASSERT_EQ(one.derivable.size(), 1U);
  EXPECT_EQ(one.derivable[0].carriers.front().contradicted, 2U) << "origins of op1 and op2 are wrong in part";
}

TEST(Analysis, LossesStandAtTheArrowOfTheirPass) {
  const Analysis witnessed = analysed(testing::witnessed().capture);
  const FlowStage& post = stage(witnessed.sections.front(), "fx_post_grad");
  ASSERT_FALSE(post.losses.empty());
  EXPECT_TRUE(post.losses.front().wrong);
  EXPECT_EQ(post.losses.front().title, "fold");
  EXPECT_EQ(post.losses.front().names, std::vector<std::string>{"sin"});
  const Analysis lossy = analysed(testing::lossy_passes().capture);
  std::size_t lost = 0;
  for (const FlowStage& one : lossy.sections.front().flow) {
    for (const FlowLoss& loss : one.losses) lost += loss.wrong ? 0U : loss.units;
  }
  EXPECT_GT(lost, 0U);
  EXPECT_TRUE(stage(lossy.sections.front(), "fx_pre_grad").losses.empty()) << "nothing is lost before the first stage";
}

TEST(Analysis, SaysNothingOfACaptureThatHoldsNothing) {
  testing::CaptureBuilder b;
  const Analysis all = analysed(b.finish(false));
  EXPECT_TRUE(all.sections.empty());
  EXPECT_TRUE(says(all.caveats, "partial"));
}

}  // namespace
}  // namespace kerntrail
