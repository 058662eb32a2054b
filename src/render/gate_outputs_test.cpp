// Every output of a gate with names that try to break out of it, and with more than it may hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "base/strings.h"
#include "model/capture_fixtures.h"
#include "render/gate.h"

namespace kerntrail {
namespace {

const render::GateView kView{"run.ndjson", "ci/kerntrail.toml", "base.json", "/home/me/project"};

GateFinding finding_of(const std::string& text, GateOutcome outcome = GateOutcome::kFailed) {
  GateFinding finding;
  finding.axis = "reason";
  finding.rule = "dropped";
  finding.outcome = outcome;
  finding.baseline = BaselineState::kNew;
  finding.fingerprint = "0123456789abcdef";
  finding.message = finding.why = finding.stage = finding.field = finding.pass = finding.site = finding.direction =
      text;
  finding.compiler = {text, 5, text};
  finding.source = {text, 7, text};
  finding.units = {{text, text, {text, 8, text}}, {text, text, {"/home/me/project/" + text, 9, text}}};
  finding.flow = {{text, text, {text, 7, text}}, {text, text, {}}};
  finding.measured = 0.5;
  finding.allowed_reason = finding.allowed_owner = text;
  finding.allowed_until = "2027-01-01";
  return finding;
}

GateResult result_of(const std::vector<std::string>& texts) {
  GateResult result;
  result.compared = true;
  for (const std::string& text : texts) {
    for (GateOutcome outcome : {GateOutcome::kFailed, GateOutcome::kKnown, GateOutcome::kAllowed})
      result.findings.push_back(finding_of(text, outcome));
    result.checks.push_back(
        {text, text, text, false, {3, 1}, {static_cast<std::uint32_t>(result.findings.size() - 3)}});
    result.checks.push_back({text, text, text, true, {}, {}});
    result.improvements.push_back(text);
    result.notes.push_back(text);
  }
  return result;
}

// One element, entities and characters that XML 1.0 knows, every tag closed; what is wrong, or empty.
std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 && text[i] != '\n' && text[i] != '\t') return fmt::format("control character at {}", i);
    if (text[i] == '&') {
      const std::string_view rest = text.substr(i, 6);
      if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") &&
          !rest.starts_with("&quot;") && !rest.starts_with("&apos;"))
        return fmt::format("bare & at {}", i);
    }
    if (text[i] != '<') continue;
    const std::size_t end = text.find('>', i);
    if (end == std::string_view::npos) return "a tag does not end";
    const std::string_view tag = text.substr(i + 1, end - i - 1);
    if (tag.find('<') != std::string_view::npos) return fmt::format("< inside a tag at {}", i);
    if (tag.starts_with("?")) continue;
    if (tag.starts_with("/")) {
      if (open.empty() || open.back() != tag.substr(1)) return fmt::format("{} closes nothing", tag);
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.emplace_back(tag.substr(0, tag.find(' ')));
    }
  }
  if (!base::is_valid_utf8(text)) return "not UTF-8";
  return open.empty() ? std::string() : "not closed: " + open.back();
}

TEST(GateOutputs, HostileNamesStayText) {
  const GateResult result = result_of(model::fixtures::hostile_texts());
  EXPECT_TRUE(base::Json::parse(render::gate_json(result, kView)));
  EXPECT_TRUE(base::Json::parse(render::gate_sarif(result, kView)));
  EXPECT_EQ(xml_fault(render::gate_junit(result, kView)), "");
  for (const auto& make : {render::gate_text, render::gate_github, render::gate_markdown}) {
    const std::string out = make(result, kView);
    EXPECT_TRUE(base::is_valid_utf8(out));
    for (const char c : out) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 && c != '\n') << int{c};
  }
  const std::string markdown = render::gate_markdown(result, kView);
  // Tags stand in code spans only.
  for (std::size_t at = markdown.find("</script>"); at != std::string::npos; at = markdown.find("</script>", at + 1))
    EXPECT_EQ(markdown[at - 1], '`') << at;
}

// A name on a line of its own must not become a command of the runner.
TEST(GateOutputs, NoNameBecomesACommand) {
  const GateResult result =
      result_of({"x\n::error::injected", "a%0A::error::x", "::set-env name=A::b", "c,line=9,title=x::y"});
  for (const auto& make : {render::gate_text, render::gate_github, render::gate_markdown, render::gate_junit}) {
    const std::string out = make(result, kView);
    for (std::string_view line : base::split_lines(out)) {
      const bool ours = line.starts_with("::error file=") || line.starts_with("::warning file=") ||
                        line.starts_with("::notice file=");
      EXPECT_TRUE(ours || !line.starts_with("::")) << line;
    }
  }
  const std::string annotations = render::gate_github(result, kView);
  for (std::string_view line : base::split_lines(annotations)) {
    if (!line.starts_with("::error")) continue;
    EXPECT_EQ(line.find("%0A"), std::string_view::npos) << line;
    const std::string_view properties = line.substr(0, line.find("::", 2));
    EXPECT_EQ(std::count(properties.begin(), properties.end(), ','), 2) << line;
  }
}

TEST(GateOutputs, AStepShowsTenOfEachLevelAndSaysSo) {
  const GateResult few = result_of(std::vector<std::string>(10, "x"));
  const GateResult many = result_of(std::vector<std::string>(25, "x"));
  const auto count = [](const std::string& out, std::string_view level) {
    std::size_t n = 0;
    for (std::string_view line : base::split_lines(out)) n += line.starts_with(level) ? 1U : 0U;
    return n;
  };
  for (const char* level : {"::error", "::warning", "::notice"}) {
    EXPECT_EQ(count(render::gate_github(few, kView), level), 10U) << level;
    EXPECT_EQ(count(render::gate_github(many, kView), level), 10U) << level;
  }
  EXPECT_EQ(render::gate_github(few, kView).find("more are not shown"), std::string::npos);
  EXPECT_NE(render::gate_github(many, kView).find("16 more are not shown, as a step shows 10"), std::string::npos);
}

TEST(GateOutputs, MarkdownFitsAComment) {
  for (std::size_t n : {std::size_t{1}, std::size_t{60}, std::size_t{400}, std::size_t{3000}}) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < n; ++i)
      texts.push_back(fmt::format("{} {}", i, std::string(i % 7 == 0 ? 5000 : 30, '|')));
    const std::string out = render::gate_markdown(result_of(texts), kView);
    EXPECT_LE(out.size(), 65'536U) << n;
    EXPECT_EQ(out.find("Left out") != std::string::npos, n >= 60) << n;
  }
  // All that was left out is counted.
  const std::string out =
      render::gate_markdown(result_of(std::vector<std::string>(3000, std::string(100, 'y'))), kView);
  std::size_t rows = 0;
  const std::string before = out.substr(0, out.find("## Better"));
  for (std::string_view line : base::split_lines(before))
    rows += line.starts_with("| `reason/dropped`") ? 1U : 0U;
  EXPECT_NE(out.find(fmt::format("{} of \"Fails\"", 3000 - rows)), std::string::npos) << out.substr(out.size() - 400);
}

TEST(GateOutputs, SarifStaysWithinTheLimits) {
  GateResult result = result_of(std::vector<std::string>(1700, "x"));
  for (int i = 0; i < 3000; ++i) result.findings[0].units.push_back({"u", "u", {"m.py", 10 + i, ""}});
  result.findings[0].flow.assign(5000, {"s", "t", {}});
  const auto json = base::Json::parse(render::gate_sarif(result, kView));
  ASSERT_TRUE(json);
  const base::Json& run = (*json)["runs"].as_array()[0];
  EXPECT_EQ(run["results"].as_array().size(), 5000U);
  EXPECT_NE(run["invocations"]
                .as_array()[0]["toolExecutionNotifications"]
                .as_array()
                .back()["message"]["text"]
                .as_string()
                .find("100 findings are left out"),
            std::string_view::npos);
  for (const base::Json& one : run["results"].as_array()) {
    EXPECT_LE(one["relatedLocations"].as_array().size(), 100U);
    if (!one["codeFlows"].as_array().empty()) {
      EXPECT_LE(one["codeFlows"].as_array()[0]["threadFlows"].as_array()[0]["locations"].as_array().size(), 200U);
    }
  }
}

TEST(GateOutputs, SarifHasRulesRelativePlacesAndSuppressions) {
  GateResult result;
  for (GateOutcome outcome : {GateOutcome::kFailed, GateOutcome::kKnown, GateOutcome::kAllowed})
    result.findings.push_back(finding_of("x", outcome));
  result.findings[0].source = {"/home/me/project/my model.py", 4, "y = f(x)"};
  result.findings[1].source = {};
  result.findings[1].asked = {12, 1};
  result.findings[2].compiler = {"/usr/lib/python3/site-packages/torch/_inductor/p.py", 9, "f"};
  const auto json = base::Json::parse(render::gate_sarif(result, kView));
  ASSERT_TRUE(json);
  const base::Json& run = (*json)["runs"].as_array()[0];
  const auto& rules = run["tool"]["driver"]["rules"].as_array();
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0]["id"].as_string(), "reason/dropped");
  EXPECT_FALSE(rules[0]["fullDescription"]["text"].as_string().empty());
  const auto& results = run["results"].as_array();
  const auto place = [&](std::size_t i) -> const base::Json& {
    return results[i]["locations"].as_array()[0]["physicalLocation"];
  };
  EXPECT_EQ(place(0)["artifactLocation"]["uri"].as_string(), "my%20model.py");
  EXPECT_EQ(place(0)["region"]["startLine"].as_int(), 4);
  EXPECT_EQ(place(1)["artifactLocation"]["uri"].as_string(), "ci/kerntrail.toml");
  EXPECT_EQ(place(1)["region"]["startLine"].as_int(), 12);
  EXPECT_EQ(results[2]["relatedLocations"].as_array()[0]["physicalLocation"]["artifactLocation"]["uri"].as_string(),
            "torch/_inductor/p.py");
  EXPECT_EQ(results[0]["level"].as_string(), "error");
  EXPECT_EQ(results[1]["level"].as_string(), "note");
  EXPECT_TRUE(results[0]["suppressions"].is_array() && results[0]["suppressions"].as_array().empty());
  EXPECT_EQ(results[2]["suppressions"].as_array()[0]["justification"].as_string(), "x (x, until 2027-01-01)");
  EXPECT_EQ(results[0]["partialFingerprints"]["primaryLocationLineHash"].as_string(), "0123456789abcdef:1");
  EXPECT_EQ(results[0]["baselineState"].as_string(), "new");
}

}  // namespace
}  // namespace kerntrail
