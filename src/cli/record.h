// The verbs that run a Python program: record, and audit (record + report).
// Must not know: how the others are registered.
#pragma once

#include <string>
#include <vector>

namespace kerntrail::cli {

// Arguments after the verb; the result is the exit status.
int run_record(const std::vector<std::string>& arguments);
int run_audit(const std::vector<std::string>& arguments);

}  // namespace kerntrail::cli
