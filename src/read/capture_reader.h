// Own NDJSON captures (plain, .gz, .zst, "-" = standard input; told apart by content, not by name) -> Capture.
// Streams: memory grows with distinct ids and texts only. Never crashes on input.
// Must not know: analyses.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kerntrail/capture.h"

namespace kerntrail::read {

struct ReadOptions {
  bool check_digests = true;
  // A file without its end record: by default it is read up to its last finished snapshot, end stays absent and a
  // note "torn-capture" with the reason is added. strict: kTorn instead.
  bool strict = false;
  // What the file may hold in all, decompressed (kTooLarge above it): a small file can stand for a huge one.
  std::uint64_t max_bytes = std::uint64_t{16} << 30;
};

// What was gone through, beside the capture itself.
struct ReadStatistics {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;                       // decompressed
  std::map<std::string, std::uint64_t> records;  // by kind, the end record included
  std::optional<Error> torn;                     // kTorn with line and reason, if the file is torn
};

// kIo, kSyntax, kSchema, kReference, kDigest, kTooNew, kTooLarge, kTorn (strict, or torn before the run record);
// path and line are set. Limits: 64 MiB a line, depth 64. `statistics`, if given, is filled as far as the reader came.
Expected<Capture> read_capture(const std::string& path, const ReadOptions& options = {},
                               ReadStatistics* statistics = nullptr);
// The text may be compressed as a file may. `name` stands in messages.
Expected<Capture> read_capture_text(std::string_view ndjson, const std::string& name, const ReadOptions& options = {},
                                    ReadStatistics* statistics = nullptr);

}  // namespace kerntrail::read
