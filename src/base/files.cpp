#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace kerntrail::base {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

tl::unexpected<Error> system_error(std::string_view action, const std::string& path) {
  return fail(ErrorCode::kIo, fmt::format("cannot {}: {}", action, std::strerror(errno)), path);
}

Expected<void> replace_through(const std::string& temporary, const std::string& path, std::string_view content,
                               bool to_disk) {
  {
    File file(std::fopen(temporary.c_str(), "wb"));
    if (!file) return system_error("write", path);
    const bool ok = std::fwrite(content.data(), 1, content.size(), file.get()) == content.size() &&
                    std::fflush(file.get()) == 0 && (!to_disk || ::fsync(::fileno(file.get())) == 0);
    if (!ok) {
      auto error = system_error("write", path);
      std::remove(temporary.c_str());
      return error;
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    auto error = system_error("rename into place", path);
    std::remove(temporary.c_str());
    return error;
  }
  return {};
}

}  // namespace

Expected<std::string> read_file(const std::string& path, std::size_t limit) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return fail(ErrorCode::kIo, "is a directory, not a file", path);
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return system_error("open", path);
  std::string out;
  char block[1 << 16];
  while (std::size_t n = std::fread(block, 1, sizeof block, file.get())) {
    if (out.size() + n > limit) return fail(ErrorCode::kTooLarge, fmt::format("is larger than {} bytes", limit), path);
    out.append(block, n);
  }
  if (std::ferror(file.get())) return system_error("read", path);
  return out;
}

Expected<void> write_file(const std::string& path, std::string_view content) {
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) KERNTRAIL_CHECK(make_directories(parent.string()));
  return replace_through(fmt::format("{}.tmp{}", path, ::getpid()), path, content, false);
}

Expected<void> replace_file(const std::string& path, std::string_view content) {
  static std::atomic<unsigned> count = 0;
  return replace_through(fmt::format("{}.tmp{}.{}", path, ::getpid(), count++), path, content, true);
}

Expected<void> make_directories(const std::string& path) {
  std::error_code ec;
  fs::create_directories(path, ec);
  if (ec) return fail(ErrorCode::kIo, fmt::format("cannot make the directory: {}", ec.message()), path);
  return {};
}

Expected<std::vector<std::string>> list_files(const std::string& directory) {
  std::error_code ec;
  std::vector<std::string> names;
  for (fs::directory_iterator it(directory, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->is_regular_file(ec)) names.push_back(it->path().filename().string());
  }
  if (ec) return fail(ErrorCode::kIo, fmt::format("cannot list: {}", ec.message()), directory);
  std::sort(names.begin(), names.end());
  return names;
}

Expected<DirectoryLock> DirectoryLock::acquire(const std::string& directory) {
  DirectoryLock lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.fd_ < 0) return system_error("open", directory);
  while (::flock(lock.fd_, LOCK_EX) != 0) {
    if (errno != EINTR) return system_error("lock", directory);
  }
  return lock;
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace kerntrail::base
