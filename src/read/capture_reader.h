// Own NDJSON captures (plain, .gz, .zst, "-" = standard input; told apart by content, not by name) -> Capture.
// Streams: memory grows with distinct ids and texts only. Never crashes on input.
// Must not know: analyses.
#pragma once

#include <string>
#include <string_view>

#include "kerntrail/capture.h"

namespace kerntrail::read {

struct ReadOptions {
  bool check_digests = true;
  // A file without its end record: by default it is read up to its last finished snapshot, end stays absent and a
  // note "torn-capture" with the reason is added. strict: kTorn instead.
  bool strict = false;
};

// kIo, kSyntax, kSchema, kReference, kDigest, kTooNew, kTooLarge, kTorn (strict, or torn before the run record);
// path and line are set. Limits: 64 MiB a line, depth 64.
Expected<Capture> read_capture(const std::string& path, const ReadOptions& options = {});
Expected<Capture> read_capture_text(std::string_view ndjson, const std::string& name, const ReadOptions& options = {});

}  // namespace kerntrail::read
