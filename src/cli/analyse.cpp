// `kerntrail analyse`
#include <fmt/format.h>

#include <ostream>

#include "base/strings.h"
#include "cli/common.h"
#include "kerntrail/analysis.h"
#include "kerntrail/diff.h"
#include "render/diff_text.h"
#include "render/json_output.h"
#include "render/markdown.h"
#include "render/text.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Writes the analysis that belongs to a capture: how each field's values come about (copied, generated, derived),\n"
    "how provenance flows from stage to stage and where it is lost, exactly; what the last stage's files really hold;\n"
    "what a missing handle could be derived from; and the caveats that are true of this run.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail analyse run.ndjson -o provenance_analysis.md\n"
    "  kerntrail analyse run.ndjson --against earlier.ndjson   begins with what changed, and by whom\n"
    "  kerntrail analyse run.ndjson --format json | jq '.sections[0].caveats'\n"
    "  kerntrail analyse run.ndjson --model SimpleMLP --stamp \"2026-07-15 14:22\"";

constexpr int kNotComparable = 4;

// A document of its own becomes a section of this one.
std::string as_section(std::string text) {
  const std::size_t title = text.find("\n\n");
  if (title != std::string::npos) text.erase(0, title + 2);
  return base::replace_all(std::move(text), "\n## ", "\n### ");
}

}  // namespace

int run_analyse(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  ReportOptions options;
  CommonOptions earlier;
  std::string format = "md";
  bool force = false;
  Arguments parser("analyse", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--format", &format, {"md", "json"}, "Markdown or JSON");
  add_analysis(parser, common, false);
  parser.text("--against", &earlier.capture, "OLD",
              "An earlier capture: what changed since then comes first (Markdown; for JSON see kerntrail diff)");
  parser.flag("--force", &force, "With --against: also where the two can't be compared");
  parser.text("--model", &options.model_name, "NAME", "Name in the title; default: the recorded program's");
  parser.text("--stamp", &options.stamp, "TEXT",
              "Date printed as Generated; default: none, so that equal captures give equal bytes");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  options.analysis = common.analysis;
  const auto capture = load(common, "analyse", streams);
  if (!capture) return refuse("analyse", capture.error(), streams);
  const auto analysis = make_analysis(*capture, options);
  if (!analysis) return refuse("analyse", analysis.error(), streams);
  std::string changes;
  if (!earlier.capture.empty()) {
    const auto before = load(earlier, "analyse", streams);
    if (!before) return refuse("analyse", before.error(), streams);
    const auto unlike = incomparable(*before, *capture);
    if (!unlike.empty() && !force) {
      streams.err << fmt::format("kerntrail analyse: {} and {} can't be compared:\n{}--force compares all the same\n",
                                 render::visible(earlier.capture), render::visible(common.capture),
                                 render::unlike_text(unlike));
      return kNotComparable;
    }
    const auto changed = diff(*before, *capture);
    if (!changed) return refuse("analyse", changed.error(), streams);
    changes = as_section(render::diff_markdown(*changed, {earlier.capture, common.capture}));
  }
  return deliver(format == "json" ? render::analysis_json(*analysis) : render::analysis_markdown(*analysis, changes),
                 common, "analyse", streams);
}

}  // namespace kerntrail::cli
