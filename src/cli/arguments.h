// Options of one verb: declared as data, parsed by CLI11 in one place, with help that teaches and suggestions for
// misspelt options.
// Must not know: what a verb does.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kerntrail::cli {

// What a verb's `run` returns to the shell.
inline constexpr int kDone = 0;
inline constexpr int kUsageError = 2;
inline constexpr int kUnreadable = 3;  // an input that can't be read, or an output that can't be written

// Ends the verb: an exit code with text for stdout (kDone) or stderr.
struct Stop {
  int exit = kDone;
  std::string text;
};

class Arguments {
 public:
  Arguments(std::string_view verb, std::string_view description, std::string_view examples);

  // `names`: "-o" or "--format"; values go to what `into` points to, which must outlive parse().
  void text(std::string names, std::string* into, std::string metavar, std::string help);
  void choice(std::string names, std::string* into, std::vector<std::string> choices, std::string help);
  // Comma-separated.
  void list(std::string names, std::vector<std::string>* into, std::string metavar, std::string help);
  void flag(std::string names, bool* into, std::string help);
  void positional(std::string name, std::string* into, std::string help);

  // Nothing: go on.
  std::optional<Stop> parse(const std::vector<std::string>& arguments) const;

 private:
  struct Option {
    std::string names, metavar, help;
    std::string* text = nullptr;
    std::vector<std::string>* list = nullptr;
    bool* flag = nullptr;
    std::vector<std::string> choices;
    bool positional = false;
  };

  std::string verb_, description_, examples_;
  std::vector<Option> options_;
};

}  // namespace kerntrail::cli
