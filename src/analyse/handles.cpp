#include "analyse/handles.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace kerntrail::analyse {

std::string HandleView::place() const {
  if (!has_source()) return {};
  if (end_line > 0 && end_line != start_line) {
    return fmt::format("{}:{}-{}", base::basename(file), start_line, end_line);
  }
  return fmt::format("{}:{}", base::basename(file), start_line);
}

bool HandleView::names_one_node() const {
  if (aten_op.empty()) return false;
  if (constituents.empty()) return true;
  return std::count(constituents.begin(), constituents.end(), aten_op) == 1;
}

std::optional<HandleView> read_handle(const Capture& capture, const Observation* seen) {
  if (seen == nullptr || seen->state != State::kPresent || !has(seen->text)) return std::nullopt;
  auto parsed = base::Json::parse(capture.text(seen->text));
  if (!parsed || !parsed->is_object()) return std::nullopt;
  HandleView view;
  const base::Json& id = (*parsed)["id"];
  view.id = id.is_int() ? fmt::format("{}", id.as_int()) : std::string(id.as_string());
  const base::Json& source = (*parsed)["source"];
  view.file = source["file"].as_string();
  view.start_line = source["start_line"].as_int();
  view.end_line = source["end_line"].as_int();
  view.aten_op = (*parsed)["aten_op"].as_string();
  for (const base::Json& name : (*parsed)["ir_chain"].as_array()) view.ir_chain.emplace_back(name.as_string());
  for (const base::Json& part : (*parsed)["fused_from"].as_array()) {
    view.constituents.emplace_back(part["aten_op"].as_string());
  }
  view.json = std::move(*parsed);
  return view;
}

}  // namespace kerntrail::analyse
