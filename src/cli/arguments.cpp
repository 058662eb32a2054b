#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/strings.h"

namespace kerntrail::cli {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

Stop usage(std::string_view verb, std::string message) {
  return {kUsageError, fmt::format("kerntrail {}: {}\nTry: kerntrail {} --help\n", verb, message, verb)};
}

// The first argument that looks like an option and is none.
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

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  if (word.size() > 100) return best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

Arguments::Arguments(std::string_view verb, std::string_view description, std::string_view examples)
    : verb_(verb), description_(description), examples_(examples) {}

void Arguments::text(std::string names, std::string* into, std::string metavar, std::string help) {
  options_.push_back({std::move(names), std::move(metavar), std::move(help), into, nullptr, nullptr, {}, false});
}

void Arguments::choice(std::string names, std::string* into, std::vector<std::string> choices, std::string help) {
  options_.push_back({std::move(names), {}, std::move(help), into, nullptr, nullptr, std::move(choices), false});
}

void Arguments::list(std::string names, std::vector<std::string>* into, std::string metavar, std::string help) {
  options_.push_back({std::move(names), std::move(metavar), std::move(help), nullptr, into, nullptr, {}, false});
}

void Arguments::flag(std::string names, bool* into, std::string help) {
  options_.push_back({std::move(names), {}, std::move(help), nullptr, nullptr, into, {}, false});
}

void Arguments::positional(std::string name, std::string* into, std::string help) {
  options_.push_back({std::move(name), {}, std::move(help), into, nullptr, nullptr, {}, true});
}

std::optional<Stop> Arguments::parse(const std::vector<std::string>& arguments) const {
  CLI::App app(description_, "kerntrail " + verb_);
  app.footer(examples_);
  app.get_formatter()->column_width(28);
  std::vector<std::string> lists(options_.size());
  for (std::size_t i = 0; i < options_.size(); ++i) {
    const Option& option = options_[i];
    CLI::Option* made = nullptr;
    if (option.flag != nullptr) {
      made = app.add_flag(option.names, *option.flag, option.help);
    } else if (option.list != nullptr) {
      made = app.add_option(option.names, lists[i], option.help);
    } else {
      made = app.add_option(option.names, *option.text, option.help);
    }
    if (!option.metavar.empty()) made->type_name(option.metavar);
    if (option.positional) made->required()->type_name("");
    if (!option.choices.empty()) {
      made->check(CLI::IsMember(option.choices).description(""))
          ->type_name(base::join(option.choices, "|"))
          ->capture_default_str();
    }
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return Stop{kDone, app.help()};
  } catch (const CLI::ExtrasError&) {
    return unknown_argument(verb_, app, arguments);
  } catch (const CLI::RequiredError& error) {
    return usage(verb_, error.what());
  } catch (const CLI::ParseError& error) {
    return usage(verb_, error.what());
  }
  for (std::size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].list == nullptr) continue;
    for (std::string_view part : base::split(lists[i], ',')) {
      if (!base::trim(part).empty()) options_[i].list->emplace_back(base::trim(part));
    }
  }
  return std::nullopt;
}

}  // namespace kerntrail::cli
