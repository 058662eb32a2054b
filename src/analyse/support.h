// What a unit does for a node, judged by the witness; views are judged by where they lie in the graph.
// Must not know: claims, source lines.
#pragma once

#include <string_view>

#include "analyse/unit_lists.h"
#include "analyse/unit_map.h"
#include "analyse/witness.h"
#include "kerntrail/capture.h"
#include "kerntrail/verify.h"

namespace kerntrail::analyse {

// Whether a node calls something that computes nothing: it says how to look at the memory of another, or picks one of
// several results.
bool is_view(std::string_view target);

class SupportFinder {
 public:
  SupportFinder(const Capture& capture, const WitnessIndex& witness, CompileId compile);

  // `unit` must have a witness.
  Support support(UnitId unit, UnitId node) const;

 private:
  bool view_of(UnitId unit, UnitId node) const;

  const Capture& capture_;
  const WitnessIndex& witness_;
  struct Node {
    const Observation* inputs = nullptr;
    bool is_view = false;
  };
  UnitMap<Node> nodes_;
  UnitLists<UnitId> users_;
};

}  // namespace kerntrail::analyse
