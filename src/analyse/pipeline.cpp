#include "analyse/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

struct KnownStage {
  std::string_view key;
  int order;
  std::string_view number;  // in the reference report
  bool shown;               // in the default view
};

// Orders are those that the probe writes; needed here for fields whose first stage was not captured.
constexpr std::array kKnownStages{
    KnownStage{"source", 0, "1", false},        KnownStage{"fx_pre_grad", 20, "2a", true},
    KnownStage{"fx_joint", 30, "", false},      KnownStage{"fx_aten", 40, "", false},
    KnownStage{"fx_post_grad", 50, "2b", true}, KnownStage{"ir_pre_pass", 60, "3", true},
    KnownStage{"ir_post_pass", 70, "4", true},  KnownStage{"schedule", 80, "", false},
    KnownStage{"op_spec", 90, "5", true},       KnownStage{"superdsc", 100, "6", true},
    KnownStage{"kernel", 110, "", true},
};

const KnownStage* known(std::string_view key) {
  for (const KnownStage& stage : kKnownStages) {
    if (stage.key == key) return &stage;
  }
  return nullptr;
}

bool in_direction(const Graph& graph, std::string_view direction) {
  if (direction.empty()) return true;
  if (graph.direction == "backward") return direction == "backward";
  if (graph.direction == "forward" || graph.direction == "inference") return direction == "forward";
  return true;
}

void add_snapshot(const Capture& capture, AttrId op, SnapshotId id, Column& column) {
  column.snapshots.push_back(id);
  for (UnitId unit : capture.snapshots[index(id)].units) {
    if (!is_counted(capture, op, unit, id)) continue;
    auto [place, fresh] = column.positions.try_emplace(unit, column.units.size());
    if (fresh) {
      column.units.push_back({unit, id});
    } else {
      column.units[place->second].snapshot = id;  // its last look at this stage
    }
  }
}

// Back ends without passes before scheduling have one look at the IR, which is then neither before nor after them.
void name_only_pass(Pipeline& pipeline) {
  Column* before = nullptr;
  for (Column& column : pipeline.columns) {
    if (column.key == "ir_post_pass") return;
    if (column.key == "ir_pre_pass") before = &column;
  }
  if (before != nullptr && before->title == "LoopLevelIR (pre-pass)") before->title = "LoopLevelIR";
}

// A stage that is declared but that nothing was seen at is as good as unknown: a question about it has no answer.
Expected<void> check_stages(const Capture& capture, const std::vector<std::string>& asked) {
  if (asked.empty()) return {};
  std::vector<bool> seen(capture.stages.size(), false);
  for (const Snapshot& snapshot : capture.snapshots) {
    if (has(snapshot.stage)) seen[index(snapshot.stage)] = true;
  }
  for (const std::string& key : asked) {
    const auto stage = capture.find_stage(key);
    if (stage && seen[index(*stage)]) continue;
    std::string keys;
    for (StageId id : capture.stages_in_order()) {
      if (seen[index(id)]) keys += (keys.empty() ? "" : ", ") + capture.stages[index(id)].key;
    }
    return fail(ErrorCode::kUsage, fmt::format("the capture has {} stage \"{}\"; it has: {}",
                                               stage ? "nothing of" : "no", key, keys.empty() ? "none" : keys));
  }
  return {};
}

bool has_superdsc(const Pipeline& pipeline) {
  return std::any_of(pipeline.columns.begin(), pipeline.columns.end(),
                     [](const Column& c) { return c.key == "superdsc"; });
}

}  // namespace

AttrNames::AttrNames(const Capture& capture) {
  for (std::size_t i = 0; i < capture.attr_kinds.size(); ++i) {
    ids_.try_emplace(capture.attr_kinds[i].name, id_at<AttrId>(i));
  }
  for (std::size_t i = 0; i < known_.size(); ++i) known_[i] = find(KnownAttr::kNames[i]);
}

AttrId AttrNames::find(std::string_view name) const {
  auto found = ids_.find(name);
  return found == ids_.end() ? AttrId::kNone : found->second;
}

std::string_view short_target(std::string_view target) {
  for (std::string_view prefix : {"<built-in function ", "<built-in method ", "<function ", "<method "}) {
    if (target.substr(0, prefix.size()) != prefix) continue;
    target.remove_prefix(prefix.size());
    return target.substr(0, target.find_first_of(" >"));
  }
  const auto parts = base::split(target, '.');
  const bool overload = parts.size() == 3;  // namespace.op.overload
  return overload ? parts[1] : parts.back();
}

const Observation* present(const Capture& capture, UnitId unit, AttrId attr, SnapshotId snapshot) {
  if (!has(attr) || !has(unit) || !has(snapshot)) return nullptr;
  const Observation* seen = capture.at(unit, attr, snapshot);
  return seen != nullptr && seen->state == State::kPresent ? seen : nullptr;
}

bool is_counted(const Capture& capture, AttrId op, UnitId unit, SnapshotId snapshot) {
  const UnitKind kind = capture.units[index(unit)].kind;
  if (kind == UnitKind::kKernelCall) return false;
  if (kind != UnitKind::kFxNode) return true;
  const Observation* seen = present(capture, unit, op, snapshot);
  if (seen == nullptr) return true;
  const std::string_view text = capture.text(seen->text);
  return text != "placeholder" && text != "output";
}

Pipeline pipeline_of(const Capture& capture, CompileId compile, std::string_view direction) {
  Pipeline result;
  result.compile = compile;
  result.direction = direction;
  const AttrId op = AttrNames(capture)["op"];
  for (StageId stage : capture.stages_in_order()) {
    const Stage& s = capture.stages[index(stage)];
    Column column{stage, s.key, s.title, s.noun, s.layer, s.order, {}, {}, {}};
    for (SnapshotId id : capture.snapshots_of(compile, stage)) {
      if (in_direction(capture.graphs[index(capture.snapshots[index(id)].graph)], direction)) {
        add_snapshot(capture, op, id, column);
      }
    }
    if (!column.snapshots.empty()) result.columns.push_back(std::move(column));
  }
  name_only_pass(result);
  return result;
}

std::vector<std::string> directions_of(const Capture& capture, CompileId compile) {
  bool forward = false;
  bool backward = false;
  const Capture::Range near = capture.snapshots_near(compile);
  for (std::size_t i = near.first; i < near.last; ++i) {
    const Graph& graph = capture.graphs[index(capture.snapshots[i].graph)];
    if (graph.compile != compile) continue;
    forward = forward || graph.direction == "forward" || graph.direction == "inference";
    backward = backward || graph.direction == "backward";
  }
  if (forward && backward) return {"forward", "backward"};
  return {""};
}

Expected<std::vector<std::size_t>> select_columns(const Capture& capture, const Pipeline& pipeline,
                                                  const std::vector<std::string>& stages) {
  const bool all = stages.size() == 1 && stages.front() == "all";
  if (!all) {
    KERNTRAIL_CHECK(check_stages(capture, stages));
  }
  const bool bundles = has_superdsc(pipeline);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < pipeline.columns.size(); ++i) {
    const std::string& key = pipeline.columns[i].key;
    const KnownStage* stage = known(key);
    // A kernel of the Spyre-format back end is seen through the files of its bundle.
    const bool by_default = (stage == nullptr || stage->shown) && !(key == "kernel" && bundles);
    const bool named = std::find(stages.begin(), stages.end(), key) != stages.end();
    if (all || (stages.empty() ? by_default : named)) chosen.push_back(i);
  }
  return chosen;
}

Expected<std::vector<CompileId>> select_compiles(const Capture& capture, const AnalysisOptions& options) {
  std::vector<CompileId> chosen;
  for (std::size_t i = 0; i < capture.compiles.size(); ++i) {
    const CompileId id = id_at<CompileId>(i);
    if (options.compile.empty() || options.compile == compile_name(id)) chosen.push_back(id);
  }
  if (!options.compile.empty() && chosen.empty()) {
    return fail(ErrorCode::kUsage,
                fmt::format("the capture has no compile \"{}\"; it has {}", options.compile,
                            capture.compiles.empty()       ? std::string("none")
                            : capture.compiles.size() == 1 ? std::string("c0 alone")
                                                           : fmt::format("c0 to c{}", capture.compiles.size() - 1)));
  }
  return chosen;
}

Expected<std::vector<PipelinePart>> parts_of(const Capture& capture, const AnalysisOptions& options,
                                             Directions directions) {
  std::vector<PipelinePart> parts;
  KERNTRAIL_TRY(const auto compiles, select_compiles(capture, options));
  for (CompileId compile : compiles) {
    const bool apart = directions == Directions::kApart;
    for (const std::string& direction : apart ? directions_of(capture, compile) : std::vector<std::string>{""}) {
      PipelinePart part{pipeline_of(capture, compile, direction), {}};
      KERNTRAIL_TRY(part.columns, select_columns(capture, part.pipeline, options.stages));
      if (!part.pipeline.columns.empty()) parts.push_back(std::move(part));
    }
  }
  return parts;
}

std::optional<int> stage_order(const Capture& capture, std::string_view key) {
  if (auto id = capture.find_stage(key)) return capture.stages[index(*id)].order;
  if (const KnownStage* stage = known(key)) return stage->order;
  return std::nullopt;
}

std::string_view stage_number(std::string_view key) {
  const KnownStage* stage = known(key);
  return stage == nullptr ? std::string_view() : stage->number;
}

std::string display_name(const Capture& capture, AttrId name, UnitId unit, SnapshotId snapshot) {
  if (const Observation* seen = present(capture, unit, name, snapshot)) {
    const std::string_view text = capture.text(seen->text);
    if (!text.empty()) return std::string(text);
  }
  return unit_name(capture, unit);
}

}  // namespace kerntrail::analyse
