#include "spyre_codegen.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "spyre/handle.h"
#include "spyre/identity.h"
#include "spyre/index_expr.h"
#include "spyre/layout.h"
#include "spyre/lower.h"
#include "spyre/plan.h"
#include "spyre/work_division.h"
#include "spyre_body.h"
#include "spyre_op_spec.h"

namespace kerntrail::python {
namespace {

template <class T>
T value_of(Expected<T> result) {
  if (!result) throw std::runtime_error("kerntrail_spyre: " + result.error().text());
  return std::move(*result);
}

// Makes `name(self, ...)` of a class that is put together as a dict.
class Members {
 public:
  explicit Members(const std::string& module_name) { dict_["__module__"] = module_name; }
  template <class F, class... Extra>
  void method(const char* name, F f, const Extra&... extra) {
    dict_[name] = nb::cpp_function(f, nb::name(name), nb::is_method(), extra...);
  }
  void set(const char* name, nb::object value) { dict_[name] = value; }
  nb::object make(const char* name, nb::object bases) {
    return nb::borrow(reinterpret_cast<PyObject*>(&PyType_Type))(name, bases, dict_);
  }

 private:
  nb::dict dict_;
};

// -- debug handles ----------------------------------------------------------------------------------------------------

std::optional<std::string> meta_text(nb::handle node, const char* key) {
  nb::object value = node.attr("meta").attr("get")(key);
  if (value.is_none()) return std::nullopt;
  return nb::cast<std::string>(nb::str(value));
}

spyre::OriginFacts facts_of(nb::handle node) {
  return {nb::cast<std::string>(node.attr("name")), meta_text(node, "stack_trace"), meta_text(node, "original_aten")};
}

std::optional<DebugHandle> handle_of(nb::handle buffer) {
  std::vector<spyre::OriginFacts> origins;
  for (nb::handle node : buffer.attr("origins")) origins.push_back(facts_of(node));
  std::optional<spyre::OriginFacts> origin_node;
  if (nb::object node = buffer.attr("origin_node"); !node.is_none()) origin_node = facts_of(node);
  auto handle = spyre::build_debug_handle(origins, origin_node, nb::cast<std::string>(buffer.attr("get_name")()));
  nb::object settings = nb::module_::import_("kerntrail.spyre.settings").attr("current")();
  if (handle && nb::cast<std::string>(settings.attr("generation")) == "july-transform") {
    nb::object history_of = nb::module_::import_("kerntrail.spyre.provenance").attr("transform_history_of");
    handle->transform_history = history_from_python(history_of(buffer));
    for (DebugHandle& child : handle->fused_from) child.transform_history.emplace();
  }
  return handle;
}

// -- splits -----------------------------------------------------------------------------------------------------------

// The coefficient that names a loop in op_it_space_splits; nothing for a loop of one iteration.
std::vector<std::optional<std::int64_t>> loop_keys(const spyre::BufferBody& body) {
  const spyre::LinearForm write = value_of(spyre::parse_linear(body.output_index));
  std::optional<spyre::LinearForm> read;
  if (!body.reduction_ranges.empty()) {
    const spyre::BodyNode& root = body.nodes.at(body.roots.at(0));
    if (root.kind == spyre::BodyKind::kLoad) read = value_of(spyre::parse_linear(root.index));
  }
  std::vector<std::optional<std::int64_t>> keys;
  for (const spyre::IterDim& dim : spyre::iteration_space_of(body.ranges, body.reduction_ranges)) {
    const bool is_output = keys.size() < body.ranges.size();
    if (dim.extent == 1 || (!is_output && !read)) {
      keys.push_back(std::nullopt);
    } else {
      keys.push_back((is_output ? write : *read).coefficient(dim.symbol));
    }
  }
  return keys;
}

void apply_splits(std::vector<spyre::IterDim>& space, const spyre::BufferBody& body, nb::handle buffer) {
  if (!nb::hasattr(buffer, "op_it_space_splits")) return;
  nb::object splits = buffer.attr("op_it_space_splits");
  const auto keys = loop_keys(body);
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (!keys[i]) continue;
    nb::object table = splits[i < body.ranges.size() ? 0 : 1];
    space[i].split = nb::cast<std::int64_t>(table.attr("get")(*keys[i], 1));
  }
}

// -- SpyreKernel ------------------------------------------------------------------------------------------------------

void kernel_init(nb::handle self, nb::handle constants) {
  self.attr("constants") = constants;
  self.attr("current_node") = nb::none();
  self.attr("body_ops") = nb::list();
  self.attr("op_specs") = nb::list();
  self.attr("args") = nb::list();
  self.attr("diagnostics") = nb::list();
  self.attr("provenance_key") = nb::none();
}

// What the next OpSpec is made from, for whoever watches: (operation, mark, place in the body); place -1: of the loop
// nest as a whole.
nb::list body_ops(const spyre::BufferBody& body, const std::vector<std::int64_t>& marks,
                  const std::vector<std::size_t>& nodes, bool stores) {
  nb::list out;
  for (const std::size_t i : nodes) {
    const spyre::BodyNode& node = body.nodes[i];
    const bool is_op = node.kind == spyre::BodyKind::kOp;
    const std::string name = is_op ? node.name : node.kind == spyre::BodyKind::kLoad ? "load" : "constant";
    out.append(nb::make_tuple(name, marks.at(i), i));
  }
  const bool reduces = !body.reduction_type.empty();
  if (reduces) out.append(nb::make_tuple("reduction", 0, -1));
  if (stores) out.append(nb::make_tuple(reduces ? "store_reduction" : "store", 0, -1));
  return out;
}

void kernel_codegen_node(nb::handle self, nb::handle node) {
  self.attr("current_node") = node;
  std::vector<std::int64_t> marks;
  const spyre::BufferBody body = body_of(node.attr("node"), &marks);
  auto& constants = nb::cast<spyre::ConstantTable&>(self.attr("constants"));
  std::vector<std::vector<std::size_t>> made_from;
  const auto specs = value_of(spyre::lower_buffer(body, constants, &made_from));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const spyre::OpSpec& spec = specs[i];
    self.attr("body_ops") = body_ops(body, marks, made_from.at(i), i + 1 == specs.size());
    nb::list args;
    for (const spyre::TensorArg& arg : spec.args) args.append(nb::cast(arg));
    nb::object made = self.attr("create_op_spec")(spec.op, spec.is_reduction, args, json_to_python(spec.op_info));
    self.attr("op_specs").attr("append")(made);
  }
}

nb::object kernel_create_op_spec(nb::handle self, const std::string& op, bool is_reduction, nb::handle args,
                                 nb::handle op_info) {
  nb::object buffer = self.attr("current_node").attr("node");
  const spyre::BufferBody body = body_of(buffer);
  spyre::OpSpec spec;
  spec.op = op;
  spec.is_reduction = is_reduction;
  spec.iteration_space = spyre::iteration_space_of(body.ranges, body.reduction_ranges);
  apply_splits(spec.iteration_space, body, buffer);
  for (nb::handle arg : args) spec.args.push_back(nb::cast<spyre::TensorArg>(arg));
  spec.op_info = json_from_python(op_info);
  spec.debug_handle = handle_of(buffer);
  return to_python(spec);
}

// Whether the wrapper holds a tensor of that name: buffers of the graph that are not private, and constants.
bool is_kernel_argument(const std::string& name, nb::handle graph, const spyre::ConstantTable& constants) {
  const auto& all = constants.all();
  if (std::ranges::find(all, name, &spyre::KernelConstant::name) != all.end()) return true;
  if (nb::cast<bool>(graph.attr("removed_buffers").attr("__contains__")(name))) return false;
  return !graph.attr("try_get_buffer")(name).is_none();
}

std::vector<std::string> number_arguments(std::vector<spyre::OpSpec>& specs, const spyre::ConstantTable& constants) {
  std::vector<std::string> names;
  nb::object graph = current_graph();
  for (spyre::OpSpec& spec : specs) {
    for (spyre::TensorArg& arg : spec.args) {
      arg.arg_index = -1;
      if (!is_kernel_argument(arg.name, graph, constants)) continue;
      auto it = std::ranges::find(names, arg.name);
      if (it == names.end()) it = names.insert(it, arg.name);
      arg.arg_index = it - names.begin();
    }
  }
  return names;
}

std::string kernel_codegen_kernel(nb::handle self) {
  std::vector<spyre::OpSpec> specs;
  for (nb::handle spec : self.attr("op_specs")) specs.push_back(op_spec_from_python(spec));
  const auto names = number_arguments(specs, nb::cast<spyre::ConstantTable&>(self.attr("constants")));
  self.attr("args") = nb::cast(names);
  std::vector<spyre::Diagnostic> diagnostics;
  spyre::EmitOptions options;
  options.keep_splits = true;  // divided by _distribute_work already
  const auto planned = spyre::plan_bundle(specs, options, diagnostics);
  if (!planned) throw std::runtime_error("kerntrail_spyre: " + planned.error().text());
  for (const spyre::Diagnostic& d : diagnostics) {
    self.attr("diagnostics").attr("append")(nb::make_tuple(d.code, d.where, d.message));
  }
  // For whoever asks at this end; what runs computes its own from the text.
  if (const auto key = spyre::kernel_key(spyre::spec_tree_of(specs))) self.attr("provenance_key") = nb::cast(*key);
  return spyre::print_op_specs(specs);
}

// -- SuperDSCScheduling -----------------------------------------------------------------------------------------------

nb::object wrapper_code() { return current_graph().attr("wrapper_code"); }

nb::object features(nb::handle, nb::handle) {
  return nb::module_::import_("torch._inductor.scheduler").attr("OrderedSet")();
}

nb::tuple group_sizes(nb::handle, nb::handle sizes) {
  nb::object simplify = current_graph().attr("sizevars").attr("simplify");
  nb::list groups;
  for (nb::handle group : sizes) {
    nb::list simplified;
    for (nb::handle size : group) simplified.append(simplify(size));
    groups.append(nb::tuple(simplified));
  }
  return nb::tuple(groups);
}

// A result that only nodes of this bundle read lives in the device's pool; the wrapper never allocates it.
void keep_private(const nb::list& nodes) {
  nb::object removed = current_graph().attr("removed_buffers");
  for (nb::handle node : nodes) {
    for (nb::handle output : node.attr("get_outputs")()) {
      nb::object buffer = output.attr("node");
      if (!nb::cast<bool>(buffer.attr("should_allocate")()) || nb::len(nb::object(output.attr("users"))) == 0) continue;
      bool inside = true;
      for (nb::handle user : output.attr("users")) {
        const auto is_user = [&](nb::handle other) { return other.is(user.attr("node")); };
        inside = inside && std::any_of(nodes.begin(), nodes.end(), is_user);
      }
      if (inside) removed.attr("add")(buffer.attr("get_name")());
    }
  }
}

std::string number_text(double value) { return "float('" + nb::cast<std::string>(nb::str(nb::float_(value))) + "')"; }

// Constants first used by this kernel become tensors of the wrapper module, made once.
void define_constants(nb::handle self) {
  const auto& all = nb::cast<spyre::ConstantTable&>(self.attr("constants")).all();
  for (auto i = nb::cast<std::size_t>(self.attr("constants_defined")); i < all.size(); ++i) {
    wrapper_code().attr("header").attr("writeline")(all[i].name + " = spyre_constant_tensor(" +
                                                    number_text(all[i].value) + ", '" +
                                                    std::string(spyre::dtype_name(all[i].dtype)) + "')");
  }
  self.attr("constants_defined") = all.size();
}

void scheduling_flush(nb::handle self) {
  nb::list nodes = nb::cast<nb::list>(self.attr("pending"));
  self.attr("pending") = nb::list();
  if (nb::len(nodes) == 0) return;
  nb::object kernel = nb::module_::import_("kerntrail.spyre.spyre_kernel").attr("SpyreKernel")(self.attr("constants"));
  for (nb::handle node : nodes) kernel.attr("codegen_node")(node);
  keep_private(nodes);  // before mark_run, which announces what the wrapper has to allocate
  for (nb::handle node : nodes) node.attr("mark_run")();
  nb::object source = kernel.attr("codegen_kernel")();
  define_constants(self);
  nb::object name = self.attr("define_kernel")(source, nodes, kernel);
  self.attr("codegen_comment")(nodes, name);  // also tells torch's own provenance of the call
  self.attr("call_kernel")(name, kernel);
}

nb::object scheduling_define_kernel(nb::handle, nb::handle source, nb::handle nodes, nb::handle) {
  nb::object wrapper = wrapper_code();
  nb::object known = wrapper.attr("src_to_kernel").attr("get")(source);
  if (!known.is_none()) return known;
  nb::object utils = nb::module_::import_("torch._inductor.utils");
  const auto fused = nb::cast<std::string>(utils.attr("get_fused_kernel_name")(nodes, "original_aten"));
  const auto suffix = nb::cast<std::string>(wrapper.attr("next_kernel_suffix")());
  nb::str name(("sdsc_" + fused + "_" + suffix).c_str());
  wrapper.attr("src_to_kernel")[source] = name;
  nb::object metadata = utils.attr("get_kernel_metadata")(nodes, wrapper);
  const auto comment = nb::cast<std::string>(metadata[0]) + "\n" + nb::cast<std::string>(metadata[1]);
  // repr(): whatever the text holds, it is one literal on one line.
  const auto body = "async_compile.sdsc(" + nb::cast<std::string>(nb::repr(name)) + ", " +
                    nb::cast<std::string>(nb::repr(source)) + ")";
  wrapper.attr("define_kernel")(name, body, comment, nb::arg("gpu") = false);
  return name;
}

void scheduling_call_kernel(nb::handle, const std::string& name, nb::handle kernel) {
  const auto args = nb::cast<std::string>(nb::str(", ").attr("join")(kernel.attr("args")));
  wrapper_code().attr("writeline")(name + ".run(" + args + ")");
}

}  // namespace

void bind_codegen(nb::module_& m) {
  nb::class_<spyre::ConstantTable>(m, "ConstantTable", "The scalar operands of the kernels of one graph.")
      .def(nb::init<>())
      .def("__len__", [](const spyre::ConstantTable& table) { return table.all().size(); });
}

nb::object make_kernel_class(const std::string& module_name) {
  Members members(module_name);
  members.method("__init__", &kernel_init, nb::arg("constants"));
  members.method("codegen_node", &kernel_codegen_node, nb::arg("node"));
  members.method("create_op_spec", &kernel_create_op_spec, nb::arg("op"), nb::arg("is_reduction"), nb::arg("args"),
                 nb::arg("op_info"));
  members.method("codegen_kernel", &kernel_codegen_kernel);
  return members.make("SpyreKernel", nb::make_tuple());
}

nb::object make_scheduling_class(nb::object base, const std::string& module_name) {
  Members members(module_name);
  members.method(
      "__init__",
      [base](nb::handle self, nb::handle scheduler) {
        base.attr("__init__")(self, scheduler);
        self.attr("pending") = nb::list();
        self.attr("constants") = nb::cast(spyre::ConstantTable{});
        self.attr("constants_defined") = 0;
      },
      nb::arg("scheduler").none());
  members.method("get_backend_features", &features, nb::arg("device"));
  const auto never = [](nb::handle, nb::handle, nb::handle) { return false; };
  members.method("can_fuse_vertical", never, nb::arg("node1"), nb::arg("node2"));
  members.method("can_fuse_horizontal", never, nb::arg("node1"), nb::arg("node2"));
  members.method("group_fn", &group_sizes, nb::arg("sizes"));
  members.method(
      "codegen_node",
      [](nb::handle self, nb::handle node) { self.attr("pending").attr("extend")(node.attr("get_nodes")()); },
      nb::arg("node"));
  members.method("codegen_sync", [](nb::handle) {});
  members.method("ready_to_flush", [](nb::handle) { return false; });
  members.method("flush", &scheduling_flush);
  members.method("define_kernel", &scheduling_define_kernel, nb::arg("src_code"), nb::arg("node_schedule"),
                 nb::arg("kernel"));
  members.method("call_kernel", &scheduling_call_kernel, nb::arg("name"), nb::arg("kernel"));
  return members.make("SuperDSCScheduling", nb::make_tuple(base));
}

nb::object body_parts(nb::handle buffer) {
  std::vector<std::int64_t> marks;
  const spyre::BufferBody body = body_of(buffer, &marks);
  const auto dtype_text = [](const std::optional<spyre::DType>& dtype) -> nb::object {
    return dtype ? nb::object(nb::str(std::string(spyre::dtype_name(*dtype)).c_str())) : nb::none();
  };
  nb::list reads, nodes, parts;
  for (const spyre::HostBuffer& input : body.inputs) reads.append(input.name);
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const spyre::BodyNode& node = body.nodes[i];
    const char* kind = node.kind == spyre::BodyKind::kLoad       ? "load"
                       : node.kind == spyre::BodyKind::kConstant ? "constant"
                                                                 : "op";
    nodes.append(
        nb::make_tuple(kind, node.name, node.index, node.value, dtype_text(node.dtype), node.operands, marks.at(i)));
  }
  for (const spyre::BodyPart& part : value_of(spyre::parts_of(body)))
    parts.append(nb::make_tuple(part.node, dtype_text(part.dtype)));
  nb::dict out;
  out["reads"] = reads;
  out["nodes"] = nodes;
  out["roots"] = nb::cast(body.roots);
  out["device_op"] = body.device_op;
  out["parts"] = parts;
  return out;
}

nb::object distribute_work(nb::handle buffer) {
  const spyre::BufferBody body = body_of(buffer);
  spyre::DivisionRequest request;
  request.stick_elements = spyre::stick_elements(body.output.dtype);
  // Operands of several types are padded to the longest stick, which is a multiple of the others.
  for (const spyre::HostBuffer& input : body.inputs) {
    request.stick_elements = std::max(request.stick_elements, spyre::stick_elements(input.dtype));
  }
  request.is_matmul = body.reduction_type == "batchmatmul";
  const auto space = spyre::iteration_space_of(body.ranges, body.reduction_ranges);
  for (std::size_t i = 0; i < space.size(); ++i) {
    const bool is_output = i < body.ranges.size();
    // The last output loop is the stick of the result; k is the stick of a product's left operand.
    // Either side of a restickify has its own stick.
    const bool is_restickify = body.device_op == "ReStickifyOpHBM";
    const bool is_stick = is_output ? is_restickify || i + 1 == body.ranges.size() : request.is_matmul;
    request.dims.push_back({space[i].extent, is_output, is_stick});
  }
  const auto splits = value_of(spyre::divide_work(request));
  const auto keys = loop_keys(body);
  nb::dict outputs, reductions;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    if (keys[i]) (i < body.ranges.size() ? outputs : reductions)[nb::cast(*keys[i])] = splits[i];
  }
  return nb::make_tuple(outputs, reductions);
}

}  // namespace kerntrail::python
