// Checks on a SuperDSC document: the public validator's rules and the invariants of the format.
// Must not know: how the document was made; it also judges files of other emitters and generations.
#pragma once

#include <vector>

#include "base/json.h"
#include "spyre/plan.h"

namespace kerntrail::spyre {

// Empty where nothing is wrong. `where` is a path inside the document ("0_add.dscs_[0].add.labeledDs_").
// Codes: sdsc-top-key, sdsc-one-dsc, sdsc-cores, sdsc-core-slices, sdsc-dims, sdsc-sizes, sdsc-labels, sdsc-tensors,
// sdsc-folds, sdsc-address, sdsc-compute, sdsc-masking, sdsc-handle.
std::vector<Diagnostic> validate_superdsc(const base::Json& document);

}  // namespace kerntrail::spyre
