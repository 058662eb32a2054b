#include <gtest/gtest.h>

#include "capture_builder.h"
#include "invariants.h"
#include "kerntrail/report.h"
#include "seed000/seed000.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;

TEST(Report, CountsOfTheReferenceRun) {
  const auto built = testing::build_seed000();
  const auto report = make_report(built.capture);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->sections.size(), 1U);
  const ReportSection& section = report->sections.front();
  std::vector<std::size_t> rows;
  for (const StageTable& table : section.tables) rows.push_back(table.rows.size());
  EXPECT_EQ(rows, (std::vector<std::size_t>{3, 7, 5, 5, 5, 5}));
  ASSERT_EQ(section.kernels.size(), 1U);
  const KernelBlock& kernel = section.kernels.front();
  EXPECT_EQ(kernel.buffers, (std::vector<std::string>{"op0", "op1", "op2", "op3", "op4"}));
  EXPECT_EQ(kernel.fx_origins, (std::vector<std::string>{"add_tensor", "add_tensor_1", "mm_default", "mm_default_1",
                                                         "permute", "permute_1", "relu"}));
  EXPECT_EQ(kernel.files, 5U);
  EXPECT_EQ(kernel.handles, 5U);
  EXPECT_EQ(report->metadata_rule, "seed");
  EXPECT_EQ(report->model_name, "reference_mlp");
}

TEST(Report, HooksStartWithTheReferencesSix) {
  CaptureBuilder b;
  HookRecord failed;
  failed.label = "stage5_opspec";
  failed.attribute = "SpyreKernel.create_op_spec";
  failed.state = HookState::kFailed;
  failed.detail = "no such attribute";
  b.recorder().hook(failed, false);
  HookRecord erring;
  erring.label = "torch.fx.Graph.create_node";
  erring.attribute = "torch.fx.Graph.create_node";
  b.recorder().hook(erring, false);
  erring.errors = 2;
  erring.last_error = "bad";
  b.recorder().hook(erring, true);
  const Capture capture = b.finish();
  const auto hooks = hook_summaries(capture);
  ASSERT_EQ(hooks.size(), 7U);
  EXPECT_EQ(hooks[0].name, "stage2_pre_grad");
  EXPECT_EQ(hooks[0].value, "install-failed: not found");
  EXPECT_EQ(hooks[3].name, "stage5_opspec");
  EXPECT_EQ(hooks[3].value, "install-failed: no such attribute");
  EXPECT_EQ(hooks[6].name, "torch.fx.Graph.create_node");
  EXPECT_EQ(hooks[6].value, "error: bad");
}

TEST(Report, CompileThatWasNotObservedIsSaidSo) {
  CaptureBuilder b;
  const CompileId c = b.compile("inductor");
  b.recorder().note({"not-observed", Severity::kWarning, "served from the cache", c, GraphId::kNone});
  const Capture capture = b.finish();
  const auto report = make_report(capture);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->sections.size(), 1U);
  EXPECT_FALSE(report->sections.front().observed);
  ASSERT_EQ(report->sections.front().notes.size(), 1U);
  EXPECT_TRUE(report->sections.front().matrix.rows.empty());
  testing::expect_invariants(capture);
}

TEST(Report, CaptureWithoutCompilesHasNoSections) {
  CaptureBuilder b;
  const Capture capture = b.finish();
  const auto report = make_report(capture);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->sections.empty());
}

TEST(Report, FilesThatDidNotParseAreLeftOutOfCoverage) {
  CaptureBuilder b;
  const CompileId c = b.compile("kerntrail_spyre");
  const GraphId bundle = b.graph(c, "bundle");
  const UnitId good = b.unit(bundle, UnitKind::kBundleFile);
  const UnitId null_handle = b.unit(bundle, UnitKind::kBundleFile);
  const UnitId bad = b.unit(bundle, UnitKind::kBundleFile);
  b.snapshot(
      "superdsc", bundle,
      {b.seen(good).text("name", "sdsc_0.json").json("debug_handle", R"({"id":"7"})"),
       b.seen(null_handle).text("name", "sdsc_1.json").empty("debug_handle"),
       b.seen(bad).text("name", "sdsc_2.json").text("parse_error", "unexpected end").unreadable("debug_handle")});
  const Capture capture = b.finish();
  const auto report = make_report(capture);
  ASSERT_TRUE(report);
  const StageTable& table = report->sections.front().tables.front();
  EXPECT_EQ(table.parsed, 2U);
  EXPECT_EQ(table.handle_present, 2U);
  EXPECT_EQ(table.handle_filled, 1U);
  testing::expect_invariants(capture);
}

}  // namespace
}  // namespace kerntrail
