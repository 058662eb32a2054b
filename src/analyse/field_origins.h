// How the values of a field came to be where they are: traced, copied, generated or written, and by whom.
// Must not know: losses, output formats.
#pragma once

#include <vector>

#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "kerntrail/analysis.h"

namespace kerntrail::analyse {

// Of every tracked field of the pipeline, in the order of the attribute table.
std::vector<FieldOrigin> field_origins(const Capture& capture, const PassIndex& passes, const Pipeline& pipeline);

}  // namespace kerntrail::analyse
