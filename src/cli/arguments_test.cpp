#include "cli/arguments.h"

#include <gtest/gtest.h>

#include "cli/unknown_option.h"

namespace kerntrail::cli {
namespace {

struct Parsed {
  std::string capture, output, format = "md";
  std::vector<std::string> stages;
  bool loud = false;
  std::optional<Stop> stop;
};

Parsed parse(const std::vector<std::string>& arguments) {
  Parsed out;
  Arguments parser("show", "Shows things.", "Examples:\n  kerntrail show x");
  parser.positional("CAPTURE", &out.capture, "the file");
  parser.text("-o,--output", &out.output, "FILE", "where to");
  parser.choice("--format", &out.format, {"md", "json"}, "how");
  parser.list("--stages", &out.stages, "KEY,...", "which");
  parser.flag("--loud", &out.loud, "louder");
  out.stop = parser.parse(arguments);
  return out;
}

TEST(Arguments, AllKinds) {
  const Parsed p = parse({"--format", "json", "run.ndjson", "-o", "out.md", "--stages", "a,b", "--loud"});
  EXPECT_FALSE(p.stop);
  EXPECT_EQ(p.capture, "run.ndjson");
  EXPECT_EQ(p.output, "out.md");
  EXPECT_EQ(p.format, "json");
  EXPECT_EQ(p.stages, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(p.loud);
}

TEST(Arguments, ListDoesNotSwallowThePositional) {
  const Parsed p = parse({"--stages", "all", "run.ndjson"});
  EXPECT_FALSE(p.stop);
  EXPECT_EQ(p.capture, "run.ndjson");
  EXPECT_EQ(p.stages, std::vector<std::string>{"all"});
}

TEST(Arguments, DashIsAFile) { EXPECT_EQ(parse({"-"}).capture, "-"); }

TEST(Arguments, HelpTeaches) {
  const Parsed p = parse({"--help"});
  ASSERT_TRUE(p.stop);
  EXPECT_EQ(p.stop->exit, kDone);
  EXPECT_NE(p.stop->text.find("kerntrail show x"), std::string::npos);
}

TEST(Arguments, UsageErrors) {
  for (const auto& bad : std::vector<std::vector<std::string>>{{}, {"a", "b"}, {"a", "--format", "xml"}, {"a", "-o"}}) {
    const Parsed p = parse(bad);
    ASSERT_TRUE(p.stop);
    EXPECT_EQ(p.stop->exit, kUsageError);
    EXPECT_NE(p.stop->text.find("kerntrail show"), std::string::npos);
  }
}

TEST(Arguments, MisspeltOptionIsSuggested) {
  const Parsed p = parse({"a", "--formt=json"});
  ASSERT_TRUE(p.stop);
  EXPECT_NE(p.stop->text.find("did you mean --format?"), std::string::npos) << p.stop->text;
}

TEST(Arguments, NearestIsNearEnoughToBeMeant) {
  EXPECT_EQ(nearest("matrx", {"report", "matrix"}), "matrix");
  EXPECT_EQ(nearest("zzzzzz", {"report", "matrix"}), "");
  EXPECT_EQ(nearest("zz", {"a", "zq"}), "zq");
  EXPECT_EQ(nearest("zz", {"a", "bb"}), "");
  EXPECT_EQ(nearest("relu", {"a", "relu_default_1", "relu_default"}), "relu_default");
}

}  // namespace
}  // namespace kerntrail::cli
