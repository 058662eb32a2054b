// Python stack traces as text -> call chains of locations, the class of each frame, and the user source that a
// capture embeds.
// Must not know: torch objects, Python's C API.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"
#include "model/recorder.h"

namespace kerntrail::probe {

// Path prefixes that decide a frame's class (absolute, with a closing slash).
struct FrameRules {
  std::string working_directory;
  std::vector<std::string> torch;     // torch.__path__
  std::vector<std::string> packages;  // site-packages and the like
  std::vector<std::string> standard;  // the standard library
};

struct TraceFrame {
  std::string_view file;
  std::int64_t line = 0;
  std::string_view function;
  std::string_view code;  // the line under the frame; empty where the trace has none
};

// Frames of a traceback text, outermost first. Caret lines (Python 3.11) are not code. Hand-scanned: linear on any
// text, and no frame comes out of text that has none.
std::vector<TraceFrame> parse_trace(std::string_view trace);

std::pair<FrameClass, FrameRule> classify_frame(std::string_view file, const FrameRules& rules);

class SourceTexts {
 public:
  SourceTexts(model::Recorder& recorder, FrameRules rules) : recorder_(recorder), rules_(std::move(rules)) {}

  // The call chain of a trace, innermost first; kNone where no frame was found. Interned.
  LocId chain(std::string_view trace);
  // Whether a frame of this file is torch's own, or of generated code that is in no file.
  bool is_torch_or_no_file(std::string_view file) const;
  // Relative to the working directory where it lies below.
  std::string shown_path(std::string_view file) const;
  // Writes a `source` record for each user file met: lines with two lines around each (mode "lines"), or the whole
  // file ("files"); nothing for "none".
  void write(std::string_view mode);

 private:
  model::Recorder& recorder_;
  FrameRules rules_;
  std::unordered_map<std::string, LocId> chains_;
  std::map<std::string, std::pair<std::string, std::set<std::int64_t>>> user_lines_;  // shown path -> (path, lines)
};

}  // namespace kerntrail::probe
