// The stages of one compile (or one direction of it) as ordered columns of counted units: what matrices, tables and
// lineages walk. Holds the few facts about well-known stage keys that a reader needs; unknown keys simply work.
// Must not know: what fields mean, output formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyse/unit_map.h"
#include "kerntrail/capture.h"
#include "kerntrail/options.h"

namespace kerntrail::analyse {

struct ColumnUnit {
  UnitId unit = UnitId::kNone;
  SnapshotId snapshot = SnapshotId::kNone;
};

struct Column {
  StageId stage = StageId::kNone;
  std::string key, title, noun, layer;
  int order = 0;
  std::vector<SnapshotId> snapshots;
  std::vector<ColumnUnit> units;                      // counted units, in snapshot order, each once
  UnitMap<std::size_t> positions;  // of the counted units

  bool holds(UnitId unit) const { return positions.count(unit) != 0; }
};

struct Pipeline {
  CompileId compile = CompileId::kNone;
  std::string direction;         // empty: the whole compile
  std::vector<Column> columns;   // captured stages, by stage order
};

// Attr ids by name, looked up once; kNone where the capture never declared the name.
class AttrNames {
 public:
  explicit AttrNames(const Capture& capture);
  AttrId operator[](std::string_view name) const;

 private:
  std::unordered_map<std::string_view, AttrId> ids_;
};

// All of a compile. `direction` empty: every graph; else graphs of that direction and those of no direction of their
// own (pre-grad and joint graphs, shared by both).
Pipeline pipeline_of(const Capture& capture, CompileId compile, std::string_view direction = {});
// {""} for a compile of one direction, {"forward", "backward"} where it has both.
std::vector<std::string> directions_of(const Capture& capture, CompileId compile);
// Columns to show. kUsage names a key that the capture does not declare, and lists those it does.
Expected<std::vector<std::size_t>> select_columns(const Capture& capture, const Pipeline& pipeline,
                                                  const std::vector<std::string>& stages);
// The compiles that the options ask for.
Expected<std::vector<CompileId>> select_compiles(const Capture& capture, const AnalysisOptions& options);
// Counted: every unit but placeholder and output nodes of an FX graph and calls of kernels.
bool is_counted(const Capture& capture, AttrId op, UnitId unit, SnapshotId snapshot);
// Where a stage lies in the pipeline, captured or not; nothing for a key that nobody knows.
std::optional<int> stage_order(const Capture& capture, std::string_view key);
// "2a", "3", ... for the stages of the reference report; empty for others.
std::string_view stage_number(std::string_view key);
// Name of a unit at a snapshot: its `name` attr, else its id.
std::string display_name(const Capture& capture, AttrId name, UnitId unit, SnapshotId snapshot);
// What a node's target is called for short: "<built-in function linear>" -> "linear", "<built-in method relu of type
// object>" -> "relu", "aten.mm.default" -> "mm", "fc1" -> "fc1".
std::string_view short_target(std::string_view target);
// An observed, populated value, or nullptr.
const Observation* present(const Capture& capture, UnitId unit, AttrId attr, SnapshotId snapshot);

}  // namespace kerntrail::analyse
