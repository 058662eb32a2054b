// Names on the edges of a lineage: the pass that made the later FX node.
// Must not know: output formats.
#pragma once

#include "kerntrail/lineage.h"

namespace kerntrail::analyse {

class PassIndex;

// Fills LineageEdge::pass. Edges to nodes that no pass made, and from a unit to itself, stay without.
void name_passes(const Capture& capture, const PassIndex& passes, Lineage& lineage);

}  // namespace kerntrail::analyse
