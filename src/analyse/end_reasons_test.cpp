// Each way in which a unit goes no further, planted in a small compile; what is said of it must come from there.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capture_builder.h"
#include "kerntrail/explain.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;

// One compile of a line, its node, an operation, its group and a kernel; a test adds what ends.
class Ends : public ::testing::Test {
 protected:
  explicit Ends(const std::string& level = "passes") : b_(Settings{{"level", level}}) {
    b_.add_stage({"schedule", "Schedule", "group", "IR", 80});
    compile_ = b_.compile("inductor");
    fx_ = b_.graph(compile_, "fx");
    ir_ = b_.graph(compile_, "ir");
    groups_ = b_.graph(compile_, "schedule");
    kernels_ = b_.graph(compile_, "kernel");
    add_node("relu", "aten.relu.default");
  }

  UnitId add_node(std::string_view name, std::string_view target, std::string_view op = "call_function",
                  std::vector<UnitId> inputs = {}) {
    const UnitId unit = b_.unit(fx_, UnitKind::kFxNode);
    auto seen = b_.seen(unit).text("name", name).text("op", op).text("target", target);
    seen.refs("inputs", std::move(inputs)).stack("model.py", 3, "return x.relu()");
    nodes_.push_back(seen);
    return unit;
  }

  UnitId add_operation(std::string_view name, std::string_view ir_class) {
    const UnitId unit = b_.unit(ir_, UnitKind::kOperation);
    operations_.push_back(
        b_.seen(unit).text("name", name).text("ir_class", ir_class).refs("origins", {nodes_.front().value().unit}));
    return unit;
  }

  UnitId add_group(std::string_view name, UnitId operation, std::string_view outcome) {
    const UnitId unit = b_.unit(groups_, UnitKind::kGroup);
    const std::string outcomes = R"([{"operation":")" + std::string(name) + R"(","buffers":[],"outcome":")" +
                                 std::string(outcome) + R"(","removed":false}])";
    group_seen_.push_back(b_.seen(unit).text("name", name).refs("operations", {operation}).json("outcomes", outcomes));
    b_.recorder().link("fuse", {operation}, {unit});
    return unit;
  }

  void look() {
    b_.snapshot("fx_post_grad", fx_, nodes_);
    b_.snapshot("ir_pre_pass", ir_, operations_);
    if (!group_seen_.empty()) b_.snapshot("schedule", groups_, group_seen_);
    const UnitId kernel = b_.unit(kernels_, UnitKind::kKernel);
    b_.snapshot("kernel", kernels_, {b_.seen(kernel).text("name", "cpp_0")});
  }

  // The only end of what is asked.
  EndedUnit end_of(const std::string& what) {
    const Capture capture = b_.finish();
    const auto all = explain(capture, what);
    EXPECT_TRUE(all) << (all ? "" : all.error().text());
    if (!all || all->size() != 1 || all->front().ends.size() != 1) {
      ADD_FAILURE() << what << " has not exactly one end";
      return {};
    }
    return all->front().ends.front();
  }

  std::string why(const std::string& what) { return end_of(what).why; }

  CaptureBuilder b_;
  CompileId compile_ = CompileId::kNone;
  GraphId fx_, ir_, groups_, kernels_;
  std::vector<CaptureBuilder::Seen> nodes_, operations_, group_seen_;
};

class EndsOfTruth : public Ends {
 protected:
  EndsOfTruth() : Ends("truth") {}
};

bool says(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }

TEST_F(Ends, AnOperationWithoutAGroupNamesTheNote) {
  add_operation("op0", "ComputedBuffer");
  const UnitId other = add_operation("op11", "ComputedBuffer");
  add_group("op11", other, "alone");
  b_.recorder().note({"operation-not-scheduled", Severity::kInfo,
                      "in no group after fusion, so that no kernel computes them: op0, op1", compile_, ir_});
  look();
  const Capture capture = b_.finish();
  const auto dropped = explain(capture, "c0.o0");
  ASSERT_TRUE(dropped);
  EXPECT_TRUE(says(dropped->front().ends.at(0).why, "operation-not-scheduled"));
  const auto grouped = explain(capture, "c0.s0");
  ASSERT_TRUE(grouped);
  EXPECT_FALSE(says(grouped->front().ends.at(0).why, "operation-not-scheduled")) << "op11 is not op1";
}

TEST_F(Ends, WhatTheWrapperDoesIsToldByTheClass) {
  const UnitId cond = add_operation("op0", "Conditional");
  add_group("op0", cond, "alone");
  look();
  EXPECT_TRUE(says(why("c0.s0"), "control flow"));
}

TEST_F(Ends, AResultOfACallIsUnpacked) {
  add_operation("op0", "MultiOutput");
  look();
  EXPECT_TRUE(says(why("c0.o0"), "one of several results"));
}

TEST_F(Ends, AGroupOfNopsMakesNoCode) {
  const UnitId cat = add_operation("op0", "ConcatKernel");
  add_group("op0", cat, "nop");
  look();
  EXPECT_TRUE(says(why("c0.s0"), "nop"));
}

TEST_F(Ends, AGroupWithoutAKernelNamesWhatIsKnownOfItsCompile) {
  const UnitId op = add_operation("op0", "ExternKernelOut");
  add_group("op0", op, "alone");
  b_.recorder().note({"kernel-call-not-found", Severity::kInfo, "extern_kernels.mm is in no line", compile_, kernels_});
  look();
  const std::string text = why("c0.s0");
  EXPECT_TRUE(says(text, "extern_kernels.mm is in no line")) << text;
  EXPECT_TRUE(says(text, "kernel-call-not-found")) << text;
}

TEST_F(Ends, WithoutAReasonItSaysThatNoneWasRecorded) {
  const UnitId op = add_operation("op0", "ComputedBuffer");
  add_group("op0", op, "alone");
  look();
  EXPECT_TRUE(says(why("c0.s0"), "Why was not recorded."));
}

TEST_F(Ends, AViewASizeAndACheckAreNoWork) {
  const UnitId relu = nodes_.front().value().unit;
  const UnitId view = add_node("view", "aten.view.default", "call_function", {relu});
  const UnitId size = add_node("size", "aten.sym_size.int", "call_function", {relu});
  const UnitId check = add_node("check", "aten._assert_scalar.default", "call_function", {size});
  add_operation("op0", "ComputedBuffer");
  look();
  const Capture capture = b_.finish();
  const auto of = [&](UnitId unit) {
    const auto all = explain(capture, unit_name(capture, unit));
    return all && all->front().ends.size() == 1 ? all->front().ends.front().why : std::string();
  };
  EXPECT_TRUE(says(of(view), "indexes through it"));
  EXPECT_TRUE(says(of(size), "It is a number"));
  EXPECT_TRUE(says(of(check), "It is a check"));
}

TEST_F(Ends, ANodeThatNothingReadsIsToldFromOneThatIsRead) {
  const UnitId dead = add_node("dead", "aten.full.default");
  const UnitId read = add_node("read", "aten.full.default");
  add_node("user", "aten.add.Tensor", "call_function", {read});
  add_operation("op0", "ComputedBuffer");
  look();
  const Capture capture = b_.finish();
  const auto of = [&](UnitId unit) { return explain(capture, unit_name(capture, unit))->front().ends.at(0).why; };
  EXPECT_TRUE(says(of(dead), "Nothing reads it"));
  EXPECT_TRUE(says(of(read), "record with --level truth")) << of(read);
}

TEST_F(EndsOfTruth, TheLevelIsNotBlamedWhereItCouldNotBeHigher) {
  const UnitId read = add_node("read", "aten.full.default");
  add_node("user", "aten.add.Tensor", "call_function", {read});
  add_operation("op0", "ComputedBuffer");
  look();
  const std::string text = why("c0.n1");
  EXPECT_FALSE(says(text, "--level")) << text;
  EXPECT_TRUE(says(text, "Why was not recorded.")) << text;
}

TEST_F(Ends, ACompileThatRaisedSaysSo) {
  look();
  const CompileId failed = b_.compile("inductor", "1/0");
  const GraphId graph = b_.graph(failed, "fx");
  const UnitId node = b_.unit(graph, UnitKind::kFxNode);
  b_.snapshot("fx_pre_grad", graph, {b_.seen(node).text("name", "sin").text("op", "call_function")});
  const GraphId forward = b_.graph(failed, "fx", "forward");
  const UnitId gone = b_.unit(forward, UnitKind::kFxNode);
  b_.snapshot("fx_aten", forward, {b_.seen(gone).text("name", "tan").text("op", "call_function")});
  const GraphId backward = b_.graph(failed, "fx", "backward");
  const UnitId other = b_.unit(backward, UnitKind::kFxNode);
  b_.snapshot("fx_post_grad", backward, {b_.seen(other).text("name", "cos").text("op", "call_function")});
  b_.recorder().note({"compile-raised", Severity::kWarning, "ValueError: no", failed, GraphId::kNone});
  const std::string text = why("c1.n1");
  EXPECT_TRUE(says(text, "ValueError: no")) << text;
  EXPECT_TRUE(says(text, "compile-raised")) << text;
}

}  // namespace
}  // namespace kerntrail
