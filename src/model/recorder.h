// The one way to make a capture: interns texts and locations, hands out ids, writes of each snapshot only what
// differs from the unit's last state, and computes the digest from what was observed (not from what was written),
// so that a replay proves the differences.
// Must not know: Python, torch, file formats.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "kerntrail/capture.h"
#include "model/sink.h"

namespace kerntrail::model {

struct ObservedAttr {
  AttrId attr = AttrId::kNone;
  Observation value;
};

// Everything seen of one unit at one snapshot. An attr not listed is no_slot. Order of attrs does not matter.
struct ObservedUnit {
  UnitId unit = UnitId::kNone;
  std::vector<ObservedAttr> attrs;
};

// Not thread-safe: the caller serialises (the probe holds Python's GIL).
class Recorder {
 public:
  explicit Recorder(Sink& sink);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void run(const RunInfo& run);
  StageId stage(const Stage& stage);
  AttrId attr_kind(const AttrKind& kind);
  // An inventory attr by name: declared at first use (type json, no layer, not provenance).
  AttrId inventory_attr(std::string_view name);
  void hook(const HookRecord& hook, bool at_end);

  // Interning: equal content gives the same id; written at first use. Ill-formed UTF-8 is repaired (U+FFFD).
  TextId text(std::string_view text);
  TextId json(std::string_view compact_json);
  TextId json_value(const base::Json& value);  // needs no check: what it prints is JSON
  std::string_view text_of(TextId id) const;  // empty for kNone
  LocId loc(const Loc& loc);

  CompileId compile(const Compile& compile);
  GraphId graph(CompileId compile, std::string_view kind, std::string_view direction, std::string_view path = {});
  UnitId unit(GraphId graph, UnitKind kind, std::string_view seen_only_as = {});

  // The next snapshot of each graph is written whole (after an error that may have lost a difference).
  void force_full();
  SnapshotId snapshot(StageId stage, GraphId graph, std::span<const ObservedUnit> units);

  // A pass begins on a graph: name, subsystem, kind, parent and loc of `pass` count. Its id is the order of beginning.
  PassId begin_pass(const Pass& pass);
  // What the pass made or changed, as it is at its end; at most once a pass. `graph`: the one that came out.
  SnapshotId look(PassId pass, GraphId graph, std::span<const ObservedUnit> units);
  // The pass ends: the unit lists of `done` count.
  void end_pass(PassId pass, const Pass& done);
  void birth(const Birth& birth);

  void link(std::string_view kind, std::vector<UnitId> from, std::vector<UnitId> to);
  void claim(UnitId kernel, std::string_view claimant, std::string_view evidence, std::vector<UnitId> units);
  void note(const Note& note);
  void volatile_value(std::string_view of, std::string_view key, std::string_view value);
  void source(const SourceFile& source);
  // Drops the last states of a compile's units; they can't be in a later snapshot.
  void close_compile(CompileId compile);
  void end(bool complete);

  // "c0.n3", "c0.g1" for ids handed out here.
  std::string unit_name(UnitId unit) const;
  std::string graph_name(GraphId graph) const;
  GraphId graph_of(UnitId unit) const;

 private:
  struct State_;
  std::unique_ptr<State_> state_;
};

}  // namespace kerntrail::model
