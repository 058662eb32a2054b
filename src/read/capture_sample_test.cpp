// The committed sample capture is what the writer makes today, byte for byte. After a deliberate change of the format:
// KERNTRAIL_UPDATE_SAMPLES=1 kt_read_test --gtest_filter='CaptureSample.*' writes it anew.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "model/capture_fixtures.h"
#include "model/ndjson_writer.h"
#include "model/recorder.h"
#include "read/capture_reader.h"
#include "read/validate.h"

namespace kerntrail::read {
namespace {

constexpr const char* kFolder = KERNTRAIL_SOURCE_DIR "/tests/data/captures/";

std::string made(void (*record)(model::Recorder&)) {
  std::string out;
  auto writer = model::NdjsonWriter::to_string(out);
  model::Recorder recorder(*writer);
  record(recorder);
  return out;
}

// Names that break naive writers and readers, every state, every kind of location: the first random run that ends
// complete and took some snapshots.
std::string hostile() {
  for (std::uint64_t seed = 1;; ++seed) {
    std::string out;
    auto writer = model::NdjsonWriter::to_string(out);
    model::Recorder recorder(*writer);
    const auto shown = model::fixtures::record_random(recorder, seed, 70);
    if (shown.size() > 10 && out.find("\"status\":\"complete\"") != std::string::npos) return out;
  }
}

void expect_file(const std::string& name, const std::string& content) {
  const std::string path = kFolder + name;
  if (std::getenv("KERNTRAIL_UPDATE_SAMPLES")) {
    ASSERT_TRUE(base::write_file(path, content));
  }
  const auto committed = base::read_file(path);
  ASSERT_TRUE(committed) << committed.error().text();
  EXPECT_TRUE(*committed == content) << path << " differs from what the writer makes";
}

TEST(CaptureSample, MlpIsWhatTheWriterMakes) { expect_file("mlp.ndjson", made(model::fixtures::record_sample)); }

TEST(CaptureSample, CommittedFilesAreValid) {
  for (const char* name : {"mlp.ndjson", "hostile.ndjson"}) {
    const auto report = validate_capture(std::string(kFolder) + name);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_FALSE(report->torn_or_partial());
    EXPECT_GT(report->digests_reached, 0U);
  }
}

// Made once by a random run; only its reading is held, so that the generator may change.
TEST(CaptureSample, HostileFileIsWrittenOnDemand) {
  if (!std::getenv("KERNTRAIL_UPDATE_SAMPLES")) GTEST_SKIP() << "KERNTRAIL_UPDATE_SAMPLES is not set";
  ASSERT_TRUE(base::write_file(std::string(kFolder) + "hostile.ndjson", hostile()));
}

}  // namespace
}  // namespace kerntrail::read
