#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "render/mermaid.h"
#include "render/outputs.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kMaxDepth = 100;  // deeper than any pipeline; a hostile capture may declare more stages

class Tree {
 public:
  Tree(const Lineage& lineage, bool forwards, const TreeStyle& style)
      : lineage_(lineage),
        forwards_(forwards),
        style_(style),
        next_(lineage.nodes.size()),
        printed_(lineage.nodes.size(), false) {
    for (std::size_t e = 0; e < lineage.edges.size(); ++e) {
      next_[forwards ? lineage.edges[e].from : lineage.edges[e].to].push_back(e);
    }
  }

  void root(std::uint32_t node) {
    out_ += describe(node) + "\n";
    below(node, "", 0);
  }
  // Only what hangs below: for a node whose own line is printed elsewhere.
  void children(std::uint32_t node) { below(node, "", 0); }
  bool has_children(std::uint32_t node) const { return !next_[node].empty(); }
  std::string take() { return std::move(out_); }

 private:
  void below(std::uint32_t node, const std::string& indent, std::size_t depth) {
    printed_[node] = true;
    if (depth >= kMaxDepth) {
      out_ += indent + "└─ … deeper than can be shown\n";
      return;
    }
    for (std::size_t i = 0; i < next_[node].size(); ++i) {
      const LineageEdge& edge = lineage_.edges[next_[node][i]];
      const std::uint32_t child = forwards_ ? edge.to : edge.from;
      const bool last = i + 1 == next_[node].size();
      const bool again = printed_[child] && !next_[child].empty();
      out_ +=
          indent + (last ? "└─ " : "├─ ") + describe(child) + why(edge) + (again ? dim("  (shown above)") : "") + "\n";
      if (!again) below(child, indent + (last ? "   " : "│  "), depth + 1);
    }
  }

  std::string describe(std::uint32_t i) const {
    const LineageNode& node = lineage_.nodes[i];
    if (node.layer == 0) {
      const std::string place = fmt::format("{}:{}", visible(node.file), node.line);
      return bold(place) + "  " + visible(node.name);
    }
    return dim(visible(short_title(lineage_.layers[node.layer].title))) + "  " + visible(node_label(node));
  }

  // Exact and recorded links go without saying; where nothing has a witness, so does the compiler's own word.
  std::string why(const LineageEdge& edge) const {
    const std::string pass = edge.pass.empty() ? "" : dim(fmt::format("  <{}>", visible(edge.pass)));
    const bool claimed =
        edge.strength == Strength::kClaimed && (lineage_.witnessed || edge.evidence == Evidence::kClaim);
    if (edge.strength != Strength::kDerived && !claimed && !edge.ambiguous) return pass;
    return pass + dim(fmt::format("  [{}{}]", evidence_name(edge.evidence), edge.ambiguous ? ", ambiguous" : ""));
  }

  std::string dim(const std::string& text) const { return style_.colour ? "\x1b[2m" + text + "\x1b[0m" : text; }
  std::string bold(const std::string& text) const { return style_.colour ? "\x1b[1m" + text + "\x1b[0m" : text; }

  const Lineage& lineage_;
  bool forwards_;
  TreeStyle style_;
  std::vector<std::vector<std::size_t>> next_;
  std::vector<bool> printed_;
  std::string out_;
};

std::string heading(const Capture& capture, CompileId id) {
  const Compile& compile = capture.compiles[index(id)];
  return fmt::format("Compile {} ({}, torch {})\n", compile_name(id), visible(compile.backend),
                     visible(compile.torch_id));
}

// A unit that lives through several stages answers a question once, at the first of them.
bool same_as_one_above(const Lineage& lineage, std::uint32_t node, const std::vector<std::uint32_t>& start) {
  return std::any_of(start.begin(), start.end(), [&](std::uint32_t other) {
    return other < node && has(lineage.nodes[node].unit) && lineage.nodes[other].unit == lineage.nodes[node].unit;
  });
}

// What the compiler says otherwise. `name` tells nodes apart where several are shown.
std::string doubts(const Capture& capture, const Lineage& lineage) {
  std::string out;
  for (const ContradictedClaim& claim : lineage.contradicted) {
    const LineageNode& node = lineage.nodes[claim.node];
    out += fmt::format("  {} ({}) is claimed to come from {} ({}){}\n", visible(node.name),
                       unit_name(capture, node.unit), visible(claim.name), unit_name(capture, claim.claimed),
                       claim.support == Support::kElsewhere ? ", which others work for" : ", which nothing works for");
  }
  if (!out.empty()) out = "Claimed by the compiler, contradicted by the witness:\n" + out;
  std::string rewritten;
  for (const Rewrite& rewrite : lineage.rewrites) {
    const auto node = std::find_if(lineage.nodes.begin(), lineage.nodes.end(),
                                   [&](const LineageNode& n) { return n.unit == rewrite.node; });
    if (node == lineage.nodes.end()) continue;
    rewritten += fmt::format("  {} ({}) was made from {}, and names {} {}", visible(node->name),
                             unit_name(capture, rewrite.node), visible(base::join(rewrite.was, ", ")),
                             visible(rewrite.now), rewrite.at_birth ? "from the first" : "since");
    if (!rewrite.pass.empty()) rewritten += " " + visible(rewrite.pass);
    if (!rewrite.place.empty()) rewritten += (rewrite.place_is_pass ? ", defined at " : ", ") + visible(rewrite.place);
    rewritten += "\n";
  }
  if (!rewritten.empty())
    out += "Provenance that was written over; edges show what a node was made from:\n" + rewritten;
  return out;
}

}  // namespace

std::string lineage_tree(const Capture& capture, const std::vector<Lineage>& lineages, const TreeStyle& style) {
  std::string out;
  for (const Lineage& lineage : lineages) {
    if (lineages.size() > 1) out += (out.empty() ? "" : "\n") + heading(capture, lineage.compile);
    std::vector<bool> reached(lineage.nodes.size(), false);
    for (const LineageEdge& edge : lineage.edges) reached[edge.to] = true;
    Tree tree(lineage, true, style);
    std::string sourceless;
    for (std::uint32_t n = 0; n < lineage.nodes.size(); ++n) {
      if (!reached[n] && lineage.nodes[n].layer == 0) tree.root(n);
    }
    out += tree.take();
    Tree rest(lineage, true, style);
    for (std::uint32_t n = 0; n < lineage.nodes.size(); ++n) {
      if (!reached[n] && lineage.nodes[n].layer != 0) rest.root(n);
    }
    sourceless = rest.take();
    if (!sourceless.empty()) out += "Without a source line:\n" + sourceless;
    out += doubts(capture, lineage);
  }
  return out;
}

std::string query_tree(const Capture& capture, const Lineage& lineage, const std::vector<std::uint32_t>& start,
                       const TreeStyle& style) {
  std::string out = heading(capture, lineage.compile);
  for (std::uint32_t node : start) {
    if (same_as_one_above(lineage, node, start)) continue;
    const LineageNode& n = lineage.nodes[node];
    const std::string place =
        n.layer == 0 ? fmt::format("{}:{}", visible(n.file), n.line)
                     : fmt::format("{}, {}", visible(lineage.layers[n.layer].title), unit_name(capture, n.unit));
    out += fmt::format("\n{} ({})\n", visible(node_label(n)), place);
    Tree up(lineage, false, style);
    Tree down(lineage, true, style);
    const bool from = up.has_children(node);
    const bool to = down.has_children(node);
    if (from) {
      up.children(node);
      out += "comes from\n" + up.take();
    } else if (n.layer != 0) {
      out += "comes from nothing that was seen\n";
    }
    if (to) {
      down.children(node);
      out += "becomes\n" + down.take();
    } else if (n.layer + 1 < lineage.layers.size()) {
      out += "becomes nothing that was seen\n";
    }
  }
  if (const std::string other = doubts(capture, around(lineage, start)); !other.empty()) out += "\n" + other;
  return out;
}

}  // namespace kerntrail::render
