// Runs the real binary: standard output, standard error and exit status.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace kerntrail::testing {

namespace fs = std::filesystem;

struct Outcome {
  int exit = -1;
  std::string out, err;
};

class Cli : public ::testing::Test {
 protected:
  Cli() : folder_(fs::path(::testing::TempDir()) / ("kerntrail_cli_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Cli() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string golden(const std::string& name) {
    const auto text = base::read_file(std::string(KERNTRAIL_SOURCE_DIR) + "/tests/golden/" + name);
    EXPECT_TRUE(text) << name;
    return text ? *text : std::string();
  }
  static std::string capture(const std::string& name = "seed000") {
    return std::string(KERNTRAIL_SOURCE_DIR) + "/tests/golden/" + name + "/capture.ndjson";
  }

  Outcome run(std::vector<std::string> arguments, const std::string& input = "/dev/null") const {
    const std::string out = path("stdout");
    const std::string err = path("stderr");
    arguments.insert(arguments.begin(), KERNTRAIL_BINARY);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto onto = [](const std::string& file, int flags, int fd) {
        const int opened = ::open(file.c_str(), flags, 0600);
        if (opened < 0 || ::dup2(opened, fd) < 0) ::_exit(126);
      };
      onto(input, O_RDONLY, STDIN_FILENO);
      onto(out, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
      onto(err, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    Outcome result;
    EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
    result.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (auto text = base::read_file(out)) result.out = *text;
    if (auto text = base::read_file(err)) result.err = *text;
    return result;
  }

  fs::path folder_;
};

}  // namespace kerntrail::testing
