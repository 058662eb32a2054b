// Markdown of matrices, lineages and the whole report. All of it is computed before; this only words it.
// Must not know: captures, files.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/analysis.h"
#include "kerntrail/lineage.h"
#include "kerntrail/matrix.h"
#include "kerntrail/report.h"

namespace kerntrail::render {

// U+2713, "U+25D0 n/total", U+2013, U+2717.
std::string glyph_text(const MatrixCell& cell);
// One table a matrix, with its footnotes; a heading each where there are several.
std::string matrix_markdown(const std::vector<Matrix>& matrices);
// Table and footnotes alone.
std::string matrix_table(const Matrix& matrix);
// Fenced Mermaid blocks, with a line on what was split or left out.
std::string lineage_markdown(const std::vector<Lineage>& lineages);
std::string lineage_fences(const Lineage& lineage);

std::string report_markdown(const Report& report);

// `changes`: the body of a section on what changed since an earlier run; none: left out.
std::string analysis_markdown(const Analysis& analysis, const std::string& changes);

}  // namespace kerntrail::render
