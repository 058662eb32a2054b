// `kerntrail sidecar`
#include "spyre/sidecar.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>

#include "cli/common.h"
#include "render/sidecar_text.h"
#include "spyre/sidecar_resolve.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Checks a spyre_provenance.json, the file that leads from the events of a profiler trace back to source lines, "
    "and\n"
    "says what it holds: compiles, their kernels with the names of their events, and where each comes from. With\n"
    "--event, what one event of a trace comes from. docs/sidecar.md explains the file and its diagnostics.\n\n"
    "Exit status: 0 where it is in order; 1 where the event leads nowhere; 3 where the file is refused, with place,\n"
    "reason and diagnostic.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail sidecar spyre_provenance.json\n"
    "  kerntrail sidecar spyre_provenance.json --event 'spyre_kernel_v1_fused_linear_relu_atqydvnuutl766na#0'\n"
    "  kerntrail sidecar spyre_provenance.json --event NAME --format json | jq '.handles[].source'";

constexpr int kLeadsNowhere = 1;

int refuse_sidecar(const Error& error, Streams& streams) {
  Error said = error;
  said.message += fmt::format(" ({})", spyre::sidecar_diagnostic(error.code));
  return refuse("sidecar", said, streams);
}

}  // namespace

int run_sidecar(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  std::string format = "text";
  std::string event, selector;
  Arguments parser("sidecar", kDescription, kExamples);
  parser.positional("SIDECAR", &common.capture, "The file, usually spyre_provenance.json");
  parser.text("-o,--output", &common.output, "FILE", "Write the result there instead of to standard output");
  parser.text("--event", &event, "NAME", "Resolve this event of a trace, with or without its #step");
  parser.text("--selector", &selector, "TEXT", "With --event: only occurrences with this selector");
  parser.choice("--format", &format, {"text", "json"}, "Text or JSON");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  if (!selector.empty() && event.empty())
    return refuse("sidecar", Error{ErrorCode::kUsage, "--selector needs --event NAME"}, streams);

  const auto sidecar = spyre::read_sidecar(common.capture);
  if (!sidecar) return refuse_sidecar(sidecar.error(), streams);
  if (event.empty()) {
    const std::string text =
        format == "json" ? spyre::print_sidecar(*sidecar) : render::sidecar_text(*sidecar, common.capture);
    return deliver(text, common, "sidecar", streams);
  }
  const auto chosen = selector.empty() ? std::nullopt : std::optional(selector);
  const base::Json resolution = spyre::resolve_event(event, sidecar, chosen);
  const std::string text = format == "json" ? resolution.sorted().dump(2) + "\n" : render::resolution_text(resolution);
  const int delivered = deliver(text, common, "sidecar", streams);
  return delivered == kDone && resolution["status"].as_string() == "error" ? kLeadsNowhere : delivered;
}

}  // namespace kerntrail::cli
