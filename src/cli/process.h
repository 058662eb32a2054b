// Starting the Python side: finding an interpreter and running a program in it.
// Must not know: what is run.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::cli {

// The interpreter for `record`: `wanted` if not empty, else the python beside this binary, else python3 on PATH.
Expected<std::string> find_python(const std::string& wanted);

// The same, which must have the kerntrail package; the error says what is missing.
Expected<std::string> find_packaged_python(const std::string& wanted);

// kUsage where `program` is no file that could be run.
Expected<void> check_program(const std::string& program);

// How a program ended.
struct Exit {
  int status = 0;  // its own, or 128 + signal as a shell gives it
  int signal = 0;  // 0: it ended by itself
};

// Runs a program, standard streams shared, and waits. Ctrl-C goes to the child as the terminal sends it.
Expected<Exit> run_process(const std::vector<std::string>& command);

// Runs a program with its output dropped: true when it exits with 0.
bool succeeds(const std::vector<std::string>& command);

}  // namespace kerntrail::cli
