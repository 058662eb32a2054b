// Kernels of one lowering as they are written: their calls found in the wrapper, what was defined, called and
// registered compared, their groups linked.
// Must not know: hooks, Python objects.
#pragma once

#include "session.h"

namespace kerntrail::probe {

// The snapshot of stage kernel with links, claims, calls and notes. Takes what it needs out of `graph`.
void write_kernels(Session& session, const Frame& frame, PendingGraph& graph);

}  // namespace kerntrail::probe
