// What to say of words that name nothing: unknown options, and the known word that may have been meant.
// Must not know: which verbs there are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace kerntrail::cli {

// The candidate nearest to `word` by edit distance, where it is near enough to be meant; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// A usage error of the verb, with the way to its help.
Stop usage(std::string_view verb, std::string_view message);

// Names the first argument that looks like an option and is none, with the nearest that is one.
Stop unknown_argument(std::string_view verb, const CLI::App& app, const std::vector<std::string>& arguments);

// Takes one of `words`; what is none is refused with the nearest that is one.
CLI::Validator one_of(std::vector<std::string> words);

}  // namespace kerntrail::cli
