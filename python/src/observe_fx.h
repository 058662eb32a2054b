// FX graphs as snapshots: every node of a live graph with its metadata, read once and copied at once.
// Must not know: hooks, IR.
#pragma once

#include <string>
#include <string_view>

#include "session.h"

namespace kerntrail::probe {

// The fx.Graph of a GraphModule or Graph; invalid for anything else.
nb::object graph_of(nb::handle module_or_graph);

// Takes a snapshot of every node. The graph and its nodes get ids at first sight and keep them while the objects live.
SnapshotId snapshot_fx(Session& session, CompileState& compile, nb::handle graph, StageId stage,
                       std::string_view direction, std::string_view path);

// One node, read as it is. Inputs that no look has shown are declared as seen only through `why`.
model::ObservedUnit read_node(Session& session, CompileState& compile, nb::handle node, UnitId unit,
                              std::string_view why);
// Every node of a graph in order.
std::vector<nb::object> nodes_of(nb::handle graph);
// The graph's id; given at first sight.
GraphId fx_graph_id(Session& session, CompileState& compile, nb::handle graph, std::string_view direction,
                    std::string_view path);

// Lets later from_node chains find this graph's nodes by (id(graph), name): nodes already known keep their unit.
void remember_names(Session& session, CompileState& compile, nb::handle graph);

// Notes what each node of a backward graph and of the graphs nested in it (at `path`) is a copy of.
void remember_backward(CompileState& compile, nb::handle module, const std::string& path);

// The unit of a live FX node; declared as seen only through `why` if no snapshot has shown it.
UnitId unit_of_node(Session& session, CompileState& compile, nb::handle node, std::string_view why);

// The name under which `child` (a GraphModule) hangs in `parent`; empty where it does not.
std::string submodule_name(nb::handle parent, nb::handle child);

}  // namespace kerntrail::probe
