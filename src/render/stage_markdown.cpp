#include "render/stage_markdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

constexpr std::string_view kCross = "✗";
constexpr std::string_view kTick = "✓";
constexpr std::string_view kNoValue = "—";
constexpr std::size_t kTracebackLength = 40;

// "['a', 'b']", the spelling of the reference report.
std::string key_list(const std::vector<std::string>& keys) {
  std::vector<std::string> quoted;
  for (const std::string& key : keys) quoted.push_back("'" + key + "'");
  return md_code("[" + base::join(quoted, ", ") + "]");
}

std::string absent(const FieldCell& cell) {
  return cell.state == State::kUnreadable ? "unreadable" : std::string(kCross);
}

// FX nodes: the type that was found.
std::string type_cell(const FieldCell& cell) {
  if (cell.state != State::kPresent) return absent(cell);
  return cell.python_type.empty() ? std::string(kTick) : md_code(cell.python_type);
}

// IR operations: names of the nodes referred to, the start of a text, a tick for what is only there.
std::string value_cell(const FieldCell& cell) {
  if (cell.value_type == ValueType::kRefs) {
    return cell.state == State::kUnreadable ? "unreadable" : md_codes(cell.names);
  }
  if (cell.state != State::kPresent) return absent(cell);
  if (cell.value_type == ValueType::kRef) return md_codes(cell.names);
  if (cell.value_type == ValueType::kText) return md_code(base::cut(cell.text, kTracebackLength));
  return std::string(kTick);
}

std::string name_or_cross(const FieldCell& cell) {
  return cell.state == State::kPresent && !cell.names.empty() ? md_codes(cell.names) : absent(cell);
}

std::string code_or_dash(const std::string& text) { return text.empty() ? std::string(kNoValue) : md_code(text); }

std::vector<std::string> with_fields(std::vector<std::string> first, const StageTable& table,
                                     std::vector<std::string> last) {
  for (const std::string& field : table.fields) first.push_back(md_code(field));
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

std::string fx_table(const StageTable& table) {
  std::string out = md_header(with_fields({"Node", "target"}, table, {"source line"}));
  for (const DetailRow& row : table.rows) {
    std::vector<std::string> cells{md_code(row.name), md_code(row.target)};
    for (const FieldCell& field : row.fields) cells.push_back(type_cell(field));
    cells.push_back(code_or_dash(row.code));
    out += md_row(cells);
  }
  return out;
}

std::string value_table(const StageTable& table, const std::string& first) {
  std::string out = md_header(with_fields({first}, table, {}));
  for (const DetailRow& row : table.rows) {
    std::vector<std::string> cells{md_code(row.name)};
    for (const FieldCell& field : row.fields) cells.push_back(value_cell(field));
    out += md_row(cells);
  }
  return out;
}

// "2 (lines 12, 40)"
std::string calls_cell(const DetailRow& row) {
  if (!row.call_lines) return std::string(kNoValue);
  if (row.call_lines->empty()) return "0";
  std::vector<std::string> lines;
  for (const std::int64_t line : *row.call_lines) lines.push_back(fmt::format("{}", line));
  return fmt::format("{} (line{} {})", lines.size(), lines.size() == 1 ? "" : "s", base::join(lines, ", "));
}

std::string kernel_table(const StageTable& table) {
  const bool numbered =
      std::any_of(table.rows.begin(), table.rows.end(), [](const auto& r) { return !r.handles.empty(); });
  std::vector<std::string> first{"Kernel", "class", "calls", "operations", "fx origins"};
  if (numbered) first.insert(first.begin() + 3, "debug handles");
  std::string out = md_header(with_fields(first, table, {}));
  for (const DetailRow& row : table.rows) {
    std::vector<std::string> cells{md_code(row.name),
                                   row.unit_class.empty() ? std::string(kNoValue) : md_text(row.unit_class),
                                   calls_cell(row), md_codes(row.buffers), md_codes(row.origins.names)};
    if (numbered) cells.insert(cells.begin() + 3, md_codes(row.handles));
    for (const FieldCell& field : row.fields) cells.push_back(value_cell(field));
    out += md_row(cells);
  }
  return out;
}

std::string group_table(const StageTable& table) {
  std::string out = md_header({"Group", "class", "operations", "what became of them"});
  for (const DetailRow& row : table.rows) {
    out += md_row({md_code(row.name), code_or_dash(row.unit_class), md_codes(row.buffers), md_codes(row.outcomes)});
  }
  return out;
}

std::string op_spec_table(const StageTable& table) {
  std::string out = md_header({"Spyre op", "buffer", "`origins`", "`origin_node`", "`debug_handle` id", "source line"});
  for (const DetailRow& row : table.rows) {
    const bool held = row.handle.has_value();
    out += md_row({md_code(row.op), md_code(row.name), md_codes(row.origins.names), name_or_cross(row.origin_node),
                   held ? code_or_dash(row.handle->id) : std::string(kCross),
                   held ? code_or_dash(row.handle->source) : std::string(kNoValue)});
  }
  return out;
}

std::string file_table(const StageTable& table) {
  std::string out = md_header(
      {"Kernel", "`sdsc_*.json`", "Spyre op", "`aten_op`", "source line", "`fused_from`", "`debug_handle` id"});
  for (const DetailRow& row : table.rows) {
    if (!row.parse_error.empty()) {
      out += md_row({code_or_dash(row.kernel), md_code(row.name), "not parsed: " + md_text(row.parse_error),
                     std::string(kNoValue), std::string(kNoValue), std::string(kNoValue), std::string(kNoValue)});
      continue;
    }
    const HandleSummary handle = row.handle.value_or(HandleSummary{});
    out += md_row({code_or_dash(row.kernel), md_code(row.name), code_or_dash(row.op), code_or_dash(handle.aten_op),
                   code_or_dash(handle.source), md_codes(handle.fused_from),
                   row.handle ? code_or_dash(handle.id) : std::string(kCross)});
  }
  return out;
}

std::string file_coverage(const StageTable& table) {
  std::string out =
      "Tracked, per `debug_handle_`: `id` (hash of the content), `source` (file and line), `aten_op`, `fused_from` "
      "(the "
      "handles of the constituents, where several nodes became one op).\n\n";
  out += fmt::format("`debug_handle_` present in {}/{} files, non-null in {}/{}", table.handle_present, table.parsed,
                     table.handle_filled, table.parsed);
  const std::size_t unparsed = table.rows.size() - table.parsed;
  out += unparsed > 0 ? fmt::format(" ({} unparsed, excluded).\n\n", unparsed) : ".\n\n";
  out += fmt::format("All observed `debug_handle` keys: {}.\n\n", key_list(table.observed));
  return out;
}

std::string title_of(const StageTable& table) {
  const std::string number = table.number.empty() ? md_code(table.key) : table.number;
  if (table.kind == TableKind::kFiles && table.key == "superdsc") {
    return fmt::format("Stage {} — SuperDSC: {} `sdsc_*.json` file{} ({})", number, table.rows.size(),
                       table.rows.size() == 1 ? "" : "s", base::counted(table.kernels, "kernel"));
  }
  return fmt::format("Stage {} — {}: {}", number, md_text(table.title),
                     base::counted(table.rows.size(), md_text(table.noun)));
}

std::string introduction(const StageTable& table) {
  switch (table.kind) {
    case TableKind::kFiles: return file_coverage(table);
    case TableKind::kOpSpecs:
      return fmt::format("Tracked fields: {}.\n\nOpSpec declared fields: {}.\n\n",
                         tracked_fields({"origins", "origin_node", "debug_handle"}), key_list(table.observed));
    case TableKind::kFx:
      return fmt::format("Tracked fields: {}.\n\nAll observed node.meta keys: {}.\n\n", tracked_fields(table.fields),
                         key_list(table.observed));
    case TableKind::kOperations:
      return fmt::format("Tracked fields: {}.\n\nAll observed {} attributes: {}.\n\n", tracked_fields(table.fields),
                         table.unit_class.empty() ? "operation" : md_text(table.unit_class), key_list(table.observed));
    case TableKind::kKernels:
    case TableKind::kGroups:
    case TableKind::kOther: break;
  }
  return table.fields.empty() ? std::string() : fmt::format("Tracked fields: {}.\n\n", tracked_fields(table.fields));
}

}  // namespace

std::string stage_markdown(const StageTable& table, const std::string& heading) {
  std::string out = heading + " " + title_of(table) + "\n\n";
  if (const std::string_view sentence = stage_sentence(table.key); !sentence.empty())
    out += std::string(sentence) + "\n\n";
  out += introduction(table);
  switch (table.kind) {
    case TableKind::kFx: return out + fx_table(table);
    case TableKind::kOperations: return out + value_table(table, "Op");
    case TableKind::kOpSpecs: return out + op_spec_table(table);
    case TableKind::kGroups: return out + group_table(table);
    case TableKind::kKernels: return out + kernel_table(table);
    case TableKind::kOther: return out + value_table(table, "Unit");
    case TableKind::kFiles: break;
  }
  return out + file_table(table) +
         "\n`fused_from` lists the ATen ops of the constituents, in the manner of a fused location. A — as source line "
         "means that the "
         "handle leads to an ATen op only, because none of its FX nodes had a stack trace; the handle itself is "
         "there.\n";
}

std::string kernel_markdown(const KernelBlock& kernel, const std::string& heading) {
  std::string out = fmt::format("{} {}\n\n", heading, md_code(kernel.name));
  const auto list = [](const std::vector<std::string>& names) {
    std::vector<std::string> safe;
    for (const std::string& name : names) safe.push_back(md_text(name));
    return names.empty() ? std::string(kNoValue) : base::join(safe, ", ");
  };
  out += fmt::format("- buffers ({}): {}\n", kernel.buffers.size(), list(kernel.buffers));
  out += fmt::format("- fx origins: {}\n", list(kernel.fx_origins));
  out += fmt::format("- kernel metadata: {}\n", md_code(kernel.metadata));
  if (kernel.files > 0) {
    out += fmt::format("- `sdsc_*.json` files: {}; `debug_handle_` non-null: {}/{}\n", kernel.files, kernel.handles,
                       kernel.parsed);
  }
  return out;
}

}  // namespace kerntrail::render
