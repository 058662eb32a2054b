// The columns of a pipeline as nodes for match.h: what each unit is, what it is made of, and which source lines lead to
// it. Must not know: how nodes are matched, conclusions, output formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyse/edges.h"
#include "analyse/match.h"
#include "analyse/pipeline.h"

namespace kerntrail::analyse {

// What a unit is, whatever it is called: op and target of an FX node, classes of an operation or kernel.
std::uint64_t label_of(const Capture& capture, const AttrNames& names, const ColumnUnit& unit);
// Of the code text of the line that the unit's own stack names; 0 for none.
std::uint64_t code_of(const Capture& capture, const AttrNames& names, const ColumnUnit& unit);

// A placeholder of a graph.
struct Leaf {
  UnitId unit = UnitId::kNone;
  std::uint64_t kind = 0, name = 0;
};

// Reads the columns of one side in order; remembers of each unit what earlier columns said.
class NodeReader {
 public:
  NodeReader(const Capture& capture, const Pipeline& pipeline, EdgeFinder& edges);

  // `before`: the column read last. `matched`: of units of earlier columns, the number of their pair or group.
  MatchSide read(std::size_t column, std::optional<std::size_t> before,
                 const std::unordered_map<UnitId, std::uint64_t>& matched);
  // Placeholders of the column's graphs, in order.
  std::vector<Leaf> leaves(std::size_t column) const;

 private:
  void add_inputs(const ColumnUnit& unit, const Column& column, MatchNode& node) const;

  const Capture& capture_;
  const Pipeline& pipeline_;
  EdgeFinder& edges_;
  AttrNames names_;
  std::unordered_map<UnitId, std::vector<std::uint64_t>> codes_;
};

// Gives leaves an identity where both sides call them alike: by equal names, else by their order where kinds agree.
void identify_leaves(MatchSide& old, const std::vector<Leaf>& old_leaves, MatchSide& now,
                     const std::vector<Leaf>& new_leaves);

}  // namespace kerntrail::analyse
