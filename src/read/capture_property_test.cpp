// Random captures: written, read back and compared with what was shown, in every packing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "model/capture_fixtures.h"
#include "model/ndjson_writer.h"
#include "model/recorder.h"
#include "model/replay.h"
#include "read/capture_reader.h"
#include "read/validate.h"

namespace kerntrail::read {
namespace {

namespace fixtures = model::fixtures;

std::string scratch(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "kerntrail_property_test";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

std::string random_text(std::uint64_t seed, int steps) {
  std::string out;
  auto writer = model::NdjsonWriter::to_string(out);
  model::Recorder recorder(*writer);
  fixtures::record_random(recorder, seed, steps);
  return out;
}

RC_GTEST_PROP(CaptureProperty, WhatWasShownIsReadBack, (std::uint64_t seed)) {
  const int steps = *rc::gen::inRange(1, 120);
  std::string text;
  auto writer = model::NdjsonWriter::to_string(text);
  model::Replay direct;
  fixtures::Tee tee(*writer, direct);
  model::Recorder recorder(tee);
  const fixtures::Shown shown = fixtures::record_random(recorder, seed, steps);
  RC_ASSERT(direct.error() == nullptr);
  const auto capture = read_capture_text(text, "f", {.strict = true});
  if (!capture) RC_FAIL(capture.error().text());
  RC_ASSERT(fixtures::described(*capture) == fixtures::described(direct.capture()));
  for (const auto& [key, attrs] : shown) {
    const auto got = capture->attrs_at(key.second, key.first);
    RC_ASSERT(got.size() == attrs.size());
    for (const auto& [attr, value] : got) RC_ASSERT(*value == attrs.at(attr));
  }
}

RC_GTEST_PROP(CaptureProperty, TheSameInputsGiveTheSameBytes, (std::uint64_t seed)) {
  RC_ASSERT(random_text(seed, 60) == random_text(seed, 60));
}

RC_GTEST_PROP(CaptureProperty, FilesInEveryPackingReadTheSame, (std::uint64_t seed)) {
  const std::string plain = random_text(seed, 60);
  const auto expected = read_capture_text(plain, "f");
  RC_ASSERT(expected.has_value());
  for (const std::string ending : {"", ".gz", ".zst"}) {
    const std::string path = scratch("packing.ndjson" + ending);
    {
      auto writer = model::NdjsonWriter::open(path, true);
      RC_ASSERT(writer.has_value());
      model::Recorder recorder(**writer);
      fixtures::record_random(recorder, seed, 60);
      RC_ASSERT((*writer)->error() == nullptr);
    }
    const auto capture = read_capture(path, {.strict = true});
    if (!capture) RC_FAIL(capture.error().text());
    RC_ASSERT(fixtures::described(*capture) == fixtures::described(*expected));
    const auto report = validate_capture(path);
    RC_ASSERT(report.has_value());
    RC_ASSERT(report->digests_reached == expected->snapshots.size());
    RC_ASSERT(report->bytes == plain.size());
  }
}

RC_GTEST_PROP(CaptureProperty, ACutIsReadUpToItsLastSnapshot, (std::uint64_t seed)) {
  const std::string text = random_text(seed, 60);
  const auto whole = read_capture_text(text, "f");
  RC_ASSERT(whole.has_value());
  const std::size_t cut = *rc::gen::inRange<std::size_t>(text.find('\n') + 1, text.size() - 1);
  const auto capture = read_capture_text(std::string_view(text).substr(0, cut), "f");
  if (!capture) RC_FAIL(capture.error().text());
  RC_ASSERT(!capture->end);
  RC_ASSERT(capture->snapshots.size() <= whole->snapshots.size());
  for (std::size_t i = 0; i < capture->snapshots.size(); ++i)
    RC_ASSERT(capture->snapshots[i].digest == whole->snapshots[i].digest);
}

RC_GTEST_PROP(CaptureProperty, RandomBytesNeverCrash, (const std::string& bytes)) {
  const auto plain = read_capture_text(bytes, "f");
  RC_ASSERT(!plain);
  const auto behind = read_capture_text("{\"record\":\"run\",\"format\":1}\n" + bytes, "f");
  if (behind) RC_ASSERT(!behind->end);
}

}  // namespace
}  // namespace kerntrail::read
