// What `validate` says of a capture file: whether it reads, whether its differences reach every digest, and what was
// counted on the way.
// Must not know: how it is printed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::read {

struct ValidationReport {
  std::string path;
  int format_version = 0;
  std::map<std::string, std::uint64_t> records;  // by kind
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;  // decompressed
  std::uint64_t snapshots = 0;
  std::uint64_t full_snapshots = 0;
  std::uint64_t digests_reached = 0;
  std::optional<Error> torn;  // the file stops before its end record: line and reason
  bool complete = false;      // the writer says that nothing was lost; false for a torn file
  std::uint64_t notes = 0, warnings = 0, errors = 0;  // notes by severity (`notes`: info)
  // Units in no snapshot although nothing says why ("seen_only_as"); text ids, the first 20 of `unexplained_units`.
  std::uint64_t unexplained_units = 0;
  std::vector<std::string> unexplained_examples;

  bool torn_or_partial() const { return torn.has_value() || !complete; }
};

// Reads the whole file with every check on. The errors are those of read_capture; a torn file is a report.
Expected<ValidationReport> validate_capture(const std::string& path);

}  // namespace kerntrail::read
