#include <fmt/format.h>

#include <map>

#include "base/strings.h"
#include "render/gate.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

struct Suite {
  std::string name, cases;
  std::size_t tests = 0, failures = 0, skipped = 0;
  std::map<std::string, std::size_t> names;  // a CI tells cases apart by name
};

// XML 1.0 has no way to write control characters, U+FFFE and U+FFFF.
std::string xml(std::string_view text) {
  std::string out;
  for (const char c : visible(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&apos;"; break;
      default: out += c;
    }
  }
  for (const char* never : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    out = base::replace_all(std::move(out), never, "\xEF\xBF\xBD");
  return out;
}

std::string finding_text(const GateFinding& finding, const GateView& view) {
  const SourcePlace place = gate_place(finding, view);
  std::string out =
      fmt::format("{}:{}: {}/{}: {}", place.file, place.line, finding.axis, finding.rule, finding.message);
  if (!finding.why.empty()) out += " (" + finding.why + ")";
  return xml(out) + "\n";
}

// Suites and cases are told apart as they are written: two names may look the same there.
Suite& suite_of(std::vector<Suite>& suites, const std::string& title) {
  const std::string name = xml(title);
  for (Suite& suite : suites) {
    if (suite.name == name) return suite;
  }
  suites.push_back({name, {}, 0, 0, 0, {}});
  return suites.back();
}

std::string opening(Suite& suite, const std::string& title) {
  const std::string name = xml(title);
  const std::size_t again = ++suite.names[name];
  ++suite.tests;
  return fmt::format("    <testcase classname=\"kerntrail.{}\" name=\"{}{}\"", suite.name, name,
                     again > 1 ? fmt::format(" #{}", again) : "");
}

void add_check(std::vector<Suite>& suites, const GateCheck& check, const GateResult& result, const GateView& view) {
  Suite& suite = suite_of(suites, check.suite);
  suite.cases += opening(suite, check.name);
  if (check.passed) {
    suite.cases += fmt::format(">\n      <system-out>{}</system-out>\n    </testcase>\n", xml(check.text));
    return;
  }
  ++suite.failures;
  std::string text;
  for (std::uint32_t i : check.findings) text += finding_text(result.findings[i], view);
  suite.cases += fmt::format(">\n      <failure type=\"gate\" message=\"{}\">{}</failure>\n    </testcase>\n",
                             xml(check.text), text);
}

}  // namespace

std::string gate_junit(const GateResult& result, const GateView& view) {
  std::vector<Suite> suites;
  for (const GateCheck& check : result.checks) add_check(suites, check, result, view);
  for (const GateFinding& finding : result.findings) {
    if (finding.outcome != GateOutcome::kAllowed) continue;
    Suite& suite = suite_of(suites, "allowed");
    suite.cases += opening(suite, finding.message);
    suite.cases += fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", xml(allowed_text(finding)));
    ++suite.skipped;
  }
  std::size_t tests = 0;
  std::size_t failures = 0;
  std::size_t skipped = 0;
  std::string body;
  for (const Suite& suite : suites) {
    tests += suite.tests;
    failures += suite.failures;
    skipped += suite.skipped;
    body += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n{}  </testsuite>\n",
        suite.name, suite.tests, suite.failures, suite.skipped, suite.cases);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kerntrail gate\" tests=\"{}\" failures=\"{}\" "
      "errors=\"0\" skipped=\"{}\">\n{}</testsuites>\n",
      tests, failures, skipped, body);
}

}  // namespace kerntrail::render
