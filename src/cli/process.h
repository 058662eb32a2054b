// Starting the Python side: finding an interpreter and running a program in it.
// Must not know: what is run.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::cli {

// The interpreter for `record`: `wanted` if not empty, else the python beside this binary, else python3 on PATH.
Expected<std::string> find_python(const std::string& wanted);

// Runs a program, standard streams shared, and waits. Ctrl-C goes to the child as the terminal sends it; the result is
// its exit status, or 128 + signal.
Expected<int> run_process(const std::vector<std::string>& command);

// Runs a program with its output dropped: true when it exits with 0.
bool succeeds(const std::vector<std::string>& command);

}  // namespace kerntrail::cli
