#include "arrivals.h"

#include <unordered_map>

#include "python_text.h"
#include "tracing.h"

namespace kerntrail::probe {

void write_sequence_births(Session& session, CompileState& compile, const std::vector<nb::object>& nodes) {
  std::unordered_map<std::int64_t, std::vector<UnitId>> forward;
  std::vector<std::pair<UnitId, std::int64_t>> backward;
  for (const nb::object& node : nodes) {
    const nb::object meta = attribute(node, "meta");
    const std::int64_t number = integer(dict_item(meta, "seq_nr"), -1);
    const auto unit = compile.units.find(node.ptr());
    if (number < 0 || unit == compile.units.end()) continue;
    const auto known = compile.births.find(node.ptr());
    if (known != compile.births.end() && known->second.source.is_valid())
      forward[number].push_back(unit->second);
    else
      backward.emplace_back(unit->second, number);
  }
  for (const auto& [unit, number] : backward) {
    const auto sources = forward.find(number);
    if (sources == forward.end()) continue;
    Birth birth;
    birth.unit = unit;
    birth.evidence = "sequence";
    birth.sources = sources->second;
    session.recorder().birth(birth);
  }
}

void write_late_copies(Session& session, CompileState& compile, const std::vector<nb::object>& nodes,
                       std::string_view path) {
  const auto names = compile.backward.find(std::string(path));
  if (names == compile.backward.end()) return;
  for (const nb::object& node : nodes) {
    if (compile.births.contains(node.ptr())) continue;
    const auto source = names->second.find(text(attribute(node, "name")).value_or(""));
    if (source == names->second.end()) continue;
    Birth birth;
    birth.unit = compile.units.at(node.ptr());
    birth.evidence = "copy";
    birth.sources = {source->second};
    session.recorder().birth(birth);
  }
}

void write_arrivals(Session& session, CompileState& compile, const std::vector<nb::object>& nodes) {
  for (const nb::object& node : nodes) {
    const auto known = compile.births.find(node.ptr());
    if (known == compile.births.end() || known->second.written) continue;
    NodeBirth& made = known->second;
    made.written = true;
    Birth birth;
    birth.unit = compile.units.at(node.ptr());
    birth.loc = chain_of(session, made.frames);
    const UnitId source = made.source.is_valid() ? unit_behind(compile, made.source.ptr()) : UnitId::kNone;
    if (source == birth.unit) continue;
    birth.evidence = !has(source) ? "created" : made.is_copy ? "copy" : "frame";
    if (has(source)) birth.sources = {source};
    session.recorder().birth(birth);
  }
}

void write_moves(Session& session, const CompileState& compile, const Moves& moved) {
  for (const auto& [node, before] : moved) {
    Birth birth;
    birth.unit = compile.units.at(node);
    birth.evidence = "copy";
    birth.sources = {before};
    session.recorder().birth(birth);
  }
}

}  // namespace kerntrail::probe
