// `kerntrail drops`
#include "kerntrail/drops.h"
#include "kerntrail/round_trip.h"

#include <fmt/format.h>

#include <ostream>

#include "base/files.h"
#include "cli/common.h"
#include "cli/unknown_option.h"
#include "render/drops_markdown.h"
#include "render/json_output.h"
#include "render/text.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Says where provenance was lost: per pass and per line of the compiler, which fields of which units, on what\n"
    "evidence; which present values are wrong or less than they could be; what is by design; and for every stage and\n"
    "field how many are present and how good, how many are absent and why; and what OpSpecs lose on their way through "
    "the\n"
    "text of their kernel to files. kerntrail rules explains the words.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail drops run.ndjson                        by pass\n"
    "  kerntrail drops run.ndjson --by line              by line of the compiler: where to fix it\n"
    "  kerntrail drops run.ndjson --by unit --stages fx_post_grad\n"
    "  kerntrail drops run.ndjson --intents mine.json    what your passes do on purpose is no loss\n"
    "  kerntrail drops run.ndjson --format json | jq '.parts[].losses[] | {unit, field, site}'";

DropGrouping grouping(const std::string& word) {
  if (word == "line") return DropGrouping::kLine;
  if (word == "field") return DropGrouping::kField;
  return word == "unit" ? DropGrouping::kUnit : DropGrouping::kPass;
}

// An intent that covers nothing is a misspelt one, more often than not.
void warn_of_idle(const Capture& capture, const std::vector<Intent>& intents, Streams& streams) {
  const auto say = [&](const std::string& text) {
    streams.err << fmt::format("kerntrail drops: {}\n", render::visible(text));
  };
  if (capture.passes.empty() && !intents.empty())
    return say("the intents apply to nothing: the capture holds no passes (recorded at level borders?)");
  for (const IdleIntent& idle : idle_intents(capture, intents)) {
    const Intent& intent = intents[idle.intent];
    const std::string near = nearest(idle.named, idle.known);
    const std::string hint = near.empty() ? std::string() : fmt::format("; did you mean \"{}\"?", near);
    const std::string where = fmt::format("{}: intents[{}]", intent.origin, idle.intent);
    if (idle.member == "pass") {
      say(fmt::format("{} covers nothing: the capture has no pass \"{}\"{}", where, idle.named, hint));
    } else {
      say(fmt::format("{} (pass \"{}\") covers nothing by its {} \"{}\": the capture has none such there{}", where,
                      intent.pass, idle.member, idle.named, hint));
    }
  }
}

}  // namespace

int run_drops(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  DropOptions options;
  std::string format = "md";
  std::string by = "pass";
  std::string intents;
  Arguments parser("drops", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--by", &by, {"pass", "line", "field", "unit"}, "What the losses are grouped by");
  parser.choice("--format", &format, {"md", "json"}, "Markdown, or JSON with every unit (schemas/drops.schema.json)");
  parser.text(
      "--intents", &intents, "FILE",
      "What passes do on purpose (schemas/intents.schema.json); a pass by the path shown here, or its last parts");
  add_analysis(parser, common, true);
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  options.analysis = common.analysis;
  if (!intents.empty()) {
    const auto text = base::read_file(intents);
    if (!text) return refuse("drops", text.error(), streams);
    auto parsed = parse_intents(*text, intents);
    if (!parsed) return refuse("drops", parsed.error(), streams);
    options.intents = std::move(*parsed);
  }
  const auto capture = load(common, "drops", streams);
  if (!capture) return refuse("drops", capture.error(), streams);
  warn_of_idle(*capture, options.intents, streams);
  const auto all = drops(*capture, options);
  if (!all) return refuse("drops", all.error(), streams);
  const CaptureState state = capture_state(*capture);
  const auto trips = round_trips(*capture, options.analysis);
  if (!trips) return refuse("drops", trips.error(), streams);
  return deliver(format == "json"
                     ? render::drops_json(*all, grouping(by), state, *trips)
                     : render::drops_markdown(*all, grouping(by), state) + render::round_trips_markdown(*trips),
                 common, "drops", streams);
}

}  // namespace kerntrail::cli
