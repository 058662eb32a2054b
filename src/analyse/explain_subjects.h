// What a question to `explain` names.
// Must not know: answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/expected.h"
#include "kerntrail/lineage.h"

namespace kerntrail::analyse {

// The nodes of the lineage that `what` names ("file.py:25", a unit by name or id, the id of a debug handle): a list for
// each source line and each unit, with all layers that show it. kUsage: nothing is called so.
Expected<std::vector<std::vector<std::uint32_t>>> subjects_of(const Capture& capture, const Lineage& lineage,
                                                              const std::string& what);
// The compile that a unit's id begins with ("c0.n7"); kNone where `what` is no such id.
CompileId compile_in(const Capture& capture, std::string_view what);

}  // namespace kerntrail::analyse
