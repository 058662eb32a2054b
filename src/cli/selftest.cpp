// `kerntrail selftest`: what the checks are is the Python package's matter.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "cli/common.h"
#include "cli/process.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Checks kerntrail's own answers against an independent second way of finding them.\n"
    "markers: the witness of level truth against constants that are put into the graphs and searched in the kernels'\n"
    "texts. Without a program, on built-in models. The marked program is not the program: its results differ.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail selftest markers                  built-in models\n"
    "  kerntrail selftest markers model.py --steps 1\n"
    "Exit status: 0 agreed, or each difference is explained; 1 a difference that nothing explains, or nothing was\n"
    "compared; 2 usage; the program's own where it failed.";
constexpr std::string_view kMarkers = "markers";

// Up to the word that names the check, and up to the program after it: ours.
std::size_t own_arguments(const std::vector<std::string>& arguments) {
  bool named = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--python") {
      ++i;
    } else if (word.rfind('-', 0) != 0) {
      if (named) return i;
      named = true;
    }
  }
  return arguments.size();
}

}  // namespace

int run_selftest(const std::vector<std::string>& arguments, Streams& streams) {
  std::string what, wanted;
  Arguments parser("selftest", kDescription, kExamples);
  parser.positional("check", &what, "markers. What follows it is a Python program and its own arguments");
  parser.text("--python", &wanted, "PYTHON",
              "Interpreter that runs it; default: the one beside this binary, else python3 on PATH");
  const auto own =
      arguments.begin() + static_cast<std::ptrdiff_t>(std::min(own_arguments(arguments), arguments.size()));
  if (auto ends = parser.parse({arguments.begin(), own})) return stop(*ends, streams);
  if (what != kMarkers) {
    streams.err << fmt::format("kerntrail selftest: unknown check {}; the one there is: {}\n", what, kMarkers);
    return kUsageError;
  }
  const auto python = find_packaged_python(wanted);
  if (!python) {
    streams.err << "kerntrail selftest: " << python.error().message << "\n";
    return kUsageError;
  }
  std::vector<std::string> command{*python, "-m", "kerntrail", "selftest", what};
  command.insert(command.end(), own, arguments.end());
  streams.out.flush();
  const auto ended = run_process(command);
  if (ended) return ended->status;
  streams.err << "kerntrail selftest: " << ended.error().text() << "\n";
  return kUsageError;
}

}  // namespace kerntrail::cli
