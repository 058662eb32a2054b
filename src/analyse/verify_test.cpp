// Each verdict planted in one small compile; the answer must name exactly that.
#include "kerntrail/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "analyse/support.h"
#include "analyse/witness.h"
#include "capture_builder.h"
#include "cases.h"
#include "kerntrail/lineage.h"
#include "kerntrail/report.h"

namespace kerntrail {
namespace {

class Verify : public ::testing::Test {
 protected:
  Verify() : capture_(testing::witnessed().capture) {
    auto all = verify(capture_);
    EXPECT_TRUE(all) << (all ? "" : all.error().text());
    if (all) one_ = all->front();
  }

  const UnitVerdict& unit(std::string_view name, std::string_view evidence = "origins") const {
    for (const UnitVerdict& unit : one_.units) {
      if (one_.labels.at(unit.unit).name == name && unit.evidence == evidence) return unit;
    }
    ADD_FAILURE() << name << " has no verdict by " << evidence;
    static const UnitVerdict kNone;
    return kNone;
  }

  // "relu" -> "computes"; missed ones with a "!".
  std::map<std::string, std::string> nodes(const UnitVerdict& unit) const {
    std::map<std::string, std::string> out;
    for (const NodeVerdict& node : unit.nodes)
      out[one_.labels.at(node.node).name] = (node.claimed ? "" : "!") + std::string(support_name(node.support));
    return out;
  }

  static std::map<std::int64_t, std::string> lines(const UnitVerdict& unit) {
    std::map<std::int64_t, std::string> out;
    for (const LineVerdict& line : unit.lines)
      out[line.line] = (line.claimed ? "" : "!") + std::string(support_name(line.support));
    return out;
  }

  Capture capture_;
  Verification one_;
};

using Words = std::map<std::string, std::string>;
using Lines = std::map<std::int64_t, std::string>;

TEST_F(Verify, EveryClaimedNodeHasItsVerdict) {
  EXPECT_EQ(nodes(unit("cpp_fused_relu_1")), (Words{{"relu", "computes"},
                                                    {"mul", "!constant"},
                                                    {"clone", "moves"},
                                                    {"arange", "index"},
                                                    {"check", "control"},
                                                    {"view", "index"},
                                                    {"mm", "elsewhere"},
                                                    {"add", "nowhere"}}));
  EXPECT_EQ(nodes(unit("extern_kernels.mm")), (Words{{"mm", "computes"}, {"sin", "elsewhere"}}));
  EXPECT_EQ(nodes(unit("cpp_fused_add_0")), (Words{{"sin", "computes"}}));
}

TEST_F(Verify, EachClaimIsJudgedForItself) {
  EXPECT_EQ(nodes(unit("cpp_fused_relu_1", "mapping")), (Words{{"relu", "computes"},
                                                               {"mul", "!constant"},
                                                               {"clone", "!moves"},
                                                               {"arange", "!index"},
                                                               {"check", "!control"},
                                                               {"mm", "elsewhere"}}));
}

TEST_F(Verify, OperationsAreJudgedByTheBodiesOfTheirKernels) {
  EXPECT_EQ(nodes(unit("op2")),
            (Words{{"relu", "computes"}, {"view", "index"}, {"mm", "elsewhere"}, {"add", "nowhere"}}));
  EXPECT_EQ(nodes(unit("op1")), (Words{{"mm", "computes"}, {"sin", "elsewhere"}}));
}

TEST_F(Verify, ALineIsTheOneTheNodeWasMadeFrom) {
  EXPECT_EQ(lines(unit("cpp_fused_add_0")), (Lines{{4, "nowhere"}, {3, "!computes"}}));
  EXPECT_EQ(lines(unit("cpp_fused_relu_1")), (Lines{{4, "nowhere"},
                                                    {5, "elsewhere"},
                                                    {6, "index"},
                                                    {7, "computes"},
                                                    {8, "!constant"},
                                                    {9, "moves"},
                                                    {10, "index"},
                                                    {11, "control"}}));
  ASSERT_EQ(one_.rewrites.size(), 1U);
  const Rewrite& rewrite = one_.rewrites[0];
  EXPECT_EQ(rewrite.was, std::vector<std::string>{"model.py:3"});
  EXPECT_EQ(rewrite.now, "model.py:4");
  EXPECT_EQ(rewrite.pass, "fold");
  EXPECT_EQ(rewrite.place, "torch/_inductor/fx_passes/joint_graph.py:457 (fold)");
  EXPECT_FALSE(rewrite.at_birth);
}

TEST_F(Verify, ContradictionsSayWhoDoesIt) {
  for (const NodeVerdict& node : unit("extern_kernels.mm").nodes) {
    if (node.support != Support::kElsewhere) continue;
    ASSERT_EQ(node.elsewhere.size(), 1U);
    EXPECT_EQ(one_.labels.at(node.elsewhere[0]).name, "cpp_fused_add_0");
  }
}

TEST_F(Verify, RowsHaveTheNumbers) {
  const auto row = std::find_if(one_.rows.begin(), one_.rows.end(), [](const ScoreRow& r) {
    return r.stage == "kernel" && r.unit_class == "loop" && r.evidence == "origins";
  });
  ASSERT_NE(row, one_.rows.end());
  EXPECT_EQ(row->units, 2U);
  EXPECT_EQ(row->nodes.total(), 8U);
  EXPECT_EQ(row->nodes.right(), 6U);
  EXPECT_EQ(row->nodes.worked(), 4U);
  EXPECT_EQ(row->nodes.missed, 1U);
  EXPECT_DOUBLE_EQ(row->nodes.precision(), 6.0 / 8.0);
  EXPECT_DOUBLE_EQ(row->nodes.recall(), 6.0 / 7.0);
  const auto total = total_rows({one_, one_});
  const auto sum = std::find_if(total.begin(), total.end(), [](const ScoreRow& r) {
    return r.stage == "kernel" && r.unit_class == "loop" && r.evidence == "origins";
  });
  ASSERT_NE(sum, total.end());
  EXPECT_EQ(sum->nodes.total(), 16U);
  EXPECT_EQ(sum->units, 4U);
}

TEST_F(Verify, WhatNothingWitnessesStaysAClaim) {
  ASSERT_EQ(one_.unverified.size(), 1U);
  EXPECT_EQ(one_.labels.at(one_.unverified[0].unit).name, "triton_user_0");
}

TEST_F(Verify, TheLineageFollowsTheWitness) {
  const auto all = lineages(capture_, {{"all"}, {}, false});
  ASSERT_TRUE(all);
  const Lineage& lineage = all->front();
  const auto from = [&](std::string_view kernel) {
    LineageQuery query;
    query.kernel = kernel;
    const auto start = find_nodes(lineage, capture_, query);
    std::vector<std::int64_t> lines;
    for (std::uint32_t i : reach(lineage, *start, false)) {
      if (lineage.nodes[i].layer == 0) lines.push_back(lineage.nodes[i].line);
    }
    return lines;
  };
  EXPECT_EQ(from("cpp_fused_add_0"), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(from("extern_kernels.mm"), (std::vector<std::int64_t>{5}));
  EXPECT_TRUE(lineage.witnessed);
  std::map<std::string, std::size_t> contradicted;
  for (const ContradictedClaim& claim : lineage.contradicted)
    ++contradicted[lineage.nodes[claim.node].name + "<" + claim.name];
  EXPECT_EQ(contradicted.count("extern_kernels.mm<sin"), 1U);
  EXPECT_EQ(contradicted.count("op2<mm"), 1U);
  ASSERT_EQ(lineage.rewrites.size(), 1U);
  for (const LineageEdge& edge : lineage.edges) {
    if (lineage.nodes[edge.to].name != "op2" || lineage.nodes[edge.from].name != "relu") continue;
    EXPECT_EQ(edge.evidence, Evidence::kWitness);
    EXPECT_EQ(edge.strength, Strength::kExact);
  }
}

TEST_F(Verify, TheReportHasASection) {
  const auto report = make_report(capture_);
  ASSERT_TRUE(report);
  ASSERT_TRUE(report->sections.front().verification);
  EXPECT_EQ(report->sections.front().verification->rewrites.size(), 1U);
}

// A cond in a branch of another: kernels of both depths, and one that has nothing to do with either.
class Enclosing : public ::testing::Test {
 protected:
  using Seen = testing::CaptureBuilder::Seen;

  Enclosing() {
    b_.recorder().attr_kind({"witness", ValueType::kJson, "", "", false});
    b_.recorder().attr_kind({"class", ValueType::kText, "", "", false});
    const CompileId compile = b_.compile("inductor");
    root_ = b_.graph(compile, "fx", "inference");
    const GraphId branch = b_.recorder().graph(compile, "fx", "inference", "true_0");
    const GraphId inner = b_.recorder().graph(compile, "fx", "inference", "true_0.false_0");
    const GraphId lookalike = b_.recorder().graph(compile, "fx", "inference", "true_01");
    node(root_, "true_0", "get_attr", "true_0", 1);
    node(root_, "false_0", "get_attr", "false_0", 1);
    node(root_, "cond", "call_function", "cond", 1, {at_.at("true_0"), at_.at("false_0")});
    node(branch, "sin", "call_function", "aten.sin.default", 2);
    node(branch, "inner_branch", "get_attr", "false_0", 3);
    node(branch, "inner_cond", "call_function", "cond", 3, {at_.at("inner_branch")});
    node(inner, "cos", "call_function", "aten.cos.default", 4);
    node(lookalike, "tan", "call_function", "aten.tan.default", 5);
    for (GraphId graph : {root_, branch, inner, lookalike}) b_.snapshot("fx_post_grad", graph, seen_[graph]);
    const GraphId kernels = b_.graph(compile, "kernel", "inference");
    std::vector<Seen> made;
    for (const char* name : {"sin", "cos", "tan"}) {
      const UnitId kernel = b_.unit(kernels, UnitKind::kKernel);
      std::vector<UnitId> claimed;
      for (const auto& [known, unit] : at_) claimed.push_back(unit);
      b_.recorder().claim(kernel, "compiler", "origins", claimed);
      made.push_back(
          b_.seen(kernel)
              .text("name", std::string("k_") + name)
              .text("class", "loop")
              .json_refs("witness", R"([{"lines":[{"line":1,"does":"compute","op":"f","unit":0}]}])", {at_.at(name)}));
    }
    b_.snapshot("kernel", kernels, made);
  }

  void node(GraphId graph, const std::string& name, std::string_view op, std::string_view target, int line,
            std::vector<UnitId> inputs = {}) {
    const UnitId unit = b_.unit(graph, UnitKind::kFxNode);
    at_[name] = unit;
    seen_[graph].push_back(b_.seen(unit)
                               .text("name", name)
                               .text("op", op)
                               .text("target", target)
                               .refs("inputs", std::move(inputs), "list"));
    seen_[graph].back().stack("model.py", line, name + "(x)");
  }

  testing::CaptureBuilder b_;
  GraphId root_{};
  std::map<std::string, UnitId> at_;
  std::map<GraphId, std::vector<Seen>> seen_;
};

TEST_F(Enclosing, ANodeThatCallsASubGraphIsNoContradictionInItsKernels) {
  const auto all = verify(b_.finish());
  ASSERT_TRUE(all) << all.error().text();
  std::map<std::string, std::map<std::string, std::string>> said;
  std::map<std::string, std::map<std::int64_t, std::string>> lines;
  for (const UnitVerdict& unit : all->front().units) {
    const std::string& kernel = all->front().labels.at(unit.unit).name;
    for (const NodeVerdict& one : unit.nodes) {
      EXPECT_TRUE(one.claimed);
      said[kernel][all->front().labels.at(one.node).name] = support_name(one.support);
      EXPECT_EQ(one.elsewhere.empty(), one.support != Support::kElsewhere);
    }
    for (const LineVerdict& one : unit.lines) lines[kernel][one.line] = support_name(one.support);
  }
  const std::map<std::string, std::string> outer{{"true_0", "encloses"}, {"cond", "encloses"}, {"false_0", "nowhere"}};
  for (const auto& [name, word] : outer) {
    EXPECT_EQ(said["k_sin"][name], word) << name;
    EXPECT_EQ(said["k_cos"][name], word) << name << ": at any depth";
  }
  EXPECT_EQ(said["k_sin"]["inner_cond"], "elsewhere") << "others work for the inner branch";
  EXPECT_EQ(said["k_cos"]["inner_cond"], "encloses");
  EXPECT_EQ(said["k_cos"]["inner_branch"], "encloses");
  EXPECT_EQ(said["k_cos"]["sin"], "elsewhere") << "beside it, not around it";
  EXPECT_EQ(said["k_tan"]["cond"], "elsewhere") << "true_01 is not in true_0";
  EXPECT_EQ(said["k_tan"]["false_0"], "nowhere");
  EXPECT_EQ(lines["k_sin"],
            (std::map<std::int64_t, std::string>{
                {1, "encloses"}, {2, "computes"}, {3, "elsewhere"}, {4, "elsewhere"}, {5, "elsewhere"}}));
}

TEST(VerifyRefuses, ACaptureWithoutAWitness) {
  testing::CaptureBuilder b;
  const CompileId compile = b.compile("inductor");
  const GraphId graph = b.graph(compile, "kernel");
  const UnitId kernel = b.unit(graph, UnitKind::kKernel);
  b.snapshot("kernel", graph, {b.seen(kernel).text("name", "k")});
  const auto all = verify(b.finish());
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(all.error().message.find("--level truth"), std::string::npos);
}

// Whatever stands in the slot: what can't be read is no witness, and places beyond `refs` name nobody.
TEST(VerifyRefuses, NoWitnessThatIsBroken) {
  for (std::string_view json :
       {R"({})", R"("x")", R"([{"lines":[{"line":1,"does":"compute","unit":7}]}])", R"([3,null,{"lines":3}])"}) {
    testing::CaptureBuilder b;
    b.recorder().attr_kind({"witness", ValueType::kJson, "", "", false});
    const CompileId compile = b.compile("inductor");
    const GraphId graph = b.graph(compile, "kernel");
    const UnitId kernel = b.unit(graph, UnitKind::kKernel);
    b.recorder().claim(kernel, "compiler", "origins", {});
    b.snapshot("kernel", graph, {b.seen(kernel).text("name", "k").json_refs("witness", json, {})});
    const Capture capture = b.finish();
    const analyse::WitnessIndex index(capture, compile);
    if (json.front() == '[') {
      ASSERT_NE(index.of(kernel), nullptr) << json;
      EXPECT_TRUE(index.of(kernel)->empty()) << json;
    } else {
      EXPECT_EQ(index.of(kernel), nullptr) << json;
      EXPECT_EQ(index.unread(), std::vector<UnitId>{kernel});
    }
  }
}

TEST(Views, AreKnownByTheirOperator) {
  for (std::string_view view :
       {"aten.view.default", "aten.permute.default", "<built-in function getitem>", "aten.t.default"})
    EXPECT_TRUE(analyse::is_view(view)) << view;
  for (std::string_view other : {"aten.mm.default", "aten.add.Tensor", "relu", "", "aten.clone.default"})
    EXPECT_FALSE(analyse::is_view(other)) << other;
}

}  // namespace
}  // namespace kerntrail
