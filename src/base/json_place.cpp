#include "base/json_place.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <unordered_set>

namespace kerntrail::base {
namespace {

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
constexpr int kMaxDepth = 512;

// Walks the text once, spelling the place it is at.
class Scanner {
 public:
  Scanner(std::string_view text, std::string_view wanted) : text_(text), wanted_(wanted) {}

  // True for one whole document; else at() is where it ends to be one.
  bool document() {
    space();
    start_ = at_;
    if (!value(0)) return false;
    space();
    return at_ == text_.size();
  }
  std::size_t at() const { return at_; }
  std::size_t start() const { return start_; }
  std::size_t found() const { return found_; }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool take(char c) {
    space();
    if (here() != c) return false;
    ++at_;
    return true;
  }
  void note(std::size_t at) {
    if (found_ == kNowhere && place_ == wanted_) found_ = at;
  }

  bool value(int depth) {
    space();
    if (depth > kMaxDepth) return false;
    if (here() == '{') return object(depth);
    if (here() == '[') return array(depth);
    if (here() == '"') return string();
    return word();
  }

  bool object(int depth) {
    ++at_;
    if (take('}')) return true;
    const std::size_t outer = place_.size();
    std::unordered_set<std::string_view> keys;
    do {
      space();
      const std::size_t from = at_;
      if (!string()) return false;
      const std::string_view key = text_.substr(from + 1, at_ - from - 2);
      if (!keys.insert(key).second) {
        at_ = from;
        return false;
      }
      place_ += (outer == 0 ? "" : ".") + std::string(key);
      note(from);
      if (!take(':') || !value(depth + 1)) return false;
      place_.resize(outer);
    } while (take(','));
    return take('}');
  }

  bool array(int depth) {
    ++at_;
    if (take(']')) return true;
    const std::size_t outer = place_.size();
    std::size_t i = 0;
    do {
      space();
      place_ += "[" + std::to_string(i++) + "]";
      note(at_);
      if (!value(depth + 1)) return false;
      place_.resize(outer);
    } while (take(','));
    return take(']');
  }

  bool string() {
    if (here() != '"') return false;
    for (std::size_t i = at_ + 1; i < text_.size() && static_cast<unsigned char>(text_[i]) >= 0x20; ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == '"') {
        at_ = i + 1;
        return true;
      }
    }
    return false;  // stays at its first quote
  }

  // A number or one of the three names; what exactly numbers look like is the parser's business.
  bool word() {
    const std::size_t from = at_;
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 ||
                                  std::string_view("+-.").find(text_[end]) != std::string_view::npos))
      ++end;
    const std::string_view found = text_.substr(from, end - from);
    const bool number = !found.empty() && (std::isdigit(static_cast<unsigned char>(found[0])) != 0 || found[0] == '-');
    if (!number && found != "true" && found != "false" && found != "null") return false;
    at_ = end;
    return true;
  }

  std::string_view text_, wanted_;
  std::string place_;
  std::size_t at_ = 0, start_ = 0, found_ = kNowhere;
};

TextPlace place_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n')) + 1, offset - line_start + 1};
}

}  // namespace

TextPlace find_json(std::string_view text, std::string_view place) {
  Scanner scanner(text, place);
  scanner.document();
  return place_of(text, scanner.found() == kNowhere ? scanner.start() : scanner.found());
}

TextPlace find_json_end(std::string_view text) {
  Scanner scanner(text, {});
  return scanner.document() ? TextPlace{} : place_of(text, scanner.at());
}

}  // namespace kerntrail::base
