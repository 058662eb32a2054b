#include "model/json_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/json.h"
#include "base/strings.h"
#include "model/capture_fixtures.h"

namespace kerntrail::model {
namespace {

TEST(JsonText, RepairsEachBadByteAndKeepsTheRest) {
  EXPECT_EQ(repaired_utf8("ok \xC3\xA9"), "ok \xC3\xA9");
  EXPECT_EQ(repaired_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(repaired_utf8("cut \xE2\x82"), "cut \xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(repaired_utf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a lone surrogate
  EXPECT_EQ(repaired_utf8("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // overlong
}

TEST(JsonText, RepairAgreesWithTheJsonWriter) {
  for (const std::string& text : fixtures::hostile_texts()) {
    std::string direct, repaired;
    base::append_json_string(direct, text, false);
    base::append_json_string(repaired, repaired_utf8(text), false);
    EXPECT_EQ(direct, repaired);
    EXPECT_TRUE(base::is_valid_utf8(repaired_utf8(text)));
  }
}

RC_GTEST_PROP(JsonText, RepairIsIdempotentAndKeepsGoodText, (const std::string& text)) {
  const std::string once = repaired_utf8(text);
  RC_ASSERT(base::is_valid_utf8(once));
  RC_ASSERT(repaired_utf8(once) == once);
  if (base::is_valid_utf8(text)) RC_ASSERT(once == text);
}

TEST(JsonText, TakesWhiteSpaceOutButNotOfStrings) {
  EXPECT_EQ(without_white_space("{ \"a b\" : [ 1 ,\n 2.50 ] }"), "{\"a b\":[1,2.50]}");
  EXPECT_EQ(without_white_space(R"( "q\" \\" )"), R"("q\" \\")");
}

TEST(JsonText, KeepsWhatIsNoJsonAsAString) {
  EXPECT_EQ(normal_json("[1, 1e5, \"\\u00e9\"]"), "[1,1e5,\"\\u00e9\"]");
  EXPECT_EQ(normal_json("not json"), "\"not json\"");
  EXPECT_EQ(normal_json(""), "\"\"");
  EXPECT_EQ(normal_json("{\"a\":1,\"a\":2}"), R"("{\"a\":1,\"a\":2}")");
  EXPECT_EQ(normal_json("123456789012345678901234567890"), "\"123456789012345678901234567890\"");
  const std::string deep = std::string(49, '[') + std::string(49, ']');
  EXPECT_EQ(normal_json(deep), "\"" + deep + "\"");
  const std::string allowed = std::string(48, '[') + std::string(48, ']');
  EXPECT_EQ(normal_json(allowed), allowed);
}

TEST(JsonText, CutsBetweenCodePoints) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcdef", 3), "abc... (3 bytes cut)");
  EXPECT_EQ(shortened("a\xC3\xA9z", 2), "a... (3 bytes cut)");
}

}  // namespace
}  // namespace kerntrail::model
