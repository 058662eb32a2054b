// `kerntrail validate`
#include "read/validate.h"

#include <fmt/format.h>

#include "base/json.h"
#include "cli/bundle.h"
#include "cli/common.h"
#include "read/bundle_capture.h"
#include "render/text.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Reads a capture with every check on: each record's shape, every reference, and the digest of every snapshot,\n"
    "which the replayed differences must reach. Names the line and the reason where something is wrong.\n\n"
    "Of a Spyre bundle (a folder with sdsc_*.json and bundle.mlir, a folder of such folders, or one such file): holds\n"
    "every file, and all of them together, against the format's rules, which findings name. --execute also runs the\n"
    "files, and them alone, core by core and address by address, and compares the numbers with the OpSpecs'.\n"
    "Without --specs the OpSpecs are those that the files themselves give: that finds cores and files that disagree,\n"
    "not an address that all of them have wrong.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail validate run.ndjson && echo sound\n"
    "  kerntrail validate run.ndjson.zst --format json | jq '.records'\n"
    "  kerntrail validate BUNDLE                            rules only\n"
    "  kerntrail validate BUNDLE --execute --specs specs.json\n"
    "Exit status: 0 sound; 1 a bundle that breaks a rule or computes something else; 2 usage; 3 neither capture nor\n"
    "bundle, damaged, too new, or torn (no end record), or a bundle that can't be executed here or\n"
    "holds files of a kind that can't be judged.";

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
  BundleCheck check;
  Arguments parser("validate", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--format", &format, {"text", "json"}, "Text or JSON");
  parser.flag("--execute", &check.execute, "Of a bundle: run its files and compare their numbers with the OpSpecs'");
  parser.text("--specs", &check.specs, "FILE",
              "With --execute: the OpSpecs to compare with, with their places (info --format specs, emit --planned)");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  if (!check.specs.empty() && !check.execute)
    return stop({kUsageError, "kerntrail validate: --specs needs --execute\n"}, streams);
  if (const auto bundles = read::bundles_in(common.capture); !bundles.empty())
    return check_bundles(common, bundles, format, check, streams);
  if (check.execute)
    return stop({kUsageError, "kerntrail validate: --execute is for bundles, and this is none\n"}, streams);
  const auto report = read::validate_capture(common.capture);
  if (!report) return refuse_capture("validate", report.error(), common.capture, streams);
  const int written = deliver(format == "json" ? json(*report) : text(*report), common, "validate", streams);
  return written == kDone && report->torn ? kUnreadable : written;
}

}  // namespace kerntrail::cli
