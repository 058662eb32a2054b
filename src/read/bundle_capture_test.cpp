// Bundles on disk as captures: what their files say is there, and nothing more.
#include "read/bundle_capture.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"

namespace kerntrail::read {
namespace {

namespace fs = std::filesystem;
const std::string kData = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/sdsc/";

class BundleCapture : public ::testing::Test {
 protected:
  BundleCapture() : folder_(fs::path(::testing::TempDir()) / ("kerntrail_bundle_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~BundleCapture() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(base::write_file((folder_ / name).string(), text));
  }
  static std::size_t units(const Capture& capture, UnitKind kind) {
    std::size_t n = 0;
    for (const Unit& unit : capture.units) n += unit.kind == kind ? 1U : 0U;
    return n;
  }

  fs::path folder_;
};

TEST_F(BundleCapture, RealFilesAreUnitsOfTheirKernel) {
  const auto capture = read_bundle_capture(kData + "swiglu_decode", "test");
  ASSERT_TRUE(capture) << capture.error().text();
  EXPECT_EQ(units(*capture, UnitKind::kBundleFile), 9U);
  EXPECT_EQ(units(*capture, UnitKind::kKernel), 1U);
  EXPECT_TRUE(capture->end && capture->end->complete);
  EXPECT_TRUE(capture->hooks.empty());
  ASSERT_EQ(capture->links.size(), 1U);
  EXPECT_EQ(capture->links[0].to.size(), 9U);
}

TEST_F(BundleCapture, AFolderOfBundlesIsSeveralKernels) {
  EXPECT_EQ(bundles_in(kData + "adds_then_matmul_512").size(), 2U);
  const auto capture = read_bundle_capture(kData + "adds_then_matmul_512", "test");
  ASSERT_TRUE(capture) << capture.error().text();
  EXPECT_EQ(units(*capture, UnitKind::kKernel), 2U);
  EXPECT_TRUE(bundles_in(kData + "LICENSE.txt").empty());
  EXPECT_TRUE(bundles_in(folder_.string()).empty());
  EXPECT_FALSE(read_bundle_capture(folder_.string(), "test"));
}

TEST_F(BundleCapture, AHandleLeadsToItsLine) {
  write(
      "sdsc_0.json",
      R"({"debug_handle_":{"id":"7","source":{"file":"model.py","start_line":25,"start_col":0},"aten_op":"aten.relu",)"
      R"("ir_chain":["relu","buf0"],"fused_from":[]},"0_relufwd":{"note":{"original_aten":"x"}}})");
  write("sdsc_1.json", R"({"debug_handle_":null,"1_add":{"stack_trace":""}})");
  const auto capture = read_bundle_capture(folder_.string(), "test");
  ASSERT_TRUE(capture) << capture.error().text();
  const auto handle = capture->find_attr("debug_handle");
  ASSERT_TRUE(handle);
  const auto last = id_at<SnapshotId>(capture->snapshots.size() - 1);
  std::vector<UnitId> files;
  for (std::size_t i = 0; i < capture->units.size(); ++i) {
    if (capture->units[i].kind == UnitKind::kBundleFile) files.push_back(id_at<UnitId>(i));
  }
  ASSERT_EQ(files.size(), 2U);
  const Observation* first = capture->at(files[0], *handle, last);
  ASSERT_NE(first, nullptr);
  const Loc* loc = capture->loc(first->loc);
  ASSERT_NE(loc, nullptr);
  EXPECT_EQ(capture->text(loc->text), "model.py");
  EXPECT_EQ(loc->line, 25);
  EXPECT_EQ(capture->text_of(files[0], "fields_found", last), R"(["debug_handle_","original_aten"])");
  EXPECT_EQ(capture->at(files[1], *handle, last)->state, State::kEmpty);
  EXPECT_EQ(capture->text_of(files[1], "fields_found", last), "[]") << "there, but empty";
}

TEST_F(BundleCapture, AHandleThatCannotBeReadIsNoHandle) {
  write("sdsc_0.json", R"({"debug_handle_":{"id":7,"source":[1]},"0_add":{}})");
  write("sdsc_1.json",
        R"({"1_add":{"debug_handle_":{"id":"7","source":{"file":"model.py","start_line":-5,"start_col":0},)"
        R"("aten_op":null,"ir_chain":[],"fused_from":[]}}})");
  const auto capture = read_bundle_capture(folder_.string(), "test");
  ASSERT_TRUE(capture) << capture.error().text();
  const AttrId handle = capture->find_attr("debug_handle").value();
  const auto last = id_at<SnapshotId>(capture->snapshots.size() - 1);
  for (std::size_t i = 0; i < capture->units.size(); ++i) {
    if (capture->units[i].kind != UnitKind::kBundleFile) continue;
    const Observation* seen = capture->at(id_at<UnitId>(i), handle, last);
    ASSERT_NE(seen, nullptr);
    EXPECT_EQ(seen->state, State::kUnreadable);
    EXPECT_FALSE(has(seen->loc));
  }
}

TEST_F(BundleCapture, DamagedFilesAreUnitsWithTheirError) {
  write("sdsc_0.json", R"({"0_add":)");
  write("sdsc_1.json", "\x01\x02");
  write("bundle.mlir", "module {");
  const auto capture = read_bundle_capture(folder_.string(), "test");
  ASSERT_TRUE(capture) << capture.error().text();
  EXPECT_EQ(units(*capture, UnitKind::kBundleFile), 2U);
  const auto last = id_at<SnapshotId>(capture->snapshots.size() - 1);
  for (std::size_t i = 0; i < capture->units.size(); ++i) {
    if (capture->units[i].kind == UnitKind::kBundleFile) {
      EXPECT_FALSE(capture->text_of(id_at<UnitId>(i), "parse_error", last).empty());
    }
  }
}

}  // namespace
}  // namespace kerntrail::read
