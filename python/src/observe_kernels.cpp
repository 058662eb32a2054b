#include "observe_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "observations.h"
#include "observe_fx.h"
#include "observe_ir.h"
#include "observe_schedule.h"
#include "observe_spyre.h"
#include "python_text.h"
#include "write_kernels.h"
#include "write_witness.h"

namespace kerntrail::probe {
namespace {

constexpr const char* kOutside = "an operation outside every captured lowering";

// The IR operations of a node schedule: of each scheduler node its `node`, of an extern kernel itself.
std::vector<nb::object> operations_of(nb::handle node_schedule) {
  std::vector<nb::object> out;
  if (!is_valid(node_schedule)) return out;
  if (!PyList_Check(node_schedule.ptr()) && !PyTuple_Check(node_schedule.ptr())) {
    out.push_back(nb::borrow(node_schedule));
    return out;
  }
  for (nb::handle scheduled : node_schedule) {
    nb::object parts = call_method(scheduled, "get_nodes");  // a fused node stands for several
    if (!parts.is_valid() || !PyList_Check(parts.ptr())) {
      nb::list single;
      single.append(scheduled);
      parts = single;
    }
    for (nb::handle part : parts) {
      nb::object node = attribute(part, "node");
      if (is_valid(node)) out.push_back(node);
    }
  }
  return out;
}

// Asking for a comment leaves a cache on the FX graph, which the compile itself might not have made. It stays while
// kernels are collected (each would make it again) and is taken away with the rest.
constexpr const char* kMetadataCache = "_inductor_kernel_metadata_node_to_idx_map";

void remember_metadata_caches(PendingGraph& graph, const std::vector<nb::object>& operations) {
  for (const nb::object& operation : operations) {
    const nb::object origins = attribute(operation, "origins");
    if (!is_populated(origins)) continue;
    const nb::object iterator = nb::steal(PyObject_GetIter(origins.ptr()));
    const nb::object node = iterator.is_valid() ? nb::steal(PyIter_Next(iterator.ptr())) : nb::object();
    if (PyErr_Occurred()) clear_error();
    const nb::object fx_graph = attribute(node, "graph");
    if (fx_graph.is_valid() && !attribute(fx_graph, kMetadataCache).is_valid()) graph.touched.push_back(fx_graph);
  }
}

void remove_metadata_caches(PendingGraph& graph) {
  for (const nb::object& fx_graph : graph.touched) {
    if (!attribute(fx_graph, kMetadataCache).is_valid()) continue;
    if (PyObject_SetAttrString(fx_graph.ptr(), kMetadataCache, nullptr) != 0) clear_error();
  }
  graph.touched.clear();
}

// (comment, detailed comment) as Inductor itself would print them for this schedule; it only reads, but for the cache
// above.
void ask_for_comment(PendingGraph& graph, nb::handle node_schedule, const std::vector<nb::object>& operations) {
  remember_metadata_caches(graph, operations);
  try {
    const nb::object result = nb::module_::import_("torch._inductor.utils")
                                  .attr("get_kernel_metadata")(node_schedule, current_lowering().attr("wrapper_code"));
    graph.commented = node_schedule.ptr();
    graph.comment = text(result[0]).value_or("");
    graph.detailed = text(result[1]).value_or("");
  } catch (const nb::python_error&) {}
}

// The name of a sub-graph's lowering is the name of its function in the wrapper.
std::string current_function() {
  const nb::object name = attribute(current_lowering(), "name");
  return is_valid(name) ? text(name).value_or("") : std::string();
}

bool has_base(nb::handle object, std::string_view name) {
  const nb::object mro = attribute(nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))), "__mro__");
  if (!mro.is_valid() || !PyTuple_Check(mro.ptr())) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro.ptr()); ++i) {
    const auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro.ptr(), i));
    std::string_view base = type->tp_name;
    if (const std::size_t dot = base.rfind('.'); dot != std::string_view::npos) base.remove_prefix(dot + 1);
    if (base == name) return true;
  }
  return false;
}

struct ClassRow {
  const char* base;  // of an IR node
  const char* kernel_class;
};

// First row that any operation of the kernel has among its bases. What is left is a loop nest.
constexpr ClassRow kClasses[] = {{"TemplateBuffer", "template"},   {"UserDefinedTritonKernel", "user"},
                                 {"FallbackKernel", "fallback"},   {"ScatterFallback", "fallback"},
                                 {"IndexPutFallback", "fallback"}, {"InplaceBernoulliFallback", "fallback"},
                                 {"ExternKernel", "extern"}};

std::string kernel_class(const std::vector<nb::object>& operations) {
  for (const ClassRow& row : kClasses) {
    for (const nb::object& operation : operations) {
      if (has_base(operation, row.base)) return row.kernel_class;
    }
  }
  return operations.empty() ? std::string() : "loop";
}

PendingKernel* find_kernel(PendingGraph& graph, std::string_view name) {
  for (PendingKernel& kernel : graph.kernels) {
    if (kernel.name == name && !kernel.is_extern) return &kernel;
  }
  return nullptr;
}

GraphId kernel_graph(Session& session, Frame& frame) {
  PendingGraph& graph = pending_graph(frame);
  if (!has(graph.kernel_graph))
    graph.kernel_graph = session.recorder().graph(frame.compile->id, "kernel", frame.direction);
  return graph.kernel_graph;
}

PendingKernel& add_kernel(Session& session, Frame& frame, std::string_view name) {
  PendingKernel kernel;
  kernel.name = name;
  kernel.observed.unit = session.recorder().unit(kernel_graph(session, frame), UnitKind::kKernel);
  kernel.observed.attrs.push_back({session.tables().attr.name, text_of(session, name)});
  pending_graph(frame).kernels.push_back(std::move(kernel));
  return pending_graph(frame).kernels.back();
}

void add_unique(std::vector<std::string>& list, std::string value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(std::move(value));
}

void add_unique(std::vector<UnitId>& list, UnitId value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

// Class, operations and the origins they claim. Returns the operations that no earlier sighting has brought.
std::vector<UnitId> add_operations(Session& session, Frame& frame, PendingKernel& kernel,
                                   const std::vector<nb::object>& operations, bool claims) {
  std::vector<UnitId> fresh;
  for (const nb::object& operation : operations) {
    const UnitId unit = unit_of_operation(session, *frame.compile, operation, kOutside);
    add_unique(kernel.ir_classes, std::string(python_type_name(operation)));
    if (std::find(kernel.operations.begin(), kernel.operations.end(), unit) != kernel.operations.end()) continue;
    kernel.operations.push_back(unit);
    fresh.push_back(unit);
    if (!claims) continue;
    for (const UnitId origin : origin_units(session, *frame.compile, operation)) add_unique(kernel.claimed, origin);
  }
  if (kernel.kernel_class.empty()) kernel.kernel_class = kernel_class(operations);
  return fresh;
}

void link_operations(Session& session, Frame& frame, PendingKernel& kernel, const std::vector<nb::object>& operations) {
  auto fresh = add_operations(session, frame, kernel, operations, true);
  if (!fresh.empty()) session.recorder().link("define_kernel", std::move(fresh), {kernel.observed.unit});
}

void add_comment(Session& session, PendingGraph& graph, PendingKernel& kernel, nb::handle node_schedule) {
  if (graph.commented == nullptr || graph.commented != node_schedule.ptr()) return;
  const Tables::Attrs& attr = session.tables().attr;
  const auto& attrs = kernel.observed.attrs;
  const bool known = std::any_of(attrs.begin(), attrs.end(), [&](const auto& a) { return a.attr == attr.comment; });
  if (!known) {
    kernel.observed.attrs.push_back({attr.comment, text_of(session, graph.comment)});
    kernel.observed.attrs.push_back({attr.detailed, text_of(session, graph.detailed)});
  }
  graph.commented = nullptr;
}

// The compiler's own record of "name:handle": a dict of lists in torch._inductor.debug.
std::vector<std::string> provenance_list(const char* dict, const std::string& handle) {
  std::vector<std::string> out;
  const nb::handle debug = dict_item(PyImport_GetModuleDict(), "torch._inductor.debug");
  const nb::object lists = attribute(debug, dict);
  const nb::handle list = lists.is_valid() ? dict_item(lists, handle.c_str()) : nb::handle();
  if (!list.is_valid() || !PyList_Check(list.ptr())) return out;
  for (nb::handle item : list) out.push_back(text(item).value_or(""));
  return out;
}

// Names in the compiler's mapping are of FX nodes in the origins of the kernel's operations: resolved among these,
// since two sub-graphs may have nodes of one name.
void add_mapping(Session& session, Frame& frame, PendingKernel& kernel, const std::vector<nb::object>& operations,
                 const std::string& handle) {
  const auto names = provenance_list("_inductor_triton_kernel_to_post_grad_node_info", handle);
  for (const nb::object& operation : operations) {
    const nb::object origins = attribute(operation, "origins");
    if (!is_valid(origins)) continue;
    const nb::object iterator = nb::steal(PyObject_GetIter(origins.ptr()));
    while (iterator.is_valid()) {
      const nb::object node = nb::steal(PyIter_Next(iterator.ptr()));
      if (!node.is_valid()) break;
      const std::string name = text(attribute(node, "name")).value_or("");
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      add_unique(kernel.mapped, unit_of_node(session, *frame.compile, node,
                                             "a node mapped to a kernel, outside every captured graph"));
    }
    if (PyErr_Occurred()) clear_error();
  }
  for (std::string& stack : provenance_list("_inductor_kernel_stack_trace", handle))
    add_unique(kernel.stacks, std::move(stack));
}

// A name without a text stands for several kernels, one of which is chosen when it is called: those that were defined
// and never registered on their own.
void collect_alternatives(Session& session, PendingGraph& graph, const PendingKernel& kernel, nb::handle node_schedule) {
  if (!kernel.text.empty() || kernel.is_extern) return;
  for (PendingKernel& other : graph.kernels) {
    if (&other != &kernel && !other.text.empty() && other.registrations.empty() && other.witness.empty())
      collect_witness(session, other, node_schedule);
  }
}

}  // namespace

nb::object current_lowering() {
  const nb::handle module = dict_item(PyImport_GetModuleDict(), "torch._inductor.virtualized");
  return attribute(attribute(module, "V"), "graph");
}

LocId line_here(Session& session) {
  std::vector<FrameRef> frames = frames_here();
  std::erase_if(frames, [](const FrameRef& frame) { return text(attribute(frame.code, "co_name")) == "<module>"; });
  if (frames.size() > 1) frames.resize(1);
  return frames.empty() ? LocId::kNone : chain_of(session, frames);
}

PendingGraph& pending_graph(Frame& frame) {
  if (!frame.pending) frame.pending = std::make_shared<PendingGraph>();
  return *frame.pending;
}

void collect_definition(Session& session, Frame& frame, std::string_view name, std::string_view source) {
  PendingKernel* kernel = find_kernel(pending_graph(frame), name);
  if (!kernel) kernel = &add_kernel(session, frame, name);
  if (++kernel->defined > 1) return;
  if (session.options().level >= Level::kTruth) kernel->text = source;
  kernel->observed.attrs.push_back({session.tables().attr.source, text_of(session, source)});
  // A text that holds OpSpecs: what it lacks was lost where it was printed.
  if (session.options().level >= Level::kPasses && !pending_graph(frame).open_kernels.empty())
    kernel->observed.attrs.back().value.loc = line_here(session);
}

void collect_kernel(Session& session, Frame& frame, std::string_view name, nb::handle node_schedule) {
  PendingGraph& graph = pending_graph(frame);
  PendingKernel* kernel = find_kernel(graph, name);
  if (!kernel) kernel = &add_kernel(session, frame, name);
  kernel->defined = std::max<std::int64_t>(kernel->defined, 1);
  const auto operations = operations_of(node_schedule);
  if (graph.commented != node_schedule.ptr()) ask_for_comment(graph, node_schedule, operations);
  add_comment(session, graph, *kernel, node_schedule);
  link_operations(session, frame, *kernel, operations);
}

void collect_comment(Frame& frame, nb::handle node_schedule, nb::handle comments) {
  if (!is_valid(comments) || !PyTuple_Check(comments.ptr()) || PyTuple_GET_SIZE(comments.ptr()) != 2) return;
  PendingGraph& graph = pending_graph(frame);
  graph.commented = node_schedule.ptr();
  graph.comment = text(PyTuple_GET_ITEM(comments.ptr(), 0)).value_or("");
  graph.detailed = text(PyTuple_GET_ITEM(comments.ptr(), 1)).value_or("");
}

void collect_registration(Session& session, Frame& frame, std::string_view name, nb::handle node_schedule,
                          bool is_extern, nb::handle debug_handle) {
  PendingGraph& graph = pending_graph(frame);
  ++graph.registered;
  PendingKernel* kernel = find_kernel(graph, name);
  if (!kernel) {
    kernel = &add_kernel(session, frame, name);
    kernel->is_extern = is_extern;
    kernel->function = current_function();
  }
  const auto operations = operations_of(node_schedule);
  Registration registration;
  registration.function = current_function();
  for (const nb::object& operation : operations) registration.operations.push_back(operation_name(operation));
  if (is_valid(debug_handle)) {
    registration.handle = fmt::format("{}:{}", name, text(debug_handle).value_or("?"));
    add_mapping(session, frame, *kernel, operations, registration.handle);
  }
  kernel->registrations.push_back(std::move(registration));
  collect_witness(session, *kernel, node_schedule);
  collect_alternatives(session, graph, *kernel, node_schedule);
  add_comment(session, graph, *kernel, node_schedule);
  link_operations(session, frame, *kernel, operations);
}

void collect_unregistered(Session& session, Frame& frame, nb::handle scheduler_node) {
  const nb::object operation = attribute(scheduler_node, "node");
  const nb::object named = call_method(operation, "try_get_kernel_name");
  if (!is_valid(named)) return;
  PendingKernel kernel;
  kernel.name = text(named).value_or("");
  if (kernel.name.empty()) return;
  kernel.function = current_function();
  kernel.is_extern = true;
  kernel.is_tentative = true;
  add_operations(session, frame, kernel, {operation}, false);
  collect_witness(session, kernel, operation);
  pending_graph(frame).kernels.push_back(std::move(kernel));
}

void collect_directory(Session& session, Frame& frame, std::string_view kernel, std::string_view directory) {
  PendingKernel* found = find_kernel(pending_graph(frame), kernel);
  if (found == nullptr) return;
  found->directory = std::string(directory);
  if (session.options().level >= Level::kPasses) found->written_at = line_here(session);
}

void collect_wrapper(Frame& frame, std::string_view text, std::string_view written) {
  PendingWrapper wrapper{std::string(text), 0};
  if (written.size() > text.size() && written.ends_with(text)) {
    const std::string_view above = written.substr(0, written.size() - text.size());
    wrapper.offset = std::count(above.begin(), above.end(), '\n');
  }
  pending_graph(frame).wrapper = std::move(wrapper);
}

void write_pending(Session& session, Frame& frame) {
  if (!frame.pending) return;
  const std::shared_ptr<PendingGraph> taken = std::move(frame.pending);  // gone even if a part of it can't be written
  PendingGraph& graph = *taken;
  remove_metadata_caches(graph);
  write_schedules(session, graph);
  write_op_specs(session, graph);
  write_bundles(session, frame, graph);
  write_kernels(session, frame, graph);
}

}  // namespace kerntrail::probe
