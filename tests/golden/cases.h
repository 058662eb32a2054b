// The golden cases: captures built by code, each with its folder under tests/golden.
// Must not know: analyses, output formats.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "kerntrail/capture.h"
#include "seed000/seed000.h"

namespace kerntrail::testing {

struct GoldenCase {
  std::string name;  // folder
  std::function<Built()> build;
};

// GoogleTest's name for a case; without it, its raw bytes, which differ from run to run.
inline void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.name; }

// In files of their own.
Built lossy_passes();
Built witnessed();

const std::vector<GoldenCase>& golden_cases();

}  // namespace kerntrail::testing
