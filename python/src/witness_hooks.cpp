#include "witness_hooks.h"

#include "observe_fx.h"
#include "python_text.h"
#include "witness.h"

namespace kerntrail::probe {
namespace {

struct Names {
  PyObject* meta = PyUnicode_InternFromString("meta");
  PyObject* target = PyUnicode_InternFromString("target");
  PyObject* op = PyUnicode_InternFromString("op");
  PyObject* graph = PyUnicode_InternFromString("graph");
  PyObject* call_method = PyUnicode_InternFromString("call_method");
  PyObject* inner_fn = PyUnicode_InternFromString("inner_fn");
  PyObject* inner_fns = PyUnicode_InternFromString("inner_fns");
  PyObject* lines = PyUnicode_InternFromString("_lines");
  PyObject* is_symbolic = PyUnicode_InternFromString("is_symbolic");
  PyObject* mark = PyUnicode_InternFromString("_kerntrail");  // on objects of a compile, which goes with them
};

const Names& names() {
  static const Names n;
  return n;
}

constexpr Py_ssize_t kNodeFields = 7;  // of what the back end's body_parts says of a node; its mark is the last

Witness* here() { return tracing().witness.get(); }

// A class of the compiler's, looked up once; invalid where there is none.
struct KnownType {
  const char *module, *name;
  nb::object type;
  bool sought = false;

  bool holds(nb::handle object) {
    if (!sought) {
      sought = true;
      const nb::handle owner = dict_item(PyImport_GetModuleDict(), module);
      type = owner.is_valid() ? attribute(owner, name) : nb::object();
      if (type.is_valid() && !PyType_Check(type.ptr())) type.reset();
    }
    return type.is_valid() && object.is_valid() &&
           PyType_IsSubtype(Py_TYPE(object.ptr()), reinterpret_cast<PyTypeObject*>(type.ptr())) != 0;
  }
};

// Never destroyed: at exit the interpreter goes first.
KnownType& loops_type() {
  static auto& t = *new KnownType{"torch._inductor.ir", "Loops", {}, false};
  return t;
}
KnownType& buffer_type() {
  static auto& t = *new KnownType{"torch._inductor.ir", "Buffer", {}, false};
  return t;
}
KnownType& expression_type() {
  static auto& t = *new KnownType{"torch._inductor.index_propagation", "IndexPropVar", {}, false};
  return t;
}
KnownType& text_buffer_type() {
  static auto& t = *new KnownType{"torch._inductor.utils", "IndentedBuffer", {}, false};
  return t;
}

// A line that is finished when it is printed, as loads of Triton whose eviction policy is decided late.
KnownType& deferred_line_type() {
  static auto& t = *new KnownType{"torch._inductor.utils", "DeferredLineBase", {}, false};
  return t;
}

void push(Witness& witness, Running what, Call& call) {
  witness.running.push_back(what);
  call.token = witness.running.size();
}

void set_frozen(nb::handle object, PyObject* name, nb::handle value) {
  if (PyObject_GenericSetAttr(object.ptr(), name, value.ptr()) != 0) clear_error();
}

// The unit of the node that is being lowered: it has one, unless its graph came to be while another was lowered.
UnitId lowered_unit(Session& session, Call& call, Witness& witness) {
  const nb::object node = witness.lowered.back();
  CompileState& compile = *tracing().compile;
  const auto known = compile.units.find(node.ptr());
  if (known != compile.units.end()) return known->second;
  UnitId unit = UnitId::kNone;
  call.site->guard(*call.site,
                   [&] { unit = unit_of_node(session, compile, node, "a node lowered outside every captured graph"); });
  return unit;
}

// A closure that another node has made keeps its tag inside: its operations stay that node's, what is stored is ours.
nb::object tagged_once(const Witness& witness, nb::handle function, std::int32_t source) {
  return tag_of(witness, function) == source ? nb::borrow(function) : tagged(witness, function, source);
}

void tag_loops(const Witness& witness, nb::handle loops, std::int32_t source) {
  const nb::object inner = attribute(loops, names().inner_fn);
  if (inner.is_valid()) set_frozen(loops, names().inner_fn, tagged_once(witness, inner, source));
  PyObject* several = PyObject_HasAttr(loops.ptr(), names().inner_fns)
                          ? PyObject_GetAttr(loops.ptr(), names().inner_fns)
                          : nullptr;  // of scans and sorts
  const nb::object inners = nb::steal(several);
  if (!inners.is_valid() || !PyTuple_Check(inners.ptr())) return;
  nb::object out = nb::steal(PyTuple_New(PyTuple_GET_SIZE(inners.ptr())));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inners.ptr()); ++i) {
    const nb::handle one = PyTuple_GET_ITEM(inners.ptr(), i);
    PyTuple_SET_ITEM(out.ptr(), i, tagged_once(witness, one, source).release().ptr());
  }
  set_frozen(loops, names().inner_fns, out);
}

std::size_t size_of_list(nb::handle list) {
  return list.is_valid() && PyList_Check(list.ptr()) ? static_cast<std::size_t>(PyList_GET_SIZE(list.ptr())) : 0;
}

std::size_t lines_of(nb::handle buffer) { return size_of_list(attribute(buffer, names().lines)); }

std::int64_t mark_in(nb::handle node) {
  const nb::object meta = attribute(node, names().meta);
  if (!meta.is_valid() || !PyDict_Check(meta.ptr())) return 0;
  PyObject* mark = PyDict_GetItemWithError(meta.ptr(), names().mark);
  if (mark == nullptr && PyErr_Occurred()) clear_error();
  return mark != nullptr ? integer(mark, 0) : 0;
}

}  // namespace

// ---- lowering -----------------------------------------------------------------------------------------------------

void lower_node_before(Session&, Call& call) {
  Tracing& at = tracing();
  if (!at.compile) return;
  if (!at.witness) at.witness = std::make_shared<Witness>();
  at.witness->lowered.push_back(nb::borrow(call.arg(1, "n")));
  call.token = at.witness->lowered.size();
}

void lower_node_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness != nullptr && call.token != 0 && witness->lowered.size() >= call.token)
    witness->lowered.resize(call.token - 1);
}

bool lower_inner_node(nb::handle node) {
  Witness* witness = here();
  if (witness == nullptr || witness->lowered.empty() || witness->lowered.back().is(node)) return false;
  if (!tracing().compile->units.contains(node.ptr())) return false;
  witness->lowered.push_back(nb::borrow(node));
  return true;
}

void leave_inner_node() {
  Witness* witness = here();
  if (witness != nullptr && !witness->lowered.empty()) witness->lowered.pop_back();
}

void ir_node_made_after(Session& session, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || witness->lowered.empty() || call.raised) return;
  const nb::handle made = call.arg(0, "self");
  const bool is_loops = loops_type().holds(made);
  if (!is_loops && !buffer_type().holds(made)) return;
  const UnitId unit = lowered_unit(session, call, *witness);
  if (!has(unit)) return;
  if (is_loops) return tag_loops(*witness, made, witness->source_of(unit));
  witness->lowering(made, unit);
}

// ---- loop bodies --------------------------------------------------------------------------------------------------

void store_before(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr) return;
  const std::int32_t source = tag_of(*witness, attribute(call.arg(0, "self"), names().inner_fn));
  if (source != kNothing) push(*witness, {source, kNothing, false}, call);
}

void pop_running_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness != nullptr && call.token != 0 && witness->running.size() >= call.token)
    witness->running.resize(call.token - 1);
}

// What can be written as an expression is made when it is needed, maybe by another node's operation.
void expression_made_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || witness->running.empty() || witness->running.back().source == kNothing) return;
  const nb::handle made = call.arg(0, "self");
  if (attribute(made, names().is_symbolic).ptr() != Py_True) return;
  const nb::object mark = nb::steal(PyLong_FromLongLong(witness->mark(witness->running.back().source)));
  set_frozen(made, names().mark, mark);
}

void unwrap_before(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr) return;
  const nb::handle value = call.arg(1, "a");
  if (!expression_type().holds(value) || attribute(value, names().is_symbolic).ptr() != Py_True) return;
  const nb::object mark = attribute(value, names().mark);
  const std::int32_t source = mark.is_valid() ? witness->marked(integer(mark, 0)) : kNothing;
  if (source != kNothing) push(*witness, {source, kNothing, false}, call);
}

// An operation that no closure asks for is one that the compiler adds on its own; how it came by it is a line of its.
void note_body_node(nb::handle node) {
  Witness* witness = here();
  if (witness == nullptr || !node.is_valid() || node.is_none()) return;
  std::int32_t source = witness->running.empty() ? kNothing : witness->running.back().source;
  if (source == kNothing) {
    if (!witness->lowered.empty() || attribute(node, names().op).ptr() != names().call_method) return;
    std::vector<FrameRef> frames = frames_here();
    if (frames.empty()) return;
    source = witness->made_at(std::move(frames.front()));
  }
  const nb::object meta = attribute(node, names().meta);
  if (!meta.is_valid() || !PyDict_Check(meta.ptr())) return;
  const nb::object mark = nb::steal(PyLong_FromLongLong(witness->mark(source)));
  if (PyDict_SetItem(meta.ptr(), names().mark, mark.ptr()) != 0) clear_error();
}

std::size_t enter_body_node(nb::handle node) {
  Witness* witness = here();
  if (witness == nullptr) return 0;
  const std::int32_t source = witness->marked(mark_in(node));
  if (source == kNothing) return 0;
  const nb::object target = attribute(node, names().target);
  const std::int32_t op = target.is_valid() ? witness->op_of(target) : kNothing;
  witness->running.push_back({source, op, false, attribute(node, names().graph).ptr()});
  return witness->running.size();
}

void leave_body_node(std::size_t depth) {
  Witness* witness = here();
  if (witness != nullptr && depth != 0 && witness->running.size() >= depth) witness->running.resize(depth - 1);
}

// ---- bodies of the Spyre-format back end
// --------------------------------------------------------------------------------

// As nodes of loop bodies: what no closure asks for is the compiler's.
void recorded_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || call.raised) return;
  std::int32_t source = witness->running.empty() ? kNothing : witness->running.back().source;
  if (source == kNothing) {
    std::vector<FrameRef> frames = frames_here();
    if (frames.empty()) return;
    source = witness->made_at(std::move(frames.front()));
  }
  const nb::object body = attribute(call.arg(0, "self"), "body");
  const nb::object mark = nb::steal(PyLong_FromLongLong(witness->mark(source)));
  const nb::object name = nb::steal(PyUnicode_FromString("mark"));
  PyObject* args[] = {body.ptr(), call.result.ptr(), mark.ptr()};
  if (!body.is_valid()) return;
  const nb::object done = nb::steal(PyObject_VectorcallMethod(name.ptr(), args, 3, nullptr));
  if (!done.is_valid()) clear_error();
}

void again_before(Session&, Call& call) {
  Witness* witness = here();
  const nb::handle node = call.arg(0, "node");
  if (witness == nullptr || !PyTuple_Check(node.ptr()) || PyTuple_GET_SIZE(node.ptr()) < kNodeFields) return;
  const std::int32_t source = witness->marked(integer(PyTuple_GET_ITEM(node.ptr(), kNodeFields - 1), 0));
  if (source != kNothing) push(*witness, {source, kNothing, false}, call);
}

// A loop nest with another body is still the one that was asked for.
void with_body_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || call.raised) return;
  const std::int32_t source = tag_of(*witness, attribute(call.arg(0, "data"), names().inner_fn));
  if (source != kNothing && loops_type().holds(call.result)) tag_loops(*witness, call.result, source);
}

// A buffer that a pass adds: nobody asked for it but the line that does.
void insert_before(Session&, Call& call) {
  Witness* witness = here();
  const nb::handle data = call.arg(2, "data");
  if (witness == nullptr || !loops_type().holds(data)) return;
  if (tag_of(*witness, attribute(data, names().inner_fn)) != kNothing) return;
  std::vector<FrameRef> frames = frames_here();
  if (!frames.empty()) tag_loops(*witness, data, witness->made_at(std::move(frames.front())));
}

// Whoever read the one buffer reads the other, which computes the same.
void redirect_before(Session&, Call& call) {
  Witness* witness = here();
  const auto kept = text(call.arg(2, "new"));
  if (witness == nullptr || !kept) return;
  const nb::object buffers = attribute(call.arg(0, "graph"), "name_to_buffer");
  const nb::handle old =
      buffers.is_valid() ? nb::handle(PyObject_GetItem(buffers.ptr(), call.arg(1, "old").ptr())) : nb::handle();
  if (!old.is_valid()) return clear_error();
  const nb::object held = nb::steal(old);
  const nb::handle spyre = dict_item(PyImport_GetModuleDict(), "kerntrail._native");
  const nb::object read = attribute(attribute(spyre, "spyre"), "body_parts");
  if (!read.is_valid()) return;
  const nb::object parts = nb::steal(PyObject_CallOneArg(read.ptr(), held.ptr()));
  if (!parts.is_valid()) return clear_error();
  const auto add = [&](std::int64_t place, std::int32_t source) {
    if (source != kNothing) witness->served[{*kept, place}].push_back(source);
  };
  const nb::handle nodes = dict_item(parts, "nodes");
  for (Py_ssize_t i = 0; nodes.is_valid() && PyList_Check(nodes.ptr()) && i < PyList_GET_SIZE(nodes.ptr()); ++i) {
    const nb::handle node = PyList_GET_ITEM(nodes.ptr(), i);
    if (!PyTuple_Check(node.ptr()) || PyTuple_GET_SIZE(node.ptr()) < kNodeFields) continue;
    add(i, witness->marked(integer(PyTuple_GET_ITEM(node.ptr(), kNodeFields - 1), 0)));
  }
  add(-1, tag_of(*witness, attribute(attribute(held, "data"), names().inner_fn)));
}

// ---- text ---------------------------------------------------------------------------------------------------------

void write_line_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || witness->splicing > 0 || call.raised) return;
  const nb::handle buffer = call.arg(0, "self");
  if (witness->running.empty() && !witness->knows(buffer)) return;
  witness->wrote(buffer, lines_of(buffer));
}

void splice_before(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr) return;
  ++witness->splicing;
  if (!witness->finalizing.empty()) {  // the next accumulator's initial value
    witness->running.push_back(witness->finalizing.back());
    witness->finalizing.pop_back();
    call.state = std::make_shared<bool>(true);
  }
  call.token = lines_of(call.arg(0, "self")) + 1;
}

void splice_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || call.token == 0) return;
  if (witness->splicing > 0) --witness->splicing;
  const nb::handle to = call.arg(0, "self");
  const nb::handle from = call.arg(1, "other_code");
  const std::size_t size = lines_of(to);
  if (witness->splicing == 0 && size >= call.token) {
    const bool is_buffer = text_buffer_type().holds(from);
    witness->copied(to, call.token - 1, size, is_buffer ? from : nb::handle(), is_buffer ? lines_of(from) : 0);
  }
  if (call.state && !witness->running.empty()) witness->running.pop_back();
}

void add_buffers_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || call.raised) return;
  const nb::handle a = call.arg(0, "self"), b = call.arg(1, "other");
  const std::size_t first = lines_of(a), second = lines_of(b);
  if (lines_of(call.result) != first + second) return;
  witness->copied(call.result, 0, first, a, first);
  witness->copied(call.result, first, first + second, b, second);
}

void print_buffer_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || call.raised) return;
  const nb::handle buffer = call.arg(0, "self");
  if (witness->knows(buffer)) witness->printed(buffer, attribute(buffer, names().lines));
}

// The same lines with another index, after a loop's head and brace.
void inner_loop_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || call.raised) return;
  constexpr std::size_t kHead = 2;
  const nb::handle from = call.arg(0, "code");
  const std::size_t size = lines_of(from);
  if (lines_of(call.result) >= kHead + size) witness->copied(call.result, kHead, kHead + size, from, size);
}

// A new buffer with each line in its place, whatever became of its text.
void copy_line_by_line(Call& call, nb::handle from) {
  Witness* witness = here();
  if (witness == nullptr || call.raised || call.result.is(from)) return;
  const std::size_t size = lines_of(from);
  if (lines_of(call.result) == size) witness->copied(call.result, 0, size, from, size);
}

void map_buffer_after(Session&, Call& call) { copy_line_by_line(call, call.arg(0, "self")); }
void rename_blocks_after(Session&, Call& call) { copy_line_by_line(call, call.arg(1, "code")); }

// The buffer gets a new list with some of its lines.
void filter_lines_before(Session&, Call& call) {
  Witness* witness = here();
  const nb::handle buffer = call.arg(1, "code");
  if (witness == nullptr || !witness->knows(buffer)) return;
  call.state = std::make_shared<nb::object>(attribute(buffer, names().lines));
}

void filter_lines_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || !call.state || call.raised) return;
  const nb::handle buffer = call.arg(1, "code");
  const nb::object& before = *std::static_pointer_cast<nb::object>(call.state);
  witness->filtered(buffer, before, attribute(buffer, names().lines));
}

void generate_before(Session&, Call& call) {
  if (Witness* witness = here()) call.token = witness->lines_so_far() + 1;
}

void generate_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || call.token == 0 || call.raised) return;
  const nb::handle wanted = call.arg(2, "expr");
  const bool is_buffer = text_buffer_type().holds(wanted);
  const std::size_t before = call.token - 1, now = witness->lines_so_far();
  if (now > before) return witness->named(call.result, is_buffer ? before : now - 1);
  if (is_buffer || PyUnicode_Check(wanted.ptr()) || deferred_line_type().holds(wanted))
    witness->given_again(call.result);
}

void accumulator_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr || call.raised) return;
  const nb::handle kernel = call.arg(0, "self");
  auto& list = witness->accumulators[kernel.ptr()];
  if (list.empty()) witness->keep.push_back(nb::borrow(kernel));
  list.push_back(witness->running.empty() ? Running{} : witness->running.back());
}

void finalize_before(Session&, Call& call) {
  Witness* witness = here();
  if (witness == nullptr) return;
  const auto known = witness->accumulators.find(call.arg(0, "self").ptr());
  if (known == witness->accumulators.end()) return;
  witness->finalizing.assign(known->second.rbegin(), known->second.rend());
  call.token = 1;
}

void finalize_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness != nullptr && call.token != 0) witness->finalizing.clear();
}

void combo_before(Session&, Call& call) {
  if (Witness* witness = here()) call.token = static_cast<std::size_t>(++witness->partitioning);
}

void combo_after(Session&, Call& call) {
  Witness* witness = here();
  if (witness != nullptr && call.token != 0) witness->partitioning = static_cast<int>(call.token) - 1;
}

void range_index_before(Session&, Call& call) {
  if (Witness* witness = here()) push(*witness, {kNothing, kNothing, true}, call);
}

}  // namespace kerntrail::probe
