#include "cli/unknown_option.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/strings.h"

namespace kerntrail::cli {
Stop usage(std::string_view verb, std::string_view message) {
  return {kUsageError, fmt::format("kerntrail {}: {}\nTry: kerntrail {} --help\n", verb, message, verb)};
}

Stop unknown_argument(std::string_view verb, const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (const std::string& name : option->get_snames()) known.push_back("-" + name);
  }
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name.size() < 2 || name[0] != '-' || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest(name, known);
    return usage(verb, fmt::format("unknown option {}{}", name, near.empty() ? "" : "; did you mean " + near + "?"));
  }
  return usage(verb, "too many arguments");
}

CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](const std::string& word) {
        if (std::find(words.begin(), words.end(), word) != words.end()) return std::string();
        const std::string near = nearest(word, words);
        return fmt::format("\"{}\" is none of {}{}", word, base::join(words, ", "),
                           near.empty() ? "" : "; did you mean " + near + "?");
      },
      "");
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  return base::nearest(word, candidates);
}

}  // namespace kerntrail::cli
