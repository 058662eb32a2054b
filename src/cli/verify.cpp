// `kerntrail verify`
#include "kerntrail/verify.h"

#include "cli/common.h"
#include "kerntrail/drops.h"
#include "render/json_output.h"
#include "render/verify_markdown.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Says how far the compiler's own attribution can be trusted: for each kernel, operation, OpSpec or file and each\n"
    "node and source line that it is said to come from, whether the witness agrees (it computes, moves, indexes, ...\n"
    "for it) or contradicts (elsewhere, nowhere), and what nobody says although it is so. Needs a capture of level\n"
    "truth. kerntrail rules explains the words.\n"
    "Exit status: 0 verified, whatever was found (kerntrail gate fails a build by it); 2 usage; 3 the capture can't "
    "be\n"
    "read, or nothing in it was witnessed.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail record --level truth -o run.ndjson train.py\n"
    "  kerntrail verify run.ndjson                      tables of precision and recall, then each contradiction\n"
    "  kerntrail verify run.ndjson --stages kernel      kernels only\n"
    "  kerntrail verify run.ndjson --format json | jq '.totals[] | {class, evidence, lines}'";

}  // namespace

int run_verify(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  std::string format = "md";
  Arguments parser("verify", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--format", &format, {"md", "json"},
                "Markdown, or JSON with every verdict (schemas/verify.schema.json)");
  add_analysis(parser, common, true);
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  const auto capture = load(common, "verify", streams);
  if (!capture) return refuse("verify", capture.error(), streams);
  const auto all = verify(*capture, common.analysis);
  if (!all) return refuse("verify", all.error(), streams);
  const CaptureState state = capture_state(*capture);
  return deliver(format == "json" ? render::verify_json(*all, state) : render::verify_markdown(*all, state), common,
                 "verify", streams);
}

}  // namespace kerntrail::cli
