// Exports for other programs: torch's own provenance documents, and flat tables.
// Must not know: files.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "analyse/node_mapping.h"
#include "kerntrail/capture.h"
#include "kerntrail/expected.h"
#include "kerntrail/options.h"

namespace kerntrail::render {

// `inductor_provenance_tracking_node_mappings.json`, version 2.0: preToPost, postToPre, cppCodeToPost, postToCppCode.
std::string node_mappings_json(const analyse::NodeMapping& mapping);
// `inductor_provenance_tracking_kernel_stack_traces`: "name:handle" with its stacks.
std::string kernel_stack_traces_json(const analyse::NodeMapping& mapping);

inline constexpr std::array<std::string_view, 3> kTables{"units", "attrs", "edges"};

// One of kTables as CSV with a header row. `units`: one row a unit. `attrs`: one row each time that a field of a unit
// was seen to change. `edges`: one row a pair of units, whatever relates them.
Expected<std::string> table_csv(const Capture& capture, std::string_view table, const AnalysisOptions& options = {});

}  // namespace kerntrail::render
