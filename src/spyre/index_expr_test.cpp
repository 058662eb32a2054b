#include "spyre/index_expr.h"

#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kerntrail::spyre {
namespace {

std::int64_t value_of(std::string_view text, const Point& point = {}) {
  const auto expression = IndexExpr::parse(text);
  EXPECT_TRUE(expression) << text << ": " << (expression ? "" : expression.error().message);
  if (!expression) return -1;
  const auto value = expression->evaluate(point);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message);
  return value.value_or(-1);
}

TEST(IndexExpr, ReadsWhatSympyPrints) {
  const Point p{{"c0", 5}, {"c1", 130}, {"z_2", 7}};
  EXPECT_EQ(value_of("256*c0 + c1", p), 1410);
  EXPECT_EQ(value_of("floor(c1/64)", p), 2);
  EXPECT_EQ(value_of("Mod(c1, 64)", p), 2);
  EXPECT_EQ(value_of("(c1//64)*64 + c1 % 64", p), 130);
  EXPECT_EQ(value_of("ModularIndexing(c1, 4, 8)", p), 0);
  EXPECT_EQ(value_of("FloorDiv(c1 + c0, 2) - z_2", p), 60);
  EXPECT_EQ(value_of("floor(c0/2 + 1/2)", p), 3);
  EXPECT_EQ(value_of("CleanDiv(c1, 2)", p), 65);
  EXPECT_EQ(value_of("c0**2 + 2**c0", p), 57);
}

TEST(IndexExpr, BindsAsPythonDoes) {
  EXPECT_EQ(value_of("-2**2"), -4);
  EXPECT_EQ(value_of("(-2)**2"), 4);
  EXPECT_EQ(value_of("2**3**2"), 512);
  EXPECT_EQ(value_of("7 - 2 - 1"), 4);
  EXPECT_EQ(value_of("100 // 7 // 2"), 7);
  EXPECT_EQ(value_of("2 * 7 % 4"), 2);
  EXPECT_EQ(value_of("-7 // 2"), -4);
  EXPECT_EQ(value_of("Mod(-7, 3)"), 2);
  EXPECT_EQ(value_of("PythonMod(7, -3)"), -2);
  EXPECT_EQ(value_of("--3 - -2"), 5);
}

TEST(IndexExpr, RefusesWhatItCannotRead) {
  for (const char* text :
       {"", "c0 +", "(c0", "c0)", "1.5", "2c", "c0 c1", "Mod(c0)", "Mod(c0, 2, 3)", "c0 & 1", "floor()", "\"", "*c0"}) {
    const auto parsed = IndexExpr::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kSyntax) << text;
  }
  EXPECT_EQ(IndexExpr::parse("Max(c0, 1)").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(IndexExpr::parse("9223372036854775808").error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(IndexExpr::parse(std::string(1000, '(')).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(IndexExpr::parse(std::string(1000, '-') + "1").error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(IndexExpr::parse(std::string(IndexExpr::kMaxText + 1, ' ')).error().code, ErrorCode::kTooLarge);
}

TEST(IndexExpr, ReportsValuesItCannotReach) {
  const auto code = [](std::string_view text) {
    return IndexExpr::parse(text).value().evaluate({{"c0", 3}}).error().code;
  };
  EXPECT_EQ(code("c1"), ErrorCode::kReference);
  EXPECT_EQ(code("c0/2"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("1 // (c0 - 3)"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("2**-c0"), ErrorCode::kUnsupported);
  EXPECT_EQ(code("9223372036854775807 + c0"), ErrorCode::kTooLarge);
  EXPECT_EQ(code("10**c0**30"), ErrorCode::kTooLarge);
}

TEST(LinearForm, CollectsCoefficients) {
  const LinearForm form = parse_linear("2*(c1 + 3*c0) - c1 + 4 - c2*0").value();
  EXPECT_EQ(form.coefficient("c0"), 6);
  EXPECT_EQ(form.coefficient("c1"), 1);
  EXPECT_EQ(form.coefficient("c2"), 0);
  EXPECT_EQ(form.constant, 4);
  EXPECT_EQ(form.terms.size(), 2U);
  EXPECT_EQ(parse_linear("c0 - c0").value(), LinearForm{});
  EXPECT_EQ(parse_linear("(4*c0 + 8)/4").value(), (LinearForm{{{"c0", 1}}, 2}));
  EXPECT_EQ(parse_linear("floor((4*c0)/2)").value(), (LinearForm{{{"c0", 2}}, 0}));
  EXPECT_EQ(parse_linear("7 // 2 + Mod(9, 4) + 2**3").value(), (LinearForm{{}, 12}));
}

TEST(LinearForm, SaysWhatIsNotLinear) {
  for (const char* text :
       {"c0*c1", "floor(c0/64)", "Mod(c0, 64)", "c0//2", "c0/2", "c0**2", "2**c0", "1/0", "floor(c0/2 + 1/2)"}) {
    const auto form = parse_linear(text);
    ASSERT_FALSE(form) << text;
    EXPECT_EQ(form.error().code, ErrorCode::kUnsupported) << text;
  }
  EXPECT_EQ(parse_linear("9223372036854775807*c0 + c0").error().code, ErrorCode::kTooLarge);
}

// A random expression with its text and, computed beside the library, its value.
struct Sample {
  std::string text;
  std::int64_t value = 0;
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

Sample sample(int depth) {
  const int kind = *rc::gen::inRange(0, depth == 0 ? 2 : 9);
  if (kind == 0) {
    const int v = *rc::gen::inRange(0, 200);
    return {std::to_string(v), v};
  }
  if (kind == 1) {
    const int i = *rc::gen::inRange(0, 4);
    return {"c" + std::to_string(i), 3 * i + 2};
  }
  const Sample a = sample(depth - 1);
  if (kind == 2) return {"-(" + a.text + ")", -a.value};
  if (kind <= 5) {
    const Sample b = sample(depth - 1);
    if (kind == 3) return {"(" + a.text + ") + (" + b.text + ")", a.value + b.value};
    if (kind == 4) return {"(" + a.text + ") - (" + b.text + ")", a.value - b.value};
    return {"(" + a.text + ")*(" + b.text + ")", a.value * b.value};
  }
  const int d = *rc::gen::inRange(1, 70);
  const std::string divisor = std::to_string(d);
  const std::int64_t quotient = floor_div(a.value, d);
  if (kind == 6) return {"floor((" + a.text + ")/" + divisor + ")", quotient};
  if (kind == 7) return {"((" + a.text + ")//" + divisor + ")", quotient};
  return {"Mod(" + a.text + ", " + divisor + ")", a.value - quotient * d};
}

RC_GTEST_PROP(IndexExpr, AgreesWithNaiveEvaluationAndPrintsItselfBack, ()) {
  const Sample s = sample(*rc::gen::inRange(0, 5));
  const Point point{{"c0", 2}, {"c1", 5}, {"c2", 8}, {"c3", 11}};
  const auto expression = IndexExpr::parse(s.text);
  RC_ASSERT(expression.has_value());
  RC_ASSERT(expression->evaluate(point).value() == s.value);
  const auto again = IndexExpr::parse(expression->text());
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->evaluate(point).value() == s.value);
  const auto form = expression->linear();
  if (form) {
    std::int64_t sum = form->constant;
    for (const auto& [name, coefficient] : form->terms) sum += coefficient * point.at(name);
    RC_ASSERT(sum == s.value);
  }
}

RC_GTEST_PROP(IndexExpr, SurvivesAnyText, (const std::string& text)) {
  const auto expression = IndexExpr::parse(text);
  if (expression) {
    (void)expression->evaluate({{"a", 1}});
    (void)expression->linear();
    RC_ASSERT(IndexExpr::parse(expression->text()).has_value());
  }
}

RC_GTEST_PROP(IndexExpr, SurvivesTextOfItsOwnAlphabet, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "c0", "7", "+", "-", "*", "/", "//", "%", "**", "(", ")", ",", "Mod(", "floor(", " ", "0"));
  std::string text;
  for (const std::string& part : parts) text += part;
  const auto expression = IndexExpr::parse(text);
  if (expression) {
    (void)expression->evaluate({{"c0", 3}});
    (void)expression->linear();
  }
}

}  // namespace
}  // namespace kerntrail::spyre
