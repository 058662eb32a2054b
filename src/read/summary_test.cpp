#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "model/capture_fixtures.h"
#include "model/ndjson_writer.h"
#include "model/recorder.h"
#include "model/replay.h"
#include "read/info.h"
#include "read/validate.h"

namespace kerntrail::read {
namespace {

std::string scratch(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "kerntrail_summary_test";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

std::string sample_text() {
  std::string out;
  auto writer = model::NdjsonWriter::to_string(out);
  model::Recorder recorder(*writer);
  model::fixtures::record_sample(recorder);
  return out;
}

TEST(Validate, CountsWhatItSaw) {
  const std::string path = scratch("whole.ndjson");
  const std::string text = sample_text();
  ASSERT_TRUE(base::write_file(path, text));
  const auto report = validate_capture(path);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->path, path);
  EXPECT_EQ(report->format_version, 1);
  EXPECT_EQ(report->bytes, text.size());
  EXPECT_EQ(report->records.at("snapshot"), 6U);
  EXPECT_EQ(report->records.at("end"), 1U);
  std::uint64_t records = 0;
  for (const auto& [kind, count] : report->records) records += count;
  EXPECT_EQ(report->lines, records);
  EXPECT_EQ(report->snapshots, 6U);
  EXPECT_EQ(report->digests_reached, 6U);
  EXPECT_EQ(report->full_snapshots, 0U);
  EXPECT_TRUE(report->complete);
  EXPECT_FALSE(report->torn_or_partial());
  EXPECT_EQ(report->notes, 2U);
  EXPECT_EQ(report->errors, 0U);
  EXPECT_EQ(report->unexplained_units, 0U);
}

TEST(Validate, ReportsATornFile) {
  const std::string path = scratch("torn.ndjson");
  const std::string text = sample_text();
  ASSERT_TRUE(base::write_file(path, text.substr(0, text.size() - 30)));
  const auto report = validate_capture(path);
  ASSERT_TRUE(report) << report.error().text();
  ASSERT_TRUE(report->torn);
  EXPECT_EQ(report->torn->text(),
            path + ":" + std::to_string(report->lines) + ": the file stops inside a record [torn-capture]");
  EXPECT_TRUE(report->torn_or_partial());
  EXPECT_EQ(report->errors, 1U);
  EXPECT_EQ(report->digests_reached, 6U);
}

TEST(Validate, RefusesAChangedDigest) {
  const std::string path = scratch("digest.ndjson");
  std::string text = sample_text();
  char& digit = text[text.find("\"digest\":\"") + 12];
  digit = digit == '0' ? '1' : '0';
  ASSERT_TRUE(base::write_file(path, text));
  const auto report = validate_capture(path);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kDigest);
  EXPECT_NE(report.error().message.find("snapshot 0 (stage \"fx_pre_grad\", graph c0.g0) has digest "),
            std::string::npos)
      << report.error().message;
}

TEST(Validate, CountsUnitsThatNothingExplains) {
  const std::string path = scratch("unexplained.ndjson");
  {
    auto writer = model::NdjsonWriter::open(path, true);
    ASSERT_TRUE(writer);
    model::Recorder r(**writer);
    const GraphId graph = r.graph(r.compile({}), "fx", "");
    r.unit(graph, UnitKind::kFxNode);
    r.unit(graph, UnitKind::kFxNode, "an origin");
    r.end(false);
  }
  const auto report = validate_capture(path);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->unexplained_units, 1U);
  EXPECT_EQ(report->unexplained_examples, std::vector<std::string>{"c0.n0"});
  EXPECT_FALSE(report->complete);
  EXPECT_TRUE(report->torn_or_partial());
}

TEST(Info, SummarisesTheSample) {
  const std::string path = scratch("info.ndjson");
  ASSERT_TRUE(base::write_file(path, sample_text()));
  const auto info = capture_info(path);
  ASSERT_TRUE(info) << info.error().text();
  EXPECT_EQ(info->run.torch, "2.13.0");
  EXPECT_TRUE(info->complete);
  EXPECT_FALSE(info->torn);
  ASSERT_EQ(info->compiles.size(), 1U);
  const CompileSummary& compile = info->compiles[0];
  EXPECT_EQ(compile.name, "c0");
  EXPECT_EQ(compile.backend, "inductor");
  ASSERT_EQ(compile.graphs.size(), 4U);
  EXPECT_EQ(compile.graphs[0].name, "c0.g0");
  EXPECT_EQ(compile.graphs[0].units, 5U);
  std::vector<std::string> stages;
  for (const StageSummary& stage : compile.stages)
    stages.push_back(stage.key + " " + std::to_string(stage.snapshots) + " " + std::to_string(stage.units) + " " +
                     std::to_string(stage.counted));
  EXPECT_EQ(stages, (std::vector<std::string>{"fx_pre_grad 1 5 3", "fx_post_grad 1 5 3", "ir_pre_pass 1 3 3",
                                              "schedule 1 1 1", "kernel 1 1 1"}));
  EXPECT_EQ(info->hooks, 2U);
  ASSERT_EQ(info->missing_hooks.size(), 1U);
  EXPECT_EQ(info->missing_hooks[0].label, "spyre passes");
  EXPECT_TRUE(info->troubled_hooks.empty());
  EXPECT_EQ(info->sources, std::vector<std::string>{"examples/mlp.py"});
  EXPECT_EQ(info->notes.size(), 2U);
}

TEST(Info, TellsTroubledHooksAndTornFiles) {
  model::Replay replay;
  model::Recorder r(replay);
  r.run({});
  r.hook({"fails", "a", HookState::kInstalled, "", "", 3, 2, "KeyError", true}, true);
  r.hook({"lost", "b", HookState::kInstalled, "", "", 1, 0, "", false}, true);
  r.hook({"fine", "c", HookState::kInstalled, "", "", 1, 0, "", true}, true);
  const CaptureInfo info = capture_info(replay.take());
  EXPECT_TRUE(info.torn);
  ASSERT_EQ(info.troubled_hooks.size(), 2U);
  EXPECT_EQ(info.troubled_hooks[0].last_error, "KeyError");
  EXPECT_EQ(info.troubled_hooks[1].label, "lost");
}

}  // namespace
}  // namespace kerntrail::read
