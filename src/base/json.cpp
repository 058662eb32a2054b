#include "base/json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

namespace kerntrail::base {
namespace {

constexpr std::size_t kMaxDepth = 512;

Expected<Json> convert(simdjson::dom::element e, std::string_view path);

Expected<Json> convert_object(simdjson::dom::object object, std::string_view path) {
  JsonObject out;
  std::unordered_set<std::string_view> seen;
  for (const auto& [key, value] : object) {
    if (!seen.insert(key).second)
      return fail(ErrorCode::kSyntax, fmt::format("duplicate key \"{}\"", key), std::string(path));
    KERNTRAIL_TRY(Json v, convert(value, path));
    out.emplace_back(std::string(key), std::move(v));
  }
  return Json(std::move(out));
}

Expected<Json> convert(simdjson::dom::element e, std::string_view path) {
  using simdjson::dom::element_type;
  switch (e.type()) {
    case element_type::OBJECT: return convert_object(e.get_object().value_unsafe(), path);
    case element_type::ARRAY: {
      JsonArray out;
      const simdjson::dom::array items = e.get_array().value_unsafe();  // a named copy: the result object dies at once
      for (simdjson::dom::element item : items) {
        KERNTRAIL_TRY(Json v, convert(item, path));
        out.push_back(std::move(v));
      }
      return Json(std::move(out));
    }
    case element_type::STRING: return Json(e.get_string().value_unsafe());
    case element_type::INT64: return Json(e.get_int64().value_unsafe());
    case element_type::UINT64: return Json(static_cast<double>(e.get_uint64().value_unsafe()));
    case element_type::DOUBLE: return Json(e.get_double().value_unsafe());
    case element_type::BOOL: return Json(e.get_bool().value_unsafe());
    case element_type::NULL_VALUE: return Json();
  }
  return Json();
}

const Json kNull;
const JsonArray kNoArray;
const JsonObject kNoObject;

void write(JsonWriter& w, const Json& v) {
  if (v.is_object()) {
    w.begin_object();
    for (const auto& [k, item] : v.as_object()) {
      w.key(k);
      write(w, item);
    }
    w.end_object();
  } else if (v.is_array()) {
    w.begin_array();
    for (const Json& item : v.as_array()) write(w, item);
    w.end_array();
  } else if (v.is_string()) {
    w.value(v.as_string());
  } else if (v.is_int()) {
    w.value(v.as_int());
  } else if (v.is_double()) {
    w.value(v.as_double());
  } else if (v.is_bool()) {
    w.value(v.as_bool());
  } else {
    w.null();
  }
}

// One code point of well-formed UTF-8, or U+FFFD and one byte where it is not.
struct Decoded {
  std::uint32_t code;
  std::size_t size;
};

Decoded decode(std::string_view s, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<std::uint32_t>(static_cast<unsigned char>(s[k])); };
  const std::uint32_t b = byte(i);
  const std::size_t n = b < 0x80                ? 1
                        : b >= 0xC2 && b < 0xE0 ? 2
                        : b >= 0xE0 && b < 0xF0 ? 3
                        : b >= 0xF0 && b < 0xF5 ? 4
                                                : 0;
  if (n == 1) return {b, 1};
  if (n == 0 || i + n > s.size()) return {0xFFFD, 1};
  std::uint32_t code = b & (0xFFU >> (n + 1));
  for (std::size_t k = 1; k < n; ++k) {
    if ((byte(i + k) & 0xC0U) != 0x80U) return {0xFFFD, 1};
    code = (code << 6) | (byte(i + k) & 0x3FU);
  }
  const bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
  if (overlong || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return {0xFFFD, 1};
  return {code, n};
}

void append_escape(std::string& out, std::uint32_t unit) { out += fmt::format("\\u{:04x}", unit); }

}  // namespace

void append_json_string(std::string& out, std::string_view text, bool ascii) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      switch (c) {
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        case '\n': out += "\\n"; break;
        case '\t': out += "\\t"; break;
        case '\r': out += "\\r"; break;
        case '\b': out += "\\b"; break;
        case '\f': out += "\\f"; break;
        default:
          if (c < 0x20)
            append_escape(out, c);
          else
            out += static_cast<char>(c);
      }
      ++i;
      continue;
    }
    const Decoded d = decode(text, i);
    if (!ascii && d.code != 0xFFFD)
      out.append(text, i, d.size);
    else if (!ascii)
      out += "\xEF\xBF\xBD";
    else if (d.code < 0x10000)
      append_escape(out, d.code);
    else {
      append_escape(out, 0xD800 + ((d.code - 0x10000) >> 10));
      append_escape(out, 0xDC00 + ((d.code - 0x10000) & 0x3FF));
    }
    i += d.size;
  }
  out += '"';
}

Expected<Json> Json::parse(std::string_view text, std::string_view path) {
  simdjson::dom::parser parser;
  if (parser.allocate(text.size() < 64 ? 64 : text.size(), kMaxDepth) != simdjson::SUCCESS) {
    return fail(ErrorCode::kTooLarge, "is too large to parse", std::string(path));
  }
  simdjson::dom::element root;
  // Empty text is refused here: this version of the parser reports success on it.
  if (text.empty()) return fail(ErrorCode::kSyntax, "is not JSON: the text is empty", std::string(path));
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).get(root)) {
    const ErrorCode code = error == simdjson::DEPTH_ERROR ? ErrorCode::kTooLarge : ErrorCode::kSyntax;
    return fail(code, fmt::format("is not JSON: {}", simdjson::error_message(error)), std::string(path));
  }
  return convert(root, path);
}

bool Json::as_bool(bool otherwise) const { return is_bool() ? std::get<bool>(value_) : otherwise; }
std::int64_t Json::as_int(std::int64_t otherwise) const {
  return is_int() ? std::get<std::int64_t>(value_) : otherwise;
}
double Json::as_double(double otherwise) const {
  if (is_double()) return std::get<double>(value_);
  return is_int() ? static_cast<double>(std::get<std::int64_t>(value_)) : otherwise;
}
std::string_view Json::as_string(std::string_view otherwise) const {
  return is_string() ? std::string_view(std::get<std::string>(value_)) : otherwise;
}
const JsonArray& Json::as_array() const { return is_array() ? std::get<JsonArray>(value_) : kNoArray; }
const JsonObject& Json::as_object() const { return is_object() ? std::get<JsonObject>(value_) : kNoObject; }

const Json* Json::find(std::string_view key) const {
  for (const auto& [k, v] : as_object()) {
    if (k == key) return &v;
  }
  return nullptr;
}

const Json& Json::operator[](std::string_view key) const {
  const Json* v = find(key);
  return v ? *v : kNull;
}

void Json::set(std::string_view key, Json value) {
  if (!is_object()) value_ = JsonObject{};
  auto& object = std::get<JsonObject>(value_);
  for (auto& [k, v] : object) {
    if (k == key) {
      v = std::move(value);
      return;
    }
  }
  object.emplace_back(std::string(key), std::move(value));
}

void Json::push(Json value) {
  if (!is_array()) value_ = JsonArray{};
  std::get<JsonArray>(value_).push_back(std::move(value));
}

std::string Json::dump(int indent) const {
  std::string out;
  JsonWriter writer(out, indent, indent >= 0);
  write(writer, *this);
  return out;
}

Json Json::sorted() const {
  if (is_array()) {
    JsonArray items;
    for (const Json& item : as_array()) items.push_back(item.sorted());
    return items;
  }
  if (!is_object()) return *this;
  JsonObject members;
  for (const auto& [key, value] : as_object()) members.emplace_back(key, value.sorted());
  std::ranges::sort(members, {}, &JsonMember::first);
  return members;
}

std::string Json::canonical() const {
  std::string out;
  JsonWriter writer(out, -1, true);
  write(writer, sorted());
  return out;
}

void JsonWriter::newline() {
  if (indent_ < 0) return;
  out_ += '\n';
  out_.append(static_cast<std::size_t>(indent_ * depth_), ' ');
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) out_ += ',';
  first_ = false;
  if (depth_ > 0) newline();
}

JsonWriter& JsonWriter::open(char c) {
  separate();
  out_ += c;
  ++depth_;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char c) {
  --depth_;
  if (!first_) newline();
  out_ += c;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view k) {
  separate();
  append_json_string(out_, k, ascii_);
  out_ += indent_ < 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view v) {
  separate();
  append_json_string(out_, v, ascii_);
  return *this;
}

JsonWriter& JsonWriter::value(bool v) { return raw(v ? "true" : "false"); }

JsonWriter& JsonWriter::value(std::int64_t v) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
  return raw({digits, static_cast<std::size_t>(end - digits)});
}

JsonWriter& JsonWriter::value(std::uint64_t v) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
  return raw({digits, static_cast<std::size_t>(end - digits)});
}

JsonWriter& JsonWriter::value(double v) {
  if (!std::isfinite(v)) return null();  // JSON has no infinities
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, v).ptr;
  std::string_view text(digits, static_cast<std::size_t>(end - digits));
  std::string out(text);
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";  // stays a float for the next reader
  return raw(out);
}

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

}  // namespace kerntrail::base
