#include "base/json.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace kerntrail::base {
namespace {

TEST(Json, KeepsOrderAndTypes) {
  const auto v = Json::parse(R"({"b":1,"a":[true,null,-2.5,"x"],"o":{}})");
  ASSERT_TRUE(v);
  EXPECT_EQ(v->dump(), R"({"b":1,"a":[true,null,-2.5,"x"],"o":{}})");
  EXPECT_EQ((*v)["a"].as_array().size(), 4U);
  EXPECT_TRUE((*v)["missing"].is_null());
}

TEST(Json, IndentedFormIsPythons) {
  const auto v = Json::parse(R"({"a":[1,[],{"k":"é😀"}],"e":{}})");
  ASSERT_TRUE(v);
  EXPECT_EQ(
      v->dump(2),
      "{\n  \"a\": [\n    1,\n    [],\n    {\n      \"k\": \"\\u00e9\\ud83d\\ude00\"\n    }\n  ],\n  \"e\": {}\n}");
}

TEST(Json, BadInputGivesAnErrorThatNamesTheFile) {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1,\"a\":2}", "nul", "\"\xff\"", "1 2"}) {
    const auto v = Json::parse(text, "x.json");
    ASSERT_FALSE(v) << text;
    EXPECT_EQ(v.error().path, "x.json");
  }
  EXPECT_EQ(Json::parse(std::string(2000, '[') + std::string(2000, ']')).error().code, ErrorCode::kTooLarge);
}

TEST(Json, IllFormedUtf8BecomesReplacementOnWriting) {
  std::string out;
  append_json_string(out, "a\xff\xc0\x80z", true);
  EXPECT_EQ(out, "\"a\\ufffd\\ufffd\\ufffdz\"");
  EXPECT_TRUE(Json::parse(out));
}

TEST(Json, NonFiniteNumbersBecomeNull) {
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(Json(3.0).dump(), "3.0");
}

TEST(Json, SetReplacesInPlace) {
  Json v;
  v.set("a", 1);
  v.set("b", 2);
  v.set("a", "x");
  EXPECT_EQ(v.dump(), R"({"a":"x","b":2})");
}

RC_GTEST_PROP(JsonProperty, AnyBytesSurviveAsValidJson, (const std::string& text)) {
  std::string out;
  append_json_string(out, text, false);
  const auto once = Json::parse(out);
  RC_ASSERT(bool(once));
  std::string again;
  append_json_string(again, once->as_string(), true);
  const auto twice = Json::parse(again);
  RC_ASSERT(bool(twice));
  RC_ASSERT(once->as_string() == twice->as_string());
}

RC_GTEST_PROP(JsonProperty, NumbersRoundTrip, (std::int64_t i, double d)) {
  const auto v = Json::parse(Json(JsonArray{Json(i), Json(d)}).dump());
  RC_ASSERT(bool(v));
  RC_ASSERT(v->as_array()[0].as_int() == i);
  RC_ASSERT(v->as_array()[1].as_double() == d);
}

TEST(Json, CanonicalTextIsPythons) {
  const auto value = Json::parse("{\"b\": [1, {\"z\": null, \"a\": 2.0}], \"é\": \"\\u00e9\", \"B\": true}");
  ASSERT_TRUE(value);
  // json.dumps(value, sort_keys=True, separators=(",", ":"))
  EXPECT_EQ(value->canonical(), R"({"B":true,"b":[1,{"a":2.0,"z":null}],"\u00e9":"\u00e9"})");
  EXPECT_EQ(value->sorted().dump(), R"({"B":true,"b":[1,{"a":2.0,"z":null}],"é":"é"})");
}

}  // namespace
}  // namespace kerntrail::base
