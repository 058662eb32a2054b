// The quick way of reading an attr record agrees with the general parser on every line that it takes.
#include "read/attr_line.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "base/strings.h"
#include "model/capture_fixtures.h"
#include "model/ndjson_writer.h"
#include "model/recorder.h"
#include "read/capture_reader.h"
#include "read/line_source.h"
#include "read/record_parser.h"

namespace kerntrail::read {
namespace {

constexpr std::string_view kMembers[] = {"unit", "attr", "at", "state", "python_type", "repr", "text", "loc", "refs"};

std::string random_text(std::uint64_t seed) {
  std::string out;
  auto writer = model::NdjsonWriter::to_string(out);
  model::Recorder recorder(*writer);
  model::fixtures::record_random(recorder, seed, 60);
  return out;
}

std::uint32_t id_of(RecordParser& record, std::size_t i) {
  return static_cast<std::uint32_t>(record.integer(i, 0, kNoIndex - 1, kNoIndex));
}

// What the general parser says of the line, in the same shape; false where it refuses it.
bool parsed(std::string line, AttrLine& out, std::string& holder) {
  static RecordParser record;
  holder = std::move(line);
  const std::size_t size = holder.size();
  holder.resize(size + kLinePadding, '\0');
  if (!record.parse({holder.data(), size}) || record.kind() != "attr" || !record.expect(kMembers)) return false;
  out.unit = record.text(0);
  out.attr = record.text(1);
  out.at = id_of(record, 2);
  out.state = record.text(3);
  out.python_type = id_of(record, 4);
  out.repr = id_of(record, 5);
  out.text = id_of(record, 6);
  out.loc = id_of(record, 7);
  out.refs = record.texts(8);
  return record.ok();
}

bool same(const AttrLine& a, const AttrLine& b) {
  return a.unit == b.unit && a.attr == b.attr && a.at == b.at && a.state == b.state && a.python_type == b.python_type &&
         a.repr == b.repr && a.text == b.text && a.loc == b.loc && a.refs == b.refs;
}

TEST(AttrLine, TakesWhatOurWriterWrites) {
  AttrLine line;
  ASSERT_TRUE(scan_attr_line(
      R"({"record":"attr","unit":"c0.n3","attr":"from_node","at":12,"state":"present","text":7,"loc":0,"refs":["c0.n1","c0.n2"]})",
      line));
  EXPECT_EQ(line.unit, "c0.n3");
  EXPECT_EQ(line.at, 12U);
  EXPECT_EQ(line.text, 7U);
  EXPECT_EQ(line.loc, 0U);
  EXPECT_EQ(line.repr, kNoIndex);
  EXPECT_EQ(line.refs, (std::vector<std::string_view>{"c0.n1", "c0.n2"}));
}

TEST(AttrLine, LeavesOtherSpellingsToTheParser) {
  AttrLine out;
  for (const char* line : {
           R"({"record":"attr","unit":"c0.n3","attr":"name","at":012,"state":"present"})",
           R"({"record":"attr","unit":"c0.n3","attr":"name","at":4294967295,"state":"present"})",
           R"({"record":"attr","unit":"c0.n3","attr":"n\u0061me","at":1,"state":"present"})",
           R"({"record":"attr","unit":"c0.n3","attr":"name","at":1,"state":"present","state":"empty"})",
           R"({"record":"attr","unit":"c0.n3","attr":"name","at":1,"state":"present","loc":1,"text":1})",
           R"({"record":"attr","unit":"c0.n3","attr":"name","at":1,"state":"present"} )",
           R"({"record":"attr","unit":"c0.n3","attr":"name","at":1,"state":"present","refs":["c0.n1",]})",
           R"({"record":"attr","unit":"c0.n3","attr":"name","at":-1,"state":"present"})",
           R"({"record":"attr","unit":"c0.n3","attr":"name","at":1.0,"state":"present"})",
           R"({"record":"attr","unit":"c0.n3","attr":"name","at":1,"state":"present")",
           R"({"record":"unit","id":"c0.n3"})",
           "",
       })
    EXPECT_FALSE(scan_attr_line(line, out)) << line;
}

RC_GTEST_PROP(AttrLine, EveryAttrLineOfPlainNamesIsTaken, (std::uint64_t seed)) {
  const std::string text = random_text(seed);
  for (const std::string_view line : base::split(text, '\n')) {
    AttrLine quick, general;
    std::string holder;
    const bool plain = std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c < 0x7F && c != '\\'; });
    if (!plain || !line.starts_with(R"({"record":"attr",)")) continue;
    RC_ASSERT(scan_attr_line(line, quick));
    RC_ASSERT(parsed(std::string(line), general, holder));
    RC_ASSERT(same(quick, general));
  }
}

RC_GTEST_PROP(AttrLine, WhatIsTakenOfADamagedLineTheParserReadsTheSame, (std::uint64_t seed)) {
  const std::string text = random_text(seed);
  for (const std::string_view whole : base::split(text, '\n')) {
    if (!whole.starts_with(R"({"record":"attr",)")) continue;
    std::string line(whole);
    const auto at = *rc::gen::inRange<std::size_t>(0, line.size());
    line[at] = *rc::gen::elementOf(std::string("\"\\{}[]:,0129 ac.\x01\x7f\xc3"));
    AttrLine quick, general;
    std::string holder;
    if (!scan_attr_line(line, quick)) continue;
    RC_ASSERT(parsed(line, general, holder));
    RC_ASSERT(same(quick, general));
  }
}

}  // namespace
}  // namespace kerntrail::read
