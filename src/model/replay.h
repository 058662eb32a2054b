// Records -> Capture: checks every reference, applies differences, and compares each snapshot's digest.
// Must not know: where records come from (file line numbers are passed in for messages).
#pragma once

#include <memory>

#include "kerntrail/capture.h"
#include "model/sink.h"

namespace kerntrail::model {

struct ReplayOptions {
  bool check_digests = true;
};

// A Sink that builds a Capture. The first violated rule is kept in error(); later records are ignored.
class Replay final : public Sink {
 public:
  explicit Replay(ReplayOptions options = {});
  ~Replay() override;
  void set_position(std::string path, std::uint64_t line);  // of the record that follows
  void set_line(std::uint64_t line);
  const Error* error() const;
  const Capture& capture() const;  // as far as records went
  Capture take();

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
  struct State_;
  std::unique_ptr<State_> state_;
};

}  // namespace kerntrail::model
