// The reference's raw capture JSON, from a capture. Keys and value spellings are that format's, not ours.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyse/detail_tables.h"
#include "analyse/edges.h"
#include "analyse/handles.h"
#include "analyse/pipeline.h"
#include "analyse/sources.h"
#include "base/json.h"
#include "base/strings.h"
#include "kerntrail/report.h"
#include "render/outputs.h"

namespace kerntrail::render {
namespace {

using analyse::Column;
using analyse::ColumnUnit;
using analyse::Pipeline;
using base::Json;
using base::JsonArray;
using base::JsonObject;

constexpr std::size_t kReprLength = 200;
constexpr std::array<std::string_view, 4> kIrFields{"origins", "origin_node", "traceback", "get_stack_traces"};

// Python's repr of a str.
std::string python_repr(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20U || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + quote;
}

std::string cut(std::string_view text) { return std::string(base::cut(text, kReprLength)); }

class Exporter {
 public:
  explicit Exporter(const Capture& capture) : capture_(capture), names_(capture) {
    for (const Link& link : capture.links) {
      for (UnitId to : link.to) {
        if (link.kind == "create_op_spec" && !link.from.empty()) buffers_.try_emplace(to, link.from.front());
        if (link.kind != "define_kernel") continue;
        auto& operations = operations_[to];
        operations.insert(operations.end(), link.from.begin(), link.from.end());
      }
    }
  }

  JsonObject fx(const Pipeline& pipeline, std::string_view key) {
    JsonArray nodes;
    const Column* column = find(pipeline, key);
    if (column != nullptr) {
      for (const ColumnUnit& unit : column->units) nodes.push_back(node(unit));
    }
    return {{"fired", column != nullptr}, {"nodes", std::move(nodes)}};
  }

  JsonObject looplevel(const Pipeline& pipeline, std::string_view key) {
    JsonArray operations;
    const Column* column = find(pipeline, key);
    if (column != nullptr) {
      for (const ColumnUnit& unit : column->units) operations.push_back(operation(unit, pipeline));
    }
    return {{"fired", column != nullptr}, {"operations", std::move(operations)}};
  }

  JsonObject op_specs(const Pipeline& pipeline) {
    JsonArray ops;
    JsonArray fields;
    const Column* column = find(pipeline, "op_spec");
    if (column != nullptr) {
      for (const ColumnUnit& unit : column->units) ops.push_back(op_spec(unit, pipeline, fields));
    }
    return {{"fired", column != nullptr}, {"opspec_fields", std::move(fields)}, {"ops", std::move(ops)}};
  }

  JsonObject kernels(const Pipeline& pipeline) {
    analyse::EdgeFinder edges(capture_, pipeline);
    JsonArray kernels;
    JsonObject dirs;
    for (const KernelBlock& block : analyse::kernel_blocks(capture_, pipeline, edges)) {
      kernels.push_back(kernel(block, pipeline));
      if (block.output_dir.empty()) continue;
      const bool known = std::any_of(dirs.begin(), dirs.end(), [&](const auto& d) { return d.first == block.name; });
      if (!known) dirs.emplace_back(block.name, block.output_dir);
    }
    const bool fired = find(pipeline, "kernel") != nullptr || find(pipeline, "superdsc") != nullptr;
    return {{"fired", fired}, {"kernels", std::move(kernels)}, {"output_dirs", std::move(dirs)}};
  }

 private:
  static const Column* find(const Pipeline& pipeline, std::string_view key) {
    for (const Column& column : pipeline.columns) {
      if (column.key == key) return &column;
    }
    return nullptr;
  }

  const Observation* seen(UnitId unit, std::string_view attr, SnapshotId at) const {
    const AttrId id = names_[attr];
    return has(id) && has(at) ? capture_.at(unit, id, at) : nullptr;
  }

  Json text(UnitId unit, std::string_view attr, SnapshotId at) const { return capture_.text_of(unit, attr, at); }

  Json parsed(UnitId unit, std::string_view attr, SnapshotId at) const {
    const Observation* value = analyse::present(capture_, unit, names_[attr], at);
    if (value == nullptr) return {};
    auto json = Json::parse(capture_.text(value->text));
    return json ? std::move(*json) : Json();
  }

  Json list(UnitId unit, std::string_view attr, SnapshotId at) const {
    Json value = parsed(unit, attr, at);
    return value.is_array() ? std::move(value) : Json(JsonArray{});
  }

  std::string repr(const Observation& value, ValueType type) const {
    if (has(value.repr)) return cut(capture_.text(value.repr));
    if (value.state == State::kUnreadable) return "<unreadable>";
    if (value.state == State::kEmpty) return "None";
    if (type == ValueType::kText || type == ValueType::kStack) return cut(python_repr(capture_.text(value.text)));
    return cut(capture_.text(value.text));
  }

  Json field(const ColumnUnit& unit, AttrId attr) const {
    const Observation* value = capture_.at(unit.unit, attr, unit.snapshot);
    if (value == nullptr || value->state == State::kNoSlot) return {};
    const AttrKind& kind = capture_.attr_kinds[index(attr)];
    JsonObject result{{"type", has(value->python_type) ? Json(capture_.text(value->python_type)) : Json()},
                      {"repr", repr(*value, kind.type)},
                      {"nonempty", value->state == State::kPresent}};
    if (kind.name == "stack_trace")
      result.emplace_back("source_line", analyse::last_code_line(capture_.text(value->text)));
    return result;
  }

  std::string name(UnitId unit, SnapshotId at) const {
    return analyse::display_name(capture_, names_["name"], unit, at);
  }

  Json node(const ColumnUnit& unit) const {
    JsonArray inputs;
    if (const Observation* refs = seen(unit.unit, "inputs", unit.snapshot)) {
      for (UnitId input : refs->refs) inputs.emplace_back(name(input, unit.snapshot));
    }
    JsonObject fields;
    for (std::size_t i = 0; i < capture_.attr_kinds.size(); ++i) {
      const AttrKind& kind = capture_.attr_kinds[i];
      if (kind.provenance && kind.layer == "FX") fields.emplace_back(kind.name, field(unit, id_at<AttrId>(i)));
    }
    return JsonObject{{"name", name(unit.unit, unit.snapshot)},
                      {"op", text(unit.unit, "op", unit.snapshot)},
                      {"target", cut(capture_.text_of(unit.unit, "target", unit.snapshot))},
                      {"all_meta_keys", list(unit.unit, "keys", unit.snapshot)},
                      {"input_nodes", std::move(inputs)},
                      {"fields", std::move(fields)}};
  }

  // FX nodes as {name, target}, null where the slot is empty.
  Json origins(const Observation* value, SnapshotId at, const Pipeline& pipeline) const {
    if (value == nullptr || value->state != State::kPresent) return {};
    JsonArray result;
    for (UnitId node : value->refs) {
      const SnapshotId look = analyse::last_look(pipeline, node, pipeline.columns.size());
      const SnapshotId use = has(look) ? look : at;
      result.push_back(JsonObject{{"name", name(node, use)}, {"target", text(node, "target", use)}});
    }
    return result;
  }

  Json first_name(const Observation* value, SnapshotId at, const Pipeline& pipeline) const {
    if (value == nullptr || value->state != State::kPresent || value->refs.empty()) return {};
    const SnapshotId look = analyse::last_look(pipeline, value->refs.front(), pipeline.columns.size());
    return name(value->refs.front(), has(look) ? look : at);
  }

  // `prefix` is "buffer_" where the values were read on behalf of an OpSpec.
  JsonObject ir_fields(UnitId unit, SnapshotId at, const Pipeline& pipeline, const std::string& prefix) const {
    JsonObject fields;
    fields.emplace_back("origins", origins(seen(unit, prefix + "origins", at), at, pipeline));
    fields.emplace_back("origin_node", first_name(seen(unit, prefix + "origin_node", at), at, pipeline));
    const Observation* traceback = analyse::present(capture_, unit, names_[prefix + "traceback"], at);
    fields.emplace_back("traceback", traceback == nullptr ? Json() : Json(capture_.text(traceback->text)));
    const Observation* traces = seen(unit, prefix + "get_stack_traces", at);
    if (traces != nullptr && traces->state != State::kNoSlot) {
      fields.emplace_back("get_stack_traces", JsonObject{{"nonempty", traces->state == State::kPresent},
                                                         {"repr", repr(*traces, ValueType::kJson)}});
    }
    return fields;
  }

  JsonObject exists(UnitId unit, SnapshotId at, const std::string& prefix) const {
    JsonObject result;
    for (std::string_view key : kIrFields) {
      const Observation* value = seen(unit, prefix + std::string(key), at);
      result.emplace_back(key, value != nullptr && value->state != State::kNoSlot);
    }
    return result;
  }

  Json operation(const ColumnUnit& unit, const Pipeline& pipeline) const {
    return JsonObject{{"name", name(unit.unit, unit.snapshot)},
                      {"type", text(unit.unit, "ir_class", unit.snapshot)},
                      {"fields", ir_fields(unit.unit, unit.snapshot, pipeline, "")},
                      {"attr_exists", exists(unit.unit, unit.snapshot, "")},
                      {"all_attrs", list(unit.unit, "attributes", unit.snapshot)}};
  }

  UnitId buffer_of(UnitId spec) const {
    auto found = buffers_.find(spec);
    return found == buffers_.end() ? UnitId::kNone : found->second;
  }

  Json op_spec(const ColumnUnit& unit, const Pipeline& pipeline, JsonArray& declared) const {
    const Json fields = list(unit.unit, "fields", unit.snapshot);
    for (const Json& field : fields.as_array()) {
      if (std::find(declared.begin(), declared.end(), field) == declared.end()) declared.push_back(field);
    }
    JsonObject result{{"op", text(unit.unit, "op", unit.snapshot)},
                      {"is_reduction", parsed(unit.unit, "is_reduction", unit.snapshot)},
                      {"name", name(unit.unit, unit.snapshot)}};
    const UnitId buffer = buffer_of(unit.unit);
    const SnapshotId look =
        has(buffer) ? analyse::last_look(pipeline, buffer, pipeline.columns.size()) : SnapshotId::kNone;
    result.emplace_back("type", has(look) ? text(buffer, "ir_class", look) : Json());
    result.emplace_back("fields", ir_fields(unit.unit, unit.snapshot, pipeline, "buffer_"));
    result.emplace_back("attr_exists", exists(unit.unit, unit.snapshot, "buffer_"));
    result.emplace_back("all_attrs", has(look) ? list(buffer, "attributes", look) : Json(JsonArray{}));
    JsonObject own;
    for (std::string_view key : {"origins", "origin_node", "traceback", "get_stack_traces", "debug_handle"}) {
      own.emplace_back(key, analyse::present(capture_, unit.unit, names_[key], unit.snapshot) != nullptr);
    }
    result.emplace_back("opspec_present", std::move(own));
    auto handle = analyse::read_handle(capture_, seen(unit.unit, "debug_handle", unit.snapshot));
    if (handle) handle->json.set("source_line", handle->has_source() ? Json(handle->place()) : Json());
    result.emplace_back("debug_handle", handle ? std::move(handle->json) : Json());
    return result;
  }

  Json kernel(const KernelBlock& block, const Pipeline& pipeline) const {
    JsonArray buffers;
    if (auto operations = operations_.find(block.unit); operations != operations_.end()) {
      for (UnitId unit : operations->second) {
        const SnapshotId look = analyse::last_look(pipeline, unit, pipeline.columns.size());
        if (has(look)) buffers.push_back(operation({unit, look}, pipeline));
      }
    }
    const SnapshotId look = analyse::last_look(pipeline, block.unit, pipeline.columns.size());
    Json detailed = has(look) ? text(block.unit, "detailed", look) : Json("");
    return JsonObject{{"kernel_name", block.name},
                      {"node_origins", std::move(buffers)},
                      {"kernel_metadata", JsonObject{{"metadata", block.metadata}, {"detailed", std::move(detailed)}}}};
  }

  const Capture& capture_;
  analyse::AttrNames names_;
  std::unordered_map<UnitId, UnitId> buffers_;                 // OpSpec -> the operation it was made from
  std::unordered_map<UnitId, std::vector<UnitId>> operations_;  // kernel -> its operations
};

// One pipeline: its object. Several: a list, each with its compile (and direction).
template <class F>
Json per_pipeline(const std::vector<Pipeline>& pipelines, F&& f) {
  if (pipelines.size() == 1) return f(pipelines.front());
  JsonArray result;
  for (const Pipeline& pipeline : pipelines) {
    JsonObject entry{{"compile", compile_name(pipeline.compile)}};
    if (!pipeline.direction.empty()) entry.emplace_back("direction", pipeline.direction);
    for (auto& member : f(pipeline)) entry.push_back(std::move(member));
    result.push_back(std::move(entry));
  }
  return result;
}

}  // namespace

Expected<std::string> raw_export(const Capture& capture, const AnalysisOptions& options) {
  KERNTRAIL_TRY(const auto compiles, analyse::select_compiles(capture, options));
  std::vector<Pipeline> pipelines;
  for (CompileId compile : compiles) {
    for (const std::string& direction : analyse::directions_of(capture, compile)) {
      pipelines.push_back(analyse::pipeline_of(capture, compile, direction));
    }
  }
  if (pipelines.empty()) pipelines.emplace_back();  // nothing was compiled: the keys are there, nothing fired
  Exporter exporter(capture);
  JsonObject result;
  for (const auto& [key, stage] :
       {std::pair{"stage2_pre_grad", "fx_pre_grad"}, std::pair{"stage2_post_grad", "fx_post_grad"}}) {
    result.emplace_back(key,
                        per_pipeline(pipelines, [&, from = stage](const Pipeline& p) { return exporter.fx(p, from); }));
  }
  for (const auto& [key, stage] :
       {std::pair{"stage3_looplevel_prepass", "ir_pre_pass"}, std::pair{"stage4_looplevel_postpass", "ir_post_pass"}}) {
    result.emplace_back(
        key, per_pipeline(pipelines, [&, from = stage](const Pipeline& p) { return exporter.looplevel(p, from); }));
  }
  result.emplace_back("stage5_opspec",
                      per_pipeline(pipelines, [&](const Pipeline& p) { return exporter.op_specs(p); }));
  result.emplace_back("stage6_kernels",
                      per_pipeline(pipelines, [&](const Pipeline& p) { return exporter.kernels(p); }));
  JsonObject hooks;
  for (const HookSummary& hook : hook_summaries(capture)) {
    const bool known = std::any_of(hooks.begin(), hooks.end(), [&](const auto& h) { return h.first == hook.name; });
    if (!known) hooks.emplace_back(hook.name, hook.value);
  }
  result.emplace_back("_hooks", std::move(hooks));
  return Json(std::move(result)).dump(2);
}

}  // namespace kerntrail::render
