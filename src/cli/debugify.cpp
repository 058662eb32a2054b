// `kerntrail debugify`: the program and the judging run in Python, here the result is brought to where it belongs.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <ostream>

#include "base/files.h"
#include "cli/common.h"
#include "cli/debugify_options.h"
#include "cli/process.h"
#include "cli/record.h"

namespace kerntrail::cli {
namespace {

namespace fs = std::filesystem;

// A folder of this run's own, removed with all that is in it.
class Workplace {
 public:
  Workplace() {
    std::error_code ec;
    std::string name = (fs::temp_directory_path(ec) / "kerntrail_debugify_XXXXXX").string();
    if (!ec && ::mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~Workplace() {
    std::error_code ec;
    if (!folder_.empty()) fs::remove_all(folder_, ec);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  bool is_there() const { return !folder_.empty(); }
  std::string result() const { return (folder_ / "result").string(); }

 private:
  fs::path folder_;
};

Expected<std::string> check(const DebugifyOptions& options) {
  if (!options.is_module) KERNTRAIL_CHECK(check_program(options.program));
  return find_packaged_python(options.python);
}

}  // namespace

int run_debugify(const std::vector<std::string>& arguments, Streams& streams) {
  const ParsedDebugify parsed = parse_debugify(arguments);
  if (!parsed.options) return stop({parsed.exit, parsed.text}, streams);
  const DebugifyOptions& options = *parsed.options;
  const auto python = check(options);
  if (!python) return refuse("debugify", python.error(), streams);
  const Workplace workplace;
  if (!workplace.is_there()) return stop({kUnreadable, "kerntrail debugify: can't make a temporary folder\n"}, streams);
  std::vector<std::string> command{*python, "-m", "kerntrail", "debugify"};
  for (std::string& argument : debugify_arguments(options, workplace.result())) command.push_back(std::move(argument));
  const auto ended = run_process(command);
  if (!ended) return refuse("debugify", ended.error(), streams);
  const auto result = base::read_file(workplace.result());
  if (!result) {
    if (ended->signal == 0 && ended->status == kUsageError) return kUsageError;  // it said why
    const std::string how = ended->signal == 0
                                ? fmt::format("exited with {}", ended->status)
                                : fmt::format("was ended by signal {} ({})", ended->signal, strsignal(ended->signal));
    return stop({kUnreadable, fmt::format("kerntrail debugify: the program {} before the ledgers were written\n", how)},
                streams);
  }
  CommonOptions common;
  common.output = options.output;
  const int delivered = deliver(*result, common, "debugify", streams);
  return delivered == kDone ? ended->status : delivered;
}

}  // namespace kerntrail::cli
