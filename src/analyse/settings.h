// What a run or a compile was set to.
// Must not know: which settings there are.
#pragma once

#include <string_view>

#include "kerntrail/capture.h"

namespace kerntrail::analyse {

// Empty where it was not recorded. Lasts as long as `settings`.
inline std::string_view setting(const Settings& settings, std::string_view key) {
  for (const auto& [name, value] : settings) {
    if (name == key) return value;
  }
  return {};
}

}  // namespace kerntrail::analyse
