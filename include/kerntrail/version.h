// The version of this build, from the one place that knows it (the top CMakeLists.txt).
// Must not know: anything else.
#pragma once

#include <string_view>

namespace kerntrail {

// "0.1.0"
std::string_view version();

}  // namespace kerntrail
