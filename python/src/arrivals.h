// Births of units that came with their graph rather than by a pass on it: interpreted, copied or moved from an earlier
// graph, or joined to it by autograd's numbers.
// Must not know: hooks, passes, how a value is read.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"
#include "session.h"

namespace kerntrail::probe {

// Nodes that a graph of another direction took over, each with the unit it stood for before.
using Moves = std::vector<std::pair<PyObject*, UnitId>>;

// Forward nodes of a joint graph by the number that autograd gave them, for backward nodes that have no other link.
void write_sequence_births(Session& session, CompileState& compile, const std::vector<nb::object>& nodes);
// Nodes of a lazy backward: the copy that it is compiled from was made outside any compile, names tell what of.
void write_late_copies(Session& session, CompileState& compile, const std::vector<nb::object>& nodes,
                       std::string_view path);
// Nodes that came with their graph: interpreted or copied from nodes of an earlier one.
void write_arrivals(Session& session, CompileState& compile, const std::vector<nb::object>& nodes);
void write_moves(Session& session, const CompileState& compile, const Moves& moved);

}  // namespace kerntrail::probe
