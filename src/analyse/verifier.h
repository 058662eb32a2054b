// One compile's claims held against its witness.
// Must not know: which stages a caller wants, sums over compiles.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "kerntrail/verify.h"

namespace kerntrail::analyse {

struct Judged {
  Verification verification;
  bool witnessed = false;  // false: nothing in the compile was witnessed, every claim stays one
};

// `columns`: indices into the pipeline's, in order.
Judged judge_claims(const Capture& capture, const PassIndex& passes, const Pipeline& pipeline,
                    const std::vector<std::size_t>& columns);

}  // namespace kerntrail::analyse
