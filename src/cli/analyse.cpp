// `kerntrail analyse`
#include "cli/common.h"
#include "kerntrail/analysis.h"
#include "render/json_output.h"
#include "render/markdown.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Writes the analysis that belongs to a capture: how each field's values come about (copied, generated, derived),\n"
    "how provenance flows from stage to stage and where it is lost, exactly; what the last stage's files really hold;\n"
    "what a missing handle could be derived from; and the caveats that are true of this run.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail analyse run.ndjson -o provenance_analysis.md\n"
    "  kerntrail analyse run.ndjson --format json | jq '.sections[0].caveats'\n"
    "  kerntrail analyse run.ndjson --model SimpleMLP --stamp \"2026-07-15 14:22\"";

}  // namespace

int run_analyse(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  ReportOptions options;
  std::string format = "md";
  Arguments parser("analyse", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--format", &format, {"md", "json"}, "Markdown or JSON");
  add_analysis(parser, common, false);
  parser.text("--model", &options.model_name, "NAME", "Name in the title; default: the recorded program's");
  parser.text("--stamp", &options.stamp, "TEXT",
              "Date printed as Generated; default: none, so that equal captures give equal bytes");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  options.analysis = common.analysis;
  const auto capture = load(common, "analyse", streams);
  if (!capture) return refuse("analyse", capture.error(), streams);
  const auto analysis = make_analysis(*capture, options);
  if (!analysis) return refuse("analyse", analysis.error(), streams);
  return deliver(format == "json" ? render::analysis_json(*analysis) : render::analysis_markdown(*analysis, {}), common,
                 "analyse", streams);
}

}  // namespace kerntrail::cli
