// What the witness (witness.h) knows of one registration of a kernel, in the form the capture keeps.
// Must not know: hooks.
#pragma once

#include "session.h"

namespace kerntrail::probe {

// Adds an entry to the kernel's witness: lines of its text, operations of its loop bodies, and what nodes its other
// operations (templates, extern kernels) were lowered from. Does nothing below level truth.
void collect_witness(Session& session, PendingKernel& kernel, nb::handle node_schedule);

}  // namespace kerntrail::probe
