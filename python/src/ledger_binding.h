// kerntrail._native.ledger: synthetic provenance and the judging of what a pass did with it, for kerntrail.testing.
// Must not know: torch.
#pragma once

#include <nanobind/nanobind.h>

namespace kerntrail::python {

void bind_ledger(nanobind::module_& m);

}  // namespace kerntrail::python
