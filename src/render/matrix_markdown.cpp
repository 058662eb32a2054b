#include <fmt/format.h>

#include "base/strings.h"
#include "render/markdown.h"
#include "render/mermaid.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

// What a glyph cannot show: how many of the absent had an empty slot and how many none.
std::string footnote(const MatrixRow& row, const Matrix& matrix) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const MatrixCell& cell = row.cells[i];
    const std::string title = md_text(matrix.columns[i].title);
    if (cell.total == 0 && cell.created) {
      parts.push_back(fmt::format("{} 0/0, the stage has no {}", title, md_text(matrix.columns[i].noun)));
      continue;
    }
    std::vector<std::string> counts;
    const bool asked = cell.created && (cell.glyph == Glyph::kSome || cell.glyph == Glyph::kNone);
    if (asked && cell.empty > 0) counts.push_back(fmt::format("{} empty", cell.empty));
    if (asked && cell.no_slot > 0) counts.push_back(fmt::format("{} without a slot", cell.no_slot));
    if (asked && cell.lost > 0) counts.push_back(fmt::format("{} lost here", cell.lost));
    if (asked && cell.carried > 0) counts.push_back(fmt::format("{} carried", cell.carried));
    if (cell.unreadable > 0) counts.push_back(fmt::format("{} unreadable", cell.unreadable));
    if (!counts.empty()) parts.push_back(fmt::format("{} {}", title, base::join(counts, ", ")));
  }
  if (parts.empty()) return {};
  return fmt::format("- {}: {}\n", md_code(row.name), base::join(parts, "; "));
}

std::string heading_of(CompileId compile, const std::string& direction) {
  return fmt::format("## Compile {}{}\n\n", compile_name(compile), direction.empty() ? "" : ", " + md_text(direction));
}

}  // namespace

std::string glyph_text(const MatrixCell& cell) {
  switch (cell.glyph) {
    case Glyph::kAll: return "✓";
    case Glyph::kSome: return fmt::format("◐ {}/{}", cell.present, cell.total);
    case Glyph::kDash: return "–";
    case Glyph::kNone: return "✗";
  }
  return {};
}

std::string matrix_table(const Matrix& matrix) {
  std::vector<std::string> header{"Layer", "Field"};
  for (const MatrixColumn& column : matrix.columns) header.push_back(md_text(column.title));
  std::string out = md_header(header);
  std::string notes;
  for (const MatrixRow& row : matrix.rows) {
    std::vector<std::string> cells{md_text(row.layer), md_code(row.name)};
    for (const MatrixCell& cell : row.cells) cells.push_back(glyph_text(cell));
    out += md_row(cells);
    notes += footnote(row, matrix);
  }
  if (!notes.empty())
    out +=
        "\nUnits behind the glyphs that are not "
        "✓"
        ":\n\n" +
        notes;
  return out;
}

std::string matrix_markdown(const std::vector<Matrix>& matrices) {
  std::string out;
  for (const Matrix& matrix : matrices) {
    if (!out.empty()) out += "\n";
    if (matrices.size() > 1) out += heading_of(matrix.compile, matrix.direction);
    out += matrix_table(matrix);
  }
  return out;
}

std::string lineage_fences(const Lineage& lineage) {
  const MermaidDrawing drawing = draw_mermaid(lineage);
  std::string out;
  if (drawing.blocks.size() > 1) {
    out += fmt::format("The graph has {} and {}, more than one drawing holds; it is split by what it ends in.\n\n",
                       base::counted(drawing.nodes, "node"), base::counted(drawing.edges, "edge"));
  }
  for (std::size_t i = 0; i < drawing.blocks.size(); ++i) {
    if (drawing.blocks.size() > 1) out += fmt::format("Part {} of {}:\n\n", i + 1, drawing.blocks.size());
    out += "```mermaid\n" + drawing.blocks[i] + "```\n";
    if (i + 1 < drawing.blocks.size()) out += "\n";
  }
  if (drawing.has_weak)
    out += "\nDotted: ambiguous, derived, or nothing but the compiler's word (`kerntrail rules` explains).\n";
  if (drawing.left_out_edges > 0 || drawing.left_out_nodes > 0) {
    out += fmt::format("\nLeft out of the drawings: {} and {}. `kerntrail lineage --format json` has all of them.\n",
                       base::counted(drawing.left_out_nodes, "node"), base::counted(drawing.left_out_edges, "edge"));
  }
  return out;
}

std::string lineage_markdown(const std::vector<Lineage>& lineages) {
  std::string out;
  for (const Lineage& lineage : lineages) {
    if (!out.empty()) out += "\n";
    if (lineages.size() > 1) out += heading_of(lineage.compile, {});
    out += lineage_fences(lineage);
  }
  return out;
}

}  // namespace kerntrail::render
