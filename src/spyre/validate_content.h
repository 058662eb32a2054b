// Rules on one file that was decoded: core map, folds, addresses, regions, names and enumerations.
// Must not know: bundles. Part of validate.cpp.
#pragma once

#include <vector>

#include "base/json.h"
#include "spyre/plan.h"
#include "spyre/superdsc_reader.h"

namespace kerntrail::spyre {

// Bytes of a core's scratchpad that the front end may use.
inline constexpr std::int64_t kLxBytes = 1'625'344;

// `document` is the one that `content` was decoded from.
void validate_content(const base::Json& document, const SuperdscContent& content, std::vector<Diagnostic>& found);

}  // namespace kerntrail::spyre
