#include "spyre/superdsc.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "spyre/test_specs.h"
#include "spyre/validate.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using testing::Sizes;
using testing::tensor;

std::string problems(const Json& document) {
  std::string out;
  for (const Diagnostic& d : validate_superdsc(document)) out += d.code + " " + d.where + ": " + d.message + "\n";
  return out;
}

// Plans with the given splits and renders; the document is checked by the validator on the way.
Json rendered(OpSpec spec, std::int64_t ordinal, bool plan = true) {
  EmitOptions options;
  options.keep_splits = true;
  std::vector<OpSpec> specs{std::move(spec)};
  std::vector<Diagnostic> diagnostics;
  if (plan) {
    const auto planned = plan_bundle(specs, options, diagnostics);
    EXPECT_TRUE(planned) << planned.error().text();
  }
  const auto text = superdsc_json(specs[0], ordinal, options);
  EXPECT_TRUE(text) << (text ? "" : text.error().text());
  const Json document = Json::parse(text.value_or("{}")).value();
  EXPECT_EQ(document.dump(2), text.value_or("")) << "not the bytes of json.dumps(indent=2)";
  EXPECT_EQ(problems(document), "");
  return document;
}

const Json& dsc_of(const Json& document) {
  return document.as_object()[0].second["dscs_"].as_array()[0].as_object()[0].second;
}

std::vector<std::int64_t> addresses(const Json& document, std::size_t tensor_index) {
  std::vector<std::int64_t> out;
  const Json& node = dsc_of(document)["scheduleTree_"].as_array()[tensor_index];
  for (const auto& [core, value] : node["startAddressCoreCorelet_"]["data_"].as_object()) {
    out.push_back(std::stoll(std::string(value.as_string())));
  }
  return out;
}

// Of one dim of one tensor: "alphas | factors".
std::string folds(const Json& document, std::size_t tensor_index, const char* dim) {
  const Json& info = dsc_of(document)["scheduleTree_"].as_array()[tensor_index]["coordinates_"]["coordInfo"][dim];
  std::string out;
  for (const Json& f : info["folds"]["dim_prop_func"].as_array())
    out += std::to_string(f["Affine"]["alpha_"].as_int()) + " ";
  out += "|";
  for (const Json& f : info["folds"]["dim_prop_attr"].as_array()) out += " " + std::to_string(f["factor_"].as_int());
  return out;
}

OpSpec add_256_384() {
  const std::string index = "384*c0 + c1";
  OpSpec spec = testing::pointwise(
      "add", {256, 384},
      {tensor("a", 0, {256, 384}, index), tensor("b", 1, {256, 384}, index), tensor("buf0", 2, {256, 384}, index)});
  spec.iteration_space = testing::loops({256, 384}, {2, 3});
  return spec;
}

TEST(Superdsc, AddOfTwoTensors) {
  const Json document = rendered(add_256_384(), 0);
  ASSERT_EQ(document.as_object()[0].first, "0_add");
  const Json& body = document.as_object()[0].second;
  EXPECT_EQ(body.as_object()[0].first, "debug_handle_");
  EXPECT_TRUE(body["debug_handle_"].is_null());
  EXPECT_EQ(body["numCoresUsed_"].as_int(), 6);
  EXPECT_EQ(body["numWkSlicesPerDim_"].dump(), R"({"mb":2,"out":3})");
  EXPECT_EQ(
      body["coreIdToWkSlice_"].dump(),
      R"({"0":{"mb":0,"out":0},"1":{"mb":1,"out":0},"2":{"mb":0,"out":1},"3":{"mb":1,"out":1},"4":{"mb":0,"out":2},"5":{"mb":1,"out":2}})");
  const Json& dsc = dsc_of(document);
  EXPECT_EQ(dsc["N_"].dump(), R"({"name_":"n","mb_":256,"out_":384})");
  EXPECT_EQ(dsc["dataStageParam_"].dump(),
            R"({"0":{"ss_":{"name_":"core","mb_":128,"out_":128},"el_":{"name_":"core","mb_":128,"out_":128}}})");
  EXPECT_EQ(dsc["primaryDsInfo_"].dump(),
            R"({"OUTPUT":{"layoutDimOrder_":["mb","out"],"stickDimOrder_":["out"],"stickSize_":[64]}})");
  EXPECT_EQ(
      dsc["labeledDs_"].as_array()[0].dump(),
      R"({"ldsIdx_":0,"dsName_":"Tensor0","dsType_":"OUTPUT","scale_":[1,1],"wordLength":2,"dataFormat_":"SEN169_FP16",)"
      R"("memOrg_":{"hbm":{"isPresent":1},"lx":{"isPresent":1}}})");
  EXPECT_EQ(dsc["constantInfo_"].as_string(), "{}");
  EXPECT_EQ(
      dsc["computeOp_"].dump(),
      R"([{"exUnit":"sfp","opFuncName":"add","attributes_":{"dataFormat_":"SEN169_FP16","fidelity_":"regular"},"location":"Inner",)"
      R"("inputLabeledDs":["Tensor0-idx0","Tensor1-idx1"],"outputLabeledDs":["Tensor2-idx2"]}])");
  const std::vector<std::int64_t> steps{0, 16384, 65536, 81920, 131072, 147456};
  for (std::size_t t = 0; t < 3; ++t) {
    std::vector<std::int64_t> expected = steps;
    for (std::int64_t& address : expected) address += static_cast<std::int64_t>(t) * kSegmentBytes;
    EXPECT_EQ(addresses(document, t), expected);
    EXPECT_EQ(folds(document, t, "mb"), "128 0 0 1 | 2 1 1 128");
    EXPECT_EQ(folds(document, t, "out"), "128 0 0 64 1 | 3 1 1 2 64");
  }
}

OpSpec matmul_128_192_256(Sizes splits) {
  OpSpec spec = testing::matmul(128, 192, 256, tensor("x", 0, {128, 256}, ""), "y", 1, false,
                                tensor("buf0", 2, {128, 192}, "192*c0 + c1"));
  spec.iteration_space = testing::loops({128, 192, 256}, splits);
  return spec;
}

TEST(Superdsc, Batchmatmul) {
  const Json document = rendered(matmul_128_192_256({4, 3, 1}), 1);
  ASSERT_EQ(document.as_object()[0].first, "1_batchmatmul");
  const Json& dsc = dsc_of(document);
  EXPECT_EQ(dsc["N_"].dump(), R"({"name_":"n","mb_":128,"out_":192,"in_":256})");
  EXPECT_EQ(dsc["dataStageParam_"]["0"]["ss_"].dump(), R"({"name_":"core","mb_":32,"out_":64,"in_":256})");
  EXPECT_EQ(document.as_object()[0].second["numWkSlicesPerDim_"].dump(), R"({"mb":4,"out":3,"in":1})");
  EXPECT_EQ(dsc["primaryDsInfo_"].dump(),
            R"({"INPUT":{"layoutDimOrder_":["mb","in"],"stickDimOrder_":["in"],"stickSize_":[64]},)"
            R"("KERNEL":{"layoutDimOrder_":["in","out"],"stickDimOrder_":["out"],"stickSize_":[64]},)"
            R"("OUTPUT":{"layoutDimOrder_":["mb","out"],"stickDimOrder_":["out"],"stickSize_":[64]}})");
  EXPECT_EQ(dsc["computeOp_"].as_array()[0]["exUnit"].as_string(), "pt");
  std::vector<std::int64_t> x, y, result;
  for (std::int64_t core = 0; core < 12; ++core) {
    x.push_back(core % 4 * 4096);
    y.push_back(kSegmentBytes + core / 4 * 32768);
    result.push_back(2 * kSegmentBytes + core * 4096);
  }
  EXPECT_EQ(addresses(document, 0), x);
  EXPECT_EQ(addresses(document, 1), y);
  EXPECT_EQ(addresses(document, 2), result);
  EXPECT_EQ(folds(document, 0, "mb"), "32 0 0 1 | 4 1 1 32");
  EXPECT_EQ(folds(document, 0, "in"), "256 0 0 64 1 | 1 1 1 4 64");
}

TEST(Superdsc, CoresThatAddUpAProductAreNeighbours) {
  const Json document = rendered(matmul_128_192_256({4, 3, 2}), 0);
  const Json& map = document.as_object()[0].second["coreIdToWkSlice_"];
  EXPECT_EQ(map["0"].dump(), R"({"mb":0,"out":0,"in":0})");
  EXPECT_EQ(map["1"].dump(), R"({"mb":0,"out":0,"in":1})");
  EXPECT_EQ(map["2"].dump(), R"({"mb":1,"out":0,"in":0})");
  const Json small = rendered(matmul_128_192_256({2, 1, 2}), 0);
  EXPECT_EQ(small.as_object()[0].second["coreIdToWkSlice_"]["3"].dump(), R"({"mb":1,"out":0,"in":1})");
  // splits mb 2, out 2, in 2: core 5 has in 1, mb 0, out 1
  OpSpec square = testing::matmul(128, 128, 256, tensor("x", 0, {128, 256}, ""), "y", 1, false,
                                  tensor("buf0", 2, {128, 128}, "128*c0 + c1"));
  square.iteration_space = testing::loops({128, 128, 256}, {2, 2, 2});
  EXPECT_EQ(rendered(square, 0).as_object()[0].second["coreIdToWkSlice_"]["5"].dump(), R"({"mb":0,"out":1,"in":1})");
}

TEST(Superdsc, BiasIsBroadcastOverTheRows) {
  OpSpec spec = testing::pointwise("add", {256, 384},
                                   {tensor("bias", 0, {384}, "c1"), tensor("x", 1, {256, 384}, "384*c0 + c1"),
                                    tensor("buf0", 2, {256, 384}, "384*c0 + c1")});
  spec.iteration_space = testing::loops({256, 384}, {2, 3});
  const Json document = rendered(spec, 0);
  const Json& dsc = dsc_of(document);
  EXPECT_EQ(dsc["scheduleTree_"].as_array()[0]["layoutDimOrder_"].dump(), R"(["out","mb"])");
  EXPECT_EQ(dsc["labeledDs_"].as_array()[0]["scale_"].dump(), "[1,-1]");
  EXPECT_EQ(dsc["labeledDs_"].as_array()[1]["dsType_"].as_string(), "OUTPUT");
  EXPECT_EQ(dsc["labeledDs_"].as_array()[1]["scale_"].dump(), "[1,1]");
  EXPECT_EQ(dsc["primaryDsInfo_"].as_object().size(), 1U);
  EXPECT_EQ(folds(document, 0, "mb"), "1 0 0 1 | 1 1 1 1");
  const std::vector<std::int64_t> expected{0, 0, 256, 256, 512, 512};
  EXPECT_EQ(addresses(document, 0), expected);
}

TEST(Superdsc, AScalarIsSparse) {
  OpSpec spec = testing::pointwise("mul", {256, 384},
                                   {tensor("x", 0, {256, 384}, "384*c0 + c1"), tensor("two", 1, {1}, "0"),
                                    tensor("buf0", 2, {256, 384}, "384*c0 + c1")});
  const Json document = rendered(spec, 0);
  const Json& dsc = dsc_of(document);
  EXPECT_EQ(dsc["labeledDs_"].as_array()[1]["scale_"].dump(), "[-1,-2]");
  EXPECT_EQ(folds(document, 1, "out"), "64 0 0 64 0 | 1 1 1 1 64");
  EXPECT_EQ(dsc["scheduleTree_"].as_array()[1]["layoutDimOrder_"].dump(), R"(["out","mb"])");
}

std::string labels(const OpSpec& spec) { return dsc_of(rendered(spec, 0))["N_"].dump(); }

TEST(Superdsc, LabelsFollowThePosition) {
  const auto relu = [](const Sizes& size) {
    const std::string index = testing::contiguous_index(size);
    return testing::pointwise("relufwd", size, {tensor("x", 0, size, index), tensor("buf0", 1, size, index)});
  };
  EXPECT_EQ(labels(relu({128})), R"({"name_":"n","out_":128})");
  EXPECT_EQ(labels(relu({3, 128})), R"({"name_":"n","mb_":3,"out_":128})");
  EXPECT_EQ(labels(relu({2, 3, 128})), R"({"name_":"n","mb_":2,"x_":3,"out_":128})");
  EXPECT_EQ(labels(relu({2, 3, 5, 128})), R"({"name_":"n","mb_":2,"x_":3,"y_":5,"out_":128})");
  // Loops of one iteration are dropped, the last stick is filled up, and a dim is left even where no loop is.
  EXPECT_EQ(labels(relu({1, 128})), R"({"name_":"n","out_":128})");
  EXPECT_EQ(labels(relu({10, 100})), R"({"name_":"n","mb_":10,"out_":128})");
  EXPECT_EQ(labels(relu({10, 1})), R"({"name_":"n","mb_":10,"out_":64})");
  EXPECT_EQ(labels(relu({1, 1})), R"({"name_":"n","out_":64})");
  EXPECT_EQ(labels(relu({})), R"({"name_":"n","out_":64})");
}

TEST(Superdsc, ABatchOfProducts) {
  OpSpec spec;
  spec.op = "batchmatmul";
  spec.is_reduction = true;
  spec.iteration_space = testing::loops({4, 32, 64, 128});
  spec.args = {tensor("x", 0, {4, 32, 128}, "4096*c0 + 128*c1 + c3"),
               tensor("y", 1, {4, 128, 64}, "8192*c0 + c2 + 64*c3"),
               testing::output(tensor("buf0", 2, {4, 32, 64}, "2048*c0 + 64*c1 + c2"))};
  EXPECT_EQ(labels(spec), R"({"name_":"n","x_":4,"mb_":32,"out_":64,"in_":128})");
}

TEST(Superdsc, OddSizesOfAProduct) {
  OpSpec spec = testing::matmul(10, 70, 100, tensor("x", 0, {10, 100}, ""), "w", 1, true,
                                tensor("buf0", 2, {10, 70}, "70*c0 + c1"));
  EXPECT_EQ(labels(spec), R"({"name_":"n","mb_":10,"out_":128,"in_":128})");
  // One output feature: N has no loop variable, but still a stick.
  spec = testing::matmul(10, 1, 100, tensor("x", 0, {10, 100}, ""), "w", 1, true, tensor("buf0", 2, {10, 1}, "c0"));
  EXPECT_EQ(labels(spec), R"({"name_":"n","mb_":10,"out_":64,"in_":128})");
  spec = testing::matmul(1, 1, 100, tensor("x", 0, {1, 100}, ""), "w", 1, true, tensor("buf0", 2, {1, 1}, "0"));
  EXPECT_EQ(labels(spec), R"({"name_":"n","out_":64,"in_":128})");
}

TEST(Superdsc, ConversionsFillTheLargerStick) {
  OpSpec spec = testing::pointwise(
      "fp32todl16", {10, 20},
      {tensor("x", 0, {10, 20}, "20*c0 + c1", DType::kFloat32), tensor("buf0", 1, {10, 20}, "20*c0 + c1")});
  const Json document = rendered(spec, 0);
  EXPECT_EQ(dsc_of(document)["N_"].dump(), R"({"name_":"n","mb_":10,"out_":64})");
  EXPECT_EQ(folds(document, 0, "out"), "64 0 0 32 1 | 1 1 1 2 32");
  EXPECT_EQ(folds(document, 1, "out"), "64 0 0 64 1 | 1 1 1 1 64");
  spec = testing::pointwise("dl16tofp32", {70},
                            {tensor("x", 0, {70}, "c0"), tensor("buf0", 1, {70}, "c0", DType::kFloat32)});
  EXPECT_EQ(dsc_of(rendered(spec, 0))["N_"].dump(), R"({"name_":"n","mb_":1,"out_":128})");
}

TEST(Superdsc, ConstantsAreEncoded) {
  OpSpec spec = add_256_384();
  spec.op = "clip";
  spec.args.erase(spec.args.begin());
  spec.args[0].arg_index = 0;
  spec.args[1].arg_index = 1;
  spec.op_info = JsonObject{{"constants", JsonObject{{"clipMin", -1}, {"clipMax", 1.5}}}};
  const Json constants = dsc_of(rendered(spec, 0))["constantInfo_"];
  EXPECT_EQ(constants["0"]["name_"].as_string(), "clipMin");
  EXPECT_EQ(constants["0"]["data_"]["data_"]["[0, 0, 0]"].dump(), "[48640]");
  EXPECT_EQ(constants["1"]["data_"]["data_"]["[0, 0, 0]"].dump(), "[16128]");
  spec.op_info = JsonObject{{"constants", JsonObject{{"clipMin", "low"}}}};
  EXPECT_EQ(superdsc_json(spec, 0, {}).error().code, ErrorCode::kSchema);
}

TEST(Superdsc, CarriesTheHandle) {
  OpSpec spec = add_256_384();
  DebugHandle handle;
  handle.id = 605170506422197115U;
  handle.aten_op = "aten.addmm.default";
  handle.ir_chain = {"add_tensor_1", "buf1"};
  spec.debug_handle = handle;
  const Json document = rendered(spec, 0);
  EXPECT_EQ(document.as_object()[0].second["debug_handle_"], handle_to_json(handle));
}

TEST(Superdsc, WritesTheHistoryInItsGenerationOnly) {
  std::vector<OpSpec> specs{add_256_384()};
  DebugHandle handle;
  handle.transform_history.emplace(1, ProvenanceTransform{"rewrite", "p", std::nullopt});
  handle.fused_from.resize(2);
  specs[0].debug_handle = handle;
  std::vector<Diagnostic> diagnostics;
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
  const auto written = [&](Generation generation) {
    EmitOptions options;
    options.generation = generation;
    return Json::parse(superdsc_json(specs[0], 0, options).value()).value().as_object()[0].second["debug_handle_"];
  };
  const Json july = written(Generation::kJuly), later = written(Generation::kJulyTransform);
  EXPECT_EQ(july.find("transform_history"), nullptr);
  EXPECT_EQ(july["fused_from"].as_array()[0].find("transform_history"), nullptr);
  EXPECT_EQ(later["transform_history"].as_array().size(), 1U);
  EXPECT_EQ(later["fused_from"].as_array()[1]["transform_history"].dump(), "[]");
  EXPECT_EQ(generation_of(specs), Generation::kJulyTransform);
  specs[0].debug_handle->transform_history.reset();
  EXPECT_EQ(generation_of(specs), Generation::kJuly);
  specs[0].debug_handle.reset();
  EXPECT_EQ(generation_of(specs), Generation::kJuly);
}

TEST(Superdsc, RefusesWhatItDoesNotWrite) {
  OpSpec spec = add_256_384();
  std::vector<OpSpec> specs{spec};
  std::vector<Diagnostic> diagnostics;
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
  const auto code = [&](const EmitOptions& options) { return superdsc_json(specs[0], 0, options).error().code; };
  EmitOptions options;
  options.address_mode = AddressMode::kSymbolic;
  EXPECT_EQ(code(options), ErrorCode::kUnsupported);
  options = {};
  options.max_cores = 4;
  EXPECT_EQ(code(options), ErrorCode::kSchema);
  EXPECT_EQ(superdsc_json(spec, 0, {}).error().code, ErrorCode::kSchema);  // not planned

  OpSpec broken = specs[0];
  broken.args[0].base = 64;
  EXPECT_EQ(superdsc_json(broken, 0, {}).error().code, ErrorCode::kSchema);
  broken = specs[0];
  broken.args[0].device_coordinates[1] = "2*c0";
  EXPECT_EQ(superdsc_json(broken, 0, {}).error().code, ErrorCode::kUnsupported);
  broken = specs[0];
  broken.args[0].device_coordinates.back() = "Mod(c1, 32)";
  EXPECT_EQ(superdsc_json(broken, 0, {}).error().code, ErrorCode::kUnsupported);
  broken = specs[0];
  broken.iteration_space[1].split = 4;  // six sticks
  EXPECT_EQ(superdsc_json(broken, 0, {}).error().code, ErrorCode::kSchema);
  broken = specs[0];
  broken.op = "sum";
  broken.is_reduction = true;
  EXPECT_EQ(superdsc_json(broken, 0, {}).error().code, ErrorCode::kUnsupported);
}

// --- Public files
// -----------------------------------------------------------------------------------------------------

TensorArg placed(Sizes device_size, std::vector<std::string> coordinates, std::int64_t base) {
  TensorArg arg;
  arg.name = "t";
  arg.dtype = DType::kFloat16;
  arg.layout.stride_map.assign(device_size.size(), -1);
  arg.layout.device_size = std::move(device_size);
  arg.device_coordinates = std::move(coordinates);
  arg.base = base;
  return arg;
}

OpSpec placed_spec(std::string op, std::vector<IterDim> space, std::vector<TensorArg> args) {
  OpSpec spec;
  spec.op = std::move(op);
  spec.is_reduction = spec.op == "batchmatmul";
  spec.iteration_space = std::move(space);
  spec.args = std::move(args);
  spec.args.back().is_input = false;
  return spec;
}

// Takes away what older generations do not have.
Json without(const Json& json, const std::vector<std::string>& keys) {
  if (json.is_array()) {
    JsonArray out;
    for (const Json& item : json.as_array()) out.push_back(without(item, keys));
    return out;
  }
  if (!json.is_object()) return json;
  JsonObject out;
  for (const auto& [key, value] : json.as_object()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) out.emplace_back(key, without(value, keys));
  }
  return out;
}

struct PublicFile {
  const char* path;
  std::int64_t ordinal;
  OpSpec spec;
};

std::vector<PublicFile> public_files() {
  constexpr std::int64_t kG = kSegmentBytes;
  const std::vector<std::string> rows{"floor(c1/64)", "c0", "Mod(c1, 64)"};
  const std::vector<std::string> columns{"floor(c0/64)", "c1", "Mod(c0, 64)"};
  const std::vector<std::string> flat{"floor(c0/64)", "Mod(c0, 64)"};
  const std::vector<std::string> upper{"floor(c0/64) + 200", "Mod(c0, 64)"};
  const Sizes square{8, 512, 64};
  std::vector<PublicFile> files;
  files.push_back({"mlp_m512/sdsc_0_batchmatmul.json", 0,
                   placed_spec("batchmatmul", {{"c0", 512, 32}, {"c1", 12800, 1}, {"c2", 4096, 1}},
                               {placed({512, 64, 1, 64}, {"c0", "floor(c2/64)", "0", "Mod(c2, 64)"}, 0),
                                placed({200, 4096, 64}, {"floor(c1/64)", "c2", "Mod(c1, 64)"}, kG),
                                placed({512, 200, 1, 64}, {"c0", "floor(c1/64)", "0", "Mod(c1, 64)"}, 2 * kG)})});
  files.back().spec.op_info = JsonObject{{"shared_weight_unit_bmm", true}};
  files.push_back(
      {"adds_then_matmul_512/0001_sdsc_fused_add_t_0/sdsc_1_add.json", 1,
       placed_spec("add", {{"c0", 512, 1}, {"c1", 512, 32}},
                   {placed(square, columns, 3 * kG), placed(square, columns, kG), placed(square, columns, 4 * kG)})});
  files.push_back({"adds_then_matmul_512/0001_sdsc_fused_add_t_0/sdsc_0_ReStickifyOpHBM.json", 0,
                   placed_spec("ReStickifyOpHBM", {{"c0", 512, 8}, {"c1", 512, 4}},
                               {placed(square, rows, 0), placed(square, columns, 3 * kG)})});
  files.push_back(
      {"adds_then_matmul_512/0002_sdsc_fused_mm_1/sdsc_0_batchmatmul.json", 0,
       placed_spec("batchmatmul", {{"c0", 512, 32}, {"c1", 512, 1}, {"c2", 512, 1}},
                   {placed(square, {"floor(c2/64)", "c0", "Mod(c2, 64)"}, 0),
                    placed(square, {"floor(c1/64)", "c2", "Mod(c1, 64)"}, kG), placed(square, rows, 2 * kG)})});
  files.push_back(
      {"swiglu_decode/sdsc_2.json", 2,
       placed_spec("neg", {{"c0", 12800, 25}}, {placed({400, 64}, flat, 209715200), placed({200, 64}, flat, 0)})});
  files.push_back(
      {"swiglu_decode/sdsc_4.json", 4,
       placed_spec("add", {{"c0", 12800, 25}},
                   {placed({200, 64}, flat, 0), placed({1, 64}, {"0", "0"}, 3 * kG), placed({200, 64}, flat, 0)})});
  files.push_back(
      {"swiglu_decode/sdsc_5.json", 5,
       placed_spec("realdiv", {{"c0", 12800, 25}},
                   {placed({400, 64}, flat, 209715200), placed({200, 64}, flat, 0), placed({200, 64}, flat, 25600)})});
  // The second half of a tensor twice as long.
  files.push_back(
      {"swiglu_decode/sdsc_6.json", 6,
       placed_spec("mul", {{"c0", 12800, 25}},
                   {placed({200, 64}, flat, 25600), placed({400, 64}, upper, 209715200), placed({200, 64}, flat, 0)})});
  files.push_back({"swiglu_decode/sdsc_8.json", 8,
                   placed_spec("batchmatmul", {{"c1", 4096, 32}, {"c2", 12800, 1}},
                               {placed({200, 1, 64}, {"floor(c2/64)", "0", "Mod(c2, 64)"}, 0),
                                placed({64, 12800, 64}, {"floor(c1/64)", "c2", "Mod(c1, 64)"}, 51200),
                                placed({64, 1, 64}, {"floor(c1/64)", "0", "Mod(c1, 64)"}, 5 * kG)})});
  files[5].spec.args[2].memory = Memory::kLx;
  files[5].spec.args[0].memory = Memory::kLx;
  files[6].spec.args[1].memory = Memory::kLx;
  return files;
}

TEST(Superdsc, WritesPublicFilesAgain) {
  const std::string root = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/sdsc/";
  for (const PublicFile& file : public_files()) {
    SCOPED_TRACE(file.path);
    const Json theirs = Json::parse(base::read_file(root + file.path).value()).value();
    const Json ours = rendered(file.spec, file.ordinal, false);
    const std::vector<std::string> newer{"debug_handle_", "indirectAllocType_"};
    // The dump keeps the order of keys, so equal text is equal order too.
    EXPECT_EQ(without(ours, newer).dump(2), without(theirs, newer).dump(2));
    EXPECT_EQ(problems(theirs), "");
  }
}

}  // namespace
}  // namespace kerntrail::spyre
