// What a unit does for a node, judged by the witness; views are judged by where they lie in the graph.
// Must not know: claims, source lines.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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
  // Units that do something for the node, or for a sub-graph that it holds or calls; in the capture's order.
  const std::vector<UnitId>& workers(UnitId node) const;
  // Nodes that hold or call a sub-graph which units work for, in the capture's order.
  const std::vector<UnitId>& enclosing() const { return enclosing_; }

 private:
  bool view_of(UnitId unit, UnitId node) const;
  void find_regions(CompileId compile);
  void find_region_workers();
  const std::string& path_of(UnitId node) const;  // of its graph
  bool encloses(UnitId node, const Work& work) const;

  const Capture& capture_;
  const WitnessIndex& witness_;
  struct Node {
    const Observation* inputs = nullptr;
    bool is_view = false;
  };
  UnitMap<Node> nodes_;
  UnitLists<UnitId> users_;
  std::unordered_map<UnitId, std::vector<std::string_view>>
      regions_;  // node -> paths of the sub-graphs it holds or calls
  std::unordered_map<UnitId, std::vector<UnitId>> region_workers_;  // of the nodes in regions_
  std::vector<UnitId> enclosing_;
};

}  // namespace kerntrail::analyse
