// The witness of a capture by unit: which nodes each kernel, operation, OpSpec or file works for, and how.
// Must not know: claims, source lines.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyse/unit_map.h"
#include "kerntrail/capture.h"
#include "kerntrail/verify.h"

namespace kerntrail::analyse {

// The nodes that a unit works for, in the order in which it first does, with the strongest thing it does for each.
using Work = std::vector<std::pair<UnitId, Support>>;

// What an operation of a loop body does, by the name of its handler.
Support support_of_op(std::string_view op);

class WitnessIndex {
 public:
  // Reads what was witnessed in one compile.
  WitnessIndex(const Capture& capture, CompileId compile);

  bool empty() const { return work_.empty(); }
  // nullptr: the unit was not witnessed.
  const Work* of(UnitId unit) const;
  // Units of the stage that work for the node, in the capture's order.
  const std::vector<UnitId>& workers(UnitId node) const;
  // Units that have a witness slot with nothing in it, or one that can't be read.
  const std::vector<UnitId>& unread() const { return unread_; }

 private:
  void read(UnitId unit, const Observation& seen);
  void add(UnitId unit, UnitId node, Support support);
  UnitId operation_named(UnitId kernel, std::string_view name) const;
  void index_operations();

  const Capture& capture_;
  CompileId compile_;
  UnitMap<Work> work_;
  UnitMap<std::vector<UnitId>> workers_;
  UnitMap<std::vector<UnitId>> linked_from_;  // of kernels and groups
  std::unordered_map<std::string_view, std::vector<UnitId>> operations_;  // by name
  std::vector<UnitId> unread_;
};

}  // namespace kerntrail::analyse
