// The classes SpyreKernel and SuperDSCScheduling: their bodies are here, their types are made in Python's terms.
// They call one another through the Python attributes of these classes, so that whoever wraps one sees every call.
// Must not know: how a bundle is written or run.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace kerntrail::python {

namespace nb = nanobind;

void bind_codegen(nb::module_& m);

// SpyreKernel(constants): attributes current_node, op_specs, args; methods codegen_node, create_op_spec,
// codegen_kernel.
nb::object make_kernel_class(const std::string& module_name);
// A subclass of Inductor's BaseScheduling.
nb::object make_scheduling_class(nb::object base, const std::string& module_name);

// Splits of one ComputedBuffer's loops over the cores: ({coefficient in the write index: split},
// {coefficient in the first read index: split}), without the loops of one iteration.
nb::object distribute_work(nb::handle buffer);

}  // namespace kerntrail::python
