#include "read/capture_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/strings.h"
#include "model/records.h"
#include "model/replay.h"
#include "read/byte_source.h"
#include "read/line_source.h"
#include "read/record_reader.h"

namespace kerntrail::read {
namespace {

// One file from its first line to its end record, or to where it stops.
class Reading {
 public:
  Reading(std::unique_ptr<ByteSource> from, std::string name, const ReadOptions& options, ReadStatistics* statistics)
      : options_(options),
        name_(std::move(name)),
        statistics_(statistics),
        lines_(std::move(from), name_, options.max_bytes),
        replay_({options.check_digests}),
        records_(replay_) {
    replay_.set_position(name_, 0);
  }

  Expected<Capture> all() {
    auto result = records();
    if (statistics_) {
      statistics_->lines = lines_.number();
      statistics_->bytes = lines_.bytes();
      statistics_->records = counts_.by_name();
    }
    if (!result) {
      // A damaged stream knows its byte only: the last line that came out of it is the nearest line.
      if (result.error().line == 0) result.error().line = lines_.number();
      return tl::unexpected<Error>(std::move(result.error()));
    }
    return finished();
  }

 private:
  Expected<void> records() {
    for (;;) {
      KERNTRAIL_TRY(const std::optional<LineView> line, lines_.next());
      if (!line) return {};
      replay_.set_line(lines_.number());
      auto record = records_.line(line->text);
      if (!record && counts_.total() == 0 && !may_begin_a_capture(line->text)) return no_capture(line->text);
      // Half a record at the end of the file is what a killed writer leaves; the same in the middle is damage.
      if (!record && !line->finished && record.error().code == ErrorCode::kSyntax) {
        stops_inside_line_ = true;
        return {};
      }
      if (!record) return fail(record.error().code, std::move(record.error().message), name_, lines_.number());
      if (const Error* error = replay_.error()) return tl::unexpected<Error>(*error);
      counts_.add(*record);
    }
  }

  // The first line of any capture starts like this; a shorter text may be the rest of a torn one.
  static bool may_begin_a_capture(std::string_view line) {
    std::string start;
    for (const char c : line.substr(0, 64)) {
      if (c != ' ' && c != '\t') start += c;
    }
    const std::string_view wanted = "{\"record\":";
    const std::size_t n = std::min(start.size(), wanted.size());
    return n > 0 && start.compare(0, n, wanted, 0, n) == 0;
  }

  tl::unexpected<Error> no_capture(std::string_view line) const {
    constexpr std::size_t kShown = 60;
    const bool is_text = base::is_valid_utf8(line) && line.find('\0') == std::string_view::npos;
    const std::string_view shown = base::cut(line, kShown);
    const std::string first = !is_text       ? std::string("no text")
                              : line.empty() ? std::string("empty")
                                             : fmt::format("\"{}{}\"", shown, shown.size() < line.size() ? "…" : "");
    return fail(ErrorCode::kSchema,
                fmt::format("is not a kerntrail capture (its first line is {}): expected a file that kerntrail record "
                            "wrote, plain, .gz or .zst, which begins with {{\"record\":\"run\"",
                            first),
                name_, lines_.number());
  }

  Expected<Capture> finished() {
    const bool has_end = replay_.capture().end.has_value();
    if (has_end && !stops_inside_line_ && lines_.torn_reason().empty()) return replay_.take();
    Error torn{ErrorCode::kTorn, torn_reason(), name_, lines_.number()};
    if (lines_.number() == 0)
      torn.message =
          lines_.torn_reason().empty() ? "is empty: a recording that was cut before its first record?" : torn.message;
    if (counts_.total() == 0 || options_.strict) return tl::unexpected<Error>(std::move(torn));
    Capture capture = replay_.take();
    // Whatever came after the end record was not meant to be there: what it says can't be relied on.
    capture.end.reset();
    capture.notes.push_back({"torn-capture", Severity::kError,
                             fmt::format("line {}: {}; {}", torn.line, torn.message, reach(capture)), CompileId::kNone,
                             GraphId::kNone});
    if (statistics_) statistics_->torn = std::move(torn);
    return capture;
  }

  std::string torn_reason() const {
    if (const std::string reason = lines_.torn_reason(); !reason.empty()) return reason;
    if (stops_inside_line_) return "the file stops inside a record";
    return "the file stops without an end record";
  }

  static std::string reach(const Capture& capture) {
    if (capture.snapshots.empty()) return "no snapshot is finished";
    const Snapshot& last = capture.snapshots.back();
    return fmt::format("read up to snapshot {} ({}, graph {})", capture.snapshots.size() - 1, look_text(capture, last),
                       graph_name(capture, last.graph));
  }

  const ReadOptions& options_;
  std::string name_;
  ReadStatistics* statistics_;
  LineSource lines_;
  model::Replay replay_;
  RecordReader records_;
  model::RecordCounts counts_;
  bool stops_inside_line_ = false;
};

}  // namespace

Expected<Capture> read_capture(const std::string& path, const ReadOptions& options, ReadStatistics* statistics) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec))
    return fail(ErrorCode::kIo, "is a folder, neither a capture nor one with Spyre bundles (sdsc_*.json, bundle.mlir)",
                path);
  KERNTRAIL_TRY(auto source, ByteSource::open(path));
  return Reading(std::move(source), path, options, statistics).all();
}

Expected<Capture> read_capture_text(std::string_view ndjson, const std::string& name, const ReadOptions& options,
                                    ReadStatistics* statistics) {
  return Reading(ByteSource::of_text(ndjson, name), name, options, statistics).all();
}

}  // namespace kerntrail::read
