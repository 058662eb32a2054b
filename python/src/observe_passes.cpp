#include "observe_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "arrivals.h"
#include "graph_watch.h"
#include "observe_fx.h"
#include "python_text.h"
#include "tracing.h"

namespace kerntrail::probe {
namespace {

constexpr const char* kWithinOnePass = "made and erased within one pass";
constexpr std::size_t kMaxMatched = 4096;  // nodes of one match that are read because no look has shown them

using Units = std::vector<UnitId>;

void add_unique(Units& to, UnitId unit) {
  if (has(unit) && std::find(to.begin(), to.end(), unit) == to.end()) to.push_back(unit);
}

// What one look has to record: the units of new nodes, read once, and what is said of their births.
class Look {
 public:
  Look(Session& session, CompileState& compile, GraphId graph, PassScope* scope)
      : session_(session), compile_(compile), recorder_(session.recorder()), graph_(graph), scope_(scope) {}

  // Fills the end record of `pass` from the changes and writes look, births and end.
  void write(PassId pass, const GraphChanges& changes) {
    Pass done;
    declare(changes.created, done.created);
    known_units(changes.erased, done.erased);
    known_units(changes.changed, done.changed);
    known_units(changes.retargeted, done.retargeted);
    read(changes);
    read_lost_sources();
    collect_replacements(done);
    if (!observed_.empty()) recorder_.look(pass, graph_, observed_);
    for (const nb::object& node : changes.created) write_births(pass, node.ptr(), changes);
    recorder_.end_pass(pass, done);
  }

 private:
  void declare(const std::vector<nb::object>& nodes, Units& out) {
    for (const nb::object& node : nodes) {
      const auto [it, fresh] = compile_.units.try_emplace(node.ptr(), UnitId::kNone);
      if (fresh) {
        it->second = recorder_.unit(graph_, UnitKind::kFxNode);
        compile_.keep.push_back(node);
      }
      out.push_back(it->second);
    }
  }

  void known_units(const std::vector<nb::object>& nodes, Units& out) const {
    for (const nb::object& node : nodes) {
      if (const auto unit = compile_.units.find(node.ptr()); unit != compile_.units.end()) out.push_back(unit->second);
    }
  }

  void read_node_once(PyObject* node) {
    const auto unit = compile_.units.find(node);
    if (unit == compile_.units.end() || !seen_.insert(node).second) return;
    observed_.push_back(read_node(session_, compile_, node, unit->second, kWithinOnePass));
  }

  void read(const GraphChanges& changes) {
    for (const auto* nodes : {&changes.created, &changes.changed, &changes.retargeted}) {
      for (const nb::object& node : *nodes) read_node_once(node.ptr());
    }
  }

  // Matched nodes that were made in this very pass and are gone: read when the match made its first node.
  void read_lost_sources() {
    if (scope_ == nullptr) return;
    std::unordered_set<UnitId> living;
    for (const model::ObservedUnit& unit : observed_) living.insert(unit.unit);
    for (model::ObservedUnit& unit : scope_->transient) {
      if (living.insert(unit.unit).second) observed_.push_back(std::move(unit));
    }
    scope_->transient.clear();
  }

  // old -> new as the pass said it; steps through nodes that did not outlive it are joined.
  void collect_replacements(Pass& done) {
    if (scope_ == nullptr) return;
    std::unordered_map<PyObject*, PyObject*> last;
    for (const auto& [from, to] : scope_->replaced) last[from.ptr()] = to.ptr();
    for (const auto& [from, to] : scope_->replaced) {
      const auto old_unit = compile_.units.find(from.ptr());
      if (old_unit == compile_.units.end()) continue;
      PyObject* target = to.ptr();
      for (std::size_t steps = 0; steps < scope_->replaced.size() && !compile_.units.contains(target); ++steps) {
        const auto next = last.find(target);
        if (next == last.end()) break;
        target = next->second;
      }
      const auto new_unit = compile_.units.find(target);
      if (new_unit == compile_.units.end() || new_unit->second == old_unit->second) continue;
      done.replaced.emplace_back(old_unit->second, new_unit->second);
      auto& olds = olds_of_[target];
      add_unique(olds, old_unit->second);
    }
  }

  // What the units made of `node` replaced, through new nodes only.
  Units replaced_by_users(PyObject* node, const GraphChanges& changes) {
    if (created_.empty()) {
      for (const nb::object& made : changes.created) created_.insert(made.ptr());
    }
    Units out;
    std::unordered_set<PyObject*> seen = {node};
    std::vector<nb::object> open = {nb::borrow(node)};
    while (!open.empty()) {
      const nb::object users = attribute(open.back(), "users");
      open.pop_back();
      if (!users.is_valid() || !PyDict_Check(users.ptr())) continue;
      PyObject *user, *ignored;
      for (Py_ssize_t pos = 0; PyDict_Next(users.ptr(), &pos, &user, &ignored);) {
        if (!created_.contains(user) || !seen.insert(user).second) continue;
        if (const auto olds = olds_of_.find(user); olds != olds_of_.end()) {
          for (const UnitId unit : olds->second) add_unique(out, unit);
        }
        open.push_back(nb::borrow(user));
      }
    }
    return out;
  }

  void write_births(PassId pass, PyObject* node, const GraphChanges& changes) {
    const auto unit = compile_.units.find(node);
    if (unit == compile_.units.end()) return;
    Birth birth;
    birth.unit = unit->second;
    birth.pass = pass;
    const auto known = compile_.births.find(node);
    NodeBirth* made = known == compile_.births.end() ? nullptr : &known->second;
    if (made != nullptr && made->written) return;
    if (made != nullptr) birth.loc = chain_of(session_, made->frames);
    bool any = false;
    const auto say = [&](const char* evidence, Units sources) {
      std::erase(sources, birth.unit);
      if (sources.empty()) return;
      birth.evidence = evidence;
      birth.sources = std::move(sources);
      recorder_.birth(birth);
      any = true;
    };
    if (made != nullptr && made->match && made->match->resolved) {
      birth.pattern = made->match->pattern;
      birth.pattern_loc = made->match->pattern_loc;
      say("match", made->match->units);
    }
    const auto olds = olds_of_.find(node);
    if (olds != olds_of_.end()) say("replacement", olds->second);
    if (olds == olds_of_.end() && scope_ != nullptr && !scope_->replaced.empty())
      say("users", replaced_by_users(node, changes));
    if (made != nullptr && made->source.is_valid()) {
      say(made->is_copy ? "copy" : "frame", {unit_behind(compile_, made->source.ptr())});
    }
    if (!any) {
      birth.evidence = "created";
      birth.sources.clear();
      recorder_.birth(birth);
    }
    if (made != nullptr) made->written = true;
  }

  Session& session_;
  CompileState& compile_;
  model::Recorder& recorder_;
  GraphId graph_;
  PassScope* scope_;
  std::vector<model::ObservedUnit> observed_;
  std::unordered_set<PyObject*> seen_, created_;
  std::unordered_map<PyObject*, Units> olds_of_;  // new node -> units it replaced
};

std::vector<PassScope>& scopes(Session& session) { return session.passes(); }

PassId parent_of(Session& session, const CompileState& compile) {
  const auto& open = scopes(session);
  return open.empty() || open.back().compile.get() != &compile ? PassId::kNone : open.back().id;
}

// Changes since the last look that no pass has taken: a gap of their own.
void close_gap(Session& session, CompileState& compile, nb::handle graph, GraphWatch& watch, std::string_view here) {
  const GraphChanges changes = watch.update(graph);
  const auto id = compile.graphs.find(graph.ptr());
  if (id == compile.graphs.end()) return;
  std::string& last = compile.last_border[id->second];
  if (changes.any()) {
    Pass gap;
    gap.graph = id->second;
    gap.kind = PassKind::kGap;
    gap.parent = parent_of(session, compile);
    gap.name = fmt::format("between {} and {}", last.empty() ? "its first look" : last, here);
    const PassId pass = session.recorder().begin_pass(gap);
    PassScope scope;
    scope.replaced.swap(compile.loose_replacements);
    if (has(gap.parent)) {  // what the pass around it said so far, it said of the gap
      PassScope& around = scopes(session).back();
      std::move(around.replaced.begin(), around.replaced.end(), std::back_inserter(scope.replaced));
      scope.transient.swap(around.transient);
      around.replaced.clear();
    }
    Look(session, compile, id->second, &scope).write(pass, changes);
  }
  compile.loose_replacements.clear();
  last = here;
}

// A graph that no border has shown, whose nodes are copies of some that were seen: it is looked at from here on.
void adopt_copy(Session& session, Frame& frame, nb::handle graph, PassId parent, std::string name) {
  CompileState& compile = *frame.compile;
  if (compile.watches.contains(graph.ptr())) return;
  GraphId original = GraphId::kNone;
  for (const nb::object& node : nodes_of(graph)) {
    const UnitId behind = unit_behind(compile, node.ptr());
    if (!has(behind)) continue;
    original = session.recorder().graph_of(behind);
    break;
  }
  if (!has(original)) return;
  const GraphPlace place = compile.places[original];
  const GraphId id = fx_graph_id(session, compile, graph, frame.direction == "none" ? place.direction : frame.direction,
                                 place.path);
  auto watch = std::make_unique<GraphWatch>();
  const GraphChanges all = watch->update(graph);
  compile.watches.emplace(graph.ptr(), std::move(watch));
  Pass copying;
  copying.graph = id;
  copying.kind = PassKind::kGap;
  copying.parent = parent;
  copying.name = name;
  Look(session, compile, id, nullptr).write(session.recorder().begin_pass(copying), all);
  compile.last_border[id] = std::move(name);
}

void end_scope(Session& session, PassScope& scope, nb::handle graph) {
  CompileState& compile = *scope.compile;
  const auto found = compile.watches.find(scope.graph.ptr());
  GraphWatch* watch = found == compile.watches.end() ? nullptr : found->second.get();
  if (watch == nullptr) return session.recorder().end_pass(scope.id, {});
  const std::string name = scope.name;
  // What a stage function does after its last pass belongs to a gap, not to the function as a whole.
  if (scope.kind == PassKind::kStage && scope.inner > 0) {
    compile.loose_replacements.swap(scope.replaced);
    close_gap(session, compile, scope.graph, *watch, fmt::format("the end of {}", name));
  }
  const GraphChanges changes = watch->update(scope.graph);
  Look(session, compile, scope.graph_id, &scope).write(scope.id, changes);
  compile.last_border[scope.graph_id] = name;
  // Another graph came out: a copy. Its nodes are looked at from here on, or a pass on it would go unseen.
  Frame* frame = session.current_frame();
  if (frame != nullptr && graph.is_valid() && graph.ptr() != scope.graph.ptr())
    adopt_copy(session, *frame, graph, scope.id, fmt::format("the copy that {} returned", name));
  if (session.options().timing) {
    const auto spent = std::chrono::steady_clock::now() - scope.began;
    session.recorder().volatile_value(
        fmt::format("pass {}", index(scope.id)), "duration_ns",
        std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count()));
  }
}

// A graph nested in a joint graph goes into the forward or the backward as it is, without a copy: from there on it is
// another graph of the capture, whose units stand for the same objects.
Moves leave_joint(Session& session, CompileState& compile, nb::handle graph,
                                                      std::string_view direction, std::string_view border) {
  Moves out;
  const auto known = compile.graphs.find(graph.ptr());
  const bool is_half = direction == "forward" || direction == "backward";
  if (!is_half || known == compile.graphs.end() || compile.places[known->second].direction != "joint") return out;
  if (const auto watched = compile.watches.find(graph.ptr()); watched != compile.watches.end())
    close_gap(session, compile, graph, *watched->second, border);
  compile.watches.erase(graph.ptr());
  compile.graphs.erase(known);
  for (const nb::object& node : nodes_of(graph)) {
    const auto unit = compile.units.find(node.ptr());
    if (unit == compile.units.end()) continue;
    out.emplace_back(node.ptr(), unit->second);
    compile.units.erase(unit);
  }
  return out;
}

}  // namespace

SnapshotId look_at_border(Session& session, Frame& frame, nb::handle graph, StageId stage, std::string_view direction,
                          std::string_view path) {
  CompileState& compile = *frame.compile;
  const std::string border = fmt::format("stage {}", session.stage_key(stage));
  const auto moved = leave_joint(session, compile, graph, direction, border);
  if (session.options().level == Level::kBorders)
    return snapshot_fx(session, compile, graph, stage, direction, path);
  const auto watched = compile.watches.find(graph.ptr());
  if (watched != compile.watches.end()) close_gap(session, compile, graph, *watched->second, border);
  const SnapshotId id = snapshot_fx(session, compile, graph, stage, direction, path);
  if (watched == compile.watches.end()) {
    const std::vector<nb::object> nodes = nodes_of(graph);
    auto watch = std::make_unique<GraphWatch>();
    watch->update(graph);
    compile.watches.emplace(graph.ptr(), std::move(watch));
    write_moves(session, compile, moved);
    write_arrivals(session, compile, nodes);
    if (direction == "backward") write_late_copies(session, compile, nodes, path);
    if (stage == session.tables().stage.fx_joint) write_sequence_births(session, compile, nodes);
  }
  compile.last_border[compile.graphs.at(graph.ptr())] = border;
  return id;
}

void enter_pass(Session& session, nb::handle owner, nb::handle graph, PassNames names) {
  Frame* frame = session.current_frame();
  if (frame == nullptr || session.options().level == Level::kBorders || !graph.is_valid()) return;
  CompileState& compile = *frame->compile;
  auto watched = compile.watches.find(graph.ptr());
  if (watched == compile.watches.end()) {
    const PassId parent = parent_of(session, compile);
    if (has(parent)) {  // what was changed before the copy was made belongs to the graph it was made of
      const nb::object around = scopes(session).back().graph;
      if (const auto old = compile.watches.find(around.ptr()); old != compile.watches.end())
        close_gap(session, compile, around, *old->second, fmt::format("the copy before {}", names.name));
    }
    adopt_copy(session, *frame, graph, parent, fmt::format("a copy made before {}", names.name));
    watched = compile.watches.find(graph.ptr());
    if (watched == compile.watches.end()) return;
  }
  const GraphId id = compile.graphs.at(graph.ptr());
  close_gap(session, compile, graph, *watched->second, names.name);
  PassScope scope;
  scope.owner = owner.ptr();
  scope.compile = frame->compile;
  scope.graph = nb::borrow(graph);
  scope.graph_id = id;
  scope.name = names.name;
  scope.kind = names.kind;
  scope.direction = frame->direction;
  scope.began = std::chrono::steady_clock::now();
  Pass pass;
  pass.graph = id;
  pass.name = std::move(names.name);
  pass.subsystem = std::move(names.subsystem);
  pass.kind = names.kind;
  pass.parent = parent_of(session, compile);
  pass.loc = names.loc;
  scope.id = session.recorder().begin_pass(pass);
  auto& open = scopes(session);
  if (!open.empty()) ++open.back().inner;
  open.push_back(std::move(scope));
}

void leave_pass(Session& session, nb::handle owner, nb::handle graph) {
  auto& open = scopes(session);
  const auto mine = std::find_if(open.rbegin(), open.rend(), [&](const PassScope& s) { return s.owner == owner.ptr(); });
  if (mine == open.rend()) return;
  while (open.back().owner != owner.ptr()) {  // it raised: the pass has no end
    open.pop_back();
  }
  PassScope scope = std::move(open.back());
  open.pop_back();
  end_scope(session, scope, graph);
}

void resolve_match(Session& session, MatchContext& match) {
  if (match.resolved) return;
  match.resolved = true;
  Tracing& here = tracing();
  if (!here.compile) return;
  CompileState& compile = *here.compile;
  describe_pattern(session, match);
  PassScope* scope = here.passes == nullptr || here.passes->empty() ? nullptr : &here.passes->back();
  for (const nb::object& node : match.nodes) {
    const auto known = compile.units.find(node.ptr());
    if (known != compile.units.end()) {
      add_unique(match.units, known->second);
      continue;
    }
    if (scope == nullptr || scope->transient.size() >= kMaxMatched) continue;
    const UnitId unit = session.recorder().unit(scope->graph_id, UnitKind::kFxNode, kWithinOnePass);
    compile.units.emplace(node.ptr(), unit);
    compile.keep.push_back(node);
    scope->transient.push_back(read_node(session, compile, node, unit, kWithinOnePass));
    add_unique(match.units, unit);
  }
}

void note_replacement(nb::handle old_node, nb::handle new_node) {
  Tracing& here = tracing();
  if (!here.compile || !is_valid(new_node)) return;
  const nb::object graph = attribute(old_node, "graph");
  if (!graph.is_valid() || !here.compile->watches.contains(graph.ptr())) return;
  std::vector<PassScope>* open = here.passes;
  if (open != nullptr && !open->empty() && open->back().compile == here.compile)
    open->back().replaced.emplace_back(nb::borrow(old_node), nb::borrow(new_node));
  else
    here.compile->loose_replacements.emplace_back(nb::borrow(old_node), nb::borrow(new_node));
}

}  // namespace kerntrail::probe
