// Text to IndexExpr: recursive descent with a depth limit, straight into postfix order.
#include <charconv>

#include <fmt/format.h>

#include "spyre/index_expr.h"

namespace kerntrail::spyre {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

class IndexParser {
 public:
  explicit IndexParser(std::string_view text) : text_(text) {}

  Expected<IndexExpr> run() {
    out_.steps_.clear();
    KERNTRAIL_CHECK(sum());
    if (peek() != '\0' || at_ < text_.size()) return unexpected_here();
    return std::move(out_);
  }

 private:
  using Code = IndexExpr::Code;

  // Counts the nesting that is left to the machine stack.
  struct Level {
    explicit Level(int& depth) : depth_(depth) { ++depth_; }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    int& depth_;
  };

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(std::string_view token) {
    peek();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  tl::unexpected<Error> unexpected_here() {
    if (at_ >= text_.size()) return fail(ErrorCode::kSyntax, "the index expression ends too early");
    return fail(ErrorCode::kSyntax, fmt::format("unexpected text at character {} of the index expression", at_ + 1));
  }

  void emit(Code code, std::int64_t value = 0) { out_.steps_.push_back({code, value}); }

  Expected<void> sum() {
    const Level level(depth_);
    if (depth_ > IndexExpr::kMaxDepth) return fail(ErrorCode::kTooLarge, "the index expression is nested too deeply");
    KERNTRAIL_CHECK(product());
    while (true) {
      if (take("+")) {
        KERNTRAIL_CHECK(product());
        emit(Code::kAdd);
      } else if (take("-")) {
        KERNTRAIL_CHECK(product());
        emit(Code::kSubtract);
      } else {
        return {};
      }
    }
  }

  Expected<void> product() {
    KERNTRAIL_CHECK(sign());
    while (true) {
      Code code = Code::kMultiply;
      if (peek() == '*' && text_.substr(at_, 2) != "**") {
        ++at_;
      } else if (take("//")) {
        code = Code::kFloorDivide;
      } else if (take("/")) {
        code = Code::kDivide;
      } else if (take("%")) {
        code = Code::kModulo;
      } else {
        return {};
      }
      KERNTRAIL_CHECK(sign());
      emit(code);
    }
  }

  // As in Python, a sign binds less than a power on its right: -x**2 is -(x**2).
  Expected<void> sign() {
    const Level level(depth_);
    if (depth_ > IndexExpr::kMaxDepth) return fail(ErrorCode::kTooLarge, "the index expression is nested too deeply");
    if (take("-")) {
      KERNTRAIL_CHECK(sign());
      emit(Code::kNegate);
      return {};
    }
    if (take("+")) return sign();
    KERNTRAIL_CHECK(atom());
    if (take("**")) {
      KERNTRAIL_CHECK(sign());
      emit(Code::kPower);
    }
    return {};
  }

  Expected<void> atom() {
    const char c = peek();
    if (take("(")) {
      KERNTRAIL_CHECK(sum());
      if (!take(")")) return unexpected_here();
      return {};
    }
    if (is_digit(c)) return integer();
    if (is_name_start(c)) return name();
    return unexpected_here();
  }

  Expected<void> integer() {
    const char* first = text_.data() + at_;
    const char* last = text_.data() + text_.size();
    std::int64_t value = 0;
    const auto result = std::from_chars(first, last, value);
    if (result.ec != std::errc{})
      return fail(ErrorCode::kTooLarge, "an integer of the index expression leaves 64 bits");
    at_ += static_cast<std::size_t>(result.ptr - first);
    if (at_ < text_.size() && (text_[at_] == '.' || is_name_start(text_[at_]))) return unexpected_here();
    emit(Code::kInteger, value);
    return {};
  }

  Expected<void> name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name_start(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (take("(")) return call(word);
    std::size_t index = 0;
    while (index < out_.names_.size() && out_.names_[index] != word) ++index;
    if (index == out_.names_.size()) out_.names_.emplace_back(word);
    emit(Code::kSymbol, static_cast<std::int64_t>(index));
    return {};
  }

  Expected<void> comma() {
    if (!take(",")) return unexpected_here();
    return {};
  }

  // After the opening parenthesis.
  Expected<void> call(std::string_view function) {
    KERNTRAIL_CHECK(sum());
    if (function == "floor") {
      emit(Code::kFloor);
    } else if (function == "Mod" || function == "PythonMod") {
      KERNTRAIL_CHECK(comma());
      KERNTRAIL_CHECK(sum());
      emit(Code::kModulo);
    } else if (function == "FloorDiv" || function == "CleanDiv") {
      KERNTRAIL_CHECK(comma());
      KERNTRAIL_CHECK(sum());
      emit(Code::kFloorDivide);
    } else if (function == "ModularIndexing") {
      KERNTRAIL_CHECK(comma());
      KERNTRAIL_CHECK(sum());
      emit(Code::kFloorDivide);
      KERNTRAIL_CHECK(comma());
      KERNTRAIL_CHECK(sum());
      emit(Code::kModulo);
    } else {
      return fail(ErrorCode::kUnsupported, fmt::format("function '{}' in an index expression", function));
    }
    if (!take(")")) return unexpected_here();
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  IndexExpr out_;
};

Expected<IndexExpr> IndexExpr::parse(std::string_view text) {
  if (text.size() > kMaxText) return fail(ErrorCode::kTooLarge, "the index expression is too long");
  return IndexParser(text).run();
}

}  // namespace kerntrail::spyre
