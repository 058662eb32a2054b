// Lineage -> Mermaid flowcharts that every viewer draws: at most 450 edges and 45,000 characters a block.
// Must not know: how edges are found.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kerntrail/lineage.h"

namespace kerntrail::render {

inline constexpr std::size_t kMermaidEdges = 450;         // Mermaid itself refuses more than 500
inline constexpr std::size_t kMermaidCharacters = 45000;  // ... and more than 50,000
inline constexpr std::size_t kMermaidBlocks = 12;  // of one lineage in a report; the rest is said to be left out

struct MermaidDrawing {
  std::vector<std::string> blocks;  // each a whole flowchart, ending with a line break
  std::size_t nodes = 0, edges = 0;  // of the lineage
  bool has_weak = false;  // an edge is drawn dotted: ambiguous, derived, or claimed where others have a witness
  std::size_t left_out_nodes = 0, left_out_edges = 0;  // in no block
};

// One block where it fits; else one block for as many sinks (kernels) with all that leads to them as fit.
MermaidDrawing draw_mermaid(const Lineage& lineage, std::size_t max_blocks = kMermaidBlocks);
// "FX Graph (pre-grad)" -> "FX pre-grad": a stage title as the lineage graph prints it.
std::string short_title(const std::string& title);
// "x · linear"
std::string node_label(const LineageNode& node);

}  // namespace kerntrail::render
