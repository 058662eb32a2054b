#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>

#include "capture_builder.h"
#include "invariants.h"
#include "kerntrail/lineage.h"
#include "seed000/seed000.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;

std::string spelled(const Lineage& lineage, std::uint32_t i) {
  const LineageNode& node = lineage.nodes[i];
  return fmt::format("{}:{}", lineage.layers[node.layer].key, node.name);
}

std::set<std::string> edges_of(const Lineage& lineage) {
  std::set<std::string> result;
  for (const LineageEdge& edge : lineage.edges) {
    result.insert(fmt::format("{} -> {}", spelled(lineage, edge.from), spelled(lineage, edge.to)));
  }
  return result;
}

Lineage only(const Capture& capture, const AnalysisOptions& options = {}) {
  auto all = lineages(capture, options);
  EXPECT_TRUE(all) << (all ? "" : all.error().text());
  if (!all || all->size() != 1) {
    ADD_FAILURE() << "expected one lineage";
    return {};
  }
  return std::move(all->front());
}

// All edges of the reference report, and no others.
std::set<std::string> reference_edges() {
  std::set<std::string> edges{
      "source:x = self.fc1(x) -> fx_pre_grad:x",      "source:x = torch.relu(x) -> fx_pre_grad:x_1",
      "source:x = self.fc2(x) -> fx_pre_grad:x_2",    "fx_pre_grad:x -> fx_post_grad:permute",
      "fx_pre_grad:x -> fx_post_grad:mm_default_1",   "fx_pre_grad:x -> fx_post_grad:add_tensor_1",
      "fx_pre_grad:x_1 -> fx_post_grad:relu",         "fx_pre_grad:x_2 -> fx_post_grad:permute_1",
      "fx_pre_grad:x_2 -> fx_post_grad:mm_default",   "fx_pre_grad:x_2 -> fx_post_grad:add_tensor",
      "fx_post_grad:mm_default_1 -> ir_pre_pass:op0", "fx_post_grad:permute -> ir_pre_pass:op0",
      "fx_post_grad:add_tensor_1 -> ir_pre_pass:op1", "fx_post_grad:relu -> ir_pre_pass:op2",
      "fx_post_grad:mm_default -> ir_pre_pass:op3",   "fx_post_grad:permute_1 -> ir_pre_pass:op3",
      "fx_post_grad:add_tensor -> ir_pre_pass:op4"};
  for (int i = 0; i < 5; ++i) {
    edges.insert(fmt::format("ir_pre_pass:op{} -> ir_post_pass:op{}", i, i));
    edges.insert(fmt::format("ir_post_pass:op{} -> op_spec:op{}", i, i));
    edges.insert(fmt::format("op_spec:op{} -> superdsc:sdsc_fused_addmm_linear_relu_0", i));
  }
  return edges;
}

TEST(Lineage, GivesEveryEdgeOfTheReferenceReportAndNoOther) {
  const auto built = testing::build_seed000();
  const Lineage lineage = only(built.capture);
  EXPECT_EQ(edges_of(lineage), reference_edges());
  EXPECT_EQ(lineage.edges.size(), 32U);
  testing::expect_invariants(built.capture);
}

TEST(Lineage, HiddenStageDoesNotChangeTheDefaultView) {
  const auto built = testing::build_seed000(true);
  EXPECT_EQ(edges_of(only(built.capture)), reference_edges());
  testing::expect_invariants(built.capture);
}

TEST(Lineage, EachEdgeSaysItsKindAndEvidence) {
  const auto built = testing::build_seed000();
  const Lineage lineage = only(built.capture);
  const auto edge = [&](std::string_view from, std::string_view to) {
    for (const LineageEdge& e : lineage.edges) {
      if (spelled(lineage, e.from) == from && spelled(lineage, e.to) == to) {
        return fmt::format("{} {} {}{}", edge_kind_name(e.kind), evidence_name(e.evidence), strength_name(e.strength),
                           e.ambiguous ? " ambiguous" : "");
      }
    }
    return std::string("none");
  };
  EXPECT_EQ(edge("source:x = self.fc1(x)", "fx_pre_grad:x"), "traced stack-trace recorded");
  EXPECT_EQ(edge("fx_pre_grad:x", "fx_post_grad:permute"), "decomposed from-node recorded");
  EXPECT_EQ(edge("fx_pre_grad:x", "fx_post_grad:mm_default_1"), "decomposed sibling derived");
  EXPECT_EQ(edge("fx_pre_grad:x", "fx_post_grad:add_tensor_1"), "decomposed producer derived");
  EXPECT_EQ(edge("fx_pre_grad:x_1", "fx_post_grad:relu"), "copied from-node recorded");
  EXPECT_EQ(edge("fx_post_grad:relu", "ir_pre_pass:op2"), "lowered origins claimed");
  EXPECT_EQ(edge("ir_pre_pass:op2", "ir_post_pass:op2"), "same identity exact");
  EXPECT_EQ(edge("ir_post_pass:op2", "op_spec:op2"), "lowered link exact");
  EXPECT_EQ(edge("op_spec:op2", "superdsc:sdsc_fused_addmm_linear_relu_0"), "fused bundle-order exact");
}

TEST(Lineage, ChosenStagesAreConnectedOverTheHiddenOnes) {
  const auto built = testing::build_seed000();
  const Lineage lineage = only(built.capture, {{"fx_pre_grad", "op_spec"}, {}});
  const std::set<std::string> expected{"source:x = self.fc1(x) -> fx_pre_grad:x",
                                       "source:x = torch.relu(x) -> fx_pre_grad:x_1",
                                       "source:x = self.fc2(x) -> fx_pre_grad:x_2",
                                       "fx_pre_grad:x -> op_spec:op0",
                                       "fx_pre_grad:x -> op_spec:op1",
                                       "fx_pre_grad:x_1 -> op_spec:op2",
                                       "fx_pre_grad:x_2 -> op_spec:op3",
                                       "fx_pre_grad:x_2 -> op_spec:op4"};
  EXPECT_EQ(edges_of(lineage), expected);
  const Lineage late = only(built.capture, {{"op_spec"}, {}});
  EXPECT_TRUE(edges_of(late).count("source:x = self.fc1(x) -> op_spec:op1"));
  EXPECT_EQ(late.edges.size(), 5U);
}

TEST(Lineage, FilesAreShownWhereKernelsHaveALayerOfTheirOwn) {
  const auto built = testing::build_seed000();
  const auto edges = edges_of(only(built.capture, {{"all"}, {}}));
  EXPECT_TRUE(edges.count("op_spec:op3 -> superdsc:sdsc_3.json"));
  EXPECT_TRUE(edges.count("superdsc:sdsc_3.json -> kernel:sdsc_fused_addmm_linear_relu_0"));
}

TEST(Lineage, BothDirectionsFromALineANodeAndAKernel) {
  const auto built = testing::build_seed000();
  const Lineage lineage = only(built.capture);
  const auto names = [&](const LineageQuery& query) {
    auto found = find_nodes(lineage, built.capture, query);
    EXPECT_TRUE(found);
    const Lineage near = around(lineage, *found);
    std::set<std::string> result;
    for (std::uint32_t i = 0; i < near.nodes.size(); ++i) result.insert(spelled(near, i));
    return result;
  };
  const auto line = names({"reference_mlp.py:26", {}, {}});
  EXPECT_EQ(line, (std::set<std::string>{"source:x = torch.relu(x)", "fx_pre_grad:x_1", "fx_post_grad:relu",
                                         "ir_pre_pass:op2", "ir_post_pass:op2", "op_spec:op2",
                                         "superdsc:sdsc_fused_addmm_linear_relu_0"}));
  EXPECT_EQ(names({{}, "op1", {}}).count("source:x = self.fc1(x)"), 1U);
  EXPECT_EQ(names({{}, "op1", {}}).count("fx_post_grad:relu"), 0U);
  EXPECT_EQ(names({{}, {}, "sdsc_fused_addmm_linear_relu_0"}).size(), lineage.nodes.size());
  EXPECT_TRUE(names({{}, "no_such_node", {}}).empty());
  EXPECT_TRUE(names({"mlp.py:26", {}, {}}).empty()) << "part of a file name is another file";
  EXPECT_FALSE(find_nodes(lineage, built.capture, {"reference_mlp.py", {}, {}}));
}

TEST(Lineage, TheFileOfALineMayBeLongerOrShorterThanWhatWasRecorded) {
  CaptureBuilder b;
  const GraphId graph = b.graph(b.compile("inductor"), "fx");
  std::vector<CaptureBuilder::Seen> units;
  for (const char* file : {"model.py", "lib/model.py"})
    units.push_back(b.seen(b.unit(graph, UnitKind::kFxNode)).text("name", file).stack(file, 3, "x"));
  b.snapshot("fx_pre_grad", graph, {units[0], units[1]});
  const Capture capture = b.finish();
  const Lineage lineage = only(capture);
  const auto files = [&](const std::string& line) {
    std::string result;
    const auto found = find_nodes(lineage, capture, {line, {}, {}});
    for (std::uint32_t node : found ? *found : std::vector<std::uint32_t>{}) result += lineage.nodes[node].file + " ";
    return result;
  };
  EXPECT_EQ(files("model.py:3"), "lib/model.py model.py ");
  EXPECT_EQ(files("lib/model.py:3"), "lib/model.py ") << "named whole: not also the shorter";
  EXPECT_EQ(files("./lib/model.py:3"), "lib/model.py ");
  EXPECT_EQ(files("/home/me/model.py:3"), "model.py ");
  EXPECT_EQ(files("/home/me/my_model.py:3"), "");
  EXPECT_EQ(files("del.py:3"), "");
}

// a, b matched -> m (seen at no stage) -> n: that n comes from a and b is as doubtful as that m does.
TEST(Lineage, AMatchOnTheWayMakesAnEdgeAmbiguous) {
  CaptureBuilder b;
  const CompileId c = b.compile("inductor");
  const GraphId pre = b.graph(c, "fx");
  const GraphId post = b.graph(c, "fx", "inference");
  const UnitId a1 = b.unit(pre, UnitKind::kFxNode), a2 = b.unit(pre, UnitKind::kFxNode);
  const UnitId between = b.unit(post, UnitKind::kFxNode), made = b.unit(post, UnitKind::kFxNode);
  b.snapshot("fx_pre_grad", pre,
             {b.seen(a1).text("name", "a").stack("m.py", 1, "a"), b.seen(a2).text("name", "b").stack("m.py", 2, "b")});
  b.recorder().birth({between, PassId::kNone, "match", "p", LocId::kNone, LocId::kNone, {a1, a2}});
  b.recorder().birth({made, PassId::kNone, "replacement", "", LocId::kNone, LocId::kNone, {between}});
  b.snapshot("fx_post_grad", post, {b.seen(made).text("name", "n")});
  const Capture capture = b.finish();
  std::size_t edges = 0;
  for (const LineageEdge& edge : only(capture).edges) {
    if (edge.evidence != Evidence::kBirth) continue;
    ++edges;
    EXPECT_TRUE(edge.ambiguous);
  }
  EXPECT_EQ(edges, 2U);
}

// Three pre-grad nodes on one line; post-grad nodes have stacks but no from_node.
TEST(Lineage, KeepsAllAnchorsThatShareALine) {
  CaptureBuilder b;
  const CompileId c = b.compile("inductor");
  const GraphId pre = b.graph(c, "fx");
  const GraphId post = b.graph(c, "fx", "inference");
  std::vector<CaptureBuilder::Seen> units;
  for (const char* name : {"f", "g", "h"}) {
    units.push_back(b.seen(b.unit(pre, UnitKind::kFxNode)).text("name", name).stack("m.py", 9, "y = f(a) + g(b)"));
  }
  units.push_back(b.seen(b.unit(pre, UnitKind::kFxNode)).text("name", "other").stack("n.py", 9, "y = f(a) + g(b)"));
  b.snapshot("fx_pre_grad", pre, units);
  const UnitId p = b.unit(post, UnitKind::kFxNode);
  b.snapshot("fx_post_grad", post, {b.seen(p).text("name", "sin").stack("m.py", 9, "y = f(a) + g(b)")});
  const Capture capture = b.finish();
  const Lineage lineage = only(capture);
  const auto edges = edges_of(lineage);
  for (const char* name : {"f", "g", "h"})
    EXPECT_TRUE(edges.count(fmt::format("fx_pre_grad:{} -> fx_post_grad:sin", name)));
  EXPECT_FALSE(edges.count("fx_pre_grad:other -> fx_post_grad:sin")) << "equal text in another file is another line";
  for (const LineageEdge& edge : lineage.edges) {
    EXPECT_EQ(edge.ambiguous, edge.evidence == Evidence::kLocation);
  }
  std::size_t sources = 0;
  for (const LineageNode& node : lineage.nodes) sources += node.layer == 0 ? 1U : 0U;
  EXPECT_EQ(sources, 2U);
  testing::expect_invariants(capture);
}

// A residual add of two layers, itself without a source, gets both.
TEST(Lineage, SourcelessNodeAttachesToEveryProducer) {
  CaptureBuilder b;
  const CompileId c = b.compile("inductor");
  const GraphId pre = b.graph(c, "fx");
  const GraphId post = b.graph(c, "fx", "inference");
  const UnitId a = b.unit(pre, UnitKind::kFxNode);
  const UnitId d = b.unit(pre, UnitKind::kFxNode);
  b.snapshot("fx_pre_grad", pre,
             {b.seen(a).text("name", "a").stack("m.py", 1, "a = f(x)"),
              b.seen(d).text("name", "d").stack("m.py", 2, "d = g(x)")});
  const UnitId fa = b.unit(post, UnitKind::kFxNode);
  const UnitId fd = b.unit(post, UnitKind::kFxNode);
  const UnitId view = b.unit(post, UnitKind::kFxNode);
  const UnitId sum = b.unit(post, UnitKind::kFxNode);
  b.snapshot(
      "fx_post_grad", post,
      {b.seen(fa).text("name", "fa").from_node("[]", {a}), b.seen(fd).text("name", "fd").from_node("[]", {d}),
       b.seen(view).text("name", "view").refs("inputs", {fd, sum}, "list"),  // with a cycle, which must do no harm
       b.seen(sum).text("name", "sum").refs("inputs", {fa, view}, "list")});
  const Capture capture = b.finish();
  const auto edges = edges_of(only(capture));
  EXPECT_TRUE(edges.count("fx_pre_grad:a -> fx_post_grad:sum"));
  EXPECT_TRUE(edges.count("fx_pre_grad:d -> fx_post_grad:sum"));
  EXPECT_TRUE(edges.count("fx_pre_grad:d -> fx_post_grad:view"));
  testing::expect_invariants(capture);
}

TEST(Lineage, EqualKernelNamesOfTwoCompilesStayApart) {
  CaptureBuilder b;
  for (int i = 0; i < 2; ++i) {
    const CompileId c = b.compile("inductor", fmt::format("{}/0", i));
    const GraphId ir = b.graph(c, "ir");
    const UnitId op = b.unit(ir, UnitKind::kOperation);
    b.snapshot("ir_pre_pass", ir, {b.seen(op).text("name", "op0")});
    const GraphId kernels = b.graph(c, "kernel");
    const UnitId kernel = b.unit(kernels, UnitKind::kKernel);
    b.recorder().link("define_kernel", {op}, {kernel});
    b.snapshot("kernel", kernels, {b.seen(kernel).text("name", "cpp_fused_0")});
  }
  const Capture capture = b.finish();
  const auto all = lineages(capture);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  for (const Lineage& lineage : *all) EXPECT_EQ(lineage.edges.size(), 1U);
  EXPECT_NE((*all)[0].nodes.back().unit, (*all)[1].nodes.back().unit);
  const auto second = lineages(capture, {{}, "c1"});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->size(), 1U);
  testing::expect_invariants(capture);
}

TEST(Lineage, FileWhoseHandleNamesAnotherOpIsMarkedAmbiguous) {
  CaptureBuilder b;
  const CompileId c = b.compile("kerntrail_spyre");
  const GraphId ir = b.graph(c, "ir");
  const GraphId specs = b.graph(c, "op_spec");
  const GraphId kernels = b.graph(c, "kernel");
  const GraphId bundle = b.graph(c, "bundle");
  const UnitId op = b.unit(ir, UnitKind::kOperation);
  const UnitId spec = b.unit(specs, UnitKind::kOpSpec);
  const UnitId kernel = b.unit(kernels, UnitKind::kKernel);
  const UnitId file = b.unit(bundle, UnitKind::kBundleFile);
  b.snapshot("ir_post_pass", ir, {b.seen(op).text("name", "op0")});
  b.snapshot("op_spec", specs, {b.seen(spec).text("name", "op0").json("debug_handle", R"({"id":"7"})")});
  b.snapshot("kernel", kernels, {b.seen(kernel).text("name", "k")});
  b.snapshot("superdsc", bundle, {b.seen(file).text("name", "sdsc_0.json").json("debug_handle", R"({"id":"8"})")});
  b.recorder().link("create_op_spec", {op}, {spec});
  b.recorder().link("define_kernel", {op}, {kernel});
  b.recorder().link("bundle_file", {kernel}, {file});
  const Capture capture = b.finish();
  const Lineage lineage = only(capture);
  ASSERT_EQ(lineage.edges.size(), 2U);
  EXPECT_TRUE(lineage.edges.back().ambiguous);
  testing::expect_invariants(capture);
}

}  // namespace
}  // namespace kerntrail
