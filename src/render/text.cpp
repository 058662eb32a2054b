#include "render/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "base/strings.h"

namespace kerntrail::render {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::size_t kLabelLength = 48;

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 where there is none; its code point in `point`.
std::size_t decode(std::string_view text, std::uint32_t& point) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80U) {
    point = first;
    return 1;
  }
  const std::size_t length = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : 2;
  if (first < 0xC2U || first > 0xF4U || text.size() < length) return 0;
  point = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    point = (point << 6U) | (byte(i) & 0x3FU);
  }
  const bool surrogate = point >= 0xD800U && point <= 0xDFFFU;
  const bool overlong = (length == 3 && point < 0x800U) || (length == 4 && point < 0x10000U);
  return surrogate || overlong || point > 0x10FFFFU ? 0 : length;
}

bool is_unsafe(std::uint32_t point) {
  const bool control = point < 0x20U || (point >= 0x7FU && point <= 0x9FU);
  const bool direction = point == 0x061CU || point == 0x200EU || point == 0x200FU ||
                         (point >= 0x202AU && point <= 0x202EU) || (point >= 0x2066U && point <= 0x2069U);
  const bool line_break = point == 0x2028U || point == 0x2029U;
  return control || direction || line_break || point == 0xFEFFU;
}

}  // namespace

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::uint32_t point = 0;
    const std::size_t length = decode(text, point);
    if (length == 1 && (point == '\n' || point == '\r' || point == '\t')) {
      out += ' ';
    } else if (length == 0 || is_unsafe(point)) {
      out += kReplacement;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string md_code(std::string_view text) {
  const std::string safe = visible(text);
  if (base::trim(safe).empty()) return "—";
  std::size_t longest = 0;
  for (std::size_t i = 0; i < safe.size();) {
    const std::size_t end = std::min(safe.find_first_not_of('`', i), safe.size());
    longest = std::max(longest, end - i);
    i = end + 1;
  }
  const std::string fence(longest + 1, '`');
  const bool pad = safe.front() == '`' || safe.back() == '`';
  return fence + (pad ? " " : "") + base::replace_all(safe, "|", "\\|") + (pad ? " " : "") + fence;
}

std::string md_codes(const std::vector<std::string>& texts) {
  if (texts.empty()) return "—";
  std::vector<std::string> spans;
  spans.reserve(texts.size());
  for (const std::string& text : texts) spans.push_back(md_code(text));
  return base::join(spans, ", ");
}

std::string md_text(std::string_view text) {
  const std::string safe = visible(text);
  const auto letter = [&](std::size_t i) {
    return i < safe.size() && std::isalnum(static_cast<unsigned char>(safe[i])) != 0;
  };
  std::string out;
  for (std::size_t i = 0; i < safe.size(); ++i) {
    const char c = safe[i];
    const bool inside_word = c == '_' && i > 0 && letter(i - 1) && letter(i + 1);  // never emphasis there
    if (!inside_word && std::string_view("\\`*_{}[]|#~$").find(c) != std::string_view::npos) {
      out += '\\';
      out += c;
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string md_row(const std::vector<std::string>& cells) { return "| " + base::join(cells, " | ") + " |\n"; }

std::string md_header(const std::vector<std::string>& cells) {
  std::string rule = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) rule += " --- |";
  return md_row(cells) + rule + "\n";
}

std::string mermaid_label(std::string_view text) {
  const std::string safe = visible(text);
  std::string_view shown = base::cut(safe, kLabelLength);
  const bool shortened = shown.size() < safe.size();
  if (shortened) shown = base::cut(safe, kLabelLength - 1);
  std::string out;
  for (const char c : shown) {
    switch (c) {
      case '"': out += "#quot;"; break;
      case '<': out += "#lt;"; break;
      case '>': out += "#gt;"; break;
      case '&': out += "#amp;"; break;
      case '#': out += "#35;"; break;
      case '|': out += "#124;"; break;
      case '`': out += "#96;"; break;
      case '\\': out += "#92;"; break;
      default: out += c;
    }
  }
  return out.empty() ? " " : out + (shortened ? "…" : "");
}

std::string dot_string(std::string_view text) {
  return base::replace_all(base::replace_all(visible(text), "\\", "\\\\"), "\"", "\\\"");
}

std::string csv_field(std::string_view text) {
  std::string field(text);
  if (!field.empty() && std::string_view("=+-@\t\r").find(field.front()) != std::string_view::npos)
    field.insert(0, "'");
  if (field.find_first_of("\",\r\n") == std::string::npos) return field;
  return "\"" + base::replace_all(std::move(field), "\"", "\"\"") + "\"";
}

}  // namespace kerntrail::render
