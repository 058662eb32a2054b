// Source lines of units: readers make them from locations, one per (file, line) of the innermost user frame.
// Must not know: stages, output formats.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kerntrail/capture.h"

namespace kerntrail::analyse {

// Two units come from the same source line when these are equal. The file is interned, so its id stands for it.
struct SourceKey {
  TextId file = TextId::kNone;
  std::int64_t line = 0;

  bool operator==(const SourceKey&) const = default;
};

struct SourceKeyHash {
  std::size_t operator()(const SourceKey& key) const {
    return std::hash<std::uint64_t>()((static_cast<std::uint64_t>(index(key.file)) << 32U) ^
                                      static_cast<std::uint64_t>(key.line));
  }
};

struct SourceLine {
  SourceKey key;
  std::string code;  // as the trace printed it, else from the embedded source; may be empty
};

// From the unit's `stack_trace`; nothing when it has none that names a line.
std::optional<SourceLine> source_of(const Capture& capture, AttrId stack_trace, UnitId unit, SnapshotId snapshot);
// From a stack as seen; nothing for a null one.
std::optional<SourceLine> source_in(const Capture& capture, const Observation* stack);
// Last non-blank line of a stack as found that is no caret line: the code text where no location could be made.
std::string_view last_code_line(std::string_view stack);

}  // namespace kerntrail::analyse
