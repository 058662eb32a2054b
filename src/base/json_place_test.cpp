#include "base/json_place.h"

#include <gtest/gtest.h>

#include <string>

namespace kerntrail::base {
namespace {

std::string spelt(TextPlace place) { return std::to_string(place.line) + ":" + std::to_string(place.column); }

TEST(JsonPlace, FindsMembersAndItems) {
  const std::string text = "{\"version\": 1,\n \"list\": [{\"a\": \"x\"},\n   {\"b\": [1, true, -2.5e3]}]}";
  EXPECT_EQ(spelt(find_json(text, "version")), "1:2");
  EXPECT_EQ(spelt(find_json(text, "list[0].a")), "2:12");
  EXPECT_EQ(spelt(find_json(text, "list[1]")), "3:4");
  EXPECT_EQ(spelt(find_json(text, "list[1].b[2]")), "3:20");
  EXPECT_EQ(spelt(find_json(text, "list[7]")), "1:1") << "not there: the document";
  EXPECT_EQ(spelt(find_json_end(text)), "0:0");
}

TEST(JsonPlace, FindsWhereJsonEnds) {
  EXPECT_EQ(spelt(find_json_end("")), "1:1");
  EXPECT_EQ(spelt(find_json_end("{\"a\": 1,}")), "1:9");
  EXPECT_EQ(spelt(find_json_end("{\n  \"a\": nul\n}")), "2:8");
  EXPECT_EQ(spelt(find_json_end("{\"a\": 1\n \"b\": 2}")), "2:2");
  EXPECT_EQ(spelt(find_json_end("[1] 2")), "1:5");
  EXPECT_EQ(spelt(find_json_end("{\"a\": 1,\n\"a\": 2}")), "2:1") << "a key twice";
  EXPECT_EQ(spelt(find_json_end("[\"x")), "1:2") << "an open string, where it begins";
  EXPECT_NE(spelt(find_json_end(std::string(2000, '['))), "0:0");
}

}  // namespace
}  // namespace kerntrail::base
