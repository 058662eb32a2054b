#include "spyre/sidecar_publish.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/files.h"
#include "spyre/test_sidecars.h"

namespace kerntrail::spyre {
namespace {

namespace fs = std::filesystem;
using testing::kernel;
using testing::op_from_line;
using testing::sidecar;
using testing::tracked;

class SidecarPublish : public ::testing::Test {
 protected:
  SidecarPublish() : folder_(fs::path(::testing::TempDir()) / ("kt_sidecar_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
  }
  ~SidecarPublish() override { fs::remove_all(folder_); }
  std::string path() const { return (folder_ / "made" / "on" / "the" / "way" / "s.json").string(); }
  static Sidecar part(std::uint64_t n) {
    return sidecar(tracked({kernel("k" + std::to_string(n), {op_from_line(n, static_cast<std::int64_t>(n))})}));
  }
  std::vector<std::string> files() const { return base::list_files(fs::path(path()).parent_path().string()).value(); }
  // Publishes parts [from, to), one after another.
  void publish(std::uint64_t from, std::uint64_t to) const {
    for (std::uint64_t n = from; n < to; ++n) {
      const auto done = publish_sidecar(path(), part(n));
      ASSERT_TRUE(done) << done.error().text();
      EXPECT_EQ(*done, Publication::kWritten);
    }
  }

  fs::path folder_;
};

TEST_F(SidecarPublish, WritesMergesAndLeavesAlone) {
  EXPECT_EQ(publish_sidecar("", part(1)).value(), Publication::kDisabled);
  EXPECT_EQ(publish_sidecar(path(), part(1)).value(), Publication::kWritten);
  const std::string first = base::read_file(path()).value();
  EXPECT_EQ(first, print_sidecar(part(1)));
  struct ::stat before{}, after{};
  ASSERT_EQ(::stat(path().c_str(), &before), 0);
  EXPECT_EQ(publish_sidecar(path(), part(1)).value(), Publication::kUnchanged);
  ASSERT_EQ(::stat(path().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino) << "not even written again";
  EXPECT_EQ(publish_sidecar(path(), part(2)).value(), Publication::kWritten);
  EXPECT_EQ(read_sidecar(path()).value().generation, 2);
  EXPECT_EQ(files(), std::vector<std::string>{"s.json"});
}

TEST_F(SidecarPublish, WhatCantBeMergedStaysAsItIs) {
  Sidecar conflicting = part(1);
  conflicting.handles.at("1").source->start_line = 50;
  const std::vector<std::pair<std::string, ErrorCode>> found{{"no json", ErrorCode::kSyntax},
                                                             {"{\"schemaVersion\": 2}", ErrorCode::kTooNew},
                                                             {"{\"schemaVersion\": 1}", ErrorCode::kSchema},
                                                             {"\xff\xfe", ErrorCode::kSyntax},
                                                             {print_sidecar(conflicting), ErrorCode::kReference}};
  for (const auto& [text, code] : found) {
    ASSERT_TRUE(base::write_file(path(), text));
    const auto done = publish_sidecar(path(), part(1));
    ASSERT_FALSE(done) << text.substr(0, 40);
    EXPECT_EQ(done.error().code, code) << done.error().text();
    EXPECT_EQ(base::read_file(path()).value(), text);
    EXPECT_EQ(files(), std::vector<std::string>{"s.json"});
    EXPECT_EQ(done.error().text().find(folder_.string()), std::string::npos) << "no folder in " << done.error().text();
    EXPECT_EQ(done.error().path, "s.json");
  }
}

TEST_F(SidecarPublish, RefusesWhatItsOwnRulesRefuse) {
  Sidecar wrong = part(1);
  wrong.identities.begin()->second.event_base.replace(0, 22, "spyre_kernel_v1_mused_");
  ASSERT_FALSE(publish_sidecar(path(), wrong));
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(SidecarPublish, FailuresOfTheDiskAreErrors) {
  fs::create_directories(path());  // a folder stands where the file should be
  const auto in_the_way = publish_sidecar(path(), part(1));
  ASSERT_FALSE(in_the_way);
  EXPECT_EQ(in_the_way.error().code, ErrorCode::kIo);
  ASSERT_TRUE(base::write_file((folder_ / "file").string(), ""));
  const auto no_folder = publish_sidecar((folder_ / "file" / "s.json").string(), part(1));
  ASSERT_FALSE(no_folder);
  EXPECT_EQ(no_folder.error().path, "s.json");
  EXPECT_EQ(no_folder.error().text().find(folder_.string()), std::string::npos) << no_folder.error().text();
}

TEST_F(SidecarPublish, ThreadsLoseNoUpdate) {
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 8; ++t) threads.emplace_back([this, t] { publish(100 + 3 * t, 103 + 3 * t); });
  for (std::thread& thread : threads) thread.join();
  const auto read = read_sidecar(path());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->identities.size(), 24U);
  EXPECT_EQ(read->generation, 24);
  EXPECT_EQ(files(), std::vector<std::string>{"s.json"});
}

TEST_F(SidecarPublish, ProcessesLoseNoUpdate) {
  std::vector<pid_t> children;
  for (std::uint64_t p = 0; p < 2; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      publish(100 + 12 * p, 112 + 12 * p);
      ::_exit(HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(read_sidecar(path()).value().identities.size(), 24U);
}

TEST_F(SidecarPublish, ReadersSeeWholeFiles) {
  ASSERT_EQ(publish_sidecar(path(), part(1)).value(), Publication::kWritten);
  std::thread writer([this] { publish(2, 20); });
  std::size_t seen = 0;
  while (seen < 19) {
    const auto read = read_sidecar(path());
    ASSERT_TRUE(read) << read.error().text();
    ASSERT_GE(read->identities.size(), seen);
    seen = read->identities.size();
  }
  writer.join();
}

}  // namespace
}  // namespace kerntrail::spyre
