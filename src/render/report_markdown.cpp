// The whole report in Markdown: the reference report's sections, in its order.
#include <fmt/format.h>

#include "base/strings.h"
#include "render/drops_markdown.h"
#include "render/markdown.h"
#include "render/stage_markdown.h"
#include "render/text.h"
#include "render/verify_markdown.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

bool has_handles(const Report& report) {
  for (const ReportSection& section : report.sections) {
    for (const StageTable& table : section.tables) {
      if (table.kind == TableKind::kOpSpecs || table.kind == TableKind::kFiles) return true;
    }
  }
  return false;
}

std::string introduction(const Report& report) {
  std::string out = fmt::format("# {}: {} — Source-to-Kernel Provenance\n\n",
                                report.example ? "Example Audit" : "Audit", md_code(report.model_name));
  std::vector<std::string> facts;
  if (!report.stamp.empty()) facts.push_back("Generated: " + md_text(report.stamp));
  if (report.of_issue) facts.emplace_back("Issue: torch-spyre#2574");
  if (!facts.empty()) out += "> " + base::join(facts, " | ") + "\n\n";
  const std::string of = md_code(report.model_name);
  out += report.of_files
             ? fmt::format(
                   "What the bundle files of {} say of provenance. No compile was watched: nothing is known of "
                   "the stages before, and what a file lacks is not called lost.\n\n",
                   of)
             : fmt::format(
                   "What provenance the compile of {} carried, stage by stage. Every table and the lineage "
                   "graph are computed from the objects that were seen while it compiled. What is concluded "
                   "rather than seen stands under “Where provenance is lost”.\n\n",
                   of);
  if (!report.example && !has_handles(report)) return out;
  out += report.example
             ? "This is one kept example of such a report. Its date, and the `debug_handle` ids in it, belong to the "
               "run that "
               "it shows: an id is a hash over the source location too, absolute path included, so another machine or "
               "folder gives other ids. Run the audit again for yours.\n\n"
             : "The `debug_handle` ids belong to this run: an id is a hash over the source location too, absolute path "
               "included, so another machine or folder gives other ids.\n\n";
  return out;
}

// What the back end does on purpose, so that nobody takes it for an observation about torch.
std::string emulation(const Report& report) {
  if (report.backend != "kerntrail_spyre") return {};
  std::string rule = "The capture does not name the metadata rule in force.";
  if (report.metadata_rule == "seed") {
    rule =
        "Metadata rule in force: `seed`. The split of addmm into mm and add copies only `original_aten`, `val` and "
        "`tensor_meta` to "
        "the new nodes, as the reference's toolchain did; what this report shows as lost at post-grad follows from "
        "that rule.";
  } else if (report.metadata_rule == "full") {
    rule = "Metadata rule in force: `full`. The split of addmm into mm and add copies all metadata to the new nodes.";
  } else if (!report.metadata_rule.empty()) {
    rule = fmt::format("Metadata rule in force: {}.", md_code(report.metadata_rule));
  }
  return rule +
         " Declared emulation, under either rule: the permutes of a linear are relabelled to `aten.linear`, and the "
         "add takes its "
         "operands in the order (bias, mm).\n\n";
}

std::string health(const Report& report) {
  std::string out;
  if (report.torn)
    out += "**The capture is torn:** it has no end record. What follows is what was written before it stopped.\n\n";
  if (report.partial)
    out += "**The capture is partial:** something was lost while it was made; the notes say what.\n\n";
  for (const HookSummary& hook : report.hooks) {
    if (hook.value.substr(0, 6) == "error:") {
      out += fmt::format("**A hook failed while it watched:** {}: {}.\n\n", md_code(hook.name), md_text(hook.value));
    }
  }
  return out;
}

std::string lineage_section(const ReportSection& section, const std::string& heading) {
  if (section.lineage.layers.empty()) return {};
  std::vector<std::string> titles;
  for (const LineageLayer& layer : section.lineage.layers) titles.push_back(md_text(layer.title));
  return heading + " Source → Kernel Lineage\n\n" +
         fmt::format(
             "The way of each source line: {}. One node with several below it was decomposed, several with one below "
             "them were "
             "fused. An op that has no source of its own hangs from the sources of the ops lowered together with it, "
             "else from "
             "every source-bearing producer whose value it consumes. The graph shows how units became units; which "
             "fields "
             "survived is the matrix below.\n\n",
             base::join(titles, " → ")) +
         lineage_fences(section.lineage) + "\n";
}

bool has_both_passes(const ReportSection& section) {
  int found = 0;
  for (const MatrixColumn& column : section.matrix.columns)
    found += column.key == "ir_pre_pass" || column.key == "ir_post_pass" ? 1 : 0;
  return found == 2;
}

std::string matrix_section(const ReportSection& section, const std::string& heading) {
  std::string out = heading + " Stage × Field Matrix\n\n";
  out +=
      "✓ there and not empty on every unit · ◐ on some of them (n/total) · ✗ the field exists by this stage, but was "
      "found empty or "
      "missing on every unit (dropped, or never made: “Where provenance is lost” says which) · – does not exist yet "
      "here, or is contained in another field that this stage carries.\n\n";
  out +=
      "Every cell counts population: the field is there and holds something (`0` is something; `None`, `[]`, `{}` and "
      "`\"\"` are "
      "not). Whether an absent field is contained elsewhere is measured too, unit by unit: by following the `origins` "
      "to nodes that "
      "had it, or by reading what the unit's own `debug_handle` holds.\n\n";
  out +=
      "Layer says where a field lives: on the FX node (FX), on the buffer of the loop-level IR (IR) or in the debug "
      "handle (Spyre).";
  out += has_both_passes(section) ? " LoopLevelIR (pre-pass) and (post-pass) are one IR, before and after the "
                                    "pre-scheduling passes that change it in place; issue "
                                    "#2574 calls these steps “Inductor passes” and “LoopLevelIR”.\n\n"
                                  : "\n\n";
  out += matrix_table(section.matrix) + "\n";
  out += md_header({"Quantity", "Value"});
  for (const auto& [quantity, value] : section.counts) out += md_row({md_text(quantity), md_text(value)});
  return out + "\n";
}

std::string notes_of(const std::vector<Note>& notes) {
  std::string out;
  for (const NoteGroup& group : merged_notes(notes)) {
    out += fmt::format("- {} ({}{}): {}\n", md_code(group.note->code), severity_name(group.note->severity),
                       group.times > 1 ? fmt::format(", ×{}", group.times) : "", md_text(group.note->text));
  }
  return out;
}

std::string section_markdown(const ReportSection& section, bool alone) {
  const std::string heading = alone ? "##" : "###";
  std::string out;
  if (!alone) {
    out += fmt::format("## Compile {}{}\n\n", compile_name(section.compile),
                       section.direction.empty() ? "" : ", " + md_text(section.direction));
    out += fmt::format("Back end {}, torch's id {}.\n\n", md_code(section.backend), md_code(section.torch_id));
  }
  if (!section.observed) {
    out += fmt::format(
        "Compile {} was not observed: no stage of it was seen, so nothing can be said about what it carried or "
        "lost.\n\n",
        compile_name(section.compile));
  } else {
    out += lineage_section(section, heading);
    out += matrix_section(section, heading);
    out += drops_section(section.drops, heading);
    if (section.verification) out += verify_section(*section.verification, heading);
    for (const StageTable& table : section.tables) out += stage_markdown(table, heading) + "\n";
    for (const KernelBlock& kernel : section.kernels) out += kernel_markdown(kernel, heading + "#") + "\n";
  }
  if (!section.notes.empty()) out += heading + " Notes\n\n" + notes_of(section.notes) + "\n";
  return out;
}

}  // namespace

std::string report_markdown(const Report& report) {
  std::string out = introduction(report) + emulation(report) + health(report);
  if (report.sections.empty()) {
    out += report.torn
               ? "It holds no stage of any compile: it broke off before the first, or none was made.\n\n"
               : "Nothing was compiled while the capture was made: there is no stage to report on. A program compiles "
                 "when a function that `torch.compile` returned is called.\n\n";
  }
  for (const ReportSection& section : report.sections) out += section_markdown(section, report.sections.size() == 1);
  if (!report.notes.empty()) out += "## Notes of the run\n\n" + notes_of(report.notes) + "\n";
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace kerntrail::render
