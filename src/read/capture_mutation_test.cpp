// The sample capture, damaged in every way a file can be: no crash, always a clear error or a capture, and no change
// of an observed value goes unnoticed.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "base/json.h"
#include "base/strings.h"
#include "model/capture_fixtures.h"
#include "model/ndjson_writer.h"
#include "model/recorder.h"
#include "read/capture_reader.h"
#include "read/test_compression.h"

namespace kerntrail::read {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

class Mutation : public testing::Test {
 protected:
  Mutation() {
    auto writer = model::NdjsonWriter::to_string(text_);
    model::Recorder recorder(*writer);
    model::fixtures::record_sample(recorder);
    for (const std::string_view line : base::split_lines(text_)) lines_.emplace_back(line);
    original_ = model::fixtures::described(*read_capture_text(text_, "f"));
  }

  std::string joined(const std::vector<std::string>& lines) const {
    std::string out;
    for (const std::string& line : lines) out += line + "\n";
    return out;
  }

  // Reads a damaged text. An error must name a line that is there and say something.
  Expected<Capture> read(const std::string& text) {
    auto capture = read_capture_text(text, "f");
    if (!capture) {
      EXPECT_FALSE(capture.error().message.empty());
      EXPECT_EQ(capture.error().path, "f");
      EXPECT_LE(capture.error().line, lines_.size() + 2);
      ++errors_;
    }
    ++reads_;
    return capture;
  }

  Expected<Capture> read_with(std::size_t line, const std::string& replacement) {
    auto lines = lines_;
    lines[line] = replacement;
    return read(joined(lines));
  }

  std::string text_, original_;
  std::vector<std::string> lines_;
  std::size_t reads_ = 0, errors_ = 0;
};

// Other values for one member: of the same type where that is possible, and of every other type.
std::vector<Json> other_values(const Json& value) {
  std::vector<Json> out = {Json(),
                           Json(true),
                           Json(false),
                           Json(-1),
                           Json(std::int64_t{1} << 40),
                           Json(0.5),
                           Json(""),
                           Json("zzz"),
                           Json("c0.n1"),
                           Json("c9.n9"),
                           Json(JsonArray{}),
                           Json(JsonArray{Json(1)}),
                           Json(JsonArray{Json("c0.n0")}),
                           Json(JsonObject{}),
                           Json(JsonObject{{"a", Json(1)}}),
                           Json(JsonObject{{"a", Json("b")}})};
  if (value.is_int()) {
    out.emplace_back(value.as_int() + 1);
    out.emplace_back(value.as_int() - 1);
    out.emplace_back(std::to_string(value.as_int()));
  }
  if (value.is_string()) {
    out.emplace_back(std::string(value.as_string()) + "x");
    for (const State s : {State::kPresent, State::kEmpty, State::kNoSlot, State::kUnreadable})
      out.emplace_back(state_name(s));
  }
  if (value.is_array()) {
    JsonArray items = value.as_array();
    items.push_back(items.front());
    out.emplace_back(items);
    items.pop_back();
    items.pop_back();
    out.emplace_back(items);
    items = value.as_array();
    std::reverse(items.begin(), items.end());
    out.emplace_back(items);
  }
  std::erase(out, value);
  return out;
}

// Members whose every change must be noticed. (A snapshot's stage or graph, titles, notes: facts without a second
// witness; a change there gives another capture, not a broken one.)
bool must_be_noticed(std::string_view kind, std::string_view member) {
  if (kind == "attr" || kind == "run") return kind == "attr" || member == "format";
  if (kind == "snapshot") return member != "stage" && member != "pass" && member != "graph" && member != "full";
  if (kind == "unit") return member != "seen_only_as" && member != "graph";
  return (kind == "text" || kind == "loc" || kind == "compile" || kind == "graph") && member == "id";
}

TEST_F(Mutation, EveryValueOfEveryRecord) {
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const JsonObject record = Json::parse(lines_[i])->as_object();
    const auto kind = std::string(record[0].second.as_string());
    if (++seen[kind] > 8 && seen[kind] % 5 != 0) continue;  // of the many texts and attrs: a few of each kind
    for (std::size_t m = 0; m < record.size(); ++m) {
      for (const Json& value : other_values(record[m].second)) {
        JsonObject mutated = record;
        mutated[m].second = value;
        const std::string line = Json(mutated).dump();
        const auto capture = read_with(i, line);
        if (must_be_noticed(kind, record[m].first) && capture) {
          // The one change that is none: an empty list spelled out reads like one left out.
          EXPECT_EQ(model::fixtures::described(*capture), original_) << "unnoticed: " << line;
        }
      }
      JsonObject mutated = record;
      mutated.erase(mutated.begin() + static_cast<std::ptrdiff_t>(m));
      const auto capture = read_with(i, Json(mutated).dump());
      if (m == 0 || must_be_noticed(kind, record[m].first)) {
        EXPECT_FALSE(capture) << "unnoticed deletion: " << Json(mutated).dump();
      }
      mutated = record;
      mutated[m].first += "x";
      EXPECT_FALSE(read_with(i, Json(mutated).dump())) << "unnoticed member: " << Json(mutated).dump();
    }
  }
  EXPECT_GT(reads_, 3000U);
  EXPECT_GT(errors_, reads_ / 2);
}

// Content that attrs refer to is covered by the digests as well.
TEST_F(Mutation, ChangedTextsAndLocsAreCaughtByADigest) {
  std::set<std::int64_t> texts, locs;
  for (const std::string& line : lines_) {
    const Json record = *Json::parse(line);
    if (record["record"].as_string() != "attr") continue;
    for (const char* member : {"text", "python_type", "repr"}) {
      if (record[member].is_int()) texts.insert(record[member].as_int());
    }
    if (record["loc"].is_int()) locs.insert(record["loc"].as_int());
  }
  std::size_t tried = 0;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    Json record = *Json::parse(lines_[i]);
    const std::string_view kind = record["record"].as_string();
    const std::int64_t id = record["id"].as_int(-1);
    if (kind == "text" && texts.contains(id))
      record.set(record.find("json") ? "json" : "text", Json("something else"));
    else if (kind == "loc" && locs.contains(id))
      record.set("line", Json(99999));
    else
      continue;
    ++tried;
    const auto capture = read_with(i, record.dump());
    ASSERT_FALSE(capture) << record.dump();
    EXPECT_EQ(capture.error().code, ErrorCode::kDigest) << capture.error().text();
  }
  EXPECT_GT(tried, 20U);
}

TEST_F(Mutation, DuplicatedLines) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    auto lines = lines_;
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i), lines_[i]);
    EXPECT_FALSE(read(joined(lines))) << "line " << i + 1
                                      << " twice: " << lines_[i];  // the counts differ, if nothing else
  }
}

TEST_F(Mutation, MissingLines) {
  for (std::size_t i = 0; i + 1 < lines_.size(); ++i) {
    auto lines = lines_;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(read(joined(lines))) << "line " << i + 1 << " missing: " << lines_[i];
  }
}

TEST_F(Mutation, SwappedLines) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    for (std::size_t j = i + 1; j < lines_.size(); j += j == i + 1 ? 1 : 11) {
      auto lines = lines_;
      std::swap(lines[i], lines[j]);
      const auto capture = read(joined(lines));
      if (i == 0) {
        EXPECT_FALSE(capture);
      }
    }
  }
  EXPECT_GT(errors_, reads_ / 2);
}

TEST_F(Mutation, FlippedBits) {
  std::mt19937 random(7);
  const std::string gz = test::gzip(text_), zst = test::zstd(text_);
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = i % 4 == 0 ? gz : i % 4 == 1 ? zst : text_;
    const std::size_t at = random() % damaged.size();
    damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ (1U << (random() % 8)));
    auto capture = read_capture_text(damaged, "f");
    if (!capture) {
      EXPECT_FALSE(capture.error().message.empty());
    }
  }
}

TEST_F(Mutation, PiecesTakenOutAndPutIn) {
  std::mt19937 random(8);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = text_;
    const std::size_t at = random() % damaged.size();
    if (i % 2 == 0)
      damaged.erase(at, random() % 200);
    else
      damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 200));
    static_cast<void>(read_capture_text(damaged, "f"));
  }
}

}  // namespace
}  // namespace kerntrail::read
