// Handlers of the hooks that follow FX nodes through passes, patterns, copies and interpreters. The hook table
// (probe.cpp) says where they sit.
// Must not know: how a value is read, the capture file.
#pragma once

#include <string_view>

#include "hook.h"
#include "session.h"
#include "tracing.h"

namespace kerntrail::probe {

// Light: they run for every node the compiler makes.
void create_node_after(Session& session, Call& call);
void node_copy_before(Session& session, Call& call);
void node_copy_after(Session& session, Call& call);
void run_node_before(Session& session, Call& call);
void run_node_after(Session& session, Call& call);
void replace_uses_before(Session& session, Call& call);
void apply_pattern_before(Session& session, Call& call);
void apply_pattern_after(Session& session, Call& call);
void apply_pass_before(Session& session, Call& call);

// GraphTransformObserver.
void observer_enter_before(Session& session, Call& call);
void observer_exit_after(Session& session, Call& call);

// The compiler's own functions around passes: the first argument holds the graph.
void stage_function_before(Session& session, Call& call);
void stage_function_after(Session& session, Call& call);
// The same for a function whose graph is its second argument.
void second_stage_function_before(Session& session, Call& call);
void second_stage_function_after(Session& session, Call& call);

// Makes `compile` the one that this thread's nodes are made in, until the scope ends. What a hook that failed left on
// the thread's stacks goes with it.
class TracingScope {
 public:
  TracingScope(Session& session, std::shared_ptr<CompileState> compile);
  ~TracingScope();
  TracingScope(const TracingScope&) = delete;
  TracingScope& operator=(const TracingScope&) = delete;

 private:
  Tracing before_;
};

}  // namespace kerntrail::probe
