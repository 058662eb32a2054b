#include "spyre/handle.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kerntrail::spyre {
namespace {

constexpr const char* kTrace =
    "  File \"/home/user/model.py\", line 12, in forward\n    x = self.fc1(x)\n"
    "  File \"/opt/python/torch/nn/modules/linear.py\", line 125, in forward\n    return F.linear(input)\n";

TEST(SourceFromStackTrace, TakesTheInnermostFrameOutsideTorch) {
  const auto source = source_from_stack_trace(kTrace);
  ASSERT_TRUE(source);
  EXPECT_EQ(*source, (SourceLoc{"/home/user/model.py", 12, 0, std::nullopt, std::nullopt}));
  EXPECT_EQ(source_text(*source), "/home/user/model.py:12:0");
}

TEST(SourceFromStackTrace, FallsBackToTheInnermostFrame) {
  const auto source = source_from_stack_trace("File \"/a/torch/x.py\", line 1\nFile \"/a/torch/y.py\", line 2");
  ASSERT_TRUE(source);
  EXPECT_EQ(source->file, "/a/torch/y.py");
  EXPECT_EQ(source->start_line, 2);
}

TEST(SourceFromStackTrace, SkipsWhatIsNoFrame) {
  for (const char* text : {"", "File \"", "File \"a", "File \"a\"", "File \"a\", line ", "File \"a\", line x",
                           "File \"\", line 3", "File \"a\", line -3", "File \"a\", line 99999999999999999999"}) {
    EXPECT_FALSE(source_from_stack_trace(text)) << text;
  }
  const auto source = source_from_stack_trace("File \"File \"b.py\", line 7");
  ASSERT_TRUE(source);
  EXPECT_EQ(source->file, "b.py");
}

RC_GTEST_PROP(SourceFromStackTrace, SurvivesAnyTextAndFindsTheFrameBehindIt, (const std::string& noise)) {
  (void)source_from_stack_trace(noise);
  std::string before = noise;
  std::erase(before, '"');
  const auto source = source_from_stack_trace(before + "\nFile \"user.py\", line 5, in f");
  RC_ASSERT(source.has_value());
  RC_ASSERT(source->file == "user.py" && source->start_line == 5);
}

TEST(DebugHandleId, GivesTheIdsOfTheReferenceModel) {
  EXPECT_EQ(debug_handle_id(std::nullopt, "aten.addmm.default", {"add_tensor_1", "buf1"}), 605170506422197115U);
  EXPECT_EQ(debug_handle_id(std::nullopt, "aten.addmm.default", {"add_tensor", "buf4"}), 6208522288796453179U);
}

TEST(DebugHandleId, HashesTheSourceText) {
  const SourceLoc source{"m.py", 3, 0, std::nullopt, std::nullopt};
  SourceLoc with_end = source;
  with_end.end_line = 9;
  const auto id = debug_handle_id(source, "a", {"x"});
  EXPECT_EQ(id, debug_handle_id(with_end, "a", {"x"}));
  EXPECT_NE(id, debug_handle_id(std::nullopt, "a", {"x"}));
  EXPECT_EQ(id >> 63, 0U);
}

TEST(BuildDebugHandle, HasNoneWithoutOrigins) { EXPECT_FALSE(build_debug_handle({}, std::nullopt, "buf0")); }

TEST(BuildDebugHandle, TakesTheSourceOfTheOriginNodeOrTheAgreedOne) {
  const OriginFacts mm{"mm_default_1", std::nullopt, "aten.addmm.default"};
  const OriginFacts permute{"permute", std::string(kTrace), "aten.linear.default"};
  const auto handle = build_debug_handle({permute, mm}, mm, "buf0");
  ASSERT_TRUE(handle);
  EXPECT_EQ(handle->aten_op, "aten.addmm.default");
  ASSERT_TRUE(handle->source);
  EXPECT_EQ(handle->source->start_line, 12);
  EXPECT_EQ(handle->ir_chain, (std::vector<std::string>{"mm_default_1", "permute", "buf0"}));
  ASSERT_EQ(handle->fused_from.size(), 2U);
  EXPECT_EQ(handle->fused_from[0].aten_op, "aten.addmm.default");
  EXPECT_FALSE(handle->fused_from[0].source);
  EXPECT_EQ(handle->fused_from[1].ir_chain, std::vector<std::string>{"permute"});
  EXPECT_EQ(handle->fused_from[1].id, debug_handle_id(handle->source, "aten.linear.default", {"permute"}));
  EXPECT_EQ(handle->id, debug_handle_id(handle->source, handle->aten_op, handle->ir_chain));
}

TEST(BuildDebugHandle, IsNullWhereConstituentsDisagree) {
  const OriginFacts a{"a", "File \"m.py\", line 1", "aten.mul.Tensor"};
  const OriginFacts b{"b", "File \"m.py\", line 2", "aten.add.Tensor"};
  const auto handle = build_debug_handle({b, a}, std::nullopt, "buf7");
  ASSERT_TRUE(handle);
  EXPECT_FALSE(handle->source);
  EXPECT_FALSE(handle->aten_op);
  EXPECT_EQ(handle->fused_from.size(), 2U);
  EXPECT_EQ(handle->fused_from[0].ir_chain[0], "a");
}

TEST(BuildDebugHandle, ASingleOriginHasNoConstituents) {
  const OriginFacts relu{"relu", std::string(kTrace), "aten.relu.default"};
  const auto handle = build_debug_handle({relu}, std::nullopt, "buf2");
  ASSERT_TRUE(handle);
  EXPECT_TRUE(handle->fused_from.empty());
  EXPECT_EQ(handle->aten_op, "aten.relu.default");
}

}  // namespace
}  // namespace kerntrail::spyre
