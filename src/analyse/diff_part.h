// The steps of comparing one compile of each side: each fills its lists of a DiffPart from what is matched.
// Must not know: output formats, how units are matched.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kerntrail/diff.h"
#include "kerntrail/lineage.h"

namespace kerntrail::analyse {

struct DiffSide {
  const Capture* capture = nullptr;
  CompileId compile = CompileId::kNone;
  std::vector<const Drops*> drops;  // of the compile, one a direction
  const Lineage* lineage = nullptr;
  const Verification* verification = nullptr;  // nullptr: not witnessed
  // Equal on both sides: the units are a pair, or of one group. Odd: of a group whose members do not correspond one by
  // one, since there are more of them on one side.
  std::unordered_map<UnitId, std::uint64_t> tokens;
};

struct DiffSides {
  DiffSide old, now;
};

// Fields gained and lost, drops and qualities, in stage order; adds the sites they name.
void compare_fields(const DiffSides& sides, DiffPart& part);
// Source lines of both sides brought together; links to kernels, lines that a stack names, claims against the witness.
// After compare_fields().
void compare_links(const DiffSides& sides, DiffPart& part);

}  // namespace kerntrail::analyse
