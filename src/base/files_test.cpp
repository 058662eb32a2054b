#include "base/files.h"

#include <gtest/gtest.h>

namespace kerntrail::base {
namespace {

TEST(Files, RoundTripMakesParents) {
  const std::string path = testing::TempDir() + "kt_files/a/b.txt";
  ASSERT_TRUE(write_file(path, "hello\n"));
  EXPECT_EQ(read_file(path).value(), "hello\n");
  EXPECT_EQ(list_files(testing::TempDir() + "kt_files/a").value(), std::vector<std::string>{"b.txt"});
}

TEST(Files, ErrorsNamePathAndReason) {
  const auto missing = read_file("/nonexistent/file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text(), "/nonexistent/file: cannot open: No such file or directory [io]");
  EXPECT_EQ(read_file(testing::TempDir()).error().message, "is a directory, not a file");
  const std::string path = testing::TempDir() + "kt_files_big";
  ASSERT_TRUE(write_file(path, "12345"));
  EXPECT_EQ(read_file(path, 4).error().code, ErrorCode::kTooLarge);
  EXPECT_FALSE(list_files("/nonexistent"));
}

}  // namespace
}  // namespace kerntrail::base
