#include "spyre_body.h"

#include <nanobind/stl/string.h>

#include <algorithm>

namespace kerntrail::python {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw std::runtime_error("kerntrail_spyre: " + message); }

nb::object attribute_of(const char* module, const char* name) { return nb::module_::import_(module).attr(name); }

// Values arrive plain or wrapped in the compiler's OpsValue.
nb::object unwrapped(nb::handle value) {
  nb::object wrapper = attribute_of("torch._inductor.virtualized", "OpsValue");
  nb::object inner = nb::borrow(value);
  while (nb::isinstance(inner, wrapper)) inner = inner.attr("value");
  return inner;
}

std::size_t push(RecordedBody& body, spyre::BodyNode node) {
  body.nodes.push_back(std::move(node));
  body.marks.push_back(0);
  return body.nodes.size() - 1;
}

// A node for an operand: a recorded value, or a number written into the body.
std::size_t node_of(RecordedBody& body, nb::handle value) {
  nb::object plain = unwrapped(value);
  if (nb::isinstance<RecordedValue>(plain)) return nb::cast<RecordedValue&>(plain).node;
  spyre::BodyNode node;
  node.kind = spyre::BodyKind::kConstant;
  node.value = nb::cast<double>(nb::float_(plain));
  return push(body, std::move(node));
}

// Numbers that an operation has written into the body are its own.
void set_mark(RecordedBody& body, const RecordedValue& value, std::int64_t mark) {
  body.marks.at(value.node) = mark;
  for (const std::size_t operand : body.nodes[value.node].operands) {
    if (body.marks[operand] == 0) body.marks[operand] = mark;
  }
}

RecordedBody& body_in(nb::handle self) { return nb::cast<RecordedBody&>(self.attr("body")); }

RecordedValue record_op(nb::handle self, const std::string& name, nb::handle args, nb::handle kwargs) {
  RecordedBody& body = body_in(self);
  spyre::BodyNode node;
  node.kind = spyre::BodyKind::kOp;
  node.name = name;
  if (name == "to_dtype") {  // (x, dtype, src_dtype=None, use_compute_types=True)
    nb::object target = nb::len(args) > 1 ? nb::object(args[1]) : nb::object(kwargs["dtype"]);
    node.dtype = dtype_of(target);
    node.operands = {node_of(body, args[0])};
    return {push(body, std::move(node))};
  }
  if (nb::len(kwargs) != 0) refuse("ops." + name + " with keyword arguments");
  for (nb::handle arg : args) node.operands.push_back(node_of(body, arg));
  return {push(body, std::move(node))};
}

RecordedValue record_load(nb::handle self, const std::string& name, nb::handle index) {
  spyre::BodyNode node;
  node.kind = spyre::BodyKind::kLoad;
  node.name = name;
  node.index = nb::cast<std::string>(nb::str(index));
  return {push(body_in(self), std::move(node))};
}

RecordedValue record_constant(nb::handle self, nb::handle value, nb::handle dtype) {
  spyre::BodyNode node;
  node.kind = spyre::BodyKind::kConstant;
  node.value = nb::cast<double>(nb::float_(value));
  node.dtype = dtype_of(dtype);
  return {push(body_in(self), std::move(node))};
}

spyre::HostBuffer host_buffer(const std::string& name, nb::handle layout) {
  spyre::HostBuffer buffer;
  buffer.name = name;
  buffer.dtype = dtype_of(layout.attr("dtype"));
  buffer.size = integers(layout.attr("size"));
  buffer.stride = integers(layout.attr("stride"));
  if (nb::cast<std::int64_t>(nb::int_(layout.attr("offset"))) != 0) refuse(name + " does not start its storage");
  return buffer;
}

// c<first>, c<first+1>, ... ; a loop of one iteration is the number 0, as the compiler does itself.
nb::list loop_symbols(const std::vector<std::int64_t>& ranges, std::size_t first) {
  nb::object sympy = nb::module_::import_("sympy");
  nb::list symbols;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i] == 1) {
      symbols.append(sympy.attr("Integer")(0));
    } else {
      symbols.append(sympy.attr("Symbol")("c" + std::to_string(first + i), nb::arg("integer") = true,
                                          nb::arg("nonnegative") = true));
    }
  }
  return symbols;
}

// Calls `inner_fn` with `handler` in force; the handler before is back afterwards, whatever happens.
nb::object run_body(nb::handle handler, nb::handle inner_fn, const nb::list& index, const nb::list* reduction_index) {
  nb::object context = attribute_of("torch._inductor.virtualized", "V").attr("set_ops_handler")(handler);
  context.attr("__enter__")();
  try {
    nb::object result = reduction_index == nullptr ? inner_fn(index) : inner_fn(index, *reduction_index);
    context.attr("__exit__")(nb::none(), nb::none(), nb::none());
    return result;
  } catch (...) {
    context.attr("__exit__")(nb::none(), nb::none(), nb::none());
    throw;
  }
}

void collect_inputs(spyre::BufferBody& body) {
  nb::object graph = current_graph();
  for (const spyre::BodyNode& node : body.nodes) {
    if (node.kind != spyre::BodyKind::kLoad) continue;
    if (std::ranges::find(body.inputs, node.name, &spyre::HostBuffer::name) != body.inputs.end()) continue;
    body.inputs.push_back(host_buffer(node.name, graph.attr("get_buffer")(node.name).attr("get_layout")()));
  }
}

}  // namespace

nb::object current_graph() { return attribute_of("torch._inductor.virtualized", "V").attr("graph"); }

spyre::DType dtype_of(nb::handle torch_dtype) {
  auto dtype = spyre::dtype_from_name(nb::cast<std::string>(nb::str(torch_dtype)));
  if (!dtype) refuse(dtype.error().text());
  return *dtype;
}

std::vector<std::int64_t> integers(nb::handle sequence) {
  std::vector<std::int64_t> values;
  for (nb::handle item : sequence) values.push_back(nb::cast<std::int64_t>(nb::int_(item)));
  return values;
}

void bind_body(nb::module_& m) {
  nb::class_<RecordedBody>(m, "RecordedBody", "What the ops recorder noted of one loop body.")
      .def("__len__", [](const RecordedBody& body) { return body.nodes.size(); })
      .def("mark", &set_mark, nb::arg("value"), nb::arg("mark"), "Leaves a number on a node, for whoever watches.");
  nb::class_<RecordedValue>(m, "RecordedValue", "One value of a recorded loop body.");
}

nb::object make_recorder_class(nb::object base, const std::string& module_name) {
  nb::dict members;
  members["__module__"] = module_name;
  members["__init__"] = nb::cpp_function([](nb::handle self) { self.attr("body") = nb::cast(RecordedBody{}); },
                                         nb::name("__init__"), nb::is_method());
  members["load"] = nb::cpp_function(&record_load, nb::name("load"), nb::is_method());
  members["constant"] = nb::cpp_function(&record_constant, nb::name("constant"), nb::is_method());
  members["_default"] = nb::cpp_function(&record_op, nb::name("_default"), nb::is_method());
  return nb::borrow(reinterpret_cast<PyObject*>(&PyType_Type))("OpsRecorder", nb::make_tuple(base), members);
}

spyre::BufferBody body_of(nb::handle buffer, std::vector<std::int64_t>* marks) {
  nb::object ir = nb::module_::import_("torch._inductor.ir");
  if (!nb::isinstance(buffer, ir.attr("ComputedBuffer"))) refuse("an operation that is no ComputedBuffer");
  nb::object data = buffer.attr("data");
  spyre::BufferBody body;
  body.output = host_buffer(nb::cast<std::string>(buffer.attr("get_name")()), buffer.attr("get_layout")());
  body.ranges = integers(data.attr("ranges"));
  const bool is_reduction = nb::isinstance(data, ir.attr("Reduction"));
  if (is_reduction) {
    body.reduction_ranges = integers(data.attr("reduction_ranges"));
    body.reduction_type = nb::cast<std::string>(data.attr("reduction_type"));
  } else if (!nb::isinstance(data, ir.attr("Pointwise"))) {
    refuse("a buffer made by " + nb::cast<std::string>(nb::str(data.type().attr("__name__"))));
  }
  if (nb::hasattr(data, "device_op")) body.device_op = nb::cast<std::string>(data.attr("device_op"));

  nb::list index = loop_symbols(body.ranges, 0);
  nb::list reduction_index = loop_symbols(body.reduction_ranges, body.ranges.size());
  body.output_index = nb::cast<std::string>(nb::str(buffer.attr("get_layout")().attr("make_indexer")()(index)));
  nb::object handler = attribute_of("kerntrail.spyre.spyre_kernel", "OpsRecorder")();
  nb::object result = run_body(handler, data.attr("inner_fn"), index, is_reduction ? &reduction_index : nullptr);
  RecordedBody& recorded = body_in(handler);
  if (nb::isinstance<nb::tuple>(result)) {
    for (nb::handle value : result) body.roots.push_back(node_of(recorded, value));
  } else {
    body.roots.push_back(node_of(recorded, result));
  }
  body.nodes = recorded.nodes;
  if (marks != nullptr) *marks = recorded.marks;
  collect_inputs(body);
  return body;
}

}  // namespace kerntrail::python
