#include "base/strings.h"

#include <gtest/gtest.h>

namespace kerntrail::base {
namespace {

TEST(Strings, WithoutAddresses) {
  EXPECT_EQ(without_addresses("<built-in method relu of type object at 0x7fc0e64078a0>"),
            "<built-in method relu of type object>");
  EXPECT_EQ(without_addresses("at 0x1 at 0x2f, at 0xzz"), "at 0x1, at 0xzz");
  EXPECT_EQ(without_addresses("plain"), "plain");
  EXPECT_EQ(without_addresses("x at 0x12"), "x");
}

TEST(Strings, CutNeverHalvesACodePoint) {
  EXPECT_EQ(cut("añb", 2), "añ");
  EXPECT_EQ(cut("añb", 3), "añb");
  EXPECT_EQ(cut("", 3), "");
}

TEST(Strings, LinesAndTrim) {
  EXPECT_EQ(split_lines("a\r\nb\n"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(trim(" \t x y \n"), "x y");
  EXPECT_EQ(trim("  "), "");
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(replace_all("aaa", "a", "aa"), "aaaaaa");
}

TEST(Strings, Counted) {
  EXPECT_EQ(counted(1, "kernel"), "1 kernel");
  EXPECT_EQ(counted(0, "kernel"), "0 kernels");
  EXPECT_EQ(counted(2, "entry", "entries"), "2 entries");
  EXPECT_EQ(basename("/a/b.py"), "b.py");
  EXPECT_EQ(basename("b.py"), "b.py");
}

}  // namespace
}  // namespace kerntrail::base
