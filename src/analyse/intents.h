// Which pass does what on purpose: the built-in table and the caller's own, looked up by pass.
// Must not know: how intents are judged against observations.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kerntrail/drops.h"

namespace kerntrail::analyse {

class IntentTable {
 public:
  IntentTable(const Capture& capture, const std::vector<Intent>& callers);

  const std::vector<Intent>& all() const { return intents_; }
  // Index of the intent of that kind that covers the unit, or kNoIndex. Empty pattern, target or field: not asked.
  std::uint32_t find(IntentKind kind, PassId pass, std::string_view pattern, std::string_view target,
                     std::string_view field) const;
  // The same where no pass of the compile was recorded: the first that would cover the unit, had its pass run.
  std::uint32_t perhaps(IntentKind kind, CompileId compile, std::string_view target, std::string_view field) const;

 private:
  const Capture& capture_;
  std::vector<Intent> intents_;
  std::vector<std::vector<std::uint32_t>> of_pass_;  // by PassId
};

}  // namespace kerntrail::analyse
