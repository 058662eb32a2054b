// How a sidecar takes in another compile, or the same compile seen again. Nothing is replaced: what both have must be
// equal or one part of the other.
// Must not know: files.
#pragma once

#include "spyre/sidecar.h"

namespace kerntrail::spyre {

// Equal records stay; registrations are united. Of a compile that both have: the join that is worth more wins and the
// other must be part of it; equal ones are united. Settings take the stronger, uncollected kernels are united, a
// failure stays. The generation grows by one where something changed. kReference, with the place, where both contradict
// each other or the result breaks a rule.
Expected<Sidecar> merge_sidecars(const Sidecar& existing, const Sidecar& addition);

}  // namespace kerntrail::spyre
