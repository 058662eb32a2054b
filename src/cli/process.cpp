#include "cli/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/strings.h"

extern char** environ;

namespace kerntrail::cli {
namespace {

namespace fs = std::filesystem;

bool is_executable(const fs::path& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec) && ::access(path.c_str(), X_OK) == 0;
}

// The folder of this binary, links followed only where it is reached through PATH by a link of another name.
fs::path own_directory() {
  std::error_code ec;
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  return ec ? fs::path() : self.parent_path();
}

std::string on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string_view directory : base::split(path ? path : "", ':')) {
    const fs::path candidate = fs::path(directory.empty() ? "." : std::string(directory)) / name;
    if (is_executable(candidate)) return candidate.string();
  }
  return {};
}

volatile std::sig_atomic_t running_child = 0;

extern "C" void forward_signal(int signal) {
  if (running_child > 0) ::kill(static_cast<pid_t>(running_child), signal);
}

// While a child runs: a terminal sends Ctrl-C to both, so that we only wait for what the child makes of it; SIGTERM and
// SIGHUP come to us alone and are handed on.
class ChildSignals {
 public:
  ChildSignals() {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    struct sigaction forward{};
    forward.sa_handler = forward_signal;
    for (Saved& saved : saved_) ::sigaction(saved.signal, saved.forwards ? &forward : &ignore, &saved.action);
  }
  ~ChildSignals() {
    running_child = 0;
    for (Saved& saved : saved_) ::sigaction(saved.signal, &saved.action, nullptr);
  }
  ChildSignals(const ChildSignals&) = delete;
  ChildSignals& operator=(const ChildSignals&) = delete;

 private:
  struct Saved {
    int signal;
    bool forwards;
    struct sigaction action{};
  };
  Saved saved_[4] = {{SIGINT, false}, {SIGQUIT, false}, {SIGTERM, true}, {SIGHUP, true}};
};

Expected<Exit> spawn_and_wait(const std::vector<std::string>& command, bool quiet) {
  std::vector<char*> argv;
  for (const std::string& part : command) argv.push_back(const_cast<char*>(part.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;  // the child takes signals as any program does
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const ChildSignals signals;
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail(ErrorCode::kIo, fmt::format("cannot start: {}", std::strerror(error)), command[0]);
  running_child = child;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      return fail(ErrorCode::kIo, fmt::format("cannot wait for it: {}", std::strerror(errno)), command[0]);
  }
  if (WIFSIGNALED(status)) return Exit{128 + WTERMSIG(status), WTERMSIG(status)};
  return Exit{WEXITSTATUS(status), 0};
}

}  // namespace

Expected<std::string> find_python(const std::string& wanted) {
  if (!wanted.empty()) {
    if (wanted.find('/') != std::string::npos ? is_executable(wanted) : !on_path(wanted).empty()) return wanted;
    return fail(ErrorCode::kUsage, fmt::format("--python {}: no such program", wanted));
  }
  for (const char* name : {"python", "python3"}) {
    const fs::path beside = own_directory() / name;
    if (is_executable(beside)) return beside.string();
  }
  std::string found = on_path("python3");
  if (found.empty())
    return fail(ErrorCode::kUsage, "found no python3, neither beside this program nor on PATH; name one with --python");
  return found;
}

Expected<Exit> run_process(const std::vector<std::string>& command) { return spawn_and_wait(command, false); }

bool succeeds(const std::vector<std::string>& command) {
  const auto status = spawn_and_wait(command, true);
  return status && status->status == 0;
}

Expected<std::string> find_packaged_python(const std::string& wanted) {
  KERNTRAIL_TRY(std::string python, find_python(wanted));
  if (succeeds({python, "-c", "import kerntrail._native"})) return python;
  const std::string torch = succeeds({python, "-c", "import torch"}) ? "" : " (torch is missing too)";
  return fail(ErrorCode::kUsage,
              fmt::format("{} has no kerntrail package{}; install it there (pip install kerntrail), or name an "
                          "interpreter that has it with --python",
                          python, torch));
}

Expected<void> check_program(const std::string& program) {
  std::error_code ec;
  if (fs::is_directory(program, ec))
    return fail(ErrorCode::kUsage, fmt::format("{} is a directory, not a program", program));
  if (!fs::exists(program, ec))
    return fail(ErrorCode::kUsage, fmt::format("can't open the program {}: no such file", program));
  return {};
}

}  // namespace kerntrail::cli
