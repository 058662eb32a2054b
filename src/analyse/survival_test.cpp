#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "analyse/edges.h"
#include "analyse/pipeline.h"
#include "capture_builder.h"
#include "invariants.h"
#include "kerntrail/matrix.h"
#include "seed000/seed000.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;

std::string spelled(const MatrixCell& cell) {
  switch (cell.glyph) {
    case Glyph::kAll: return "all";
    case Glyph::kSome: return fmt::format("{}/{}", cell.present, cell.total);
    case Glyph::kDash: return "-";
    case Glyph::kNone: return "x";
  }
  return "?";
}

const MatrixCell& cell_of(const Matrix& matrix, std::string_view field, std::string_view stage) {
  static const MatrixCell kNothing{};
  for (const MatrixRow& row : matrix.rows) {
    for (std::size_t i = 0; row.name == field && i < matrix.columns.size(); ++i) {
      if (matrix.columns[i].key == stage) return row.cells[i];
    }
  }
  ADD_FAILURE() << "no cell " << field << " at " << stage;
  return kNothing;
}

struct ExpectedRow {
  std::string_view layer, field;
  std::array<std::string_view, 6> cells;
};

// The reference report's matrix, cell by cell.
constexpr std::array kReference{
    ExpectedRow{"FX", "stack_trace", {"all", "3/7", "-", "-", "-", "-"}},
    ExpectedRow{"FX", "nn_module_stack", {"2/3", "2/7", "-", "-", "x", "x"}},
    ExpectedRow{"FX", "source_fn_stack", {"all", "3/7", "-", "-", "x", "x"}},
    ExpectedRow{"FX", "original_aten", {"-", "all", "-", "-", "-", "-"}},
    ExpectedRow{"FX", "from_node", {"-", "3/7", "-", "-", "x", "x"}},
    ExpectedRow{"IR", "origins", {"-", "-", "all", "all", "-", "-"}},
    ExpectedRow{"IR", "origin_node", {"-", "-", "all", "all", "-", "-"}},
    ExpectedRow{"IR", "traceback", {"-", "-", "x", "x", "x", "x"}},
    ExpectedRow{"IR", "get_stack_traces", {"-", "-", "3/5", "3/5", "-", "-"}},
    ExpectedRow{"Spyre", "debug_handle", {"-", "-", "-", "-", "all", "all"}},
};

void expect_reference(const Capture& capture) {
  auto all = matrices(capture);
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 1U);
  const Matrix& matrix = all->front();
  ASSERT_EQ(matrix.columns.size(), 6U);
  ASSERT_EQ(matrix.rows.size(), kReference.size());
  for (std::size_t r = 0; r < kReference.size(); ++r) {
    EXPECT_EQ(matrix.rows[r].name, kReference[r].field);
    EXPECT_EQ(matrix.rows[r].layer, kReference[r].layer);
    for (std::size_t c = 0; c < 6; ++c) {
      EXPECT_EQ(spelled(matrix.rows[r].cells[c]), kReference[r].cells[c])
          << kReference[r].field << " at " << matrix.columns[c].key;
    }
  }
}

TEST(Survival, GivesEveryCellOfTheReferenceReport) {
  const auto built = testing::build_seed000();
  expect_reference(built.capture);
  testing::expect_invariants(built.capture);
}

TEST(Survival, GraphBeforePostGradDoesNotChangeTheDefaultView) {
  const auto built = testing::build_seed000(true);
  expect_reference(built.capture);
  testing::expect_invariants(built.capture);
}

TEST(Survival, WithTheHiddenStageTheLossIsChargedToPostGrad) {
  const auto built = testing::build_seed000(true);
  const auto all = matrices(built.capture, {{"all"}, {}});
  ASSERT_TRUE(all);
  const Matrix& matrix = all->front();
  EXPECT_EQ(cell_of(matrix, "stack_trace", "fx_aten").glyph, Glyph::kAll);
  const MatrixCell& post = cell_of(matrix, "stack_trace", "fx_post_grad");
  EXPECT_EQ(post.present, 3U);
  EXPECT_EQ(post.lost, 4U);
  EXPECT_EQ(post.no_slot, 4U);
}

TEST(Survival, SaysOfEachUnitWhatBecameOfTheField) {
  const auto built = testing::build_seed000();
  const auto all = matrices(built.capture);
  ASSERT_TRUE(all);
  const MatrixCell& ir = cell_of(all->front(), "stack_trace", "ir_pre_pass");
  EXPECT_EQ(ir.carried, 3U);
  EXPECT_EQ(ir.not_before, 2U);
  EXPECT_EQ(ir.units[0].carrier, "origins");
  const MatrixCell& spec = cell_of(all->front(), "nn_module_stack", "op_spec");
  EXPECT_EQ(spec.lost, 2U);
  EXPECT_EQ(spec.not_before, 3U);
  const MatrixCell& traceback = cell_of(all->front(), "traceback", "ir_pre_pass");
  EXPECT_EQ(traceback.empty, 5U);
  EXPECT_EQ(traceback.no_slot, 0U);
  EXPECT_EQ(cell_of(all->front(), "traceback", "op_spec").no_slot, 5U);
}

// Two ops on a stock pipeline: one kernel claims both nodes, one node lost its stack before.
struct Stock {
  CaptureBuilder b{{{"backend", "inductor"}}};
  UnitId group = UnitId::kNone;
  UnitId op0, op1, kernel;
  Capture capture;

  explicit Stock(bool claims, bool scheduled = false) {
    const CompileId c = b.compile("inductor");
    const GraphId fx = b.graph(c, "fx");
    const UnitId a = b.unit(fx, UnitKind::kFxNode);
    const UnitId n = b.unit(fx, UnitKind::kFxNode);
    auto first = b.seen(a);
    first.text("name", "mul").text("op", "call_function").stack("m.py", 3, "y = x * 2");
    auto second = b.seen(n);
    second.text("name", "add").text("op", "call_function").refs("inputs", {a}, "list").unreadable("stack_trace");
    b.snapshot("fx_post_grad", fx, {first, second});
    const GraphId ir = b.graph(c, "ir");
    op0 = b.unit(ir, UnitKind::kOperation);
    op1 = b.unit(ir, UnitKind::kOperation);
    b.snapshot(
        "ir_pre_pass", ir,
        {b.seen(op0).text("name", "op0").refs("origins", {a}), b.seen(op1).text("name", "op1").refs("origins", {n})});
    if (scheduled) schedule(b.graph(c, "schedule"));
    const GraphId kernels = b.graph(c, "kernel");
    kernel = b.unit(kernels, UnitKind::kKernel);
    b.recorder().link("define_kernel", {op0, op1}, {kernel});
    if (scheduled) b.recorder().link("emit_kernel", {group}, {kernel});
    if (claims) b.recorder().claim(kernel, "compiler", "origins", {a, n});
    b.snapshot("kernel", kernels, {b.seen(kernel).text("name", "cpp_fused_add_mul_0")});
    capture = b.finish();
  }

  void schedule(GraphId graph) {
    const StageId stage = b.recorder().stage({"schedule", "Schedule", "group", "IR", 80});
    b.recorder().attr_kind({"operations", ValueType::kRefs, "", "", false});
    group = b.unit(graph, UnitKind::kGroup);
    const auto seen = b.seen(group).text("name", "op0_op1").refs("operations", {op0, op1}, "list");
    b.recorder().snapshot(stage, graph, std::vector{seen.value()});
    b.recorder().link("fuse", {op0, op1}, {group});
  }
};

TEST(Survival, GroupCarriesWhatItsOperationsHold) {
  Stock stock(true, true);
  const auto shown = matrices(stock.capture);
  ASSERT_TRUE(shown);
  for (const MatrixColumn& column : shown->front().columns) EXPECT_NE(column.key, "schedule");  // unless asked for
  AnalysisOptions options;
  options.stages = {"fx_post_grad", "schedule", "kernel"};
  const auto all = matrices(stock.capture, options);
  ASSERT_TRUE(all);
  const MatrixCell& cell = cell_of(all->front(), "stack_trace", "schedule");
  EXPECT_EQ(spelled(cell), "-");
  ASSERT_EQ(cell.units.size(), 1U);
  EXPECT_EQ(cell.units[0].carrier, "operations");
  EXPECT_EQ(spelled(cell_of(all->front(), "origins", "schedule")), "-");
  EXPECT_EQ(cell_of(all->front(), "nn_module_stack", "schedule").carried, 0U);  // no operation leads to one
  testing::expect_invariants(stock.capture);
}

TEST(Survival, FusedOperationsMeetInTheirGroup) {
  Stock stock(true, true);
  const auto pipeline = analyse::pipeline_of(stock.capture, id_at<CompileId>(0));
  analyse::EdgeFinder edges(stock.capture, pipeline);
  ASSERT_EQ(pipeline.columns.size(), 4U);  // fx_post_grad, ir_pre_pass, schedule, kernel
  const auto of_group = edges.table(2, 1)[0];
  ASSERT_EQ(of_group.size(), 2U);
  EXPECT_EQ(of_group[0], (analyse::Parent{stock.op0, Evidence::kLink, false}));
  EXPECT_THAT(edges.table(3, 2)[0], ::testing::ElementsAre(analyse::Parent{stock.group, Evidence::kLink, false}));
  EXPECT_EQ(edges.table(2, 0)[0].size(), 2U);  // through the operations to their FX nodes
}

TEST(Survival, UnreadableIsCountedButNeitherPresentNorLost) {
  Stock stock(true);
  const auto all = matrices(stock.capture);
  ASSERT_TRUE(all);
  const MatrixCell& cell = cell_of(all->front(), "stack_trace", "fx_post_grad");
  EXPECT_EQ(spelled(cell), "1/2");
  EXPECT_EQ(cell.unreadable, 1U);
  EXPECT_EQ(cell.lost, 0U);
  testing::expect_invariants(stock.capture);
}

TEST(Survival, KernelCarriesWhatTheCompilerClaimsOfIt) {
  Stock stock(true);
  const auto all = matrices(stock.capture);
  ASSERT_TRUE(all);
  EXPECT_EQ(spelled(cell_of(all->front(), "stack_trace", "kernel")), "-");
  EXPECT_EQ(spelled(cell_of(all->front(), "origins", "kernel")), "-");
  EXPECT_EQ(spelled(cell_of(all->front(), "origin_node", "kernel")), "x");
}

TEST(Survival, KernelWithoutClaimLosesWhatItsOperationsCarried) {
  Stock stock(false);
  const auto all = matrices(stock.capture);
  ASSERT_TRUE(all);
  EXPECT_EQ(cell_of(all->front(), "stack_trace", "kernel").lost, 1U);
  EXPECT_EQ(spelled(cell_of(all->front(), "origins", "kernel")), "x");
}

TEST(Survival, RowsOfLayersThatThePipelineLacksAreLeftOut) {
  Stock stock(true);
  const auto all = matrices(stock.capture);
  ASSERT_TRUE(all);
  for (const MatrixRow& row : all->front().rows) EXPECT_NE(row.name, "debug_handle");
}

TEST(Survival, StageWithoutUnitsIsACrossOfNothing) {
  CaptureBuilder b;
  const CompileId c = b.compile("inductor");
  const GraphId fx = b.graph(c, "fx");
  b.snapshot("fx_pre_grad", fx, {});
  const Capture capture = b.finish();
  const auto all = matrices(capture);
  ASSERT_TRUE(all);
  EXPECT_EQ(spelled(cell_of(all->front(), "stack_trace", "fx_pre_grad")), "x");
  EXPECT_EQ(cell_of(all->front(), "stack_trace", "fx_pre_grad").total, 0U);
  EXPECT_EQ(spelled(cell_of(all->front(), "from_node", "fx_pre_grad")), "-");
}

TEST(Survival, ForwardAndBackwardAreTwoMatrices) {
  CaptureBuilder b;
  const CompileId c = b.compile("inductor");
  const GraphId pre = b.graph(c, "fx");
  const GraphId forward = b.graph(c, "fx", "forward");
  const GraphId backward = b.graph(c, "fx", "backward");
  const UnitId n = b.unit(pre, UnitKind::kFxNode);
  const UnitId f = b.unit(forward, UnitKind::kFxNode);
  const UnitId g = b.unit(backward, UnitKind::kFxNode);
  const UnitId h = b.unit(backward, UnitKind::kFxNode);
  b.snapshot("fx_pre_grad", pre, {b.seen(n).text("name", "y").stack("m.py", 1, "y = f(x)")});
  b.snapshot("fx_post_grad", forward, {b.seen(f).text("name", "sin").stack("m.py", 1, "y = f(x)")});
  b.snapshot("fx_post_grad", backward, {b.seen(g).text("name", "cos"), b.seen(h).text("name", "mul")});
  const Capture capture = b.finish();
  const auto all = matrices(capture);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].direction, "forward");
  EXPECT_EQ(spelled(cell_of((*all)[0], "stack_trace", "fx_post_grad")), "all");
  EXPECT_EQ((*all)[1].direction, "backward");
  EXPECT_EQ(cell_of((*all)[1], "stack_trace", "fx_post_grad").total, 2U);
  testing::expect_invariants(capture);
}

TEST(Survival, UnknownStageOrCompileIsAUsageErrorThatListsWhatThereIs) {
  const auto built = testing::build_seed000();
  const auto stage = matrices(built.capture, {{"fx_pregrad"}, {}});
  ASSERT_FALSE(stage);
  EXPECT_EQ(stage.error().code, ErrorCode::kUsage);
  EXPECT_NE(stage.error().message.find("fx_pre_grad"), std::string::npos);
  const auto compile = matrices(built.capture, {{}, "c7"});
  ASSERT_FALSE(compile);
  EXPECT_EQ(compile.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace kerntrail
