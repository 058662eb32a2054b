// What a producer of captures tells its consumer, one call a record, in file order. Ids are dense and declared
// before they are used. Implemented by the NDJSON writer and by the replay into a Capture.
// Must not know: files, how observations are made.
#pragma once

#include <string_view>

#include "kerntrail/capture.h"

namespace kerntrail::model {

// One difference: from `at` on, (unit, attr) reads `value`. state no_slot: the slot went away.
struct AttrChange {
  UnitId unit = UnitId::kNone;
  AttrId attr = AttrId::kNone;
  SnapshotId at = SnapshotId::kNone;  // the snapshot that follows
  Observation value;
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void run(const RunInfo& run) = 0;
  virtual void stage(StageId id, const Stage& stage) = 0;
  virtual void attr_kind(AttrId id, const AttrKind& kind) = 0;
  // `at_end`: the closing record of a hook, with its counters.
  virtual void hook(const HookRecord& hook, bool at_end) = 0;
  virtual void text(TextId id, std::string_view text, bool is_json) = 0;
  virtual void loc(LocId id, const Loc& loc) = 0;
  virtual void compile(CompileId id, const Compile& compile) = 0;
  virtual void graph(GraphId id, const Graph& graph) = 0;
  virtual void unit(UnitId id, const Unit& unit) = 0;
  virtual void attr(const AttrChange& change) = 0;
  // Closes the attr records before it. After this call everything up to here is safe on disk.
  virtual void snapshot(SnapshotId id, const Snapshot& snapshot) = 0;
  // `at_end`: the closing record of a pass, with what it did.
  virtual void pass(PassId id, const Pass& pass, bool at_end) = 0;
  virtual void birth(const Birth& birth) = 0;
  virtual void link(const Link& link) = 0;
  virtual void claim(const Claim& claim) = 0;
  virtual void note(const Note& note) = 0;
  virtual void volatile_value(const Volatile& value) = 0;
  virtual void source(const SourceFile& source) = 0;
  virtual void end(const EndRecord& end) = 0;
};

}  // namespace kerntrail::model
