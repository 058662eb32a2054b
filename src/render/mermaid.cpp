#include "render/mermaid.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

// Nodes and edges of one block, and an upper bound of its length.
struct Part {
  std::set<std::uint32_t> nodes;
  std::set<std::size_t> edges;
};

// "    n123[\"label\"]\n" and "  n1 --> n2\n"; numbers have at most ten digits.
constexpr std::size_t kNodeOverhead = 24;
constexpr std::size_t kEdgeLength = 32;
constexpr std::size_t kLabelOverhead = 6;  // "-->" becomes -->|"label"|
constexpr std::size_t kLayerOverhead = 48;

class Splitter {
 public:
  // No more than `wanted` parts are looked for: a huge lineage must not be walked once a sink.
  Splitter(const Lineage& lineage, std::size_t wanted)
      : lineage_(lineage), wanted_(wanted), into_(lineage.nodes.size()), leaves_(lineage.nodes.size(), true) {
    for (std::size_t e = 0; e < lineage.edges.size(); ++e) {
      into_[lineage.edges[e].to].push_back(e);
      leaves_[lineage.edges[e].from] = false;
    }
    for (const LineageEdge& edge : lineage.edges) {
      edge_size_.push_back(kEdgeLength + (edge.pass.empty() ? 0 : mermaid_label(edge.pass).size() + kLabelOverhead));
    }
    for (const LineageNode& node : lineage.nodes)
      node_size_.push_back(mermaid_label(node_label(node)).size() + kNodeOverhead);
    for (const LineageLayer& layer : lineage.layers) {
      layer_size_.push_back(mermaid_label(short_title(layer.title)).size() + kLayerOverhead);
    }
  }

  std::vector<Part> parts() {
    Part all;
    for (std::uint32_t n = 0; n < lineage_.nodes.size(); ++n) all.nodes.insert(n);
    for (std::size_t e = 0; e < lineage_.edges.size(); ++e) all.edges.insert(e);
    if (fits(all)) return {std::move(all)};
    for (std::uint32_t n = 0; n < lineage_.nodes.size() && done_.size() < wanted_; ++n) {
      if (leaves_[n]) add(behind(n));
    }
    if (!open_.nodes.empty()) done_.push_back(std::move(open_));
    return std::move(done_);
  }

 private:
  bool fits(const Part& part) const {
    if (part.edges.size() > kMermaidEdges) return false;
    std::size_t size = 32;
    for (std::size_t e : part.edges) size += edge_size_[e];
    std::set<std::uint32_t> layers;
    for (std::uint32_t n : part.nodes) {
      size += node_size_[n];
      if (layers.insert(lineage_.nodes[n].layer).second) size += layer_size_[lineage_.nodes[n].layer];
    }
    return size <= kMermaidCharacters;
  }

  // A sink and all that leads to it.
  Part behind(std::uint32_t sink) const {
    Part part;
    std::vector<std::uint32_t> work{sink};
    part.nodes.insert(sink);
    while (!work.empty()) {
      const std::uint32_t node = work.back();
      work.pop_back();
      for (std::size_t e : into_[node]) {
        part.edges.insert(e);
        if (part.nodes.insert(lineage_.edges[e].from).second) work.push_back(lineage_.edges[e].from);
      }
    }
    return part;
  }

  void add(Part part) {
    Part both = open_;
    both.nodes.insert(part.nodes.begin(), part.nodes.end());
    both.edges.insert(part.edges.begin(), part.edges.end());
    if (fits(both)) {
      open_ = std::move(both);
      return;
    }
    if (!open_.nodes.empty()) done_.push_back(std::move(open_));
    open_ = {};
    if (fits(part)) {
      open_ = std::move(part);
    } else {
      cut(part);
    }
  }

  // One sink with more behind it than a block holds: its edges in order, as many as fit at a time.
  void cut(const Part& part) {
    Part piece;
    for (std::size_t e : part.edges) {
      if (done_.size() >= wanted_) return;
      Part next = piece;
      next.edges.insert(e);
      next.nodes.insert(lineage_.edges[e].from);
      next.nodes.insert(lineage_.edges[e].to);
      if (!fits(next)) {
        done_.push_back(std::move(piece));
        next = {{lineage_.edges[e].from, lineage_.edges[e].to}, {e}};
      }
      piece = std::move(next);
    }
    if (!piece.edges.empty()) done_.push_back(std::move(piece));
  }

  const Lineage& lineage_;
  std::size_t wanted_;
  std::vector<std::vector<std::size_t>> into_;
  std::vector<bool> leaves_;
  std::vector<std::size_t> node_size_, edge_size_, layer_size_;
  std::vector<Part> done_;
  Part open_;
};

// Nothing recorded says so, or several answer to it, or nothing but the compiler's word where others have a witness.
bool is_weak(const LineageEdge& edge, bool witnessed) {
  return edge.ambiguous || edge.strength == Strength::kDerived || (edge.strength == Strength::kClaimed && witnessed);
}

std::string draw(const Lineage& lineage, const Part& part) {
  std::string out = "flowchart LR\n";
  for (std::uint32_t layer = 0; layer < lineage.layers.size(); ++layer) {
    bool opened = false;
    for (std::uint32_t n : part.nodes) {  // ascending, so in the lineage's order
      if (lineage.nodes[n].layer != layer) continue;
      if (!opened)
        out += fmt::format("  subgraph s{}[\"{}\"]\n", layer, mermaid_label(short_title(lineage.layers[layer].title)));
      opened = true;
      out += fmt::format("    n{}[\"{}\"]\n", n, mermaid_label(node_label(lineage.nodes[n])));
    }
    if (opened) out += "  end\n";
  }
  for (std::size_t e : part.edges) {
    const LineageEdge& edge = lineage.edges[e];
    const std::string label = edge.pass.empty() ? std::string() : fmt::format("|\"{}\"|", mermaid_label(edge.pass));
    out += fmt::format("  n{} {}{} n{}\n", edge.from, is_weak(edge, lineage.witnessed) ? "-.->" : "-->", label, edge.to);
  }
  return out;
}

}  // namespace

std::string short_title(const std::string& title) {
  std::string out = base::replace_all(title, " Graph", "");
  if (out.empty()) out = title;
  out = base::replace_all(out, " JSON", "");
  return base::replace_all(base::replace_all(out, "(", ""), ")", "");
}

std::string node_label(const LineageNode& node) {
  const std::string label = node.detail.empty() ? node.name : node.name + " · " + node.detail;
  return node.direction.empty() ? label : label + " (" + node.direction + ")";
}

MermaidDrawing draw_mermaid(const Lineage& lineage, std::size_t max_blocks) {
  MermaidDrawing result;
  result.nodes = lineage.nodes.size();
  result.edges = lineage.edges.size();
  const auto parts = Splitter(lineage, max_blocks).parts();
  std::set<std::uint32_t> nodes;
  std::set<std::size_t> edges;
  for (std::size_t i = 0; i < parts.size() && i < max_blocks; ++i) {
    nodes.insert(parts[i].nodes.begin(), parts[i].nodes.end());
    edges.insert(parts[i].edges.begin(), parts[i].edges.end());
    result.blocks.push_back(draw(lineage, parts[i]));
  }
  result.has_weak =
      std::any_of(edges.begin(), edges.end(), [&](std::size_t e) { return is_weak(lineage.edges[e], lineage.witnessed); });
  result.left_out_nodes = result.nodes - nodes.size();
  result.left_out_edges = result.edges - edges.size();
  return result;
}

}  // namespace kerntrail::render
