#include "spyre_sidecar.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "spyre/event_name.h"
#include "spyre/sidecar_compile.h"
#include "spyre/sidecar_publish.h"
#include "spyre_binding.h"

namespace kerntrail::python {
namespace {

[[noreturn]] void raise(const Error& error) { throw std::runtime_error("kerntrail_spyre: " + error.text()); }

template <class T>
T value_of(Expected<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

struct KernelName {
  std::string key, event_name;
  std::vector<std::string> debug_handles, aten_ops;
};

KernelName name_of(const spyre::KernelDescriptor& descriptor) {
  KernelName out{
      descriptor.key, value_of(spyre::event_name_base(descriptor.aten_ops, descriptor.key)), {}, descriptor.aten_ops};
  for (const std::uint64_t id : descriptor.debug_handle_ids) out.debug_handles.push_back(std::to_string(id));
  return out;
}

spyre::Names names_of(const base::Json& list) {
  spyre::Names out;
  for (const base::Json& name : list.as_array()) out.emplace_back(name.as_string());
  return out;
}

spyre::NameLists lists_of(const base::Json& object) {
  spyre::NameLists out;
  for (const auto& [key, list] : object.as_object()) out.emplace(key, names_of(list));
  return out;
}

// `mapping`: torch's node mapping document; `kernels`: its kernel information, by alias.
void set_upstream(spyre::CompileRecord& compile, const std::string& mapping, const std::string& kernels) {
  const base::Json maps = value_of(base::Json::parse(mapping));
  compile.upstream.pre_to_post = lists_of(maps["preToPost"]);
  compile.upstream.kernel_to_post = lists_of(maps["cppCodeToPost"]);
  const base::Json contexts = value_of(base::Json::parse(kernels));
  for (const auto& [alias, context] : contexts.as_object()) {
    compile.upstream.stack_contexts[alias] = {names_of(context["stack_traces"]), names_of(context["post_grad_nodes"]),
                                              names_of(context["pre_grad_nodes"])};
  }
}

void add_kernel(spyre::CompileRecord& compile, const std::string& name, nb::handle op_specs) {
  spyre::CompiledKernel kernel{name, std::nullopt};
  if (!op_specs.is_none()) kernel.specs = spyre::spec_tree_of(op_specs_from(op_specs));
  compile.kernels.push_back(std::move(kernel));
}

// What this compile adds: its text, and why kernels have no identity.
nb::tuple text_of(const spyre::CompileRecord& compile) {
  std::vector<std::string> reasons;
  const spyre::Sidecar sidecar = value_of(spyre::sidecar_of(compile, &reasons));
  return nb::make_tuple(spyre::print_sidecar(sidecar), reasons);
}

std::string publish(const spyre::CompileRecord& compile, const std::string& path) {
  const spyre::Sidecar sidecar = value_of(spyre::sidecar_of(compile));
  nb::gil_scoped_release unlocked;  // another process may hold the folder
  return std::string(spyre::publication_name(value_of(spyre::publish_sidecar(path, sidecar))));
}

}  // namespace

nb::object describe_op_specs(nb::handle op_specs) {
  return nb::cast(name_of(value_of(spyre::describe_kernel(spyre::spec_tree_of(op_specs_from(op_specs))))));
}

void bind_sidecar(nb::module_& m) {
  using spyre::CompileRecord;
  nb::class_<KernelName>(m, "KernelName", "What a kernel is, and the name of its events.")
      .def_ro("key", &KernelName::key, "Hash over the finished OpSpecs, the same wherever it is computed.")
      .def_ro("event_name", &KernelName::event_name, "spyre_kernel_v1_<display>_<key>, without a step.")
      .def_ro("debug_handles", &KernelName::debug_handles, "Ids of the handles of its operations, as decimal strings.")
      .def_ro("aten_ops", &KernelName::aten_ops);
  m.def("describe_kernel", &describe_op_specs, nb::arg("op_specs"),
        "The identity of OpSpecs (their text, what read_op_specs gave, or objects).");
  nb::class_<CompileRecord>(m, "CompileRecord", "What one executed wrapper puts into the sidecar.")
      .def(nb::init<>())
      .def_rw("spyre_version", &CompileRecord::spyre_version)
      .def_rw("torch_version", &CompileRecord::torch_version)
      .def_rw("tracking_level", &CompileRecord::tracking_level)
      .def_rw("structured_tracing", &CompileRecord::structured_tracing)
      .def_rw("live_graph", &CompileRecord::live_graph, "False: torch's tables are not of this wrapper.")
      .def("__len__", [](const CompileRecord& compile) { return compile.kernels.size(); })
      .def("add_kernel", &add_kernel, nb::arg("name"), nb::arg("op_specs").none(),
           "In the order of the wrapper; None: the kernel's OpSpecs can't be read.")
      .def("set_upstream", &set_upstream, nb::arg("mapping"), nb::arg("kernels"),
           "torch's node mapping and kernel information, as JSON.")
      .def("text", &text_of, "(the sidecar of this compile alone, [\"kernel: why it has no identity\"])")
      .def("publish", &publish, nb::arg("path"), "Merges into the file: \"written\", \"unchanged\", \"disabled\".");
}

}  // namespace kerntrail::python
