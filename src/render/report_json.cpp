#include <algorithm>

#include "base/json.h"
#include "render/json_output.h"
#include "render/json_parts.h"

namespace kerntrail::render {
namespace {

using base::JsonWriter;

void count(JsonWriter& json, std::string_view key, std::size_t n) { json.member(key, static_cast<std::uint64_t>(n)); }

void text(JsonWriter& json, std::string_view key, const std::string& value) {
  if (!value.empty()) json.member(key, value);
}

void list(JsonWriter& json, std::string_view key, const std::vector<std::string>& values) {
  json.key(key).begin_array();
  for (const std::string& value : values) json.value(value);
  json.end_array();
}

void write_field(JsonWriter& json, const FieldCell& field) {
  json.begin_object();
  json.member("state", state_name(field.state));
  text(json, "type", field.python_type);
  if (!field.names.empty()) list(json, "units", field.names);
  if (field.state == State::kPresent) text(json, "value", field.text);
  json.end_object();
}

void write_handle(JsonWriter& json, const HandleSummary& handle) {
  json.key("debug_handle").begin_object();
  json.member("id", handle.id);
  text(json, "source", handle.source);
  text(json, "aten_op", handle.aten_op);
  list(json, "fused_from", handle.fused_from);
  json.end_object();
}

void write_kernel_row(JsonWriter& json, const DetailRow& row) {
  text(json, "class", row.unit_class);
  if (row.call_lines) {
    json.key("call_lines").begin_array();
    for (const std::int64_t line : *row.call_lines) json.value(line);
    json.end_array();
  }
  if (!row.handles.empty()) list(json, "handles", row.handles);
  list(json, "buffers", row.buffers);
  list(json, "fx_origins", row.origins.names);
}

void write_row(JsonWriter& json, const Capture& capture, const StageTable& table, const DetailRow& row) {
  json.begin_object();
  json.member("unit", unit_name(capture, row.unit));
  json.member("name", row.name);
  text(json, "target", row.target);
  text(json, "op", row.op);
  text(json, "kernel", row.kernel);
  text(json, "code", row.code);
  text(json, "parse_error", row.parse_error);
  if (table.kind == TableKind::kOpSpecs) {
    list(json, "origins", row.origins.names);
    list(json, "origin_node", row.origin_node.names);
  }
  if (table.kind == TableKind::kKernels) write_kernel_row(json, row);
  if (table.kind == TableKind::kGroups) {
    text(json, "class", row.unit_class);
    list(json, "operations", row.buffers);
    list(json, "outcomes", row.outcomes);
  }
  if (row.handle) write_handle(json, *row.handle);
  if (!table.fields.empty()) {
    json.key("fields").begin_object();
    for (std::size_t i = 0; i < table.fields.size(); ++i) {
      json.key(table.fields[i]);
      write_field(json, row.fields[i]);
    }
    json.end_object();
  }
  json.end_object();
}

void write_table(JsonWriter& json, const Capture& capture, const StageTable& table) {
  json.begin_object();
  json.member("stage", table.key);
  json.member("title", table.title);
  text(json, "number", table.number);
  count(json, "units", table.rows.size());
  list(json, "observed", table.observed);
  if (table.kind == TableKind::kFiles) {
    count(json, "kernels", table.kernels);
    count(json, "parsed", table.parsed);
    count(json, "debug_handle_present", table.handle_present);
    count(json, "debug_handle_nonnull", table.handle_filled);
  }
  json.key("rows").begin_array();
  for (const DetailRow& row : table.rows) write_row(json, capture, table, row);
  json.end_array();
  json.end_object();
}

void write_kernel(JsonWriter& json, const Capture& capture, const KernelBlock& kernel) {
  json.begin_object();
  json.member("unit", unit_name(capture, kernel.unit));
  json.member("name", kernel.name);
  list(json, "buffers", kernel.buffers);
  list(json, "fx_origins", kernel.fx_origins);
  text(json, "metadata", kernel.metadata);
  count(json, "files", kernel.files);
  count(json, "parsed", kernel.parsed);
  count(json, "debug_handle_nonnull", kernel.handles);
  json.end_object();
}

void write_notes(JsonWriter& json, const std::vector<Note>& notes) {
  json.key("notes").begin_array();
  for (const Note& note : notes) {
    json.begin_object();
    json.member("code", note.code);
    json.member("severity", severity_name(note.severity));
    json.member("text", note.text);
    json.end_object();
  }
  json.end_array();
}

void write_section(JsonWriter& json, const Capture& capture, const ReportSection& section) {
  json.begin_object();
  json.member("compile", compile_name(section.compile));
  text(json, "direction", section.direction);
  text(json, "backend", section.backend);
  text(json, "torch_id", section.torch_id);
  json.member("observed", section.observed);
  json.key("counts").begin_object();
  std::vector<std::string> written;
  for (const auto& [quantity, value] : section.counts) {
    if (std::find(written.begin(), written.end(), quantity) != written.end()) continue;  // two stages may share a title
    written.push_back(quantity);
    json.member(quantity, value);
  }
  json.end_object();
  if (section.observed) {
    json.key("matrix");
    write_matrix(json, capture, section.matrix);
  }
  if (section.observed) {
    json.key("drops");
    write_drops(json, section.drops);
  }
  if (section.verification) {
    json.key("verification");
    write_verification(json, *section.verification);
  }
  if (!section.lineage.layers.empty()) {
    json.key("lineage");
    write_lineage(json, capture, section.lineage);
  }
  json.key("stages").begin_array();
  for (const StageTable& table : section.tables) write_table(json, capture, table);
  json.end_array();
  json.key("kernels").begin_array();
  for (const KernelBlock& kernel : section.kernels) write_kernel(json, capture, kernel);
  json.end_array();
  write_notes(json, section.notes);
  json.end_object();
}

}  // namespace

std::string report_json(const Capture& capture, const Report& report) {
  std::string out;
  JsonWriter json(out, 2);
  json.begin_object();
  json.member("format", "kerntrail-report");
  json.member("version", 1);
  json.member("model", report.model_name);
  text(json, "generated", report.stamp);
  text(json, "backend", report.backend);
  text(json, "metadata_rule", report.metadata_rule);
  json.member("torn", report.torn);
  json.member("partial", report.partial);
  json.key("sections").begin_array();
  for (const ReportSection& section : report.sections) write_section(json, capture, section);
  json.end_array();
  json.key("hooks").begin_array();
  for (const HookSummary& hook : report.hooks) {
    json.begin_object();
    json.member("name", hook.name);
    json.member("state", hook.value);
    json.member("fired", hook.fired);
    json.end_object();
  }
  json.end_array();
  write_notes(json, report.notes);
  json.end_object();
  return out + "\n";
}

}  // namespace kerntrail::render
