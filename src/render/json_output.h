// JSON of matrices, lineages, drops, verdicts and the report; one document each, indented by 2, keys in a fixed order.
// Must not know: files.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/analysis.h"
#include "kerntrail/capture.h"
#include "kerntrail/drops.h"
#include "kerntrail/explain.h"
#include "kerntrail/lineage.h"
#include "kerntrail/matrix.h"
#include "kerntrail/report.h"
#include "kerntrail/round_trip.h"
#include "kerntrail/verify.h"

namespace kerntrail::render {

// Units are given by id ("c0.n3"); the capture only spells them.
std::string matrix_json(const Capture& capture, const std::vector<Matrix>& matrices);
std::string lineage_json(const Capture& capture, const std::vector<Lineage>& lineages);
std::string drops_json(const std::vector<Drops>& all, DropGrouping by, const CaptureState& state,
                       const std::vector<RoundTrip>& trips = {});
std::string verify_json(const std::vector<Verification>& all, const CaptureState& state);
std::string analysis_json(const Analysis& analysis);
std::string explain_json(const std::vector<Explanation>& all);
std::string report_json(const Capture& capture, const Report& report);

}  // namespace kerntrail::render
