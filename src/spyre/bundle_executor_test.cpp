#include "spyre/bundle_executor.h"

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
using testing::changed;
using testing::tensor;

const std::string kRoot = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/sdsc/";

// Two layers with odd sizes: padding, a transposed weight, a broadcast bias, a scalar, pool and arguments.
std::vector<OpSpec> mlp() {
  const std::string hidden = "70*c0 + c1";
  OpSpec up =
      testing::matmul(48, 70, 130, tensor("x", 0, {48, 130}, ""), "w1", 1, true, tensor("h", -1, {48, 70}, hidden));
  OpSpec bias = testing::pointwise(
      "add", {48, 70},
      {tensor("b1", 2, {70}, "c1"), tensor("h", -1, {48, 70}, hidden), tensor("hb", -1, {48, 70}, hidden)});
  OpSpec scale = testing::pointwise(
      "mul", {48, 70},
      {tensor("hb", -1, {48, 70}, hidden), tensor("two", 3, {1}, "0"), tensor("hs", -1, {48, 70}, hidden)});
  OpSpec relu =
      testing::pointwise("relufwd", {48, 70}, {tensor("hs", -1, {48, 70}, hidden), tensor("r", -1, {48, 70}, hidden)});
  OpSpec down = testing::matmul(48, 192, 70, tensor("r", -1, {48, 70}, ""), "w2", 4, false,
                                tensor("out", 5, {48, 192}, "192*c0 + c1"));
  return {up, bias, scale, relu, down};
}

struct Emitted {
  std::vector<OpSpec> specs;  // planned
  std::vector<std::pair<std::string, std::string>> files;
};

Emitted emit(std::vector<OpSpec> specs, EmitOptions options = {}) {
  Emitted out;
  std::vector<Diagnostic> diagnostics;
  out.specs = specs;
  const auto planned = plan_bundle(out.specs, options, diagnostics);
  EXPECT_TRUE(planned) << planned.error().text();
  const std::vector<BundleFile> rendered = render_bundle(specs, options, diagnostics).value();
  for (const BundleFile& file : rendered) out.files.emplace_back(file.name, file.content);
  return out;
}

// First operation with wrong numbers; -1 where there is none.
int first_wrong(const Emitted& emitted, const std::vector<std::pair<std::string, std::string>>& files) {
  const auto compared = compare_bundle(bundle_of("b", files), emitted.specs);
  EXPECT_TRUE(compared) << compared.error().text();
  for (const OpComparison& one : compared.value_or(std::vector<OpComparison>{})) {
    if (one.wrong > 0) {
      EXPECT_FALSE(one.first_wrong.empty());
      return static_cast<int>(one.op);
    }
  }
  return -1;
}

TEST(CompareBundle, FilesGiveTheNumbersOfTheirOpSpecs) {
  for (const std::int64_t cores : {1, 7, 32}) {
    EmitOptions options;
    options.max_cores = cores;
    const Emitted emitted = emit(mlp(), options);
    const auto compared = compare_bundle(bundle_of("b", emitted.files), emitted.specs);
    ASSERT_TRUE(compared) << compared.error().text();
    ASSERT_EQ(compared->size(), 5U);
    for (const OpComparison& one : *compared) {
      EXPECT_EQ(one.wrong, 0) << one.name << " " << one.first_wrong;
      EXPECT_EQ(one.numbers, one.op == 4 ? 48 * 192 : 48 * 70);
      EXPECT_EQ(one.not_finite, 0);
    }
  }
}

TEST(CompareBundle, AddsUpTheCoresOfOneProduct) {
  OpSpec product =
      testing::matmul(8, 64, 512, tensor("x", 0, {8, 512}, ""), "w", 1, true, tensor("y", 2, {8, 64}, "64*c0 + c1"));
  product.iteration_space[0].split = 4;
  product.iteration_space[2].split = 8;
  EmitOptions options;
  options.keep_splits = true;
  const Emitted emitted = emit({product}, options);
  EXPECT_EQ(first_wrong(emitted, emitted.files), -1);
}

TEST(CompareBundle, RunsOtherShapesAndFormats) {
  OpSpec batch;
  batch.op = "batchmatmul";
  batch.is_reduction = true;
  batch.iteration_space = testing::loops({3, 16, 70, 100});
  batch.args = {tensor("x", 0, {3, 16, 100}, "1600*c0 + 100*c1 + c3"),
                tensor("y", 1, {3, 100, 70}, "7000*c0 + c2 + 70*c3"),
                testing::output(tensor("z", -1, {3, 16, 70}, "1120*c0 + 70*c1 + c2"))};
  OpSpec narrow = testing::pointwise("dl16tofp32", {3, 16, 70},
                                     {tensor("z", -1, {3, 16, 70}, "1120*c0 + 70*c1 + c2"),
                                      tensor("w", -1, {3, 16, 70}, "1120*c0 + 70*c1 + c2", DType::kFloat32)});
  const std::string index = "1120*c0 + 70*c1 + c2";
  OpSpec compare = testing::pointwise("greaterthan", {3, 16, 70},
                                      {tensor("z", -1, {3, 16, 70}, index), tensor("limit", 2, {1}, "0"),
                                       tensor("t", -1, {3, 16, 70}, index, DType::kBool)});
  OpSpec choose =
      testing::pointwise("where3", {3, 16, 70},
                         {tensor("t", -1, {3, 16, 70}, index, DType::kBool), tensor("z", -1, {3, 16, 70}, index),
                          tensor("other", 3, {3, 16, 70}, index), tensor("chosen", 4, {3, 16, 70}, index)});
  const Emitted emitted = emit({batch, narrow, compare, choose});
  EXPECT_EQ(first_wrong(emitted, emitted.files), -1);
}

// By themselves, files are held against what is recovered from them.
TEST(CompareBundle, RunsPublicFiles) {
  const Bundle bundle = read_bundle(kRoot + "adds_then_matmul_512/0001_sdsc_fused_add_t_0").value();
  const auto compared = compare_bundle(bundle, op_specs_of(bundle).value());
  ASSERT_TRUE(compared) << compared.error().text();
  for (const OpComparison& one : *compared) {
    EXPECT_EQ(one.wrong, 0) << one.name << " " << one.first_wrong;
    EXPECT_EQ(one.numbers, 512 * 512);
  }
}

// LX, a scalar and a view on half a tensor: the middle of the public decode kernel, without its products.
TEST(CompareBundle, RunsScratchpadsAndViews) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* name : {"sdsc_2.json", "sdsc_3.json", "sdsc_4.json", "sdsc_5.json", "sdsc_6.json"})
    files.emplace_back(name, base::read_file(kRoot + "swiglu_decode/" + name).value());
  const Bundle bundle = bundle_of("swiglu", files);
  const auto compared = compare_bundle(bundle, op_specs_of(bundle).value());
  ASSERT_TRUE(compared) << compared.error().text();
  for (const OpComparison& one : *compared) EXPECT_EQ(one.wrong, 0) << one.name << " " << one.first_wrong;
  EXPECT_EQ(compared->back().numbers, 12800);
}

using Files = std::vector<std::pair<std::string, std::string>>;

// A member of the node of one tensor of one file.
Files with_node(const Files& files, std::size_t file, std::size_t tensor_index, std::vector<std::string> path,
                const std::function<Json(const Json&)>& change) {
  Files out = files;
  const Json document = Json::parse(files[file].second).value();
  const std::string key = document.as_object()[0].first;
  std::vector<std::string> full{
      key, "dscs_", "0", key.substr(key.find('_') + 1), "scheduleTree_", std::to_string(tensor_index)};
  full.insert(full.end(), path.begin(), path.end());
  out[file].second = changed(document, full, change).dump(2);
  return out;
}

Json moved(const Json& address, std::int64_t by) {
  return std::to_string(std::stoll(std::string(address.as_string())) + by);
}

TEST(CompareBundle, AWrongAddressIsAWrongNumber) {
  const Emitted emitted = emit(mlp());
  const std::vector<std::string> data{"startAddressCoreCorelet_", "data_"};
  std::size_t tried = 0;
  for (std::size_t file = 0; file < 5; ++file) {
    for (std::size_t t = 0; t < emitted.specs[file].args.size(); ++t) {
      // A scalar's neighbours are zeros, which are as wrong as any.
      std::vector<std::string> one = data;
      one.emplace_back("[0, 0, 0]");
      const Files core = with_node(emitted.files, file, t, one, [](const Json& a) { return moved(a, 128); });
      EXPECT_EQ(first_wrong(emitted, core), static_cast<int>(file)) << file << " tensor " << t << " core 0";
      const Files all = with_node(emitted.files, file, t, data, [](const Json& a) {
        JsonObject out = a.as_object();
        for (auto& [key, value] : out) value = moved(value, 1 << 20);
        return Json(out);
      });
      EXPECT_EQ(first_wrong(emitted, all), static_cast<int>(file)) << file << " tensor " << t << " all cores";
      ++tried;
    }
  }
  EXPECT_EQ(tried, 14U);
}

TEST(CompareBundle, AWrongStrideIsAWrongNumber) {
  const Emitted emitted = emit(mlp());
  // A gap of one stick makes every step over the other dims longer.
  const Files gap = with_node(emitted.files, 0, 0, {"backGapCore_"},
                              [](const Json&) { return Json(JsonObject{{"mb", JsonObject{{"-1", "16"}}}}); });
  EXPECT_EQ(first_wrong(emitted, gap), 0);
  const Files order = with_node(emitted.files, 4, 2, {"layoutDimOrder_"},
                                [](const Json& a) { return Json(JsonArray{a.as_array()[1], a.as_array()[0]}); });
  EXPECT_EQ(first_wrong(emitted, order), 4);
}

TEST(CompareBundle, AWrongSliceIsAWrongNumber) {
  const Emitted emitted = emit(mlp());
  // Addresses say where a core's part lies, slices which part it is; a part done twice leaves another undone.
  const Json document = Json::parse(emitted.files[3].second).value();
  const auto& starts = document.as_object()[0].second["dscs_"].as_array()[0].as_object()[0].second["scheduleTree_"];
  const Json input = starts.as_array()[0]["startAddressCoreCorelet_"]["data_"]["[1, 0, 0]"];
  const Json output = starts.as_array()[1]["startAddressCoreCorelet_"]["data_"]["[1, 0, 0]"];
  Files files = with_node(emitted.files, 3, 0, {"startAddressCoreCorelet_", "data_", "[0, 0, 0]"},
                          [&](const Json&) { return input; });
  files =
      with_node(files, 3, 1, {"startAddressCoreCorelet_", "data_", "[0, 0, 0]"}, [&](const Json&) { return output; });
  EXPECT_EQ(first_wrong(emitted, files), 3);
}

TEST(CompareBundle, SeesFilesInAnotherOrder) {
  const Emitted emitted = emit(mlp());
  Files files = emitted.files;
  std::swap(files[1], files[2]);
  EXPECT_FALSE(compare_bundle(bundle_of("b", files), emitted.specs).has_value() && first_wrong(emitted, files) == -1);
}

TEST(CompareBundle, RefusesWhatItCannotRun) {
  const Emitted emitted = emit(mlp());
  std::vector<OpSpec> fewer(emitted.specs.begin(), emitted.specs.end() - 1);
  EXPECT_EQ(compare_bundle(bundle_of("b", emitted.files), fewer).error().code, ErrorCode::kSchema);
  const Bundle large = read_bundle(kRoot + "mlp_m512").value();
  EXPECT_EQ(compare_bundle(large, op_specs_of(large).value()).error().code, ErrorCode::kTooLarge);
  // Every core does all of it: what one core may do, a hundred of them may not.
  const std::string wide = "16384*c0 + c1";
  EmitOptions one_core;
  one_core.max_cores = 1;
  const Emitted relu =
      emit({testing::pointwise("relufwd", {16384, 16384},
                               {tensor("x", 0, {16384, 16384}, wide), tensor("y", 1, {16384, 16384}, wide)})},
           one_core);
  Bundle repeated = bundle_of("b", relu.files);
  SdscModel& model = repeated.entries[0].content->model;
  EXPECT_EQ(executed_points(model), std::int64_t{1} << 28);
  model.slices.assign(100, model.slices.at(0));
  EXPECT_GT(executed_points(model), kMaxExecutedPoints);
  DeviceMemory memory;
  EXPECT_EQ(execute_file(*repeated.entries[0].content, memory).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(compare_bundle(repeated, relu.specs).error().code, ErrorCode::kTooLarge);
  OpSpec unknown = testing::pointwise("softplus", {64}, {tensor("x", 0, {64}, "c0"), tensor("y", 1, {64}, "c0")});
  const Emitted other = emit({unknown});
  const auto refused = compare_bundle(bundle_of("b", other.files), other.specs);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("operation 0 (softplus)"), std::string::npos);
}

}  // namespace
}  // namespace kerntrail::spyre
