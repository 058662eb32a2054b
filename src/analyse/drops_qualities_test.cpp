// Each quality planted in a small capture; the answer must name exactly that.
#include "drops_fixture.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;
using testing::DropsTest;
using Seen = CaptureBuilder::Seen;

TEST_F(DropsTest, ASwapIsTwoOverwrittenValues) {
  enter();
  const PassId pass = begin("swaps");
  look(pass, graph_, {aten(a_, "sin", 2), aten(c_, "cos", 1, {a_})});
  Pass done;
  done.changed = {a_, c_};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 2), aten(c_, "cos", 1, {a_})});
  const Drops found = judged();
  EXPECT_TRUE(found.losses.empty());
  ASSERT_EQ(found.marks.size(), 2U);
  for (const Mark& mark : found.marks) {
    EXPECT_EQ(mark.quality, Quality::kOverwritten);
    EXPECT_TRUE(mark.swapped);
    EXPECT_EQ(found.sites[mark.site].pass, pass);
    EXPECT_EQ(mark.others, std::vector<UnitId>{mark.unit == a_ ? c_ : a_});
  }
  EXPECT_EQ(post(found, "stack_trace", a_).quality, Quality::kOverwritten);
  EXPECT_EQ(cell(found, "fx_aten", "stack_trace", a_).quality, Quality::kKept);
  EXPECT_EQ(found.marks[0].was, "model.py:1");
  EXPECT_EQ(found.marks[0].now, "model.py:2");
}

TEST_F(DropsTest, TheRemovedOpsValueOnTheSurvivorIsOverwritten) {
  enter();
  const PassId pass = begin("pointless_arithmetic");
  look(pass, graph_, {aten(a_, "sin", 2)});
  Pass done;
  done.changed = {a_};
  done.erased = {c_};
  done.replaced = {{c_, a_}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 2)});
  const Drops found = judged();
  ASSERT_EQ(found.marks.size(), 1U);
  EXPECT_EQ(found.marks[0].others, std::vector<UnitId>{c_});
  EXPECT_FALSE(found.marks[0].swapped);
  EXPECT_EQ(fate_in(found, pass, c_), Fate::kElided);
}

TEST_F(DropsTest, AValueThatNoSourceHadIsOverwrittenAtBirth) {
  enter();
  const PassId pass = begin("invents");
  const UnitId made = fresh();
  born({made, pass, "replacement", "", LocId::kNone, frame("p.py", 3, "f"), {a_}});
  look(pass, graph_, {aten(made, "y", 7)});
  Pass done;
  done.created = {made};
  done.erased = {a_};
  done.replaced = {{a_, made}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(made, "y", 7), aten(c_, "cos", 2, {made})});
  const Drops found = judged();
  ASSERT_EQ(found.marks.size(), 1U);
  EXPECT_EQ(found.marks[0].quality, Quality::kOverwritten);
  EXPECT_EQ(found.sites[found.marks[0].site].place, "p.py:3 (f)");
  EXPECT_EQ(found.marks[0].now, "model.py:7");
  EXPECT_EQ(found.marks[0].was, "model.py:1");
}

TEST_F(DropsTest, OneOfTwoLinesCarriedIsCollapsed) {
  enter();
  const PassId pass = begin("fuses");
  const UnitId made = fresh();
  born({made, pass, "match", "addmm", frame("p.py", 4, "pattern"), LocId::kNone, {a_, c_}});
  look(pass, graph_, {aten(made, "addmm", 2)});
  Pass done;
  done.created = {made};
  done.erased = {a_, c_};
  done.replaced = {{c_, made}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(made, "addmm", 2)});
  const Drops found = judged();
  EXPECT_EQ(post(found, "stack_trace", made).quality, Quality::kCollapsed);
  EXPECT_EQ(post(found, "original_aten", made).quality, Quality::kKept) << "both sources say the same";
  ASSERT_EQ(found.marks.size(), 1U);
  EXPECT_EQ(found.marks[0].sources, 2U);
  EXPECT_EQ(found.marks[0].others, std::vector<UnitId>{a_});
}

TEST_F(DropsTest, DeclaredRelabelIsNoOverwrite) {
  enter();
  const PassId pass = begin("relabel_linear_permutes", "kerntrail_spyre");
  const auto relabelled = [&] {
    return node(a_, "permute", 1).text("original_aten", "aten.linear.default", "OpOverload");
  };
  look(pass, graph_, {relabelled()});
  Pass done;
  done.changed = {a_};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {relabelled(), aten(c_, "cos", 2, {a_})});
  const Drops found = judged();
  EXPECT_TRUE(found.marks.empty());
  EXPECT_EQ(post(found, "original_aten", a_).quality, Quality::kKept);
  ASSERT_EQ(found.declared.size(), 1U);
  EXPECT_EQ(found.declared[0].unit, a_);
}

TEST_F(DropsTest, AChainThatReachesNothingIsVacuousAndAStackWithoutTheUserIsTheCompilers) {
  enter();
  Seen vacuous = aten(a_, "sin", 1);
  vacuous.from_node(R"([{"name":"","graph":"foreign"}])", {});
  Seen theirs = node(c_, "cos", 0, {a_}).text("original_aten", "aten.sin.default", "OpOverload");
  theirs.stack_at("stack_trace", frame("torch/_inductor/x.py", 5, "f"), "File torch/_inductor/x.py");
  theirs.from_node(R"([{"name":"cos","unit":"c0.n1"}])", {cos_});
  b_.snapshot("fx_post_grad", graph_, {vacuous, theirs});
  const Drops found = judged();
  EXPECT_EQ(post(found, "from_node", a_).quality, Quality::kVacuous);
  EXPECT_EQ(post(found, "stack_trace", a_).quality, Quality::kKept);
  const FieldUnit& stack = post(found, "stack_trace", c_);
  EXPECT_NE(stack.quality, Quality::kKept);
}

TEST_F(DropsTest, AStackThatWasTheCompilersFromTheStart) {
  enter();
  const PassId pass = begin("traces_a_pattern");
  const UnitId made = fresh();
  born({made, pass, "created", "", LocId::kNone, frame("p.py", 4, "f"), {}});
  const auto theirs = [&] {
    Seen seen = node(made, "x", 0);
    seen.stack_at("stack_trace", frame("torch/_inductor/x.py", 5, "f"), "File torch/_inductor/x.py");
    return seen;
  };
  look(pass, graph_, {theirs()});
  b_.recorder().end_pass(pass, {});
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 1), aten(c_, "cos", 2), theirs()});
  const Drops found = judged();
  EXPECT_EQ(post(found, "stack_trace", made).quality, Quality::kCompilerMade);
  ASSERT_EQ(found.marks.size(), 1U);
  ASSERT_NE(found.marks[0].site, kNoIndex);
  EXPECT_EQ(found.sites[found.marks[0].site].pass, pass) << "the pass that made the node";
}

TEST_F(DropsTest, TwoFieldsThatNameDifferentLinesAreInConflict) {
  enter();
  Seen odd = aten(a_, "sin", 1);
  odd.from_node(R"([{"name":"cos"}])", {cos_});
  Seen even = aten(c_, "cos", 2, {a_});
  even.from_node(R"([{"name":"cos"}])", {cos_});
  b_.snapshot("fx_post_grad", graph_, {odd, even});
  const Drops found = judged();
  EXPECT_EQ(post(found, "stack_trace", a_).quality, Quality::kConflict);
  EXPECT_EQ(post(found, "from_node", a_).quality, Quality::kConflict);
  EXPECT_EQ(post(found, "stack_trace", c_).quality, Quality::kKept);
  EXPECT_EQ(post(found, "from_node", c_).quality, Quality::kKept);
  for (const Mark& mark : found.marks) {
    const bool of_chain = found.fields[index(mark.field)] == "from_node";
    EXPECT_EQ(mark.others, std::vector<UnitId>{cos_}) << "what the chain leads to, whichever field it is of";
    EXPECT_EQ(mark.now, of_chain ? "model.py:2" : "model.py:1");
    EXPECT_EQ(mark.was, of_chain ? "model.py:1" : "model.py:2");
    EXPECT_EQ(mark.given_up, std::vector<std::string>{"model.py:2"});
    EXPECT_EQ(found.fields[index(mark.against)], of_chain ? "stack_trace" : "from_node");
  }
}

// Each of the two fields in turn is spoilt; that the other differs from it is no second finding.
TEST_F(DropsTest, AConflictThatFollowsFromAnOverwrittenValueIsNotedAtIt) {
  const auto chained = [&](int line, UnitId root) {
    Seen seen = aten(a_, "sin", line);
    seen.from_node(R"([{"name":"root"}])", {root});
    return seen;
  };
  b_.snapshot("fx_aten", graph_, {chained(1, sin_), aten(c_, "cos", 2, {a_})});
  const PassId pass = begin("overwrites");
  look(pass, graph_, {chained(2, sin_)});
  Pass done;
  done.changed = {a_};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {chained(2, sin_), aten(c_, "cos", 2, {a_})});
  const Drops found = judged();
  ASSERT_EQ(found.marks.size(), 1U);
  EXPECT_EQ(found.fields[index(found.marks[0].field)], "stack_trace");
  EXPECT_EQ(found.marks[0].quality, Quality::kOverwritten);
  ASSERT_TRUE(has(found.marks[0].against));
  EXPECT_EQ(found.fields[index(found.marks[0].against)], "from_node");
  EXPECT_EQ(post(found, "from_node", a_).quality, Quality::kKept);
}

// Three matched nodes, two of them on one line.
TEST_F(DropsTest, SourcesAndWhatTheySayAreCountedApart) {
  const UnitId third = fresh();
  b_.snapshot("fx_aten", graph_, {aten(a_, "sin", 1), aten(c_, "cos", 2, {a_}), aten(third, "tan", 1, {c_})});
  const PassId pass = begin("fuses");
  const UnitId made = fresh();
  born({made, pass, "match", "p", frame("p.py", 4, "pattern"), LocId::kNone, {a_, c_, third}});
  look(pass, graph_, {aten(made, "fused", 2)});
  Pass done;
  done.created = {made};
  done.erased = {a_, c_, third};
  done.replaced = {{third, made}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(made, "fused", 2)});
  const Drops found = judged();
  ASSERT_EQ(found.marks.size(), 1U);
  EXPECT_EQ(found.marks[0].quality, Quality::kCollapsed);
  EXPECT_EQ(found.marks[0].sources, 3U);
  EXPECT_EQ(found.marks[0].different, 2U);
  EXPECT_EQ(found.marks[0].others, (std::vector<UnitId>{a_, third}));
  EXPECT_EQ(found.marks[0].given_up, std::vector<std::string>{"model.py:1"});
}

// A joint graph whose node a pass gives another's line, and the forward graph that is copied from it.
TEST_F(DropsTest, ACopyOfAWrongValueHasItsMarkFromTheNodeItCopies) {
  const StageId joint = b_.recorder().stage({"fx_joint", "FX Graph (joint)", "compute node", "FX", 30});
  const std::vector<model::ObservedUnit> nodes{aten(a_, "sin", 1).value(), aten(c_, "cos", 2, {a_}).value()};
  b_.recorder().snapshot(joint, graph_, nodes);
  const PassId pass = begin("joint_custom_pre_pass", "joint_graph_passes");
  look(pass, graph_, {aten(a_, "sin", 2)});
  Pass done;
  done.changed = {a_};
  b_.recorder().end_pass(pass, done);
  const GraphId forward = b_.graph(compile_, "fx", "forward");
  const UnitId copy = b_.unit(forward, UnitKind::kFxNode), right = b_.unit(forward, UnitKind::kFxNode);
  const UnitId again = b_.unit(forward, UnitKind::kFxNode);
  born({copy, PassId::kNone, "copy", "", LocId::kNone, frame("partitioners.py", 9, "f"), {a_}});
  born({right, PassId::kNone, "copy", "", LocId::kNone, frame("partitioners.py", 9, "f"), {c_}});
  b_.snapshot("fx_aten", forward, {aten(copy, "sin", 2), aten(right, "cos", 2, {copy})});
  const PassId later = begin_on(forward, "renames", "post_grad_passes");
  born({again, later, "replacement", "", LocId::kNone, frame("p.py", 1, "f"), {copy}});
  look(later, forward, {aten(again, "sine", 2)});
  done = {};
  done.created = {again};
  done.erased = {copy};
  done.replaced = {{copy, again}};
  b_.recorder().end_pass(later, done);
  b_.snapshot("fx_post_grad", forward, {aten(again, "sine", 2), aten(right, "cos", 2, {again})});
  const Drops found = judged();
  ASSERT_EQ(found.marks.size(), 1U);
  EXPECT_EQ(found.marks[0].unit, a_);
  EXPECT_EQ(found.sites[found.marks[0].site].pass, pass);
  EXPECT_EQ(found.marks[0].heirs, (std::vector<UnitId>{copy, again}));
  EXPECT_EQ(cell(found, "fx_joint", "stack_trace", a_).quality, Quality::kKept);
  for (const auto& [stage, unit] :
       std::vector<std::pair<std::string, UnitId>>{{"fx_aten", copy}, {"fx_post_grad", again}}) {
    EXPECT_EQ(cell(found, stage, "stack_trace", unit).quality, Quality::kOverwritten) << stage;
    EXPECT_EQ(cell(found, stage, "stack_trace", unit).mark, 0U) << stage;
    EXPECT_EQ(cell(found, stage, "stack_trace", right).quality, Quality::kKept) << stage;
  }
}

TEST_F(DropsTest, AValueThatOneSourceHasRightlyIsNotWrong) {
  enter();
  const PassId pass = begin("overwrites");
  look(pass, graph_, {aten(a_, "sin", 2)});
  Pass done;
  done.changed = {a_};
  b_.recorder().end_pass(pass, done);
  const PassId fuses = begin("fuses");
  const UnitId made = fresh();
  born({made, fuses, "match", "p", LocId::kNone, LocId::kNone, {a_, c_}});
  look(fuses, graph_, {aten(made, "y", 2)});
  done = {};
  done.created = {made};
  done.erased = {a_, c_};
  done.replaced = {{c_, made}};
  b_.recorder().end_pass(fuses, done);
  b_.snapshot("fx_post_grad", graph_, {aten(made, "y", 2)});
  EXPECT_EQ(post(judged(), "stack_trace", made).quality, Quality::kKept);
}

}  // namespace
}  // namespace kerntrail
