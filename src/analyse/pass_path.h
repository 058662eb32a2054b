// How passes that nest are spelled: the innermost name alone may be that of a tool ("pattern_matcher").
// Must not know: intents, losses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"

namespace kerntrail::analyse {

// Between the names of a path.
inline constexpr std::string_view kWithin = " / ";

// Names from the outermost pass to this one, as drops shows them; a pass around another of its own name is left out.
// Lasts as long as the capture.
std::vector<std::string_view> shown_path(const Capture& capture, PassId pass);
// "outer / inner"
std::string path_text(const Capture& capture, PassId pass);

}  // namespace kerntrail::analyse
