#include "model/json_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/strings.h"

namespace kerntrail::model {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

unsigned char byte_at(std::string_view s, std::size_t i) { return static_cast<unsigned char>(s[i]); }

// Bytes of the well-formed code point at `i`, or 0.
std::size_t code_point_size(std::string_view s, std::size_t i) {
  const unsigned char b = byte_at(s, i);
  if (b < 0x80) return 1;
  const std::size_t n = b >= 0xC2 && b < 0xE0 ? 2 : b >= 0xE0 && b < 0xF0 ? 3 : b >= 0xF0 && b < 0xF5 ? 4 : 0;
  if (n == 0 || i + n > s.size()) return 0;
  for (std::size_t k = 1; k < n; ++k) {
    if ((byte_at(s, i + k) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned char c = byte_at(s, i + 1);
  const bool overlong = (b == 0xE0 && c < 0xA0) || (b == 0xF0 && c < 0x90);
  const bool beyond = (b == 0xED && c >= 0xA0) || (b == 0xF4 && c >= 0x90);  // surrogates, above U+10FFFF
  return overlong || beyond ? 0 : n;
}

}  // namespace

std::string repaired_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = code_point_size(text, i);
    if (n == 0)
      out += kReplacement;
    else
      out.append(text, i, n);
    i += n == 0 ? 1 : n;
  }
  return out;
}

std::size_t depth_of(std::string_view json) {
  std::size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

std::string without_white_space(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      out += c;
      if (c == '\\' && i + 1 < json.size())
        out += json[++i];
      else if (c == '"')
        quoted = false;
    } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      out += c;
      quoted = c == '"';
    }
  }
  return out;
}

std::string normal_json(std::string_view json) {
  if (depth_of(json) <= kMaxJsonDepth && base::Json::parse(json)) return without_white_space(json);
  std::string quoted;
  base::append_json_string(quoted, json, false);
  return quoted;
}

std::string shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit;
  while (end > 0 && (byte_at(text, end) & 0xC0U) == 0x80U) --end;
  return fmt::format("{}... ({} bytes cut)", text.substr(0, end), text.size() - end);
}

}  // namespace kerntrail::model
