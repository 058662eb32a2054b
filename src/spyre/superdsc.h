// One planned OpSpec as the text of one SuperDSC file.
// Must not know: how the plan came about, files and directories (bundle.h).
#pragma once

#include <cstdint>
#include <string>

#include "kerntrail/expected.h"
#include "spyre/op_spec.h"
#include "spyre/plan.h"

namespace kerntrail::spyre {

// The exact bytes of sdsc_<ordinal>.json: Python's json.dumps(indent=2), no final newline.
// `spec` must have its device side (plan_bundle, or given). Errors: kUnsupported, kSchema.
Expected<std::string> superdsc_json(const OpSpec& spec, std::int64_t ordinal, const EmitOptions& options);

}  // namespace kerntrail::spyre
