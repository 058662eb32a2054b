// The Spyre-format back end for Python: submodule kerntrail._native.spyre.
// Must not know: the probe.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "spyre/op_spec.h"

namespace kerntrail::python {

void bind_spyre(nanobind::module_& m);

// From a text, from what read_op_specs gave, or from OpSpecs.
std::vector<spyre::OpSpec> op_specs_from(nanobind::handle given);

}  // namespace kerntrail::python
