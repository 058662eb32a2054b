// A made-up program that is compiled twice, and how its second run differs: what tests of diff compare.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/diff.h"

namespace kerntrail::testing {

// How the second run of a program differs from its first.
struct Variant {
  std::uint64_t seed = 0;
  bool rename = false, reorder = false, restickify = false, refuse = false;
  int shift = 0;  // lines
  std::size_t more_layers = 0;  // at the end
  std::string folder;
  // A node of the post-grad graph (in program order) and a field that the decomposition doesn't copy to it.
  int lost_node = -1;
  std::string lost_field;
  bool modules = true;
  // The pass that decomposes, and the line of its file that makes nodes.
  std::string pass_name = "decompose", pass_file = "torch/decompose.py";
  int pass_line = 7;
  int misnamed_node = -1;  // a node of the post-grad graph whose stack names the program's first line
  bool neg = false;  // the decomposition makes a node more, without the field `lost_field`
  bool twins = false;  // the program ends with two nodes that nothing tells apart
  bool twin_loses = false;  // one of them loses `lost_field`
  bool witnessed = false;  // level truth: each kernel's lines are its own operations' nodes
  int false_claim = -1;  // a kernel, in order, that claims a node of another one too
  Settings settings{{"level", "passes"}, {"provenance_level", "0"}};
};

// A program of layers; equal seeds are equal programs.
class Program {
 public:
  Program(std::uint64_t seed, const Variant& variant) : seed_(seed), variant_(variant) {}

  Capture run();
  // Of the last run: nodes of the post-grad graph in program order, and the first that calls `target`.
  std::size_t post_nodes() const { return units_.size(); }
  UnitId post_unit(std::size_t i) const { return units_[i]; }
  int post_node(std::string_view target) const;

 private:
  std::uint64_t seed_;
  Variant variant_;
  std::vector<UnitId> units_;
  std::vector<std::string> targets_;
};

// The comparison, which must not fail.
Diff need(const Capture& old, const Capture& now);
// Pairs, groups and rest add up on both sides, and nothing stands in two of them.
void expect_sums(const Diff& result);
// What was found, for messages.
std::string described(const Diff& result);

}  // namespace kerntrail::testing
