// The report's standing sentences: what each field and stage is, in one place.
// Must not know: any value of a run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kerntrail::render {

// "user source line behind the node"; empty for a field without a sentence.
std::string_view field_meaning(std::string_view field);
// What happens on the way into the stage; empty for stages without a sentence.
std::string_view stage_sentence(std::string_view key);
// "`stack_trace` (…), `origins` (…)"
std::string tracked_fields(const std::vector<std::string>& fields);

}  // namespace kerntrail::render
