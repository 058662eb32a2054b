// OpSpecs between C++ and the Python classes of kerntrail/spyre/op_spec.py.
// Must not know: where an OpSpec comes from.
#pragma once

#include <nanobind/nanobind.h>

#include "spyre/op_spec.h"

namespace kerntrail::python {

namespace nb = nanobind;

// The class TensorArg.
void bind_tensor_arg(nb::module_& m);

// Records of a transform history: objects with kind, pass_name and reason.
std::vector<ProvenanceTransform> history_from_python(nb::handle records);

// None where there is no handle.
nb::object to_python(const std::optional<DebugHandle>& handle);
nb::object to_python(const spyre::OpSpec& spec);

// Reads the fields by name; raises where one is missing or of another type.
spyre::OpSpec op_spec_from_python(nb::handle spec);

nb::object json_to_python(const base::Json& json);
base::Json json_from_python(nb::handle value);

}  // namespace kerntrail::python
