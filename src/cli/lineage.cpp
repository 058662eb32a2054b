// `kerntrail lineage`
#include "kerntrail/lineage.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/strings.h"
#include "cli/common.h"
#include "cli/unknown_option.h"
#include "render/json_output.h"
#include "render/markdown.h"
#include "render/outputs.h"
#include "render/text.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Follows source lines through every stage to kernels, and back. Without a question: the whole lineage. With "
    "--line,\n"
    "--node or --kernel: all that leads to it and all that it becomes.\n\n"
    "A tag behind a unit says what the edge to it rests on, where that is no record of the compiler's:\n"
    "  [location]          both name the same source line\n"
    "  [producer]          no source of its own: the nearest unit with one whose value it consumes\n"
    "  [sibling]           no source of its own: lowered together with a unit that has one\n"
    "  [claim], [origins]  the compiler's word, not checked by a witness (captures of level truth have one)\n"
    "  [..., ambiguous]    one of several that answer to it; all are shown\n"
    "  [birth, ambiguous]  it was seen being made by a pattern that matched several\n"
    "No tag: recorded, seen to be the same, or seen by the witness; in a capture without one (below level truth) also\n"
    "the compiler's unchecked word on what IR and kernels come from. Below the tree: what the compiler claims and the\n"
    "witness contradicts, and nodes whose provenance a pass wrote over. kerntrail rules says more.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail lineage run.ndjson                        every source line and what it became\n"
    "  kerntrail lineage run.ndjson --line model.py:25     what did this line become?\n"
    "  kerntrail lineage run.ndjson --kernel cpp_fused_0   which lines made this kernel?\n"
    "  kerntrail lineage run.ndjson --node mm_default      by name, or by id: --node c0.n7\n"
    "  kerntrail lineage run.ndjson --format mermaid       also md, dot, json\n"
    "  kerntrail lineage run.ndjson --passes --stages all  which pass made each FX node";

constexpr std::ptrdiff_t kManyLines = 200;  // more than a reader scrolls back through

struct Question {
  CommonOptions common;
  LineageQuery query;
  std::string format = "text";

  bool asked() const { return !query.line.empty() || !query.node.empty() || !query.kernel.empty(); }
  const std::string& words() const {
    return !query.line.empty() ? query.line : !query.node.empty() ? query.node : query.kernel;
  }
};

int nothing_found(const Question& question, const Capture& capture, const std::vector<Lineage>& all, Streams& streams) {
  const bool of_lines = !question.query.line.empty(), of_kernels = !question.query.kernel.empty();
  std::vector<std::string> names;
  std::vector<SourcePlace> lines;
  for (const Lineage& lineage : all) {
    for (const LineageNode& node : lineage.nodes) {
      if (!has(node.unit)) {
        lines.emplace_back(node.file, node.line);
        if (of_lines) names.push_back(fmt::format("{}:{}", node.file, node.line));
      } else if (!of_lines && (!of_kernels || capture.units[index(node.unit)].kind == UnitKind::kKernel)) {
        names.push_back(node.name);
      }
    }
  }
  std::string near = of_lines ? nearest_line(question.words(), lines) : std::string();
  if (near.empty()) near = nearest(question.words(), names);
  streams.err << fmt::format("kerntrail lineage: the capture has no {} {}{}\n",
                             !question.query.line.empty()    ? "source line"
                             : question.query.kernel.empty() ? "unit"
                                                             : "kernel",
                             render::visible(question.words()),
                             near.empty() ? "" : "; did you mean " + render::visible(near) + "?");
  return kUsageError;
}

std::string rendered(const Capture& capture, const std::vector<Lineage>& all, const std::string& format, bool colour) {
  if (format == "json") return render::lineage_json(capture, all);
  if (format == "dot") return render::lineage_dot(capture, all);
  if (format == "md") return render::lineage_markdown(all);
  if (format == "mermaid") return render::lineage_mermaid(all);
  return render::lineage_tree(capture, all, {colour});
}

int answer(const Question& question, const Capture& capture, const std::vector<Lineage>& all, Streams& streams) {
  const bool colour = streams.out_is_terminal && question.common.output.empty();
  std::vector<Lineage> parts;
  std::string trees;
  for (const Lineage& lineage : all) {
    const auto found = find_nodes(lineage, capture, question.query);
    if (!found) return refuse("lineage", found.error(), streams);
    if (found->empty()) continue;
    if (question.format == "text") {
      trees += (trees.empty() ? "" : "\n") + render::query_tree(capture, lineage, *found, {colour});
    } else {
      parts.push_back(around(lineage, *found));
    }
  }
  if (trees.empty() && parts.empty()) return nothing_found(question, capture, all, streams);
  return deliver(question.format == "text" ? trees : rendered(capture, parts, question.format, colour), question.common,
                 "lineage", streams);
}

}  // namespace

int run_lineage(const std::vector<std::string>& arguments, Streams& streams) {
  Question question;
  Arguments parser("lineage", kDescription, kExamples);
  add_capture(parser, question.common);
  parser.text("--line", &question.query.line, "FILE:LINE",
              "A source line; the file by its path, absolute or not, or its last components");
  parser.text("--node", &question.query.node, "NAME", "A unit at any stage, by name or id");
  parser.text("--kernel", &question.query.kernel, "NAME", "A kernel, by name or id");
  parser.choice("--format", &question.format, {"text", "md", "mermaid", "dot", "json"},
                "Tree, fenced or plain Mermaid, DOT or JSON");
  parser.flag("--passes", &question.common.analysis.passes,
              "Name the pass that made an FX node on the edges to it (needs a capture of level passes)");
  add_analysis(parser, question.common, true);
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  const int asked =
      int(!question.query.line.empty()) + int(!question.query.node.empty()) + int(!question.query.kernel.empty());
  if (asked > 1) return stop({kUsageError, "kerntrail lineage: give one of --line, --node and --kernel\n"}, streams);
  const auto capture = load(question.common, "lineage", streams);
  if (!capture) return refuse("lineage", capture.error(), streams);
  if (question.common.analysis.passes && capture->passes.empty())
    streams.err << "kerntrail lineage: no pass was recorded in this capture, so none is named: record it with --level "
                   "passes\n";
  const auto all = lineages(*capture, question.common.analysis);
  if (!all) return refuse("lineage", all.error(), streams);
  if (question.asked()) return answer(question, *capture, *all, streams);
  const bool colour = streams.out_is_terminal && question.common.output.empty();
  const std::string text = rendered(*capture, *all, question.format, colour);
  const int delivered = deliver(text, question.common, "lineage", streams);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  if (delivered == kDone && colour && lines > kManyLines) {
    streams.out.flush();
    streams.err << fmt::format(
        "kerntrail lineage: {} lines; --line FILE:LINE, --node NAME or --kernel NAME asks for one, --compile ID for "
        "one "
        "compile\n",
        lines);
  }
  return delivered;
}

}  // namespace kerntrail::cli
