// Index expressions: values. The parser is in index_parser.cpp.
#include "spyre/index_expr.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "spyre/checked.h"

namespace kerntrail::spyre {
namespace {

// An exact fraction, den > 0, lowest terms. Every operation reports overflow by an empty optional.
struct Fraction {
  std::int64_t num = 0;
  std::int64_t den = 1;
};
using MaybeFraction = std::optional<Fraction>;

MaybeFraction reduced(std::optional<std::int64_t> num, std::optional<std::int64_t> den) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  if (!num || !den || *num == kMin || *den == kMin || *den == 0) return std::nullopt;
  const std::int64_t divisor = std::gcd(*num, *den);
  const std::int64_t sign = *den < 0 ? -1 : 1;
  return Fraction{sign * (*num / divisor), sign * (*den / divisor)};
}

std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) { return checked_multiply(a, b); }

MaybeFraction add(Fraction a, Fraction b) {
  const auto left = product(a.num, b.den);
  const auto right = product(b.num, a.den);
  if (!left || !right) return std::nullopt;
  return reduced(checked_add(*left, *right), product(a.den, b.den));
}

MaybeFraction multiply(Fraction a, Fraction b) { return reduced(product(a.num, b.num), product(a.den, b.den)); }
MaybeFraction negate(Fraction a) { return Fraction{-a.num, a.den}; }
MaybeFraction divide(Fraction a, Fraction b) { return reduced(product(a.num, b.den), product(a.den, b.num)); }
Fraction floor_of(Fraction a) { return Fraction{floor_divide(a.num, a.den), 1}; }

MaybeFraction floor_quotient(Fraction a, Fraction b) {
  const MaybeFraction quotient = divide(a, b);
  if (!quotient) return std::nullopt;
  return floor_of(*quotient);
}

MaybeFraction modulo(Fraction a, Fraction b) {
  const MaybeFraction quotient = floor_quotient(a, b);
  if (!quotient) return std::nullopt;
  const MaybeFraction whole = multiply(b, *quotient);
  if (!whole) return std::nullopt;
  return add(a, Fraction{-whole->num, whole->den});
}

MaybeFraction power(Fraction base, std::int64_t exponent) {
  Fraction result{1, 1};
  while (true) {
    if (exponent & 1) {
      const MaybeFraction next = multiply(result, base);
      if (!next) return std::nullopt;
      result = *next;
    }
    exponent >>= 1;
    if (exponent == 0) return result;
    const MaybeFraction square = multiply(base, base);
    if (!square) return std::nullopt;
    base = *square;
  }
}

void add_term(LinearForm& form, std::string_view symbol, std::int64_t coefficient, bool& overflow) {
  for (auto term = form.terms.begin(); term != form.terms.end(); ++term) {
    if (term->first != symbol) continue;
    const auto sum = checked_add(term->second, coefficient);
    overflow |= !sum;
    term->second = sum.value_or(0);
    if (term->second == 0) form.terms.erase(term);
    return;
  }
  if (coefficient != 0) form.terms.emplace_back(std::string(symbol), coefficient);
}

tl::unexpected<Error> overflowed() {
  return fail(ErrorCode::kTooLarge, "the value of an index expression leaves 64 bits");
}

tl::unexpected<Error> not_linear(std::string_view reason) {
  return fail(ErrorCode::kUnsupported, fmt::format("the index is not linear: {}", reason));
}

Expected<LinearForm> scaled(LinearForm form, std::int64_t factor) {
  bool overflow = false;
  const auto times = [&](std::int64_t v) {
    const auto r = checked_multiply(v, factor);
    overflow |= !r;
    return r.value_or(0);
  };
  for (auto& term : form.terms) term.second = times(term.second);
  form.constant = times(form.constant);
  if (factor == 0) form.terms.clear();
  if (overflow) return overflowed();
  return form;
}

Expected<LinearForm> sum(LinearForm a, const LinearForm& b) {
  bool overflow = false;
  for (const auto& [symbol, coefficient] : b.terms) add_term(a, symbol, coefficient, overflow);
  const auto constant = checked_add(a.constant, b.constant);
  if (overflow || !constant) return overflowed();
  a.constant = *constant;
  return a;
}

Expected<LinearForm> exact_quotient(LinearForm a, std::int64_t divisor) {
  if (divisor == 0) return not_linear("division by zero");
  const bool exact = a.constant % divisor == 0 && std::all_of(a.terms.begin(), a.terms.end(), [&](const auto& term) {
                       return term.second % divisor == 0;
                     });
  if (!exact) return not_linear("a division leaves a remainder");
  for (auto& term : a.terms) term.second /= divisor;
  a.constant /= divisor;
  return a;
}

}  // namespace

std::int64_t LinearForm::coefficient(std::string_view symbol) const {
  for (const auto& [name, value] : terms) {
    if (name == symbol) return value;
  }
  return 0;
}

IndexExpr::IndexExpr() : steps_{Step{Code::kInteger, 0}} {}

Expected<std::int64_t> IndexExpr::evaluate(const Point& point) const {
  std::vector<Fraction> stack;
  for (const Step& step : steps_) {
    MaybeFraction value;
    if (step.code == Code::kInteger) {
      value = Fraction{step.value, 1};
    } else if (step.code == Code::kSymbol) {
      const std::string& name = names_[static_cast<std::size_t>(step.value)];
      const auto found = point.find(name);
      if (found == point.end()) return fail(ErrorCode::kReference, fmt::format("symbol '{}' has no value", name));
      value = reduced(found->second, 1);
    } else if (step.code == Code::kNegate || step.code == Code::kFloor) {
      value = step.code == Code::kNegate ? negate(stack.back()) : MaybeFraction(floor_of(stack.back()));
      stack.pop_back();
    } else {
      const Fraction b = stack.back();
      stack.pop_back();
      const Fraction a = stack.back();
      stack.pop_back();
      const bool divides = step.code == Code::kDivide || step.code == Code::kFloorDivide || step.code == Code::kModulo;
      if (divides && b.num == 0) return fail(ErrorCode::kUnsupported, "an index expression divides by zero");
      if (step.code == Code::kPower && (b.den != 1 || b.num < 0)) {
        return fail(ErrorCode::kUnsupported, "an index expression has a power that is no natural number");
      }
      switch (step.code) {
        case Code::kAdd: value = add(a, b); break;
        case Code::kSubtract: value = add(a, Fraction{-b.num, b.den}); break;
        case Code::kMultiply: value = multiply(a, b); break;
        case Code::kDivide: value = divide(a, b); break;
        case Code::kFloorDivide: value = floor_quotient(a, b); break;
        case Code::kModulo: value = modulo(a, b); break;
        default: value = power(a, b.num); break;
      }
    }
    if (!value) return overflowed();
    stack.push_back(*value);
  }
  if (stack.back().den != 1) return fail(ErrorCode::kUnsupported, "the value of an index expression is no integer");
  return stack.back().num;
}

namespace {

Expected<LinearForm> linear_binary(char op, LinearForm a, LinearForm b) {
  const bool a_constant = a.terms.empty();
  const bool b_constant = b.terms.empty();
  if (op == '+') return sum(std::move(a), b);
  if (op == '-') {
    KERNTRAIL_TRY(LinearForm negative, scaled(std::move(b), -1));
    return sum(std::move(a), negative);
  }
  if (op == '*') {
    if (!a_constant && !b_constant) return not_linear("a product of symbols");
    return b_constant ? scaled(std::move(a), b.constant) : scaled(std::move(b), a.constant);
  }
  if (op == '/' && b_constant) return exact_quotient(std::move(a), b.constant);
  if (!a_constant || !b_constant) {
    // A floor that has nothing to round is still linear.
    if (op == 'f' && b_constant && exact_quotient(a, b.constant)) return exact_quotient(std::move(a), b.constant);
    return not_linear("a division, modulo or power of a symbol");
  }
  const Fraction x{a.constant, 1};
  const Fraction y{b.constant, 1};
  if (op != '^' && y.num == 0) return not_linear("division by zero");
  if (op == '^' && y.num < 0) return not_linear("a negative power");
  const MaybeFraction value = op == 'f' ? floor_quotient(x, y) : op == '%' ? modulo(x, y) : power(x, y.num);
  if (!value) return overflowed();
  return LinearForm{{}, value->num};
}

}  // namespace

Expected<LinearForm> IndexExpr::linear() const {
  std::vector<LinearForm> stack;
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    const Step& step = steps_[at];
    if (step.code == Code::kInteger) {
      stack.push_back(LinearForm{{}, step.value});
    } else if (step.code == Code::kSymbol) {
      stack.push_back(LinearForm{{{names_[static_cast<std::size_t>(step.value)], 1}}, 0});
    } else if (step.code == Code::kNegate) {
      KERNTRAIL_TRY(stack.back(), scaled(std::move(stack.back()), -1));
    } else if (step.code == Code::kFloor) {
      // Fractions are refused at the division unless the floor around it settles them: floor(x / 64) is x // 64.
      continue;
    } else {
      LinearForm b = std::move(stack.back());
      stack.pop_back();
      LinearForm a = std::move(stack.back());
      stack.pop_back();
      const bool floored = at + 1 < steps_.size() && steps_[at + 1].code == Code::kFloor;
      char op = '^';
      switch (step.code) {
        case Code::kAdd: op = '+'; break;
        case Code::kSubtract: op = '-'; break;
        case Code::kMultiply: op = '*'; break;
        case Code::kDivide: op = floored ? 'f' : '/'; break;
        case Code::kFloorDivide: op = 'f'; break;
        case Code::kModulo: op = '%'; break;
        default: break;
      }
      KERNTRAIL_TRY(LinearForm value, linear_binary(op, std::move(a), std::move(b)));
      stack.push_back(std::move(value));
    }
  }
  return std::move(stack.back());
}

std::vector<std::string> IndexExpr::symbols() const { return names_; }

std::string IndexExpr::text() const {
  // Binding strength of what stands on the stack: 1 sum, 2 product, 3 sign, 4 power, 5 atom.
  struct Part {
    std::string text;
    int strength;
  };
  std::vector<Part> stack;
  const auto wrapped = [](Part part, int at_least) {
    return part.strength < at_least ? "(" + part.text + ")" : std::move(part.text);
  };
  for (const Step& step : steps_) {
    if (step.code == Code::kInteger) {
      stack.push_back({std::to_string(step.value), 5});
      continue;
    }
    if (step.code == Code::kSymbol) {
      stack.push_back({names_[static_cast<std::size_t>(step.value)], 5});
      continue;
    }
    Part b = std::move(stack.back());
    stack.pop_back();
    if (step.code == Code::kNegate || step.code == Code::kFloor) {
      const bool floor = step.code == Code::kFloor;
      stack.push_back(floor ? Part{"floor(" + b.text + ")", 5} : Part{"-" + wrapped(std::move(b), 4), 3});
      continue;
    }
    Part a = std::move(stack.back());
    stack.pop_back();
    const auto joined = [&](std::string_view op, int strength) {
      std::string text = wrapped(std::move(a), strength);
      text += op;
      text += wrapped(std::move(b), strength + 1);
      return Part{std::move(text), strength};
    };
    switch (step.code) {
      case Code::kAdd: stack.push_back(joined(" + ", 1)); break;
      case Code::kSubtract: stack.push_back(joined(" - ", 1)); break;
      case Code::kMultiply: stack.push_back(joined("*", 2)); break;
      case Code::kDivide: stack.push_back(joined("/", 2)); break;
      case Code::kFloorDivide: stack.push_back(joined("//", 2)); break;
      case Code::kModulo: stack.push_back({"Mod(" + a.text + ", " + b.text + ")", 5}); break;
      default: stack.push_back({wrapped(std::move(a), 5) + "**" + wrapped(std::move(b), 5), 4}); break;
    }
  }
  return std::move(stack.back().text);
}

Expected<LinearForm> parse_linear(std::string_view text) {
  KERNTRAIL_TRY(const IndexExpr expression, IndexExpr::parse(text));
  return expression.linear();
}

}  // namespace kerntrail::spyre
