// The schedule after fusion: groups of operations, and what became of each operation.
// Must not know: hooks.
#pragma once

#include "session.h"

namespace kerntrail::probe {

// The scheduler's nodes after fusion, in the order in which code is generated for them, of the lowering that is being
// compiled.
void collect_schedule(Session& session, Frame& frame, nb::handle scheduler_nodes);

// Writes the snapshots of stage schedule with links "fuse" (operations -> group), and notes the operations that are
// in no group.
void write_schedules(Session& session, PendingGraph& graph);

}  // namespace kerntrail::probe
