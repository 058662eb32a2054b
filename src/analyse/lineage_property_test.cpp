// Lineage of random FX graphs against what the rules say word by word, without any of the shortcuts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "capture_builder.h"
#include "invariants.h"
#include "kerntrail/lineage.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;
using Pairs = std::set<std::pair<UnitId, UnitId>>;

struct PostNode {
  UnitId unit = UnitId::kNone;
  std::vector<std::size_t> from_node;  // pre-grad nodes
  int line = 0;                        // 0: no stack
  std::vector<std::size_t> inputs;     // post-grad nodes; cycles are possible and must do no harm
  int op = -1;                         // the OpSpec op whose origins hold it; -1: none
};

struct RandomGraphs {
  std::vector<UnitId> pre;
  std::vector<int> pre_line;
  std::vector<PostNode> post;
  Capture capture;
};

template <class T>
std::vector<std::size_t> some_of(const std::vector<T>& from, int one_in) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (*rc::gen::inRange(0, one_in) == 0) result.push_back(i);
  }
  return result;
}

RandomGraphs random_graphs() {
  RandomGraphs g;
  CaptureBuilder b;
  const CompileId compile = b.compile("kerntrail_spyre");
  const GraphId pre = b.graph(compile, "fx");
  std::vector<CaptureBuilder::Seen> seen;
  for (int n = *rc::gen::inRange(1, 6); n > 0; --n) {
    g.pre.push_back(b.unit(pre, UnitKind::kFxNode));
    g.pre_line.push_back(*rc::gen::inRange(0, 4));
    seen.push_back(b.seen(g.pre.back()));
    seen.back().text("name", "pre");
    if (g.pre_line.back() > 0) seen.back().stack("m.py", g.pre_line.back(), "code");
  }
  b.snapshot("fx_pre_grad", pre, seen);
  const GraphId post = b.graph(compile, "fx", "inference");
  g.post.resize(*rc::gen::inRange<std::size_t>(1, 14));
  for (PostNode& node : g.post) node.unit = b.unit(post, UnitKind::kFxNode);
  seen.clear();
  for (PostNode& node : g.post) {
    if (*rc::gen::inRange(0, 4) == 0) node.from_node = some_of(g.pre, 2);
    if (*rc::gen::inRange(0, 3) == 0) node.line = *rc::gen::inRange(1, 6);  // 4 and 5: no pre-grad node is there
    node.inputs = some_of(g.post, 4);
    node.op = *rc::gen::inRange(-1, 5);
    CaptureBuilder::Seen look = b.seen(node.unit);
    look.text("name", "post");
    std::vector<UnitId> refs;
    for (std::size_t i : node.inputs) refs.push_back(g.post[i].unit);
    look.refs("inputs", refs, "list");
    refs.clear();
    for (std::size_t i : node.from_node) refs.push_back(g.pre[i]);
    if (!refs.empty()) look.from_node("[]", refs);
    if (node.line > 0) look.stack("m.py", node.line, "code");
    seen.push_back(look);
  }
  b.snapshot("fx_post_grad", post, seen);
  const GraphId specs = b.graph(compile, "op_spec");
  seen.clear();
  for (int op = 0; op < 5; ++op) {
    std::vector<UnitId> origins;
    for (const PostNode& node : g.post) {
      if (node.op == op) origins.push_back(node.unit);
    }
    seen.push_back(b.seen(b.unit(specs, UnitKind::kOpSpec)).text("name", "op").refs("buffer_origins", origins));
  }
  b.snapshot("op_spec", specs, seen);
  g.capture = b.finish();
  return g;
}

// A node's own anchors: its from_node, else every pre-grad node on its line.
std::set<std::size_t> own(const RandomGraphs& g, const PostNode& node) {
  if (!node.from_node.empty()) return {node.from_node.begin(), node.from_node.end()};
  std::set<std::size_t> result;
  for (std::size_t i = 0; i < g.pre.size(); ++i) {
    if (node.line > 0 && g.pre_line[i] == node.line) result.insert(i);
  }
  return result;
}

// The nodes lowered together with a node, itself included.
std::vector<std::size_t> together(const RandomGraphs& g, std::size_t node) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < g.post.size(); ++i) {
    if (i == node || (g.post[node].op >= 0 && g.post[i].op == g.post[node].op)) result.push_back(i);
  }
  return result;
}

std::set<std::size_t> anchors(const RandomGraphs& g, std::size_t node, std::set<std::size_t>& visited) {
  if (!visited.insert(node).second) return {};
  std::set<std::size_t> result;
  for (std::size_t i : together(g, node)) {
    const auto some = own(g, g.post[i]);
    result.insert(some.begin(), some.end());
  }
  if (!result.empty()) return result;
  for (std::size_t i : together(g, node)) {
    for (std::size_t input : g.post[i].inputs) {
      const auto some = anchors(g, input, visited);
      result.insert(some.begin(), some.end());
    }
  }
  return result;
}

RC_GTEST_PROP(LineageProperty, PreToPostEdgesAreWhatTheRulesSay, ()) {
  const RandomGraphs g = random_graphs();
  Pairs expected;
  for (std::size_t i = 0; i < g.post.size(); ++i) {
    auto from = own(g, g.post[i]);
    std::set<std::size_t> visited;
    if (from.empty()) from = anchors(g, i, visited);
    for (std::size_t p : from) expected.insert({g.pre[p], g.post[i].unit});
  }
  const auto all = lineages(g.capture, {{"fx_pre_grad", "fx_post_grad"}, {}});
  RC_ASSERT(all.has_value());
  Pairs found;
  for (const LineageEdge& edge : all->front().edges) {
    const LineageNode& from = all->front().nodes[edge.from];
    if (has(from.unit)) found.insert({from.unit, all->front().nodes[edge.to].unit});
  }
  RC_ASSERT(found == expected);
  testing::expect_invariants(g.capture);
  RC_ASSERT(!::testing::Test::HasFailure());
}

}  // namespace
}  // namespace kerntrail
