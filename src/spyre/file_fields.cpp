#include "spyre/file_fields.h"

#include <algorithm>

namespace kerntrail::spyre {
namespace {

using base::Json;

constexpr std::string_view kScanned[] = {"stack_trace", "original_aten", "from_node",  "origins",
                                         "origin_node", "traceback",     "provenance", "debug_handle_"};

bool populated(const Json& value) {
  if (value.is_null()) return false;
  if (value.is_string()) return !value.as_string().empty();
  if (value.is_array()) return !value.as_array().empty();
  if (value.is_object()) return !value.as_object().empty();
  return true;
}

void scan(const Json& value, FileFields& out) {
  for (const auto& [key, item] : value.as_object()) {
    if (populated(item) && std::find(std::begin(kScanned), std::end(kScanned), key) != std::end(kScanned))
      out.found.insert(key);
    if (key == "debug_handle_") {
      if (out.handle == nullptr) out.handle = &item;
      continue;  // what lies inside a handle is the handle's
    }
    scan(item, out);
  }
  for (const Json& item : value.as_array()) scan(item, out);
}

}  // namespace

FileFields fields_of_file(const Json& document) {
  FileFields out;
  for (const auto& [key, item] : document.as_object()) out.keys.push_back(key);
  std::sort(out.keys.begin(), out.keys.end());
  scan(document, out);
  return out;
}

}  // namespace kerntrail::spyre
