// Markdown of lost provenance: as a document of its own, and as a section of the report.
// Must not know: captures, files.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/drops.h"
#include "kerntrail/round_trip.h"

namespace kerntrail::render {

std::string drops_markdown(const std::vector<Drops>& all, DropGrouping by, const CaptureState& state);
// What is lost between OpSpecs, the text of their kernels and the files; empty where no kernel is made of OpSpecs.
std::string round_trips_markdown(const std::vector<RoundTrip>& trips);
// Summary, losses and doubtful values of one part; without the totals a stage, the matrix has them. `heading`: "##".
std::string drops_section(const Drops& drops, const std::string& heading);

}  // namespace kerntrail::render
