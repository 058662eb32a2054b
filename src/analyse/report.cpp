// Report of a capture: one section a compile and direction, each with its matrix, lineage, tables and kernels.
#include "kerntrail/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyse/detail_tables.h"
#include "analyse/drop_builder.h"
#include "analyse/edges.h"
#include "analyse/lineage_builder.h"
#include "analyse/pipeline.h"
#include "analyse/report_parts.h"
#include "analyse/settings.h"
#include "analyse/survival.h"
#include "base/strings.h"

namespace kerntrail {
namespace {

using analyse::setting;

constexpr std::array<std::string_view, 6> kReferenceHooks{"stage2_pre_grad",          "stage2_post_grad",
                                                          "stage3_looplevel_prepass", "stage5_opspec",
                                                          "stage6_define_kernel",     "stage6_output_dir"};

HookSummary summary_of(const HookRecord& hook, std::string name) {
  HookSummary result{std::move(name), "installed", hook.fired};
  if (hook.state == HookState::kAbsent) {
    result.value = "install-failed: " + (hook.detail.empty() ? "not found" : hook.detail);
  } else if (hook.state == HookState::kFailed) {
    result.value = "install-failed: " + (hook.detail.empty() ? "failed" : hook.detail);
  } else if (hook.errors > 0) {
    result.value = "error: " + (hook.last_error.empty() ? fmt::format("{} calls", hook.errors) : hook.last_error);
  }
  return result;
}

// "examples/mlp.py" -> "mlp"
std::string script_name(const Capture& capture) {
  for (std::string_view key : {"model", "program", "script"}) {
    const std::string_view value = setting(capture.run.settings, key);
    if (value.empty()) continue;
    std::string_view name = base::basename(value);
    if (name.size() > 3 && name.substr(name.size() - 3) == ".py") name.remove_suffix(3);
    return std::string(name);
  }
  return "program";
}

std::string metadata_rule(const Capture& capture) {
  for (const Compile& compile : capture.compiles) {
    if (compile.backend != "kerntrail_spyre") continue;
    const std::string_view own = setting(compile.attributes, "metadata");
    return std::string(own.empty() ? setting(capture.run.settings, "metadata") : own);
  }
  return {};
}

bool reaches_device_ops(const Capture& capture) {
  return std::any_of(capture.snapshots.begin(), capture.snapshots.end(), [&](const Snapshot& snapshot) {
    if (!has(snapshot.stage)) return false;
    const std::string& key = capture.stages[index(snapshot.stage)].key;
    return key == "op_spec" || key == "superdsc";
  });
}

// A backward section shows only what is its own: the stages shared with the forward are in the forward's.
bool belongs_to(const Capture& capture, const analyse::Pipeline& pipeline, const analyse::Column& column) {
  if (pipeline.direction != "backward") return true;
  return std::any_of(column.snapshots.begin(), column.snapshots.end(), [&](SnapshotId id) {
    return capture.graphs[index(capture.snapshots[index(id)].graph)].direction == "backward";
  });
}

void add_counts(const analyse::Pipeline& pipeline, const std::vector<std::size_t>& columns, ReportSection& section) {
  bool kernels_shown = false;
  for (std::size_t c : columns) {
    const analyse::Column& column = pipeline.columns[c];
    kernels_shown = kernels_shown || column.key == "kernel";
    section.counts.emplace_back(fmt::format("{}: {}s", column.title, column.noun),
                                fmt::format("{}", column.units.size()));
  }
  if (!kernels_shown) section.counts.emplace_back("Kernels", fmt::format("{}", section.kernels.size()));
  for (const StageTable& table : section.tables) {
    if (table.kind == TableKind::kOpSpecs)
      section.counts.emplace_back("OpSpec declared fields", base::join(table.observed, ", "));
  }
}

void add_disagreements(const Capture& capture, const analyse::EdgeFinder& edges, ReportSection& section) {
  for (UnitId file : edges.disagreeing_files()) {
    Note note{"handle-disagreement", Severity::kWarning, {}, section.compile, GraphId::kNone};
    note.text = fmt::format("{}: its place in the bundle and its debug handle name different OpSpecs",
                            unit_name(capture, file));
    section.notes.push_back(std::move(note));
  }
}

Expected<ReportSection> make_section(const Capture& capture, CompileId compile, const std::string& direction,
                                     const AnalysisOptions& options, const analyse::ReportParts& parts,
                                     const analyse::DropBuilder& drops) {
  ReportSection section;
  section.compile = compile;
  section.direction = direction;
  section.backend = capture.compiles[index(compile)].backend;
  section.torch_id = capture.compiles[index(compile)].torch_id;
  for (const Note& note : capture.notes) {
    if (note.compile == compile && direction != "backward") section.notes.push_back(note);
  }
  const auto pipeline = analyse::pipeline_of(capture, compile, direction);
  KERNTRAIL_TRY(const auto columns, analyse::select_columns(capture, pipeline, options.stages));
  section.observed = !pipeline.columns.empty();
  if (!section.observed) return section;
  analyse::EdgeFinder edges(capture, pipeline);
  if (parts.matrix) section.matrix = analyse::matrix_of(capture, pipeline, columns, edges);
  section.drops = drops.build(pipeline, edges, parts.drop_stages);
  for (std::size_t c : columns) {
    if (belongs_to(capture, pipeline, pipeline.columns[c])) {
      section.tables.push_back(analyse::stage_table(capture, pipeline, c, edges));
    }
  }
  section.kernels = analyse::kernel_blocks(capture, pipeline, edges);
  add_counts(pipeline, columns, section);
  add_disagreements(capture, edges, section);
  return section;
}

}  // namespace

std::vector<HookSummary> hook_summaries(const Capture& capture) {
  std::vector<HookSummary> result;
  for (std::string_view label : kReferenceHooks) {
    auto hook =
        std::find_if(capture.hooks.begin(), capture.hooks.end(), [&](const HookRecord& h) { return h.label == label; });
    if (hook == capture.hooks.end()) {
      result.push_back({std::string(label), "install-failed: not found", 0});
    } else {
      result.push_back(summary_of(*hook, std::string(label)));
    }
  }
  for (const HookRecord& hook : capture.hooks) {
    if (std::find(kReferenceHooks.begin(), kReferenceHooks.end(), hook.label) != kReferenceHooks.end()) continue;
    result.push_back(summary_of(hook, hook.attribute.empty() ? hook.label : hook.attribute));
  }
  return result;
}

Expected<Report> make_report(const Capture& capture, const ReportOptions& options) {
  analyse::ReportParts all;
  all.drop_stages = options.analysis.stages;
  return analyse::report_of(capture, options, all);
}

namespace analyse {

Expected<Report> report_of(const Capture& capture, const ReportOptions& options, const ReportParts& parts) {
  Report report;
  report.model_name = options.model_name.empty() ? script_name(capture) : options.model_name;
  report.stamp = options.stamp;
  report.example = options.example;
  report.of_issue = options.example || reaches_device_ops(capture);
  report.metadata_rule = metadata_rule(capture);
  report.torn = !capture.end.has_value();
  report.partial = capture.end.has_value() && !capture.end->complete;
  report.of_files = capture_state(capture).level == kFilesLevel;
  report.hooks = hook_summaries(capture);
  if (!capture.compiles.empty()) report.backend = capture.compiles.front().backend;
  for (const Note& note : capture.notes) {
    if (!has(note.compile)) report.notes.push_back(note);
  }
  KERNTRAIL_TRY(const auto compiles, select_compiles(capture, options.analysis));
  std::vector<Lineage> all_lineages;
  if (parts.lineage) {
    KERNTRAIL_TRY(all_lineages, lineages(capture, options.analysis));
  }
  const DropBuilder builder(capture, {});
  std::vector<Verification> verified;
  if (parts.verification) {
    if (auto judged = verify(capture, options.analysis)) verified = std::move(*judged);  // fails without a witness
  }
  for (CompileId compile : compiles) {
    for (const std::string& direction : directions_of(capture, compile)) {
      KERNTRAIL_TRY(auto section, make_section(capture, compile, direction, options.analysis, parts, builder));
      for (Lineage& lineage : all_lineages) {
        if (lineage.compile == compile && direction != "backward") section.lineage = std::move(lineage);
      }
      for (const Verification& one : verified) {
        if (one.compile == compile && direction != "backward" && !one.units.empty()) section.verification = one;
      }
      report.sections.push_back(std::move(section));
    }
  }
  return report;
}

}  // namespace analyse
}  // namespace kerntrail
