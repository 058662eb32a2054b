// What the witness (witness.h) knows of one registration of a kernel, in the form the capture keeps.
// Must not know: hooks.
#pragma once

#include "session.h"

namespace kerntrail::probe {

// Adds an entry to the kernel's witness: lines of its text, operations of its loop bodies, and what nodes its other
// operations (templates, extern kernels) were lowered from. Does nothing below level truth.
void collect_witness(Session& session, PendingKernel& kernel, nb::handle node_schedule);

// Who asked for each operation that the OpSpec just made by `kernel` (a SpyreKernel) stands for; `buffer` is the one it
// was made for. Empty where the kernel does not say what it is made from.
std::vector<WitnessedOp> witnessed_ops(Session& session, nb::handle kernel, nb::handle buffer);

// The witness of what stands for OpSpecs: one entry for each list. `empty` where nothing is known of any.
Observation op_spec_witness(Session& session, const std::vector<std::vector<const PendingOpSpec*>>& entries);

}  // namespace kerntrail::probe
