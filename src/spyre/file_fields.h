// What a SuperDSC document says of provenance, whatever else it is: keys of its names anywhere, and its handle.
// Must not know: the format's rules.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace kerntrail::spyre {

struct FileFields {
  std::vector<std::string> keys;  // of the top level, sorted
  // Names of provenance fields that some key outside the handle has and that hold something: population, not presence.
  std::set<std::string> found;
  const base::Json* handle = nullptr;  // of `debug_handle_`, the first one; null inside: there, and empty
};

// `document` must outlive the result.
FileFields fields_of_file(const base::Json& document);

}  // namespace kerntrail::spyre
