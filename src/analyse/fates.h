// What became of units: over one pass, and from a stage to the next of its layer.
// Must not know: fields of provenance, output formats.
#pragma once

#include "analyse/edges.h"
#include "analyse/intents.h"
#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "kerntrail/drops.h"

namespace kerntrail::analyse {

class FateFinder {
 public:
  FateFinder(const Capture& capture, const PassIndex& passes, const IntentTable& intents);

  // Units that entered the pass and were erased in it.
  PassTally over(PassId pass) const;
  // From column `a` to column `b` of the pipeline.
  StageInterval between(const Pipeline& pipeline, EdgeFinder& edges, std::size_t a, std::size_t b) const;

 private:
  UnitFate fate_of(UnitId unit, PassId erased) const;
  bool is_constant(UnitId unit) const;
  bool was_input(UnitId input, UnitId of, PassId pass) const;
  bool became(UnitId unit, UnitId other) const;
  bool entered(UnitId unit, PassId pass) const;

  const Capture& capture_;
  const PassIndex& passes_;
  const IntentTable& intents_;
  AttrId inputs_, op_, target_;
};

}  // namespace kerntrail::analyse
