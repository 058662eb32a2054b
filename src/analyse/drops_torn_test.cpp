// A capture that breaks off: what may only be missing from the file is not missing from the compile.
#include "drops_fixture.h"

namespace kerntrail {
namespace {

using testing::DropsTest;

TEST_F(DropsTest, NothingIsConcludedOfTheStageThatATornCaptureBreaksOffIn) {
  enter();
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 0), aten(c_, "cos", 2, {a_})});
  Capture capture = b_.finish();
  const auto whole = drops(capture, {});
  ASSERT_TRUE(whole && whole->size() == 1);
  EXPECT_EQ(post(whole->front(), "stack_trace", a_).reason, Reason::kDropped);
  EXPECT_EQ(whole->front().losses.size(), 1U);
  capture.end.reset();
  testing::expect_invariants(capture);
  const auto torn = drops(capture, {});
  ASSERT_TRUE(torn && torn->size() == 1);
  EXPECT_EQ(post(torn->front(), "stack_trace", a_).reason, Reason::kUnknown);
  EXPECT_EQ(post(torn->front(), "stack_trace", c_).state, State::kPresent);
  EXPECT_TRUE(torn->front().losses.empty());
  EXPECT_EQ(cell(torn->front(), "fx_aten", "from_node", a_).reason, cell(whole->front(), "fx_aten", "from_node", a_).reason);
}

}  // namespace
}  // namespace kerntrail
