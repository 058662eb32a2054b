// Kernel identities and the sidecar for Python: describe_kernel, CompileRecord.
// Must not know: torch; Python hands over what it sees of torch's tables as JSON.
#pragma once

#include <nanobind/nanobind.h>

namespace kerntrail::python {

namespace nb = nanobind;

void bind_sidecar(nb::module_& m);

// Identity of OpSpecs in any form that build_kernel takes; raises RuntimeError where they have none.
nb::object describe_op_specs(nb::handle op_specs);

}  // namespace kerntrail::python
