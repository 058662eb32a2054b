// OpSpecs on their way: an object is printed into the text of a kernel, the text is executed and gives objects again,
// these are written to files. What one of these seams loses or changes, by field and unit.
// Must not know: output formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/options.h"

namespace kerntrail {

enum class Seam : std::uint8_t {
  kPrinting,  // object -> text
  kReading,  // text -> object again
  kWriting,  // object -> file
  kAfterPrinting,  // text -> file: the objects between were not recorded
};
std::string_view seam_name(Seam seam);  // "printing", "reading", "writing", "after_printing"

// One field of one OpSpec that a seam did not hand on. Only the outermost path that is wholly gone: "debug_handle",
// "debug_handle.source", "debug_handle.fused_from[1].aten_op".
struct SeamLoss {
  Seam seam = Seam::kPrinting;
  std::string field;
  bool changed = false;  // there, but another value
  std::string was, now;  // short texts
  UnitId op_spec = UnitId::kNone, kernel = UnitId::kNone;
  UnitId file = UnitId::kNone;  // of writing and after_printing
  std::string unit, unit_name, kernel_name, file_name;  // unit: "c0.n31"
  LocId line = LocId::kNone;  // the compiler's line that printed, read or wrote, where known
  std::string place;  // "file:line (function)" of its innermost frame
};

// A seam at which nothing can be compared: the two sides don't belong together.
struct SeamBreak {
  Seam seam = Seam::kPrinting;
  UnitId kernel = UnitId::kNone;
  std::string kernel_name;
  std::string reason;  // "its text holds 3 OpSpecs, 5 were made"
};

// One compile. `printed`, `reread` and `written`: OpSpecs that were compared across that seam.
struct RoundTrip {
  CompileId compile = CompileId::kNone;
  std::size_t kernels = 0;  // whose text should hold OpSpecs
  std::size_t op_specs = 0;
  std::size_t printed = 0, reread = 0, written = 0;
  std::vector<SeamLoss> losses;  // in the order of kernels and OpSpecs, then of seams
  std::vector<SeamBreak> breaks;
};

// One for each compile that has a kernel made of OpSpecs. kUsage: a compile that the capture does not have.
Expected<std::vector<RoundTrip>> round_trips(const Capture& capture, const AnalysisOptions& options = {});

}  // namespace kerntrail
