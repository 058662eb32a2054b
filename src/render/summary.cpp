// What `audit` prints when it is done: the reference's six lines, hooks, and where the files went.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyse/detail_tables.h"
#include "analyse/edges.h"
#include "analyse/pipeline.h"
#include "base/json.h"
#include "base/strings.h"
#include "render/outputs.h"

namespace kerntrail::render {
namespace {

struct Totals {
  std::size_t pre = 0, post = 0, ir_pre = 0, ir_post = 0, specs = 0, kernels = 0, dirs = 0, files = 0;
  std::array<bool, 6> fired{};
  std::vector<std::string> fields;
  bool handles = false;
};

void add(const Capture& capture, const analyse::Pipeline& pipeline, Totals& totals) {
  analyse::EdgeFinder edges(capture, pipeline);
  for (std::size_t c = 0; c < pipeline.columns.size(); ++c) {
    const analyse::Column& column = pipeline.columns[c];
    const std::size_t units = column.units.size();
    const auto note = [&](std::size_t line, std::size_t& count) {
      totals.fired[line] = true;
      count += units;
    };
    if (column.key == "fx_pre_grad") note(0, totals.pre);
    if (column.key == "fx_post_grad") note(1, totals.post);
    if (column.key == "ir_pre_pass") note(2, totals.ir_pre);
    if (column.key == "ir_post_pass") note(3, totals.ir_post);
    if (column.key == "op_spec") {
      note(4, totals.specs);
      for (const std::string& field : analyse::stage_table(capture, pipeline, c, edges).observed) {
        if (std::find(totals.fields.begin(), totals.fields.end(), field) == totals.fields.end())
          totals.fields.push_back(field);
      }
    }
    if (column.key == "superdsc") totals.files += units;
  }
  for (const KernelBlock& block : analyse::kernel_blocks(capture, pipeline, edges)) {
    totals.fired[5] = true;
    ++totals.kernels;
    totals.dirs += block.output_dir.empty() ? 0U : 1U;
    totals.handles = totals.handles || block.handles > 0;
  }
}

std::string line(std::string_view key, bool fired, const std::string& counts) {
  return fmt::format("  {:<25} {} {}\n", key, fired ? "True" : "False", counts);
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back("'" + name + "'");
  return "[" + base::join(quoted, ", ") + "]";
}

}  // namespace

std::string render_summary(const Capture& capture, const SummaryOptions& options) {
  Totals totals;
  for (std::size_t i = 0; i < capture.compiles.size(); ++i) {
    add(capture, analyse::pipeline_of(capture, id_at<CompileId>(i)), totals);
  }
  const std::string rule(72, '=');
  const bool of_issue = totals.fired[4] || totals.files > 0;  // the pipeline that the reference audit is about
  std::string out = fmt::format("{}\nSource-to-kernel provenance audit: {}\n{}{}\n", rule, options.title,
                                of_issue ? "Issue: torch-spyre#2574\n" : "", rule);
  if (!options.config.empty()) out += fmt::format("Config: {}\n", options.config);
  out += "\nCapture summary (fired? / count):\n";
  out += line("stage2_pre_grad", totals.fired[0], fmt::format("nodes={}", totals.pre));
  out += line("stage2_post_grad", totals.fired[1], fmt::format("nodes={}", totals.post));
  out += line("stage3_looplevel_prepass", totals.fired[2], fmt::format("ops={}", totals.ir_pre));
  out += line("stage4_looplevel_postpass", totals.fired[3], fmt::format("ops={}", totals.ir_post));
  out += line("stage5_opspec", totals.fired[4],
              fmt::format("ops={}, opspec_fields={}", totals.specs, quoted_list(totals.fields)));
  out += line("stage6_kernels", totals.fired[5], fmt::format("kernels={}, dirs={}", totals.kernels, totals.dirs));
  base::Json hooks{base::JsonObject{}};
  for (const HookSummary& hook : hook_summaries(capture)) hooks.set(hook.name, hook.value);
  out += fmt::format("\n_hooks: {}\n", hooks.dump(2));
  if (!options.raw_path.empty()) out += fmt::format("\nRaw capture: {}\n", options.raw_path);
  out += fmt::format("SuperDSC: {} kernels, {} sdsc_*.json, provenance_present={}\n", totals.kernels, totals.files,
                     totals.handles ? "True" : "False");
  if (!options.report_path.empty()) out += fmt::format("Report: {}\n", options.report_path);
  return out;
}

}  // namespace kerntrail::render
