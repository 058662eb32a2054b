// Why nothing was made of a unit, where no pass took it away: what is known of units of its kind, and what the capture
// says of its compile.
// Must not know: fates, output formats.
#pragma once

#include <string>
#include <string_view>

#include "kerntrail/capture.h"

namespace kerntrail::analyse {

// One or two sentences; where the capture holds no reason, they say so. `stage`: key of the last stage that shows the
// unit; `witnessed`: something in its compile was witnessed.
std::string why_it_ends(const Capture& capture, UnitId unit, std::string_view stage, bool witnessed);
// The same where the unit was read and yet not followed (fate `unseen`); empty where it is of no kind that explains it.
std::string why_unseen(const Capture& capture, UnitId unit);

}  // namespace kerntrail::analyse
