// Every pass over an FX graph: what it made, erased, replaced and changed, and where each new node came from. Changes
// that no pass accounts for become a gap between two looks.
// Must not know: which hooks exist, what is lost or kept (facts only).
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <string_view>

#include "kerntrail/capture.h"
#include "session.h"

namespace kerntrail::probe {

struct PassNames {
  std::string name;
  std::string subsystem;
  PassKind kind = PassKind::kPass;
  LocId loc = LocId::kNone;
};

// A look at a whole graph at a stage border: changes since the last look go to a gap first, then the snapshot is
// taken and births of nodes that came with the graph are written.
SnapshotId look_at_border(Session& session, Frame& frame, nb::handle graph, StageId stage, std::string_view direction,
                          std::string_view path);

// A pass begins on a graph; `owner` (any object, compared by identity) closes it. Nothing happens for a graph that no
// border has shown, at level `borders`, and outside a compile.
void enter_pass(Session& session, nb::handle owner, nb::handle graph, PassNames names);
// It ends; `graph` is the one that came out. Passes above it that were never closed (they raised) end too.
void leave_pass(Session& session, nb::handle owner, nb::handle graph);

struct MatchContext;
// Names the pattern and the units it matched; nodes that no look has shown yet are read now, before they are erased.
void resolve_match(Session& session, MatchContext& match);

// A node took over all uses of another.
void note_replacement(nb::handle old_node, nb::handle new_node);

}  // namespace kerntrail::probe
