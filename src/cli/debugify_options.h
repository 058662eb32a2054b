// Options of `debugify`: one parser for the binary and for `python -m kerntrail debugify`.
// Must not know: how a program is run.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kerntrail::cli {

struct DebugifyOptions {
  std::string output;               // empty: standard output
  std::string format = "text";      // text or json
  std::vector<std::string> stages;  // as named in `kerntrail debugify --help`, in their order
  std::string pass;                 // "module:function"; empty: the stages' own passes
  std::vector<std::string> allow, fields;  // `fields` empty: all
  std::string python;   // interpreter; empty: beside the binary, else python3 on PATH
  std::string backend;  // for compiles that name none; empty: torch's default
  bool is_module = false;
  std::string program;
  std::vector<std::string> arguments;
};

// What parsing gave: options, or an exit status with text that was asked for (--help) or explains a usage error.
struct ParsedDebugify {
  std::optional<DebugifyOptions> options;
  int exit = 0;
  std::string text;  // to stdout when exit is 0, else to stderr
};

// `arguments`: what follows the verb.
ParsedDebugify parse_debugify(const std::vector<std::string>& arguments);

// The arguments of `python -m kerntrail debugify` that say the same, with the result going to `result`.
std::vector<std::string> debugify_arguments(const DebugifyOptions& options, const std::string& result);

}  // namespace kerntrail::cli
