#include <fmt/format.h>

#include "base/strings.h"
#include "render/gate.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kPerStep = 10;  // annotations of one level that GitHub shows of a step; further ones are dropped
constexpr std::size_t kText = 1'000;

std::string data(std::string_view text) { return base::replace_all(visible(base::cut(text, kText)), "%", "%25"); }
std::string property(std::string_view text) {
  return base::replace_all(base::replace_all(data(text), ":", "%3A"), ",", "%2C");
}

std::string command(std::string_view level, const SourcePlace& place, std::string_view title, std::string_view text) {
  return fmt::format("::{} file={},line={},title={}::{}\n", level, property(place.file),
                     std::max<std::int64_t>(1, place.line), property(title), data(text));
}

// The last of a step's places says how many more there are.
std::string lines_of(std::string_view level, const std::vector<std::string>& all, const SourcePlace& config,
                     std::string_view rest) {
  std::string out;
  const std::size_t shown = all.size() > kPerStep ? kPerStep - 1 : all.size();
  for (std::size_t i = 0; i < shown; ++i) out += all[i];
  if (shown < all.size())
    out += command(level, config, "kerntrail gate",
                   fmt::format("{} more are not shown, as a step shows {}: {}", all.size() - shown, kPerStep, rest));
  return out;
}

}  // namespace

std::string gate_github(const GateResult& result, const GateView& view) {
  SourcePlace config;
  config.file = relative_file(view.config, view);
  config.line = 1;
  std::vector<std::string> errors;
  for (const GateFinding& finding : result.findings) {
    if (finding.outcome != GateOutcome::kFailed) continue;
    const std::string text = finding.why.empty() ? finding.message : finding.message + " (" + finding.why + ")";
    errors.push_back(
        command("error", gate_place(finding, view), fmt::format("kerntrail {}/{}", finding.axis, finding.rule), text));
  }
  std::vector<std::string> warnings;
  for (const std::string& note : result.notes) warnings.push_back(command("warning", config, "kerntrail gate", note));
  std::vector<std::string> notices;
  for (const std::string& better : result.improvements)
    notices.push_back(command("notice", config, "kerntrail gate: better than the baseline",
                              better + "; kerntrail gate --update keeps it so"));
  std::string out = lines_of("error", errors, config, "--format text, json or sarif has all");
  out += lines_of("warning", warnings, config, "--format text has all");
  out += lines_of("notice", notices, config, "--format text has all");
  return out + fmt::format("gate {}: {}\n", result.passed ? "passed" : "failed", gate_headline(result));
}

}  // namespace kerntrail::render
