#include "spyre/event_name.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace kerntrail::spyre {
namespace {

constexpr std::string_view kKey = "vsancadvtjfcq6cv";

TEST(EventName, ParsesTheThreeForms) {
  const auto bare = parse_event_name("spyre_kernel_v1_fused_linear_relu_atqydvnuutl766na");
  ASSERT_TRUE(bare) << bare.error().text();
  EXPECT_EQ(*bare, (EventName{"spyre_kernel_v1_fused_linear_relu_atqydvnuutl766na",
                              "spyre_kernel_v1_fused_linear_relu_atqydvnuutl766na", "fused_linear_relu",
                              "atqydvnuutl766na", std::nullopt, ""}));
  const auto step = parse_event_name("spyre_kernel_v1_fused_mm_atqydvnuutl766na#12");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->step, 12U);
  const auto zeros = parse_event_name("spyre_kernel_v1_fused_mm_atqydvnuutl766na#007");
  ASSERT_TRUE(zeros);
  EXPECT_EQ(zeros->step, 7U);
  EXPECT_EQ(zeros->step_text, "007") << "as the trace spells it";
  EXPECT_EQ(zeros->base_name, "spyre_kernel_v1_fused_mm_atqydvnuutl766na");
}

// The wording says what to look at, so each case has its own.
TEST(EventName, RefusesWhatIsNone) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"triton_kernel_v1_fused_mm_atqydvnuutl766na", "does not begin with"},
      {"spyre_kernel_fused_mm_atqydvnuutl766na", "does not begin with"},
      {"spyre_kernel_v_fused_mm_atqydvnuutl766na", "no version"},
      {"spyre_kernel_v2_fused_mm_atqydvnuutl766na", "version 2 is not known"},
      {"spyre_kernel_v1_fused_mm_atqydvnuutl766n", "does not end with a key"},
      {"spyre_kernel_v1_atqydvnuutl766na", "not <display>_<key>"},
      {"spyre_kernel_v1__atqydvnuutl766na", "not <display>_<key>"},
      {"spyre_kernel_v1_fused_mm_atqydvnuutl766na#step", "no number"},
      {"spyre_kernel_v1_fused_mm_atqydvnuutl766na#", "no number"},
      {"spyre_kernel_v1_fused_mm_atqydvnuutl766na#7 ", "no number"},
      {"x spyre_kernel_v1_fused_mm_atqydvnuutl766na", "does not begin with"},
      {"spyre_kernel_v1_fused mm_atqydvnuutl766na", "display part"},
      {"spyre_kernel_v1_fused_mm_atqydvnuutl766na\n", "key"},
      {"spyre_kernel_v1_fused_mm_ATQYDVNUUTL766NA", "key"},
      {"spyre_kernel_v1_fused_mm_atqydvnuutl766n1", "key"},
      {"spyre_kernel_v1_fused_mm_atqydvnuutl766na#18446744073709551616", "64 bits"},
      {"", "does not begin with"}};
  for (const auto& [text, why] : cases) {
    const auto parsed = parse_event_name(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find(why), std::string::npos) << text << ": " << parsed.error().message;
  }
}

TEST(EventName, DisplayIsMadeOfOperations) {
  EXPECT_EQ(event_display({}), "fused_unknown");
  EXPECT_EQ(event_display({"aten.relu.default", "aten.linear.default", "aten.relu.out"}), "fused_linear_relu");
  EXPECT_EQ(event_display({"aten.add"}), "fused_aten_add") << "two parts: no overload to leave out";
  EXPECT_EQ(event_display({"my-lib.a b.x"}), "fused_a_b");
  EXPECT_EQ(event_display({"x.___.y"}), "fused") << "no underscores at the end";
  EXPECT_EQ(event_display({"aten." + std::string(300, 'x') + ".default"}), "fused_" + std::string(67, 'x'));
}

TEST(EventName, LongestNameFitsTheRuntime) {
  const auto base = event_name_base({"aten." + std::string(300, 'x') + ".default"}, kKey);
  ASSERT_TRUE(base);
  EXPECT_EQ(base->size(), kMaxEventBase);
  EXPECT_EQ((*base + "#" + std::to_string(std::numeric_limits<std::uint64_t>::max())).size(), 127U);
  EXPECT_EQ(*event_name_base({}, kKey), "spyre_kernel_v1_fused_unknown_vsancadvtjfcq6cv");
  EXPECT_FALSE(event_name_base({}, "short"));
}

RC_GTEST_PROP(EventName, EveryNameIsParsedBack, (std::vector<std::string> ops, std::uint64_t step)) {
  const auto base = event_name_base(ops, kKey);
  RC_ASSERT(base.has_value());
  const auto parsed = parse_event_name(*base + "#" + std::to_string(step));
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->base_name == *base);
  RC_ASSERT(parsed->key == kKey);
  RC_ASSERT(parsed->display == event_display(ops));
  RC_ASSERT(parsed->step == step);
}

}  // namespace
}  // namespace kerntrail::spyre
