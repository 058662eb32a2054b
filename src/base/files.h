// Whole files and directories, with errors that name the path and the system's reason.
// Must not know: any format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::base {

// Reads a whole file; `limit` bytes at most (kTooLarge above it).
Expected<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);
// Writes through a temporary file in the same directory and renames it into place; missing parents are made.
Expected<void> write_file(const std::string& path, std::string_view content);
Expected<void> make_directories(const std::string& path);
// Names (not paths) of the regular files in a directory, sorted.
Expected<std::vector<std::string>> list_files(const std::string& directory);

}  // namespace kerntrail::base
