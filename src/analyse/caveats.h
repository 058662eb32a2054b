// What is true of a run only: sentences that keep a reader from taking it for a property of the compiler.
// Must not know: output formats.
#pragma once

#include <vector>

#include "kerntrail/analysis.h"

namespace kerntrail::analyse {

// By fields and flow of the section.
std::vector<Caveat> section_caveats(const Capture& capture, const AnalysisSection& section);
// Of the whole capture: its level, caches, hooks, and what is not in it.
std::vector<Caveat> run_caveats(const Capture& capture, const Report& report);

}  // namespace kerntrail::analyse
