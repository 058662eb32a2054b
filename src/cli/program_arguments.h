// Command lines of verbs that run a program: options up to the program's name are the verb's, all after it is the
// program's own.
// Must not know: any verb.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace CLI {
class App;
}

namespace kerntrail::cli {

struct ProgramArguments {
  std::vector<std::string> own;  // the verb's
  std::string program;           // empty: none is named
  std::vector<std::string> arguments;
};

ProgramArguments split_program(const CLI::App& app, const std::vector<std::string>& arguments);

// Parses what is the verb's own into what `app` was given. A stop: --help, or a usage error.
std::optional<Stop> parse_own(const std::string& verb, CLI::App& app, std::vector<std::string> own);

Stop no_program(const std::string& verb);

}  // namespace kerntrail::cli
