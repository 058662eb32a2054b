#include "spyre/identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "spyre/test_specs.h"

namespace kerntrail::spyre {
namespace {

OpSpec bare(std::optional<std::uint64_t> handle, std::string op = "identity") {
  OpSpec spec;
  spec.op = std::move(op);
  if (handle) {
    spec.debug_handle.emplace();
    spec.debug_handle->id = *handle;
  }
  return spec;
}

std::string key(const SpecTree& specs) {
  const auto made = kernel_key(specs);
  EXPECT_TRUE(made) << made.error().text();
  return made ? *made : std::string();
}

// Keys that torch-spyre gives these trees.
TEST(Identity, KeysAreThoseOfTheReference) {
  EXPECT_EQ(key({bare(9), bare(12)}), "vsancadvtjfcq6cv");
  EXPECT_EQ(key({bare(12), bare(9)}), "mwjrlytwo4uqj3ov");
  EXPECT_EQ(key({bare(9)}), "laipw3katk7qkxt5");
  EXPECT_EQ(key({bare(9), bare(9)}), "ffs35fada2745mrd");
  EXPECT_EQ(key({SpecLoop{"2", {bare(9)}}}), "m5m3fnpmjvtndo2t");
  EXPECT_EQ(key({bare(9, "add")}), "2c37wxzl2rxn5nbw");
  EXPECT_EQ(key({bare(std::nullopt)}), "qldmlzb4ik3uppzb");
  EXPECT_EQ(key({}), "cbf57wt2vbzo5yv7");
}

// Computed by a program of its own, in Python, from the rules: json.dumps, float.hex, hashlib, base64.
TEST(Identity, ValuesAreWrittenAsPythonWritesThem) {
  OpSpec spec = bare(9, "add");
  spec.is_reduction = true;
  spec.iteration_space = {{"c0", 128, 2}, {"c1", 64, 1}};
  const base::JsonArray floats{1.5, -0.0, 0.1, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308, 3.0};
  spec.op_info = base::JsonObject{
      {"alpha", 1.5}, {"é", base::JsonObject{{"b", 1}, {"a", true}}}, {"floats", floats}, {"none", nullptr}};
  spec.tiled_symbols = {"c0"};
  spec.symbolic_dim_bounds = base::JsonObject{{"s0", base::JsonArray{128, 64}}};
  EXPECT_EQ(key({SpecLoop{"4", {spec}}}), "txzppzvjmstoor6s");
  EXPECT_EQ(key({SpecLoop{"4", spec_tree_of(parse_op_specs(print_op_specs({spec})).value())}}), "txzppzvjmstoor6s");
}

OpSpec rich() {
  using namespace testing;
  OpSpec spec =
      pointwise("add", {2, 64}, {tensor("arg0", 0, {2, 64}, "64*c0 + c1"), tensor("buf0", 1, {2, 64}, "64*c0 + c1")});
  for (TensorArg& arg : spec.args) {
    arg.layout = {{1, 2, 64}, {64, 64, 1}};
    arg.device_coordinates = {"floor(c1/64)", "c0", "Mod(c1, 64)"};
  }
  spec.op_info = base::JsonObject{{"constants", base::JsonObject{{"alpha", 1.5}}}, {"flag", true}};
  spec.symbolic_dim_bounds = base::JsonObject{{"s0", base::JsonArray{1, 64}}};
  spec.tiled_symbols = {"c0"};
  spec.debug_handle = DebugHandle{9, std::nullopt, "aten.add.Tensor", {"add", "buf0"}, {}, std::nullopt};
  return spec;
}

TEST(Identity, WhateverIsExecutedIsInTheKey) {
  const std::vector<std::function<void(OpSpec&)>> changes{
      [](OpSpec& s) { s.op = "mul"; },
      [](OpSpec& s) { s.is_reduction = true; },
      [](OpSpec& s) { s.iteration_space[0].extent = 4; },
      [](OpSpec& s) { s.iteration_space[1].split = 2; },
      [](OpSpec& s) { std::swap(s.iteration_space[0], s.iteration_space[1]); },
      [](OpSpec& s) { s.op_info = base::JsonObject{{"constants", base::JsonObject{{"alpha", 1.25}}}, {"flag", true}}; },
      [](OpSpec& s) { s.op_info = base::JsonObject{{"constants", base::JsonObject{{"alpha", 1.5}}}, {"flag", 1}}; },
      [](OpSpec& s) { s.symbolic_dim_bounds = base::JsonObject{{"s0", base::JsonArray{1, 32}}}; },
      [](OpSpec& s) { s.tiled_symbols = {"c1"}; },
      [](OpSpec& s) { s.debug_handle->id = 10; },
      [](OpSpec& s) { s.args[0].is_input = false; },
      [](OpSpec& s) { s.args[0].arg_index = -1; },
      [](OpSpec& s) { s.args[0].name = "arg1"; },
      [](OpSpec& s) { s.args[0].dtype = DType::kFloat32; },
      [](OpSpec& s) { s.args[0].host_size = {2, 128}; },
      [](OpSpec& s) { s.args[0].host_stride = {1, 2}; },
      [](OpSpec& s) { s.args[0].index = "c1"; },
      [](OpSpec& s) { s.args[0].layout.device_size = {2, 1, 64}; },
      [](OpSpec& s) { s.args[0].layout.stride_map = {64, 64, -1}; },
      [](OpSpec& s) { s.args[0].device_coordinates[1] = "0"; },
      [](OpSpec& s) { s.args[0].memory = Memory::kLx; },
      [](OpSpec& s) { s.args[0].base = 128; }};
  std::vector<std::string> keys{key({rich()})};
  for (const auto& change : changes) {
    OpSpec spec = rich();
    change(spec);
    keys.push_back(key({spec}));
  }
  auto each = keys;
  std::ranges::sort(each);
  EXPECT_EQ(std::ranges::unique(each).size(), 0U) << "two of them share a key";
}

TEST(Identity, WhatIsNotExecutedIsNot) {
  OpSpec spec = rich();
  spec.debug_handle->transform_history.emplace().push_back({"rewrite", "pass", std::nullopt});
  spec.op_info = base::JsonObject{{"flag", true}, {"constants", base::JsonObject{{"alpha", 1.5}}}};
  EXPECT_EQ(key({spec}), key({rich()})) << "history, and the order of members";
}

TEST(Identity, TheTextOfAWrapperGivesTheSameKey) {
  const std::vector<OpSpec> specs{rich(), bare(12)};
  const auto again = parse_op_specs(print_op_specs(specs));
  ASSERT_TRUE(again);
  EXPECT_EQ(key(spec_tree_of(*again)), key(spec_tree_of(specs)));
}

// Symbolic values that went through Python come back in another spelling.
TEST(Identity, ExpressionsCountByWhatTheySay) {
  OpSpec spec = rich();
  spec.args[0].index = "(64 * c0) + c1";
  spec.args[1].device_coordinates[1] = " c0";
  EXPECT_EQ(key({spec}), key({rich()}));
  EXPECT_EQ(key({SpecLoop{"(2)", {bare(9)}}}), key({SpecLoop{"1 + 1", {bare(9)}}}));
  EXPECT_NE(key({SpecLoop{"s0", {bare(9)}}}), key({SpecLoop{"s1", {bare(9)}}}));
  EXPECT_NE(key({SpecLoop{"what?", {bare(9)}}}), key({SpecLoop{"else?", {bare(9)}}}));
}

TEST(Identity, NumbersThatAreNoneGiveNoKey) {
  OpSpec spec = bare(9);
  spec.op_info = base::JsonObject{{"constants", base::JsonArray{std::numeric_limits<double>::quiet_NaN()}}};
  const auto made = kernel_key({SpecLoop{"2", {spec}}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
  spec.op_info = base::JsonObject{{"constants", base::JsonArray{std::numeric_limits<double>::infinity()}}};
  EXPECT_TRUE(kernel_key({spec}));
}

TEST(Identity, DescriptorFollowsTheTree) {
  OpSpec fused = bare(200);
  DebugHandle linear, relu;
  linear.id = 101;
  linear.aten_op = "aten.linear.default";
  relu.id = 102;
  relu.aten_op = "aten.relu.default";
  linear.fused_from = {relu};
  fused.debug_handle->fused_from = {linear};
  const auto made = describe_kernel({fused, SpecLoop{"4", {bare(9), fused}}, bare(std::nullopt)});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->debug_handle_ids, (std::vector<std::uint64_t>{200, 9}));
  EXPECT_EQ(made->bindings, (std::vector<HandleBinding>{{{0}, 200}, {{1, 0}, 9}, {{1, 1}, 200}}));
  EXPECT_EQ(made->aten_ops, (std::vector<std::string>{"aten.linear.default", "aten.relu.default"}));
}

}  // namespace
}  // namespace kerntrail::spyre
