#include "observe_ir.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "observe_fx.h"
#include "python_text.h"

namespace kerntrail::probe {
namespace {

Observation text_observation(Session& session, const std::optional<std::string>& value) {
  Observation o;
  o.state = !value ? State::kUnreadable : value->empty() ? State::kEmpty : State::kPresent;
  if (value && !value->empty()) o.text = session.recorder().text(*value);
  return o;
}

Observation json_observation(Session& session, const base::Json& json, bool populated) {
  Observation o;
  o.state = populated ? State::kPresent : State::kEmpty;
  o.text = session.recorder().json_value(json);
  return o;
}

// no_slot, unreadable or empty decided from the attribute alone; present is left to the caller.
Observation slot(Session& session, nb::handle object, const char* name, nb::object& value) {
  bool raised = false;
  value = attribute(object, name, &raised);
  Observation o;
  if (!value.is_valid()) {
    o.state = raised ? State::kUnreadable : State::kNoSlot;
    return o;
  }
  o.python_type = session.recorder().text(python_type_name(value));
  o.state = is_populated(value) ? State::kPresent : State::kEmpty;
  return o;
}

base::Json public_attributes(nb::handle operation) {
  std::vector<std::string> names;
  const nb::object dict = attribute(operation, "__dict__");
  if (dict.is_valid() && PyDict_Check(dict.ptr())) {
    PyObject *k, *v;
    for (Py_ssize_t pos = 0; PyDict_Next(dict.ptr(), &pos, &k, &v);) {
      const auto name = text(k);
      if (name && !name->starts_with('_')) names.push_back(*name);
    }
  }
  std::sort(names.begin(), names.end());
  return base::Json(base::JsonArray(names.begin(), names.end()));
}

// dtype, shape, strides and device of the result, where it is one tensor.
std::optional<base::Json> type_json(nb::handle operation) {
  const nb::object layout = call_method(operation, "get_layout");
  const nb::object size = attribute(layout, "size"), dtype = attribute(layout, "dtype");
  if (!size.is_valid() || !dtype.is_valid()) return std::nullopt;
  base::Json out = base::JsonObject{};
  out.set("dtype", base::Json(base::replace_all(text(dtype).value_or(""), "torch.", "")));
  out.set("shape", plain_json(size));
  out.set("strides", plain_json(attribute(layout, "stride")));
  out.set("device", base::Json(text(attribute(layout, "device")).value_or("")));
  return out;
}

// Sizes are sympy numbers: plain integers print as such.
base::Json integers(base::Json json) {
  if (!json.is_array()) return json;
  base::JsonArray out;
  for (const base::Json& item : json.as_array()) {
    const std::string_view t = item.as_string();
    const bool digits = !t.empty() && t.size() < 16 && t.find_first_not_of("0123456789") == std::string_view::npos;
    out.push_back(digits ? base::Json(static_cast<std::int64_t>(std::stoll(std::string(t)))) : item);
  }
  return base::Json(std::move(out));
}

// What passes did to the buffer, as a Spyre-format back end keeps it: a tuple of records under a private attribute.
void read_history(Session& session, nb::handle operation, model::ObservedUnit& out) {
  nb::object history;
  Observation o = slot(session, operation, "_spyre_prov_history", history);
  if (o.state == State::kNoSlot) return;
  if (o.state == State::kPresent) {
    base::JsonArray records;
    const nb::object iterator = nb::steal(PyObject_GetIter(history.ptr()));
    while (iterator.is_valid()) {
      const nb::object record = nb::steal(PyIter_Next(iterator.ptr()));
      if (!record.is_valid()) break;
      base::Json entry = base::JsonObject{};
      for (const char* key : {"kind", "pass_name", "reason"}) entry.set(key, plain_json(attribute(record, key)));
      records.push_back(std::move(entry));
    }
    if (PyErr_Occurred()) {
      clear_error();
      o.state = State::kUnreadable;
    } else {
      o.text = session.recorder().json_value(base::Json(std::move(records)));
    }
  }
  out.attrs.push_back({session.tables().attr.history, std::move(o)});
}

}  // namespace

model::ObservedUnit read_operation(Session& session, CompileState& compile, nb::handle operation, UnitId unit) {
  const Tables::Attrs& attr = session.tables().attr;
  model::ObservedUnit out{unit, {}};
  out.attrs.push_back({attr.name, text_observation(session, operation_name(operation))});
  out.attrs.push_back({attr.buffer, text_observation(session, text(call_method(operation, "get_name")))});
  out.attrs.push_back({attr.ir_class, text_observation(session, std::string(python_type_name(operation)))});
  if (const nb::object data = attribute(operation, "data"); is_valid(data)) {
    out.attrs.push_back({attr.data_class, text_observation(session, std::string(python_type_name(data)))});
  }
  if (auto type = type_json(operation)) {
    type->set("shape", integers((*type)["shape"]));
    type->set("strides", integers((*type)["strides"]));
    out.attrs.push_back({attr.type, json_observation(session, *type, true)});
  }
  const base::Json attributes = public_attributes(operation);
  out.attrs.push_back({attr.attributes, json_observation(session, attributes, !attributes.as_array().empty())});
  read_ir_fields(session, compile, operation, {attr.origins, attr.origin_node, attr.traceback, attr.get_stack_traces},
                 out);
  read_history(session, operation, out);
  return out;
}

GraphId lowering_graph(Session& session, CompileState& compile, nb::handle lowering, std::string_view direction) {
  const auto it = compile.graphs.find(lowering.ptr());
  if (it != compile.graphs.end()) return it->second;
  std::string path = text(attribute(lowering, "name")).value_or("");
  if (path == "None") path.clear();
  const GraphId id = session.recorder().graph(compile.id, "ir", direction, path);
  compile.graphs.emplace(lowering.ptr(), id);
  compile.keep.push_back(nb::borrow(lowering));
  return id;
}

std::string operation_name(nb::handle operation) {
  if (const auto name = text(call_method(operation, "get_operation_name"))) return *name;
  return text(call_method(operation, "get_name")).value_or("");
}

std::vector<UnitId> origin_units(Session& session, CompileState& compile, nb::handle operation, bool* readable) {
  std::vector<UnitId> out;
  const nb::object origins = attribute(operation, "origins");
  if (!is_valid(origins)) return out;
  const nb::object iterator = nb::steal(PyObject_GetIter(origins.ptr()));
  while (iterator.is_valid()) {
    const nb::object node = nb::steal(PyIter_Next(iterator.ptr()));
    if (!node.is_valid()) break;
    out.push_back(unit_of_node(session, compile, node, "an origin outside every captured graph"));
  }
  if (PyErr_Occurred() && readable) *readable = false;
  if (PyErr_Occurred()) clear_error();
  return out;
}

void read_ir_fields(Session& session, CompileState& compile, nb::handle operation, const IrFields& fields,
                    model::ObservedUnit& out) {
  nb::object value;
  Observation origins = slot(session, operation, "origins", value);
  if (origins.state == State::kPresent) {
    bool readable = true;
    origins.refs = origin_units(session, compile, operation, &readable);
    if (!readable) {
      origins.refs.clear();
      origins.state = State::kUnreadable;
    } else if (origins.refs.empty()) {
      origins.state = State::kEmpty;
    }
  }
  out.attrs.push_back({fields.origins, std::move(origins)});

  Observation origin_node = slot(session, operation, "origin_node", value);
  if (origin_node.state == State::kPresent) {
    origin_node.refs = {unit_of_node(session, compile, value, "an origin_node outside every captured graph")};
  }
  out.attrs.push_back({fields.origin_node, std::move(origin_node)});

  Observation traceback = slot(session, operation, "traceback", value);
  if (traceback.state == State::kPresent) traceback.text = session.recorder().text(text(value).value_or(""));
  out.attrs.push_back({fields.traceback, std::move(traceback)});

  Observation traces = slot(session, operation, "get_stack_traces", value);
  if (traces.state != State::kNoSlot && traces.state != State::kUnreadable) {
    const nb::object result = nb::steal(PyObject_CallNoArgs(value.ptr()));
    if (!result.is_valid()) {
      clear_error();
      traces.state = State::kUnreadable;
    } else {
      traces.python_type = session.recorder().text(python_type_name(result));
      base::JsonArray texts;
      const nb::object iterator = nb::steal(PyObject_GetIter(result.ptr()));
      while (iterator.is_valid()) {
        const nb::object item = nb::steal(PyIter_Next(iterator.ptr()));
        if (!item.is_valid()) break;
        texts.push_back(base::Json(text(item).value_or("")));
      }
      const bool readable = !PyErr_Occurred();
      if (!readable) clear_error();
      traces.state = !readable ? State::kUnreadable : texts.empty() ? State::kEmpty : State::kPresent;
      if (readable && !texts.empty()) traces.text = session.recorder().json_value(base::Json(std::move(texts)));
    }
  }
  out.attrs.push_back({fields.get_stack_traces, std::move(traces)});
}

UnitId unit_of_operation(Session& session, CompileState& compile, nb::handle operation, std::string_view why) {
  const auto it = compile.units.find(operation.ptr());
  if (it != compile.units.end()) return it->second;
  compile.keep.push_back(nb::borrow(operation));
  const GraphId graph = session.recorder().graph(compile.id, "ir", "none", "");
  const UnitId unit =
      session.recorder().unit(graph, UnitKind::kOperation, fmt::format("{}: {}", why, operation_name(operation)));
  compile.units.emplace(operation.ptr(), unit);
  ++compile.referred_only[std::string(why)];
  return unit;
}

SnapshotId snapshot_operations(Session& session, CompileState& compile, nb::handle lowering, StageId stage,
                               std::string_view direction) {
  const GraphId graph = lowering_graph(session, compile, lowering, direction);
  std::vector<model::ObservedUnit> observed;
  const nb::object operations = attribute(lowering, "operations");
  if (!operations.is_valid() || !PyList_Check(operations.ptr()))
    throw std::runtime_error("the lowering has no list of operations");
  for (nb::handle operation : operations) {
    const auto [it, inserted] = compile.units.try_emplace(operation.ptr(), UnitId::kNone);
    if (inserted) {
      it->second = session.recorder().unit(graph, UnitKind::kOperation);
      compile.keep.push_back(nb::borrow(operation));
    }
    const UnitId unit = it->second;
    observed.push_back(read_operation(session, compile, operation, unit));
  }
  return session.recorder().snapshot(stage, graph, observed);
}

}  // namespace kerntrail::probe
