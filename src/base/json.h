// A small ordered JSON value with its parser and writer. For documents of modest size (bundles, OpSpecs, exports);
// the capture reader streams with its own code.
// Must not know: provenance, any particular format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::base {

class Json;
using JsonArray = std::vector<Json>;
using JsonMember = std::pair<std::string, Json>;
// Members in document order; duplicate keys are refused by the parser.
using JsonObject = std::vector<JsonMember>;

class Json {
 public:
  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool v) : value_(v) {}
  Json(std::int64_t v) : value_(v) {}
  Json(int v) : value_(static_cast<std::int64_t>(v)) {}
  Json(std::size_t v) : value_(static_cast<std::int64_t>(v)) {}
  Json(double v) : value_(v) {}
  Json(std::string v) : value_(std::move(v)) {}
  Json(std::string_view v) : value_(std::string(v)) {}
  Json(const char* v) : value_(std::string(v)) {}
  Json(JsonArray v) : value_(std::move(v)) {}
  Json(JsonObject v) : value_(std::move(v)) {}

  // The whole text must be one JSON document. `path` only names the input in errors.
  // Limits: depth 512. Integers outside int64 become doubles.
  static Expected<Json> parse(std::string_view text, std::string_view path = {});

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<JsonArray>(value_); }
  bool is_object() const { return std::holds_alternative<JsonObject>(value_); }

  // Readers with a default: they never throw, a value of another type gives the default.
  bool as_bool(bool otherwise = false) const;
  std::int64_t as_int(std::int64_t otherwise = 0) const;
  double as_double(double otherwise = 0) const;
  std::string_view as_string(std::string_view otherwise = {}) const;
  const JsonArray& as_array() const;    // empty for another type
  const JsonObject& as_object() const;  // empty for another type

  // Member of an object, or null where there is none (also for other types).
  const Json* find(std::string_view key) const;
  const Json& operator[](std::string_view key) const;

  // Builders: turn a null into an object / array first. `set` replaces an existing member in place.
  void set(std::string_view key, Json value);
  void push(Json value);

  // indent < 0: one line with no spaces. indent >= 0: the bytes of Python's json.dumps(v, indent=n), ASCII only.
  std::string dump(int indent = -1) const;

  // The same value with every object's members in the order of their keys (by bytes, as Python sorts strings).
  Json sorted() const;
  // What hashes are taken over: sorted, ASCII, no spaces (json.dumps(v, sort_keys=True, separators=(",", ":"))).
  std::string canonical() const;

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, JsonArray, JsonObject> value_;
};

// Appends `text` as a quoted JSON string. ascii: everything beyond ASCII becomes \uXXXX (pairs above the BMP).
// Ill-formed UTF-8 becomes U+FFFD, so that output is always valid JSON.
void append_json_string(std::string& out, std::string_view text, bool ascii);

// Streaming writer over a std::string for hot paths; the caller keeps objects and arrays balanced.
class JsonWriter {
 public:
  // indent < 0: compact. Otherwise the layout of Python's json.dumps(indent=n).
  explicit JsonWriter(std::string& out, int indent = -1, bool ascii = false)
      : out_(out), indent_(indent), ascii_(ascii) {}
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view k);
  JsonWriter& value(std::string_view v);
  JsonWriter& value(const char* v) { return value(std::string_view(v)); }
  JsonWriter& value(const std::string& v) { return value(std::string_view(v)); }
  JsonWriter& value(bool v);
  JsonWriter& value(std::int64_t v);
  JsonWriter& value(std::uint64_t v);
  JsonWriter& value(int v) { return value(static_cast<std::int64_t>(v)); }
  JsonWriter& value(std::uint32_t v) { return value(static_cast<std::uint64_t>(v)); }
  JsonWriter& value(double v);
  JsonWriter& null();
  // Text that is JSON already; copied as it is.
  JsonWriter& raw(std::string_view json);
  template <class T>
  JsonWriter& member(std::string_view k, const T& v) {
    key(k);
    return value(v);
  }

 private:
  JsonWriter& open(char c);
  JsonWriter& close(char c);
  void separate();
  void newline();

  std::string& out_;
  int indent_;
  bool ascii_;
  int depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace kerntrail::base
