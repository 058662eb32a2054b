#include "observe_ir_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/strings.h"
#include "observe_ir.h"
#include "python_text.h"

namespace kerntrail::probe {
namespace {

constexpr std::string_view kSubsystem = "pre_scheduling";
constexpr int kMaxFrames = 64;

// An operation as the last look at its lowering found it.
struct KnownOperation {
  nb::object object;
  std::string name;  // of its buffer
  UnitId unit = UnitId::kNone;
  std::uint64_t signature = 0;
  std::shared_ptr<const model::ObservedUnit> seen;
};

// A pass declared where a buffer has its provenance from.
struct Forwarding {
  std::string kind;  // of the record it appended
  nb::object made;
  std::vector<nb::object> sources;
  LocId loc = LocId::kNone;
};

struct ActivePass {
  PassId id = PassId::kNone;
  std::string name;
  nb::object observer;
  const void* frame = nullptr;  // of the pipeline: compiler frames of the pass end before it
  std::vector<Forwarding> forwardings;
  std::unordered_map<PyObject*, LocId> made_at;
  std::vector<nb::object> keep;  // addresses in made_at stay theirs
};

struct Lowering {
  nb::object object;
  std::string last_look;  // for the name of a gap
  std::vector<KnownOperation> known;
  std::vector<ActivePass> active;  // outermost first
};

}  // namespace

struct IrPasses {
  std::unordered_map<PyObject*, Lowering> lowerings;
  std::vector<PyObject*> entered;  // lowerings of the passes in progress, innermost last
};

namespace {

// ---- what changed -------------------------------------------------------------------------------------------------

std::uint64_t mix(std::uint64_t seed, nb::handle object) {
  return base::hash64(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(object.ptr())), seed);
}

// Identities of all that a read of the operation would look at: while they are the same, so is what would be read.
std::uint64_t signature_of(nb::handle operation) {
  std::uint64_t out = mix(1, operation);
  for (const char* name : {"origin_node", "traceback", "_spyre_prov_history", "data", "layout", "operation_name"})
    out = mix(out, attribute(operation, name));
  const nb::object dict = attribute(operation, "__dict__");
  if (dict.is_valid() && PyDict_Check(dict.ptr()))
    out = base::hash64(static_cast<std::uint64_t>(PyDict_Size(dict.ptr())), out);
  const nb::object origins = attribute(operation, "origins");
  if (!is_valid(origins)) return mix(out, origins);
  const nb::object iterator = nb::steal(PyObject_GetIter(origins.ptr()));
  while (iterator.is_valid()) {
    const nb::object node = nb::steal(PyIter_Next(iterator.ptr()));
    if (!node.is_valid()) break;
    out = mix(mix(out, node), dict_item(attribute(node, "meta"), "stack_trace"));
  }
  if (PyErr_Occurred()) {
    clear_error();
    return 0;  // never equal: read again
  }
  return out;
}

nb::object operations_of(nb::handle lowering) {
  nb::object operations = attribute(lowering, "operations");
  if (!operations.is_valid() || !PyList_Check(operations.ptr()))
    throw std::runtime_error("the lowering has no list of operations");
  return operations;
}

UnitId unit_in(Session& session, CompileState& compile, GraphId graph, nb::handle operation) {
  const auto [it, inserted] = compile.units.try_emplace(operation.ptr(), UnitId::kNone);
  if (inserted) {
    it->second = session.recorder().unit(graph, UnitKind::kOperation);
    compile.keep.push_back(nb::borrow(operation));
  }
  return it->second;
}

// The lowering's operations now; what is as it was is not read again unless `fresh`.
std::vector<KnownOperation> read_lowering(Session& session, CompileState& compile, GraphId graph, nb::handle lowering,
                                          const std::vector<KnownOperation>& before, bool fresh) {
  std::unordered_map<PyObject*, const KnownOperation*> old;
  for (const KnownOperation& known : before) old.emplace(known.object.ptr(), &known);
  std::vector<KnownOperation> out;
  for (nb::handle operation : operations_of(lowering)) {
    const std::uint64_t signature = signature_of(operation);
    const auto it = old.find(operation.ptr());
    if (!fresh && it != old.end() && signature != 0 && it->second->signature == signature) {
      out.push_back(*it->second);
      continue;
    }
    KnownOperation now;
    now.object = nb::borrow(operation);
    now.name = text(call_method(operation, "get_name")).value_or("");
    now.unit = unit_in(session, compile, graph, operation);
    now.signature = signature;
    now.seen = std::make_shared<const model::ObservedUnit>(read_operation(session, compile, operation, now.unit));
    out.push_back(std::move(now));
  }
  return out;
}

const Observation* find(const model::ObservedUnit& unit, AttrId attr) {
  for (const model::ObservedAttr& seen : unit.attrs)
    if (seen.attr == attr && seen.value.state != State::kNoSlot) return &seen.value;
  return nullptr;
}

// Other provenance than before; that a pass noted something else on the operation is no change here.
bool differs(const Tables::Attrs& attr, const model::ObservedUnit& a, const model::ObservedUnit& b) {
  for (const AttrId id : {attr.origins, attr.origin_node, attr.traceback, attr.get_stack_traces, attr.history}) {
    const Observation *x = find(a, id), *y = find(b, id);
    if ((x == nullptr) != (y == nullptr) || (x && !(*x == *y))) return true;
  }
  return false;
}

struct Change {
  std::vector<const KnownOperation*> created, changed, erased;
  std::vector<std::pair<const KnownOperation*, const KnownOperation*>> renewed;  // same name, another object

  bool any() const { return !created.empty() || !changed.empty() || !erased.empty(); }
};

Change compare(const Tables::Attrs& attr, const std::vector<KnownOperation>& before,
               const std::vector<KnownOperation>& now) {
  std::unordered_map<PyObject*, const KnownOperation*> old, present;
  std::unordered_map<std::string, const KnownOperation*> gone;
  for (const KnownOperation& k : before) old.emplace(k.object.ptr(), &k);
  for (const KnownOperation& k : now) present.emplace(k.object.ptr(), &k);
  Change out;
  for (const KnownOperation& k : before) {
    if (present.contains(k.object.ptr())) continue;
    out.erased.push_back(&k);
    if (!k.name.empty()) gone.emplace(k.name, &k);
  }
  for (const KnownOperation& k : now) {
    const auto it = old.find(k.object.ptr());
    if (it != old.end()) {
      if (k.seen != it->second->seen && differs(attr, *it->second->seen, *k.seen)) out.changed.push_back(&k);
      continue;
    }
    out.created.push_back(&k);
    if (const auto same = gone.find(k.name); same != gone.end()) out.renewed.emplace_back(same->second, &k);
  }
  return out;
}

// ---- writing it down ----------------------------------------------------------------------------------------------

std::string_view evidence_of(std::string_view kind) {
  if (kind == "fusion" || kind == "decomposition") return kind;
  return kind == "clone" ? "copy" : "rewrite";
}

// The evidence that the newest record of an operation's history gives, where the pass itself was not seen declaring it.
std::string_view evidence_in_history(nb::handle operation, std::string_view pass) {
  const nb::object history = attribute(operation, "_spyre_prov_history");
  if (!history.is_valid() || !PyTuple_Check(history.ptr()) || PyTuple_GET_SIZE(history.ptr()) == 0) return {};
  const nb::handle last = PyTuple_GET_ITEM(history.ptr(), PyTuple_GET_SIZE(history.ptr()) - 1);
  if (text(attribute(last, "pass_name")).value_or("") != pass) return {};
  return evidence_of(text(attribute(last, "kind")).value_or(""));
}

// Writes what one pass or gap did: births, the look, the end.
class Outcome {
 public:
  Outcome(Session& session, CompileState& compile, GraphId graph, PassId pass, const Change& change)
      : session_(session), compile_(compile), graph_(graph), pass_(pass), change_(change) {}

  void write(const ActivePass* active) {
    for (const auto& [old, now] : change_.renewed) {
      done_.replaced.emplace_back(old->unit, now->unit);
      replaced_.insert(old->unit);
      same_name_.emplace(now->unit, old->unit);
    }
    for (const KnownOperation* k : change_.created) present(*k, done_.created);
    for (const KnownOperation* k : change_.changed) present(*k, done_.changed);
    for (const KnownOperation* k : change_.erased) done_.erased.push_back(k->unit);
    if (active) declared(*active);
    for (const KnownOperation* k : change_.created) undeclared(*k, active);
    if (!look_.empty()) session_.recorder().look(pass_, graph_, look_);
    session_.recorder().end_pass(pass_, done_);
  }

 private:
  void present(const KnownOperation& k, std::vector<UnitId>& list) {
    list.push_back(k.unit);
    look_.push_back(*k.seen);
  }

  // Forwardings in the order they happened; what they name that did not live until the end is shown too.
  void declared(const ActivePass& active) {
    for (const Forwarding& f : active.forwardings) {
      Birth birth;
      birth.unit = unit_of(f.made);
      birth.pass = pass_;
      birth.evidence = std::string(evidence_of(f.kind));
      const auto made = active.made_at.find(f.made.ptr());
      birth.loc = made == active.made_at.end() ? f.loc : made->second;
      for (const nb::object& source : f.sources) birth.sources.push_back(unit_of(source));
      born_.insert(birth.unit);
      for (const UnitId source : birth.sources) replace(source, birth.unit);
      session_.recorder().birth(birth);
    }
  }

  // A source that is gone and whose name nobody took over has given its uses to what was made of it.
  void replace(UnitId source, UnitId made) {
    const bool erased = std::find(done_.erased.begin(), done_.erased.end(), source) != done_.erased.end();
    if (erased && replaced_.insert(source).second) done_.replaced.emplace_back(source, made);
  }

  UnitId unit_of(const nb::object& operation) {
    const bool known = compile_.units.contains(operation.ptr());
    const UnitId unit = unit_in(session_, compile_, graph_, operation);
    if (!known) look_.push_back(read_operation(session_, compile_, operation, unit));
    return unit;
  }

  void undeclared(const KnownOperation& k, const ActivePass* active) {
    if (born_.contains(k.unit)) return;
    Birth birth;
    birth.unit = k.unit;
    birth.pass = pass_;
    const auto old = same_name_.find(k.unit);
    if (old != same_name_.end()) birth.sources.push_back(old->second);
    const std::string_view told = active ? evidence_in_history(k.object, active->name) : std::string_view();
    birth.evidence = !told.empty() ? std::string(told) : old != same_name_.end() ? "replacement" : "created";
    if (active) {
      if (const auto made = active->made_at.find(k.object.ptr()); made != active->made_at.end())
        birth.loc = made->second;
    }
    session_.recorder().birth(birth);
  }

  Session& session_;
  CompileState& compile_;
  GraphId graph_;
  PassId pass_;
  const Change& change_;
  Pass done_;
  std::vector<model::ObservedUnit> look_;
  std::unordered_map<UnitId, UnitId> same_name_;  // new unit -> the one whose name it took
  std::unordered_set<UnitId> replaced_, born_;
};

// What changed since the last look although no pass was running.
void charge_gap(Session& session, CompileState& compile, GraphId graph, Lowering& lowering,
                const std::vector<KnownOperation>& now, std::string_view next) {
  const Change change = compare(session.tables().attr, lowering.known, now);
  if (!change.any()) return;
  Pass gap;
  gap.graph = graph;
  gap.kind = PassKind::kGap;
  gap.subsystem = kSubsystem;
  gap.name = fmt::format("between {} and {}", lowering.last_look, next);
  if (!lowering.active.empty()) gap.parent = lowering.active.back().id;
  const PassId id = session.recorder().begin_pass(gap);
  Outcome(session, compile, graph, id, change).write(nullptr);
}

IrPasses& passes_of(CompileState& compile) {
  if (!compile.ir_passes) compile.ir_passes = std::make_shared<IrPasses>();
  return *compile.ir_passes;
}

ActivePass* active_pass(Session& session) {
  Frame* frame = session.current_frame();
  if (!frame || !frame->compile->ir_passes) return nullptr;
  IrPasses& passes = *frame->compile->ir_passes;
  if (passes.entered.empty()) return nullptr;
  Lowering& lowering = passes.lowerings.at(passes.entered.back());
  return lowering.active.empty() ? nullptr : &lowering.active.back();
}

// ---- frames -------------------------------------------------------------------------------------------------------

// The running Python frames as the text of a traceback, from the first one that `is_inner` does not skip out to `end`.
template <class Skip>
LocId frames_loc(Session& session, const void* end, Skip&& is_inner) {
  std::vector<std::string> lines;  // innermost first
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  for (int i = 0; i < kMaxFrames && frame.is_valid() && frame.ptr() != end; ++i) {
    auto* raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    const std::string file = text(attribute(code, "co_filename")).value_or("");
    if (!lines.empty() || !is_inner(file)) {
      lines.push_back(fmt::format("  File \"{}\", line {}, in {}\n", file, PyFrame_GetLineNumber(raw),
                                  text(attribute(code, "co_name")).value_or("?")));
    }
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  std::string trace;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) trace += *line;
  return session.sources().chain(trace);
}

// Where the pipeline stands: the one frame above the pass's observer.
LocId caller_loc(Session& session) {
  const nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  if (!frame.is_valid()) return LocId::kNone;
  const nb::object back = attribute(frame, "f_back");
  return frames_loc(session, back.ptr(), [](const std::string&) { return false; });
}

}  // namespace

void snapshot_pipeline(Session& session, Frame& frame, nb::handle lowering, StageId stage, std::string_view key) {
  CompileState& compile = *frame.compile;
  if (session.options().level < Level::kPasses) {
    snapshot_operations(session, compile, lowering, stage, frame.direction);
    return;
  }
  const GraphId graph = lowering_graph(session, compile, lowering, frame.direction);
  Lowering& known = passes_of(compile).lowerings[lowering.ptr()];
  std::vector<KnownOperation> now = read_lowering(session, compile, graph, lowering, known.known, true);
  if (known.object.is_valid()) charge_gap(session, compile, graph, known, now, key);
  std::vector<model::ObservedUnit> observed;
  for (const KnownOperation& k : now) observed.push_back(*k.seen);
  session.recorder().snapshot(stage, graph, observed);
  known.object = nb::borrow(lowering);
  known.known = std::move(now);
  known.last_look = key;
}

void ir_pass_enter_before(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  const nb::handle observer = call.arg(0, "self");
  if (!frame) return;
  if (text(attribute(observer, "kind")).value_or("") != "graphlowering") return;
  CompileState& compile = *frame->compile;
  const nb::object target = attribute(observer, "target");
  const GraphId graph = lowering_graph(session, compile, target, frame->direction);
  IrPasses& passes = passes_of(compile);
  Lowering& lowering = passes.lowerings[target.ptr()];
  const void* pipeline = PyEval_GetFrame();
  while (!lowering.active.empty() && lowering.active.back().frame == pipeline) {  // its end was not seen
    lowering.active.pop_back();
    passes.entered.pop_back();
  }
  ActivePass active;
  active.name = text(attribute(observer, "pass_name")).value_or("?");
  std::vector<KnownOperation> now = read_lowering(session, compile, graph, target, lowering.known, false);
  if (lowering.object.is_valid()) charge_gap(session, compile, graph, lowering, now, active.name);
  lowering.object = target;
  lowering.known = std::move(now);
  Pass pass;
  pass.graph = graph;
  pass.name = active.name;
  pass.subsystem = kSubsystem;
  pass.loc = caller_loc(session);
  if (!lowering.active.empty()) pass.parent = lowering.active.back().id;
  active.id = session.recorder().begin_pass(pass);
  active.observer = nb::borrow(observer);
  active.frame = pipeline;
  lowering.active.push_back(std::move(active));
  passes.entered.push_back(target.ptr());
}

void ir_pass_exit_after(Session& session, Call& call) {
  Frame* frame = session.current_frame();
  if (!frame || !frame->compile->ir_passes) return;
  CompileState& compile = *frame->compile;
  IrPasses& passes = *compile.ir_passes;
  const nb::handle observer = call.arg(0, "self");
  const nb::object target = attribute(observer, "target");
  const auto found = passes.lowerings.find(target.ptr());
  if (found == passes.lowerings.end()) return;
  Lowering& lowering = found->second;
  const auto is_mine = [&](const ActivePass& active) { return active.observer.is(observer); };
  if (std::none_of(lowering.active.begin(), lowering.active.end(), is_mine)) return;
  while (!lowering.active.back().observer.is(observer)) {  // their end was not seen
    lowering.active.pop_back();
    passes.entered.pop_back();
  }
  const ActivePass active = std::move(lowering.active.back());
  lowering.active.pop_back();
  passes.entered.pop_back();
  lowering.last_look = active.name;
  if (is_valid(call.arg(1, "exc_type"))) return;  // the pass raised: it has no end
  const GraphId graph = lowering_graph(session, compile, target, frame->direction);
  std::vector<KnownOperation> now = read_lowering(session, compile, graph, target, lowering.known, false);
  const Change change = compare(session.tables().attr, lowering.known, now);
  Outcome(session, compile, graph, active.id, change).write(&active);
  lowering.known = std::move(now);
}

void forwarded_after(Session& session, Call& call) {
  ActivePass* active = active_pass(session);
  const nb::handle carriers = call.arg(0, "carriers"), made = call.arg(1, "new");
  if (!active || call.raised || !is_valid(carriers) || !is_valid(made)) return;
  Forwarding forwarding;
  forwarding.kind = text(attribute(call.arg(2, "transform"), "kind")).value_or("");
  forwarding.made = nb::borrow(made);
  const nb::object iterator = nb::steal(PyObject_GetIter(carriers.ptr()));
  while (iterator.is_valid()) {
    nb::object source = nb::steal(PyIter_Next(iterator.ptr()));
    if (!source.is_valid()) break;
    if (!source.is(made)) forwarding.sources.push_back(std::move(source));
  }
  clear_error();
  std::string helpers;  // the file of the forwarding functions: the responsible line is whoever calls them
  forwarding.loc = frames_loc(session, active->frame, [&](const std::string& file) {
    if (helpers.empty()) helpers = file;
    return file == helpers;
  });
  active->forwardings.push_back(std::move(forwarding));
}

void buffer_made_before(Session& session, Call& call) {
  ActivePass* active = active_pass(session);
  const nb::handle buffer = call.arg(0, "self");
  if (!active || !buffer.is_valid()) return;
  active->made_at[buffer.ptr()] = frames_loc(
      session, active->frame, [&](const std::string& file) { return session.sources().is_torch_or_no_file(file); });
  active->keep.push_back(nb::borrow(buffer));
}

}  // namespace kerntrail::probe
