// `kerntrail export`
#include "cli/common.h"
#include "render/outputs.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Writes a capture in another format.\n"
    "raw: provenance_capture_raw.json as the reference audit writes it; with several compiles each stage is a list\n"
    "whose entries have a compile key.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail export run.ndjson -o provenance_capture_raw.json\n"
    "  kerntrail export run.ndjson | jq '._hooks'";

}  // namespace

int run_export(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  std::string format = "raw";
  Arguments parser("export", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--format", &format, {"raw"}, "Format");
  add_analysis(parser, common, false);
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  const auto capture = load(common, "export", streams);
  if (!capture) return refuse("export", capture.error(), streams);
  const auto result = render::raw_export(*capture, common.analysis);
  if (!result) return refuse("export", result.error(), streams);
  return deliver(*result + "\n", common, "export", streams);
}

}  // namespace kerntrail::cli
