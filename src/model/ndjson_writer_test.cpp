#include "model/ndjson_writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/strings.h"
#include "model/capture_fixtures.h"
#include "model/recorder.h"

namespace kerntrail::model {
namespace {

std::string scratch(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "kerntrail_writer_test";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

std::string sample_text() {
  std::string out;
  auto writer = NdjsonWriter::to_string(out);
  Recorder recorder(*writer);
  fixtures::record_sample(recorder);
  return out;
}

TEST(NdjsonWriter, EveryLineIsAnObjectThatBeginsWithItsKind) {
  std::set<std::string> kinds;
  const std::string text = sample_text();
  for (const std::string_view line : base::split_lines(text)) {
    const auto json = base::Json::parse(line);
    ASSERT_TRUE(json) << line;
    ASSERT_FALSE(json->as_object().empty());
    EXPECT_EQ(json->as_object()[0].first, "record");
    kinds.emplace(json->as_object()[0].second.as_string());
    for (const auto& [key, value] : json->as_object()) {
      EXPECT_FALSE(value.is_null()) << line;
      EXPECT_FALSE(value.is_array() && value.as_array().empty()) << line;
    }
  }
  EXPECT_EQ(kinds.size(), 19U);  // the sample holds every kind of record
}

TEST(NdjsonWriter, SpellsRecordsAsDocumented) {
  const std::string out = sample_text();
  for (
      const std::string_view expected :
      {R"j({"record":"stage","key":"fx_pre_grad","title":"FX Graph (pre-grad)","noun":"compute node","layer":"FX","order":10})j",
       R"j({"record":"attr_kind","name":"stack_trace","type":"stack","layer":"FX","first_stage":"fx_pre_grad","provenance":true})j",
       R"j({"record":"compile","id":"c0","torch_id":"0/0","backend":"inductor","attributes":{"dynamic":"false"}})j",
       R"j({"record":"graph","id":"c0.g0","kind":"fx","direction":"inference"})j",
       R"j({"record":"unit","id":"c0.k0","graph":"c0.g3","kind":"kernel"})j",
       R"j({"record":"link","kind":"define_kernel","from":["c0.o0","c0.o1","c0.o2"],"to":["c0.k0"]})j",
       R"j({"record":"claim","kernel":"c0.k0","claimant":"compiler","evidence":"origins","units":["c0.n1","c0.n2","c0.n3"]})j",
       R"j({"record":"note","code":"stage-absent","severity":"info","text":"stage fx_joint was not observed","compile":"c0"})j",
       R"j({"record":"volatile","of":"c0.k0","key":"directory","value":"/tmp/torchinductor/ab/cdef"})j"}) {
    EXPECT_NE(out.find("\n" + std::string(expected) + "\n"), std::string::npos) << expected;
  }
}

TEST(NdjsonWriter, GivesTheSameBytesTwice) { EXPECT_EQ(sample_text(), sample_text()); }

TEST(NdjsonWriter, CompressedFilesAreTheSameBytesTwice) {
  for (const std::string ending : {"", ".gz", ".zst"}) {
    std::vector<std::string> files;
    for (const int i : {0, 1}) {
      const std::string path = scratch("twice" + std::to_string(i) + ".ndjson" + ending);
      {
        auto writer = NdjsonWriter::open(path, true);
        ASSERT_TRUE(writer) << writer.error().text();
        Recorder recorder(**writer);
        fixtures::record_sample(recorder);
        EXPECT_EQ((*writer)->error(), nullptr);
      }
      files.push_back(base::read_file(path).value());
    }
    EXPECT_EQ(files[0], files[1]);
    if (ending.empty())
      EXPECT_EQ(files[0], sample_text());
    else
      EXPECT_LT(files[0].size(), sample_text().size());
  }
}

TEST(NdjsonWriter, EverySnapshotReachesTheDiskAtOnce) {
  const std::string path = scratch("flush.ndjson");
  auto writer = NdjsonWriter::open(path, true);
  ASSERT_TRUE(writer);
  Recorder r(**writer);
  const StageId stage = r.stage({"s", "", "", "", 1});
  const GraphId graph = r.graph(r.compile({}), "fx", "");
  r.snapshot(stage, graph, {});
  const std::string seen = base::read_file(path).value();
  EXPECT_NE(seen.find("\"record\":\"snapshot\""), std::string::npos);
  EXPECT_TRUE(seen.ends_with("}\n"));
}

TEST(NdjsonWriter, WhatFollowsASnapshotReachesTheDiskWhenItSettles) {
  const std::string path = scratch("settle.ndjson");
  auto writer = NdjsonWriter::open(path, true);
  ASSERT_TRUE(writer);
  Recorder r(**writer);
  const StageId stage = r.stage({"s", "", "", "", 1});
  const CompileId compile = r.compile({});
  r.snapshot(stage, r.graph(compile, "fx", ""), {});
  r.note({"x", Severity::kInfo, "after the look", compile, GraphId::kNone});
  EXPECT_EQ(base::read_file(path)->find("after the look"), std::string::npos);
  (*writer)->settle();
  EXPECT_NE(base::read_file(path)->find("after the look"), std::string::npos);
}

TEST(NdjsonWriter, RefusesAFileThatExists) {
  const std::string path = scratch("exists.ndjson");
  ASSERT_TRUE(base::write_file(path, "precious"));
  const auto writer = NdjsonWriter::open(path, false);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().text(), path + ": exists already; it is not overwritten [io]");
  EXPECT_EQ(base::read_file(path).value(), "precious");
}

TEST(NdjsonWriter, NamesTheReasonWhenItCantCreate) {
  const auto writer = NdjsonWriter::open(scratch("no such folder/x.ndjson"), true);
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().text().find("can't be created: No such file or directory [io]"), std::string::npos)
      << writer.error().text();
}

TEST(NdjsonWriter, KeepsTheFirstWriteErrorAndGoesOn) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  auto writer = NdjsonWriter::open("/dev/full", true);
  ASSERT_TRUE(writer);
  Recorder recorder(**writer);
  fixtures::record_sample(recorder);
  ASSERT_NE((*writer)->error(), nullptr);
  EXPECT_EQ((*writer)->error()->code, ErrorCode::kIo);
  EXPECT_NE((*writer)->error()->message.find("No space left"), std::string::npos);
}

TEST(NdjsonWriter, AbandonWritesNothing) {
  const std::string path = scratch("abandon.ndjson");
  auto writer = NdjsonWriter::open(path, true);
  ASSERT_TRUE(writer);
  Recorder r(**writer);
  r.text("x");
  (*writer)->abandon();
  r.text("y");
  r.end(true);
  writer->reset();
  EXPECT_EQ(base::read_file(path).value(), "");
}

}  // namespace
}  // namespace kerntrail::model
