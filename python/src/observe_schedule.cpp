#include "observe_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "observations.h"
#include "observe_ir.h"
#include "observe_kernels.h"
#include "python_text.h"

namespace kerntrail::probe {
namespace {

std::vector<std::string> buffers_of(nb::handle scheduler_node) {
  std::vector<std::string> out;
  const nb::object buffers = call_method(scheduler_node, "get_outputs");
  if (!buffers.is_valid() || !PyList_Check(buffers.ptr())) return out;
  for (nb::handle buffer : buffers) out.push_back(text(call_method(buffer, "get_name")).value_or(""));
  return out;
}

void add_member(Session& session, Frame& frame, nb::handle part, PendingGroup& group) {
  const nb::object operation = attribute(part, "node");
  if (!is_valid(operation)) return;
  PendingGroup::Member member;
  member.unit = unit_of_operation(session, *frame.compile, operation, "an operation made while scheduling");
  member.name = operation_name(operation);
  member.node_class = python_type_name(part);
  member.buffers = buffers_of(part);
  group.members.push_back(std::move(member));
}

PendingGroup read_group(Session& session, Frame& frame, GraphId graph, nb::handle scheduler_node) {
  PendingGroup group;
  group.unit = session.recorder().unit(graph, UnitKind::kGroup);
  group.name = text(call_method(scheduler_node, "get_name")).value_or("");
  group.group_class = python_type_name(scheduler_node);
  const nb::object parts = call_method(scheduler_node, "get_nodes");
  if (parts.is_valid() && PyList_Check(parts.ptr())) {
    for (nb::handle part : parts) add_member(session, frame, part, group);
  } else {
    add_member(session, frame, scheduler_node, group);
  }
  return group;
}

std::set<std::string> names_in(nb::handle owner, const char* set) {
  std::set<std::string> out;
  const nb::object names = attribute(owner, set);
  const nb::object iterator = names.is_valid() ? nb::steal(PyObject_GetIter(names.ptr())) : nb::object();
  while (iterator.is_valid()) {
    const nb::object name = nb::steal(PyIter_Next(iterator.ptr()));
    if (!name.is_valid()) break;
    out.insert(text(name).value_or(""));
  }
  if (PyErr_Occurred()) clear_error();
  return out;
}

// What became of an operation. fused: in one group with others; alone: a group of its own; nop: no code is made for
// it. `removed`: its buffers need no memory, since all that reads them is in the same kernel.
base::Json outcomes(const PendingGroup& group, const std::set<std::string>& removed) {
  base::JsonArray out;
  for (const PendingGroup::Member& member : group.members) {
    const char* fate = member.node_class == "NopKernelSchedulerNode" ? "nop"
                       : group.members.size() > 1                    ? "fused"
                                                                     : "alone";
    const bool gone = !member.buffers.empty() && std::all_of(member.buffers.begin(), member.buffers.end(),
                                                             [&](const auto& name) { return removed.contains(name); });
    out.push_back(base::JsonObject{{"operation", member.name},
                                   {"buffers", base::JsonArray(member.buffers.begin(), member.buffers.end())},
                                   {"outcome", fate},
                                   {"removed", gone}});
  }
  return base::Json(std::move(out));
}

void note_dead(Session& session, const PendingSchedule& schedule, CompileId compile) {
  std::set<std::string> scheduled;
  for (const PendingGroup& group : schedule.groups) {
    for (const PendingGroup::Member& member : group.members) scheduled.insert(member.name);
  }
  std::vector<std::string> dead;
  const nb::object operations = attribute(schedule.lowering, "operations");
  if (!operations.is_valid() || !PyList_Check(operations.ptr())) return;
  for (nb::handle operation : operations) {
    std::string name = operation_name(operation);
    if (!scheduled.contains(name)) dead.push_back(std::move(name));
  }
  if (dead.empty()) return;
  session.recorder().note(
      {"operation-not-scheduled", Severity::kInfo,
       fmt::format("in no group after fusion, so that no kernel computes them: {}", base::join(dead, ", ")), compile,
       schedule.graph});
}

}  // namespace

void collect_schedule(Session& session, Frame& frame, nb::handle scheduler_nodes) {
  if (!scheduler_nodes.is_valid() || !PyList_Check(scheduler_nodes.ptr())) return;
  PendingGraph& graph = pending_graph(frame);
  const nb::object lowering = current_lowering();
  for (const PendingSchedule& other : graph.schedules) {
    if (other.lowering.ptr() == lowering.ptr()) return;  // scheduled once more, e.g. for cpp_wrapper
  }
  std::string path = text(attribute(lowering, "name")).value_or("");
  if (path == "None") path.clear();
  PendingSchedule schedule;
  schedule.compile = frame.compile->id;
  schedule.graph = session.recorder().graph(frame.compile->id, "schedule", frame.direction, path);
  schedule.lowering = lowering;
  for (nb::handle node : scheduler_nodes) {
    schedule.groups.push_back(read_group(session, frame, schedule.graph, node));
  }
  graph.schedules.push_back(std::move(schedule));
}

void write_schedules(Session& session, PendingGraph& graph) {
  const Tables::Attrs& attr = session.tables().attr;
  for (const PendingSchedule& schedule : graph.schedules) {
    auto removed = names_in(schedule.lowering, "removed_buffers");
    removed.merge(names_in(schedule.lowering, "inplaced_to_remove"));
    std::vector<model::ObservedUnit> observed;
    for (const PendingGroup& group : schedule.groups) {
      std::vector<UnitId> operations;
      for (const PendingGroup::Member& member : group.members) operations.push_back(member.unit);
      observed.push_back({group.unit,
                          {{attr.name, text_of(session, group.name)},
                           {attr.group_class, text_of(session, group.group_class)},
                           {attr.operations, refs_of(std::move(operations))},
                           {attr.outcomes, json_of(session, outcomes(group, removed))}}});
    }
    session.recorder().snapshot(session.tables().stage.schedule, schedule.graph, observed);
    for (const PendingGroup& group : schedule.groups) {
      std::vector<UnitId> operations;
      for (const PendingGroup::Member& member : group.members) operations.push_back(member.unit);
      if (!operations.empty()) session.recorder().link("fuse", std::move(operations), {group.unit});
    }
    note_dead(session, schedule, schedule.compile);
  }
}

}  // namespace kerntrail::probe
