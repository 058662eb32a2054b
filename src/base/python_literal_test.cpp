#include "base/python_literal.h"

#include <gtest/gtest.h>

#include <string>

namespace kerntrail::base {
namespace {

std::string parsed(std::string_view text) {
  const auto value = parse_python_literal(text);
  return value ? value->dump() : "error: " + value.error().text();
}

TEST(PythonLiteral, Values) {
  EXPECT_EQ(parsed("None"), "null");
  EXPECT_EQ(parsed(" True "), "true");
  EXPECT_EQ(parsed("-12"), "-12");
  EXPECT_EQ(parsed("1_000"), "1000");
  EXPECT_EQ(parsed("9223372036854775808"), "\"9223372036854775808\"");
  EXPECT_EQ(parsed("1.5e-3"), "0.0015");
  EXPECT_EQ(parsed("[1, (2, 3,), (4), (5,), ()]"), "[1,[2,3],4,[5],[]]");
  EXPECT_EQ(parsed("{'a': 1, c0: 2, 3: {4, 5}}"), R"({"a":1,"c0":2,"3":[4,5]})");
  EXPECT_EQ(parsed("torch.float16"), "\"torch.float16\"");
}

TEST(PythonLiteral, Strings) {
  EXPECT_EQ(parsed(R"('it\'s' "\n\x41\u00e9\101")"), R"("it's\nAéA")");
  EXPECT_EQ(parsed("r'\\d\\''"), R"("\\d\\'")");
  EXPECT_EQ(parsed("'''a\n'b' '''"), R"("a\n'b' ")");
  EXPECT_EQ(parsed("b''"), "\"\"");
  EXPECT_EQ(parsed(R"('\q')"), R"("\\q")");
}

TEST(PythonLiteral, CallsKeepNamesOfArguments) {
  EXPECT_EQ(parsed("a.sdsc('k', [OpSpec(op='add', n=None, x=f(1))])"),
            R"x({"()":"a.sdsc","0":"k","1":[{"()":"OpSpec","op":"add","n":null,"x":{"()":"f","0":1}}]})x");
}

TEST(PythonLiteral, WhatIsNoLiteralIsItsText) {
  EXPECT_EQ(parsed("[64*c0 + c1, -c2, x[1, 2], f(1) + g(',)'), not y]"),
            R"x(["64*c0 + c1","-c2","x[1, 2]","f(1) + g(',)')","not y"])x");
}

TEST(PythonLiteral, DamagedTextIsAnErrorWithItsPlace) {
  for (const char* text :
       {"", "[", "[1", "[1 2", "'a", "f(", "f(a=", "{'a':", "(1", "]", "1 2)", "'\\x4'", "'\\", "{1: 2", "[f(]"}) {
    const auto value = parse_python_literal(text, "k.py");
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().path, "k.py");
    EXPECT_GE(value.error().line, 1U);
  }
  EXPECT_EQ(parse_python_literal("[1,\n 'x").error().line, 2U);
  EXPECT_EQ(parse_python_literal(std::string(100'000, '[')).error().code, ErrorCode::kTooLarge);
}

TEST(PythonLiteral, EveryCutOfATextEndsOrFails) {
  const std::string text = R"(async.sdsc('n', [OpSpec(op='a\x41', h=Handle(id=1, s=(1, {'k': -2.5}), t=x + 1))]))";
  ASSERT_TRUE(parse_python_literal(text));
  for (std::size_t n = 0; n < text.size(); ++n) (void)parse_python_literal(text.substr(0, n));
}

}  // namespace
}  // namespace kerntrail::base
