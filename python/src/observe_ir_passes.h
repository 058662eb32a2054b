// Passes over the operations of a lowering, watched from outside: the observer that a Spyre-format back end puts around
// each pass shows its borders, the function through which every forwarding of provenance goes shows what a pass
// declares, the creation of buffers shows the line that made one.
// A pass is compared by object; a new object under a known name is a new unit that replaced the old one.
// Must not know: which attributes these hooks sit on, FX passes.
#pragma once

#include <string_view>

#include "session.h"

namespace kerntrail::probe {

struct IrPasses;  // what is known of the lowerings of one compile; kept in its CompileState

// A stage border of a pre-scheduling pipeline: the snapshot, and what changed since the last look as a gap (not at
// level `borders`).
void snapshot_pipeline(Session& session, Frame& frame, nb::handle lowering, StageId stage, std::string_view key);

// Observers. `self` of the pass observer has target, pass_name and kind; other kinds than "graphlowering" are left
// alone.
void ir_pass_enter_before(Session& session, Call& call);
void ir_pass_exit_after(Session& session, Call& call);
// (carriers, new, transform): a pass declares that `new` has its provenance from `carriers`.
void forwarded_after(Session& session, Call& call);
// (self): a buffer is being made.
void buffer_made_before(Session& session, Call& call);

}  // namespace kerntrail::probe
