#include "spyre/lower.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "spyre/executor.h"

namespace kerntrail::spyre {
namespace {

HostBuffer matrix(std::string name, std::int64_t rows, std::int64_t columns, DType dtype = DType::kFloat16) {
  return {std::move(name), dtype, {rows, columns}, {columns, 1}};
}

BodyNode load(std::string name, std::string index) {
  BodyNode node;
  node.kind = BodyKind::kLoad;
  node.name = std::move(name);
  node.index = std::move(index);
  return node;
}

BodyNode constant(double value) {
  BodyNode node;
  node.kind = BodyKind::kConstant;
  node.value = value;
  return node;
}

BodyNode op(std::string name, std::vector<std::size_t> operands) {
  BodyNode node;
  node.name = std::move(name);
  node.operands = std::move(operands);
  return node;
}

// buf0 = f(a, b) over 4 x 8.
BufferBody pointwise(std::vector<BodyNode> nodes, DType out = DType::kFloat16) {
  BufferBody body;
  body.output = matrix("buf0", 4, 8, out);
  body.output_index = "8*c0 + c1";
  body.ranges = {4, 8};
  body.inputs = {matrix("a", 4, 8), matrix("b", 4, 8), matrix("mask", 4, 8, DType::kBool)};
  body.roots = {nodes.size() - 1};
  body.nodes = std::move(nodes);
  return body;
}

TEST(LowerBuffer, OneOperationIsOneSpecThatWritesTheBuffer) {
  ConstantTable constants;
  const auto specs = lower_buffer(pointwise({load("a", "8*c0 + c1"), load("b", "c1"), op("add", {0, 1})}), constants);
  ASSERT_TRUE(specs) << specs.error().text();
  ASSERT_EQ(specs->size(), 1U);
  const OpSpec& spec = specs->front();
  EXPECT_EQ(spec.op, "add");
  EXPECT_FALSE(spec.is_reduction);
  EXPECT_EQ(spec.iteration_space, (std::vector<IterDim>{{"c0", 4, 1}, {"c1", 8, 1}}));
  ASSERT_EQ(spec.args.size(), 3U);
  EXPECT_EQ(spec.args[1].index, "c1");
  EXPECT_TRUE(spec.args[0].is_input && spec.args[1].is_input);
  EXPECT_FALSE(spec.args[2].is_input);
  EXPECT_EQ(spec.args[2].name, "buf0");
  EXPECT_TRUE(constants.all().empty());
}

TEST(LowerBuffer, SeveralOperationsPassValuesThroughTemporaries) {
  ConstantTable constants;
  const auto specs = lower_buffer(
      pointwise({load("a", "8*c0 + c1"), constant(3.0), op("mul", {0, 1}), load("b", "8*c0 + c1"), op("sub", {3, 2})}),
      constants);
  ASSERT_TRUE(specs) << specs.error().text();
  ASSERT_EQ(specs->size(), 2U);
  EXPECT_EQ((*specs)[0].op, "mul");
  const TensorArg& temporary = (*specs)[0].args[2];
  EXPECT_EQ(temporary.name, "buf0_t0");
  EXPECT_EQ(temporary.index, "8*c0 + c1");
  EXPECT_EQ((*specs)[1].args[0].name, "b");
  EXPECT_EQ((*specs)[1].args[1].name, temporary.name);
  ASSERT_EQ(constants.all().size(), 1U);
  EXPECT_EQ(constants.all()[0].dtype, DType::kFloat16);  // the type of what it is combined with
  EXPECT_EQ((*specs)[0].args[1].index, "0");
}

TEST(LowerBuffer, AValueUsedTwiceIsComputedOnce) {
  ConstantTable constants;
  const auto specs = lower_buffer(
      pointwise({load("a", "8*c0 + c1"), op("exp", {0}), op("add", {1, 1}), op("mul", {2, 1})}), constants);
  ASSERT_TRUE(specs);
  ASSERT_EQ(specs->size(), 3U);
  EXPECT_EQ((*specs)[1].args[0], (*specs)[1].args[1]);
}

TEST(LowerBuffer, WhatIsNotStoredIsNotComputed) {
  ConstantTable constants;
  BufferBody body = pointwise({load("a", "8*c0 + c1"), op("log", {0}), op("abs", {0})});
  const auto specs = lower_buffer(body, constants);
  ASSERT_TRUE(specs);
  ASSERT_EQ(specs->size(), 1U);
  EXPECT_EQ(specs->front().op, "abs");
}

TEST(PartsOf, NamesEachOperationWithItsType) {
  const auto parts =
      parts_of(pointwise({load("a", "8*c0 + c1"), constant(0), op("gt", {0, 1}), constant(1), op("where", {2, 0, 3})}));
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ((*parts)[0].node, 2U);
  EXPECT_EQ((*parts)[0].dtype, DType::kBool);
  EXPECT_EQ((*parts)[1].node, 4U);
  EXPECT_EQ((*parts)[1].dtype, DType::kFloat16);
  EXPECT_TRUE(parts_of(pointwise({load("a", "8*c0 + c1")}))->empty());  // a copy
  EXPECT_FALSE(parts_of(pointwise({load("a", "8*c0 + c1"), op("erfinv", {0})})));
}

TEST(LowerBuffer, SquareIsAProductAndABareLoadACopy) {
  ConstantTable constants;
  const auto square = lower_buffer(pointwise({load("a", "8*c0 + c1"), op("square", {0})}), constants);
  ASSERT_TRUE(square);
  EXPECT_EQ(square->front().op, "mul");
  EXPECT_EQ(square->front().args[0], square->front().args[1]);
  const auto copy = lower_buffer(pointwise({load("a", "8*c0 + c1")}), constants);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->front().op, "identity");
}

TEST(LowerBuffer, ChoicesAndComparisonsKeepTheirTypes) {
  ConstantTable constants;
  const auto specs = lower_buffer(
      pointwise({load("a", "8*c0 + c1"), constant(0), op("gt", {0, 1}), constant(1), op("where", {2, 0, 3})}),
      constants);
  ASSERT_TRUE(specs) << specs.error().text();
  ASSERT_EQ(specs->size(), 2U);
  EXPECT_EQ((*specs)[0].op, "greaterthan");
  EXPECT_EQ((*specs)[0].args[2].dtype, DType::kBool);
  EXPECT_EQ((*specs)[1].op, "where3");
  EXPECT_EQ((*specs)[1].args[3].dtype, DType::kFloat16);
}

TEST(LowerBuffer, ConversionsAreNamedByTheirDirection) {
  ConstantTable constants;
  BodyNode widen = op("to_dtype", {0});
  widen.dtype = DType::kFloat32;
  const auto specs =
      lower_buffer(pointwise({load("a", "8*c0 + c1"), widen, op("tanh", {1})}, DType::kFloat32), constants);
  ASSERT_TRUE(specs) << specs.error().text();
  EXPECT_EQ((*specs)[0].op, "dl16tofp32");
  EXPECT_EQ((*specs)[1].args[0].dtype, DType::kFloat32);
}

TEST(LowerBuffer, MatmulTakesTwoLoadsOverOutputAndReductionLoops) {
  BufferBody body;
  body.output = matrix("buf0", 4, 8);
  body.output_index = "8*c0 + c1";
  body.ranges = {4, 8};
  body.reduction_ranges = {16};
  body.reduction_type = "batchmatmul";
  body.inputs = {matrix("x", 4, 16), matrix("w", 8, 16)};
  body.nodes = {load("x", "16*c0 + c2"), load("w", "16*c1 + c2")};
  body.roots = {0, 1};
  ConstantTable constants;
  const auto specs = lower_buffer(body, constants);
  ASSERT_TRUE(specs) << specs.error().text();
  EXPECT_EQ(specs->front().op, "batchmatmul");
  EXPECT_TRUE(specs->front().is_reduction);
  EXPECT_EQ(specs->front().iteration_space.back(), (IterDim{"c2", 16, 1}));
  body.inputs[1].dtype = DType::kFloat32;
  EXPECT_EQ(lower_buffer(body, constants).error().code, ErrorCode::kUnsupported);
}

TEST(LowerBuffer, AnOperationKeptWholeReadsItsDistinctLoads) {
  ConstantTable constants;
  BufferBody body = pointwise({load("a", "8*c0 + c1"), load("a", "8*c0 + c1"), op("sigmoid", {1}), op("mul", {0, 2})});
  body.device_op = "silu";
  const auto specs = lower_buffer(body, constants);
  ASSERT_TRUE(specs);
  ASSERT_EQ(specs->size(), 1U);
  EXPECT_EQ(specs->front().op, "silu");
  EXPECT_EQ(specs->front().args.size(), 2U);
}

TEST(LowerBuffer, RefusesWhatHasNoDeviceOperation) {
  ConstantTable constants;
  const auto refused = [&](BufferBody body) {
    const auto specs = lower_buffer(body, constants);
    return !specs && specs.error().code == ErrorCode::kUnsupported;
  };
  EXPECT_TRUE(refused(pointwise({load("a", "0"), op("erf", {0})})));
  EXPECT_TRUE(refused(pointwise({load("a", "0"), op("add", {0})})));                         // arity
  EXPECT_TRUE(refused(pointwise({load("nowhere", "0"), op("abs", {0})})));                   // unknown buffer
  EXPECT_TRUE(refused(pointwise({load("a", "0"), load("mask", "0"), op("add", {0, 1})})));   // mixed types
  EXPECT_TRUE(refused(pointwise({load("a", "0"), load("b", "0"), op("where", {0, 0, 1})}))); // condition
  EXPECT_TRUE(refused(pointwise({load("a", "0"), op("abs", {0})}, DType::kFloat32)));        // silent conversion
  EXPECT_TRUE(refused(pointwise({op("abs", {0})})));                                         // reads itself
  BufferBody sum = pointwise({load("a", "0")});
  sum.reduction_type = "sum";
  EXPECT_TRUE(refused(sum));
  BufferBody rootless = pointwise({load("a", "0")});
  rootless.roots = {7};
  EXPECT_TRUE(refused(rootless));
}

TEST(ConstantTable, EqualValuesOfOneTypeShareATensor) {
  ConstantTable constants;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(constants.name_of(1.5, DType::kFloat16), constants.name_of(1.5, DType::kFloat16));
  EXPECT_NE(constants.name_of(1.5, DType::kFloat32), constants.name_of(1.5, DType::kFloat16));
  EXPECT_NE(constants.name_of(0.0, DType::kFloat16), constants.name_of(-0.0, DType::kFloat16));
  EXPECT_EQ(constants.name_of(nan, DType::kFloat16), constants.name_of(-nan, DType::kFloat16));
  EXPECT_EQ(constants.all().size(), 5U);
}

TEST(DeviceOps, EveryOneHasAHostOperation) {
  for (const char* name : {"abs",     "exp",        "log",  "neg", "sqrt", "rsqrt", "tanh",    "sigmoid",
                           "floor",   "reciprocal", "relu", "add", "sub",  "mul",   "maximum", "minimum",
                           "truediv", "eq",         "ne",   "gt",  "ge",   "lt",    "le",      "where"}) {
    EXPECT_TRUE(can_execute(device_op_of(name))) << name;
  }
  EXPECT_EQ(device_op_of("erf"), "");
  EXPECT_FALSE(can_execute("erf"));
}

using Nodes = std::vector<std::vector<std::size_t>>;

TEST(LowerBuffer, SaysWhatEachSpecIsMadeFrom) {
  ConstantTable constants;
  Nodes made_from;
  ASSERT_TRUE(lower_buffer(
      pointwise({load("a", "8*c0 + c1"), constant(3.0), op("mul", {0, 1}), load("b", "8*c0 + c1"), op("sub", {3, 2})}),
      constants, &made_from));
  EXPECT_EQ(made_from, (Nodes{{0, 1, 2}, {3, 4}}));
}

TEST(LowerBuffer, ALoadThatTwoSpecsReadIsInBothAndAFoldedConversionInItsReader) {
  ConstantTable constants;
  Nodes made_from;
  BodyNode same = op("to_dtype", {0});
  same.dtype = DType::kFloat16;
  ASSERT_TRUE(lower_buffer(pointwise({load("a", "8*c0 + c1"), same, op("neg", {1}), op("add", {2, 0})}), constants,
                           &made_from));
  EXPECT_EQ(made_from, (Nodes{{0, 1, 2}, {0, 3}}));
}

TEST(LowerBuffer, ACopyAndAnOperationKeptWholeAreMadeFromAllThatTheyRead) {
  ConstantTable constants;
  Nodes made_from;
  ASSERT_TRUE(lower_buffer(pointwise({load("b", "8*c0 + c1")}), constants, &made_from));
  EXPECT_EQ(made_from, (Nodes{{0}}));
  BufferBody body = pointwise({load("a", "8*c0 + c1"), op("sigmoid", {0}), op("mul", {0, 1})});
  body.device_op = "silu";
  ASSERT_TRUE(lower_buffer(body, constants, &made_from));
  EXPECT_EQ(made_from, (Nodes{{0, 1, 2}}));
}

}  // namespace
}  // namespace kerntrail::spyre
