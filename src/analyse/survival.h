// One matrix over chosen columns of a pipeline: the rule of how a cell is decided, unit by unit.
// Must not know: output formats.
#pragma once

#include <string_view>
#include <vector>

#include "analyse/edges.h"
#include "analyse/pipeline.h"
#include "kerntrail/matrix.h"

namespace kerntrail::analyse {

Matrix matrix_of(const Capture& capture, const Pipeline& pipeline, const std::vector<std::size_t>& columns,
                 EdgeFinder& edges);

// Tracked attr kinds whose layer exists among the columns of the pipeline, by the order of the first stage of each
// layer, then as declared.
std::vector<AttrId> tracked_attrs(const Capture& capture, const Pipeline& pipeline);

// Carried under a key of the forward node's: it stays with the unit, nothing reads it through the unit's origins.
bool is_of_forward(std::string_view carrier);

// Order of the stage where a field comes to exist, captured or not. A first stage that nobody knows: where the capture
// first shows a slot for it.
int first_order(const Capture& capture, const Pipeline& pipeline, AttrId attr);

}  // namespace kerntrail::analyse
