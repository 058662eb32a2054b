#include "read/validate.h"

#include <utility>

#include "kerntrail/capture.h"
#include "read/capture_reader.h"

namespace kerntrail::read {
namespace {

constexpr std::size_t kExamples = 20;

void count_notes(const Capture& capture, ValidationReport& report) {
  for (const Note& note : capture.notes) {
    if (note.severity == Severity::kInfo) ++report.notes;
    if (note.severity == Severity::kWarning) ++report.warnings;
    if (note.severity == Severity::kError) ++report.errors;
  }
}

void count_unexplained(const Capture& capture, ValidationReport& report) {
  std::vector<bool> held(capture.units.size());
  for (const Snapshot& snapshot : capture.snapshots) {
    for (const UnitId unit : snapshot.units) held[index(unit)] = true;
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (held[i] || !capture.units[i].seen_only_as.empty()) continue;
    if (report.unexplained_units++ < kExamples)
      report.unexplained_examples.push_back(unit_name(capture, id_at<UnitId>(i)));
  }
}

}  // namespace

Expected<ValidationReport> validate_capture(const std::string& path) {
  ReadStatistics statistics;
  KERNTRAIL_TRY(const Capture capture, read_capture(path, {}, &statistics));
  ValidationReport report;
  report.path = path;
  report.format_version = capture.run.format_version;
  report.records = std::move(statistics.records);
  report.lines = statistics.lines;
  report.bytes = statistics.bytes;
  report.snapshots = capture.snapshots.size();
  // The reader stops at the first digest that is not reached: all that are here were.
  report.digests_reached = capture.snapshots.size();
  for (const Snapshot& snapshot : capture.snapshots) report.full_snapshots += snapshot.full ? 1 : 0;
  report.torn = std::move(statistics.torn);
  report.complete = capture.end && capture.end->complete;
  count_notes(capture, report);
  count_unexplained(capture, report);
  return report;
}

}  // namespace kerntrail::read
