// What a sidecar must hold beyond its form: no reference leads nowhere, ids are what they are computed from, both
// directions of a mapping agree, counts and status are true.
// Must not know: JSON.
#pragma once

#include <optional>
#include <string>

#include "spyre/sidecar.h"

namespace kerntrail::spyre {

struct SidecarMisfit {
  std::string place;  // "kernelIdentities.<key>.atenOps"
  std::string problem;
  bool too_large = false;  // not wrong but beyond what is walked
};

// The first rule that does not hold. A writer also holds event names against the operations they are made from; a
// reader takes any that lead to the same key.
enum class RuleSet : std::uint8_t { kReader, kWriter };
std::optional<SidecarMisfit> misfit_of(const Sidecar& sidecar, RuleSet rules = RuleSet::kReader);

// The ids of `start` and of all they are fused from, depth first, each once. Ids that lead nowhere are left out.
Names reachable_handles(const Sidecar& sidecar, const Names& start);

}  // namespace kerntrail::spyre
