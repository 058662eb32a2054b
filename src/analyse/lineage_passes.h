// What passes did to the FX nodes of a lineage: which one made a node, and which one gave it another's provenance.
// Must not know: output formats.
#pragma once

#include "kerntrail/lineage.h"

namespace kerntrail::analyse {

class PassIndex;

// Fills LineageEdge::pass. Edges to nodes that no pass made, and from a unit to itself, stay without.
void name_passes(const Capture& capture, const PassIndex& passes, Lineage& lineage);
// Fills Lineage::rewrites.
void find_rewrites(const Capture& capture, const PassIndex& passes, Lineage& lineage);

}  // namespace kerntrail::analyse
