// A Spyre bundle that lies on disk as a capture: its kernel and its files, and what the files say of provenance. No
// compile was watched, so nothing earlier is there, and nothing is claimed of it.
// Must not know: analyses, output formats.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"

namespace kerntrail::read {

// `path` where it is a bundle (spyre/bundle_reader.h), else those of its folders that are, sorted; none for anything
// else.
std::vector<std::string> bundles_in(const std::string& path);

// A kernel a bundle, named as its folder, a unit a file. A file that can't be read is a unit with `parse_error`. With a
// note that nothing is known of the compile. `tool`: who reads, for the header. kIo, kSchema, kTooLarge as
// read_bundle().
Expected<Capture> read_bundle_capture(const std::string& path, std::string_view tool);

}  // namespace kerntrail::read
