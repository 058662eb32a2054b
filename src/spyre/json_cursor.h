// Reads a JSON document by path, remembering where it is and the first thing that is not as it should be: readers stay
// one line a member, and every refusal names its place.
// Must not know: any format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

  // A missing member is refused and reads as null.
  JsonCursor operator[](std::string_view key) const;
  JsonCursor at(std::size_t i) const;
  const base::JsonArray& array() const;
  const base::JsonObject& object() const;
  std::string_view text() const;
  std::int64_t integer(std::int64_t least, std::int64_t most = kMost) const;  // `least` where it is refused
  void refuse(std::string_view problem, ErrorCode code = ErrorCode::kSchema) const;

 private:
  const base::Json* json_;
  std::string path_;
  std::optional<Error>* error_;
};

}  // namespace kerntrail::spyre
