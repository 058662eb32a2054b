// What `info` and `validate` do with a Spyre bundle in place of a capture.
// Must not know: captures.
#pragma once

#include <string>
#include <vector>

#include "cli/common.h"

namespace kerntrail::cli {

inline constexpr int kUnsound = 1;  // a bundle that breaks a rule, or whose numbers are wrong

// `bundles`: their paths, one or several; several only as text. `format`: "text", "json", or "specs": the OpSpecs, as
// `emit` reads them.
int show_bundles(const CommonOptions& options, const std::vector<std::string>& bundles, const std::string& format,
                 Streams& streams);

struct BundleCheck {
  bool execute = false;
  std::string specs;  // file of the OpSpecs to compare with; empty: those that the bundle gives
};

int check_bundles(const CommonOptions& options, const std::vector<std::string>& bundles, const std::string& format,
                  const BundleCheck& check, Streams& streams);

}  // namespace kerntrail::cli
