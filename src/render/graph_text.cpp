// DOT and Mermaid text of lineages, CSV of matrices.
#include <fmt/format.h>

#include "render/mermaid.h"
#include "render/outputs.h"
#include "render/text.h"

namespace kerntrail::render {

std::string lineage_dot(const Capture& capture, const std::vector<Lineage>& lineages) {
  std::string out = "digraph kerntrail {\n  rankdir=LR;\n  node [shape=box];\n";
  std::size_t base = 0;  // node ids go on counting over compiles
  for (std::size_t l = 0; l < lineages.size(); ++l) {
    const Lineage& lineage = lineages[l];
    std::vector<std::string> clusters(lineage.layers.size());
    for (std::size_t i = 0; i < lineage.nodes.size(); ++i) {
      const LineageNode& node = lineage.nodes[i];
      const std::string tip =
          has(node.unit) ? unit_name(capture, node.unit) : fmt::format("{}:{}", node.file, node.line);
      clusters[node.layer] += fmt::format("    n{} [label=\"{}\", tooltip=\"{}\"];\n", base + i,
                                          dot_string(node_label(node)), dot_string(tip));
    }
    for (std::size_t layer = 0; layer < clusters.size(); ++layer) {
      if (clusters[layer].empty()) continue;
      const std::string title =
          (lineages.size() > 1 ? compile_name(lineage.compile) + " " : std::string()) + lineage.layers[layer].title;
      out += fmt::format("  subgraph cluster_{}_{} {{\n    label=\"{}\";\n{}  }}\n", l, layer, dot_string(title),
                         clusters[layer]);
    }
    for (const LineageEdge& edge : lineage.edges) {
      const bool weak = edge.strength == Strength::kDerived || edge.ambiguous ||
                        (edge.strength == Strength::kClaimed && lineage.witnessed);
      const std::string label =
          edge.pass.empty() ? std::string() : fmt::format(", label=\"{}\"", dot_string(edge.pass));
      out += fmt::format("  n{} -> n{} [tooltip=\"{}, {}\"{}{}];\n", base + edge.from, base + edge.to,
                         edge_kind_name(edge.kind), evidence_name(edge.evidence), weak ? ", style=dashed" : "", label);
    }
    base += lineage.nodes.size();
  }
  return out + "}\n";
}

std::string lineage_mermaid(const std::vector<Lineage>& lineages) {
  std::string out;
  for (const Lineage& lineage : lineages) {
    const MermaidDrawing drawing = draw_mermaid(lineage);
    for (std::size_t i = 0; i < drawing.blocks.size(); ++i) {
      if (!out.empty()) out += "\n";
      if (lineages.size() > 1 || drawing.blocks.size() > 1) {
        out +=
            fmt::format("%% compile {}, part {} of {}\n", compile_name(lineage.compile), i + 1, drawing.blocks.size());
      }
      out += drawing.blocks[i];
    }
    if (drawing.has_weak) out += "%% dotted: ambiguous, derived, or nothing but the compiler's word\n";
    if (drawing.left_out_edges > 0 || drawing.left_out_nodes > 0) {
      out += fmt::format("%% compile {}: {} nodes and {} edges are left out\n", compile_name(lineage.compile),
                         drawing.left_out_nodes, drawing.left_out_edges);
    }
  }
  return out;
}

std::string matrix_csv(const std::vector<Matrix>& matrices) {
  std::string out =
      "compile,direction,layer,field,stage,glyph,n,total,empty,no_slot,unreadable,carried,lost,not_before\r\n";
  for (const Matrix& matrix : matrices) {
    for (const MatrixRow& row : matrix.rows) {
      for (std::size_t i = 0; i < row.cells.size(); ++i) {
        const MatrixCell& cell = row.cells[i];
        out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n", compile_name(matrix.compile),
                           csv_field(matrix.direction), csv_field(row.layer), csv_field(row.name),
                           csv_field(matrix.columns[i].key), glyph_name(cell.glyph), cell.present, cell.total,
                           cell.empty, cell.no_slot, cell.unreadable, cell.carried, cell.lost, cell.not_before);
      }
    }
  }
  return out;
}

}  // namespace kerntrail::render
