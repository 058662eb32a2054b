// One line of a capture file -> one call of a Sink: syntax, types and spelling are checked here, names are turned into
// ids. What needs more than the record itself (order, digests, counts) is the sink's matter (model/replay.h).
// Must not know: files, what records are used for.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "kerntrail/expected.h"
#include "model/records.h"
#include "model/sink.h"

namespace kerntrail::read {

class RecordReader {
 public:
  explicit RecordReader(model::Sink& sink);
  ~RecordReader();

  // `line` must be followed by kLinePadding readable bytes. The error has no path and line yet.
  // The first line decides on the format version before anything else of it is looked at.
  Expected<model::RecordKind> line(std::string_view line);

 private:
  struct State_;
  std::unique_ptr<State_> state_;
};

}  // namespace kerntrail::read
