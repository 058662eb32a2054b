// The stages of one compile (or one direction of it) as ordered columns of counted units: what matrices, tables and
// lineages walk. Holds the few facts about well-known stage keys that a reader needs; unknown keys simply work.
// Must not know: what fields mean, output formats.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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

// A name that analyses ask for again and again, turned into a place in AttrNames while compiling.
class KnownAttr {
 public:
  consteval KnownAttr(const char* name) : place_(kNames.size()) {  // NOLINT: names_["inputs"] shall read so
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (kNames[i] == name) place_ = i;
    }
    if (place_ == kNames.size()) throw "list the name in kNames";
  }
  std::size_t place() const { return place_; }

  static constexpr std::array<std::string_view, 16> kNames{"buffer_origin_node",
                                                           "buffer_origins",
                                                           "calls",
                                                           "debug_handle",
                                                           "from_node",
                                                           "handles",
                                                           "history",
                                                           "inputs",
                                                           "keys",
                                                           "name",
                                                           "op",
                                                           "operations",
                                                           "origin_node",
                                                           "origins",
                                                           "stack_trace",
                                                           "target"};

 private:
  std::size_t place_;
};

// Attr ids by name, looked up once; kNone where the capture never declared the name.
class AttrNames {
 public:
  explicit AttrNames(const Capture& capture);
  AttrId operator[](KnownAttr name) const { return known_[name.place()]; }
  template <class Text>
    requires(std::is_same_v<Text, std::string_view> || std::is_same_v<Text, std::string>)
  AttrId operator[](const Text& name) const {
    return find(name);
  }

 private:
  AttrId find(std::string_view name) const;

  std::array<AttrId, KnownAttr::kNames.size()> known_{};
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
// The pipelines that an analysis walks: of each compile that the options ask for, in one piece or a direction each, and
// the columns to show; those that nothing was captured of are left out. kUsage as above.
struct PipelinePart {
  Pipeline pipeline;
  std::vector<std::size_t> columns;
};
enum class Directions : std::uint8_t { kTogether, kApart };
Expected<std::vector<PipelinePart>> parts_of(const Capture& capture, const AnalysisOptions& options,
                                             Directions directions);
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
