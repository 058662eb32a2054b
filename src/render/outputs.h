// The smaller outputs, one function each: text tree, DOT, CSV, the reference's raw JSON, the audit's summary.
// Must not know: files, terminals.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/explain.h"
#include "kerntrail/lineage.h"
#include "kerntrail/matrix.h"
#include "kerntrail/options.h"
#include "kerntrail/report.h"

namespace kerntrail::render {

struct TreeStyle {
  bool colour = false;  // ANSI colours: only for a terminal
};

// The whole lineage from its source lines downwards; each node's own children once, later mentions point back.
std::string lineage_tree(const Capture& capture, const std::vector<Lineage>& lineages, const TreeStyle& style = {});
// What leads to `start` and what it leads to, as two trees.
std::string query_tree(const Capture& capture, const Lineage& lineage, const std::vector<std::uint32_t>& start,
                       const TreeStyle& style = {});

// Each explanation as a compiler would write its notes.
std::string explain_text(const std::vector<Explanation>& all, const TreeStyle& style = {});

std::string lineage_dot(const Capture& capture, const std::vector<Lineage>& lineages);
// Each block is a flowchart of its own; with several, a comment line says which part it is.
std::string lineage_mermaid(const std::vector<Lineage>& lineages);

// compile,direction,layer,field,stage,glyph,n,total,empty,no_slot,unreadable,carried,lost,not_before
std::string matrix_csv(const std::vector<Matrix>& matrices);

// `provenance_capture_raw.json`: one object a stage, or a list with a `compile` key where the capture has several.
Expected<std::string> raw_export(const Capture& capture, const AnalysisOptions& options = {});

struct SummaryOptions {
  std::string title;        // "SimpleMLP"
  std::string config;       // "batch=2, input=128, hidden=256, output=128"; left out when empty
  std::string raw_path;     // where the raw JSON went; left out when empty
  std::string report_path;  // where the report went; left out when empty
};

// What `audit` prints: title, capture summary, hooks, where the files are.
std::string render_summary(const Capture& capture, const SummaryOptions& options);

}  // namespace kerntrail::render
