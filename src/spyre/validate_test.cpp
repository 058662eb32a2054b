#include "spyre/validate.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "base/files.h"
#include "spyre/bundle.h"
#include "spyre/test_specs.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using testing::tensor;

Json valid_document() {
  OpSpec spec = testing::matmul(128, 192, 256, tensor("x", 0, {128, 256}, ""), "w", 1, true,
                                tensor("buf0", 2, {128, 192}, "192*c0 + c1"));
  spec.debug_handle = DebugHandle{};
  std::vector<Diagnostic> diagnostics;
  return Json::parse(render_bundle({spec}, {}, diagnostics).value()[0].content).value();
}

// Changes the value under a path like {"dscs_", "0", "batchmatmul", "N_"}; numbers index arrays.
Json changed(const Json& json, std::vector<std::string> path, const std::function<Json(const Json&)>& change) {
  if (path.empty()) return change(json);
  const std::string key = path.front();
  path.erase(path.begin());
  if (json.is_array()) {
    JsonArray items = json.as_array();
    Json& item = items.at(static_cast<std::size_t>(std::stoi(key)));
    item = changed(item, path, change);
    return items;
  }
  Json out = json;
  out.set(key, changed(json[key], path, change));
  return out;
}

std::vector<std::string> codes(const Json& document) {
  std::vector<std::string> out;
  for (const Diagnostic& d : validate_superdsc(document)) out.push_back(d.code);
  return out;
}

bool reports(std::vector<std::string> path, const Json& value, const std::string& code, bool in_dsc) {
  std::vector<std::string> full{"0_batchmatmul"};
  if (in_dsc) full.insert(full.end(), {"dscs_", "0", "batchmatmul"});
  full.insert(full.end(), path.begin(), path.end());
  const auto found = codes(changed(valid_document(), full, [&](const Json&) { return value; }));
  return std::find(found.begin(), found.end(), code) != found.end();
}

TEST(ValidateSuperdsc, AcceptsWhatIsWritten) { EXPECT_TRUE(codes(valid_document()).empty()); }

TEST(ValidateSuperdsc, AcceptsEveryPublicFile) {
  const std::string root = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/sdsc/";
  int files = 0;
  for (const char* folder : {"mlp_m512", "adds_then_matmul_512/0001_sdsc_fused_add_t_0",
                             "adds_then_matmul_512/0002_sdsc_fused_mm_1", "swiglu_decode"}) {
    const std::vector<std::string> names = base::list_files(root + folder).value();
    for (const std::string& name : names) {
      if (!name.ends_with(".json")) continue;
      const std::string text = base::read_file(root + folder + "/" + name).value();
      const Json document = Json::parse(text).value();
      for (const Diagnostic& d : validate_superdsc(document))
        ADD_FAILURE() << name << " " << d.code << " " << d.where << ": " << d.message;
      ++files;
    }
  }
  EXPECT_EQ(files, 15);
}

TEST(ValidateSuperdsc, FindsEachKindOfDamage) {
  EXPECT_TRUE(reports({"numCoresUsed_"}, 5, "sdsc-cores", false));
  EXPECT_TRUE(reports({"numCoresUsed_"}, std::int64_t{1} << 60, "sdsc-cores", false));
  EXPECT_TRUE(reports({"numWkSlicesPerDim_", "mb"}, 2, "sdsc-cores", false));
  EXPECT_TRUE(reports({"coreIdToDsc_"}, JsonObject{}, "sdsc-cores", false));
  EXPECT_TRUE(reports({"coreIdToWkSlice_", "1", "mb"}, 0, "sdsc-core-slices", false));
  EXPECT_TRUE(reports({"coreIdToWkSlice_", "1", "mb"}, 99, "sdsc-core-slices", false));
  EXPECT_TRUE(reports({"debug_handle_", "id"}, "-4", "sdsc-handle", false));
  EXPECT_TRUE(reports({"dataOpdscs_"}, JsonArray{}, "sdsc-one-dsc", false));
  EXPECT_TRUE(reports({"dscs_"}, JsonArray{}, "sdsc-one-dsc", false));
  EXPECT_TRUE(reports({"coreIdsUsed_"}, JsonArray{0}, "sdsc-cores", true));
  EXPECT_TRUE(reports({"numCoresUsed_"}, 1, "sdsc-cores", true));
  EXPECT_TRUE(reports({"N_", "mb_"}, 127, "sdsc-sizes", true));
  EXPECT_TRUE(reports({"N_", "x_"}, 1, "sdsc-dims", true));
  EXPECT_TRUE(reports({"dataStageParam_", "0", "ss_", "mb_"}, 3, "sdsc-sizes", true));
  EXPECT_TRUE(reports({"maskingConstId_"}, 0, "sdsc-masking", true));
  EXPECT_TRUE(reports({"primaryDsInfo_", "KERNEL", "layoutDimOrder_", "0"}, "z", "sdsc-dims", true));
  EXPECT_TRUE(reports({"primaryDsInfo_", "KERNEL", "stickDimOrder_"}, JsonArray{"mb"}, "sdsc-labels", true));
  EXPECT_TRUE(reports({"primaryDsInfo_", "KERNEL", "stickSize_"}, JsonArray{100}, "sdsc-sizes", true));
  EXPECT_TRUE(reports({"labeledDs_", "1", "dsType_"}, "OTHER", "sdsc-labels", true));
  EXPECT_TRUE(reports({"labeledDs_", "1", "scale_"}, JsonArray{1}, "sdsc-labels", true));
  EXPECT_TRUE(reports({"labeledDs_", "1", "ldsIdx_"}, 2, "sdsc-labels", true));
  EXPECT_TRUE(reports({"labeledDs_"}, JsonArray(9, JsonObject{}), "sdsc-labels", true));
  EXPECT_TRUE(reports({"scheduleTree_"}, JsonArray{}, "sdsc-tensors", true));
  EXPECT_TRUE(reports({"scheduleTree_", "0", "maxDimSizes_"}, JsonArray{}, "sdsc-tensors", true));
  EXPECT_TRUE(reports({"scheduleTree_", "0", "coordinates_", "coordInfo", "mb", "elemArr"}, 2, "sdsc-folds", true));
  const std::vector<std::string> address{"scheduleTree_", "2", "startAddressCoreCorelet_", "data_", "[1, 0, 0]"};
  EXPECT_TRUE(reports(address, "100", "sdsc-address", true));
  EXPECT_TRUE(reports(address, "-1", "sdsc-address", true));
  EXPECT_TRUE(reports(address, "0x80", "sdsc-address", true));
  EXPECT_TRUE(reports(address, std::to_string(2 * kSegmentBytes), "sdsc-address", true));  // two cores, one place
  EXPECT_TRUE(reports({"scheduleTree_", "1", "component_"}, "lx", "sdsc-address", true));  // behind the scratchpad
  EXPECT_TRUE(reports({"computeOp_", "0", "inputLabeledDs"}, JsonArray{"Tensor9-idx9"}, "sdsc-compute", true));
  EXPECT_TRUE(reports({"computeOp_", "0", "outputLabeledDs"}, JsonArray{}, "sdsc-compute", true));
  EXPECT_TRUE(reports({"computeOp_"}, JsonArray{}, "sdsc-compute", true));
}

TEST(ValidateSuperdsc, ReadsDocumentsOfAnyShape) {
  for (const char* text : {"null", "[]", "{}", "1", R"({"a":1})", R"({"0_":{}})", R"({"_add":{}})", R"({"x_add":{}})",
                           R"({"0_add":{},"1_add":{}})"}) {
    const auto found = codes(Json::parse(text).value());
    EXPECT_EQ(found, std::vector<std::string>{"sdsc-top-key"}) << text;
  }
  EXPECT_FALSE(codes(Json::parse(R"({"0_add":null})").value()).empty());
  EXPECT_FALSE(codes(Json::parse(R"({"0_add":{"dscs_":[{"add":7}]}})").value()).empty());
}

// Whatever is nulled, the validator only reads.
void null_each(const Json& json, const std::function<void(const Json&)>& visit) {
  visit(Json());
  if (json.is_object()) {
    for (std::size_t i = 0; i < json.as_object().size(); ++i) {
      null_each(json.as_object()[i].second, [&](const Json& inner) {
        JsonObject copy = json.as_object();
        copy[i].second = inner;
        visit(Json(copy));
      });
    }
  } else if (json.is_array() && !json.as_array().empty()) {
    null_each(json.as_array()[0], [&](const Json& inner) {
      JsonArray copy = json.as_array();
      copy[0] = inner;
      visit(Json(copy));
    });
  }
}

TEST(ValidateSuperdsc, SurvivesEveryMissingMember) {
  OpSpec spec = testing::pointwise("neg", {128}, {tensor("x", 0, {128}, "c0"), tensor("buf0", 1, {128}, "c0")});
  std::vector<Diagnostic> diagnostics;
  EmitOptions options;
  options.max_cores = 2;
  const Json document = Json::parse(render_bundle({spec}, options, diagnostics).value()[0].content).value();
  std::size_t reported = 0;
  null_each(document, [&](const Json& damaged) {
    reported += validate_superdsc(damaged).empty() ? std::size_t{0} : std::size_t{1};
  });
  EXPECT_GT(reported, 30U);
}

}  // namespace
}  // namespace kerntrail::spyre
