#include "base/files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

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

TEST(Files, ReplacedWholeOrNotAtAll) {
  const std::string folder = testing::TempDir() + "kt_files_replace";
  ASSERT_TRUE(make_directories(folder));
  ASSERT_TRUE(replace_file(folder + "/a", "one"));
  ASSERT_TRUE(replace_file(folder + "/a", "two"));
  EXPECT_EQ(read_file(folder + "/a").value(), "two");
  ASSERT_TRUE(make_directories(folder + "/taken/full"));
  EXPECT_FALSE(replace_file(folder + "/taken", "x")) << "a directory is in the way";
  EXPECT_FALSE(replace_file(folder + "/missing/a", "x"));
  EXPECT_EQ(list_files(folder).value(), std::vector<std::string>{"a"}) << "no temporary file is left";
}

TEST(Files, DirectoryIsHeldByOne) {
  const std::string folder = testing::TempDir() + "kt_files_lock";
  ASSERT_TRUE(make_directories(folder));
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        const auto lock = DirectoryLock::acquire(folder);
        ASSERT_TRUE(lock);
        most = std::max(most.load(), ++inside);
        std::this_thread::yield();
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_FALSE(DirectoryLock::acquire(folder + "/missing"));
}

}  // namespace
}  // namespace kerntrail::base
