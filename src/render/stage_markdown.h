// Per-stage tables and per-kernel blocks of the Markdown report.
// Must not know: captures, the report around them.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/report.h"

namespace kerntrail::render {

// `heading`: "##" or "###".
std::string stage_markdown(const StageTable& table, const std::string& heading);
std::string kernel_markdown(const KernelBlock& kernel, const std::string& heading);

}  // namespace kerntrail::render
