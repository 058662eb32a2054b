// `kerntrail matrix`
#include "kerntrail/matrix.h"

#include "cli/common.h"
#include "render/json_output.h"
#include "render/markdown.h"
#include "render/outputs.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Shows for each provenance field at which stage it is there, on how many units, and where it was dropped.\n"
    "A tick: on all. A half circle with n/total: on some. A cross: the field exists by then but was found nowhere.\n"
    "A dash: not created yet, or contained in another field that the stage carries.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail matrix run.ndjson\n"
    "  kerntrail matrix run.ndjson --stages fx_pre_grad,fx_aten,fx_post_grad    where between tracing and lowering\n"
    "  kerntrail matrix run.ndjson --format json | jq '.matrices[0].rows[0].cells[1].verdicts'\n"
    "  kerntrail matrix run.ndjson --format csv -o matrix.csv";

}  // namespace

int run_matrix(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  std::string format = "md";
  Arguments parser("matrix", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--format", &format, {"md", "json", "csv"}, "Markdown, JSON (with the verdict of each unit) or CSV");
  add_analysis(parser, common, true);
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  const auto capture = load(common, "matrix", streams);
  if (!capture) return refuse("matrix", capture.error(), streams);
  const auto all = matrices(*capture, common.analysis);
  if (!all) return refuse("matrix", all.error(), streams);
  std::string result;
  if (format == "json") {
    result = render::matrix_json(*capture, *all);
  } else {
    result = format == "csv" ? render::matrix_csv(*all) : render::matrix_markdown(*all);
  }
  return deliver(result, common, "matrix", streams);
}

}  // namespace kerntrail::cli
