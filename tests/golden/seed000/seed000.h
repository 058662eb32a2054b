// The reference model's run as a capture: exactly the facts of the reference report, made by hand.
// Must not know: what the analyses make of them.
#pragma once

#include <string>

#include "kerntrail/capture.h"

namespace kerntrail::testing {

struct Built {
  Capture capture;
  std::string ndjson;
};

// `with_aten`: also the graph entering the post-grad passes, which the reference did not look at.
Built build_seed000(bool with_aten = false);

}  // namespace kerntrail::testing
