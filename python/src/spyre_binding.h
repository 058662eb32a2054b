// The Spyre-format back end for Python: submodule kerntrail._native.spyre.
// Must not know: the probe.
#pragma once

#include <nanobind/nanobind.h>

namespace kerntrail::python {

void bind_spyre(nanobind::module_& m);

}  // namespace kerntrail::python
