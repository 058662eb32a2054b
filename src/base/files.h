// Whole files and directories, with errors that name the path and the system's reason.
// Must not know: any format.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::base {

// Reads a whole file; `limit` bytes at most (kTooLarge above it).
Expected<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);
// Writes through a temporary file in the same directory and renames it into place; missing parents are made.
Expected<void> write_file(const std::string& path, std::string_view content);
// The same for files that others read and replace meanwhile: the content is on the disk before the name points to it,
// and the temporary file has a name of its own, also among threads. The parent must exist.
Expected<void> replace_file(const std::string& path, std::string_view content);
Expected<void> make_directories(const std::string& path);
// Names (not paths) of the regular files in a directory, sorted.
Expected<std::vector<std::string>> list_files(const std::string& directory);

// Holds a directory for one writer at a time, among threads and processes (flock: whoever does not ask is not kept
// out). Released when it goes out of scope, or with the process.
class DirectoryLock {
 public:
  // Waits until the directory is free. kIo where it can't be opened or its file system has no locks.
  static Expected<DirectoryLock> acquire(const std::string& directory);
  DirectoryLock(DirectoryLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace kerntrail::base
