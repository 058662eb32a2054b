// Kernels: defined, registered with the compiler's provenance, called by the generated wrapper. Collected while code
// is generated, compared and written when the compile's code is done.
// Must not know: hooks.
#pragma once

#include <string_view>

#include "session.h"

namespace kerntrail::probe {

PendingGraph& pending_graph(Frame& frame);
// The lowering whose code is being generated: torch's V.graph.
nb::object current_lowering();

// The wrapper is given the text of a kernel.
void collect_definition(Session& session, Frame& frame, std::string_view name, std::string_view source);

// A back end defined a kernel for these scheduled nodes; the wrapper may have been told already.
void collect_kernel(Session& session, Frame& frame, std::string_view name, nb::handle node_schedule);

// What the compiler itself prints above a kernel of these nodes: kept for the registration that follows.
void collect_comment(Frame& frame, nb::handle node_schedule, nb::handle comments);

// A kernel is registered with the nodes it was made from (scheduler nodes or one extern IR node), once for each call
// that is generated. Extern kernels share names, so that each of theirs is one kernel. `debug_handle` is what torch
// numbered it with: None at provenance level 0.
void collect_registration(Session& session, Frame& frame, std::string_view name, nb::handle node_schedule,
                          bool is_extern, nb::handle debug_handle);

// An extern operation was turned into code without being registered: a kernel, if the wrapper turns out to call it.
void collect_unregistered(Session& session, Frame& frame, nb::handle scheduler_node);

// Where a kernel's bundle was written.
void collect_directory(Session& session, Frame& frame, std::string_view kernel, std::string_view directory);

// The text of the module that calls the kernels, and as it was written in the end (lines may have been put above).
void collect_wrapper(Frame& frame, std::string_view text, std::string_view written);

// Writes the snapshots of schedule, op_spec, superdsc and kernel for one lowering, with calls, links and claims.
void write_pending(Session& session, Frame& frame);

// The compiler's line that is running: not one of a generated module, whose path differs from run to run.
LocId line_here(Session& session);

}  // namespace kerntrail::probe
