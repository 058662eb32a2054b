// `kerntrail validate`
#include "read/validate.h"

#include <fmt/format.h>

#include "base/json.h"
#include "cli/common.h"
#include "render/text.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Reads a capture with every check on: each record's shape, every reference, and the digest of every snapshot,\n"
    "which the replayed differences must reach. Names the line and the reason where something is wrong.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail validate run.ndjson && echo sound\n"
    "  kerntrail validate run.ndjson.zst --format json | jq '.records'\n"
    "Exit status: 0 sound; 3 not a capture, damaged, too new, or torn (no end record).";

std::string text(const read::ValidationReport& report) {
  std::string out = fmt::format("{}: format {}, {} lines, {} bytes\n", render::visible(report.path),
                                report.format_version, report.lines, report.bytes);
  for (const auto& [kind, count] : report.records) out += fmt::format("  {:<10} {}\n", kind, count);
  out += fmt::format("digests reached: {} of {} snapshots ({} written whole)\n", report.digests_reached,
                     report.snapshots, report.full_snapshots);
  out += fmt::format("notes: {} info, {} warning, {} error\n", report.notes, report.warnings, report.errors);
  if (report.unexplained_units > 0) {
    out += fmt::format("units in no snapshot, without a reason: {}\n", report.unexplained_units);
  }
  if (report.torn) {
    out += "torn: " + render::visible(report.torn->text()) + "\n";
  } else {
    out += report.complete ? "sound and complete\n" : "sound, but partial: its writer lost something\n";
  }
  return out;
}

std::string json(const read::ValidationReport& report) {
  base::Json records{base::JsonObject{}};
  for (const auto& [kind, count] : report.records) records.set(kind, static_cast<std::int64_t>(count));
  const base::Json out(base::JsonObject{{"format", "kerntrail-validation"},
                                        {"version", 1},
                                        {"path", report.path},
                                        {"capture_format", report.format_version},
                                        {"lines", static_cast<std::int64_t>(report.lines)},
                                        {"bytes", static_cast<std::int64_t>(report.bytes)},
                                        {"records", std::move(records)},
                                        {"snapshots", static_cast<std::int64_t>(report.snapshots)},
                                        {"digests_reached", static_cast<std::int64_t>(report.digests_reached)},
                                        {"torn", report.torn ? base::Json(report.torn->text()) : base::Json()},
                                        {"complete", report.complete},
                                        {"unexplained_units", static_cast<std::int64_t>(report.unexplained_units)}});
  return out.dump(2) + "\n";
}

}  // namespace

int run_validate(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  std::string format = "text";
  Arguments parser("validate", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--format", &format, {"text", "json"}, "Text or JSON");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  const auto report = read::validate_capture(common.capture);
  if (!report) return refuse("validate", report.error(), streams);
  const int written = deliver(format == "json" ? json(*report) : text(*report), common, "validate", streams);
  return written == kDone && report->torn ? kUnreadable : written;
}

}  // namespace kerntrail::cli
