#include "render/json_output.h"

#include "base/json.h"
#include "render/json_parts.h"

namespace kerntrail::render {
namespace {

using base::JsonWriter;

constexpr int kIndent = 2;

void begin(JsonWriter& json, std::string_view format) {
  json.begin_object();
  json.member("format", format);
  json.member("version", 1);
}

void count(JsonWriter& json, std::string_view key, std::size_t n) { json.member(key, static_cast<std::uint64_t>(n)); }

void write_cell(JsonWriter& json, const Capture& capture, const MatrixColumn& column, const MatrixCell& cell) {
  json.begin_object();
  json.member("stage", column.key);
  json.member("glyph", glyph_name(cell.glyph));
  json.member("created", cell.created);
  count(json, "n", cell.present);
  count(json, "total", cell.total);
  json.key("states").begin_object();
  count(json, "present", cell.present);
  count(json, "empty", cell.empty);
  count(json, "no_slot", cell.no_slot);
  count(json, "unreadable", cell.unreadable);
  json.end_object();
  json.key("verdicts").begin_object();
  count(json, "own", cell.present);
  count(json, "carried", cell.carried);
  count(json, "lost", cell.lost);
  count(json, "not_before", cell.not_before);
  count(json, "unreadable", cell.unreadable);
  json.end_object();
  json.key("units").begin_array();
  for (const CellUnit& unit : cell.units) {
    json.begin_object();
    json.member("unit", unit_name(capture, unit.unit));
    json.member("state", state_name(unit.state));
    json.member("verdict", verdict_name(unit.verdict));
    if (!unit.carrier.empty()) json.member("carrier", unit.carrier);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

void write_matrix(base::JsonWriter& json, const Capture& capture, const Matrix& matrix) {
  json.begin_object();
  json.member("compile", compile_name(matrix.compile));
  if (!matrix.direction.empty()) json.member("direction", matrix.direction);
  json.key("columns").begin_array();
  for (const MatrixColumn& column : matrix.columns) {
    json.begin_object();
    json.member("stage", column.key);
    json.member("title", column.title);
    json.member("noun", column.noun);
    json.member("layer", column.layer);
    count(json, "units", column.units);
    json.end_object();
  }
  json.end_array();
  json.key("rows").begin_array();
  for (const MatrixRow& row : matrix.rows) {
    json.begin_object();
    json.member("field", row.name);
    json.member("layer", row.layer);
    json.key("cells").begin_array();
    for (std::size_t i = 0; i < row.cells.size(); ++i) write_cell(json, capture, matrix.columns[i], row.cells[i]);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_lineage(base::JsonWriter& json, const Capture& capture, const Lineage& lineage) {
  json.begin_object();
  json.member("compile", compile_name(lineage.compile));
  json.key("layers").begin_array();
  for (const LineageLayer& layer : lineage.layers) {
    json.begin_object();
    json.member("key", layer.key);
    json.member("title", layer.title);
    json.end_object();
  }
  json.end_array();
  json.key("nodes").begin_array();
  for (std::size_t i = 0; i < lineage.nodes.size(); ++i) {
    const LineageNode& node = lineage.nodes[i];
    json.begin_object();
    count(json, "id", i);
    json.member("layer", node.layer);
    json.member("name", node.name);
    if (!node.detail.empty()) json.member("detail", node.detail);
    if (!node.direction.empty()) json.member("direction", node.direction);
    if (has(node.unit)) json.member("unit", unit_name(capture, node.unit));
    if (!node.file.empty()) json.member("file", node.file).member("line", node.line);
    json.end_object();
  }
  json.end_array();
  json.key("edges").begin_array();
  for (const LineageEdge& edge : lineage.edges) {
    json.begin_object();
    json.member("from", edge.from);
    json.member("to", edge.to);
    json.member("kind", edge_kind_name(edge.kind));
    json.member("evidence", evidence_name(edge.evidence));
    json.member("strength", strength_name(edge.strength));
    if (edge.ambiguous) json.member("ambiguous", true);
    if (!edge.pass.empty()) json.member("pass", edge.pass);
    json.end_object();
  }
  json.end_array();
  json.member("witnessed", lineage.witnessed);
  json.key("contradicted").begin_array();
  for (const ContradictedClaim& claim : lineage.contradicted) {
    json.begin_object();
    json.member("node", claim.node);
    json.member("claimed", unit_name(capture, claim.claimed));
    json.member("name", claim.name);
    json.member("witness", support_name(claim.support));
    json.end_object();
  }
  json.end_array();
  json.key("rewrites").begin_array();
  for (const Rewrite& rewrite : lineage.rewrites) {
    json.begin_object();
    json.member("unit", unit_name(capture, rewrite.node));
    write_rewrite(json, rewrite);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

std::string matrix_json(const Capture& capture, const std::vector<Matrix>& matrices) {
  std::string out;
  JsonWriter json(out, kIndent);
  begin(json, "kerntrail-matrix");
  json.key("matrices").begin_array();
  for (const Matrix& matrix : matrices) write_matrix(json, capture, matrix);
  json.end_array();
  json.end_object();
  return out + "\n";
}

std::string lineage_json(const Capture& capture, const std::vector<Lineage>& lineages) {
  std::string out;
  JsonWriter json(out, kIndent);
  begin(json, "kerntrail-lineage");
  json.key("lineages").begin_array();
  for (const Lineage& lineage : lineages) write_lineage(json, capture, lineage);
  json.end_array();
  json.end_object();
  return out + "\n";
}

}  // namespace kerntrail::render
