// Per-stage tables and per-kernel blocks of a report.
// Must not know: output formats.
#pragma once

#include <vector>

#include "analyse/edges.h"
#include "analyse/pipeline.h"
#include "kerntrail/report.h"

namespace kerntrail::analyse {

StageTable stage_table(const Capture& capture, const Pipeline& pipeline, std::size_t column, const EdgeFinder& edges);
// Every kernel of the pipeline, by definition order, with its bundle where it has one.
std::vector<KernelBlock> kernel_blocks(const Capture& capture, const Pipeline& pipeline, const EdgeFinder& edges);
// The kind of table that a stage's units call for; an empty stage is judged by its key and layer.
TableKind table_kind(const Capture& capture, const Column& column);
// The latest look at a unit anywhere in the pipeline before column `limit`; kNone where there is none.
SnapshotId last_look(const Pipeline& pipeline, UnitId unit, std::size_t limit);

}  // namespace kerntrail::analyse
