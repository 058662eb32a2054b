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

class TableBuilder {
 public:
  TableBuilder(const Capture& capture, const Pipeline& pipeline, std::size_t column, const EdgeFinder& edges)
      : capture_(capture), pipeline_(pipeline), index_(column), column_(pipeline.columns[column]), edges_(edges), names_(capture) {}

  StageTable build() {
    table_.stage = column_.stage;
    table_.kind = table_kind(capture_, column_);
    table_.key = column_.key;
    table_.title = column_.title;
    table_.noun = column_.noun;
    table_.number = stage_number(column_.key);
    choose_fields();
    for (const ColumnUnit& unit : column_.units) add_row(unit);
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
    table_.rows.push_back(std::move(row));
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

  void count_files() {
    table_.kernels = kernels_.size();
  }

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

std::vector<UnitId> operations_of(const Capture& capture, UnitId kernel) {
  std::vector<UnitId> result;
  for (const Link& link : capture.links) {
    if (link.kind != "define_kernel" || std::find(link.to.begin(), link.to.end(), kernel) == link.to.end()) continue;
    result.insert(result.end(), link.from.begin(), link.from.end());
  }
  return result;
}

std::vector<UnitId> fx_origins_of(const Capture& capture, const Pipeline& pipeline, UnitId kernel,
                                  const std::vector<UnitId>& operations) {
  std::set<UnitId> result;
  for (const Claim& claim : capture.claims) {
    if (claim.kernel == kernel && claim.claimant == "compiler" && claim.evidence == "origins") {
      result.insert(claim.units.begin(), claim.units.end());
    }
  }
  if (result.empty()) {
    const AttrId origins = AttrNames(capture)["origins"];
    for (UnitId operation : operations) {
      const Observation* seen = present(capture, operation, origins, last_look(pipeline, operation, pipeline.columns.size()));
      if (seen != nullptr) result.insert(seen->refs.begin(), seen->refs.end());
    }
  }
  return {result.begin(), result.end()};
}

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
      case UnitKind::kOpSpec: return TableKind::kOpSpecs;
      case UnitKind::kBundleFile: return TableKind::kFiles;
      case UnitKind::kKernel: return TableKind::kKernels;
      default: return TableKind::kOther;
    }
  }
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
  std::vector<UnitId> kernels;
  const auto add = [&](UnitId kernel) {
    if (has(kernel) && std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
  };
  std::map<UnitId, KernelBlock> bundles;
  for (const Column& column : pipeline.columns) {
    for (const ColumnUnit& unit : column.units) {
      if (capture.units[index(unit.unit)].kind == UnitKind::kKernel) add(unit.unit);
      if (capture.units[index(unit.unit)].kind != UnitKind::kBundleFile) continue;
      const UnitId kernel = edges.kernel_of(unit.unit);
      add(kernel);
      KernelBlock& block = bundles[kernel];
      ++block.files;
      if (!capture.text_of(unit.unit, "parse_error", unit.snapshot).empty()) continue;
      ++block.parsed;
      if (present(capture, unit.unit, names["debug_handle"], unit.snapshot) != nullptr) ++block.handles;
    }
  }
  std::sort(kernels.begin(), kernels.end());
  std::vector<KernelBlock> result;
  for (UnitId kernel : kernels) {
    KernelBlock block = bundles[kernel];
    block.unit = kernel;
    const SnapshotId look = last_look(pipeline, kernel, pipeline.columns.size());
    const auto name_of = [&](UnitId unit) {
      const SnapshotId own = last_look(pipeline, unit, pipeline.columns.size());
      return display_name(capture, names["name"], unit, has(own) ? own : look);
    };
    block.name = name_of(kernel);
    block.metadata = has(look) ? std::string(capture.text_of(kernel, "comment", look)) : std::string();
    const auto operations = operations_of(capture, kernel);
    for (UnitId operation : operations) block.buffers.push_back(name_of(operation));
    for (UnitId node : fx_origins_of(capture, pipeline, kernel, operations)) block.fx_origins.push_back(name_of(node));
    std::sort(block.fx_origins.begin(), block.fx_origins.end());
    const std::string id = unit_name(capture, kernel);
    for (const Volatile& value : capture.volatiles) {
      if (value.of == id && value.key == "output_dir") block.output_dir = value.value;
    }
    result.push_back(std::move(block));
  }
  return result;
}

}  // namespace kerntrail::analyse
