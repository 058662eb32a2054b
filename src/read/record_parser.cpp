#include "read/record_parser.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/strings.h"
#include "read/line_source.h"

namespace kerntrail::read {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

static_assert(kLinePadding >= simdjson::SIMDJSON_PADDING);

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxMembers = 20;
constexpr std::size_t kFirstCapacity = std::size_t{1} << 16;

std::string_view type_name(element_type type) {
  switch (type) {
    case element_type::ARRAY: return "an array";
    case element_type::OBJECT: return "an object";
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE: return "a number";
    case element_type::STRING: return "a string";
    case element_type::BOOL: return "a truth value";
    case element_type::NULL_VALUE: return "null";
  }
  return "something else";
}

// Past one JSON value in a line that is known to be JSON.
std::size_t skip_value(std::string_view s, std::size_t i) {
  std::size_t depth = 0;
  for (; i < s.size(); ++i) {
    const char c = s[i];
    if (c == '"') {
      for (++i; i < s.size() && s[i] != '"'; ++i) {
        if (s[i] == '\\') ++i;
      }
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return i;  // the end of what surrounds the value
      --depth;
    } else if (c == ',' && depth == 0) {
      return i;
    }
  }
  return s.size();
}

std::size_t skip_space(std::string_view s, std::size_t i) {
  while (i < s.size() && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r')) ++i;
  return i;
}

// Value of the member at place `n` of the object that is the whole of `line`.
std::string_view raw_member(std::string_view line, std::size_t n) {
  std::size_t i = skip_space(line, 0) + 1;
  for (std::size_t member = 0;; ++member) {
    i = skip_space(line, i) + 1;  // past the key's first quote
    for (; i < line.size() && line[i] != '"'; ++i) {
      if (line[i] == '\\') ++i;
    }
    i = skip_space(line, i + 1) + 1;  // past the colon
    const std::size_t end = skip_value(line, i);
    if (member == n || end >= line.size()) return base::trim(line.substr(i, end - i));
    i = end + 1;
  }
}

template <class Pairs>
bool keys_are_distinct(const Pairs& members) {
  if (members.size() < 2) return true;
  std::unordered_set<std::string_view> seen;
  for (const auto& [key, value] : members) {
    if (!seen.insert(key).second) return false;
  }
  return true;
}

}  // namespace

struct RecordParser::Document {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  std::size_t capacity = 0;
  std::array<element, kMaxMembers> members;
  std::array<std::size_t, kMaxMembers> places{};  // in the object, for raw()
  std::array<bool, kMaxMembers> there{};
};

RecordParser::RecordParser() : document_(std::make_unique<Document>()) {}
RecordParser::~RecordParser() = default;

bool RecordParser::refuse(ErrorCode code, std::string message) {
  if (!error_) error_ = Error{code, std::move(message)};
  return false;
}

bool RecordParser::parse(std::string_view line) {
  error_.reset();
  line_ = line;
  kind_ = {};
  names_ = {};
  Document& d = *document_;
  if (line.empty()) return refuse(ErrorCode::kSyntax, "an empty line");
  if (line.size() > d.capacity) {
    d.capacity = std::max(kFirstCapacity, line.size() + line.size() / 2);
    if (d.parser.allocate(d.capacity, kMaxDepth) != simdjson::SUCCESS)
      return refuse(ErrorCode::kTooLarge, "no memory to parse the line");
  }
  element root;
  if (const auto error = d.parser.parse(line.data(), line.size(), false).get(root)) {
    if (error == simdjson::DEPTH_ERROR)
      return refuse(ErrorCode::kTooLarge, fmt::format("nested deeper than {} levels", kMaxDepth));
    return refuse(ErrorCode::kSyntax, fmt::format("not a line of JSON: {}", simdjson::error_message(error)));
  }
  if (root.get_object().get(d.object) != simdjson::SUCCESS)
    return refuse(ErrorCode::kSchema, fmt::format("a record must be an object, not {}", type_name(root.type())));
  const auto first = d.object.begin();
  if (first == d.object.end() || first.key() != "record")
    return refuse(ErrorCode::kSchema, "the first member of a record must be \"record\"");
  if (first.value().get_string().get(kind_) != simdjson::SUCCESS)
    return refuse(ErrorCode::kSchema, "\"record\" must be a string");
  return true;
}

std::optional<std::int64_t> RecordParser::peek_integer(std::string_view name) const {
  std::int64_t value = 0;
  if (document_->object.at_key(name).get_int64().get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

bool RecordParser::expect(std::span<const std::string_view> names) {
  Document& d = *document_;
  names_ = names;
  d.there.fill(false);
  std::size_t likely = 0;  // members mostly come in the order of `names`
  std::size_t place = 0;
  for (auto field = d.object.begin(); field != d.object.end(); ++field, ++place) {
    if (place == 0) continue;
    const std::string_view key = field.key();
    std::size_t i = likely;
    while (i < names.size() && names[i] != key) ++i;
    if (i == names.size()) i = static_cast<std::size_t>(std::find(names.begin(), names.end(), key) - names.begin());
    if (i == names.size())
      return refuse(ErrorCode::kSchema, fmt::format("a {} record has no member \"{}\"", kind_, base::cut(key, 80)));
    if (d.there[i]) return refuse(ErrorCode::kSchema, fmt::format("member \"{}\" is there twice", key));
    d.there[i] = true;
    d.members[i] = field.value();
    d.places[i] = place;
    likely = i + 1;
  }
  return true;
}

bool RecordParser::has(std::size_t i) const { return document_->there[i]; }

bool RecordParser::missing(std::size_t i) {
  return refuse(ErrorCode::kSchema, fmt::format("a {} record needs \"{}\"", kind_, names_[i]));
}

bool RecordParser::wrong_type(std::size_t i, std::string_view wanted) {
  return refuse(ErrorCode::kSchema,
                fmt::format("\"{}\" must be {}, not {}", names_[i], wanted, type_name(document_->members[i].type())));
}

std::string_view RecordParser::text(std::size_t i) {
  if (!has(i)) missing(i);
  return text(i, {});
}

std::string_view RecordParser::text(std::size_t i, std::string_view otherwise) {
  if (!has(i)) return otherwise;
  std::string_view value;
  if (document_->members[i].get_string().get(value) != simdjson::SUCCESS) wrong_type(i, "a string");
  return value;
}

std::int64_t RecordParser::integer(std::size_t i, std::int64_t low, std::int64_t high) {
  if (!has(i)) missing(i);
  return integer(i, low, high, low);
}

std::int64_t RecordParser::integer(std::size_t i, std::int64_t low, std::int64_t high, std::int64_t otherwise) {
  if (!has(i)) return otherwise;
  std::int64_t value = otherwise;
  if (!document_->members[i].is_int64()) {
    wrong_type(i, "an integer");
    return otherwise;
  }
  value = document_->members[i].get_int64().value_unsafe();
  if (value >= low && value <= high) return value;
  refuse(ErrorCode::kSchema, fmt::format("\"{}\" is {}, outside {} to {}", names_[i], value, low, high));
  return otherwise;
}

std::uint64_t RecordParser::count(std::size_t i) {
  if (!has(i)) return 0;
  std::uint64_t value = 0;
  if (document_->members[i].get_uint64().get(value) != simdjson::SUCCESS) wrong_type(i, "a count");
  return value;
}

bool RecordParser::boolean(std::size_t i, bool otherwise) {
  if (!has(i)) return otherwise;
  bool value = otherwise;
  if (document_->members[i].get_bool().get(value) != simdjson::SUCCESS) wrong_type(i, "true or false");
  return value;
}

std::string_view RecordParser::raw(std::size_t i) {
  return has(i) ? raw_member(line_, document_->places[i]) : std::string_view();
}

const std::vector<std::string_view>& RecordParser::texts(std::size_t i) {
  texts_.clear();
  if (!has(i)) return texts_;
  simdjson::dom::array array;
  if (document_->members[i].get_array().get(array) != simdjson::SUCCESS) {
    wrong_type(i, "an array");
    return texts_;
  }
  for (const element item : array) {
    std::string_view value;
    if (item.get_string().get(value) != simdjson::SUCCESS) {
      refuse(ErrorCode::kSchema, fmt::format("\"{}\" must hold strings, not {}", names_[i], type_name(item.type())));
      break;
    }
    texts_.push_back(value);
  }
  return texts_;
}

const std::vector<std::int64_t>& RecordParser::integers(std::size_t i, std::int64_t low, std::int64_t high) {
  integers_.clear();
  if (!has(i)) return integers_;
  simdjson::dom::array array;
  if (document_->members[i].get_array().get(array) != simdjson::SUCCESS) {
    wrong_type(i, "an array");
    return integers_;
  }
  for (const element item : array) {
    std::int64_t value = 0;
    if (item.get_int64().get(value) != simdjson::SUCCESS || value < low || value > high) {
      refuse(ErrorCode::kSchema, fmt::format("\"{}\" must hold integers from {} to {}", names_[i], low, high));
      break;
    }
    integers_.push_back(value);
  }
  return integers_;
}

const std::vector<std::pair<std::string_view, std::string_view>>& RecordParser::text_members(std::size_t i) {
  text_members_.clear();
  if (!has(i)) return text_members_;
  simdjson::dom::object object;
  if (document_->members[i].get_object().get(object) != simdjson::SUCCESS) {
    wrong_type(i, "an object");
    return text_members_;
  }
  for (const auto& [key, item] : object) {
    std::string_view value;
    if (item.get_string().get(value) != simdjson::SUCCESS) {
      refuse(ErrorCode::kSchema, fmt::format("\"{}\" must hold strings, not {}", names_[i], type_name(item.type())));
      break;
    }
    text_members_.emplace_back(key, value);
  }
  if (!keys_are_distinct(text_members_)) refuse(ErrorCode::kSchema, fmt::format("\"{}\" has a key twice", names_[i]));
  return text_members_;
}

const std::vector<std::pair<std::string_view, std::uint64_t>>& RecordParser::count_members(std::size_t i) {
  count_members_.clear();
  if (!has(i)) return count_members_;
  simdjson::dom::object object;
  if (document_->members[i].get_object().get(object) != simdjson::SUCCESS) {
    wrong_type(i, "an object");
    return count_members_;
  }
  for (const auto& [key, item] : object) {
    std::uint64_t value = 0;
    if (item.get_uint64().get(value) != simdjson::SUCCESS) {
      refuse(ErrorCode::kSchema, fmt::format("\"{}\" must hold counts, not {}", names_[i], type_name(item.type())));
      break;
    }
    count_members_.emplace_back(key, value);
  }
  if (!keys_are_distinct(count_members_)) refuse(ErrorCode::kSchema, fmt::format("\"{}\" has a key twice", names_[i]));
  return count_members_;
}

}  // namespace kerntrail::read
