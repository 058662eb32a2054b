#include "probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "fx_hooks.h"
#include "observe_fx.h"
#include "observe_ir.h"
#include "observe_ir_passes.h"
#include "observe_kernels.h"
#include "observe_passes.h"
#include "observe_schedule.h"
#include "observe_spyre.h"
#include "python_text.h"
#include "witness.h"
#include "witness_hooks.h"

namespace kerntrail::probe {
namespace {

constexpr const char* kPostGrad = "torch._inductor.compile_fx._recursive_post_grad_passes";
constexpr const char* kPreGrad = "torch._inductor.compile_fx._recursive_pre_grad_passes";

// ---- compiles and frames ------------------------------------------------------------------------------------------

std::int64_t counter(const char* group, const char* name) {
  const nb::handle utils = dict_item(PyImport_GetModuleDict(), "torch._dynamo.utils");
  const nb::object counters = attribute(utils, "counters");
  return integer(dict_item(dict_item(counters, group), name), 0);
}

std::int64_t cache_hits() {
  return counter("inductor", "fxgraph_cache_hit") + counter("aot_autograd", "autograd_cache_hit");
}

// torch's compile id and attempt, where a compile context is active.
void read_compile_context(Compile& compile) {
  const nb::handle guards = dict_item(PyImport_GetModuleDict(), "torch._guards");
  const nb::object context = call_method(attribute(guards, "CompileContext"), "try_get");
  if (!is_valid(context)) return;
  const nb::object id = attribute(context, "compile_id");
  if (is_valid(id)) compile.torch_id = text(id).value_or("");
  compile.attempt = integer(attribute(context, "attempt"), 0);
}

// Out-of-tree back ends hand compile_fx an inner_compile of their own: its module names them.
std::string backend_name(nb::handle inner_compile) {
  const std::string module = text(attribute(inner_compile, "__module__")).value_or("");
  if (module.empty() || module.starts_with("torch.") || module == "torch" || module == "functools") return "inductor";
  if (module.starts_with("kerntrail.spyre")) return "kerntrail_spyre";
  return module.substr(0, module.find('.'));
}

// Options that a back end states on its pass objects, e.g. the metadata rule.
void read_pass_options(nb::handle config_patches, Compile& compile) {
  if (!config_patches.is_valid() || !PyDict_Check(config_patches.ptr())) return;
  PyObject *k, *v;
  for (Py_ssize_t pos = 0; PyDict_Next(config_patches.ptr(), &pos, &k, &v);) {
    const nb::object rule = attribute(v, "metadata");
    if (rule.is_valid() && PyUnicode_Check(rule.ptr()))
      compile.attributes.emplace_back("metadata", text(rule).value_or(""));
  }
}

// What lasts as long as one hooked call: its frame is taken off whatever becomes of the observers.
struct FrameScope {
  std::shared_ptr<Session> session;
  std::shared_ptr<CompileState> compile;
  std::size_t depth;          // of the frame it put on
  bool owns_compile = false;  // the call of compile_fx itself
  std::int64_t hits_before = 0;
  TracingScope tracing;

  FrameScope(Session& s, std::shared_ptr<CompileState> c, std::size_t d)
      : session(s.shared_from_this()), compile(std::move(c)), depth(d), tracing(s, compile) {}
  FrameScope(const FrameScope&) = delete;
  FrameScope& operator=(const FrameScope&) = delete;
  // Runs between the original's return and the caller: an exception of the original is pending and must stay.
  ~FrameScope() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (session->is_open()) take_off();
    probe::tracing().matches.clear();  // objects are let go of while no exception is pending
    probe::tracing().witness.reset();
    if (owns_compile) {
      compile->release();
      session->forget_if_done(*compile);
    }
    PyErr_Restore(type, value, trace);
  }

 private:
  void take_off() {
    auto& frames = session->frames();
    if (frames.size() >= depth) {
      try {
        write_pending(*session, frames[depth - 1]);
      } catch (...) {  // what could not be written is missing; the hook's error count says so
        clear_error();
      }
      frames.resize(depth - 1);
    }
    if (owns_compile) finish(*compile);
    if (!frames.empty() && frames.back().implicit) {  // begun by a stage: its code is done, nobody else ends it
      finish(*frames.back().compile);
      frames.back().compile->release();
      frames.pop_back();
    }
  }

  void finish(CompileState& state) {
    for (const auto& [why, n] : state.referred_only) {
      session->note("seen-only-as", Severity::kInfo, fmt::format("{} ({} of them)", why, n), state.id);
    }
    state.referred_only.clear();
    session->recorder().close_compile(state.id);
  }
};

std::shared_ptr<FrameScope> push_frame(Session& session, std::shared_ptr<CompileState> compile, std::string direction) {
  auto& frames = session.frames();
  frames.push_back({compile, std::move(direction), false, nullptr});
  return std::make_shared<FrameScope>(session, std::move(compile), frames.size());
}

void compile_fx_before(Session& session, Call& call) {
  Frame* outer = session.current_frame();
  if (outer && !outer->implicit && !outer->compile->code_seen)
    return;  // compile_fx calls itself once more to apply config patches
  Compile compile;
  read_compile_context(compile);
  const nb::handle inner = call.arg(2, "inner_compile");
  compile.backend = inner.is_valid() ? backend_name(inner) : "inductor";
  read_pass_options(call.arg(3, "config_patches"), compile);
  if (!session.pending_notes().empty()) compile.attributes.emplace_back("requested_backend", "kerntrail_spyre");
  auto state = session.begin_compile(compile);
  for (Note& note : session.pending_notes()) {
    note.compile = state->id;
    session.recorder().note(note);
  }
  session.pending_notes().clear();
  auto scope = push_frame(session, state, "none");
  scope->owns_compile = true;
  scope->hits_before = cache_hits();
  call.state = std::move(scope);
}

bool border_works(Session& session, std::string_view label) {
  for (const auto& site : session.sites()) {
    if (site->record.label == label) return site->active;
  }
  return false;
}

// Why a call of the backend ended without code being generated in this process.
std::string why_not_observed(bool cache_hit) {
  if (cache_hit)
    return "not observed: cache hit; run with caches disabled to see the stages (record does so by default)";
  const nb::handle compile_fx = dict_item(PyImport_GetModuleDict(), "torch._inductor.compile_fx");
  const std::string mode = text(attribute(attribute(compile_fx, "fx_compile_mode"), "name")).value_or("NORMAL");
  if (mode == "SUBPROCESS")
    return "not observed: compiled in another process (fx_compile_mode SUBPROCESS); stages after the joint graph are "
           "to be seen with fx_compile_mode NORMAL only";
  return "not observed: no code was generated in this process for this graph (an empty graph, or a backend that "
         "generates none)";
}

void compile_fx_after(Session& session, Call& call) {
  if (!call.state) return;
  const auto& scope = *std::static_pointer_cast<FrameScope>(call.state);
  const CompileId id = scope.compile->id;
  if (call.raised) {
    const std::string first = call.error.substr(0, call.error.find('\n'));
    return session.note("compile-raised", Severity::kWarning, base::without_addresses(first), id);
  }
  if (scope.compile->code_seen) {
    if (!scope.compile->pre_grad_seen && !session.is_partial() && border_works(session, kPreGrad))
      session.note("not-observed", Severity::kInfo,
                   "not observed: stage fx_pre_grad; torch runs no pre-grad passes on a graph whose inputs are nested, as "
                   "those of compiled autograd are",
                   id);
    return;
  }
  session.note("not-observed", Severity::kWarning, why_not_observed(cache_hits() > scope.hits_before), id);
}

std::string direction_of(nb::handle graph_kwargs) {
  if (integer(dict_item(graph_kwargs, "is_backward"), 0) != 0) return "backward";
  return integer(dict_item(graph_kwargs, "is_inference"), 0) != 0 ? "inference" : "forward";
}

void codegen_before(Session& session, Call& call) {
  const nb::handle kwargs = call.arg(4, "graph_kwargs");
  const std::int64_t aot_id = integer(dict_item(kwargs, "graph_id"), -1);
  const std::string direction = direction_of(kwargs);
  Frame* frame = session.current_frame();
  // An implicit frame may be left from another graph: what the graph's own id says comes first then.
  std::shared_ptr<CompileState> compile =
      frame && !frame->implicit ? frame->compile : session.compile_of_graph_id(aot_id);
  if (!compile && frame) compile = frame->compile;
  bool owns = false;
  if (!compile) {  // compiled by a call that began before the capture
    Compile late;
    read_compile_context(late);
    late.backend = "inductor";
    late.attributes.emplace_back("entry", "not seen");
    compile = session.begin_compile(late);
    owns = true;
  }
  if (!frame && direction == "backward") owns = true;  // a lazy backward: its objects go when its code is done
  compile->code_seen = true;
  (direction == "backward"  ? compile->backward_seen
   : direction == "forward" ? compile->forward_seen
                            : compile->code_seen) = true;
  if (aot_id >= 0) session.remember_graph_id(aot_id, compile);
  auto scope = push_frame(session, compile, direction);
  scope->owns_compile = owns;
  call.state = std::move(scope);
}

void codegen_after(Session& session, Call&) {
  if (Frame* frame = session.current_frame()) write_pending(session, *frame);
}

// ---- FX stages ----------------------------------------------------------------------------------------------------

// Where the hook on compile_fx is missing or failed, the pre-grad stage of a root graph begins its compile.
Frame& enter_compile(Session& session, bool is_root) {
  auto& frames = session.frames();
  const bool implicit = frames.size() == 1 && frames.back().implicit;
  if (!frames.empty() && !(implicit && is_root)) return frames.back();
  Compile compile;
  read_compile_context(compile);
  compile.backend = "inductor";
  compile.attributes.emplace_back("entry", "not seen");
  if (implicit) frames.back().compile->release();
  frames.clear();
  frames.push_back({session.begin_compile(compile), "none", true, nullptr});
  return frames.back();
}

thread_local std::vector<std::pair<nb::handle, std::string>> stage_parents;  // modules being walked, outermost first

std::string stage_path(nb::handle module) {
  if (stage_parents.empty()) return {};
  const auto& [parent, path] = stage_parents.back();
  const std::string name = submodule_name(parent, module);
  return path.empty() ? name : path + "." + name;
}

struct StageScope {
  std::string path;
  nb::object module;

  explicit StageScope(nb::handle m) : path(stage_path(m)), module(nb::borrow(m)) {
    stage_parents.emplace_back(m, path);
  }
  ~StageScope() { stage_parents.pop_back(); }
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;
};

void pre_grad_before(Session& session, Call& call) {
  const nb::handle module = call.arg(0, "gm");
  const nb::object graph = graph_of(module);
  if (!graph.is_valid()) return;
  Frame& frame = enter_compile(session, stage_parents.empty());
  auto scope = std::make_shared<StageScope>(module);
  call.state = scope;
  frame.compile->pre_grad_seen = true;
  look_at_border(session, frame, graph, session.tables().stage.fx_pre_grad, "none", scope->path);
  remember_names(session, *frame.compile, graph);
  enter_pass(session, call.args, graph, {"pre_grad_passes", {}, PassKind::kStage, LocId::kNone});
}

void pre_grad_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  if (!frame || call.raised) return;
  // The graph that AOT traces is the one that comes out; surviving nodes keep their units.
  const nb::object graph = graph_of(is_valid(call.result) ? call.result : call.arg(0, "gm"));
  if (!graph.is_valid()) return;
  leave_pass(session, call.args, graph);
  remember_names(session, *frame->compile, graph);
}

// In training the partitioner runs the joint passes; in inference the graph is not shared with a backward.
thread_local int partitioning = 0;

struct PartitionScope {
  PartitionScope() { ++partitioning; }
  ~PartitionScope() { --partitioning; }
  PartitionScope(const PartitionScope&) = delete;
  PartitionScope& operator=(const PartitionScope&) = delete;
};

void partition_before(Session&, Call& call) { call.state = std::make_shared<PartitionScope>(); }

void partition_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  const nb::handle modules = call.result;  // (forward, backward)
  if (frame == nullptr || call.raised || session.options().level == Level::kBorders || !PyTuple_Check(modules.ptr()) ||
      PyTuple_GET_SIZE(modules.ptr()) < 2)
    return;
  frame->compile->backward.clear();  // an earlier one was of a region nested in this graph
  remember_backward(*frame->compile, PyTuple_GET_ITEM(modules.ptr(), 1), "");
}

void joint_before(Session& session, Call& call) {
  const nb::handle module = call.arg(0, "gm");
  const nb::object graph = graph_of(module);
  Frame* frame = session.current_frame();
  if (!graph.is_valid() || !frame) return;
  auto scope = std::make_shared<StageScope>(module);
  call.state = scope;
  look_at_border(session, *frame, graph, session.tables().stage.fx_joint, partitioning > 0 ? "joint" : "inference",
                 scope->path);
  enter_pass(session, call.args, graph, {"joint_graph_passes", {}, PassKind::kStage, LocId::kNone});
}

void joint_after(Session& session, Call& call) {
  if (call.raised) return;
  leave_pass(session, call.args, graph_of(is_valid(call.result) ? call.result : call.arg(0, "gm")));
}

void post_grad_before(Session& session, Call& call) {
  const nb::handle module = call.arg(0, "gm");
  const nb::object graph = graph_of(module);
  Frame* frame = session.current_frame();
  if (!graph.is_valid() || !frame) return;
  auto scope = std::make_shared<StageScope>(module);
  call.state = scope;
  look_at_border(session, *frame, graph, session.tables().stage.fx_aten, frame->direction, scope->path);
  enter_pass(session, call.args, graph, {"post_grad_passes", {}, PassKind::kStage, LocId::kNone});
}

void post_grad_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  const nb::object graph = graph_of(call.arg(0, "gm"));
  if (!frame || call.raised || !graph.is_valid()) return;
  const std::string path = call.state ? std::static_pointer_cast<StageScope>(call.state)->path : std::string();
  leave_pass(session, call.args, graph);
  look_at_border(session, *frame, graph, session.tables().stage.fx_post_grad, frame->direction, path);
  if (stage_parents.size() <= 1) tracing().quiet = true;  // of the outermost graph: what follows is its lowering
}

// The back end's own FX hooks stand in where the generic border could not be installed.
void custom_pre_grad_before(Session& session, Call& call) {
  const nb::object graph = graph_of(call.arg(1, "graph"));
  Frame* frame = session.current_frame();
  if (!frame || !graph.is_valid() || border_works(session, kPreGrad)) return;
  look_at_border(session, *frame, graph, session.tables().stage.fx_pre_grad, "none", "");
  remember_names(session, *frame->compile, graph);
}

void custom_post_before(Session& session, Call& call) {
  const nb::object graph = graph_of(call.arg(1, "graph"));
  Frame* frame = session.current_frame();
  if (!frame || !graph.is_valid() || border_works(session, kPostGrad)) return;
  look_at_border(session, *frame, graph, session.tables().stage.fx_post_grad, frame->direction, "");
}

// ---- IR, OpSpecs, kernels -----------------------------------------------------------------------------------------

void pre_scheduling_before(Session& session, Call& call) {
  if (Frame* frame = session.current_frame()) {
    snapshot_pipeline(session, *frame, call.arg(1, "graph"), session.tables().stage.ir_pre_pass, "ir_pre_pass");
  }
}

void pre_scheduling_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  if (frame && !call.raised) {
    snapshot_pipeline(session, *frame, call.arg(1, "graph"), session.tables().stage.ir_post_pass, "ir_post_pass");
  }
}

void scheduler_before(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  const nb::handle lowering = call.arg(0, "self");
  // A lowering that a pre-scheduling pipeline has shown is shown already; torch makes the scheduler twice for
  // cpp_wrapper.
  if (!frame || frame->compile->graphs.contains(lowering.ptr())) return;
  snapshot_operations(session, *frame->compile, lowering, session.tables().stage.ir_pre_pass, frame->direction);
}

void create_op_spec_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  if (!frame || call.raised) return;
  const nb::object node = attribute(call.arg(0, "self"), "current_node");
  collect_op_spec(session, *frame, call.result, attribute(node, "node"), call.arg(0, "self"));
}

void define_kernel_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  if (!frame || call.raised) return;
  const auto name = text(call.result);
  if (!name) return;
  collect_kernel(session, *frame, *name, call.arg(2, "node_schedule"));
  give_op_specs(*frame, *name, call.arg(3, "kernel"));
}

void output_dir_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  const auto kernel = text(call.arg(0, "kernel_name"));
  const auto directory = text(call.result);
  if (frame && !call.raised && kernel && directory) collect_directory(session, *frame, *kernel, *directory);
}

// OpSpecs that are objects again after the wrapper's text was executed.
void op_specs_read_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  const auto kernel = text(call.arg(0, "kernel_name"));
  if (frame && !call.raised && kernel) collect_reread(session, *frame, *kernel, call.result);
}

// A wrapper that embeds constructor calls hands the objects over itself.
void sdsc_before(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  const auto kernel = text(call.arg(1, "kernel_name"));
  const nb::handle specs = call.arg(2, "op_specs");
  if (frame && kernel && PyList_Check(specs.ptr())) collect_reread(session, *frame, *kernel, specs);
}

// Seen before the call: where it raises, the compile is over.
void wrapper_define_before(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  const auto name = text(call.arg(1, "kernel_name"));
  const auto source = str_view(call.arg(2, "kernel_body"));
  if (frame && name) collect_definition(session, *frame, *name, source.value_or(std::string_view()));
}

void comment_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  if (frame && !call.raised) collect_comment(*frame, call.arg(0, "node_schedule"), call.result);
}

void set_provenance_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  const auto name = text(call.arg(1, "kernel_name"));
  const nb::handle is_extern = call.arg(2, "is_extern");
  if (frame && name && !call.raised)
    collect_registration(session, *frame, *name, call.arg(0, "node_schedule"),
                         is_extern.is_valid() && is_extern.ptr() == Py_True, call.result);
}

void extern_call_before(Session& session, Call& call) {
  if (Frame* frame = session.current_frame())
    call.state = std::make_shared<std::size_t>(pending_graph(*frame).registered);
}

void extern_call_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  if (!frame || call.raised || !call.state) return;
  if (*std::static_pointer_cast<std::size_t>(call.state) != pending_graph(*frame).registered) return;
  collect_unregistered(session, *frame, call.arg(1, "scheduler_node"));
}

void post_fusion_before(Session& session, Call& call) {
  if (Frame* frame = session.current_frame()) collect_schedule(session, *frame, call.arg(0, "nodes"));
}

void module_lines_before(Session&, Call& call) {
  const nb::object value = attribute(call.arg(1, "wrapper_code"), "value");
  if (const auto text = str_view(value)) call.state = std::make_shared<std::string>(*text);
}

void module_lines_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  if (!frame || !call.state) return;
  const nb::object value = attribute(call.arg(1, "wrapper_code"), "value");
  const auto& text = *std::static_pointer_cast<std::string>(call.state);
  collect_wrapper(*frame, text, str_view(value).value_or(text));
}

void fall_back_before(Session& session, Call& call) {
  const nb::handle reasons = call.arg(0, "reasons");
  if (!is_valid(reasons)) return;
  for (nb::handle reason : reasons) {
    const std::string code = text(attribute(reason, "code")).value_or("?");
    const std::string message = text(attribute(reason, "message")).value_or("?");
    const nb::object node = attribute(reason, "node");
    Note note;
    note.code = "fallback-stock";
    note.severity = Severity::kWarning;
    note.text = is_valid(node) ? fmt::format("{}: {} (node {})", code, message, text(node).value_or("?"))
                               : fmt::format("{}: {}", code, message);
    session.pending_notes().push_back(std::move(note));
  }
}

// ---- the table ----------------------------------------------------------------------------------------------------

using Handler = void (*)(Session&, Call&);

struct Row {
  const char* label;    // nullptr: the attribute path
  const char* modules;  // candidates, first that imports wins, separated by spaces; "spyre:" rows are back-end seams
  const char* path;     // inside the module
  Handler before;
  Handler after;
  const char* lost;
  Level level = Level::kBorders;  // the lowest at which it is put in place
  bool light = false;
};

#define KERNTRAIL_SPYRE_MODULES(torch_spyre, ours) "torch_spyre." torch_spyre " kerntrail.spyre." ours

constexpr Row kTable[] = {
    {nullptr, "torch._inductor.compile_fx", "compile_fx", compile_fx_before, compile_fx_after,
     "where compiles begin and end, and which were served from a cache"},
    {nullptr, "torch._inductor.compile_fx", "_recursive_pre_grad_passes", pre_grad_before, pre_grad_after,
     "stage fx_pre_grad"},
    {nullptr, "torch._inductor.compile_fx", "_InProcessFxCompile.codegen_and_compile", codegen_before, codegen_after,
     "direction of graphs, and to which compile a lazy backward belongs"},
    {nullptr, "torch._inductor.compile_fx", "_recursive_joint_graph_passes", joint_before, joint_after,
     "stage fx_joint"},
    {nullptr, "torch._inductor.compile_fx", "partition_fn", partition_before, partition_after,
     "which joint graphs hold a backward, and what the nodes of a lazy backward are copies of"},
    {nullptr, "torch._inductor.compile_fx", "_recursive_post_grad_passes", post_grad_before, post_grad_after,
     "stages fx_aten and fx_post_grad"},
    {nullptr, "torch._inductor.graph", "GraphLowering._update_scheduler", scheduler_before, nullptr,
     "stage ir_pre_pass of stock back ends"},
    {nullptr, "torch._inductor.debug", "log_ir_post_fusion", post_fusion_before, nullptr, "stage schedule"},
    // Three modules hold this function by name; each call goes through exactly one of them.
    {nullptr, "torch._inductor.debug", "set_kernel_post_grad_provenance_tracing", nullptr, set_provenance_after,
     "extern kernels"},
    {nullptr, "torch._inductor.codegen.cpp", "set_kernel_post_grad_provenance_tracing", nullptr, set_provenance_after,
     "C++ kernels"},
    {nullptr, "torch._inductor.codegen.triton", "set_kernel_post_grad_provenance_tracing", nullptr,
     set_provenance_after, "Triton kernels"},
    // Their comments, where the compiler makes one: it makes none for C++ kernels.
    {nullptr, "torch._inductor.ir", "get_kernel_metadata", nullptr, comment_after, "comments of extern kernels"},
    {nullptr, "torch._inductor.codegen.triton", "get_kernel_metadata", nullptr, comment_after,
     "comments of Triton kernels"},
    {nullptr, "torch._inductor.codegen.wrapper", "PythonWrapperCodegen.define_kernel", wrapper_define_before, nullptr,
     "source text of kernels"},
    {nullptr, "torch._inductor.scheduler", "Scheduler.codegen_extern_call", extern_call_before, extern_call_after,
     "operations of extern kernels that are not registered"},
    {nullptr, "torch._inductor.graph", "GraphLowering._compile_to_module_lines", module_lines_before,
     module_lines_after, "calls of kernels"},
    {"stage2_pre_grad", KERNTRAIL_SPYRE_MODULES("_inductor.passes", "passes"), "CustomPreGradPasses.__call__",
     custom_pre_grad_before, nullptr, ""},
    {"stage2_post_grad", KERNTRAIL_SPYRE_MODULES("_inductor.passes", "passes"), "CustomPostPasses.__call__",
     custom_post_before, nullptr, ""},
    {"stage3_looplevel_prepass", KERNTRAIL_SPYRE_MODULES("_inductor.passes", "passes"),
     "CustomPreSchedulingPasses.__call__", pre_scheduling_before, pre_scheduling_after,
     "stages ir_pre_pass and ir_post_pass of Spyre-format back ends"},
    {"pre_scheduling_pass_begin", KERNTRAIL_SPYRE_MODULES("_inductor.provenance", "provenance"),
     "SpyreGraphTransformObserver.__enter__", ir_pass_enter_before, nullptr,
     "pre-scheduling passes one by one", Level::kPasses},
    {"pre_scheduling_pass_end", KERNTRAIL_SPYRE_MODULES("_inductor.provenance", "provenance"),
     "SpyreGraphTransformObserver.__exit__", nullptr, ir_pass_exit_after, "what each pre-scheduling pass did", Level::kPasses},
    {"provenance_forwarded", KERNTRAIL_SPYRE_MODULES("_inductor.provenance", "provenance"), "_append_transform",
     nullptr, forwarded_after, "which buffers a pre-scheduling pass declares to come from which", Level::kPasses},
    {nullptr, "torch._inductor.ir", "Buffer.__post_init__", buffer_made_before, nullptr,
     "the line of a pre-scheduling pass that makes a buffer", Level::kPasses},
    {"stage5_opspec", KERNTRAIL_SPYRE_MODULES("_inductor.spyre_kernel", "spyre_kernel"), "SpyreKernel.create_op_spec",
     nullptr, create_op_spec_after, "stage op_spec"},
    {"stage6_define_kernel", KERNTRAIL_SPYRE_MODULES("_inductor.scheduler", "scheduling"),
     "SuperDSCScheduling.define_kernel", nullptr, define_kernel_after, "kernels of Spyre-format back ends"},
    {"stage6_output_dir", KERNTRAIL_SPYRE_MODULES("execution.async_compile", "async_compile"), "get_output_dir",
     nullptr, output_dir_after, "stage superdsc"},
    {"op_specs_read", "kerntrail.spyre.async_compile", "read_op_specs", nullptr, op_specs_read_after,
     "OpSpecs as the executed wrapper holds them", Level::kPasses},
    {"op_specs_executed", KERNTRAIL_SPYRE_MODULES("execution.async_compile", "async_compile"), "SpyreAsyncCompile.sdsc",
     sdsc_before, nullptr, "OpSpecs as the executed wrapper holds them", Level::kPasses},
    {nullptr, "torch.fx.passes.graph_transform_observer", "GraphTransformObserver.__enter__", observer_enter_before,
     nullptr, "where passes begin", Level::kPasses},
    {nullptr, "torch.fx.passes.graph_transform_observer", "GraphTransformObserver.__exit__", nullptr,
     observer_exit_after, "what each pass did", Level::kPasses},
    {nullptr, "torch.fx.passes.graph_transform_observer", "GraphTransformObserver.apply_gm_pass", apply_pass_before,
     nullptr, "where passes are defined", Level::kPasses, true},
    {nullptr, "torch.fx.passes.graph_transform_observer", "GraphTransformObserver.apply_graph_pass", apply_pass_before,
     nullptr, "where passes are defined", Level::kPasses, true},
    {nullptr, "torch._inductor.compile_fx", "view_to_reshape", stage_function_before, stage_function_after,
     "changes before the post-grad passes, as a pass of their own", Level::kPasses},
    {nullptr, "torch._inductor.compile_fx", "fake_tensor_prop", stage_function_before, stage_function_after,
     "changes while fake tensors are propagated, as a pass of their own", Level::kPasses},
    {nullptr, "torch._inductor.fx_passes.joint_graph", "canonicalize_aten_ir_passes", stage_function_before,
     stage_function_after, "changes of canonicalization, as a pass of their own", Level::kPasses},
    {nullptr, "torch._inductor.freezing", "freeze", second_stage_function_before, second_stage_function_after,
     "changes of freezing, as a pass of their own", Level::kPasses},
    {nullptr, "torch._inductor.freezing", "freezing_passes", stage_function_before, stage_function_after,
     "changes of the freezing passes, as a pass of their own", Level::kPasses},
    {nullptr, "torch._inductor.freezing", "constant_fold", stage_function_before, stage_function_after,
     "changes of constant folding, as a pass of their own", Level::kPasses},
    {nullptr, "torch.fx", "Graph.create_node", nullptr, create_node_after, "which pattern and line made a node",
     Level::kPasses, true},
    {nullptr, "torch.fx", "Graph.node_copy", node_copy_before, node_copy_after, "which node a node is a copy of",
     Level::kPasses, true},
    {nullptr, "torch.fx", "Interpreter.run_node", run_node_before, run_node_after,
     "which node was interpreted when another was made", Level::kPasses, true},
    {nullptr, "torch.fx", "Node.replace_all_uses_with", replace_uses_before, nullptr, "which node replaced which",
     Level::kPasses, true},
    {nullptr, "torch._inductor.pattern_matcher", "LoweringPatternEntry.apply", apply_pattern_before,
     apply_pattern_after, "what lowering patterns matched", Level::kPasses, true},
    {nullptr, "torch._inductor.pattern_matcher", "GraphPatternEntry.apply", apply_pattern_before, apply_pattern_after,
     "what graph patterns matched", Level::kPasses, true},
    {nullptr, "torch._inductor.pattern_matcher", "ReplacementPatternEntry.apply", apply_pattern_before,
     apply_pattern_after, "what replacement patterns matched", Level::kPasses, true},
    // Who asks for each operation and each line.
    {nullptr, "torch._inductor.graph", "GraphLowering.run_node", lower_node_before, lower_node_after,
     "which node is being lowered", Level::kTruth, true},
    {nullptr, "torch._inductor.ir", "IRNode.__post_init__", nullptr, ir_node_made_after,
     "which node loop nests and extern operations were made for", Level::kTruth, true},
    {nullptr, "torch._inductor.ir", "Pointwise.store_output", store_before, pop_running_after,
     "who stores", Level::kTruth, true},
    {nullptr, "torch._inductor.ir", "Scatter.store_output", store_before, pop_running_after,
     "who stores", Level::kTruth, true},
    {nullptr, "torch._inductor.ir", "Reduction.store_reduction", store_before, pop_running_after,
     "who stores", Level::kTruth, true},
    {nullptr, "torch._inductor.ir", "MultiOutputReduction.store_reduction", store_before, pop_running_after,
     "who stores", Level::kTruth, true},
    {nullptr, "torch._inductor.ir", "Scan.store_reduction", store_before, pop_running_after,
     "who stores", Level::kTruth, true},
    {nullptr, "torch._inductor.ir", "Sort.store_reduction", store_before, pop_running_after,
     "who stores", Level::kTruth, true},
    {nullptr, "torch._inductor.index_propagation", "IndexPropVar.__post_init__", nullptr, expression_made_after,
     "who asks for constants and indices", Level::kTruth, true},
    {nullptr, "torch._inductor.index_propagation", "IndexPropagation.unwrap", unwrap_before, pop_running_after,
     "who asks for constants and indices", Level::kTruth, true},
    {nullptr, "torch._inductor.utils", "IndentedBuffer.writeline", nullptr, write_line_after,
     "which node each line of a kernel is for", Level::kTruth, true},
    {nullptr, "torch._inductor.utils", "IndentedBuffer.splice", splice_before, splice_after,
     "which node each line of a kernel is for", Level::kTruth, true},
    {nullptr, "torch._inductor.utils", "IndentedBuffer.__add__", nullptr, add_buffers_after,
     "which node lines around reductions are for", Level::kTruth, true},
    {nullptr, "torch._inductor.utils", "IndentedBuffer.getvaluewithlinemap", nullptr, print_buffer_after,
     "which node each line of a kernel is for", Level::kTruth, true},
    {nullptr, "torch._inductor.codegen.common", "CSE.generate", generate_before, generate_after,
     "lines that serve several nodes", Level::kTruth, true},
    {nullptr, "torch._inductor.codegen.cpp", "move_code_under_inner_loop", nullptr, inner_loop_after,
     "which node lines of tail loops are for", Level::kTruth, true},
    {nullptr, "torch._inductor.utils", "IndentedBuffer.map", nullptr, map_buffer_after,
     "which node lines after reductions are for", Level::kTruth, true},
    {nullptr, "torch._inductor.codegen.triton_combo_kernel", "ComboKernel.uniquify_block_sizes", nullptr,
     rename_blocks_after, "which node lines of combo kernels are for", Level::kTruth, true},
    {nullptr, "torch._inductor.codegen.simd", "SIMDScheduling.codegen_combo_kernel", combo_before, combo_after,
     "which loop nests each combo kernel has", Level::kTruth, true},
    {nullptr, "torch._inductor.codegen.triton", "TritonKernel._filter_pdl", filter_lines_before, filter_lines_after,
     "which node lines of kernels with dependent launches are for", Level::kTruth, true},
    {nullptr, "torch._inductor.codegen.cpp", "CppKernel._gen_reduction_prefix", nullptr, accumulator_after,
     "which node initial values of reductions are for", Level::kTruth, true},
    {nullptr, "torch._inductor.codegen.cpp", "CppKernel.finalize_reduction_prefix", finalize_before, finalize_after,
     "which node initial values of reductions are for", Level::kTruth, true},
    {nullptr, "torch._inductor.codegen.triton", "TritonKernel.codegen_iteration_ranges_entry", range_index_before, pop_running_after,
     "which index lines of Triton kernels are shared", Level::kTruth, true},
    {nullptr, "kerntrail.spyre.spyre_kernel", "OpsRecorder.load", nullptr, recorded_after,
     "which node each operation of an OpSpec is for", Level::kTruth, true},
    {nullptr, "kerntrail.spyre.spyre_kernel", "OpsRecorder.constant", nullptr, recorded_after,
     "which node each operation of an OpSpec is for", Level::kTruth, true},
    {nullptr, "kerntrail.spyre.spyre_kernel", "OpsRecorder._default", nullptr, recorded_after,
     "which node each operation of an OpSpec is for", Level::kTruth, true},
    {nullptr, "kerntrail.spyre.ir_passes", "_again", again_before, pop_running_after,
     "which node the parts of a split body are for", Level::kTruth, true},
    {nullptr, "kerntrail.spyre.ir_passes", "_with_body", nullptr, with_body_after,
     "which node rebuilt loop nests are for", Level::kTruth, true},
    {nullptr, "kerntrail.spyre.ir_passes", "_insert_before", insert_before, nullptr,
     "the line of a pass that buffers are there for", Level::kTruth, true},
    {nullptr, "kerntrail.spyre.ir_passes", "_redirect", redirect_before, nullptr,
     "nodes that were given the buffer of another", Level::kTruth, true},
    {nullptr, "kerntrail.spyre.backend", "fall_back", fall_back_before, nullptr, "why graphs went to stock Inductor"},
};

nb::object import(const std::string& name) {
  PyObject* module = PyImport_ImportModule(name.c_str());
  if (!module) clear_error();
  return nb::steal(module);
}

// Sets owner, attribute name and the shown path of a site; owner stays invalid where module or class is missing.
void resolve(const Row& row, HookSite& site) {
  const std::string path = row.path;
  const std::size_t dot = path.find('.');
  for (const std::string_view candidate : base::split(row.modules, ' ')) {
    const std::string module_name(candidate);
    site.record.attribute = module_name + "." + path;
    site.name = dot == std::string::npos ? path : path.substr(dot + 1);
    nb::object owner = import(module_name);
    if (owner.is_valid() && dot != std::string::npos) owner = attribute(owner, path.substr(0, dot).c_str());
    if (owner.is_valid()) {
      site.owner = owner;
      return;
    }
  }
}

Observer bind(Session& session, Handler handler) {
  if (!handler) return {};
  return [&session, handler](Call& call) { handler(session, call); };
}

}  // namespace

std::vector<std::shared_ptr<HookSite>> make_hook_table(Session& session) {
  std::vector<std::shared_ptr<HookSite>> out;
  for (const Row& row : kTable) {
    if (row.level > session.options().level) continue;
    auto site = std::make_shared<HookSite>();
    resolve(row, *site);
    site->record.label = row.label ? row.label : site->record.attribute;
    site->record.lost = row.lost;
    site->light = row.light;
    site->before = bind(session, row.before);
    site->after = bind(session, row.after);
    out.push_back(std::move(site));
  }
  return out;
}

}  // namespace kerntrail::probe
