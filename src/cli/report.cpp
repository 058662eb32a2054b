// `kerntrail report`
#include "kerntrail/report.h"

#include "cli/common.h"
#include "render/json_output.h"
#include "render/markdown.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Writes the audit report of a capture: the lineage graph, the stage x field matrix with its counts, a table a\n"
    "stage, and a block a kernel; a section a compile where there are several.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail report run.ndjson -o provenance_audit.md\n"
    "  kerntrail report run.ndjson --model SimpleMLP --stamp \"2026-07-15 14:22\"\n"
    "  kerntrail report run.ndjson --stages all         also the graph before the post-grad passes, kernels, ...\n"
    "  kerntrail report run.ndjson --compile c1 --format json | jq '.sections[0].counts'";

}  // namespace

int run_report(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  ReportOptions options;
  std::string format = "md";
  Arguments parser("report", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--format", &format, {"md", "json"}, "Markdown or JSON");
  add_analysis(parser, common, true);
  parser.text("--model", &options.model_name, "NAME", "Name in the title; default: the recorded program's");
  parser.text("--stamp", &options.stamp, "TEXT",
              "Date printed as Generated; default: none, so that equal captures give equal reports");
  parser.flag("--example", &options.example, "Word the report as a kept example of the reference model");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  options.analysis = common.analysis;
  const auto capture = load(common, "report", streams);
  if (!capture) return refuse("report", capture.error(), streams);
  const auto report = make_report(*capture, options);
  if (!report) return refuse("report", report.error(), streams);
  return deliver(format == "json" ? render::report_json(*capture, *report) : render::report_markdown(*report), common,
                 "report", streams);
}

}  // namespace kerntrail::cli
