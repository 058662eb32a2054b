// What the reading verbs share: the capture argument, its warnings, where results go.
// Must not know: analyses, formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "cli/verbs.h"
#include "kerntrail/capture.h"
#include "kerntrail/expected.h"
#include "kerntrail/options.h"

namespace kerntrail::cli {

// Capture, -o, --compile and --stages, as far as a verb has them.
struct CommonOptions {
  std::string capture;
  std::string output;  // empty: standard output
  AnalysisOptions analysis;
};

void add_capture(Arguments& arguments, CommonOptions& options);
void add_analysis(Arguments& arguments, CommonOptions& options, bool with_stages);

// Writes the stop's text where it belongs and gives its exit code.
int stop(const Stop& stop, Streams& streams);
// Says the error; kUsage gives kUsageError, all others kUnreadable.
int refuse(std::string_view verb, const Error& error, Streams& streams);
// The same for a file that is no capture, with the verb that reads it where it is a sidecar.
int refuse_capture(std::string_view verb, const Error& error, const std::string& path, Streams& streams);

using SourcePlace = std::pair<std::string, std::int64_t>;  // file, line
// "file.py:25" of the lines of that file with the number nearest to the one asked for; empty where the file is none of
// these, or `asked` names no line.
std::string nearest_line(std::string_view asked, const std::vector<SourcePlace>& lines);

// Reads the capture and says on `err` what a reader should know: torn, partial, nothing compiled, not observed.
Expected<Capture> load(const CommonOptions& options, std::string_view verb, Streams& streams);

// To -o or to stdout. kDone, or kUnreadable with a message.
int deliver(const std::string& result, const CommonOptions& options, std::string_view verb, Streams& streams);

}  // namespace kerntrail::cli
