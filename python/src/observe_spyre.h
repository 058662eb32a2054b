// OpSpecs and the files of a bundle, of Spyre-format back ends.
// Must not know: hooks.
#pragma once

#include <string_view>

#include "session.h"

namespace kerntrail::probe {

// The result of SpyreKernel.create_op_spec for `buffer` (an IR operation): its fields, its handle, and what the
// buffer said of its sources at that moment. `kernel`: the object it was made by.
void collect_op_spec(Session& session, Frame& frame, nb::handle op_spec, nb::handle buffer, nb::handle kernel);
// The OpSpecs that `kernel` has made so far are those of the kernel of that name.
void give_op_specs(Frame& frame, std::string_view name, nb::handle kernel);

// The same OpSpecs as objects of the executed wrapper.
void collect_reread(Session& session, Frame& frame, std::string_view name, nb::handle op_specs);

// Writes the snapshots of op_spec and superdsc of one lowering, and the links from kernels to their files.
void write_op_specs(Session& session, PendingGraph& pending_graph);
void write_bundles(Session& session, const Frame& frame, const PendingGraph& pending_graph);

}  // namespace kerntrail::probe
