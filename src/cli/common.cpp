#include "cli/common.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "base/files.h"
#include "base/strings.h"
#include "kerntrail/version.h"
#include "read/bundle_capture.h"
#include "read/capture_reader.h"
#include "render/text.h"
#include "render/wording.h"
#include "spyre/sidecar.h"

namespace kerntrail::cli {

void add_capture(Arguments& arguments, CommonOptions& options) {
  arguments.positional("CAPTURE", &options.capture,
                       "Capture file (.ndjson, .gz, .zst), - for standard input, or the folder of a Spyre bundle");
  arguments.text("-o,--output", &options.output, "FILE",
                 "Write the result there instead of to standard output; folders that are missing are made");
}

void add_analysis(Arguments& arguments, CommonOptions& options, bool with_stages) {
  arguments.text("--compile", &options.analysis.compile, "ID", "Only this compile, e.g. c1 (see kerntrail info)");
  if (with_stages) {
    arguments.list("--stages", &options.analysis.stages, "KEY,...",
                   "Stages to show, e.g. fx_pre_grad,fx_aten,kernel; all: every captured one");
  }
}

int stop(const Stop& stop, Streams& streams) {
  (stop.exit == kDone ? streams.out : streams.err) << stop.text;
  return stop.exit;
}

int refuse(std::string_view verb, const Error& error, Streams& streams) {
  streams.err << fmt::format("kerntrail {}: {}\n", verb, render::visible(error.text()));
  return error.code == ErrorCode::kUsage ? kUsageError : kUnreadable;
}

int refuse_capture(std::string_view verb, const Error& error, const std::string& path, Streams& streams) {
  if (error.code != ErrorCode::kSyntax || !spyre::read_sidecar(path)) return refuse(verb, error, streams);
  return refuse(verb, Error{error.code, "is a sidecar, no capture: kerntrail sidecar reads it", path}, streams);
}

std::string nearest_line(std::string_view asked, const std::vector<SourcePlace>& lines) {
  const std::size_t colon = asked.rfind(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view file = asked.substr(0, colon);
  std::int64_t number = 0;
  const char* end = asked.data() + asked.size();
  if (std::from_chars(asked.data() + colon + 1, end, number).ptr != end) return {};
  const SourcePlace* best = nullptr;
  for (const SourcePlace& line : lines) {
    if (base::basename(line.first) != base::basename(file)) continue;
    if (best == nullptr || std::abs(line.second - number) < std::abs(best->second - number)) best = &line;
  }
  return best == nullptr ? std::string() : fmt::format("{}:{}", best->first, best->second);
}

Expected<Capture> load(const CommonOptions& options, std::string_view verb, Streams& streams) {
  const bool of_files = !read::bundles_in(options.capture).empty();
  auto capture = of_files ? read::read_bundle_capture(options.capture, "kerntrail " + std::string(version()))
                          : read::read_capture(options.capture);
  if (!capture) return capture;
  const auto say = [&](std::string_view text) {
    streams.err << fmt::format("kerntrail {}: {}\n", verb, render::visible(text));
  };
  if (!capture->end) {
    for (const Note& note : capture->notes) {
      if (note.code == "torn-capture") say("the capture is torn: " + note.text);
    }
  } else if (!capture->end->complete) {
    say("the capture is partial: something was lost while it was made (see kerntrail info)");
  }
  if (capture->compiles.empty())
    say(capture->end ? "nothing was compiled while this capture was made"
                     : "it holds no compile: it broke off before one, or none was made");
  for (const render::NoteGroup& group : render::merged_notes(capture->notes)) {
    if (group.note->code != "not-observed" || group.compiles.empty()) continue;
    constexpr std::string_view kSaidTwice = "not observed: ";
    std::string why = group.note->text;
    if (why.starts_with(kSaidTwice)) why.erase(0, kSaidTwice.size());
    const bool one = group.compiles.size() == 1;
    say(fmt::format("{} {} {} not observed: {}", one ? "compile" : "compiles", render::compiles_text(group.compiles),
                    one ? "was" : "were", why));
  }
  return capture;
}

int deliver(const std::string& result, const CommonOptions& options, std::string_view verb, Streams& streams) {
  if (options.output.empty() || options.output == "-") {
    streams.out << result;
    return kDone;
  }
  std::error_code ec;
  if (std::filesystem::equivalent(options.output, options.capture, ec)) {
    const Error error{ErrorCode::kUsage, "-o names the capture itself; name another file for the result",
                      options.output};
    return refuse(verb, error, streams);
  }
  const auto written = base::write_file(options.output, result);
  return written ? kDone : refuse(verb, written.error(), streams);
}

}  // namespace kerntrail::cli
