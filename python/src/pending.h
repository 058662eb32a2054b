// What the hooks have shown of one lowering until the compile's code is done and it is written: OpSpecs, scheduler
// groups, kernels, calls. No Python object is kept here but lowerings, FX graphs and kernels in the making, which live
// until then anyway. Must not know: hooks, how an object is read.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "kerntrail/capture.h"
#include "model/recorder.h"

namespace kerntrail::probe {

namespace nb = nanobind;

// One registration of a kernel with the compiler's provenance: one for each call that is generated.
struct Registration {
  std::string handle;                   // "name:4"; empty at provenance level 0, where there is none
  std::string function;                 // of the wrapper: the sub-graph's name, empty for the root
  std::vector<std::string> operations;  // by name
};

// A kernel as its hooks show it.
struct PendingKernel {
  model::ObservedUnit observed;  // without what is only known at the end
  std::string name;
  std::string directory;  // of its bundle, where it has one
  std::string function;   // the wrapper's function that an extern kernel is called in
  std::string kernel_class;
  bool is_extern = false;   // called by a name that others share: each call is a kernel of its own
  bool is_tentative = false;  // an extern operation that was not registered; becomes a kernel where a call is found
  std::int64_t defined = 0;
  std::vector<Registration> registrations;
  std::string text;                      // of its definition, where a witness is wanted
  base::JsonArray witness;               // one entry a registration
  std::vector<UnitId> witnessed;         // units that the witness refers to
  std::vector<std::string> ir_classes;
  std::vector<UnitId> claimed;     // by origins
  std::vector<UnitId> mapped;      // by the compiler's own node mapping
  std::vector<std::string> stacks;  // by the compiler's own kernel stacks
  std::vector<UnitId> operations;  // linked to it so far
  // The OpSpecs that its text holds, in order, each time it was generated: places in PendingGraph::op_specs.
  std::vector<std::vector<std::size_t>> op_specs;
  base::Json reread;  // the OpSpecs as objects again, after its text was executed; null where that was not seen
  // The compiler's lines that read its text again and write its files.
  LocId reread_at = LocId::kNone, written_at = LocId::kNone;
};

// An operation of a body, and who asked for it.
struct WitnessedOp {
  std::string op;
  UnitId unit = UnitId::kNone;
  base::Json made;           // instead of `unit`: the compiler's line; null where nobody is known
  std::vector<UnitId> also;  // further nodes that were given its value
};

struct PendingOpSpec {
  model::ObservedUnit observed;
  std::string operation;  // of its buffer
  std::vector<WitnessedOp> ops;
};

// A kernel of a Spyre-format back end that is being generated, and its OpSpecs so far.
struct OpenKernel {
  nb::object kernel;
  std::vector<std::size_t> op_specs;
};

// A scheduler group, in the order of the schedule.
struct PendingGroup {
  UnitId unit = UnitId::kNone;
  std::string name, group_class;
  struct Member {
    UnitId unit = UnitId::kNone;
    std::string name, node_class;
    std::vector<std::string> buffers;
  };
  std::vector<Member> members;
};

struct PendingSchedule {
  CompileId compile = CompileId::kNone;
  GraphId graph = GraphId::kNone;
  nb::object lowering;  // its removed buffers are known when its code is done
  std::vector<PendingGroup> groups;
};

// The generated module; `offset`: lines that were put above it when it was written.
struct PendingWrapper {
  std::string text;
  std::int64_t offset = 0;
};

struct PendingGraph {  // one lowering with its sub-graphs, in the order things were made
  std::vector<PendingOpSpec> op_specs;
  std::vector<OpenKernel> open_kernels;
  std::vector<PendingSchedule> schedules;
  std::vector<PendingKernel> kernels;
  std::optional<PendingWrapper> wrapper;
  std::vector<nb::object> touched;  // FX graphs on which asking for a kernel's comment left an attribute
  // The compiler's last comment, for the registration of the same nodes that follows.
  const void* commented = nullptr;
  std::string comment, detailed;
  std::size_t registered = 0;  // registrations so far
  GraphId op_spec_graph = GraphId::kNone;
  GraphId kernel_graph = GraphId::kNone;
};

}  // namespace kerntrail::probe
