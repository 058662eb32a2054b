// Index expressions as sympy prints them: parsed, evaluated at a point, printed again, reduced to a linear form.
// Accepts + - * / // % **, unary minus, parentheses, integers, symbols, floor(x), Mod(a, b), PythonMod(a, b),
// FloorDiv(a, b), CleanDiv(a, b), ModularIndexing(a, d, m). Division and modulo round towards minus infinity, as in
// Python; `/` is exact and must have become an integer again by the end (sympy writes floor(c1/64)).
// Must not know: tensors, layouts, iteration spaces.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::spyre {

// sum of coefficient * symbol, plus a constant. Terms in order of first appearance, no zero coefficients.
struct LinearForm {
  std::vector<std::pair<std::string, std::int64_t>> terms;
  std::int64_t constant = 0;

  std::int64_t coefficient(std::string_view symbol) const;  // 0 where the symbol does not occur

  bool operator==(const LinearForm&) const = default;
};

using Point = std::map<std::string, std::int64_t, std::less<>>;

class IndexExpr {
 public:
  // The constant 0.
  IndexExpr();
  // Limits: kMaxText characters, kMaxDepth nested parentheses, calls and signs. Errors: kSyntax, kTooLarge,
  // kUnsupported for a function that is not in the list above.
  static Expected<IndexExpr> parse(std::string_view text);
  static constexpr std::size_t kMaxText = 16 * 1024;
  static constexpr int kMaxDepth = 200;

  // Errors: kReference for a symbol without a value, kTooLarge on overflow, kUnsupported for a division by zero, a
  // negative power or a value that is no integer.
  Expected<std::int64_t> evaluate(const Point& point) const;

  // kUnsupported, with the reason, where the expression is not linear with integer coefficients.
  Expected<LinearForm> linear() const;

  std::vector<std::string> symbols() const;  // in order of first appearance, each once
  bool is_constant() const { return names_.empty(); }
  std::string text() const;                  // fully parenthesised where needed; parses back to an equal value

 private:
  enum class Code : std::uint8_t {
    kInteger,
    kSymbol,
    kNegate,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kModulo,
    kPower,
    kFloor
  };
  struct Step {
    Code code;
    std::int64_t value = 0;  // the integer, or an index into names_
  };
  friend class IndexParser;
  // Postfix order, so that no walk over an expression needs the machine stack.
  std::vector<Step> steps_;
  std::vector<std::string> names_;
};

// Parses and reduces in one go.
Expected<LinearForm> parse_linear(std::string_view text);

}  // namespace kerntrail::spyre
