#include "analyse/detail_tables.h"

#include <algorithm>
#include <set>

#include "analyse/handles.h"
#include "analyse/sources.h"
#include "analyse/survival.h"
#include "base/json.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

// Operations and FX origins of every kernel, from links and claims read once.
class KernelFacts {
 public:
  KernelFacts(const Capture& capture, const Pipeline& pipeline)
      : capture_(capture), pipeline_(pipeline), names_(capture) {
    for (const Link& link : capture.links) {
      if (link.kind != "define_kernel") continue;
      for (UnitId kernel : link.to) {
        auto& operations = operations_[kernel];
        operations.insert(operations.end(), link.from.begin(), link.from.end());
      }
    }
    for (const Claim& claim : capture.claims) {
      if (claim.claimant == "compiler" && claim.evidence == "origins")
        claimed_[claim.kernel].insert(claim.units.begin(), claim.units.end());
    }
    for (const Volatile& value : capture.volatiles) {
      if (value.key == "output_dir") output_dirs_[value.of] = value.value;
    }
  }

  KernelBlock block(UnitId kernel) const {
    KernelBlock result;
    result.unit = kernel;
    const SnapshotId look = last_look(pipeline_, kernel, pipeline_.columns.size());
    result.name = name_of(kernel, look);
    if (has(look)) result.metadata = capture_.text_of(kernel, "comment", look);
    std::set<UnitId> origins;
    if (auto found = claimed_.find(kernel); found != claimed_.end()) origins = found->second;
    if (auto found = operations_.find(kernel); found != operations_.end()) {
      const bool claimed = !origins.empty();
      for (UnitId operation : found->second) {
        result.buffers.push_back(name_of(operation, look));
        if (!claimed) add_origins(operation, origins);
      }
    }
    for (UnitId node : origins) result.fx_origins.push_back(name_of(node, look));
    std::sort(result.fx_origins.begin(), result.fx_origins.end());
    auto dir = output_dirs_.find(unit_name(capture_, kernel));
    if (dir != output_dirs_.end()) result.output_dir = dir->second;
    return result;
  }

 private:
  std::string name_of(UnitId unit, SnapshotId otherwise) const {
    const SnapshotId own = last_look(pipeline_, unit, pipeline_.columns.size());
    return display_name(capture_, names_["name"], unit, has(own) ? own : otherwise);
  }

  // Where the compiler claims nothing: what its operations say of themselves.
  void add_origins(UnitId operation, std::set<UnitId>& origins) const {
    const SnapshotId look = last_look(pipeline_, operation, pipeline_.columns.size());
    if (const Observation* seen = present(capture_, operation, names_["origins"], look))
      origins.insert(seen->refs.begin(), seen->refs.end());
  }

  const Capture& capture_;
  const Pipeline& pipeline_;
  AttrNames names_;
  UnitMap<std::vector<UnitId>> operations_;
  UnitMap<std::set<UnitId>> claimed_;
  std::unordered_map<std::string, std::string> output_dirs_;
};

class TableBuilder {
 public:
  TableBuilder(const Capture& capture, const Pipeline& pipeline, std::size_t column, const EdgeFinder& edges)
      : capture_(capture),
        pipeline_(pipeline),
        index_(column),
        column_(pipeline.columns[column]),
        edges_(edges),
        names_(capture) {}

  StageTable build() {
    table_.stage = column_.stage;
    table_.kind = table_kind(capture_, column_);
    table_.key = column_.key;
    table_.title = column_.title;
    table_.noun = column_.noun;
    table_.number = stage_number(column_.key);
    choose_fields();
    for (const ColumnUnit& unit : column_.units) add_row(unit);
    if (table_.kind == TableKind::kKernels) add_kernels();
    if (table_.kind == TableKind::kOperations) choose_class();
    collect_observed();
    if (table_.kind == TableKind::kFiles) count_files();
    return std::move(table_);
  }

 private:
  // Fields with a column: those of the stage's own layer. A stage of another kind shows what any of its units holds.
  void choose_fields() {
    for (AttrId attr : tracked_attrs(capture_, pipeline_)) {
      const AttrKind& kind = capture_.attr_kinds[index(attr)];
      const bool fx = table_.kind == TableKind::kFx && kind.layer == "FX";
      const bool ir = table_.kind == TableKind::kOperations && kind.layer == "IR";
      const bool held = (table_.kind == TableKind::kOther || table_.kind == TableKind::kKernels) && any_slot(attr);
      if (!fx && !ir && !held) continue;
      fields_.push_back(attr);
      table_.fields.push_back(kind.name);
    }
  }

  bool any_slot(AttrId attr) const {
    return std::any_of(column_.units.begin(), column_.units.end(), [&](const ColumnUnit& unit) {
      const Observation* seen = capture_.at(unit.unit, attr, unit.snapshot);
      return seen != nullptr && seen->state != State::kNoSlot;
    });
  }

  void add_row(const ColumnUnit& unit) {
    DetailRow row;
    row.unit = unit.unit;
    row.name = display_name(capture_, names_["name"], unit.unit, unit.snapshot);
    row.target = capture_.text_of(unit.unit, "target", unit.snapshot);
    row.op = capture_.text_of(unit.unit, "op", unit.snapshot);
    row.code = code_of(unit);
    for (AttrId attr : fields_) row.fields.push_back(cell(unit, attr));
    if (table_.kind == TableKind::kOpSpecs) add_op_spec(unit, row);
    if (table_.kind == TableKind::kFiles) add_file(unit, row);
    if (table_.kind == TableKind::kKernels) add_kernel(unit, row);
    if (table_.kind == TableKind::kGroups) add_group(unit, row);
    table_.rows.push_back(std::move(row));
  }

  void add_kernel(const ColumnUnit& unit, DetailRow& row) const {
    row.unit_class = capture_.text_of(unit.unit, "class", unit.snapshot);
    const base::Json handles = json(unit, "handles");
    for (const base::Json& handle : handles.as_array()) row.handles.emplace_back(handle.as_string());
    const Observation* calls = has(names_["calls"]) ? capture_.at(unit.unit, names_["calls"], unit.snapshot) : nullptr;
    if (calls == nullptr || (calls->state != State::kPresent && calls->state != State::kEmpty)) return;
    row.call_lines.emplace();
    const base::Json list = json(unit, "calls");
    for (const base::Json& call : list.as_array()) row.call_lines->push_back(call["line"].as_int());
  }

  void add_group(const ColumnUnit& unit, DetailRow& row) const {
    row.unit_class = capture_.text_of(unit.unit, "group_class", unit.snapshot);
    row.buffers = cell(unit, names_["operations"]).names;
    const base::Json outcomes = json(unit, "outcomes");
    for (const base::Json& outcome : outcomes.as_array()) {
      row.outcomes.push_back(std::string(outcome["operation"].as_string()) + ": " +
                             std::string(outcome["outcome"].as_string()) +
                             (outcome["removed"].as_bool() ? ", buffer removed" : ""));
    }
  }

  void add_kernels() {
    const KernelFacts facts(capture_, pipeline_);
    for (DetailRow& row : table_.rows) {
      KernelBlock block = facts.block(row.unit);
      row.buffers = std::move(block.buffers);
      row.origins.names = std::move(block.fx_origins);
    }
  }

  void choose_class() {
    for (const ColumnUnit& unit : column_.units) {
      const std::string_view name = capture_.text_of(unit.unit, "ir_class", unit.snapshot);
      if (table_.unit_class.empty()) table_.unit_class = name;
      if (name != table_.unit_class) {
        table_.unit_class.clear();
        return;
      }
    }
  }

  std::string code_of(const ColumnUnit& unit) const {
    if (auto source = source_of(capture_, names_["stack_trace"], unit.unit, unit.snapshot)) {
      if (!source->code.empty()) return source->code;
    }
    const Observation* stack = present(capture_, unit.unit, names_["stack_trace"], unit.snapshot);
    return stack == nullptr ? std::string() : std::string(last_code_line(capture_.text(stack->text)));
  }

  FieldCell cell(const ColumnUnit& unit, AttrId attr) const {
    FieldCell result;
    if (!has(attr)) return result;
    result.value_type = capture_.attr_kinds[index(attr)].type;
    const Observation* seen = capture_.at(unit.unit, attr, unit.snapshot);
    if (seen == nullptr) return result;
    result.state = seen->state;
    result.python_type = capture_.text(seen->python_type);
    result.text = capture_.text(seen->text);
    for (UnitId ref : seen->refs) {
      const SnapshotId look = last_look(pipeline_, ref, index_ + 1);
      result.names.push_back(display_name(capture_, names_["name"], ref, has(look) ? look : unit.snapshot));
    }
    std::sort(result.names.begin(), result.names.end());
    return result;
  }

  std::optional<HandleSummary> handle(const ColumnUnit& unit) {
    auto view = read_handle(capture_, present(capture_, unit.unit, names_["debug_handle"], unit.snapshot));
    if (!view) return std::nullopt;
    for (const auto& [key, value] : view->json.as_object()) handle_keys_.insert(key);
    return HandleSummary{view->id, view->place(), view->aten_op, view->constituents};
  }

  void add_op_spec(const ColumnUnit& unit, DetailRow& row) {
    row.origins = cell(unit, names_["buffer_origins"]);
    row.origin_node = cell(unit, names_["buffer_origin_node"]);
    row.handle = handle(unit);
  }

  void add_file(const ColumnUnit& unit, DetailRow& row) {
    const UnitId kernel = edges_.kernel_of(unit.unit);
    if (has(kernel)) {
      kernels_.insert(kernel);
      const SnapshotId look = last_look(pipeline_, kernel, pipeline_.columns.size());
      row.kernel = display_name(capture_, names_["name"], kernel, has(look) ? look : unit.snapshot);
    }
    std::vector<std::string> keys;
    const base::Json op_keys = json(unit, "op_keys");
    for (const base::Json& key : op_keys.as_array()) keys.emplace_back(key.as_string());
    row.op = base::join(keys, ", ");
    row.parse_error = capture_.text_of(unit.unit, "parse_error", unit.snapshot);
    row.handle = handle(unit);
    if (!row.parse_error.empty()) return;
    ++table_.parsed;
    const Observation* seen = capture_.at(unit.unit, names_["debug_handle"], unit.snapshot);
    if (seen != nullptr && seen->state != State::kNoSlot) ++table_.handle_present;
    if (seen != nullptr && seen->state == State::kPresent) ++table_.handle_filled;
  }

  void count_files() { table_.kernels = kernels_.size(); }

  base::Json json(const ColumnUnit& unit, std::string_view attr) const {
    const Observation* seen = present(capture_, unit.unit, names_[attr], unit.snapshot);
    if (seen == nullptr) return {};
    auto parsed = base::Json::parse(capture_.text(seen->text));
    return parsed ? std::move(*parsed) : base::Json();
  }

  // Keys of every unit together: sorted, but for OpSpec fields, which keep the order of their declaration.
  void collect_observed() {
    if (table_.kind == TableKind::kFiles) {
      table_.observed.assign(handle_keys_.begin(), handle_keys_.end());
      return;
    }
    const std::string_view attr = table_.kind == TableKind::kFx           ? "keys"
                                  : table_.kind == TableKind::kOperations ? "attributes"
                                  : table_.kind == TableKind::kOpSpecs    ? "fields"
                                                                          : "";
    std::set<std::string> seen;
    for (const ColumnUnit& unit : column_.units) {
      const base::Json list = json(unit, attr);
      for (const base::Json& key : list.as_array()) keep(std::string(key.as_string()), seen);
      for (const auto& [key, value] : list.as_object()) keep(key, seen);
    }
    if (table_.kind != TableKind::kOpSpecs) std::sort(table_.observed.begin(), table_.observed.end());
  }

  void keep(const std::string& key, std::set<std::string>& seen) {
    if (seen.insert(key).second) table_.observed.push_back(key);
  }

  const Capture& capture_;
  const Pipeline& pipeline_;
  std::size_t index_;
  const Column& column_;
  const EdgeFinder& edges_;
  AttrNames names_;
  StageTable table_;
  std::vector<AttrId> fields_;
  std::set<std::string> handle_keys_;
  std::set<UnitId> kernels_;
};

}  // namespace

SnapshotId last_look(const Pipeline& pipeline, UnitId unit, std::size_t limit) {
  for (std::size_t c = std::min(limit, pipeline.columns.size()); c-- > 0;) {
    auto place = pipeline.columns[c].positions.find(unit);
    if (place != pipeline.columns[c].positions.end()) return pipeline.columns[c].units[place->second].snapshot;
  }
  return SnapshotId::kNone;
}

TableKind table_kind(const Capture& capture, const Column& column) {
  if (!column.units.empty()) {
    switch (capture.units[index(column.units.front().unit)].kind) {
      case UnitKind::kFxNode: return TableKind::kFx;
      case UnitKind::kOperation: return TableKind::kOperations;
      case UnitKind::kGroup: return TableKind::kGroups;
      case UnitKind::kOpSpec: return TableKind::kOpSpecs;
      case UnitKind::kBundleFile: return TableKind::kFiles;
      case UnitKind::kKernel: return TableKind::kKernels;
      default: return TableKind::kOther;
    }
  }
  if (column.key == "schedule") return TableKind::kGroups;
  if (column.key == "op_spec") return TableKind::kOpSpecs;
  if (column.key == "superdsc") return TableKind::kFiles;
  if (column.key == "kernel") return TableKind::kKernels;
  if (column.layer == "FX") return TableKind::kFx;
  return column.layer == "IR" ? TableKind::kOperations : TableKind::kOther;
}

StageTable stage_table(const Capture& capture, const Pipeline& pipeline, std::size_t column, const EdgeFinder& edges) {
  return TableBuilder(capture, pipeline, column, edges).build();
}

std::vector<KernelBlock> kernel_blocks(const Capture& capture, const Pipeline& pipeline, const EdgeFinder& edges) {
  const AttrNames names(capture);
  std::map<UnitId, KernelBlock> bundles;  // by kernel: only the counts of its files
  for (const Column& column : pipeline.columns) {
    for (const ColumnUnit& unit : column.units) {
      const UnitKind kind = capture.units[index(unit.unit)].kind;
      if (kind == UnitKind::kKernel) bundles.try_emplace(unit.unit);
      if (kind != UnitKind::kBundleFile || !has(edges.kernel_of(unit.unit))) continue;
      KernelBlock& block = bundles[edges.kernel_of(unit.unit)];
      ++block.files;
      if (!capture.text_of(unit.unit, "parse_error", unit.snapshot).empty()) continue;
      ++block.parsed;
      if (present(capture, unit.unit, names["debug_handle"], unit.snapshot) != nullptr) ++block.handles;
    }
  }
  const KernelFacts facts(capture, pipeline);
  std::vector<KernelBlock> result;
  for (const auto& [kernel, counts] : bundles) {
    KernelBlock block = facts.block(kernel);
    block.files = counts.files;
    block.parsed = counts.parsed;
    block.handles = counts.handles;
    result.push_back(std::move(block));
  }
  return result;
}

}  // namespace kerntrail::analyse
