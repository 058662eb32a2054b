#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "kerntrail/gate.h"
#include "render/gate.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kLines = 4;  // of the model, shown of one finding

std::string source_lines(const GateFinding& finding) {
  std::vector<std::string> seen;
  std::string out;
  for (const GateUnit& unit : finding.units) {
    if (unit.source.file.empty()) continue;
    std::string line = fmt::format("{}:{}  {}", visible(unit.source.file), unit.source.line, visible(unit.source.code));
    if (std::find(seen.begin(), seen.end(), line) != seen.end()) continue;
    if (seen.size() < kLines) out += "      " + line + "\n";
    seen.push_back(std::move(line));
  }
  if (seen.size() > kLines) out += fmt::format("      and {} more lines\n", seen.size() - kLines);
  return out;
}

std::string finding_text(const GateFinding& finding) {
  std::string out = fmt::format("  {}/{}  {}\n", finding.axis, finding.rule, visible(finding.message));
  out += source_lines(finding);
  if (!finding.why.empty()) out += "      " + visible(finding.why) + "\n";
  return out;
}

std::string list_text(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string out = fmt::format("\n{}\n", title);
  for (const std::string& line : lines) out += "  " + visible(line) + "\n";
  return out;
}

}  // namespace

std::string gate_headline(const GateResult& result) {
  std::size_t failed = 0;
  for (const GateCheck& check : result.checks) failed += check.passed ? 0 : 1;
  const std::string of = base::counted(result.checks.size(), "check");
  return failed == 0 ? fmt::format("{}, all passed", of) : fmt::format("{} of {} failed", failed, of);
}

SourcePlace gate_place(const GateFinding& finding, const GateView& view) {
  if (!finding.source.file.empty()) {
    SourcePlace place = finding.source;
    place.file = relative_file(place.file, view);
    return place;
  }
  SourcePlace place;
  place.file = relative_file(view.config, view);
  place.line = std::max<std::int64_t>(1, static_cast<std::int64_t>(finding.asked.line));
  return place;
}

std::string relative_file(const std::string& file, const GateView& view) {
  if (file.starts_with("./")) return file.substr(2);
  if (!file.starts_with("/")) return file;
  if (!view.root.empty() && file.starts_with(view.root + "/")) return file.substr(view.root.size() + 1);
  for (std::string_view marker : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = file.rfind(marker);
    if (at != std::string::npos) return file.substr(at + marker.size());
  }
  return file;
}

std::string allowed_text(const GateFinding& finding) {
  if (finding.outcome != GateOutcome::kAllowed) return {};
  return fmt::format("allowed by {} until {}: {}", finding.allowed_owner, finding.allowed_until,
                     finding.allowed_reason);
}

std::string gate_text(const GateResult& result, const GateView& view) {
  std::string out = fmt::format("gate {}: {}\n", result.passed ? "passed" : "failed", gate_headline(result));
  for (const GateCheck& check : result.checks) {
    out += fmt::format("\n{:<6}  {}: {}", check.passed ? "ok" : "FAILED", visible(check.suite), visible(check.name));
    if (check.asked.line > 0) out += fmt::format("  ({}:{})", visible(view.config), check.asked.line);
    out += fmt::format("\n        {}\n", visible(check.text));
    for (std::uint32_t i : check.findings) out += finding_text(result.findings[i]);
  }
  std::vector<std::string> known;
  std::vector<std::string> allowed;
  for (const GateFinding& finding : result.findings) {
    if (finding.outcome == GateOutcome::kKnown) known.push_back(finding.message);
    if (finding.outcome == GateOutcome::kAllowed) allowed.push_back(finding.message + "; " + allowed_text(finding));
  }
  out += list_text("In the baseline, and no worse:", known);
  out += list_text("Allowed:", allowed);
  out += list_text("Better than the baseline (--update keeps it so):", result.improvements);
  return out + list_text("Notes:", result.notes);
}

}  // namespace kerntrail::render
