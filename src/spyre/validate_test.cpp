#include "spyre/validate.h"

#include <algorithm>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "base/files.h"
#include "spyre/bundle.h"
#include "spyre/bundle_reader.h"
#include "spyre/test_specs.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using testing::changed;
using testing::tensor;

Json valid_document() {
  OpSpec spec = testing::matmul(128, 192, 256, tensor("x", 0, {128, 256}, ""), "w", 1, true,
                                tensor("buf0", 2, {128, 192}, "192*c0 + c1"));
  spec.debug_handle = DebugHandle{};
  std::vector<Diagnostic> diagnostics;
  return Json::parse(render_bundle({spec}, {}, diagnostics).value()[0].content).value();
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
  EXPECT_TRUE(reports(address, "100", "sdsc-alignment", true));
  EXPECT_TRUE(reports(address, "-1", "sdsc-address", true));
  EXPECT_TRUE(reports(address, "0x80", "sdsc-address", true));
  EXPECT_TRUE(reports(address, std::to_string(2 * kSegmentBytes), "sdsc-regions", true));  // two cores, one place
  EXPECT_TRUE(reports({"scheduleTree_", "1", "component_"}, "lx", "sdsc-lx-limit", true));  // behind the scratchpad
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

// --- A damaged file for each rule ------------------------------------------------------------------------------------

const std::string kRoot = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/sdsc/";
using Path = std::vector<std::string>;

// One member of one file of a good bundle takes another value; a path into a missing member adds it.
struct Damage {
  const char* code;
  const char* file;
  Path path;  // below the document's key; "*" leads into its only operation
  Json value;
};

std::vector<Damage> damages() {
  const Path node0{"*", "scheduleTree_", "0"}, node1{"*", "scheduleTree_", "1"}, node2{"*", "scheduleTree_", "2"};
  const auto under = [](Path path, const Path& more) {
    path.insert(path.end(), more.begin(), more.end());
    return path;
  };
  const Path start{"startAddressCoreCorelet_", "data_"};
  const Path out_folds{"coordinates_", "coordInfo", "out", "folds", "dim_prop_attr"};
  const char* neg = "sdsc_2.json";  // from HBM to HBM, 25 cores, a gap
  const char* add = "sdsc_4.json";  // LX, a scalar in HBM, LX
  const char* bmm = "sdsc_8.json";
  JsonObject everywhere;
  for (int core = 0; core < 25; ++core) everywhere.emplace_back("[" + std::to_string(core) + ", 0, 0]", "1624960");
  return {
      {"sdsc-shape", neg, {"*", "constantInfo_"}, "none"},
      {"sdsc-shape", neg, under(node0, {"component_"}), "dram"},
      {"sdsc-one-dsc", neg, {"dataOpdscs_"}, JsonArray{}},
      {"sdsc-handle", neg, {"debug_handle_"}, 7},
      {"sdsc-handle-first", neg, {"debug_handle_"}, Json()},
      {"sdsc-cores", neg, {"numCoresUsed_"}, 24},
      {"sdsc-cores", neg, {"*", "coreIdsUsed_", "3"}, 4},
      {"sdsc-core-slices", neg, {"coreIdToWkSlice_", "3", "out"}, 2},
      {"sdsc-core-slices", neg, {"coreIdToWkSlice_", "3", "out"}, 25},
      {"sdsc-dims", neg, {"*", "N_", "mb_"}, 1},
      {"sdsc-dims", neg, {"*", "primaryDsInfo_", "OUTPUT", "layoutDimOrder_", "0"}, "mb"},
      {"sdsc-sizes", neg, {"*", "dataStageParam_", "0", "ss_", "out_"}, 500},
      {"sdsc-sizes", neg, {"*", "primaryDsInfo_", "OUTPUT", "stickSize_", "0"}, 100},
      {"sdsc-masking", neg, {"*", "maskingConstId_"}, 0},
      {"sdsc-constants", neg, {"*", "coordinateMasking_"}, JsonObject{{"out", JsonArray{JsonArray{12700, 100}}}}},
      {"sdsc-labels", neg, {"*", "labeledDs_", "1", "dsType_"}, "OTHER"},
      {"sdsc-labels", neg, {"*", "labeledDs_", "1", "scale_"}, JsonArray{1, 1}},
      {"sdsc-names", neg, {"*", "labeledDs_", "1", "dsName_"}, "Tensor7"},
      {"sdsc-names", neg, under(node1, {"name_"}), "allocate-Tensor1_lx"},
      {"sdsc-enum", neg, {"*", "labeledDs_", "0", "dataFormat_"}, "FLOAT"},
      {"sdsc-enum", neg, {"*", "computeOp_", "0", "attributes_", "fidelity_"}, "slow"},
      {"sdsc-enum", neg, {"*", "computeOp_", "0", "exUnit"}, "gpu"},
      {"sdsc-enum", neg, under(node0, {"coordinates_", "coordInfo", "out", "padding"}), "pad"},
      {"sdsc-word-length", neg, {"*", "labeledDs_", "0", "wordLength"}, 4},
      {"sdsc-tensors", neg, under(node0, {"maxDimSizes_"}), JsonArray{}},
      {"sdsc-folds", neg, under(node0, {"coordinates_", "coordInfo", "out", "elemArr"}), 1},
      {"sdsc-fold-sizes", neg, under(node0, under(out_folds, {"0", "factor_"})), 5},
      {"sdsc-gap", neg, under(node0, {"backGapCore_", "out", "-1"}), "12801"},
      {"sdsc-compute", neg, {"*", "computeOp_", "0", "inputLabeledDs", "0"}, "Tensor9-idx9"},
      {"sdsc-address", neg, under(node0, under(start, {"[3, 0, 0]"})), "-5"},
      {"sdsc-alignment", neg, under(node0, under(start, {"[3, 0, 0]"})), "209718273"},
      {"sdsc-address-rule", neg, under(node0, under(start, {"[3, 0, 0]"})), "209718400"},
      {"sdsc-address-rule", bmm, under(node1, under(start, {"[0, 0, 0]"})), "51328"},
      {"sdsc-lx-cores", add, under(node0, under(start, {"[3, 0, 0]"})), "128"},
      {"sdsc-lx-limit", add, under(node0, start), everywhere},
      {"sdsc-regions", neg, under(node1, under(start, {"[3, 0, 0]"})), "2048"},
      {"sdsc-regions", neg, under(node1, under(start, {"[3, 0, 0]"})), "3200"},
      {"bundle-lx-unwritten", add, under(node0, {"*lx"}), 0},
      {"bundle-overlap", neg, under(node1, {"*all"}), 209715200},
  };
}

// "*" leads into the operation; "*lx" and "*all" move every address of a node.
Json damaged(const Json& document, const Damage& damage) {
  const std::string key = document.as_object()[0].first;
  Path path{key};
  for (const std::string& step : damage.path) {
    if (step == "*") {
      const std::string op = document.as_object()[0].second["dscs_"].as_array()[0].as_object()[0].first;
      path.insert(path.end(), {"dscs_", "0", op});
    } else {
      path.push_back(step);
    }
  }
  const std::string last = path.back();
  if (last != "*lx" && last != "*all") return changed(document, path, [&](const Json&) { return damage.value; });
  path.pop_back();
  path.insert(path.end(), {"startAddressCoreCorelet_", "data_"});
  return changed(document, path, [&](const Json& data) {
    JsonObject out = data.as_object();
    const std::int64_t first = std::stoll(std::string(out[0].second.as_string()));
    const std::int64_t to = last == "*lx" ? first + 4096 : damage.value.as_int();
    for (auto& [core, value] : out) value = std::to_string(std::stoll(std::string(value.as_string())) - first + to);
    return Json(out);
  });
}

std::vector<std::pair<std::string, std::string>> swiglu_files() {
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < 9; ++i) {
    const std::string name = "sdsc_" + std::to_string(i) + ".json";
    files.emplace_back(name, base::read_file(kRoot + "swiglu_decode/" + name).value());
  }
  files.emplace_back("bundle.mlir", base::read_file(kRoot + "swiglu_decode/bundle.mlir").value());
  return files;
}

std::string text_of(const std::vector<BundleFinding>& findings) {
  std::string out;
  for (const BundleFinding& f : findings)
    out += f.file + " " + f.found.where + " " + f.found.code + ": " + f.found.message + "\n";
  return out;
}

bool finds(const std::vector<BundleFinding>& findings, std::string_view file, std::string_view code) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const BundleFinding& f) { return f.file == file && f.found.code == code; });
}

std::vector<BundleFinding> findings_with(std::size_t file,
                                         const std::function<std::string(const std::string&)>& change) {
  auto files = swiglu_files();
  files.at(file).second = change(files.at(file).second);
  return validate_bundle(bundle_of("swiglu_decode", files));
}

TEST(ValidateBundle, AcceptsEveryPublicBundle) {
  for (const char* folder : {"mlp_m512", "adds_then_matmul_512/0001_sdsc_fused_add_t_0",
                             "adds_then_matmul_512/0002_sdsc_fused_mm_1", "swiglu_decode"}) {
    EXPECT_EQ(text_of(validate_bundle(read_bundle(kRoot + folder).value())), "") << folder;
  }
}

// Each rule, with at least one damaged file that it names.
TEST(ValidateBundle, EveryRuleNamesADamagedFile) {
  std::set<std::string> seen;
  for (const Damage& damage : damages()) {
    auto files = swiglu_files();
    for (auto& [name, text] : files) {
      if (name == damage.file) text = damaged(Json::parse(text).value(), damage).dump(2);
    }
    const auto found = validate_bundle(bundle_of("swiglu_decode", files));
    EXPECT_TRUE(finds(found, damage.file, damage.code)) << damage.code << "\n" << text_of(found);
    seen.insert(damage.code);
  }
  const auto replace = [](std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  };
  const auto expect = [&](const std::vector<BundleFinding>& found, const char* file, const char* code) {
    EXPECT_TRUE(finds(found, file, code)) << code << "\n" << text_of(found);
    seen.insert(code);
  };
  const auto text_damage = [&](std::size_t file, const std::string& from, const std::string& to) {
    return findings_with(file, [&](const std::string& text) { return replace(text, from, to); });
  };
  expect(text_damage(2, "\"2_neg\"", "\"neg\""), "sdsc_2.json", "sdsc-top-key");
  expect(text_damage(2, "\"2_neg\"", "\"3_neg\""), "sdsc_2.json", "bundle-order");
  expect(text_damage(2, "\"2_neg\"", "\"3_neg\""), "sdsc_2.json", "bundle-file-name");
  expect(text_damage(2, "\"indirectAllocType_\": \"no_indirection\",", ""), "sdsc_2.json", "bundle-generation");
  expect(text_damage(9, "sdsc_8.json", "../sdsc_8.json"), "bundle.mlir", "bundle-program");
  expect(findings_with(2, [](const std::string& text) { return text.substr(0, 2000); }), "sdsc_2.json",
         "bundle-unreadable");
  const auto segment = findings_with(3, [&](const std::string& text) {
    Damage damage{"", "", {"*", "scheduleTree_", "0", "*all"}, kSegmentBytes - 128};
    return damaged(Json::parse(text).value(), damage).dump(2);
  });
  expect(segment, "sdsc_3.json", "sdsc-segment");
  auto adds = read_bundle(kRoot + "adds_then_matmul_512/0001_sdsc_fused_add_t_0").value();
  std::string text = adds.entries[0].text;
  // mb 8, out 4: cores 1 and 8 change their slices.
  Json document = Json::parse(text).value();
  const Path map{"0_ReStickifyOpHBM", "coreIdToWkSlice_"};
  const Json one = document.as_object()[0].second["coreIdToWkSlice_"]["1"];
  const Json eight = document.as_object()[0].second["coreIdToWkSlice_"]["8"];
  document = changed(document, {map[0], map[1], "1"}, [&](const Json&) { return eight; });
  document = changed(document, {map[0], map[1], "8"}, [&](const Json&) { return one; });
  expect(validate_bundle(bundle_of("b", {{"sdsc_0.json", document.dump(2)}})), "sdsc_0.json", "sdsc-core-map");
  adds.unlisted.push_back("sdsc_9.json");
  expect(validate_bundle(adds), "sdsc_9.json", "bundle-unlisted");
  for (const ValidationRule& rule : validation_rules()) {
    EXPECT_EQ(seen.count(std::string(rule.code)), 1U) << rule.code << " has no damaged file";
    EXPECT_FALSE(rule.text.empty());
    seen.erase(std::string(rule.code));
  }
  EXPECT_TRUE(seen.empty()) << *seen.begin() << " is no rule";
}

}  // namespace
}  // namespace kerntrail::spyre
