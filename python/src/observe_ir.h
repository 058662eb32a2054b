// Loop-level IR operations as snapshots: origins, origin_node, traceback and get_stack_traces, each with whether the
// attribute is there apart from what it holds.
// Must not know: hooks, kernels.
#pragma once

#include <string_view>
#include <unordered_map>

#include "session.h"

namespace kerntrail::probe {

// The operations of a GraphLowering, in its order. The lowering is the graph; its operations keep their unit.
SnapshotId snapshot_operations(Session& session, CompileState& compile, nb::handle lowering, StageId stage,
                               std::string_view direction);

// All that is observed of one operation.
model::ObservedUnit read_operation(Session& session, CompileState& compile, nb::handle operation, UnitId unit);
// The graph of a GraphLowering; declared when it is first asked for.
GraphId lowering_graph(Session& session, CompileState& compile, nb::handle lowering, std::string_view direction);

// The unit of a live IR operation; declared as seen only through `why` if no snapshot has shown it.
UnitId unit_of_operation(Session& session, CompileState& compile, nb::handle operation, std::string_view why);

// The four provenance attributes of an IR object under the given attr ids (an OpSpec shows its buffer's under others).
struct IrFields {
  AttrId origins, origin_node, traceback, get_stack_traces;
};
void read_ir_fields(Session& session, CompileState& compile, nb::handle operation, const IrFields& fields,
                    model::ObservedUnit& out);

// FX units in an object's origins, in its order. `readable` becomes false when reading them raised halfway.
std::vector<UnitId> origin_units(Session& session, CompileState& compile, nb::handle operation,
                                 bool* readable = nullptr);
// get_operation_name(), else get_name(), else empty.
std::string operation_name(nb::handle operation);

}  // namespace kerntrail::probe
