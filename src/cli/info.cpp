// `kerntrail info`
#include "read/info.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"
#include "cli/bundle.h"
#include "cli/common.h"
#include "read/bundle_capture.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::cli {
namespace {

using render::visible;

constexpr std::string_view kDescription =
    "Says what a capture holds: who wrote it and with which settings, its compiles and their stages with the number\n"
    "of units, hooks that were not installed or failed, and what was not observed.\n\n"
    "Of a Spyre bundle (a folder with sdsc_*.json and bundle.mlir, a folder of such folders, or one such file):\n"
    "its operations in order, with dims, splits over the cores, tensors and where they lie, constants, and the\n"
    "handle that leads back to source. No device and no capture is needed.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail info run.ndjson\n"
    "  kerntrail info run.ndjson --format json | jq '.compiles[].stages'\n"
    "  kerntrail info BUNDLE                                        what its files say\n"
    "  kerntrail info BUNDLE --format specs | kerntrail emit /dev/stdin -o COPY --keep";

std::string status(const read::CaptureInfo& info) {
  if (info.torn) return "torn: no end record";
  return info.complete ? "complete" : "partial: something was lost, see the notes";
}

// "2 extern, 3 loop"
std::string kernels_text(const read::CompileSummary& compile) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : compile.kernels)
    parts.push_back(fmt::format("{} {}", count, name.empty() ? "of unknown class" : visible(name)));
  return base::join(parts, ", ");
}

std::string compile_text(const read::CompileSummary& compile) {
  std::string out = fmt::format("\n{}  backend {}, torch {}, attempt {}\n", compile.name, visible(compile.backend),
                                visible(compile.torch_id), compile.attempt);
  if (compile.stages.empty()) out += "  no stage was observed\n";
  for (const read::StageSummary& stage : compile.stages) {
    out += fmt::format("  {:<14} {} ({})\n", visible(stage.key), visible(stage.title),
                       base::counted(static_cast<std::size_t>(stage.counted), visible(stage.noun)));
  }
  if (!compile.kernels.empty()) out += fmt::format("  {:<14} {}\n", "kernels", kernels_text(compile));
  return out;
}

std::string hooks_text(const read::CaptureInfo& info) {
  std::string out = fmt::format("\n{}, {} not installed, {} with errors\n",
                                base::counted(static_cast<std::size_t>(info.hooks), "hook"), info.missing_hooks.size(),
                                info.troubled_hooks.size());
  for (const HookRecord& hook : info.missing_hooks) {
    out += fmt::format("  {} {}: {}{}\n", hook_state_name(hook.state), visible(hook.attribute), visible(hook.detail),
                       hook.lost.empty() ? "" : "; lost: " + visible(hook.lost));
  }
  for (const HookRecord& hook : info.troubled_hooks) {
    out += fmt::format("  {} errors in {}: {}{}\n", hook.errors, visible(hook.attribute), visible(hook.last_error),
                       hook.restored ? "" : "; the original was not put back");
  }
  return out;
}

std::string text(const read::CaptureInfo& info) {
  std::string out = fmt::format("format {}, written by {}; torch {}, python {}, {}\nstatus {}\n",
                                info.run.format_version, visible(info.run.tool), visible(info.run.torch),
                                visible(info.run.python), visible(info.run.platform), status(info));
  for (const auto& [key, value] : info.run.settings) out += fmt::format("  {} = {}\n", visible(key), visible(value));
  if (info.compiles.empty())
    out +=
        info.torn ? "\nit holds no compile: it broke off before one, or none was made\n" : "\nnothing was compiled\n";
  for (const read::CompileSummary& compile : info.compiles) out += compile_text(compile);
  out += hooks_text(info);
  out += fmt::format("\n{}, {}, {}, {}, {}, {}\n", base::counted(info.units, "unit"),
                     base::counted(info.snapshots, "snapshot"), base::counted(info.links, "link"),
                     base::counted(info.claims, "claim"), base::counted(info.texts, "text"),
                     base::counted(info.locs, "location"));
  for (const render::NoteGroup& group : render::merged_notes(info.notes)) {
    std::string of = render::compiles_text(group.compiles);
    if (group.times > 1) of += fmt::format("{}×{}", of.empty() ? "" : "; ", group.times);
    out += fmt::format("{} {}{}: {}\n", severity_name(group.note->severity), visible(group.note->code),
                       of.empty() ? "" : " (" + of + ")", visible(group.note->text));
  }
  return out;
}

base::Json hook_json(const std::vector<HookRecord>& hooks) {
  base::JsonArray out;
  for (const HookRecord& hook : hooks) {
    out.push_back(base::JsonObject{{"label", hook.label},
                                   {"attribute", hook.attribute},
                                   {"state", hook_state_name(hook.state)},
                                   {"detail", hook.detail},
                                   {"lost", hook.lost},
                                   {"errors", static_cast<std::int64_t>(hook.errors)},
                                   {"last_error", hook.last_error},
                                   {"restored", hook.restored}});
  }
  return out;
}

base::Json settings_json(const Settings& settings) {
  base::Json out{base::JsonObject{}};
  for (const auto& [key, value] : settings) out.set(key, value);
  return out;
}

base::Json compiles_json(const read::CaptureInfo& info) {
  base::JsonArray compiles;
  for (const read::CompileSummary& compile : info.compiles) {
    base::JsonArray stages;
    for (const read::StageSummary& stage : compile.stages) {
      stages.push_back(base::JsonObject{{"stage", stage.key},
                                        {"title", stage.title},
                                        {"snapshots", static_cast<std::int64_t>(stage.snapshots)},
                                        {"units", static_cast<std::int64_t>(stage.units)},
                                        {"counted", static_cast<std::int64_t>(stage.counted)}});
    }
    base::JsonObject kernels;
    for (const auto& [name, count] : compile.kernels)
      kernels.emplace_back(name.empty() ? "unknown" : name, static_cast<std::int64_t>(count));
    compiles.push_back(base::JsonObject{{"compile", compile.name},
                                        {"torch_id", compile.torch_id},
                                        {"attempt", compile.attempt},
                                        {"backend", compile.backend},
                                        {"attributes", settings_json(compile.attributes)},
                                        {"stages", std::move(stages)},
                                        {"kernels", std::move(kernels)}});
  }
  return compiles;
}

std::string json(const read::CaptureInfo& info) {
  base::JsonArray notes;
  for (const Note& note : info.notes) {
    base::JsonObject entry{{"code", note.code}, {"severity", severity_name(note.severity)}, {"text", note.text}};
    if (has(note.compile)) entry.emplace_back("compile", compile_name(note.compile));
    notes.push_back(std::move(entry));
  }
  const base::Json out(base::JsonObject{{"format", "kerntrail-info"},
                                        {"version", 1},
                                        {"capture_format", info.run.format_version},
                                        {"tool", info.run.tool},
                                        {"torch", info.run.torch},
                                        {"python", info.run.python},
                                        {"platform", info.run.platform},
                                        {"settings", settings_json(info.run.settings)},
                                        {"torn", info.torn},
                                        {"complete", info.complete},
                                        {"compiles", compiles_json(info)},
                                        {"hooks", static_cast<std::int64_t>(info.hooks)},
                                        {"missing_hooks", hook_json(info.missing_hooks)},
                                        {"troubled_hooks", hook_json(info.troubled_hooks)},
                                        {"units", static_cast<std::int64_t>(info.units)},
                                        {"snapshots", static_cast<std::int64_t>(info.snapshots)},
                                        {"notes", std::move(notes)}});
  return out.dump(2) + "\n";
}

}  // namespace

int run_info(const std::vector<std::string>& arguments, Streams& streams) {
  CommonOptions common;
  std::string format = "text";
  Arguments parser("info", kDescription, kExamples);
  add_capture(parser, common);
  parser.choice("--format", &format, {"text", "json", "specs"},
                "Text or JSON; of a bundle also its OpSpecs, as kerntrail emit reads them");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  if (const auto bundles = read::bundles_in(common.capture); !bundles.empty())
    return show_bundles(common, bundles, format, streams);
  if (format == "specs")
    return stop({kUsageError, "kerntrail info: --format specs is for bundles, and this is none\n"}, streams);
  const auto info = read::capture_info(common.capture);
  if (!info) return refuse_capture("info", info.error(), common.capture, streams);
  return deliver(format == "json" ? json(*info) : text(*info), common, "info", streams);
}

}  // namespace kerntrail::cli
