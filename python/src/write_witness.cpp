#include "write_witness.h"

#include <algorithm>
#include <unordered_set>

#include "observations.h"
#include "observe_ir.h"
#include "python_text.h"
#include "witness.h"

namespace kerntrail::probe {
namespace {

base::Json maker(Session& session, const FrameRef& frame) {
  return base::JsonObject{{"file", compiler_path(session, text(attribute(frame.code, "co_filename")).value_or(""))},
                          {"line", static_cast<std::int64_t>(frame.line)},
                          {"function", text(attribute(frame.code, "co_name")).value_or("")}};
}

// The place of a unit in `units`, where it is added if it is not there.
base::Json place_of(UnitId unit, std::vector<UnitId>& units) {
  const auto found = std::find(units.begin(), units.end(), unit);
  const std::ptrdiff_t at = found - units.begin();
  if (found == units.end()) units.push_back(unit);
  return base::Json(static_cast<std::int64_t>(at));
}

class Writer {
 public:
  Writer(Session& session, Witness& witness, PendingKernel& kernel)
      : session_(session), witness_(witness), kernel_(kernel) {}

  void write(nb::handle node_schedule) {
    base::JsonArray lines;
    if (!kernel_.text.empty()) {
      for (const TextLine& line : witness_.take(kernel_.text)) {
        if (line.what.by.block != nullptr) printed_.insert(line.what.by.block);
        lines.push_back(line_json(line));
      }
    }
    if (!PyList_Check(node_schedule.ptr()) && !PyTuple_Check(node_schedule.ptr())) {
      add_lowered(node_schedule);
    } else {
      for (nb::handle scheduled : node_schedule) {
        if (witness_.partitioning == 0 || printed_.empty() || is_printed(scheduled)) add_scheduled(scheduled);
      }
    }
    base::JsonObject entry;
    if (!lines.empty()) entry.emplace_back("lines", std::move(lines));
    if (!bodies_.empty()) entry.emplace_back("bodies", std::move(bodies_));
    if (!lowered_.empty()) entry.emplace_back("lowered", std::move(lowered_));
    kernel_.witness.push_back(base::Json(std::move(entry)));
  }

 private:
  base::Json ref(UnitId unit) { return place_of(unit, kernel_.witnessed); }

  // "unit" or "made": who asked. Neither where nobody is known.
  void add_source(std::int32_t source, base::JsonObject& out) {
    if (source == kNothing) return;
    const WitnessSource& by = witness_.source(source);
    if (has(by.unit)) {
      out.emplace_back("unit", ref(by.unit));
    } else {
      out.emplace_back("made", maker(session_, by.maker));
    }
  }

  base::Json line_json(const TextLine& line) {
    const Running& by = line.what.by;
    const bool made = by.source != kNothing && !has(witness_.source(by.source).unit);
    const Does does = by.shared           ? Does::kIndex
                      : made              ? Does::kCompilerMade
                      : by.op == kNothing ? Does::kCompute
                                          : witness_.op(by.op).does;
    base::JsonObject out{{"line", line.line}, {"does", std::string(does_name(does))}};
    if (by.op != kNothing) out.emplace_back("op", witness_.op(by.op).name);
    add_source(by.source, out);
    base::JsonArray also;
    for (const std::int32_t source : line.what.also) {
      if (has(witness_.source(source).unit)) also.push_back(ref(witness_.source(source).unit));
    }
    if (!also.empty()) out.emplace_back("also", std::move(also));
    if (by.shared) out.emplace_back("shared", true);
    return base::Json(std::move(out));
  }

  // Whether a loop nest of this group has a line in the text.
  bool is_printed(nb::handle group) {
    const nb::object parts = call_method(group, "get_nodes");
    if (!parts.is_valid() || !PyList_Check(parts.ptr())) return true;
    bool has_body = false;
    for (nb::handle part : parts) {
      const nb::object graph = attribute(attribute(attribute(part, "_body"), "root_block"), "graph");
      has_body = has_body || graph.is_valid();
      if (printed_.contains(graph.ptr())) return true;
    }
    return !has_body;
  }

  void add_scheduled(nb::handle scheduled) {
    const nb::object parts = call_method(scheduled, "get_nodes");  // a fused node stands for several
    if (!parts.is_valid() || !PyList_Check(parts.ptr())) return;
    for (nb::handle part : parts) {
      const nb::object operation = attribute(part, "node");
      if (!is_valid(operation)) continue;
      const nb::object body = attribute(part, "_body");
      if (is_valid(body)) {
        add_body(operation, body);
      } else {
        add_lowered(operation);
      }
    }
  }

  void add_body(nb::handle operation, nb::handle body) {
    base::JsonArray ops;
    add_block(attribute(body, "root_block"), ops);
    const nb::object blocks = call_method(attribute(body, "subblocks"), "values");
    const nb::object iterator = blocks.is_valid() ? nb::steal(PyObject_GetIter(blocks.ptr())) : nb::object();
    while (iterator.is_valid()) {
      const nb::object block = nb::steal(PyIter_Next(iterator.ptr()));
      if (!block.is_valid()) break;
      add_block(block, ops);
    }
    if (PyErr_Occurred()) clear_error();
    bodies_.push_back(base::JsonObject{{"operation", operation_name(operation)}, {"ops", std::move(ops)}});
  }

  void add_block(nb::handle block, base::JsonArray& ops) {
    const nb::object nodes = attribute(attribute(block, "graph"), "nodes");
    const nb::object iterator = nodes.is_valid() ? nb::steal(PyObject_GetIter(nodes.ptr())) : nb::object();
    while (iterator.is_valid()) {
      const nb::object node = nb::steal(PyIter_Next(iterator.ptr()));
      if (!node.is_valid()) break;
      if (text(attribute(node, "op")) != "call_method") continue;
      base::JsonObject op{{"op", text(attribute(node, "target")).value_or("")}};
      const nb::object meta = attribute(node, "meta");
      const nb::handle mark = meta.is_valid() ? dict_item(meta, "_kerntrail") : nb::handle();
      if (mark.is_valid()) add_source(witness_.marked(integer(mark, 0)), op);
      ops.push_back(base::Json(std::move(op)));
    }
    if (PyErr_Occurred()) clear_error();
  }

  void add_lowered(nb::handle operation) {
    base::JsonObject out{{"operation", operation_name(operation)}};
    const UnitId unit = witness_.lowered_for(operation);
    if (has(unit)) out.emplace_back("unit", ref(unit));
    lowered_.push_back(base::Json(std::move(out)));
  }

  Session& session_;
  Witness& witness_;
  PendingKernel& kernel_;
  base::JsonArray bodies_, lowered_;
  std::unordered_set<const PyObject*> printed_;  // blocks of loop bodies that have a line in the text
};

}  // namespace

void collect_witness(Session& session, PendingKernel& kernel, nb::handle node_schedule) {
  if (session.options().level < Level::kTruth || !tracing().witness || !is_valid(node_schedule)) return;
  Writer(session, *tracing().witness, kernel).write(node_schedule);
}

std::vector<WitnessedOp> witnessed_ops(Session& session, nb::handle kernel, nb::handle buffer) {
  std::vector<WitnessedOp> out;
  const std::shared_ptr<Witness> witness = tracing().witness;
  const nb::object ops = attribute(kernel, "body_ops");
  if (!witness || !ops.is_valid() || !PyList_Check(ops.ptr())) return out;
  const std::string name = text(call_method(buffer, "get_name")).value_or("");
  const std::int32_t nest = tag_of(*witness, attribute(attribute(buffer, "data"), "inner_fn"));
  for (nb::handle op : ops) {
    if (!PyTuple_Check(op.ptr()) || PyTuple_GET_SIZE(op.ptr()) != 3) continue;
    const std::int64_t place = integer(PyTuple_GET_ITEM(op.ptr(), 2), -1);
    const std::int32_t source = place < 0 ? nest : witness->marked(integer(PyTuple_GET_ITEM(op.ptr(), 1), 0));
    WitnessedOp made{text(PyTuple_GET_ITEM(op.ptr(), 0)).value_or(""), UnitId::kNone, {}, {}};
    if (source != kNothing) {
      made.unit = witness->source(source).unit;
      if (!has(made.unit)) made.made = maker(session, witness->source(source).maker);
    }
    if (const auto served = witness->served.find({name, place}); served != witness->served.end()) {
      for (const std::int32_t other : served->second) {
        const UnitId unit = witness->source(other).unit;
        const bool known = std::find(made.also.begin(), made.also.end(), unit) != made.also.end();
        if (has(unit) && unit != made.unit && !known) made.also.push_back(unit);
      }
    }
    out.push_back(std::move(made));
  }
  return out;
}

Observation op_spec_witness(Session& session, const std::vector<std::vector<const PendingOpSpec*>>& entries) {
  std::vector<UnitId> units;
  base::JsonArray list;
  for (const std::vector<const PendingOpSpec*>& specs : entries) {
    base::JsonArray bodies;
    for (const PendingOpSpec* spec : specs) {
      base::JsonArray ops;
      for (const WitnessedOp& op : spec->ops) {
        base::JsonObject one{{"op", op.op}};
        if (has(op.unit)) one.emplace_back("unit", place_of(op.unit, units));
        if (!op.made.is_null()) one.emplace_back("made", op.made);
        base::JsonArray also;
        for (const UnitId unit : op.also) also.push_back(place_of(unit, units));
        if (!also.empty()) one.emplace_back("also", std::move(also));
        ops.push_back(base::Json(std::move(one)));
      }
      if (!ops.empty()) bodies.push_back(base::JsonObject{{"operation", spec->operation}, {"ops", std::move(ops)}});
    }
    if (!bodies.empty()) list.push_back(base::JsonObject{{"bodies", std::move(bodies)}});
  }
  if (list.empty()) return {State::kEmpty, {}, {}, {}, {}, {}};
  Observation out = json_of(session, base::Json(std::move(list)));
  out.refs = std::move(units);
  return out;
}

}  // namespace kerntrail::probe
