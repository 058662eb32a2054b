// Sink -> NDJSON file: one record a line, compressed by the file's ending (.zst: a frame a snapshot, .gz: a member a
// snapshot), flushed at each snapshot, so that a killed program leaves a file readable up to its last snapshot.
// Must not know: what records mean.
#pragma once

#include <memory>
#include <string>

#include "kerntrail/expected.h"
#include "model/sink.h"

namespace kerntrail::model {

// One NDJSON line (with its line end) for each kind of record; the single definition of the file's spelling.
// The writer below appends these; tests and exports may use them alone.
class NdjsonWriter final : public Sink {
 public:
  // Creates `path`; kIo if it exists already (`replace` false) or can't be written.
  static Expected<std::unique_ptr<NdjsonWriter>> open(const std::string& path, bool replace);
  // Appends to a string instead of a file (tests, piping); never fails.
  static std::unique_ptr<NdjsonWriter> to_string(std::string& out);
  ~NdjsonWriter() override;

  // The first write error, if any (a full disk): later records are dropped.
  const Error* error() const;
  // Puts what followed the last look at a stage on disk too: its links, claims and births are all there.
  void settle();
  // Ends the last frame and closes the file. Called by end().
  void close();
  // Forgets the file without touching it: for forked children.
  void abandon();

  void run(const RunInfo& run) override;
  void stage(StageId id, const Stage& stage) override;
  void attr_kind(AttrId id, const AttrKind& kind) override;
  void hook(const HookRecord& hook, bool at_end) override;
  void text(TextId id, std::string_view text, bool is_json) override;
  void loc(LocId id, const Loc& loc) override;
  void compile(CompileId id, const Compile& compile) override;
  void graph(GraphId id, const Graph& graph) override;
  void unit(UnitId id, const Unit& unit) override;
  void attr(const AttrChange& change) override;
  void snapshot(SnapshotId id, const Snapshot& snapshot) override;
  void pass(PassId id, const Pass& pass, bool at_end) override;
  void birth(const Birth& birth) override;
  void link(const Link& link) override;
  void claim(const Claim& claim) override;
  void note(const Note& note) override;
  void volatile_value(const Volatile& value) override;
  void source(const SourceFile& source) override;
  void end(const EndRecord& end) override;

 private:
  NdjsonWriter();
  struct State_;
  std::unique_ptr<State_> state_;
};

}  // namespace kerntrail::model
