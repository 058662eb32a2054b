#include "spyre/bundle.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "spyre/superdsc.h"
#include "spyre/test_specs.h"

namespace kerntrail::spyre {
namespace {

using testing::pointwise;
using testing::tensor;

std::vector<OpSpec> two_ops() {
  const std::string index = "64*c0 + c1";
  return {
      pointwise("add", {4, 64},
                {tensor("x", 0, {4, 64}, index), tensor("y", 1, {4, 64}, index), tensor("buf0", -1, {4, 64}, index)}),
      pointwise("relufwd", {4, 64}, {tensor("buf0", -1, {4, 64}, index), tensor("buf1", 2, {4, 64}, index)})};
}

TEST(RenderBundle, ListsTheFilesInOrder) {
  std::vector<Diagnostic> diagnostics;
  const std::vector<BundleFile> files = render_bundle(two_ops(), {}, diagnostics).value();
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].name, "sdsc_0.json");
  EXPECT_EQ(files[1].name, "sdsc_1.json");
  EXPECT_EQ(files[2].name, "bundle.mlir");
  EXPECT_EQ(files[2].content,
            "module {\n\tfunc.func @sdsc_bundle() {\n"
            "\t\tsdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_0.json\"}\n"
            "\t\tsdscbundle.sdsc_execute () {sdsc_filename=\"sdsc_1.json\"}\n\t\treturn\n\t}\n}\n");
  EXPECT_EQ(files[0].content.rfind("{\n  \"0_add\": {\n    \"debug_handle_\": null,\n    \"sdscFoldProps_\": [", 0),
            0U);
  EXPECT_EQ(files[0].content.back(), '}');
}

TEST(RenderBundle, WritesThePublicBundleFileAgain) {
  std::vector<OpSpec> nine;
  for (int i = 0; i < 9; ++i) {
    const std::string n = std::to_string(i);
    nine.push_back(
        pointwise("neg", {64}, {tensor("x" + n, 2 * i, {64}, "c0"), tensor("y" + n, 2 * i + 1, {64}, "c0")}));
  }
  std::vector<Diagnostic> diagnostics;
  const auto files = render_bundle(nine, {}, diagnostics).value();
  const std::string path = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/sdsc/swiglu_decode/bundle.mlir";
  EXPECT_EQ(files.back().content, base::read_file(path).value());
}

TEST(RenderBundle, GivesTheSameBytesTwice) {
  std::vector<Diagnostic> diagnostics;
  EXPECT_EQ(render_bundle(two_ops(), {}, diagnostics).value(), render_bundle(two_ops(), {}, diagnostics).value());
}

TEST(WriteBundle, WritesWhatItRenders) {
  const std::string directory = ::testing::TempDir() + "kerntrail_bundle_test/deep";
  std::filesystem::remove_all(directory);
  std::vector<Diagnostic> diagnostics;
  const auto names = write_bundle(directory, two_ops(), {}, diagnostics);
  ASSERT_TRUE(names) << names.error().text();
  const auto files = render_bundle(two_ops(), {}, diagnostics).value();
  ASSERT_EQ(names->size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ((*names)[i], files[i].name);
    EXPECT_EQ(base::read_file(directory + "/" + files[i].name).value(), files[i].content);
  }
  EXPECT_EQ(base::list_files(directory).value().size(), files.size());
  std::filesystem::remove_all(directory);
}

TEST(WriteBundle, WritesNothingThatCannotBeRendered) {
  const std::string directory = ::testing::TempDir() + "kerntrail_bundle_test/none";
  std::filesystem::remove_all(directory);
  std::vector<OpSpec> specs = two_ops();
  specs[1].op = "layernormscale";
  std::vector<Diagnostic> diagnostics;
  EXPECT_EQ(write_bundle(directory, specs, {}, diagnostics).error().code, ErrorCode::kUnsupported);
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST(WriteBundle, ReportsADirectoryItCannotMake) {
  std::vector<Diagnostic> diagnostics;
  const auto result = write_bundle("/dev/null/bundle", two_ops(), {}, diagnostics);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace kerntrail::spyre
