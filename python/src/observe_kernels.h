// Kernels, OpSpecs and the files of a bundle: collected while code is generated, written as snapshots when the
// compile's code is done.
// Must not know: hooks.
#pragma once

#include <string_view>

#include "session.h"

namespace kerntrail::probe {

// The result of SpyreKernel.create_op_spec for `buffer` (an IR operation): its fields, its handle, and what the
// buffer said of its sources at that moment.
void collect_op_spec(Session& session, Frame& frame, nb::handle op_spec, nb::handle buffer);

// A kernel with the scheduled nodes it was made from (scheduler nodes or one extern IR node). A second sighting of
// the same name in the same lowering adds its nodes; extern kernels share names, so that each sighting is one kernel.
void collect_kernel(Session& session, Frame& frame, std::string_view name, nb::handle node_schedule, bool is_extern);

// Where a kernel's bundle was written.
void collect_directory(Session& session, Frame& frame, std::string_view kernel, std::string_view directory);

// Writes the snapshots of op_spec, superdsc and kernel for one lowering, with links and claims.
void write_pending(Session& session, Frame& frame);

}  // namespace kerntrail::probe
