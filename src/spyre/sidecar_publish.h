// Puts a compile into a sidecar on disk, beside other threads and processes that do the same.
// Must not know: what a compile is.
#pragma once

#include <string>

#include "spyre/sidecar.h"

namespace kerntrail::spyre {

enum class Publication : std::uint8_t { kWritten, kUnchanged, kDisabled };
std::string_view publication_name(Publication result);  // "written", ...

// Reads what is there, merges, and puts the result in place in one step, all under a lock of the folder: no update is
// lost, and a reader sees the old file or the new one. A merge that changes nothing writes nothing. Missing folders are
// made. No path: kDisabled. On any error the file is as it was; errors name the file without its folder, since they go
// to logs that travel further than the file.
Expected<Publication> publish_sidecar(const std::string& path, const Sidecar& addition);

}  // namespace kerntrail::spyre
