// The report's standing sentences: what each field and stage is, in one place.
// Must not know: fields or stages of a run.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/drops.h"

namespace kerntrail::render {

// "user source line behind the node"; empty for a field without a sentence.
std::string_view field_meaning(std::string_view field);
// What happens on the way into the stage; empty for stages without a sentence.
std::string_view stage_sentence(std::string_view key);
// Notes that say the same, once: those of many compiles are often equal.
struct NoteGroup {
  const Note* note = nullptr;  // the first
  std::size_t times = 1;
  std::vector<CompileId> compiles;  // those that the notes name, each once
};
std::vector<NoteGroup> merged_notes(const std::vector<Note>& notes);
// "c0, c1, c4 and 12 more"; empty for none.
std::string compiles_text(const std::vector<CompileId>& compiles);

// "`stack_trace` (…), `origins` (…)"
std::string tracked_fields(const std::vector<std::string>& fields);
// What a reader must know of a capture that is not whole, in Markdown; empty for one that is.
std::string state_text(const CaptureState& state);
// A place of the compiler as code: installed packages are known by their own path.
std::string place_code(std::string_view place);

}  // namespace kerntrail::render
