// Which layout every buffer of a bundle gets, and the device coordinates of every argument.
// Must not know: memory, splits, JSON.
#pragma once

#include <vector>

#include "kerntrail/expected.h"
#include "spyre/op_spec.h"
#include "spyre/plan.h"

namespace kerntrail::spyre {

// Fills layout and device_coordinates of every argument of every spec, ranks of one operation made equal with leading
// dims of 1. Errors as for plan_bundle.
Expected<void> plan_layouts(std::vector<OpSpec>& specs, std::vector<Diagnostic>& diagnostics);

}  // namespace kerntrail::spyre
