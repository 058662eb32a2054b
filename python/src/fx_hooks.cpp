#include "fx_hooks.h"

#include "observe_fx.h"
#include "observe_passes.h"
#include "python_text.h"
#include "tracing.h"
#include "witness_hooks.h"

namespace kerntrail::probe {
namespace {

// Pushed by a light `before`: its `after` takes off down to where it was, whatever was left above.
void push(std::vector<PyObject*>& stack, nb::handle node, Call& call) {
  if (!node.is_valid()) return;
  stack.push_back(node.ptr());
  call.token = stack.size();
}

void pop(std::vector<PyObject*>& stack, const Call& call) {
  if (call.token != 0 && stack.size() >= call.token) stack.resize(call.token - 1);
}

void enter_stage_function(Session& session, Call& call, nb::handle module) {
  const nb::object graph = graph_of(module);
  if (!graph.is_valid()) return;
  const std::string_view path = call.site->name;
  enter_pass(session, call.args, graph,
             {std::string(path.substr(path.rfind('.') + 1)), {}, PassKind::kStage, LocId::kNone});
}

// "post_grad_custom_post_pass / ReluToClamp": whatever sits in a slot for passes of the caller's is named too.
std::string pass_name(nb::handle observer, nb::handle function) {
  std::string name = text(attribute(observer, "passname")).value_or("");
  if (name.find("custom") == std::string::npos || !is_valid(function)) return name;
  const std::string own = name_in_slot(function);
  return own.empty() || own == name ? name : name + " / " + own;
}

}  // namespace

TracingScope::TracingScope(Session& session, std::shared_ptr<CompileState> compile)
    : before_(std::exchange(tracing(), Tracing{})) {
  tracing().compile = std::move(compile);
  tracing().passes = &session.passes();
}

TracingScope::~TracingScope() { tracing() = std::move(before_); }

void create_node_after(Session& session, Call& call) {
  if (tracing().witness) note_body_node(call.result);
  MatchContext* match = note_creation(call.arg(0, "self"), call.result, session.options().level >= Level::kOrigins);
  if (match == nullptr) return;
  call.site->guard(*call.site, [&] { resolve_match(session, *match); });
}

void node_copy_before(Session&, Call& call) {
  if (tracing().compile) push(tracing().copied, call.arg(1, "node"), call);
}
void node_copy_after(Session&, Call& call) { pop(tracing().copied, call); }

// Nodes of loop bodies are run too: those say who asks for what is made or printed meanwhile. So are nodes of graphs
// that are lowered within another node's lowering (what a template is given to fuse).
constexpr std::size_t kBodyNode = std::size_t{1} << 32;
constexpr std::size_t kLowered = std::size_t{1} << 31;

void run_node_before(Session&, Call& call) {
  if (!tracing().compile) return;
  const nb::handle node = call.arg(1, "n");
  const std::size_t body = tracing().witness ? enter_body_node(node) : 0;
  const bool is_lowered = body == 0 && lower_inner_node(node);
  push(tracing().interpreted, node, call);
  call.token += body * kBodyNode + (is_lowered ? kLowered : 0);
}
void run_node_after(Session&, Call& call) {
  leave_body_node(call.token / kBodyNode);
  call.token %= kBodyNode;
  if ((call.token & kLowered) != 0) leave_inner_node();
  call.token %= kLowered;
  pop(tracing().interpreted, call);
}

void replace_uses_before(Session&, Call& call) { note_replacement(call.arg(0, "self"), call.arg(1, "replace_with")); }

void apply_pattern_before(Session&, Call& call) {
  Tracing& here = tracing();
  if (!here.compile) return;
  auto match = std::make_shared<MatchContext>();
  match->entry = nb::borrow(call.arg(0, "self"));
  const nb::object nodes = attribute(call.arg(1, "match"), "nodes");
  if (nodes.is_valid() && PyList_Check(nodes.ptr())) {
    for (nb::handle node : nodes) match->nodes.push_back(nb::borrow(node));
  }
  here.matches.push_back(std::move(match));
  call.token = here.matches.size();
}

void apply_pattern_after(Session&, Call& call) {
  auto& matches = tracing().matches;
  if (call.token != 0 && matches.size() >= call.token) matches.resize(call.token - 1);
}

// What an observer applies says where the pass is defined; it is entered next.
void apply_pass_before(Session&, Call& call) { tracing().pass_function = call.arg(1, "pass_fn"); }

void observer_enter_before(Session& session, Call& call) {
  const nb::handle self = call.arg(0, "self");
  const nb::object graph = graph_of(attribute(self, "gm"));
  const nb::handle function = std::exchange(tracing().pass_function, nb::handle());
  if (!graph.is_valid() || !session.current_frame()) return;
  const nb::object subsystem = attribute(self, "subsystem");
  enter_pass(session, self, graph,
             {pass_name(self, function), is_valid(subsystem) ? text(subsystem).value_or("") : "", PassKind::kPass,
              definition_of(session, function)});
}

void observer_exit_after(Session& session, Call& call) {
  const nb::handle self = call.arg(0, "self");
  leave_pass(session, self, graph_of(attribute(self, "gm")));
}

void stage_function_before(Session& session, Call& call) { enter_stage_function(session, call, call.arg(0, "gm")); }
void stage_function_after(Session& session, Call& call) {
  leave_pass(session, call.args, graph_of(is_valid(call.result) ? call.result : call.arg(0, "gm")));
}
void second_stage_function_before(Session& session, Call& call) {
  enter_stage_function(session, call, call.arg(1, "gm"));
}
void second_stage_function_after(Session& session, Call& call) {
  leave_pass(session, call.args, graph_of(call.arg(1, "gm")));
}

}  // namespace kerntrail::probe
