// `kerntrail rules`
#include <ostream>

#include "base/files.h"
#include "cli/common.h"
#include "render/rules_text.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Explains every word that drops, lineage and report use: reasons of absence, qualities of values, fates of units,\n"
    "the rules for passes over IR, the evidence of edges, and what is declared as by design. Prints docs/rules.md.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail rules\n"
    "  kerntrail rules --format json | jq '.rules[] | select(.axis == \"reason\")'";

}  // namespace

int run_rules(const std::vector<std::string>& arguments, Streams& streams) {
  std::string format = "md";
  CommonOptions common;
  Arguments parser("rules", kDescription, kExamples);
  parser.choice("--format", &format, {"md", "json"}, "Markdown or JSON");
  parser.text("-o,--output", &common.output, "FILE", "Write the result there instead of to standard output");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  return deliver(format == "json" ? render::rules_json() : render::rules_markdown(), common, "rules", streams);
}

}  // namespace kerntrail::cli
