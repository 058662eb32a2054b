#include "analyse/witness.h"

#include <algorithm>
#include <array>

#include "analyse/pipeline.h"
#include "base/json.h"
#include "model/loop_ops.h"

namespace kerntrail::analyse {
namespace {

// By Does. What nobody asked for (compiler_made) names no node.
constexpr std::array<Support, 8> kSupport{Support::kComputes, Support::kMoves, Support::kMoves,   Support::kMoves,
                                          Support::kConstant, Support::kIndex, Support::kControl, Support::kComputes};

Support support_of(model::Does does) { return kSupport[static_cast<std::size_t>(does)]; }

}  // namespace

Support support_of_op(std::string_view op) { return support_of(model::does_of_op(op)); }

WitnessIndex::WitnessIndex(const Capture& capture, CompileId compile) : capture_(capture), compile_(compile) {
  const auto attr = capture.find_attr("witness");
  if (!attr) return;
  index_operations();
  const Capture::Range near = capture.units_of(compile);
  for (std::size_t i = near.first; i < near.last; ++i) {
    const auto unit = id_at<UnitId>(i);
    if (capture.units[i].kind == UnitKind::kFxNode || capture.compile_of(unit) != compile) continue;
    const Observation* last = nullptr;
    capture.each_version(unit, *attr, [&](SnapshotId, const Observation& seen) { last = &seen; });
    if (last == nullptr || last->state == State::kNoSlot) continue;
    if (last->state == State::kPresent) {
      read(unit, *last);
    } else {
      unread_.push_back(unit);
    }
  }
}

const Work* WitnessIndex::of(UnitId unit) const {
  const auto found = work_.find(unit);
  return found == work_.end() ? nullptr : &found->second;
}

const std::vector<UnitId>& WitnessIndex::workers(UnitId node) const {
  static const std::vector<UnitId> kNobody;
  const auto found = workers_.find(node);
  return found == workers_.end() ? kNobody : found->second;
}

// Operations are named by the graph that was lowered: forward and backward both have an op0. So names are looked up
// among the operations that a kernel is linked to.
void WitnessIndex::index_operations() {
  for (const Link& link : capture_.links_of(compile_)) {
    if (link.kind == "bundle_file" || link.kind == "call_kernel") continue;
    for (UnitId to : link.to) {
      if (capture_.compile_of(to) != compile_) continue;
      auto& from = linked_from_[to];
      from.insert(from.end(), link.from.begin(), link.from.end());
    }
  }
  const auto name = capture_.find_attr("name");
  if (!name) return;
  const Capture::Range near = capture_.units_of(compile_);
  for (std::size_t i = near.first; i < near.last; ++i) {
    const auto unit = id_at<UnitId>(i);
    if (capture_.units[i].kind != UnitKind::kOperation || capture_.compile_of(unit) != compile_) continue;
    const Observation* last = nullptr;
    capture_.each_version(unit, *name, [&](SnapshotId, const Observation& seen) { last = &seen; });
    if (last != nullptr && has(last->text)) operations_[capture_.text(last->text)].push_back(unit);
  }
}

UnitId WitnessIndex::operation_named(UnitId kernel, std::string_view name) const {
  const auto named = operations_.find(name);
  if (named == operations_.end()) return UnitId::kNone;
  std::vector<UnitId> open{kernel};
  std::vector<UnitId> seen{kernel};
  while (!open.empty()) {
    const UnitId unit = open.back();
    open.pop_back();
    if (std::find(named->second.begin(), named->second.end(), unit) != named->second.end()) return unit;
    const auto from = linked_from_.find(unit);
    if (from == linked_from_.end()) continue;
    for (UnitId next : from->second) {
      if (std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
      seen.push_back(next);
      open.push_back(next);
    }
  }
  return UnitId::kNone;
}

void WitnessIndex::add(UnitId unit, UnitId node, Support support) {
  Work& work = work_[unit];
  const auto known = std::find_if(work.begin(), work.end(), [&](const auto& one) { return one.first == node; });
  if (known != work.end()) {
    known->second = std::min(known->second, support);
    return;
  }
  work.emplace_back(node, support);
  workers_[node].push_back(unit);
}

// One entry for each registration of a kernel: a text that is called twice works for the nodes of both.
void WitnessIndex::read(UnitId unit, const Observation& seen) {
  const auto json = base::Json::parse(capture_.text(seen.text));
  if (!json || !json->is_array()) {
    unread_.push_back(unit);
    return;
  }
  work_[unit];  // witnessed, even where every operation is the compiler's own
  const auto node = [&](const base::Json& of) {
    if (!of.is_int()) return UnitId::kNone;
    const auto place = static_cast<std::uint64_t>(of.as_int());
    return place < seen.refs.size() ? seen.refs[place] : UnitId::kNone;
  };
  const auto note = [&](UnitId worker, const base::Json& of, Support support) {
    if (const UnitId by = node(of); has(by)) add(worker, by, support);
  };
  for (const base::Json& entry : json->as_array()) {
    for (const base::Json& line : entry["lines"].as_array()) {
      const Support support =
          support_of(model::does_from_name(line["does"].as_string()).value_or(model::Does::kCompute));
      note(unit, line["unit"], support);
      for (const base::Json& also : line["also"].as_array()) note(unit, also, support);
    }
    const bool of_kernel = capture_.units[index(unit)].kind == UnitKind::kKernel;
    for (const base::Json& body : entry["bodies"].as_array()) {
      const UnitId operation = of_kernel ? operation_named(unit, body["operation"].as_string()) : UnitId::kNone;
      if (has(operation)) work_[operation];
      for (const base::Json& op : body["ops"].as_array()) {
        const Support support = support_of_op(op["op"].as_string());
        note(unit, op["unit"], support);
        if (has(operation)) note(operation, op["unit"], support);
        for (const base::Json& also : op["also"].as_array()) {
          note(unit, also, support);
          if (has(operation)) note(operation, also, support);
        }
      }
    }
    for (const base::Json& made : entry["lowered"].as_array()) {
      note(unit, made["unit"], Support::kComputes);
      const UnitId operation = of_kernel ? operation_named(unit, made["operation"].as_string()) : UnitId::kNone;
      if (has(operation)) note(operation, made["unit"], Support::kComputes);
    }
  }
}

}  // namespace kerntrail::analyse
