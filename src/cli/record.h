// The verbs that run a Python program: record, audit (record + report), debugify.
// Must not know: how the others are registered.
#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"

namespace kerntrail::cli {

// Arguments after the verb; the result is the exit status.
int run_record(const std::vector<std::string>& arguments);
int run_audit(const std::vector<std::string>& arguments);
int run_debugify(const std::vector<std::string>& arguments, Streams& streams);

}  // namespace kerntrail::cli
