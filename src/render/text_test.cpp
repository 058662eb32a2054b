#include "render/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kerntrail::render {
namespace {

TEST(Text, VisibleLeavesNoControlOrDirectionCharacters) {
  EXPECT_EQ(visible("a\nb\tc"), "a b c");
  EXPECT_EQ(visible("\x1b[31mred"), "\xEF\xBF\xBD[31mred");
  EXPECT_EQ(visible("a\xE2\x80\xAE"
                    "b"),
            "a\xEF\xBF\xBD"
            "b");  // right-to-left override
  EXPECT_EQ(visible("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(visible("\xFF"
                    "x"),
            "\xEF\xBF\xBD"
            "x");
}

TEST(Text, CodeSpanOutgrowsTheBackticksInside) {
  EXPECT_EQ(md_code("plain"), "`plain`");
  EXPECT_EQ(md_code("a`b"), "``a`b``");
  EXPECT_EQ(md_code("`a"), "`` `a ``");
  EXPECT_EQ(md_code("a|b"), "`a\\|b`");
  EXPECT_EQ(md_code(""), "—");
  EXPECT_EQ(md_code("<script>"), "`<script>`");
}

TEST(Text, PlainTextIsEscaped) {
  EXPECT_EQ(md_text("<b>|*x*"), "&lt;b&gt;\\|\\*x\\*");
  EXPECT_EQ(md_text("mm_default_1 __init__"), "mm_default_1 \\_\\_init\\_\\_");
}

TEST(Text, MermaidLabelUsesEntityCodesAndIsShort) {
  EXPECT_EQ(mermaid_label("<built-in method mm>"), "#lt;built-in method mm#gt;");
  EXPECT_EQ(mermaid_label("x \"y\" #1 a|b"), "x #quot;y#quot; #35;1 a#124;b");
  EXPECT_EQ(mermaid_label(""), " ");
  EXPECT_EQ(mermaid_label(std::string(100, 'a')), std::string(47, 'a') + "…");
}

TEST(Text, CsvFieldsAreQuotedAndNoFormulas) {
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_field("=1+1"), "'=1+1");
  EXPECT_EQ(csv_field("plain"), "plain");
}

// Pipes that split a cell: those without a backslash before them.
std::size_t splitting_pipes(const std::string& row) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < row.size(); ++i) n += row[i] == '|' && (i == 0 || row[i - 1] != '\\') ? 1U : 0U;
  return n;
}

RC_GTEST_PROP(Text, RowsKeepTheirColumnsWithAnyContent, ()) {
  const auto cells = *rc::gen::nonEmpty(rc::gen::arbitrary<std::vector<std::string>>());
  std::vector<std::string> written;
  for (const std::string& cell : cells) written.push_back(written.size() % 2 == 0 ? md_code(cell) : md_text(cell));
  const std::string row = md_row(written);
  RC_ASSERT(splitting_pipes(row) == cells.size() + 1);
  RC_ASSERT(row.find('\n') == row.size() - 1);
}

}  // namespace
}  // namespace kerntrail::render
