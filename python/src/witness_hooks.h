// Handlers of the hooks of level truth: they keep the thread's witness (witness.h) while a graph is lowered and its
// code is generated. All are light: they run for every operation and every line.
// Must not know: the capture file.
#pragma once

#include "hook.h"
#include "session.h"

namespace kerntrail::probe {

// Lowering: which node is being lowered, and what is made meanwhile.
void lower_node_before(Session& session, Call& call);
void lower_node_after(Session& session, Call& call);
// A node of a captured graph that is interpreted while another is being lowered: whether it is, and now is the one.
bool lower_inner_node(nb::handle node);
void leave_inner_node();
void ir_node_made_after(Session& session, Call& call);

// Loop bodies: `store_output` and `store_reduction` of loop nests; values that are kept as expressions until they are
// needed. Nodes of loop bodies are made and run through the hooks of fx_hooks.h, which call these.
void store_before(Session& session, Call& call);
void pop_running_after(Session& session, Call& call);
void expression_made_after(Session& session, Call& call);
void unwrap_before(Session& session, Call& call);
void note_body_node(nb::handle node);
// Says that a node of a loop body is being run, if it is one. The depth to return to; 0 where nothing was said.
std::size_t enter_body_node(nb::handle node);
void leave_body_node(std::size_t depth);

// Spyre-format back end: its recorder of bodies, and what its passes do with bodies that were recorded.
void recorded_after(Session& session, Call& call);
void again_before(Session& session, Call& call);
void with_body_after(Session& session, Call& call);
void insert_before(Session& session, Call& call);
void redirect_before(Session& session, Call& call);

// Text.
void write_line_after(Session& session, Call& call);
void splice_before(Session& session, Call& call);
void splice_after(Session& session, Call& call);
void add_buffers_after(Session& session, Call& call);
void print_buffer_after(Session& session, Call& call);
void inner_loop_after(Session& session, Call& call);
void map_buffer_after(Session& session, Call& call);
void rename_blocks_after(Session& session, Call& call);
void filter_lines_before(Session& session, Call& call);
void filter_lines_after(Session& session, Call& call);
void generate_before(Session& session, Call& call);
void generate_after(Session& session, Call& call);
void accumulator_after(Session& session, Call& call);
void finalize_before(Session& session, Call& call);
void finalize_after(Session& session, Call& call);
void combo_before(Session& session, Call& call);
void combo_after(Session& session, Call& call);
void range_index_before(Session& session, Call& call);

}  // namespace kerntrail::probe
