// Markdown of claims against the witness: as a document of its own, and as a section of the report.
// Must not know: captures, files.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/drops.h"
#include "kerntrail/verify.h"

namespace kerntrail::render {

std::string verify_markdown(const std::vector<Verification>& all, const CaptureState& state);
// `heading`: "##".
std::string verify_section(const Verification& one, const std::string& heading);

}  // namespace kerntrail::render
