// Torch's node mappings, from claims and from the witness, on the golden captures and on calls planted by hand.
#include "analyse/node_mapping.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "capture_builder.h"
#include "cases.h"

namespace kerntrail::analyse {
namespace {

using testing::CaptureBuilder;
using Names = std::vector<std::string>;
using Table = std::map<std::string, Names>;

NodeMapping only(const Capture& capture, std::optional<MappingSource> source = {}) {
  const auto all = node_mappings(capture, {}, source);
  EXPECT_TRUE(all) << (all ? "" : all.error().text());
  if (!all || all->size() != 1) {
    ADD_FAILURE() << "not one document";
    return {};
  }
  return all->front();
}

Table nodes(const NodeMapping& mapping) {
  Table out;
  for (const MappedKernel& kernel : mapping.kernels) out[kernel.key] = kernel.nodes;
  return out;
}

TEST(NodeMapping, TheWitnessIsTakenWhereThereIsOne) {
  const Capture capture = testing::witnessed().capture;
  const NodeMapping seen = only(capture);
  EXPECT_EQ(seen.source, MappingSource::kWitness);
  EXPECT_EQ(nodes(seen), (Table{{"cpp_fused_add_0:1", {"sin"}},
                                {"extern_kernels.mm:2", {"mm"}},
                                {"cpp_fused_relu_1:3", {"relu", "mul", "clone", "arange", "check"}},
                                {"triton_user_0:4", {}}}));
  EXPECT_EQ(seen.unwitnessed, 1U);
  EXPECT_TRUE(seen.has_own_handles);
  const NodeMapping claimed = only(capture, MappingSource::kClaims);
  EXPECT_EQ(nodes(claimed).at("extern_kernels.mm:2"), (Names{"mm", "sin"}));
  EXPECT_EQ(nodes(claimed).at("cpp_fused_relu_1:3"), (Names{"relu", "mm"})) << "torch's own mapping, not the origins";
  EXPECT_EQ(claimed.unwitnessed, 0U);
  // The sin names the line of the addition that was folded into it; it was made from its own.
  EXPECT_EQ(seen.kernels[0].stacks.size(), 1U);
  EXPECT_NE(seen.kernels[0].stacks[0].find("line 3"), std::string::npos) << seen.kernels[0].stacks[0];
}

TEST(NodeMapping, AskingForAWitnessThatIsNotThereIsRefused) {
  const auto all = node_mappings(testing::lossy_passes().capture, {}, MappingSource::kWitness);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, ErrorCode::kUnsupported);
  EXPECT_FALSE(node_mappings(testing::lossy_passes().capture, {{}, "c9", false}));
}

TEST(NodeMapping, InverseKeepsTheOrderOfFirstMention) {
  EXPECT_EQ(inverse({{"a", {"y", "x"}}, {"b", {"x", "x"}}, {"c", {}}}), (NameTable{{"y", {"a"}}, {"x", {"a", "b"}}}));
}

// Readers of JSON keep one of two equal keys and lose the other.
TEST(NodeMapping, NodesOfOneNameShareARow) {
  CaptureBuilder b;
  const CompileId compile = b.compile("inductor");
  const GraphId pre = b.graph(compile, "fx");
  const GraphId post = b.graph(compile, "fx", "inference");
  const UnitId sin = b.unit(pre, UnitKind::kFxNode);
  const UnitId cos = b.unit(pre, UnitKind::kFxNode);
  const auto called = [&](UnitId unit, std::string_view name) {
    return b.seen(unit).text("name", name).text("op", "call_function");
  };
  b.snapshot("fx_pre_grad", pre, {called(sin, "sin"), called(cos, "cos")});
  const UnitId a = b.unit(post, UnitKind::kFxNode);
  const UnitId c = b.unit(post, UnitKind::kFxNode);
  const auto chain = [&](std::string_view name, UnitId unit) {
    return fmt::format(R"([{{"graph":"","name":"{}","unit":"{}"}}])", name, b.recorder().unit_name(unit));
  };
  b.snapshot("fx_post_grad", post,
             {called(a, "x").from_node(chain("sin", sin), {sin}), called(c, "x").from_node(chain("cos", cos), {cos})});
  EXPECT_EQ(only(b.finish()).post_to_pre, (NameTable{{"x", {"sin", "cos"}}}));
}

// A text that is called twice, a call of something ready-made, and a kernel that torch was never told of.
class Calls : public ::testing::Test {
 protected:
  Capture build(bool numbered) {
    CaptureBuilder b;
    for (const char* name : {"handles", "calls"}) b.recorder().attr_kind({name, ValueType::kJson, "", "", false});
    b.recorder().attr_kind({"class", ValueType::kText, "", "", false});
    const CompileId compile = b.compile("inductor");
    const GraphId pre = b.graph(compile, "fx");
    const UnitId linear = b.unit(pre, UnitKind::kFxNode);
    b.snapshot("fx_pre_grad", pre, {node(b, linear, "linear", 3)});
    const GraphId post = b.graph(compile, "fx", "inference");
    std::vector<UnitId> nodes;
    std::vector<CaptureBuilder::Seen> seen;
    for (int i = 0; i < 3; ++i) nodes.push_back(b.unit(post, UnitKind::kFxNode));
    seen.push_back(node(b, nodes[0], "mm", 3)
                       .from_node(R"([{"name":"gone","graph":"foreign","from":[{"name":"linear","graph":"c0.g0"},)"
                                  R"({"name":"erased","graph":"c0.g0"}]}])",
                                  {linear}));
    seen.push_back(node(b, nodes[1], "sin", 4).from_node(R"([{"name":"","graph":"foreign"}])", {}));
    seen.push_back(node(b, nodes[2], "cos", 5).from_node(R"([{"name":"linear","unit":"c0.n0"}])", {linear}));
    b.snapshot("fx_post_grad", post, seen);
    const GraphId ir = b.graph(compile, "ir", "inference");
    std::vector<UnitId> operations;
    for (int i = 0; i < 3; ++i) operations.push_back(b.unit(ir, UnitKind::kOperation));
    b.snapshot(
        "ir_pre_pass", ir,
        {b.seen(operations[0]).text("name", "op0").refs("origins", {nodes[0], nodes[1]}).ref("origin_node", nodes[0]),
         b.seen(operations[1]).text("name", "op1").refs("origins", {nodes[1]}).ref("origin_node", nodes[1]),
         b.seen(operations[2]).text("name", "op2").refs("origins", {nodes[2]})});
    const GraphId graph = b.graph(compile, "kernel", "inference");
    std::vector<UnitId> kernels;
    for (int i = 0; i < 3; ++i) kernels.push_back(b.unit(graph, UnitKind::kKernel));
    b.recorder().link("define_kernel", {operations[1], operations[2]}, {kernels[0]});
    b.recorder().link("define_kernel", {operations[0]}, {kernels[1]});
    b.recorder().claim(kernels[0], "compiler", "origins", {nodes[1], nodes[2]});
    b.recorder().claim(kernels[1], "compiler", "origins", {nodes[0], nodes[1]});
    auto loop = b.seen(kernels[0]).text("name", "loop").text("class", "loop");
    auto mm = b.seen(kernels[1]).text("name", "mm:x").text("class", "extern");
    if (numbered) {
      loop.json("handles", R"(["loop:1","loop:12"])");
      loop.json(
          "calls",
          R"([{"order":0,"handle":"loop:12","operations":["op2"]},{"order":2,"handle":"loop:1","operations":["op1"]}])");
      mm.json("handles", R"(["mm:x:3"])").json("calls", R"([{"order":1,"handle":"mm:x:3","operations":["op0"]}])");
    } else {
      loop.empty("handles", "");
      loop.json("calls", R"([{"order":0,"operations":["op1"]},{"order":2,"operations":["op2"]}])");
      mm.empty("handles", "").json("calls", R"([{"order":1,"operations":["op0"]}])");
    }
    b.snapshot("kernel", graph, {loop, mm, b.seen(kernels[2]).text("name", "untold").text("class", "fallback")});
    return b.finish();
  }

 private:
  static CaptureBuilder::Seen node(CaptureBuilder& b, UnitId unit, std::string_view name, int line) {
    return b.seen(unit).text("name", name).text("op", "call_function").stack("model.py", line, "f(x)");
  }
};

TEST_F(Calls, EachHandleIsAKeyWithItsOwnNodes) {
  const NodeMapping mapping = only(build(true));
  EXPECT_EQ(mapping.source, MappingSource::kClaims);
  EXPECT_EQ(nodes(mapping), (Table{{"loop:1", {"sin"}}, {"mm:x:3", {"mm"}}, {"loop:12", {"cos"}}}));
  EXPECT_EQ(mapping.kernels[2].key, "loop:12") << "by number, not by text";
  EXPECT_EQ(mapping.unregistered, 1U);
  EXPECT_FALSE(mapping.has_own_handles);
}

TEST_F(Calls, WithoutHandlesCallsAreNumberedInProgramOrder) {
  const NodeMapping mapping = only(build(false));
  EXPECT_EQ(nodes(mapping), (Table{{"loop:1", {"sin"}}, {"mm:x:2", {"mm"}}, {"loop:3", {"cos"}}}));
  EXPECT_TRUE(mapping.has_own_handles);
}

TEST_F(Calls, ChainsAreFollowedToThePreGradGraphAlone) {
  const NodeMapping mapping = only(build(true));
  EXPECT_EQ(mapping.post_to_pre, (NameTable{{"mm", {"erased", "linear"}}, {"cos", {"linear"}}}));
}

}  // namespace
}  // namespace kerntrail::analyse
