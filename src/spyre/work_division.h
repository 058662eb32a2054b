// Greedy division of an iteration space over cores (the default of June and July 2026).
// Must not know: OpSpecs, layouts, addresses. A pass may call it on loop ranges before any layout exists.
#pragma once

#include <cstdint>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::spyre {

struct DivisionDim {
  std::int64_t extent = 1;
  bool is_output = true;  // indexes the output; false: a reduction dim
  bool is_stick = false;  // the stick dim of some argument: counted in sticks, so that no stick is cut
};

struct DivisionRequest {
  std::vector<DivisionDim> dims;     // in iteration order
  std::int64_t stick_elements = 64;  // elements a stick
  bool is_matmul = false;            // only a matmul may split its reduction dim
  std::int64_t max_cores = 32;
};

// One split per dim, each a divisor of the dim's count (its extent, or ceil(extent / stick_elements) for a stick dim),
// their product at most max_cores. Output dims by decreasing count (ties: the earlier dim first) take the largest
// divisor that is left; a matmul then gives the rest to the one reduction dim with the largest possible divisor.
// Errors: kSchema for an extent, stick or core number below 1.
Expected<std::vector<std::int64_t>> divide_work(const DivisionRequest& request);

}  // namespace kerntrail::spyre
