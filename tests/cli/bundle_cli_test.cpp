// Spyre bundles through the real binary: emit, info, validate, and the verbs that read captures.
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "cli_fixture.h"

namespace kerntrail {
namespace {

using testing::Outcome;

namespace fs = std::filesystem;

class BundleCli : public testing::Cli {
 protected:
  static std::string data(const std::string& name) {
    return std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/sdsc/" + name;
  }
  static std::string read(const std::string& path) {
    return base::read_file(path).value_or(std::string("cannot be read"));
  }
};

TEST_F(BundleCli, InfoExplainsAndItsSpecsGiveTheSameFilesAgain) {
  const std::string bundle = data("swiglu_decode");
  const Outcome text = run({"info", bundle});
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_EQ(text.out.rfind("bundle swiglu_decode: 9 files, in the order that bundle.mlir runs them\n"
                           "written as generation june, concrete addresses, for 32 cores\n",
                           0),
            0U)
      << text.out;
  EXPECT_NE(text.out.find("  1  sdsc_1.json  batchmatmul (matmul) on 25 cores"), std::string::npos);
  EXPECT_NE(text.out.find("handle     none"), std::string::npos);
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);
  const auto json = base::Json::parse(run({"info", bundle, "--format", "json"}).out);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["files"].as_array().size(), 9U);
  EXPECT_EQ((*json)["files"].as_array()[1]["op"].as_string(), "batchmatmul");
  ASSERT_EQ(run({"info", bundle, "--format", "specs", "-o", path("specs.json")}).exit, 0);
  const Outcome emitted = run({"emit", path("specs.json"), "-o", path("copy"), "--like", bundle});
  EXPECT_EQ(emitted.exit, 0) << emitted.err;
  for (int i = 0; i < 9; ++i) {
    const std::string name = "/sdsc_" + std::to_string(i) + ".json";
    EXPECT_EQ(read(path("copy") + name), read(bundle + name)) << name;
  }
  EXPECT_EQ(read(path("copy") + "/bundle.mlir"), read(bundle + "/bundle.mlir"));
  const Outcome again = run({"emit", path("specs.json"), "-o", path("copy")});
  EXPECT_EQ(again.exit, 2);
  EXPECT_NE(again.err.find("is a bundle already"), std::string::npos) << again.err;
  EXPECT_EQ(run({"emit", path("specs.json"), "-o", path("copy"), "--force"}).exit, 0);
}

TEST_F(BundleCli, PlannedAnewTheNumbersAreTheSame) {
  const std::string bundle = data("adds_then_matmul_512/0001_sdsc_fused_add_t_0");
  ASSERT_EQ(run({"info", bundle, "--format", "specs", "-o", path("specs.json")}).exit, 0);
  const Outcome emitted =
      run({"emit", path("specs.json"), "-o", path("eight"), "--cores", "8", "--planned", path("planned.json")});
  ASSERT_EQ(emitted.exit, 0) << emitted.err;
  const Outcome judged = run({"validate", path("eight"), "--execute", "--specs", path("planned.json")});
  EXPECT_EQ(judged.exit, 0) << judged.out << judged.err;
  EXPECT_NE(judged.out.find("every rule is kept; executed: all "), std::string::npos) << judged.out;
}

TEST_F(BundleCli, AWrongAddressIsAWrongNumberAndABrokenRuleHasItsName) {
  const std::string bundle = data("adds_then_matmul_512/0001_sdsc_fused_add_t_0");
  EXPECT_EQ(run({"validate", bundle, "--execute"}).exit, 0);
  ASSERT_EQ(run({"info", bundle, "--format", "specs", "-o", path("specs.json")}).exit, 0);
  ASSERT_EQ(run({"emit", path("specs.json"), "-o", path("b"), "--like", bundle}).exit, 0);
  const std::string file = "sdsc_1_add.json";
  // Another place for one core's part of a tensor: still a multiple of a stick, still in memory.
  std::string text = read(path("b") + "/" + file);
  const std::string key = "\"[1, 0, 0]\": \"";
  const std::size_t at = text.find(key);
  ASSERT_NE(at, std::string::npos);
  const std::size_t digits = at + key.size();
  const std::size_t end = text.find('"', digits);
  const long long moved = std::stoll(text.substr(digits, end - digits)) + 128;
  text.replace(digits, end - digits, std::to_string(moved));
  ASSERT_TRUE(base::write_file(path("b") + "/" + file, text));
  const Outcome wrong = run({"validate", path("b"), "--execute", "--specs", path("specs.json")});
  EXPECT_EQ(wrong.exit, 1) << wrong.out << wrong.err;
  EXPECT_NE(wrong.out.find(file), std::string::npos) << wrong.out;
  EXPECT_NE(wrong.out.find(" are wrong, first ["), std::string::npos) << wrong.out;
  // Not even a multiple of a stick.
  text.replace(digits, std::to_string(moved).size(), std::to_string(moved - 127));
  ASSERT_TRUE(base::write_file(path("b") + "/" + file, text));
  const Outcome ruled = run({"validate", path("b"), "--format", "json"});
  EXPECT_EQ(ruled.exit, 1);
  const auto json = base::Json::parse(ruled.out);
  ASSERT_TRUE(json);
  EXPECT_FALSE((*json)["sound"].as_bool());
  ASSERT_FALSE((*json)["findings"].as_array().empty());
  EXPECT_FALSE((*json)["findings"].as_array()[0]["rule"].as_string().empty());
  EXPECT_EQ((*json)["findings"].as_array()[0]["file"].as_string(), file);
}

TEST_F(BundleCli, VerbsOnCapturesReadABundleAndClaimNoMoreThanItSays) {
  const std::string bundle = data("adds_then_matmul_512");
  const Outcome matrix = run({"matrix", bundle});
  EXPECT_EQ(matrix.exit, 0) << matrix.err;
  EXPECT_NE(matrix.out.find("| Spyre | `debug_handle` | ✗ |"), std::string::npos) << matrix.out;
  const Outcome report = run({"report", bundle});
  EXPECT_EQ(report.exit, 0) << report.err;
  EXPECT_NE(report.out.find("5 `sdsc_*.json` files (2 kernels)"), std::string::npos) << report.out;
  EXPECT_NE(report.out.find("No compile was watched"), std::string::npos);
  EXPECT_EQ(report.out.find("Nothing was lost"), std::string::npos);
  EXPECT_EQ(report.out.find("level `borders`"), std::string::npos);
  const Outcome analysis = run({"analyse", bundle});
  EXPECT_NE(analysis.out.find("files-only"), std::string::npos);
  const Outcome gate = run({"gate", bundle, "--config", path("none.toml")});
  EXPECT_EQ(gate.exit, 3) << "never a pass";
  ASSERT_TRUE(base::write_file(path("k.toml"), "[[coverage]]\nstages = \"superdsc\"\nfields = \"*\"\nmin = 0.0\n"));
  EXPECT_EQ(run({"gate", bundle, "--config", path("k.toml")}).exit, 3);
  EXPECT_EQ(run({"verify", bundle}).exit, 3);
}

TEST_F(BundleCli, WhatCannotBeReadIsSaidWithItsPlace) {
  ASSERT_TRUE(base::write_file(path("torn") + "/sdsc_0.json", "{\"0_add\": {\"sdscFoldProps_\": ["));
  const Outcome info = run({"info", path("torn")});
  EXPECT_EQ(info.exit, 0);
  EXPECT_NE(info.out.find("sdsc_0.json  can't be read: "), std::string::npos) << info.out;
  EXPECT_EQ(run({"validate", path("torn")}).exit, 1);
  const Outcome executed = run({"validate", path("torn"), "--execute"});
  EXPECT_EQ(executed.exit, 3);
  EXPECT_NE(executed.err.find("sdsc_0.json"), std::string::npos) << executed.err;
  ASSERT_TRUE(base::write_file(path("specs.json"), "[{\"op\": 7}]"));
  const Outcome emitted = run({"emit", path("specs.json"), "-o", path("out")});
  EXPECT_EQ(emitted.exit, 3);
  EXPECT_NE(emitted.err.find("specs.json"), std::string::npos) << emitted.err;
  EXPECT_EQ(run({"emit", path("none.json"), "-o", path("out")}).exit, 3);
  EXPECT_EQ(run({"emit", path("specs.json")}).exit, 2);
  EXPECT_EQ(run({"emit", path("specs.json"), "-o", path("out"), "--cores", "many"}).exit, 2);
  ASSERT_TRUE(base::write_file(path("empty.json"), "[]"));
  EXPECT_EQ(run({"emit", path("empty.json"), "-o", path("out")}).exit, 3);
  EXPECT_EQ(run({"validate", capture(), "--execute"}).exit, 2);
  EXPECT_EQ(run({"info", capture(), "--format", "specs"}).exit, 2);
  EXPECT_EQ(run({"info", data("adds_then_matmul_512"), "--format", "json"}).exit, 2) << "two bundles";
  EXPECT_EQ(run({"info", data("adds_then_matmul_512")}).exit, 0);
}

TEST_F(BundleCli, WhatWasNotJudgedIsNotCalledSound) {
  ASSERT_TRUE(base::write_file(path("moves") + "/sdsc_0.json", R"({"0_copy": {"dataOpdscs_": [{}]}})"));
  ASSERT_TRUE(base::write_file(path("moves") + "/bundle.mlir",
                               "module {\n\tfunc.func @sdsc_bundle() {\n"
                               "\t\tsdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_0.json\"}\n\t\treturn\n\t}\n}\n"));
  const Outcome moves = run({"validate", path("moves")});
  EXPECT_EQ(moves.exit, 3) << moves.out;
  EXPECT_NE(moves.out.find("sdsc_0.json: not judged in full: 0_copy moves data only"), std::string::npos) << moves.out;
  EXPECT_NE(moves.out.find("every rule that was checked is kept; 1 not judged in full"), std::string::npos);
  const auto json = base::Json::parse(run({"validate", path("moves"), "--format", "json"}).out);
  ASSERT_TRUE(json);
  EXPECT_FALSE((*json)["sound"].as_bool(true));
  EXPECT_EQ((*json)["unjudged"].as_array().at(0)["file"].as_string(), "sdsc_0.json");
  // A program that runs nothing computes nothing right.
  ASSERT_TRUE(
      base::write_file(path("none") + "/bundle.mlir", "module {\n\tfunc.func @sdsc_bundle() {\n\t\treturn\n\t}\n}\n"));
  const Outcome none = run({"validate", path("none"), "--execute"});
  EXPECT_EQ(none.exit, 1) << none.out;
  EXPECT_NE(none.out.find("bundle.mlir: it runs no file [bundle-program]"), std::string::npos) << none.out;
}

TEST_F(BundleCli, ConstantsAreShownAsTheNumbersTheyAre) {
  const auto argument = [](const std::string& name, int number) {
    return R"({"is_input":)" + std::string(number == 0 ? "true" : "false") + R"(,"arg_index":)" +
           std::to_string(number) + R"(,"name":")" + name +
           R"(","dtype":"float16","host_size":[64],"host_stride":[1],"index":"c0","device_size":[],"stride_map":[],)"
           R"("device_coordinates":[],"memory":"hbm","base":0})";
  };
  ASSERT_TRUE(
      base::write_file(path("clip.json"), R"([{"op":"clip","is_reduction":false,"iteration_space":[["c0",64,1]],)"
                                          R"("args":[)" +
                                              argument("x", 0) + "," + argument("y", 1) +
                                              R"(],"op_info":{"constants":{"clipMin":-1.5,"clipMax":6.0}},)"
                                              R"("tiled_symbols":[],"symbolic_dim_bounds":{},"debug_handle":null}])"));
  ASSERT_EQ(run({"emit", path("clip.json"), "-o", path("clip")}).exit, 0);
  const Outcome info = run({"info", path("clip")});
  EXPECT_NE(info.out.find("clipMin = -1.5 (encoded "), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("clipMax = 6.0 (encoded "), std::string::npos) << info.out;
  EXPECT_EQ(run({"validate", path("clip")}).exit, 0);
}

TEST_F(BundleCli, FoldersAreToldApart) {
  EXPECT_NE(run({"report", data("swiglu_decode") + "/"}).out.find("# Audit: `swiglu_decode`"), std::string::npos);
  fs::create_directories(path("bare"));
  for (const char* verb : {"info", "validate", "report"}) {
    const Outcome bare = run({verb, path("bare")});
    EXPECT_EQ(bare.exit, 3) << verb;
    EXPECT_NE(bare.err.find("is a folder, neither a capture nor one with Spyre bundles"), std::string::npos)
        << bare.err;
  }
}

}  // namespace
}  // namespace kerntrail
