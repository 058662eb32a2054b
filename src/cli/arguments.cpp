#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "base/strings.h"
#include "cli/unknown_option.h"

namespace kerntrail::cli {
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
      made->check(one_of(option.choices))->type_name(base::join(option.choices, "|"))->capture_default_str();
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
