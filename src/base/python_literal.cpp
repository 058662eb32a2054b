#include "base/python_literal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"

namespace kerntrail::base {
namespace {

constexpr int kMaxDepth = 200;

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c) || static_cast<unsigned char>(c) >= 0x80; }

void append_utf8(std::string& out, std::uint32_t c) {
  const auto byte = [&](std::uint32_t v) { out.push_back(static_cast<char>(v)); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) return byte(0xC0 | (c >> 6)), byte(0x80 | (c & 0x3F));
  if (c < 0x10000) return byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F));
  byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 0x3F)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F));
}

struct Escape {
  char written, meant;
};
constexpr std::array<Escape, 10> kEscapes{{{'n', '\n'},
                                           {'t', '\t'},
                                           {'r', '\r'},
                                           {'\\', '\\'},
                                           {'\'', '\''},
                                           {'"', '"'},
                                           {'a', '\a'},
                                           {'b', '\b'},
                                           {'f', '\f'},
                                           {'v', '\v'}}};

class Parser {
 public:
  Parser(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  Expected<Json> whole() {
    KERNTRAIL_TRY(Json value, expression(0));
    skip_space();
    if (at_ != text_.size()) return error("something follows the expression");
    return value;
  }

 private:
  tl::unexpected<Error> error(std::string message, ErrorCode code = ErrorCode::kSyntax) const {
    Error out{code, std::move(message), std::string(path_)};
    const std::string_view before = text_.substr(0, at_);
    out.line = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    out.column = at_ - (before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1) + 1;
    return tl::unexpected<Error>(std::move(out));
  }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\\' && peek(1) == '\n') {
        at_ += 2;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  bool ends_expression() {
    skip_space();
    const char c = peek();
    return c == '\0' || c == ',' || c == ')' || c == ']' || c == '}' || c == ':' || (c == '=' && peek(1) != '=');
  }

  // A value, unless more of an expression follows it: then the whole is its text.
  Expected<Json> expression(int depth) {
    if (depth > kMaxDepth) return error("expressions are nested too deeply", ErrorCode::kTooLarge);
    skip_space();
    const std::size_t start = at_;
    KERNTRAIL_TRY(Json value, primary(depth));
    if (ends_expression()) return value;
    KERNTRAIL_CHECK(skip_expression());
    return Json(trim(text_.substr(start, at_ - start)));
  }

  Expected<Json> primary(int depth) {
    const char c = peek();
    if (string_length() > 0) return string();
    if (is_digit(c) || (c == '.' && is_digit(peek(1))) ||
        ((c == '-' || c == '+') && (is_digit(peek(1)) || peek(1) == '.')))
      return number();
    if (is_name_start(c)) return name(depth);
    if (c == '[') return list(']', depth);
    if (c == '(') return parenthesised(depth);
    if (c == '{') return braces(depth);
    if (c == '-' || c == '+' || c == '~' || c == '*') return Json();  // an operator: the caller takes the text
    return error(at_ == text_.size() ? "the text ends within an expression" : "no expression begins here");
  }

  // To the end of an expression that is no literal, over balanced brackets and strings.
  Expected<void> skip_expression() {
    int open = 0;
    while (at_ < text_.size()) {
      if (string_length() > 0) {
        KERNTRAIL_CHECK(string());
        continue;
      }
      const char c = peek();
      const bool closes = c == ')' || c == ']' || c == '}';
      if (open == 0 && (closes || c == ',' || c == ':')) return {};
      if (c == '(' || c == '[' || c == '{') ++open;
      if (closes) --open;
      ++at_;
    }
    if (open > 0) return error("the text ends within brackets");
    return {};
  }

  // Of the prefix and the opening quotes; 0 where no string begins here.
  std::size_t string_length() const {
    std::size_t prefix = 0;
    while (prefix < 3 && std::string_view("rRbBuUfF").find(peek(prefix)) != std::string_view::npos &&
           peek(prefix) != '\0')
      ++prefix;
    const char quote = peek(prefix);
    if (quote != '\'' && quote != '"') return 0;
    return prefix + (peek(prefix + 1) == quote && peek(prefix + 2) == quote ? 3 : 1);
  }

  Expected<Json> string() {
    std::string out;
    for (std::size_t length = string_length(); length > 0; skip_space(), length = string_length()) {
      KERNTRAIL_CHECK(one_string(length, out));
    }
    return Json(std::move(out));
  }

  Expected<void> one_string(std::size_t length, std::string& out) {
    bool raw = false;
    for (; peek() != '\'' && peek() != '"'; ++at_, --length) raw = raw || peek() == 'r' || peek() == 'R';
    const char quote = peek();
    const std::string end(length, quote);
    at_ += length;
    while (text_.substr(at_, end.size()) != end) {
      if (at_ >= text_.size() || (length == 1 && peek() == '\n')) return error("a string is not closed");
      if (peek() != '\\') {
        out.push_back(text_[at_++]);
      } else if (raw) {
        out.append(text_.substr(at_, 2));
        at_ = std::min(at_ + 2, text_.size());
      } else {
        KERNTRAIL_CHECK(escape(out));
      }
    }
    at_ += end.size();
    return {};
  }

  Expected<void> escape(std::string& out) {
    const char c = peek(1);
    at_ += 2;
    if (c == '\n') return {};
    for (const Escape& known : kEscapes) {
      if (known.written != c) continue;
      out.push_back(known.meant);
      return {};
    }
    if (c == 'x') return code_point(2, out);
    if (c == 'u') return code_point(4, out);
    if (c == 'U') return code_point(8, out);
    if (c >= '0' && c <= '7') {
      --at_;
      std::uint32_t value = 0;
      for (int i = 0; i < 3 && peek() >= '0' && peek() <= '7'; ++i)
        value = value * 8 + static_cast<std::uint32_t>(text_[at_++] - '0');
      append_utf8(out, value);
      return {};
    }
    out.push_back('\\');
    if (at_ > text_.size()) return error("a string is not closed");
    out.push_back(c);
    return {};
  }

  Expected<void> code_point(std::size_t digits, std::string& out) {
    std::uint32_t value = 0;
    const std::string_view hex = text_.substr(std::min(at_, text_.size()), digits);
    const auto read = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
    if (hex.size() != digits || read.ptr != hex.data() + digits || value > 0x10FFFF)
      return error("an escape of a string is no code point");
    append_utf8(out, value);
    at_ += digits;
    return {};
  }

  Expected<Json> number() {
    const std::size_t start = at_;
    if (peek() == '-' || peek() == '+') ++at_;
    const auto part = [&](char c) { return is_name(c) || c == '.'; };
    while (part(peek()) || ((peek() == '-' || peek() == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E')))
      ++at_;
    std::string digits(text_.substr(start, at_ - start));
    std::erase(digits, '_');
    const char* const first = digits.data() + (digits.starts_with('+') ? 1 : 0);
    const char* const last = digits.data() + digits.size();
    std::int64_t integer = 0;
    const auto as_integer = std::from_chars(first, last, integer);
    if (as_integer.ptr == last && as_integer.ec == std::errc()) return Json(integer);
    if (as_integer.ptr == last) return Json(std::string(first, last));  // out of range
    double real = 0;
    const auto as_real = std::from_chars(first, last, real);
    if (as_real.ptr == last && as_real.ec == std::errc()) return Json(real);
    return Json(text_.substr(start, at_ - start));  // hexadecimal, complex: its text
  }

  Expected<Json> name(int depth) {
    const std::size_t start = at_;
    while (is_name(peek()) || (peek() == '.' && is_name_start(peek(1)))) ++at_;
    const std::string_view spelled = text_.substr(start, at_ - start);
    if (peek() == '(') return call(spelled, depth);
    if (spelled == "None") return Json();
    if (spelled == "True" || spelled == "False") return Json(spelled == "True");
    return Json(spelled);
  }

  Expected<Json> call(std::string_view callee, int depth) {
    JsonObject out{{std::string(kCallee), Json(callee)}};
    ++at_;
    int place = 0;
    while (true) {
      skip_space();
      if (peek() == ')') break;
      std::string key = fmt::format("{}", place);
      const std::size_t start = at_;
      if (is_name_start(peek())) {
        while (is_name(peek())) ++at_;
        const std::string_view word = text_.substr(start, at_ - start);
        skip_space();
        if (peek() == '=' && peek(1) != '=') {
          key = word;
          ++at_;
        } else {
          at_ = start;
        }
      }
      if (at_ == start) ++place;
      KERNTRAIL_TRY(Json value, expression(depth + 1));
      out.emplace_back(std::move(key), std::move(value));
      KERNTRAIL_CHECK(comma(')'));
    }
    ++at_;
    return Json(std::move(out));
  }

  // After an item: a comma, or the bracket that closes.
  Expected<void> comma(char close) {
    skip_space();
    if (peek() == ',') {
      ++at_;
      return {};
    }
    if (peek() == close) return {};
    return error(fmt::format("neither a comma nor \"{}\" follows an item", close));
  }

  Expected<Json> list(char close, int depth) {
    JsonArray out;
    ++at_;
    for (skip_space(); peek() != close; skip_space()) {
      KERNTRAIL_TRY(Json value, expression(depth + 1));
      out.push_back(std::move(value));
      KERNTRAIL_CHECK(comma(close));
    }
    ++at_;
    return Json(std::move(out));
  }

  // A tuple, or an expression in parentheses.
  Expected<Json> parenthesised(int depth) {
    JsonArray out;
    ++at_;
    bool is_tuple = true;
    for (skip_space(); peek() != ')'; skip_space()) {
      KERNTRAIL_TRY(Json value, expression(depth + 1));
      out.push_back(std::move(value));
      KERNTRAIL_CHECK(comma(')'));
      is_tuple = out.size() > 1 || text_[at_ - 1] == ',';
    }
    ++at_;
    return is_tuple ? Json(std::move(out)) : std::move(out.front());
  }

  Expected<Json> braces(int depth) {
    JsonObject members;
    JsonArray items;
    ++at_;
    bool is_set = false;
    for (skip_space(); peek() != '}'; skip_space()) {
      const std::size_t start = at_;
      KERNTRAIL_TRY(Json key, expression(depth + 1));
      const std::string_view spelled = trim(text_.substr(start, at_ - start));
      skip_space();
      if (peek() == ':') {
        ++at_;
        KERNTRAIL_TRY(Json value, expression(depth + 1));
        members.emplace_back(std::string(key.is_string() ? key.as_string() : spelled), std::move(value));
      } else {
        is_set = true;
        items.push_back(std::move(key));
      }
      KERNTRAIL_CHECK(comma('}'));
    }
    ++at_;
    return is_set ? Json(std::move(items)) : Json(std::move(members));
  }

  std::string_view text_, path_;
  std::size_t at_ = 0;
};

}  // namespace

Expected<Json> parse_python_literal(std::string_view text, std::string_view path) { return Parser(text, path).whole(); }

}  // namespace kerntrail::base
