#include "cli/gate_config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kerntrail::cli {
namespace {

constexpr const char* kWhole = R"([gate]
name = "mlp"
intents = "intents.json"

[baseline]
tolerance = 0.01
ignore = ["torch"]

[hooks]
absent = "fail"
errors = "ignore"
required = "kernel"
expected_absent = ["torch_spyre*", "x"]

[[coverage]]
stages = ["ir_post_pass", "kernel"]
fields = "origins"
min = 1
backend = "inductor"
direction = "forward"
count = "kept"

[[drops]]
classes = ["dropped", "a"]
max = 0.25
passes = "pass_pattern_*"

[[verified]]
stages = "kernel"
of = "nodes"
min_precision = 0.9

[[allow]]
rule = "dropped"
unit = "sdpa"
reason = "reported"
owner = "me"
expires = 2027-01-31
)";

TEST(GateConfig, EveryMemberIsRead) {
  const auto read = parse_gate_config(kWhole, "k.toml");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->path, "k.toml");
  EXPECT_EQ(read->name, "mlp");
  EXPECT_EQ(read->intents, "intents.json");
  EXPECT_EQ(read->tolerance, 0.01);
  EXPECT_EQ(read->ignore, std::vector<std::string>{"torch"});
  EXPECT_TRUE(read->hooks.absent && read->hooks.failed && !read->hooks.errors);
  EXPECT_EQ(read->hooks.required, std::vector<std::string>{"kernel"});
  EXPECT_EQ(read->hooks.expected_absent.size(), 2U);
  ASSERT_EQ(read->coverage.size(), 1U);
  EXPECT_EQ(read->coverage[0].stages, (std::vector<std::string>{"ir_post_pass", "kernel"}));
  EXPECT_EQ(read->coverage[0].min, 1.0);
  EXPECT_TRUE(read->coverage[0].kept);
  EXPECT_EQ(read->coverage[0].direction, "forward");
  EXPECT_EQ(read->coverage[0].at.line, 15U);
  ASSERT_EQ(read->drops.size(), 1U);
  EXPECT_EQ(read->drops[0].max, 0.25);
  ASSERT_EQ(read->verified.size(), 1U);
  EXPECT_TRUE(read->verified[0].nodes);
  EXPECT_EQ(read->verified[0].min_precision, 0.9);
  EXPECT_FALSE(read->verified[0].min_recall);
  ASSERT_EQ(read->allow.size(), 1U);
  EXPECT_EQ(read->allow[0].expires, "2027-01-31");
}

TEST(GateConfig, ErrorsSayWhereWhyAndWhatWasMeant) {
  const std::string allow = "[[allow]]\nrule = \"dropped\"\nreason = \"r\"\nowner = \"o\"\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[[coverage]\n", "k.toml:1:"},
      {"[[covrage]]\nmin = 1\n", "k.toml:1:3: the configuration has no member \"covrage\"; did you mean coverage?"},
      {"[[coverage]]\nstage = \"x\"\n", "k.toml:2:1: [[coverage]] has no member \"stage\"; did you mean stages?"},
      {"[coverage]\nmin = 1\n", "k.toml:1:1: the configuration coverage: must be a list of tables: write [[coverage]]"},
      {"[[gate]]\nname = \"x\"\n", "must be a table: write [gate]"},
      {"[[coverage]]\nstages = \"x\"\nfields = \"y\"\n", "k.toml:1:1: [[coverage]] has no \"min\""},
      {"[[coverage]]\nstages = \"x\"\nfields = \"y\"\nmin = 3\n",
       "k.toml:4:7: [[coverage]] min: must be a ratio from 0 to 1"},
      {"[[coverage]]\nstages = \"x\"\nfields = \"y\"\nmin = nan\n", "must be a ratio"},
      {"[[coverage]]\nstages = \"x\"\nfields = \"y\"\nmin = \"all\"\n", "must be a ratio"},
      {"[[coverage]]\nstages = []\nfields = \"y\"\nmin = 1\n",
       "k.toml:2:10: [[coverage]] stages: must be a text, or a list"},
      {"[[coverage]]\nstages = [\"a\", 3]\nfields = \"y\"\nmin = 1\n",
       "k.toml:2:16: [[coverage]] stages: must hold texts"},
      {"[[coverage]]\nstages = \"\"\nfields = \"y\"\nmin = 1\n", "must be a text that is not empty"},
      {"[[coverage]]\nstages = \"x\"\nfields = \"y\"\nmin = 1\ncount = \"presnt\"\n",
       "k.toml:5:9: [[coverage]] count: is \"presnt\"; did you mean present?"},
      {"[[drops]]\nclasses = [\"droped\"]\n", "k.toml:2:11: [[drops]] classes: is \"droped\"; did you mean dropped?"},
      {"[[drops]]\nmax = 0\n", "[[drops]] has no \"classes\""},
      {"[[verified]]\nstages = \"kernel\"\n", "k.toml:1:1: [[verified]] asks for nothing"},
      {"[hooks]\nabsent = true\n", "k.toml:2:10: [hooks] absent: must be a text"},
      {"[baseline]\nignore = \"troch\"\n", "did you mean torch?"},
      {allow, "k.toml:1:1: [[allow]] has no \"expires\""},
      {allow + "expires = \"2027-01-31\"\n", "k.toml:5:11: [[allow]] expires: must be a day, unquoted"},
      {allow + "expires = 2027-02-30\n", "is not TOML"},
      {"[[allow]]\nreason = \"r\"\nowner = \"o\"\nexpires = 2027-01-31\n", "would allow everything"},
      {"[[allow]]\nrule = \"torn-capture\"\nreason = \"r\"\nowner = \"o\"\nexpires = 2027-01-31\n",
       "k.toml:2:8: [[allow]] rule: \"torn-capture\" can't be allowed"},
      {"[[allow]]\nrule = \"coverge\"\nreason = \"r\"\nowner = \"o\"\nexpires = 2027-01-31\n",
       "did you mean coverage?"},
      {"a = 1\na = 2\n", "k.toml:2:"},
      {std::string("[gate]\nname = \"\xFF\"\n"), "is not TOML"},
  };
  for (const auto& [text, expected] : cases) {
    const auto read = parse_gate_config(text, "k.toml");
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().text().find(expected), std::string::npos) << text << "\n" << read.error().text();
    EXPECT_GT(read.error().line, 0U) << text;
  }
}

// Every prefix of a sound file either parses or is refused with a place.
TEST(GateConfig, EveryPrefixIsReadOrRefused) {
  const std::string whole = kWhole;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto read = parse_gate_config(whole.substr(0, n), "k.toml");
    if (!read) {
      EXPECT_GT(read.error().line, 0U) << n << read.error().text();
    }
  }
}

}  // namespace
}  // namespace kerntrail::cli
