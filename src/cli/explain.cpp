// `kerntrail explain`
#include "kerntrail/explain.h"

#include <fmt/format.h>

#include <ostream>

#include "cli/common.h"
#include "cli/unknown_option.h"
#include "render/json_output.h"
#include "render/outputs.h"
#include "render/text.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Explains one case: where a kernel, a node, an operation, a source line or a debug handle comes from and what it\n"
    "becomes; the first link that broke, why, by which pass and line of the compiler, and what says so; the nearest\n"
    "source that can still be recovered; what the compiler claims against the witness.\n\n"
    "A word in brackets says what a link rests on; none: seen to be the same, or both sides of one call were seen.\n"
    "kerntrail rules explains the words.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail explain run.ndjson cpp_fused_add_0     a kernel\n"
    "  kerntrail explain run.ndjson model.py:25         a source line\n"
    "  kerntrail explain run.ndjson add_tensor          a unit at any stage, by name or id (c0.n7)\n"
    "  kerntrail explain run.ndjson 5260174408236112023 the id of a debug handle\n"
    "  kerntrail explain run.ndjson c0.k1 --format json | jq '.explanations[].breaks'";

// What the capture has, to say what comes near.
std::string nearest_name(const Capture& capture, const std::string& what, const AnalysisOptions& options) {
  AnalysisOptions all = options;
  all.stages = {"all"};
  const auto ways = lineages(capture, all);
  if (!ways) return {};
  std::vector<std::string> names;
  std::vector<SourcePlace> lines;
  for (const Lineage& lineage : *ways) {
    for (const LineageNode& node : lineage.nodes) {
      names.push_back(has(node.unit) ? node.name : fmt::format("{}:{}", node.file, node.line));
      if (!has(node.unit)) lines.emplace_back(node.file, node.line);
    }
  }
  const std::string line = nearest_line(what, lines);
  return line.empty() ? nearest(what, names) : line;
}

}  // namespace

int run_explain(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  std::string what;
  std::string format = "text";
  Arguments parser("explain", kDescription, kExamples);
  add_capture(parser, common);
  parser.positional("WHAT", &what, "file.py:LINE, a unit's name or id, or a handle's id");
  parser.choice("--format", &format, {"text", "json"}, "A note to read, or JSON");
  add_analysis(parser, common, false);
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  const auto capture = load(common, "explain", streams);
  if (!capture) return refuse("explain", capture.error(), streams);
  const auto all = explain(*capture, what, common.analysis);
  if (!all) {
    Error error = all.error();
    const std::string near = error.code == ErrorCode::kUsage ? nearest_name(*capture, what, common.analysis) : "";
    if (!near.empty()) error.message += fmt::format("; did you mean {}?", render::visible(near));
    return refuse("explain", error, streams);
  }
  const bool colour = streams.out_is_terminal && common.output.empty();
  return deliver(format == "json" ? render::explain_json(*all) : render::explain_text(*all, {colour}), common,
                 "explain", streams);
}

}  // namespace kerntrail::cli
