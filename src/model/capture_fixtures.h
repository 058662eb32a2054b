// Captures for tests: one that looks like a real small run, and random ones together with what was really seen.
// Must not know: files. Not part of the library.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"
#include "model/recorder.h"
#include "model/sink.h"

namespace kerntrail::model::fixtures {

// Two linear layers with a relu, over five stages: what a probe of a stock back end would tell. Every kind of record
// and every value type occurs.
void record_sample(Recorder& recorder);

// What a random program showed the recorder: (snapshot, unit) -> attrs that had a slot.
using Shown = std::map<std::pair<SnapshotId, UnitId>, std::map<AttrId, Observation>>;

// A random run of about `steps` steps; equal arguments make equal calls.
Shown record_random(Recorder& recorder, std::uint64_t seed, int steps);

// Everything a capture holds, as text: two captures are equal if these are.
std::string described(const Capture& capture);

// Text that breaks naive writers.
const std::vector<std::string>& hostile_texts();

// Hands each record to two sinks.
class Tee final : public Sink {
 public:
  Tee(Sink& a, Sink& b) : a_(a), b_(b) {}
  void run(const RunInfo& v) override { a_.run(v), b_.run(v); }
  void stage(StageId id, const Stage& v) override { a_.stage(id, v), b_.stage(id, v); }
  void attr_kind(AttrId id, const AttrKind& v) override { a_.attr_kind(id, v), b_.attr_kind(id, v); }
  void hook(const HookRecord& v, bool at_end) override { a_.hook(v, at_end), b_.hook(v, at_end); }
  void text(TextId id, std::string_view v, bool is_json) override { a_.text(id, v, is_json), b_.text(id, v, is_json); }
  void loc(LocId id, const Loc& v) override { a_.loc(id, v), b_.loc(id, v); }
  void compile(CompileId id, const Compile& v) override { a_.compile(id, v), b_.compile(id, v); }
  void graph(GraphId id, const Graph& v) override { a_.graph(id, v), b_.graph(id, v); }
  void unit(UnitId id, const Unit& v) override { a_.unit(id, v), b_.unit(id, v); }
  void attr(const AttrChange& v) override { a_.attr(v), b_.attr(v); }
  void snapshot(SnapshotId id, const Snapshot& v) override { a_.snapshot(id, v), b_.snapshot(id, v); }
  void pass(PassId id, const Pass& v, bool at_end) override { a_.pass(id, v, at_end), b_.pass(id, v, at_end); }
  void birth(const Birth& v) override { a_.birth(v), b_.birth(v); }
  void link(const Link& v) override { a_.link(v), b_.link(v); }
  void claim(const Claim& v) override { a_.claim(v), b_.claim(v); }
  void note(const Note& v) override { a_.note(v), b_.note(v); }
  void volatile_value(const Volatile& v) override { a_.volatile_value(v), b_.volatile_value(v); }
  void source(const SourceFile& v) override { a_.source(v), b_.source(v); }
  void end(const EndRecord& v) override { a_.end(v), b_.end(v); }

 private:
  Sink& a_;
  Sink& b_;
};

}  // namespace kerntrail::model::fixtures
