// Where units go no further, and why, as far as the capture says.
// Must not know: what was asked.
#pragma once

#include <cstdint>
#include <vector>

#include "analyse/unit_lists.h"
#include "analyse/unit_map.h"
#include "kerntrail/drops.h"
#include "kerntrail/explain.h"
#include "kerntrail/lineage.h"

namespace kerntrail::analyse {

// Keeps references: all three must outlive it. `drops`: those of the lineage's compile.
class EndFinder {
 public:
  EndFinder(const Capture& capture, const Lineage& lineage, const std::vector<const Drops*>& drops);

  // Those of `nodes` with nothing below that are not at the last layer. Each has a `why`.
  std::vector<EndedUnit> among(const std::vector<std::uint32_t>& nodes) const;

 private:
  struct Known {
    const UnitFate* fate = nullptr;
    const Drops* drops = nullptr;
    PassId pass = PassId::kNone;  // kNone: from one stage to the next
  };

  void note_fates(const Drops& drops);
  const Known* fate_of(UnitId unit) const;
  void describe(const Known& known, EndedUnit& out) const;

  const Capture& capture_;
  const Lineage& lineage_;
  std::vector<bool> goes_on_;  // by node
  UnitMap<Known> in_passes_, between_stages_;
  UnitLists<UnitId> made_of_;  // in file order
};

}  // namespace kerntrail::analyse
