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

// A ComputedBuffer's body as plain Python data:
// reads: names of the buffers it loads, in order of first use;
// nodes: (kind, name, index, value, dtype, operands, mark) each, kind "load", "constant" or "op", dtype or None;
// roots: numbers of the stored nodes; device_op: the one operation the body is, or "";
// parts: (node, dtype) for each operation that needs a place of its own, in order, the stored one last; empty where the
// body is one operation.
nb::object body_parts(nb::handle buffer);

// Splits of one ComputedBuffer's loops over the cores: ({coefficient in the write index: split},
// {coefficient in the first read index: split}), without the loops of one iteration.
nb::object distribute_work(nb::handle buffer);

}  // namespace kerntrail::python
