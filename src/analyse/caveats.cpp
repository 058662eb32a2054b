#include "analyse/caveats.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyse/settings.h"

namespace kerntrail::analyse {
namespace {

class SectionCaveats {
 public:
  SectionCaveats(const Capture& capture, const AnalysisSection& section) : capture_(capture), section_(section) {}

  std::vector<Caveat> take() {
    const FieldOrigin* origins = nullptr;
    for (const FieldOrigin& field : section_.fields) {
      if (field.field == "origins") origins = &field;
      const bool slots =
          std::any_of(field.stages.begin(), field.stages.end(), [](const auto& at) { return at.slots > 0; });
      if (slots && field.first_stage.empty())
        caveat("unused-slot",
               fmt::format("{} is a slot that nothing fills: it is there at {}, and holds nothing on any "
                           "unit of any stage",
                           field.field, field.stages.front().title));
    }
    partial_fields();
    if (origins != nullptr) compare_origin_node(*origins);
    for (const FlowStage& stage : section_.flow) {
      const bool ir = stage.key == "ir_post_pass" && stage.fresh > 0;
      if (ir)
        caveat("count-depends-on-schedule",
               fmt::format("{} of the {} {}s of {} were inserted by passes over the IR: a test should ask that every "
                           "one carries origins, never for a number of them",
                           stage.fresh, stage.units, stage.noun, stage.title));
    }
    return std::move(out_);
  }

 private:
  void caveat(std::string code, std::string text) { out_.push_back({std::move(code), std::move(text)}); }

  void partial_fields() {
    for (const FieldOrigin& field : section_.fields) {
      if (field.field != "from_node") continue;
      for (const FieldOrigin::At& at : field.stages) {
        if (at.stage != "fx_post_grad" || at.present == at.units) continue;
        caveat(
            "from-node-depends-on-run",
            fmt::format("from_node is there on {} of {} {}s of {} at torch's provenance level {}: it depends on how a "
                        "node was made and on that setting, so a tool must not count on it",
                        at.present, at.units, "node", at.title, level()));
      }
    }
  }

  std::string level() const {
    const std::string_view value = setting(capture_.run.settings, "provenance_level");
    return std::string(value.empty() ? "(not recorded)" : value);
  }

  void compare_origin_node(const FieldOrigin& origins) {
    for (const FieldOrigin& field : section_.fields) {
      if (field.field != "origin_node") continue;
      for (const FieldOrigin::At& at : field.stages) {
        const auto all = std::find_if(origins.stages.begin(), origins.stages.end(),
                                      [&](const auto& other) { return other.stage == at.stage; });
        if (all == origins.stages.end() || at.present >= all->present) continue;
        caveat("origin-node-is-optional",
               fmt::format("origin_node is there on {} of {} units of {}, origins on {}: origins holds all that "
                           "origin_node could name",
                           at.present, at.units, at.title, all->present));
      }
    }
  }

  const Capture& capture_;
  const AnalysisSection& section_;
  std::vector<Caveat> out_;
};

}  // namespace

std::vector<Caveat> section_caveats(const Capture& capture, const AnalysisSection& section) {
  return SectionCaveats(capture, section).take();
}

std::vector<Caveat> run_caveats(const Capture& capture, const Report& report) {
  std::vector<Caveat> out;
  const auto say = [&](std::string code, std::string text) { out.push_back({std::move(code), std::move(text)}); };
  if (report.torn) say("torn", "The capture has no end record: what came after is not in it");
  if (report.partial) say("partial", "Something was lost while the capture was made; its notes say what");
  const std::string_view level = setting(capture.run.settings, "level");
  if (level == kFilesLevel) {
    say("files-only",
        "Only the files of a bundle were read: no compile was watched, so nothing is known of earlier stages, and "
        "nothing can be called lost");
    return out;
  }
  if (capture.passes.empty() && !capture.compiles.empty())
    say("no-passes",
        "No passes are in it (recorded at level borders?): losses are placed between stages, and nothing is known of "
        "which pass made what");
  if (level != "truth" && !level.empty())
    say("no-witness",
        fmt::format("Nothing was witnessed (level {}): what the compiler says of its IR and kernels is its "
                    "own word",
                    level));
  if (setting(capture.run.settings, "force_disable_caches") == "False")
    say("caches-on", "Inductor's caches were on: compiles served from them were not observed");
  for (const ReportSection& section : report.sections) {
    if (!section.observed)
      say("not-observed",
          fmt::format("Compile {} was not observed: nothing is said of it", compile_name(section.compile)));
  }
  for (const HookSummary& hook : report.hooks) {
    if (hook.value.rfind("error:", 0) == 0)
      say("hook-failed", fmt::format("Hook {} failed while it watched ({})", hook.name, hook.value));
  }
  return out;
}

}  // namespace kerntrail::analyse
