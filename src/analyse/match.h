// Which unit of one capture is which of another: a column of each side as labelled graphs, matched by keys from the
// strictest to the loosest. A key decides only where it names one unit on each side.
// Must not know: fields other than those that the caller put into the nodes, conclusions, output formats.
#pragma once

#include <cstdint>
#include <vector>

#include "kerntrail/diff.h"

namespace kerntrail::analyse {

// A unit of one side. Hashes are comparable between the sides; 0: not known. Places are indices into the side.
struct MatchNode {
  UnitId unit = UnitId::kNone;
  std::uint64_t label = 0;   // what it is: op and target, class
  std::uint64_t strict = 0;  // type, direction, path of its graph
  std::uint64_t module = 0;  // the module it belongs to
  std::uint64_t prior = 0;   // equal on both sides: matched at an earlier stage
  // Matched units of the stage before that it comes from: sorted; a token of several units stands once for each of
  // them, unless it is odd.
  std::vector<std::uint64_t> parents;
  bool of_strangers = false;  // it comes from units of the stage before, none of which is matched
  std::vector<std::uint64_t> codes;    // code texts of its source lines: sorted, unique
  // Operands in order: a place of this side, or a leaf that is no counted unit.
  struct Input {
    std::uint32_t place = kNoIndex;
    std::uint64_t leaf = 0;     // what kind of leaf
    std::uint64_t leaf_id = 0;  // which one, where the two sides call them alike
  };
  std::vector<Input> inputs;
};

using MatchSide = std::vector<MatchNode>;  // in the column's order

struct PlacePair {
  std::uint32_t old_place = 0, new_place = 0;
  MatchReason reason = MatchReason::kStructure;
};

struct PlaceGroup {
  GroupKind kind = GroupKind::kAmbiguous;
  std::vector<std::uint32_t> old_places, new_places;
};

struct SideMatch {
  std::vector<PlacePair> pairs;  // by new place
  std::vector<PlaceGroup> groups;  // by first new place
  std::vector<std::uint32_t> only_old, only_new;
};

// n log n in units and inputs.
SideMatch match_sides(const MatchSide& old, const MatchSide& now);

}  // namespace kerntrail::analyse
