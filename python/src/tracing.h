// How FX nodes come to exist: what each thread is interpreting, copying or matching while the compiler makes a node,
// and the compiler's frames above it. Runs on every node creation, so it takes no lock and writes nothing.
// Must not know: hooks, stages, the capture file.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kerntrail/capture.h"
#include "model/recorder.h"

namespace kerntrail::probe {

namespace nb = nanobind;

class Session;
struct CompileState;
class Witness;

// One Python frame as it was when a node was made.
struct FrameRef {
  nb::object code;
  int line = 0;
};

// One application of a pattern: what it matched, and (once it made a node) what those were.
struct MatchContext {
  nb::object entry;
  std::vector<nb::object> nodes;
  bool resolved = false;  // `units` is filled
  std::vector<UnitId> units;
  std::string pattern;
  LocId pattern_loc = LocId::kNone;
};

struct NodeBirth {
  nb::object node;                      // kept, so that its address names it
  nb::object source;                    // interpreted or copied node; may be invalid
  bool is_copy = false;
  std::shared_ptr<MatchContext> match;  // may be empty
  std::vector<FrameRef> frames;         // responsible frame first
  bool written = false;                 // its birth records are in the file
};

// What this thread is doing. Pointers live as long as the calls that put them here.
struct Tracing {
  std::shared_ptr<CompileState> compile;  // of the innermost frame of the thread
  std::vector<PyObject*> interpreted;     // nodes under fx.Interpreter.run_node, innermost last
  std::vector<PyObject*> copied;          // nodes under fx.Graph.node_copy
  std::vector<std::shared_ptr<MatchContext>> matches;
  std::vector<struct PassScope>* passes = nullptr;  // of this thread, while `compile` is set
  bool quiet = false;                     // the graph is being lowered: nodes made now are of loop bodies
  std::shared_ptr<Witness> witness;       // at level truth, while a graph is lowered and its code is generated
  nb::handle pass_function;               // of apply_gm_pass / apply_graph_pass, until its observer is entered
};
Tracing& tracing();

// The compiler's frames above this call, the responsible one first.
std::vector<FrameRef> frames_here();

// Notes the birth of a node just made in `graph`. With `all_frames` every node's frames are taken, else those of nodes
// made in graphs that are being watched.
// Returns the match it was made by, while what was matched is not written down.
MatchContext* note_creation(nb::handle graph, nb::handle node, bool all_frames);

// The unit a node stands for: its own, else that of what it was interpreted or copied from, any number of steps back.
UnitId unit_behind(const CompileState& compile, PyObject* node);

// Name and definition of what a pattern entry does when it matches.
void describe_pattern(Session& session, MatchContext& match);

// How to name what a caller had put into a slot of the compiler: a function by its name, an object by its class. Empty
// for functions of torch itself, whose slots say enough.
std::string name_in_slot(nb::handle callable);
// Where a callable is defined (wrappers, partials and bound methods taken off); kNone for one without Python code.
LocId definition_of(Session& session, nb::handle callable);
// "torch/_inductor/x.py" for the compiler's files wherever torch is installed.
std::string compiler_path(Session& session, std::string_view file);
// Frames as a call chain, innermost first.
LocId chain_of(Session& session, const std::vector<FrameRef>& frames);

// Whether code in a file makes nodes on behalf of others (torch's graph, tracer, pattern matcher), or is no file.
bool is_generic_file(std::string_view path);

}  // namespace kerntrail::probe
