// Hand-built captures for tests: short spellings over model::Recorder, written and replayed at once.
// Must not know: analyses, output formats.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"
#include "model/ndjson_writer.h"
#include "model/recorder.h"
#include "model/replay.h"

namespace kerntrail::testing {

class TeeSink;

// Declares the stages and attrs that the probe writes, then takes units and snapshots.
class CaptureBuilder {
 public:
  explicit CaptureBuilder(Settings settings = {});
  ~CaptureBuilder();

  model::Recorder& recorder() { return *recorder_; }
  StageId stage(std::string_view key) const;
  // A stage beside those that every capture of the builder declares.
  void add_stage(const Stage& stage);
  AttrId attr(std::string_view name);

  CompileId compile(std::string_view backend, std::string_view torch_id = "0/0");
  GraphId graph(CompileId compile, std::string_view kind, std::string_view direction = "none");
  UnitId unit(GraphId graph, UnitKind kind);

  // Observations of one unit, as a chain: unit(u).text("name", "x").refs("inputs", {a, b}).
  class Seen {
   public:
    Seen(CaptureBuilder& builder, UnitId unit) : builder_(&builder) { value_.unit = unit; }
    Seen& text(std::string_view attr, std::string_view text, std::string_view python_type = "str");
    Seen& json(std::string_view attr, std::string_view json, std::string_view python_type = {});
    // A JSON that speaks of units by their place in `refs`.
    Seen& json_refs(std::string_view attr, std::string_view json, std::vector<UnitId> refs);
    Seen& refs(std::string_view attr, std::vector<UnitId> refs, std::string_view python_type = "OrderedSet");
    Seen& ref(std::string_view attr, UnitId ref) { return refs(attr, {ref}, "Node"); }
    // from_node: the JSON tree and the units it resolves to.
    Seen& from_node(std::string_view json, std::vector<UnitId> refs);
    // A stack whose innermost frame is user code; text and location as the probe makes them.
    Seen& stack(std::string_view file, std::int64_t line, std::string_view code, std::string_view function = "forward");
    // A stack with any location.
    Seen& stack_at(std::string_view attr, LocId loc, std::string_view text);
    Seen& empty(std::string_view attr, std::string_view python_type = "NoneType");
    Seen& unreadable(std::string_view attr);
    const model::ObservedUnit& value() const { return value_; }

   private:
    Seen& add(std::string_view attr, Observation value);
    CaptureBuilder* builder_;
    model::ObservedUnit value_;
  };
  Seen seen(UnitId unit) { return Seen(*this, unit); }
  SnapshotId snapshot(std::string_view stage, GraphId graph, const std::vector<Seen>& units);

  // A frame of the compiler, and a call chain: `inner` was called from `outer`.
  LocId frame(std::string_view file, std::int64_t line, std::string_view function);
  LocId call(LocId inner, LocId outer);

  // Ends the capture. Both are fixed after that.
  Capture finish(bool complete = true);
  const std::string& ndjson() const { return ndjson_; }

 private:
  std::string ndjson_;
  std::unique_ptr<model::NdjsonWriter> writer_;
  std::unique_ptr<model::Replay> replay_;
  std::unique_ptr<TeeSink> tee_;
  std::unique_ptr<model::Recorder> recorder_;
  std::vector<std::pair<std::string, StageId>> stages_;
  std::vector<std::pair<std::string, AttrId>> attrs_;
};

}  // namespace kerntrail::testing
