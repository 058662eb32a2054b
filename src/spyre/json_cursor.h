// Reads a JSON document by path, remembering where it is and the first thing that is not as it should be: readers stay
// one line a member, and every refusal names its place.
// Must not know: any format.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "kerntrail/expected.h"

namespace kerntrail::spyre {

class JsonCursor {
 public:
  static constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

  // `first_error` outlives the cursor and everything made from it.
  JsonCursor(const base::Json& json, std::string path, std::optional<Error>& first_error)
      : json_(&json), path_(std::move(path)), error_(&first_error) {}

  const base::Json& json() const { return *json_; }
  const std::string& path() const { return path_; }

  JsonCursor operator[](std::string_view key) const {
    const base::Json* member = json_->find(key);
    JsonCursor out(member == nullptr ? null() : *member, fmt::format("{}.{}", path_, key), *error_);
    if (member == nullptr) out.refuse("is missing");
    return out;
  }
  JsonCursor at(std::size_t i) const {
    const base::JsonArray& items = json_->as_array();
    JsonCursor out(i < items.size() ? items[i] : null(), fmt::format("{}[{}]", path_, i), *error_);
    if (i >= items.size()) out.refuse("is missing");
    return out;
  }
  const base::JsonArray& array() const {
    if (!json_->is_array()) refuse("is no array");
    return json_->as_array();
  }
  const base::JsonObject& object() const {
    if (!json_->is_object()) refuse("is no object");
    return json_->as_object();
  }
  std::string_view text() const {
    if (!json_->is_string()) refuse("is no string");
    return json_->as_string();
  }
  std::int64_t integer(std::int64_t least, std::int64_t most = kMost) const {
    if (json_->is_int() && json_->as_int() >= least && json_->as_int() <= most) return json_->as_int();
    refuse(most == kMost ? fmt::format("is no integer from {} on", least)
                         : fmt::format("is no integer from {} to {}", least, most));
    return least;
  }
  void refuse(std::string_view problem, ErrorCode code = ErrorCode::kSchema) const {
    if (!error_->has_value()) *error_ = Error{code, fmt::format("{} {}", path_, problem)};
  }

 private:
  static const base::Json& null() {
    static const base::Json kNull;
    return kNull;
  }

  const base::Json* json_;
  std::string path_;
  std::optional<Error>* error_;
};

}  // namespace kerntrail::spyre
