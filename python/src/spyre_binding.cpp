#include "spyre_binding.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "spyre/bundle.h"
#include "spyre/executor.h"
#include "spyre_body.h"
#include "spyre_codegen.h"
#include "spyre_op_spec.h"
#include "spyre_sidecar.h"

namespace kerntrail::python {
namespace {

[[noreturn]] void raise(const Error& error) { throw std::runtime_error("kerntrail_spyre: " + error.text()); }

// A kernel that can be called: the checked program, and what the bundle's writer had to say.
struct RunnableKernel {
  spyre::HostKernel kernel;
  std::vector<std::string> files;
  std::vector<std::tuple<std::string, std::string, std::string>> diagnostics;  // code, where, message
};

// OpSpecs as they were read; each becomes a Python object where somebody asks for it.
struct OpSpecList {
  std::vector<spyre::OpSpec> specs;
};

OpSpecList read_op_specs(const std::string& text) {
  auto specs = spyre::parse_op_specs(text);
  if (!specs) raise(specs.error());
  return {std::move(*specs)};
}

RunnableKernel build_kernel(nb::handle op_specs, const std::string& directory) {
  const std::vector<spyre::OpSpec> specs = op_specs_from(op_specs);
  std::vector<spyre::Diagnostic> diagnostics;
  spyre::EmitOptions options;
  options.keep_splits = true;
  options.generation = spyre::generation_of(specs);
  auto files = spyre::write_bundle(directory, specs, options, diagnostics);
  if (!files) raise(files.error());
  auto kernel = spyre::HostKernel::prepare(specs);
  if (!kernel) raise(kernel.error());
  RunnableKernel result{std::move(*kernel), std::move(*files), {}};
  for (spyre::Diagnostic& d : diagnostics) result.diagnostics.emplace_back(d.code, d.where, d.message);
  return result;
}

// The address of a tensor's first element, after checking that the kernel may use what lies there.
void* checked_pointer(nb::handle tensor, const spyre::KernelArgument& argument) {
  if (dtype_of(tensor.attr("dtype")) != argument.dtype || !nb::cast<bool>(tensor.attr("is_cpu"))) {
    throw std::runtime_error("kerntrail_spyre: argument " + argument.name + " is not a cpu tensor of type " +
                             std::string(spyre::dtype_name(argument.dtype)));
  }
  const auto bytes = nb::cast<std::int64_t>(tensor.attr("untyped_storage")().attr("nbytes")());
  const auto offset = nb::cast<std::int64_t>(tensor.attr("storage_offset")());
  const auto size = static_cast<std::int64_t>(spyre::dtype_size(argument.dtype));
  if (bytes - offset * size < static_cast<std::int64_t>(argument.elements) * size) {
    throw std::runtime_error("kerntrail_spyre: argument " + argument.name + " is too small");
  }
  return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(tensor.attr("data_ptr")()));
}

void run_kernel(const RunnableKernel& runnable, const nb::tuple& tensors) {
  const auto& arguments = runnable.kernel.arguments();
  if (nb::len(tensors) != arguments.size()) {
    throw std::runtime_error("kerntrail_spyre: " + std::to_string(nb::len(tensors)) + " tensors for " +
                             std::to_string(arguments.size()) + " arguments");
  }
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < arguments.size(); ++i) pointers.push_back(checked_pointer(tensors[i], arguments[i]));
  Expected<void> done;
  {
    nb::gil_scoped_release unlocked;  // `tensors` keeps the memory alive
    done = runnable.kernel.run(pointers);
  }
  if (!done) raise(done.error());
}

}  // namespace

std::vector<spyre::OpSpec> op_specs_from(nb::handle given) {
  if (nb::isinstance<nb::str>(given)) return read_op_specs(nb::cast<std::string>(given)).specs;
  if (nb::isinstance<OpSpecList>(given)) return nb::cast<OpSpecList&>(given).specs;
  std::vector<spyre::OpSpec> specs;
  for (nb::handle spec : given) specs.push_back(op_spec_from_python(spec));
  return specs;
}

void bind_spyre(nb::module_& m) {
  m.doc() = "The Spyre-format back end: recorder, lowering to OpSpecs, kernels, bundles and the host executor.";
  bind_body(m);
  bind_tensor_arg(m);
  bind_codegen(m);
  bind_sidecar(m);
  m.def("make_recorder_class", &make_recorder_class, nb::arg("base"), nb::arg("module_name"));
  m.def("make_kernel_class", &make_kernel_class, nb::arg("module_name"));
  m.def("make_scheduling_class", &make_scheduling_class, nb::arg("base"), nb::arg("module_name"));
  m.def("distribute_work", &distribute_work, nb::arg("buffer"),
        "Splits of a ComputedBuffer's loops over the cores: ({write coefficient: split}, {read coefficient: split}).");
  m.def("body_parts", &body_parts, nb::arg("buffer"),
        "What a ComputedBuffer's body holds: a dict with reads, nodes, roots, device_op, parts (spyre_codegen.h).");
  m.def(
      "print_op_specs",
      [](nb::handle specs) {
        std::vector<spyre::OpSpec> list;
        for (nb::handle spec : specs) list.push_back(op_spec_from_python(spec));
        return spyre::print_op_specs(list);
      },
      nb::arg("op_specs"), "The text that is embedded in a generated wrapper.");
  m.def(
      "parse_op_specs",
      [](const std::string& text) {
        auto specs = spyre::parse_op_specs(text);
        if (!specs) raise(specs.error());
        nb::list list;
        for (const spyre::OpSpec& spec : *specs) list.append(to_python(spec));
        return list;
      },
      nb::arg("text"));
  nb::class_<RunnableKernel>(m, "RunnableKernel", "A kernel that runs on the host, with its bundle on disk.")
      .def("run", &run_kernel, nb::arg("tensors"), "Reads and writes the tensors, given in argument order.")
      .def_ro("files", &RunnableKernel::files, "Names of the bundle's files, in order.")
      .def_ro("diagnostics", &RunnableKernel::diagnostics, "(code, where, message) from the bundle's writer.");
  nb::class_<OpSpecList>(m, "OpSpecList", "OpSpecs read from a text, in order.")
      .def("__len__", [](const OpSpecList& list) { return list.specs.size(); })
      .def(
          "__getitem__",
          [](const OpSpecList& list, std::size_t i) {
            if (i >= list.specs.size()) throw nb::index_error();
            return to_python(list.specs[i]);
          },
          nb::arg("index"));
  m.def("read_op_specs", &read_op_specs, nb::arg("text"));
  m.def(
      "build_kernel", &build_kernel, nb::arg("op_specs"), nb::arg("directory"),
      "Writes the bundle of OpSpecs (their text, what read_op_specs gave, or objects) into the directory and prepares "
      "the kernel.");
}

}  // namespace kerntrail::python
