#include "spyre/json_cursor.h"

#include <fmt/format.h>

namespace kerntrail::spyre {
namespace {

const base::Json& null() {
  static const base::Json kNull;
  return kNull;
}

}  // namespace

JsonCursor JsonCursor::operator[](std::string_view key) const {
  const base::Json* member = json_->find(key);
  JsonCursor out(member == nullptr ? null() : *member, fmt::format("{}.{}", path_, key), *error_);
  if (member == nullptr) out.refuse("is missing");
  return out;
}

JsonCursor JsonCursor::at(std::size_t i) const {
  const base::JsonArray& items = json_->as_array();
  JsonCursor out(i < items.size() ? items[i] : null(), fmt::format("{}[{}]", path_, i), *error_);
  if (i >= items.size()) out.refuse("is missing");
  return out;
}

const base::JsonArray& JsonCursor::array() const {
  if (!json_->is_array()) refuse("is no array");
  return json_->as_array();
}

const base::JsonObject& JsonCursor::object() const {
  if (!json_->is_object()) refuse("is no object");
  return json_->as_object();
}

std::string_view JsonCursor::text() const {
  if (!json_->is_string()) refuse("is no string");
  return json_->as_string();
}

std::int64_t JsonCursor::integer(std::int64_t least, std::int64_t most) const {
  if (json_->is_int() && json_->as_int() >= least && json_->as_int() <= most) return json_->as_int();
  refuse(most == kMost ? fmt::format("is no integer from {} on", least)
                       : fmt::format("is no integer from {} to {}", least, most));
  return least;
}

void JsonCursor::refuse(std::string_view problem, ErrorCode code) const {
  if (!error_->has_value()) *error_ = Error{code, fmt::format("{} {}", path_, problem)};
}

}  // namespace kerntrail::spyre
