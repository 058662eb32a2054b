// Synthetic provenance: values in the form of real ones that name an id, and the ids that a value names.
// Must not know: nodes, passes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kerntrail::analyse {

// A stack trace of one frame, whose file is the run's own and whose line is the id.
std::string synthetic_stack(std::string_view tag, std::uint32_t id, std::string_view node);
// The pass name of an entry of from_node.
std::string synthetic_source(std::string_view tag, std::uint32_t id);

// The ids that a stack names, sorted, each once; frames of other tags name none.
std::vector<std::uint32_t> ids_of_stack(std::string_view stack, std::string_view tag);
std::optional<std::uint32_t> id_of_source(std::string_view source, std::string_view tag);

// `stack` with each synthetic frame replaced by the original stack of its id, `originals[id - 1]`. A frame whose id
// is out of range goes.
std::string restored_stack(std::string_view stack, std::string_view tag, const std::vector<std::string>& originals);

}  // namespace kerntrail::analyse
