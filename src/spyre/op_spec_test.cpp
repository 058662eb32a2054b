#include "spyre/op_spec.h"

#include <functional>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spyre/test_specs.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

std::string any_text() { return *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)); }
std::vector<std::string> any_texts() {
  std::vector<std::string> out;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) out.push_back(any_text());
  return out;
}
std::vector<std::int64_t> any_integers(std::int64_t least) {
  std::vector<std::int64_t> out;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
    out.push_back(*rc::gen::inRange<std::int64_t>(least, std::int64_t{1} << 40));
  return out;
}

DebugHandle any_handle(int depth) {
  DebugHandle handle;
  handle.id = *rc::gen::arbitrary<std::uint64_t>() >> 1;
  if (*rc::gen::arbitrary<bool>()) {
    SourceLoc source{any_text(), *rc::gen::inRange<std::int64_t>(0, 1 << 20), 0, std::nullopt, std::nullopt};
    if (*rc::gen::arbitrary<bool>()) source.end_line = 7;
    if (*rc::gen::arbitrary<bool>()) source.end_col = 3;
    handle.source = source;
  }
  if (*rc::gen::arbitrary<bool>()) handle.aten_op = any_text();
  handle.ir_chain = any_texts();
  if (*rc::gen::arbitrary<bool>()) {
    handle.transform_history.emplace();
    for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
      ProvenanceTransform step{any_text(), any_text(), std::nullopt};
      if (*rc::gen::arbitrary<bool>()) step.reason = any_text();
      handle.transform_history->push_back(std::move(step));
    }
  }
  if (depth > 0) {
    for (int i = *rc::gen::inRange(0, 3); i > 0; --i) handle.fused_from.push_back(any_handle(depth - 1));
  }
  return handle;
}

TensorArg any_argument() {
  TensorArg arg;
  arg.is_input = *rc::gen::arbitrary<bool>();
  arg.arg_index = *rc::gen::inRange<std::int64_t>(-1, 20);
  arg.name = any_text();
  arg.dtype = *rc::gen::element(DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kBool, DType::kInt64);
  arg.host_size = any_integers(0);
  arg.host_stride = any_integers(0);
  arg.index = any_text();
  arg.layout = {any_integers(1), any_integers(-1)};
  arg.device_coordinates = any_texts();
  arg.memory = *rc::gen::element(Memory::kHbm, Memory::kLx, Memory::kPool);
  arg.base = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 50);
  return arg;
}

OpSpec any_spec() {
  OpSpec spec;
  spec.op = any_text();
  spec.is_reduction = *rc::gen::arbitrary<bool>();
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    spec.iteration_space.push_back(
        {any_text(), *rc::gen::inRange<std::int64_t>(0, 1 << 30), *rc::gen::inRange<std::int64_t>(1, 33)});
  }
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) spec.args.push_back(any_argument());
  if (*rc::gen::arbitrary<bool>())
    spec.op_info = JsonObject{{"constants", JsonObject{{"clipMin", 0.5}}}, {"flag", true}};
  spec.tiled_symbols = any_texts();
  if (*rc::gen::arbitrary<bool>()) spec.debug_handle = any_handle(2);
  return spec;
}

RC_GTEST_PROP(OpSpecText, RoundTrips, ()) {
  std::vector<OpSpec> specs;
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) specs.push_back(any_spec());
  const auto parsed = parse_op_specs(print_op_specs(specs));
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(*parsed == specs);
}

RC_GTEST_PROP(HandleJson, RoundTrips, ()) {
  const DebugHandle handle = any_handle(3);
  RC_ASSERT(handle_from_json(handle_to_json(handle)).value() == handle);
}

TEST(HandleJson, HasTheJulyKeysInOrder) {
  DebugHandle handle;
  handle.id = (std::uint64_t{1} << 63) - 1;
  handle.source = SourceLoc{"/m/model.py", 25, 0, std::nullopt, std::nullopt};
  handle.ir_chain = {"mm", "buf0"};
  EXPECT_EQ(
      handle_to_json(handle).dump(),
      R"({"id":"9223372036854775807","source":{"file":"/m/model.py","start_line":25,"start_col":0,"end_line":null,)"
      R"("end_col":null},"aten_op":null,"ir_chain":["mm","buf0"],"fused_from":[],"fusion_context":null})");
}

TEST(HandleJson, EndsWithTheHistoryWhereThereIsOne) {
  DebugHandle handle;
  handle.transform_history = std::vector<ProvenanceTransform>{{"fusion", "dedup_buffers", "duplicate buf5"},
                                                              {"rewrite", "insert_restickify", std::nullopt}};
  const Json json = handle_to_json(handle);
  EXPECT_EQ(json.as_object().back().first, "transform_history");
  EXPECT_EQ(json["transform_history"].dump(),
            R"([{"kind":"fusion","pass_name":"dedup_buffers","reason":"duplicate buf5"},)"
            R"({"kind":"rewrite","pass_name":"insert_restickify","reason":null}])");
  EXPECT_EQ(json.find("fusion_context"), nullptr);
  EXPECT_EQ(handle_from_json(json).value(), handle);
  handle.transform_history->clear();  // of a generation that has the field, though nothing happened
  EXPECT_EQ(handle_from_json(handle_to_json(handle)).value(), handle);
}

TEST(HandleJson, RefusesHistoriesThatAreNone) {
  for (const char* text :
       {R"({})", R"([1])", R"([{"kind":"fusion","pass_name":"p"}])", R"([{"kind":1,"pass_name":"p","reason":null}])",
        R"([{"kind":"fusion","pass_name":"p","reason":3}])"}) {
    Json json = handle_to_json({});
    json.set("transform_history", Json::parse(text).value());
    EXPECT_EQ(handle_from_json(json).error().code, ErrorCode::kSchema) << text;
  }
}

TEST(HandleJson, RefusesIdsThatAreNone) {
  for (const char* id : {"", "-1", "12x", "9223372036854775808", "99999999999999999999", " 1"}) {
    Json json = handle_to_json({});
    json.set("id", id);
    EXPECT_EQ(handle_from_json(json).error().code, ErrorCode::kSchema) << id;
  }
  Json numeric = handle_to_json({});
  numeric.set("id", 5);
  EXPECT_EQ(handle_from_json(numeric).error().code, ErrorCode::kSchema);
}

TEST(HandleJson, BoundsNesting) {
  DebugHandle handle;
  for (int i = 0; i < 100; ++i) {
    DebugHandle outer;
    outer.fused_from.push_back(std::move(handle));
    handle = std::move(outer);
  }
  EXPECT_EQ(handle_from_json(handle_to_json(handle)).error().code, ErrorCode::kTooLarge);
}

std::string sample_text() {
  OpSpec spec =
      testing::pointwise("add", {3, 4},
                         {testing::tensor("a", 0, {3, 4}, "4*c0 + c1"), testing::tensor("b", 1, {3, 4}, "4*c0 + c1"),
                          testing::tensor("buf0", 2, {3, 4}, "4*c0 + c1")});
  spec.op_info = JsonObject{{"constants", JsonObject{{"eps", 1e-5}}}};
  DebugHandle handle;
  handle.id = 12;
  handle.source = SourceLoc{"model.py", 3, 0, std::nullopt, std::nullopt};
  handle.fused_from = {DebugHandle{}, DebugHandle{}};
  spec.debug_handle = handle;
  return print_op_specs({spec});
}

TEST(OpSpecText, EveryTruncationIsAnError) {
  const std::string text = sample_text();
  ASSERT_TRUE(parse_op_specs(text));
  for (std::size_t n = 0; n < text.size(); ++n) ASSERT_FALSE(parse_op_specs(std::string_view(text).substr(0, n))) << n;
}

TEST(OpSpecText, EveryReplacedByteIsReadOrRefused) {
  const std::string text = sample_text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'"', ']', '-', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      const auto parsed = parse_op_specs(changed);
      if (parsed) {
        ASSERT_TRUE(parse_op_specs(print_op_specs(*parsed))) << i << c;
      } else {
        ASSERT_FALSE(parsed.error().message.empty());
      }
    }
  }
}

// Every member taken away, nulled, or given another type.
void damage(const Json& json, const std::function<void(const Json&)>& visit) {
  if (json.is_object()) {
    const JsonObject& members = json.as_object();
    for (std::size_t i = 0; i < members.size(); ++i) {
      JsonObject without = members;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      visit(Json(without));
      for (const Json& other : {Json(), Json("text"), Json(-2), Json(JsonArray{JsonObject{}}), Json(0.5)}) {
        JsonObject changed = members;
        changed[i].second = other;
        visit(Json(changed));
      }
      damage(members[i].second, [&](const Json& inner) {
        JsonObject changed = members;
        changed[i].second = inner;
        visit(Json(changed));
      });
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.as_array().size(); ++i) {
      damage(json.as_array()[i], [&](const Json& inner) {
        JsonArray changed = json.as_array();
        changed[i] = inner;
        visit(Json(changed));
      });
    }
  }
}

TEST(OpSpecText, EveryDamagedMemberIsReadOrRefused) {
  const Json whole = Json::parse(sample_text()).value();
  const Json one = JsonArray{whole.as_array()[0]};
  int refused = 0;
  damage(one, [&](const Json& changed) {
    const auto parsed = parse_op_specs(changed.dump());
    if (!parsed) {
      ++refused;
      ASSERT_FALSE(parsed.error().message.empty());
    }
  });
  EXPECT_GT(refused, 100);
  EXPECT_EQ(parse_op_specs("{}").error().code, ErrorCode::kSchema);
  EXPECT_EQ(parse_op_specs("[1]").error().code, ErrorCode::kSchema);
}

TEST(DTypes, AreFoundByTheirNames) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kBool,
                            DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64}) {
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)).value(), dtype);
    EXPECT_EQ(dtype_from_name("torch." + std::string(dtype_name(dtype))).value(), dtype);
  }
  EXPECT_EQ(dtype_from_name("complex64").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(device_format(DType::kBool), "SEN169_FP16");
  EXPECT_EQ(dtype_size(DType::kBool), 1U);
  EXPECT_EQ(device_element_size(DType::kInt64), 4U);
}

TEST(ParseOpSpecs, EveryRefusalNamesItsPlace) {
  OpSpec spec = testing::pointwise(
      "add", {64},
      {testing::tensor("x", 0, {64}, "c0"), testing::tensor("y", 1, {64}, "c0"), testing::tensor("z", 2, {64}, "c0")});
  spec.debug_handle = DebugHandle{};
  const std::string good = print_op_specs({spec, spec});
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.rfind(from), from.size(), to);  // in the second OpSpec, in its last argument
    const auto parsed = parse_op_specs(text);
    return parsed ? std::string("accepted") : parsed.error().message;
  };
  const std::string argument = "OpSpec 1, argument 2";
  EXPECT_EQ(refusal("\"float16\"", "\"float7\"").rfind(argument + ": element type 'float7'", 0), 0U);
  EXPECT_EQ(refusal("\"hbm\"", "\"disk\"").rfind(argument + ": memory \"disk\"", 0), 0U);
  EXPECT_EQ(refusal("\"is_input\"", "\"is_inptu\""), argument + " has no \"is_input\"");
  EXPECT_EQ(refusal("\"id\":\"0\"", "\"id\":\"-1\"").rfind("OpSpec 1: a debug handle's id", 0), 0U);
}

}  // namespace
}  // namespace kerntrail::spyre
