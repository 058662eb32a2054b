// The golden cases: captures built by code, each with its folder under tests/golden.
// Must not know: analyses, output formats.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kerntrail/capture.h"
#include "seed000/seed000.h"

namespace kerntrail::testing {

struct GoldenCase {
  std::string name;  // folder
  std::function<Built()> build;
};

const std::vector<GoldenCase>& golden_cases();

}  // namespace kerntrail::testing
