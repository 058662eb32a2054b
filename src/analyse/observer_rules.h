// Rules a to e over passes on IR: what a pass may not do to origins, origin node and transform history of operations.
// Every broken rule is kept, several a pass and unit.
// Must not know: output formats.
#pragma once

#include <vector>

#include "analyse/intents.h"
#include "analyse/pass_index.h"
#include "kerntrail/drops.h"

namespace kerntrail::analyse {

// Passes of one compile, restricted to graphs of the direction ("" for all).
std::vector<ObserverFinding> observer_findings(const Capture& capture, const PassIndex& passes,
                                               const IntentTable& intents, CompileId compile,
                                               std::string_view direction);

}  // namespace kerntrail::analyse
