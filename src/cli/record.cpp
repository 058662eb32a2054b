#include "cli/record.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/strings.h"
#include "cli/process.h"
#include "cli/record_options.h"
#include "kerntrail/capture.h"
#include "kerntrail/report.h"
#include "read/capture_reader.h"
#include "render/json_output.h"
#include "render/markdown.h"
#include "render/outputs.h"

namespace kerntrail::cli {
namespace {

constexpr int kUsage = 2, kUnreadable = 3, kPartial = 5;

int complain(const std::string& text, int status) {
  fmt::print(stderr, "kerntrail: {}\n", text);
  return status;
}

int print_parsed(const ParsedRecord& parsed) {
  fmt::print(parsed.exit == 0 ? stdout : stderr, "{}", parsed.text);
  return parsed.exit;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ec;
  if (std::filesystem::equivalent(a, b, ec)) return true;
  return std::filesystem::weakly_canonical(a, ec) == std::filesystem::weakly_canonical(b, ec);
}

// Everything that can be refused before anything is touched.
Expected<std::string> check(const RecordOptions& options) {
  if (!options.program.empty() && !options.is_module) {
    KERNTRAIL_CHECK(check_program(options.program));
    if (same_file(options.program, options.output)) {
      return fail(ErrorCode::kUsage,
                  fmt::format("-o {} is the program itself; name another file for the capture", options.output));
    }
  }
  return find_packaged_python(options.python);
}

// What became of a run: whether the program was started at all, and the exit status for the caller.
struct Recorded {
  bool started = false;
  int status = 0;
};

// "provenance_capture.ndjson: 3 compiles, 1204 units"
std::string holding(const std::string& path, const Capture& capture) {
  std::set<UnitId> shown;
  for (const Snapshot& snapshot : capture.snapshots) shown.insert(snapshot.units.begin(), snapshot.units.end());
  return fmt::format("{}: {}, {}", path, base::counted(capture.compiles.size(), "compile"),
                     base::counted(shown.size(), "unit"));
}

void say_unseen(const std::string& path, const Capture& capture) {
  for (const auto& [code, what] :
       {std::pair{"not-observed", "not observed (a cache hit, or no code was generated here)"},
        std::pair{"fallback-stock", "handed to stock Inductor"}}) {
    std::set<CompileId> compiles;
    for (const Note& note : capture.notes) {
      if (note.code == code && has(note.compile)) compiles.insert(note.compile);
    }
    if (!compiles.empty())
      complain(fmt::format("{} of {} {}; kerntrail info {} says why", compiles.size(),
                           base::counted(capture.compiles.size(), "compile"), what, path),
               0);
  }
}

read::ReadOptions quick() {
  read::ReadOptions options;
  options.check_digests = false;
  return options;
}

// After a program that failed or was killed: what there is of its capture.
void say_what_is_left(const std::string& path, const Exit& exit) {
  std::error_code ec;
  const bool there = std::filesystem::exists(path, ec);
  if (exit.signal == 0 && !there) return;  // the program never began, and said why
  const std::string how =
      exit.signal == 0 ? fmt::format("the program exited with {}", exit.status)
                       : fmt::format("the program was ended by signal {} ({})", exit.signal, strsignal(exit.signal));
  if (!there) {
    complain(fmt::format("{}; {} was not begun", how, path), 0);
    return;
  }
  const auto capture = read::read_capture(path, quick());
  if (!capture) {
    const bool empty = std::filesystem::file_size(path, ec) == 0 && !ec;
    complain(fmt::format(
                 "{}; its capture is {}", how,
                 empty ? "empty: nothing was written to " + path + " yet" : "not readable: " + capture.error().text()),
             0);
    return;
  }
  std::string torn;
  for (const Note& note : capture->notes) {
    if (note.code == "torn-capture") torn = "; torn at " + note.text;
  }
  complain(fmt::format("{}; its capture {}{}", how, holding(path, *capture), torn), 0);
  say_unseen(path, *capture);
}

// Runs the program under the probe. The status is the program's own, or kPartial where that is 0 and the capture did
// not reach its end record. A run that is refused leaves every file as it was.
Recorded record(const RecordOptions& options) {
  const auto python = check(options);
  if (!python) return {false, complain(python.error().message, kUsage)};
  // From here on a capture of an earlier run must not pass for this one's. Only an ordinary file is removed: a device
  // or a pipe is left for the writer to judge.
  std::error_code ec;
  if (std::filesystem::symlink_status(options.output, ec).type() == std::filesystem::file_type::regular) {
    std::filesystem::remove(options.output, ec);
  }
  std::vector<std::string> command{*python, "-m", "kerntrail", "record"};
  for (const std::string& argument : record_arguments(options)) command.push_back(argument);
  const auto status = run_process(command);
  if (!status) return {false, complain(status.error().text(), kUsage)};
  if (status->status != 0) {
    if (!options.quiet || status->signal != 0) say_what_is_left(options.output, *status);
    return {true, status->status};
  }
  const auto capture = read::read_capture(options.output, quick());
  if (!capture) {
    return {true,
            complain(fmt::format("the program was fine, its capture is not: {}", capture.error().text()), kPartial)};
  }
  if (!capture->end) {
    return {true, complain(fmt::format("the program was fine, but ended without finishing its capture (os._exit, or a "
                                       "signal): {} reads up to its last stage",
                                       options.output),
                           kPartial)};
  }
  // A program that compiled nothing was told so by the recording side.
  if (!options.quiet && !capture->compiles.empty()) {
    complain("wrote " + holding(options.output, *capture), 0);
    say_unseen(options.output, *capture);
  }
  return {true, capture->end->complete ? 0 : kPartial};
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

// Reads the capture back and writes report and raw JSON; prints the summary. Program text of an own print comes first.
int write_reports(const RecordOptions& options, bool program_ok) {
  const auto capture = read::read_capture(options.output);
  if (!capture) return complain(capture.error().text(), kUnreadable);
  ReportOptions report_options;
  if (options.reference_model) {
    report_options.model_name = "SimpleMLP";
    report_options.example = true;
  }
  if (options.stamp) report_options.stamp = now_text();
  if (!program_ok && capture->compiles.empty())
    return complain("the program failed before anything was compiled: there is nothing to report", kUsage);
  const auto report = make_report(*capture, report_options);
  if (!report) return complain(report.error().text(), kUnreadable);
  const auto raw = render::raw_export(*capture);
  if (!raw) return complain(raw.error().text(), kUnreadable);
  const std::string text =
      options.format == "json" ? render::report_json(*capture, *report) : render::report_markdown(*report);
  for (const auto& [path, content] : {std::pair{options.raw, *raw}, std::pair{options.report, text}}) {
    if (const auto written = base::write_file(path, content); !written)
      return complain(written.error().text(), kUnreadable);
  }
  render::SummaryOptions summary;
  summary.title = report->model_name;
  if (options.reference_model) summary.config = "batch=2, input=128, hidden=256, output=128";
  summary.raw_path = options.raw;
  summary.report_path = options.report;
  fmt::print("{}", render::render_summary(*capture, summary));
  fmt::print("Capture written to: {}\n", options.output);
  return 0;
}

}  // namespace

int run_record(const std::vector<std::string>& arguments) {
  const ParsedRecord parsed = parse_record(arguments);
  return parsed.options ? record(*parsed.options).status : print_parsed(parsed);
}

int run_audit(const std::vector<std::string>& arguments) {
  const ParsedRecord parsed = parse_audit(arguments);
  if (!parsed.options) return print_parsed(parsed);
  RecordOptions options = *parsed.options;
  options.quiet = true;  // the summary says it all
  // The report's name follows its form unless it was chosen.
  if (options.format == "json" && options.report == RecordOptions{}.report) options.report = "provenance_audit.json";
  const std::string* results[] = {&options.output, &options.report, &options.raw};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!options.program.empty() && !options.is_module && same_file(*results[i], options.program)) {
      return complain(fmt::format("{} is the program itself; name another file for the result", *results[i]), kUsage);
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (same_file(*results[i], *results[k])) {
        return complain(
            fmt::format("two results would go to {}: -o, --output and --raw need different files", *results[i]),
            kUsage);
      }
    }
  }
  fmt::print(stderr, "kerntrail: recording {} (caches are {})\n",
             options.reference_model ? "the reference model" : options.program,
             options.keep_caches ? "left on" : "disabled");
  std::fflush(stderr);
  const Recorded run = record(options);
  if (!run.started) return run.status;
  const int reported = write_reports(options, run.status == 0 || run.status == kPartial);
  return run.status != 0 ? run.status : reported;
}

}  // namespace kerntrail::cli
