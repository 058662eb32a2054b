#include "model/capture_fixtures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <random>

namespace kerntrail::model::fixtures {
namespace {

// ---------------------------------------------------------------- the sample

constexpr std::string_view kFile = "examples/mlp.py";

class Sample {
 public:
  explicit Sample(Recorder& r) : r_(r) {}

  void all() {
    tables();
    const CompileId compile = r_.compile({"0/0", 0, "inductor", {{"dynamic", "false"}}});
    joint_graph(compile);
    operations(compile);
    kernels(compile);
    closing(compile);
  }

 private:
  struct Line {
    int number;
    std::string_view code;
    LocId loc;
  };

  // In braces, so that the calls inside are made from left to right under every compiler: the file's bytes depend on
  // it.
  struct Parts {
    State state;
    TextId type;
    TextId text = TextId::kNone;
    LocId loc = LocId::kNone;
    std::vector<UnitId> refs = {};
  };
  static Observation seen(Parts p) { return {p.state, p.type, TextId::kNone, p.text, p.loc, std::move(p.refs)}; }
  Observation text(std::string_view value) { return seen({State::kPresent, r_.text("str"), r_.text(value)}); }
  Observation json(std::string_view type, std::string_view value, std::vector<UnitId> refs = {}) {
    return seen({State::kPresent, r_.text(type), r_.json(value), LocId::kNone, std::move(refs)});
  }
  Observation empty(std::string_view type) { return seen({State::kEmpty, r_.text(type)}); }

  void tables() {
    r_.run({kFormatVersion,
            "kerntrail 0.1.0",
            "2.13.0",
            "3.11.2",
            "linux-x86_64",
            {{"level", "borders"}, {"force_disable_caches", "true"}, {"backend", "inductor"}}});
    pre_ = r_.stage({"fx_pre_grad", "FX Graph (pre-grad)", "compute node", "FX", 10});
    post_ = r_.stage({"fx_post_grad", "FX Graph (post-grad)", "compute node", "FX", 40});
    ir_ = r_.stage({"ir_pre_pass", "LoopLevelIR", "operation", "IR", 50});
    schedule_ = r_.stage({"schedule", "Schedule", "group", "IR", 70});
    kernel_ = r_.stage({"kernel", "Kernel", "kernel", "backend", 100});
    name_ = r_.attr_kind({"name", ValueType::kText, "", "", false});
    op_ = r_.attr_kind({"op", ValueType::kOp, "", "", false});
    stack_ = r_.attr_kind({"stack_trace", ValueType::kStack, "FX", "fx_pre_grad", true});
    modules_ = r_.attr_kind({"nn_module_stack", ValueType::kModules, "FX", "fx_pre_grad", true});
    aten_ = r_.attr_kind({"original_aten", ValueType::kText, "FX", "fx_joint", true});
    from_node_ = r_.attr_kind({"from_node", ValueType::kNodeSources, "FX", "fx_joint", true});
    origins_ = r_.attr_kind({"origins", ValueType::kRefs, "IR", "ir_pre_pass", true});
    origin_node_ = r_.attr_kind({"origin_node", ValueType::kRef, "IR", "ir_pre_pass", true});
    handle_ = r_.attr_kind({"debug_handle", ValueType::kHandle, "Spyre", "op_spec", true});
    place_ = r_.attr_kind({"place", ValueType::kLoc, "", "", false});
    val_ = r_.inventory_attr("val");
    r_.hook({"post-grad passes", "torch._inductor.compile_fx._recursive_post_grad_passes", HookState::kInstalled, "",
             "stage fx_post_grad", 0, 0, "", true},
            false);
    r_.hook({"spyre passes", "torch_spyre.passes.CustomPreSchedulingPasses.__call__", HookState::kAbsent,
             "torch_spyre is not importable", "stage ir_post_pass", 0, 0, "", true},
            false);
  }

  LocId frame(std::string_view function, std::string_view code, int line, FrameClass frame_class, FrameRule rule,
              std::string_view file) {
    Loc loc;
    loc.kind = LocKind::kRange;
    loc.text = r_.text(file);
    loc.function = r_.text(function);
    loc.code = r_.text(code);
    loc.line = line;
    loc.frame_class = frame_class;
    loc.rule = rule;
    return r_.loc(loc);
  }

  // The user's line below the frame of torch that was on top of it.
  LocId chain(std::string_view code, int line) {
    Loc call;
    call.kind = LocKind::kCall;
    call.child = frame("forward", "return F.linear(input, self.weight, self.bias)", 134, FrameClass::kLibrary,
                       FrameRule::kTorchPath, "torch/nn/modules/linear.py");
    call.caller = frame("forward", code, line, FrameClass::kUser, FrameRule::kElsewhere, kFile);
    return r_.loc(call);
  }

  ObservedUnit node(UnitId unit, std::string_view name, std::string_view op, const Line* line,
                    std::string_view module) {
    ObservedUnit out{unit, {{name_, text(name)}, {op_, text(op)}}};
    if (!line) return out;
    out.attrs.push_back(
        {stack_,
         seen({State::kPresent, r_.text("str"),
               r_.text(fmt::format("  File \"{}\", line {}, in forward\n    {}", kFile, line->number, line->code)),
               line->loc})});
    out.attrs.push_back(
        {modules_, json("dict", fmt::format(R"({{"L['self'].{0}":["{0}","torch.nn.Linear"]}})", module))});
    out.attrs.push_back({val_, json("FakeTensor", R"({"dtype":"float16","shape":[4,8],"stride":[8,1]})")});
    return out;
  }

  void joint_graph(CompileId compile) {
    const GraphId graph = r_.graph(compile, "fx", "inference");
    lines_ = {{{12, "x = self.fc1(x)", chain("x = self.fc1(x)", 12)},
               {13, "x = torch.relu(x)", chain("x = torch.relu(x)", 13)},
               {14, "return self.fc2(x)", chain("return self.fc2(x)", 14)}}};
    for (auto& unit : nodes_) unit = r_.unit(graph, UnitKind::kFxNode);
    std::vector<ObservedUnit> units = {
        node(nodes_[0], "l_x_", "placeholder", nullptr, ""), node(nodes_[1], "x", "call_function", &lines_[0], "fc1"),
        node(nodes_[2], "x_1", "call_function", &lines_[1], "act"),
        node(nodes_[3], "x_2", "call_function", &lines_[2], "fc2"), node(nodes_[4], "output", "output", nullptr, "")};
    r_.snapshot(pre_, graph, units);
    for (std::size_t i = 1; i <= 3; ++i) {
      units[i].attrs.push_back({aten_, text(i == 2 ? "aten.relu.default" : "aten.addmm.default")});
      units[i].attrs.push_back(
          {from_node_, json("list", R"([{"name":"x","target":"linear","pass":"Interpreter_PropagateUnbackedSymInts"}])",
                            {nodes_[i]})});
    }
    // The relu lost its stack and has an empty module stack: what a post-grad rewrite may leave behind.
    units[2].attrs.erase(units[2].attrs.begin() + 2);
    units[2].attrs[2].value = empty("dict");
    passes(graph, units[2]);
    r_.snapshot(post_, graph, units);
  }

  // The relu was made anew by a pass within the compiler's own stage function.
  void passes(GraphId graph, const ObservedUnit& relu) {
    Pass stage, inner, done;
    stage.graph = inner.graph = graph;
    stage.name = "post_grad_passes";
    stage.kind = PassKind::kStage;
    inner.name = "rewrite_relu";
    inner.subsystem = "post_grad_passes";
    inner.loc = lines_[0].loc;
    inner.parent = r_.begin_pass(stage);
    const PassId id = r_.begin_pass(inner);
    const std::vector<ObservedUnit> seen_units = {relu};
    r_.look(id, graph, seen_units);
    r_.birth({nodes_[2], id, "match", "relu_pattern", lines_[1].loc, lines_[2].loc, {nodes_[1]}});
    done.changed = {nodes_[2]};
    done.created = {nodes_[2]};
    done.erased = {nodes_[3]};
    done.retargeted = {nodes_[2]};
    done.replaced = {{nodes_[3], nodes_[2]}};
    r_.end_pass(id, done);
    r_.end_pass(inner.parent, {});
  }

  void operations(CompileId compile) {
    const GraphId graph = r_.graph(compile, "ir", "inference");
    std::vector<ObservedUnit> units;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      ops_[i] = r_.unit(graph, UnitKind::kOperation);
      Observation unreadable = seen({State::kUnreadable, r_.text("Node")});
      units.push_back(
          {ops_[i],
           {{name_, text(fmt::format("op{}", i))},
            {origins_, seen({State::kPresent, r_.text("OrderedSet"), TextId::kNone, LocId::kNone, {nodes_[i + 1]}})},
            {origin_node_,
             i == 1 ? unreadable
                    : seen({State::kPresent, r_.text("Node"), TextId::kNone, LocId::kNone, {nodes_[i + 1]}})},
            {place_, seen({State::kPresent, r_.text("Loc"), TextId::kNone, lines_[i].loc})}}});
    }
    r_.snapshot(ir_, graph, units);
    const GraphId schedule = r_.graph(compile, "schedule", "inference");
    const UnitId group = r_.unit(schedule, UnitKind::kGroup);
    const std::vector<ObservedUnit> groups = {{group,
                                               {{name_, text("op0_op1_op2")},
                                                {origins_, seen({State::kPresent,
                                                                 r_.text("OrderedSet"),
                                                                 TextId::kNone,
                                                                 LocId::kNone,
                                                                 {nodes_[1], nodes_[2], nodes_[3]}})}}}};
    r_.snapshot(schedule_, schedule, groups);
  }

  void kernels(CompileId compile) {
    const GraphId graph = r_.graph(compile, "kernel", "inference", "");
    const UnitId kernel = r_.unit(graph, UnitKind::kKernel);
    const UnitId call = r_.unit(graph, UnitKind::kKernelCall, "kernel call");
    const UnitId file = r_.unit(graph, UnitKind::kBundleFile, "bundle file");
    const std::vector<ObservedUnit> units = {
        {kernel,
         {{name_, text("cpp_fused_addmm_relu_0")},
          {handle_, json("DebugHandle", R"({"id":"605170506422197115","source":null,"ir_chain":["x","buf0"]})")}}}};
    r_.snapshot(kernel_, graph, units);
    r_.link("define_kernel", {ops_.begin(), ops_.end()}, {kernel});
    r_.link("call_kernel", {kernel}, {call});
    r_.link("bundle_file", {kernel}, {file});
    r_.claim(kernel, "compiler", "origins", {nodes_[1], nodes_[2], nodes_[3]});
    r_.volatile_value(r_.unit_name(kernel), "directory", "/tmp/torchinductor/ab/cdef");
  }

  void closing(CompileId compile) {
    Loc fused, named, opaque;
    fused.kind = LocKind::kFused;
    fused.parts = {lines_[0].loc, lines_[2].loc};
    named.kind = LocKind::kNamed;
    named.text = r_.text("addmm");
    named.child = r_.loc(fused);
    opaque.text = r_.text("<unknown>");
    r_.loc(named);
    r_.loc(opaque);
    r_.close_compile(compile);
    r_.note({"stage-absent", Severity::kInfo, "stage fx_joint was not observed", compile, GraphId::kNone});
    r_.source(
        {std::string(kFile),
         "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
         {{12, "        x = self.fc1(x)"}, {13, "        x = torch.relu(x)"}, {14, "        return self.fc2(x)"}}});
    r_.hook({"post-grad passes", "", HookState::kInstalled, "", "", 1, 0, "", true}, true);
    r_.end(true);
  }

  Recorder& r_;
  StageId pre_{}, post_{}, ir_{}, schedule_{}, kernel_{};
  AttrId name_{}, op_{}, stack_{}, modules_{}, aten_{}, from_node_{}, origins_{}, origin_node_{}, handle_{}, place_{},
      val_{};
  std::array<Line, 3> lines_{};
  std::array<UnitId, 5> nodes_{};
  std::array<UnitId, 3> ops_{};
};

// ---------------------------------------------------------------- random captures

class RandomRun {
 public:
  RandomRun(Recorder& r, std::uint64_t seed) : r_(r), random_(seed) {}

  Shown all(int steps) {
    r_.run(
        {kFormatVersion, "random", any_text(), any_text(), "", {{"a", any_text()}, {any_text(), "b"}, {"a", "twice"}}});
    for (int i = below(4); i >= 0; --i)
      stages_.push_back(
          r_.stage({fmt::format("stage{}{}", i, any_text()), any_text(), any_text(), "FX", below(100) - 50}));
    for (std::size_t i = 0; i < 10; ++i) {
      attrs_.push_back(r_.attr_kind(
          {fmt::format("attr{}{}", i, any_text()), static_cast<ValueType>(i), any_text(), "elsewhere", chance(2)}));
    }
    new_compile();
    for (int i = 0; i < steps; ++i) step();
    r_.end(chance(2));
    return std::move(shown_);
  }

 private:
  struct Member {
    UnitId unit;
    std::map<AttrId, Observation> attrs;
  };
  struct OneGraph {
    GraphId id;
    std::size_t compile;
    std::vector<std::size_t> members;  // into units_
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int n) { return below(n) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }

  std::string any_text() {
    if (chance(3)) return pick(hostile_texts());
    return fmt::format("t{}", below(50));
  }
  TextId maybe_text() { return chance(2) ? TextId::kNone : r_.text(any_text()); }
  TextId any_json() {
    switch (below(5)) {
      case 0: return r_.json(fmt::format("{{ \"a\" : [ {}, null ,true] }}", below(9)));
      case 1: return r_.json("not json at all");
      case 2: return r_.json("123456789012345678901234567890");
      case 3: return r_.json(fmt::format("[{}]", below(9)));
      default: return r_.json(std::string(80, '[') + std::string(80, ']'));
    }
  }
  LocId any_loc() {
    Loc loc;
    loc.kind = static_cast<LocKind>(below(5));
    loc.text = maybe_text();
    loc.function = maybe_text();
    loc.code = maybe_text();
    loc.line = below(100) - 2;
    loc.col = below(4) - 1;
    loc.end_line = below(3);
    loc.end_col = below(4) - 1;
    loc.frame_class = static_cast<FrameClass>(below(5));
    loc.rule = static_cast<FrameRule>(below(6));
    if (!locs_.empty() && chance(2)) loc.child = pick(locs_);
    if (!locs_.empty() && chance(2)) loc.caller = pick(locs_);
    while (!locs_.empty() && chance(2)) loc.parts.push_back(pick(locs_));
    locs_.push_back(r_.loc(loc));
    return locs_.back();
  }
  std::vector<UnitId> some_units() {
    std::vector<UnitId> out;
    while (!units_.empty() && !chance(3)) out.push_back(pick(units_).unit);
    return out;
  }
  Observation observation(std::size_t type) {
    Observation v;
    v.state = static_cast<State>(below(4));
    if (v.state == State::kNoSlot) return v;
    v.python_type = maybe_text();
    v.repr = maybe_text();
    v.text = type >= 5 && type != 8 ? any_json() : maybe_text();
    if (type == 1 || type == 8) v.loc = any_loc();
    v.refs = some_units();
    return v;
  }

  void new_compile() {
    compiles_.push_back(r_.compile({any_text(), below(3), any_text(), {{any_text(), any_text()}}}));
    new_graph();
  }
  void new_graph() {
    const std::size_t compile = random_() % compiles_.size();
    graphs_.push_back({r_.graph(compiles_[compile], any_text(), any_text(), any_text()), compile, {}});
  }
  void new_unit() {
    OneGraph& graph = graphs_[random_() % graphs_.size()];
    graph.members.push_back(units_.size());
    units_.push_back({r_.unit(graph.id, static_cast<UnitKind>(below(8)), chance(4) ? any_text() : ""), {}});
  }
  void change_units(const OneGraph& graph) {
    for (const std::size_t i : graph.members) {
      while (!chance(3)) {
        const std::size_t a = random_() % attrs_.size();
        units_[i].attrs[attrs_[a]] = observation(a);
      }
    }
  }
  void snapshot() { snapshot_of(PassId::kNone); }
  void snapshot_of(PassId pass) {
    OneGraph& graph = graphs_[random_() % graphs_.size()];
    if (!chance(5)) change_units(graph);
    if (!graph.members.empty() && chance(4))
      graph.members.erase(graph.members.begin() + below(static_cast<int>(graph.members.size())));
    std::vector<ObservedUnit> units;
    for (const std::size_t i : graph.members) {
      ObservedUnit seen{units_[i].unit, {}};
      for (const auto& [attr, value] : units_[i].attrs) seen.attrs.push_back({attr, value});
      std::shuffle(seen.attrs.begin(),
                   seen.attrs.begin() + static_cast<std::ptrdiff_t>(chance(2) ? seen.attrs.size() : 0), random_);
      units.push_back(std::move(seen));
    }
    const SnapshotId id = has(pass) ? r_.look(pass, graph.id, units) : r_.snapshot(pick(stages_), graph.id, units);
    if (!has(id)) return;  // a pass of another compile, or its second look
    for (const std::size_t i : graph.members) {
      auto& shown = shown_[{id, units_[i].unit}];
      for (const auto& [attr, value] : units_[i].attrs) {
        if (value.state != State::kNoSlot) shown[attr] = value;
      }
    }
  }
  void pass() {
    if (passes_.empty() || chance(2)) {
      Pass pass;
      pass.graph = graphs_[random_() % graphs_.size()].id;
      pass.name = any_text();
      pass.subsystem = any_text();
      pass.kind = static_cast<PassKind>(below(3));
      if (!passes_.empty() && chance(2)) pass.parent = pick(passes_).first;
      if (chance(3)) pass.loc = any_loc();
      passes_.emplace_back(r_.begin_pass(pass), pass.graph);
      return;
    }
    const auto [id, graph] = pick(passes_);
    if (chance(3)) return static_cast<void>(snapshot_of(id));
    if (!units_.empty() && chance(2)) {
      return r_.birth({pick(units_).unit, chance(3) ? PassId::kNone : id, "match", any_text(),
                       chance(2) ? any_loc() : LocId::kNone, LocId::kNone, some_units()});
    }
    Pass done;
    done.created = some_units();
    done.erased = some_units();
    done.changed = some_units();
    done.retargeted = some_units();
    for (const UnitId unit : some_units()) done.replaced.emplace_back(unit, pick(units_).unit);
    r_.end_pass(id, done);
  }
  void step() {
    switch (below(18)) {
      case 0: new_compile(); break;
      case 1: new_graph(); break;
      case 2: r_.link(any_text(), some_units(), some_units()); break;
      case 3:
        if (!units_.empty()) r_.claim(pick(units_).unit, any_text(), any_text(), some_units());
        break;
      case 4:
        r_.note({any_text(), static_cast<Severity>(below(3)), any_text(),
                 chance(2) ? pick(compiles_) : CompileId::kNone, graphs_.front().id});
        break;
      case 5: r_.volatile_value("run", any_text(), any_text()); break;
      case 6:
        r_.source({any_text(), fmt::format("{}", below(1000000)), {{1 + below(50), any_text()}, {100, "x"}}});
        break;
      case 7: r_.force_full(); break;
      case 16:
      case 17: pass(); break;
      case 8:
        r_.hook({fmt::format("hook{}", below(5)), any_text(), static_cast<HookState>(below(3)), any_text(), any_text(),
                 3, 1, any_text(), chance(2)},
                chance(2));
        break;
      case 9:
        if (chance(4)) r_.close_compile(pick(compiles_));
        break;
      case 10:
      case 11:
      case 12: new_unit(); break;
      default: snapshot(); break;
    }
  }

  Recorder& r_;
  std::mt19937_64 random_;
  std::vector<StageId> stages_;
  std::vector<AttrId> attrs_;
  std::vector<LocId> locs_;
  std::vector<CompileId> compiles_;
  std::vector<OneGraph> graphs_;
  std::vector<std::pair<PassId, GraphId>> passes_;
  std::vector<Member> units_;
  Shown shown_;
};

template <class Ids>
std::string numbers(const Ids& ids) {
  std::string out;
  for (const auto id : ids) out += fmt::format("{},", index(id));
  return out;
}

std::string settings_text(const Settings& settings) {
  std::string out;
  for (const auto& [key, value] : settings) out += fmt::format("{:?}={:?} ", key, value);
  return out;
}

void describe_tables(const Capture& c, std::string& out) {
  out += fmt::format("run {} {:?} {:?} {:?} {:?} {}\n", c.run.format_version, c.run.tool, c.run.torch, c.run.python,
                     c.run.platform, settings_text(c.run.settings));
  for (const auto& s : c.stages)
    out += fmt::format("stage {:?} {:?} {:?} {:?} {}\n", s.key, s.title, s.noun, s.layer, s.order);
  for (const auto& a : c.attr_kinds)
    out += fmt::format("attr {:?} {} {:?} {:?} {}\n", a.name, value_type_name(a.type), a.layer, a.first_stage,
                       a.provenance);
  for (const auto& h : c.hooks) {
    out += fmt::format("hook {:?} {:?} {} {:?} {:?} {} {} {:?} {}\n", h.label, h.attribute, hook_state_name(h.state),
                       h.detail, h.lost, h.fired, h.errors, h.last_error, h.restored);
  }
  for (std::size_t i = 0; i < c.texts.size(); ++i)
    out += fmt::format("text {} {:?}\n", static_cast<bool>(c.text_is_json[i]), c.texts[i]);
  for (const auto& l : c.locs) {
    out += fmt::format("loc {} {} {} {} {} {} {} {} {} {} {} {} {}\n", loc_kind_name(l.kind), index(l.text),
                       index(l.function), index(l.code), l.line, l.col, l.end_line, l.end_col,
                       frame_class_name(l.frame_class), frame_rule_name(l.rule), index(l.child), index(l.caller),
                       numbers(l.parts));
  }
}

}  // namespace

void record_sample(Recorder& recorder) { Sample(recorder).all(); }

Shown record_random(Recorder& recorder, std::uint64_t seed, int steps) { return RandomRun(recorder, seed).all(steps); }

std::string described(const Capture& c) {
  std::string out;
  describe_tables(c, out);
  for (const auto& v : c.compiles)
    out += fmt::format("compile {:?} {} {:?} {}\n", v.torch_id, v.attempt, v.backend, settings_text(v.attributes));
  for (const auto& v : c.graphs)
    out += fmt::format("graph {} {} {:?} {:?} {:?}\n", index(v.compile), v.ordinal, v.kind, v.direction, v.path);
  for (const auto& v : c.units)
    out += fmt::format("unit {} {} {} {:?}\n", index(v.graph), unit_kind_name(v.kind), v.ordinal, v.seen_only_as);
  for (std::size_t i = 0; i < c.snapshots.size(); ++i) {
    const Snapshot& s = c.snapshots[i];
    out += fmt::format("snapshot {} {} {} {} {} {}\n", index(s.stage), index(s.pass), index(s.graph), numbers(s.units),
                       s.digest, s.full);
    for (const UnitId unit : s.units) {
      for (const auto& [attr, v] : c.attrs_at(unit, id_at<SnapshotId>(i))) {
        out += fmt::format("  {} {} {} {} {} {} {} {}\n", index(unit), index(attr), state_name(v->state),
                           index(v->python_type), index(v->repr), index(v->text), index(v->loc), numbers(v->refs));
      }
    }
  }
  for (const auto& v : c.passes) {
    out += fmt::format("pass {} {:?} {:?} {} {} {} {} {} {} {} {} {} {}", index(v.graph), v.name, v.subsystem,
                       pass_kind_name(v.kind), index(v.parent), index(v.loc), index(v.first_look), v.ended,
                       index(v.last_look), numbers(v.created), numbers(v.erased), numbers(v.changed),
                       numbers(v.retargeted));
    for (const auto& [from, to] : v.replaced) out += fmt::format(" {}>{}", index(from), index(to));
    out += '\n';
  }
  for (const auto& v : c.births) {
    out += fmt::format("birth {} {} {:?} {:?} {} {} {}\n", index(v.unit), index(v.pass), v.evidence, v.pattern,
                       index(v.pattern_loc), index(v.loc), numbers(v.sources));
  }
  for (const auto& v : c.links) out += fmt::format("link {:?} {} {}\n", v.kind, numbers(v.from), numbers(v.to));
  for (const auto& v : c.claims)
    out += fmt::format("claim {} {:?} {:?} {}\n", index(v.kernel), v.claimant, v.evidence, numbers(v.units));
  for (const auto& v : c.notes)
    out += fmt::format("note {:?} {} {:?} {} {}\n", v.code, severity_name(v.severity), v.text, index(v.compile),
                       index(v.graph));
  for (const auto& v : c.volatiles) out += fmt::format("volatile {:?} {:?} {:?}\n", v.of, v.key, v.value);
  for (const auto& v : c.sources) {
    out += fmt::format("source {:?} {:?}\n", v.file, v.sha256);
    for (const auto& [number, text] : v.lines) out += fmt::format("  {} {:?}\n", number, text);
  }
  if (c.end) {
    out += fmt::format("end {}\n", c.end->complete);
    for (const auto& [kind, count] : c.end->counts) out += fmt::format("  {} {}\n", kind, count);
  }
  return out;
}

const std::vector<std::string>& hostile_texts() {
  using namespace std::string_literals;
  static const std::vector<std::string> texts = {"",
                                                 " ",
                                                 "\"quoted\"",
                                                 "back\\slash\\",
                                                 "line\nline\r\nline",
                                                 "tab\tbell\aescape\x1B[31m",
                                                 "nul\0nul"s,
                                                 "</script><!-- & -->",
                                                 "{\"record\":\"end\"}",
                                                 "caf\xC3\xA9 \xE2\x9C\x93 \xF0\x9F\x98\x80",
                                                 "\xED\xA0\xBD\xED\xB8\x80",
                                                 "\xFF\xFE\x80",
                                                 "cut \xE2\x82",
                                                 "\\ud83d",
                                                 "\xEF\xBF\xBD",
                                                 "c0.n0",
                                                 "|||`*_#[]()",
                                                 std::string(5000, 'x'),
                                                 "\x7F",
                                                 "\xE2\x80\xA8\xE2\x80\xA9"};
  return texts;
}

}  // namespace kerntrail::model::fixtures
