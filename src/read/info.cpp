#include "read/info.h"

#include <map>

#include "read/capture_reader.h"

namespace kerntrail::read {
namespace {

// Inputs and the output of an FX graph are units, but no table counts them.
bool is_counted(const Capture& capture, std::optional<AttrId> op, UnitId unit, SnapshotId snapshot) {
  const Observation* seen = op ? capture.at(unit, *op, snapshot) : nullptr;
  const std::string_view text = seen ? capture.text(seen->text) : std::string_view();
  return text != "placeholder" && text != "output";
}

std::vector<CompileSummary> compiles_of(const Capture& capture) {
  std::vector<CompileSummary> out;
  for (std::size_t i = 0; i < capture.compiles.size(); ++i) {
    const Compile& c = capture.compiles[i];
    out.push_back({compile_name(id_at<CompileId>(i)), c.torch_id, c.attempt, c.backend, c.attributes, {}, {}, {}});
  }
  std::vector<std::uint64_t> units(capture.graphs.size());
  for (const Unit& unit : capture.units) ++units[index(unit.graph)];
  for (std::size_t i = 0; i < capture.graphs.size(); ++i) {
    const Graph& g = capture.graphs[i];
    out[index(g.compile)].graphs.push_back(
        {graph_name(capture, id_at<GraphId>(i)), g.kind, g.direction, g.path, units[i]});
  }
  return out;
}

void add_stages(const Capture& capture, std::vector<CompileSummary>& compiles) {
  const auto op = capture.find_attr("op");
  const std::size_t stages = capture.stages.size();
  std::vector<StageSummary> table(compiles.size() * stages);
  for (std::size_t i = 0; i < capture.snapshots.size(); ++i) {
    const SnapshotId id = id_at<SnapshotId>(i);
    const Snapshot& snapshot = capture.snapshots[i];
    if (!has(snapshot.stage)) continue;
    StageSummary& cell = table[index(capture.compile_of(id)) * stages + index(snapshot.stage)];
    ++cell.snapshots;
    cell.units += snapshot.units.size();
    for (const UnitId unit : snapshot.units) cell.counted += is_counted(capture, op, unit, id) ? 1U : 0U;
  }
  for (std::size_t c = 0; c < compiles.size(); ++c) {
    for (const StageId id : capture.stages_in_order()) {
      StageSummary cell = table[c * stages + index(id)];
      if (cell.snapshots == 0) continue;
      const Stage& stage = capture.stages[index(id)];
      cell.key = stage.key;
      cell.title = stage.title;
      cell.noun = stage.noun;
      compiles[c].stages.push_back(std::move(cell));
    }
  }
}

void add_kernels(const Capture& capture, std::vector<CompileSummary>& compiles) {
  const auto attr = capture.find_attr("class");
  std::vector<std::map<std::string, std::uint64_t>> counts(compiles.size());
  for (std::size_t i = 0; i < capture.snapshots.size(); ++i) {
    const SnapshotId id = id_at<SnapshotId>(i);
    if (!has(capture.snapshots[i].stage)) continue;
    for (const UnitId unit : capture.snapshots[i].units) {
      if (capture.units[index(unit)].kind != UnitKind::kKernel) continue;
      const Observation* seen = attr ? capture.at(unit, *attr, id) : nullptr;
      ++counts[index(capture.compile_of(id))][std::string(seen ? capture.text(seen->text) : std::string_view())];
    }
  }
  for (std::size_t c = 0; c < compiles.size(); ++c) compiles[c].kernels.assign(counts[c].begin(), counts[c].end());
}

}  // namespace

CaptureInfo capture_info(const Capture& capture) {
  CaptureInfo info;
  info.run = capture.run;
  info.torn = !capture.end.has_value();
  info.complete = capture.end && capture.end->complete;
  info.compiles = compiles_of(capture);
  add_stages(capture, info.compiles);
  add_kernels(capture, info.compiles);
  info.hooks = capture.hooks.size();
  for (const HookRecord& hook : capture.hooks) {
    if (hook.state != HookState::kInstalled) info.missing_hooks.push_back(hook);
    if (hook.errors != 0 || !hook.restored) info.troubled_hooks.push_back(hook);
  }
  info.texts = capture.texts.size();
  info.locs = capture.locs.size();
  info.units = capture.units.size();
  info.snapshots = capture.snapshots.size();
  info.links = capture.links.size();
  info.claims = capture.claims.size();
  for (const SourceFile& source : capture.sources) info.sources.push_back(source.file);
  info.notes = capture.notes;
  return info;
}

Expected<CaptureInfo> capture_info(const std::string& path) {
  KERNTRAIL_TRY(const Capture capture, read_capture(path));
  return capture_info(capture);
}

}  // namespace kerntrail::read
