// From the name of a profiler event to the kernel, its handles and source lines, by a sidecar.
// Must not know: files, how results are shown.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "spyre/sidecar.h"

namespace kerntrail::spyre {

// The result as a document of its own (resolutionVersion 1): event, identity, directHandleIds, fusedConstituentIds,
// handles, every occurrence that fits (never a guess among several) with what they disagree on, projections,
// diagnostics, and status: error, partial (a warning) or complete. `sidecar` may be the error that reading it gave.
// `selector` chooses among occurrences that have one.
base::Json resolve_event(std::string_view event, const Expected<Sidecar>& sidecar,
                         const std::optional<std::string>& selector = std::nullopt);

}  // namespace kerntrail::spyre
