#include "cli/program_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "cli/unknown_option.h"

namespace kerntrail::cli {
namespace {

Stop refused(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream good, bad;
  const int code = app.exit(error, good, bad);
  return code == 0 ? Stop{kDone, good.str()} : Stop{kUsageError, bad.str()};
}

// The first argument that is neither an option of the verb nor its value.
std::size_t program_position(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") return i;
    if (argument.size() < 2 || argument[0] != '-') return i;
    const bool has_value = argument.find('=') != std::string::npos;
    const CLI::Option* option = app.get_option_no_throw(argument.substr(0, argument.find('=')));
    if (option && option->get_expected_min() > 0 && !has_value) ++i;
  }
  return arguments.size();
}

}  // namespace

ProgramArguments split_program(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::size_t at = program_position(app, arguments);
  ProgramArguments out;
  out.own.assign(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(at));
  std::size_t next = at;
  if (next < arguments.size() && arguments[next] == "--") ++next;
  if (next < arguments.size()) out.program = arguments[next++];
  if (next < arguments.size())
    out.arguments.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  return out;
}

std::optional<Stop> parse_own(const std::string& verb, CLI::App& app, std::vector<std::string> own) {
  std::reverse(own.begin(), own.end());  // CLI11 takes its vector backwards
  try {
    app.parse(own);
  } catch (const CLI::ExtrasError&) {
    return unknown_argument(verb, app, own);
  } catch (const CLI::ParseError& error) {
    return refused(app, error);
  }
  return std::nullopt;
}

Stop no_program(const std::string& verb) {
  return {kUsageError, "kerntrail " + verb + ": name the program to run, e.g. kerntrail " + verb +
                           " model.py (--help shows more)\n"};
}

}  // namespace kerntrail::cli
