// `kerntrail diff`
#include "kerntrail/diff.h"

#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "cli/common.h"
#include "render/diff_text.h"
#include "render/text.h"

namespace kerntrail::cli {
namespace {

constexpr int kNotComparable = 4;
constexpr int kWorse = 1;

constexpr std::string_view kDescription =
    "Compares two captures of one program, although names, counts and fusion changed: which provenance fields and\n"
    "links from source lines to kernels were lost or gained, which drops are new, fixed or moved, whether claims\n"
    "became truer; each charged to a pass, or to the one setting that differs. Units are matched by structure,\n"
    "lineage and the text of their source lines; what can't be told apart is kept apart.\n"
    "Refuses (exit status 4) captures that can't be compared: another provenance level, capture level, cache\n"
    "state or back end, one that is not whole, or another model, which is one that shares less than half of the\n"
    "nodes that enter the compiler, or neither a file nor half of the lines. A model with a layer more is\n"
    "compared.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail record -o old.ndjson train.py          before a change: of torch, of a pass, of a setting\n"
    "  kerntrail record -o new.ndjson train.py          after it\n"
    "  kerntrail diff old.ndjson new.ndjson\n"
    "  kerntrail diff old.ndjson new.ndjson --exit-code > /dev/null || echo worse\n"
    "  kerntrail diff old.ndjson new.ndjson --stages fx_aten,fx_post_grad\n"
    "  kerntrail diff old.ndjson new.ndjson --format json | jq '.parts[].fields[] | {change, new_unit, fields}'";

}  // namespace

int run_diff(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions old, now;
  std::string format = "md";
  bool force = false;
  bool exit_code = false;
  Arguments parser("diff", kDescription, kExamples);
  parser.positional("OLD", &old.capture, "Capture before the change (.ndjson, .gz, .zst), or - for standard input");
  parser.positional("NEW", &now.capture, "Capture after it");
  parser.text("-o,--output", &now.output, "FILE",
              "Write the result there instead of to standard output; folders that are missing are made");
  parser.choice("--format", &format, {"md", "json"},
                "Markdown, or JSON with every match and difference (schemas/diff.schema.json)");
  parser.list("--stages", &now.analysis.stages, "KEY,...",
              "Stages to compare; all: every captured one; default: all but kernels that are seen as bundle files");
  parser.flag("--force", &force, "Compare captures that are not comparable, and say so at the top");
  parser.flag("--exit-code", &exit_code, "Return 1 where something got worse");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  if (old.capture == "-" && now.capture == "-")
    return refuse("diff", {ErrorCode::kUsage, "only one of the two captures can come from standard input"}, streams);
  std::error_code ignored;
  if (!now.output.empty() && std::filesystem::equivalent(now.output, old.capture, ignored))
    return refuse("diff", {ErrorCode::kUsage, "-o names OLD itself; name another file for the result"}, streams);
  const auto before = load(old, "diff", streams);
  if (!before) return refuse("diff", before.error(), streams);
  const auto after = load(now, "diff", streams);
  if (!after) return refuse("diff", after.error(), streams);
  if (!force) {
    const auto unlike = incomparable(*before, *after);
    if (!unlike.empty()) {
      streams.err << fmt::format("kerntrail diff: {} and {} can't be compared:\n{}--force compares all the same\n",
                                 render::visible(old.capture), render::visible(now.capture),
                                 render::unlike_text(unlike));
      return kNotComparable;
    }
  }
  const auto result = diff(*before, *after, now.analysis);
  if (!result) return refuse("diff", result.error(), streams);
  const render::DiffNames names{old.capture, now.capture};
  const int done = deliver(format == "json" ? render::diff_json(*result, names) : render::diff_markdown(*result, names),
                           now, "diff", streams);
  return done == kDone && exit_code && result->totals.worse() ? kWorse : done;
}

}  // namespace kerntrail::cli
