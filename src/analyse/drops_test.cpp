// Each reason, quality, fate and rule planted in a small capture; the answer must name exactly that.
#include "kerntrail/drops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analyse/intents.h"
#include "capture_builder.h"
#include "invariants.h"
#include "seed000/seed000.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;
using Seen = CaptureBuilder::Seen;

// One compile with a pre-grad graph of two nodes on lines 1 and 2 and an ATen graph that was traced from it.
class DropsTest : public ::testing::Test {
 protected:
  DropsTest() {
    compile_ = b_.compile("inductor");
    pre_ = b_.graph(compile_, "fx");
    graph_ = b_.graph(compile_, "fx", "inference");
    for (UnitId* unit : {&sin_, &cos_}) *unit = b_.unit(pre_, UnitKind::kFxNode);
    b_.snapshot("fx_pre_grad", pre_, {node(sin_, "sin", 1), node(cos_, "cos", 2)});
    a_ = b_.unit(graph_, UnitKind::kFxNode);
    c_ = b_.unit(graph_, UnitKind::kFxNode);
    born({a_, PassId::kNone, "frame", "", LocId::kNone, frame("torch/fx/interpreter.py", 9, "run_node"), {sin_}});
    born({c_, PassId::kNone, "frame", "", LocId::kNone, frame("torch/fx/interpreter.py", 9, "run_node"), {cos_}});
  }

  Seen node(UnitId unit, std::string_view name, int line, std::vector<UnitId> inputs = {},
            std::string_view target = "aten.sin.default") {
    Seen seen = b_.seen(unit);
    seen.text("name", name)
        .text("op", "call_function")
        .text("target", target)
        .refs("inputs", std::move(inputs), "list");
    if (line > 0) seen.stack("model.py", line, "y = f(x)");
    return seen;
  }
  Seen aten(UnitId unit, std::string_view name, int line, std::vector<UnitId> inputs = {}) {
    return node(unit, name, line, std::move(inputs)).text("original_aten", "aten.sin.default", "OpOverload");
  }
  void enter() { b_.snapshot("fx_aten", graph_, {aten(a_, "sin", 1), aten(c_, "cos", 2, {a_})}); }

  LocId frame(std::string_view file, int line, std::string_view function) { return b_.frame(file, line, function); }
  void born(const Birth& birth) { b_.recorder().birth(birth); }
  PassId begin(std::string_view name, std::string_view subsystem = "post_grad_passes", PassId parent = PassId::kNone) {
    return begin_on(graph_, name, subsystem, parent);
  }
  PassId begin_on(GraphId graph, std::string_view name, std::string_view subsystem = "", PassId parent = PassId::kNone,
                  PassKind kind = PassKind::kPass) {
    Pass pass;
    pass.graph = graph;
    pass.name = name;
    pass.subsystem = subsystem;
    pass.parent = parent;
    pass.kind = kind;
    return b_.recorder().begin_pass(pass);
  }
  void look(PassId pass, GraphId graph, const std::vector<Seen>& units) {
    std::vector<model::ObservedUnit> observed;
    for (const Seen& unit : units) observed.push_back(unit.value());
    b_.recorder().look(pass, graph, observed);
  }
  UnitId fresh() { return b_.unit(graph_, UnitKind::kFxNode); }

  Drops judged(const DropOptions& options = {}) {
    capture_ = b_.finish();
    testing::expect_invariants(capture_);
    auto all = drops(capture_, options);
    EXPECT_TRUE(all) << (all ? "" : all.error().text());
    EXPECT_EQ(all->size(), 1U);
    return all && !all->empty() ? all->front() : Drops{};
  }

  static const FieldUnit& cell(const Drops& drops, std::string_view stage, std::string_view field, UnitId unit) {
    for (const StageTally& s : drops.stages) {
      for (const FieldTally& f : s.fields) {
        for (const FieldUnit& u : f.units) {
          if (s.key == stage && f.name == field && u.unit == unit) return u;
        }
      }
    }
    static const FieldUnit kNothing{};
    ADD_FAILURE() << "no cell of " << field << " at " << stage;
    return kNothing;
  }
  const FieldUnit& post(const Drops& drops, std::string_view field, UnitId unit) {
    return cell(drops, "fx_post_grad", field, unit);
  }
  static Fate fate_in(const Drops& drops, PassId pass, UnitId unit, UnitId* by = nullptr) {
    for (const PassTally& tally : drops.passes) {
      for (const UnitFate& fate : tally.leavers) {
        if (tally.pass != pass || fate.unit != unit) continue;
        if (by != nullptr) *by = fate.by;
        return fate.fate;
      }
    }
    ADD_FAILURE() << "the unit did not leave in this pass";
    return Fate::kSurvived;
  }
  static std::vector<std::string> rules(const Drops& drops, bool declared = false) {
    std::vector<std::string> found;
    for (const ObserverFinding& f : drops.findings) {
      if ((f.intent != kNoIndex) == declared) found.emplace_back(observer_rule_id(f.rule));
    }
    return found;
  }

  CaptureBuilder b_;
  CompileId compile_{};
  GraphId pre_{}, graph_{};
  UnitId sin_{}, cos_{};  // pre-grad
  UnitId a_{}, c_{};      // ATen
  Capture capture_;
};

// ------------------------------------------------------------------ reasons

TEST_F(DropsTest, CleanCompileLosesNothing) {
  enter();
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 1), aten(c_, "cos", 2, {a_})});
  const Drops found = judged();
  EXPECT_TRUE(found.losses.empty());
  EXPECT_TRUE(found.marks.empty());
  EXPECT_FALSE(found.passes_recorded);
  EXPECT_EQ(cell(found, "fx_pre_grad", "original_aten", sin_).reason, Reason::kNotCreatedYet);
  EXPECT_EQ(cell(found, "fx_pre_grad", "nn_module_stack", sin_).reason, Reason::kNeverMade);
  EXPECT_EQ(post(found, "nn_module_stack", a_).reason, Reason::kInheritedGap);
  EXPECT_EQ(post(found, "nn_module_stack", a_).root, Reason::kNeverMade);
  EXPECT_EQ(post(found, "from_node", a_).reason, Reason::kNeverMade);
}

TEST_F(DropsTest, InPlaceLossIsChargedToThePassWhoseLookShowsIt) {
  enter();
  const PassId outer = begin_on(graph_, "post_grad_passes", "", PassId::kNone, PassKind::kStage);
  const PassId first = begin("remove_noop_ops", "post_grad_passes", outer);
  Pass done;
  look(first, graph_, {aten(c_, "cos", 2, {})});
  done.changed = {c_};
  b_.recorder().end_pass(first, done);
  const PassId second = begin("drops_it", "post_grad_passes", outer);
  look(second, graph_, {aten(a_, "sin", 0)});
  done.changed = {a_};
  b_.recorder().end_pass(second, done);
  b_.recorder().end_pass(outer, {});
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 0), aten(c_, "cos", 2, {})});
  const Drops found = judged();
  ASSERT_EQ(found.losses.size(), 1U);
  const Loss& loss = found.losses[0];
  EXPECT_EQ(loss.unit, a_);
  EXPECT_EQ(loss.way, LossWay::kInPlace);
  EXPECT_EQ(found.sites[loss.site].pass, second);
  EXPECT_EQ(found.sites[loss.site].title, "drops_it");
  EXPECT_EQ(post(found, "stack_trace", a_).reason, Reason::kDropped);
  EXPECT_EQ(cell(found, "fx_aten", "stack_trace", a_).state, State::kPresent);
  const auto groups = group_drops(found, DropGrouping::kPass);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].title, "drops_it");
}

TEST_F(DropsTest, InPlaceLossThatNoPassAccountsForLiesInTheGapOrAtTheBorder) {
  enter();
  const PassId gap = begin_on(graph_, "between a and b", "", PassId::kNone, PassKind::kGap);
  look(gap, graph_, {aten(a_, "sin", 0)});
  b_.recorder().end_pass(gap, {});
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 0), aten(c_, "cos", 0, {a_})});
  const Drops found = judged();
  ASSERT_EQ(found.losses.size(), 2U);
  EXPECT_EQ(found.sites[found.losses[0].site].kind, SiteKind::kGap);
  EXPECT_EQ(found.losses[0].unit, a_);
  EXPECT_EQ(found.sites[found.losses[1].site].kind, SiteKind::kBorder);
  EXPECT_EQ(found.sites[found.losses[1].site].after_pass, "between a and b");
  EXPECT_EQ(found.sites[found.losses[1].site].to, "fx_post_grad");
}

TEST_F(DropsTest, AMatchOutranksOtherEvidenceAndNamesItsReplacement) {
  enter();
  const PassId pass = begin("pass_pattern_0", "joint_graph_passes");
  const UnitId made = fresh();
  const LocId where = frame("torch/_inductor/fx_passes/fuse_attention.py", 52, "_sfdp_replacement_1");
  const LocId line = frame("torch/_inductor/pattern_matcher.py", 800, "apply");
  born({made, pass, "replacement", "", LocId::kNone, line, {c_}});
  born({made, pass, "match", "_sfdp_pattern_1", where, line, {a_, c_}});
  look(pass, graph_, {aten(made, "sdpa", 0), aten(a_, "sin", 1), aten(c_, "cos", 2)});
  Pass done;
  done.created = {made};
  done.erased = {a_, c_};
  done.replaced = {{c_, made}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(made, "sdpa", 0)});
  const Drops found = judged();
  ASSERT_EQ(found.losses.size(), 1U);
  const Loss& loss = found.losses[0];
  EXPECT_EQ(loss.evidence, "match");
  EXPECT_EQ(loss.sources, 2U);
  EXPECT_EQ(loss.had, (std::vector<UnitId>{a_, c_}));
  const DropSite& site = found.sites[loss.site];
  EXPECT_EQ(site.pattern, "_sfdp_pattern_1");
  EXPECT_EQ(site.place, "torch/_inductor/fx_passes/fuse_attention.py:52 (_sfdp_replacement_1)");
  EXPECT_EQ(site.frames, (std::vector<std::string>{"torch/_inductor/pattern_matcher.py:800 (apply)"}));
  EXPECT_EQ(group_drops(found, DropGrouping::kLine)[0].title, site.place);
}

TEST_F(DropsTest, WithoutAMatchTheLineThatMadeTheNodeIsResponsible) {
  enter();
  const PassId pass = begin("fuse_seed_creation_pass");
  const UnitId made = fresh();
  const LocId chain = b_.call(frame("torch/_inductor/fx_passes/replace_random.py", 144, "fuse"),
                              frame("torch/_inductor/fx_passes/joint_graph.py", 700, "joint_graph_passes"));
  born({made, pass, "users", "", LocId::kNone, chain, {c_}});
  born({made, pass, "created", "", LocId::kNone, chain, {}});
  look(pass, graph_, {aten(made, "seed", 0)});
  Pass done;
  done.created = {made};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 1), aten(c_, "cos", 2, {made}), aten(made, "seed", 0)});
  const Drops found = judged();
  ASSERT_EQ(found.losses.size(), 1U);
  EXPECT_EQ(found.losses[0].evidence, "users");
  EXPECT_EQ(found.sites[found.losses[0].site].place, "torch/_inductor/fx_passes/replace_random.py:144 (fuse)");
  EXPECT_EQ(found.sites[found.losses[0].site].frames.size(), 2U);
}

TEST_F(DropsTest, AGapIsFollowedToTheLossItComesFrom) {
  enter();
  const PassId first = begin("one");
  const UnitId lossy = fresh();
  born({lossy, first, "replacement", "", LocId::kNone, frame("one.py", 1, "f"), {a_}});
  look(first, graph_, {aten(lossy, "x", 0)});
  Pass done;
  done.created = {lossy};
  done.erased = {a_};
  done.replaced = {{a_, lossy}};
  b_.recorder().end_pass(first, done);
  const PassId second = begin("two");
  const UnitId heir = fresh();
  born({heir, second, "replacement", "", LocId::kNone, frame("two.py", 2, "g"), {lossy}});
  look(second, graph_, {aten(heir, "y", 0)});
  done.created = {heir};
  done.erased = {lossy};
  done.replaced = {{lossy, heir}};
  b_.recorder().end_pass(second, done);
  b_.snapshot("fx_post_grad", graph_, {aten(heir, "y", 0), aten(c_, "cos", 2, {heir})});
  const Drops found = judged();
  const FieldUnit& gap = post(found, "stack_trace", heir);
  EXPECT_EQ(gap.reason, Reason::kInheritedGap);
  EXPECT_EQ(gap.root, Reason::kDropped);
  ASSERT_EQ(found.losses.size(), 1U);
  ASSERT_EQ(gap.loss, 0U);
  EXPECT_EQ(found.losses[0].unit, lossy);
  EXPECT_FALSE(found.losses[0].in_stage);
  EXPECT_EQ(found.losses[0].inherited, 1U);
  EXPECT_EQ(found.sites[found.losses[0].site].title, "one");
}

TEST_F(DropsTest, ASourceMadeAndErasedWithinThePassIsReadAtItsLook) {
  enter();
  const PassId pass = begin("two_steps");
  const UnitId middle = fresh();
  const UnitId made = fresh();
  born({middle, pass, "replacement", "", LocId::kNone, frame("p.py", 1, "f"), {a_}});
  born({made, pass, "replacement", "", LocId::kNone, frame("p.py", 2, "f"), {middle}});
  look(pass, graph_, {aten(made, "y", 0), aten(middle, "x", 1)});
  Pass done;
  done.created = {middle, made};
  done.erased = {a_, middle};
  done.replaced = {{a_, middle}, {middle, made}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(made, "y", 0), aten(c_, "cos", 2, {made})});
  const Drops found = judged();
  ASSERT_EQ(found.losses.size(), 1U);
  EXPECT_EQ(found.losses[0].unit, made);
  EXPECT_EQ(found.losses[0].had, std::vector<UnitId>{middle});
  EXPECT_EQ(found.sites[found.losses[0].site].place, "p.py:2 (f)");
  EXPECT_EQ(found.intervals.back().entering, 2U);
}

TEST_F(DropsTest, TracingThatLosesAFieldIsNamedByItsStages) {
  b_.snapshot("fx_aten", graph_, {aten(a_, "sin", 0), aten(c_, "cos", 2, {a_})});
  const Drops found = judged();
  ASSERT_EQ(found.losses.size(), 1U);
  const DropSite& site = found.sites[found.losses[0].site];
  EXPECT_EQ(site.kind, SiteKind::kTracing);
  EXPECT_EQ(site.from, "fx_pre_grad");
  EXPECT_EQ(site.to, "fx_aten");
  EXPECT_EQ(site.place, "torch/fx/interpreter.py:9 (run_node)");
  EXPECT_EQ(found.losses[0].had, std::vector<UnitId>{sin_});
}

TEST_F(DropsTest, OrphansAndDeclaredSyntheses) {
  enter();
  const PassId pass = begin("reinplace_inplaceable_ops");
  const UnitId copy = fresh();
  born({copy, pass, "created", "", LocId::kNone, frame("reinplace.py", 74, "graph_call_function"), {}});
  look(pass, graph_, {aten(copy, "copy_", 0)});
  Pass done;
  done.created = {copy};
  b_.recorder().end_pass(pass, done);
  const PassId folding = begin("constant_fold_uniform_value");
  const UnitId full = fresh();
  const UnitId other = fresh();
  for (UnitId unit : {full, other})
    born({unit, folding, "created", "", LocId::kNone, frame("joint_graph.py", 548, "constant_fold"), {}});
  look(folding, graph_, {node(full, "full", 0, {}, "aten.full.default"), node(other, "mul", 0, {}, "aten.mul.Tensor")});
  done.created = {full, other};
  b_.recorder().end_pass(folding, done);
  b_.snapshot("fx_post_grad", graph_,
              {aten(a_, "sin", 1), aten(c_, "cos", 2, {a_}), aten(copy, "copy_", 0),
               node(full, "full", 0, {}, "aten.full.default"), node(other, "mul", 0, {}, "aten.mul.Tensor")});
  const Drops found = judged();
  EXPECT_EQ(post(found, "stack_trace", copy).reason, Reason::kOrphan);
  EXPECT_EQ(post(found, "stack_trace", full).reason, Reason::kSynthesised);
  EXPECT_EQ(post(found, "stack_trace", other).reason, Reason::kOrphan) << "declared for aten.full only";
  EXPECT_TRUE(found.losses.empty());
  ASSERT_FALSE(found.declared.empty());
  EXPECT_EQ(found.declared[0].unit, full);
  EXPECT_EQ(found.declared[0].pass, folding);
  EXPECT_EQ(found.intents[found.declared[0].intent].pass, "constant_fold_uniform_value");
}

TEST_F(DropsTest, AnIntentHidesNoLossOfAUnitWhoseSourceHadTheFieldNorOfASurvivor) {
  enter();
  const PassId pass = begin("mine");
  const UnitId made = fresh();
  born({made, pass, "replacement", "", LocId::kNone, frame("mine.py", 1, "f"), {c_}});
  look(pass, graph_, {aten(made, "y", 0), aten(a_, "sin", 0)});
  Pass done;
  done.created = {made};
  done.changed = {a_};
  done.erased = {c_};
  done.replaced = {{c_, made}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 0), aten(made, "y", 0, {a_})});
  DropOptions options;
  const auto intents =
      parse_intents(R"({"intents":[{"pass":"mi*","kind":"synthesises","reason":"by design"}]})", "mine.json");
  ASSERT_TRUE(intents) << intents.error().text();
  options.intents = *intents;
  const Drops found = judged(options);
  EXPECT_EQ(found.losses.size(), 2U);
  for (const DeclaredUse& use : found.declared) {
    EXPECT_EQ(use.unit, made);
    EXPECT_NE(found.fields[index(use.field)], "stack_trace") << "its source had that";
  }
  DropOptions remaps;
  remaps.intents = *parse_intents(
      R"({"version":1,"intents":[{"pass":"mine","kind":"remaps","reason":"by design","fields":["stack_trace"]}]})", "");
  const auto again = drops(capture_, remaps);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->front().losses.empty());
  EXPECT_EQ(post(again->front(), "stack_trace", made).reason, Reason::kSynthesised);
  EXPECT_EQ(post(again->front(), "stack_trace", a_).reason, Reason::kSynthesised);
}

TEST_F(DropsTest, AGroupCarriesWhatItsOperationsHold) {
  enter();
  const GraphId ir = b_.graph(compile_, "ir", "inference");
  const UnitId op = b_.unit(ir, UnitKind::kOperation);
  b_.snapshot("ir_pre_pass", ir, {b_.seen(op).text("name", "op0").refs("origins", {a_}).ref("origin_node", a_)});
  const GraphId groups_graph = b_.graph(compile_, "schedule", "inference");
  const UnitId group = b_.unit(groups_graph, UnitKind::kGroup);
  b_.recorder().link("fuse", {op}, {group});
  const StageId schedule = b_.recorder().stage({"schedule", "Schedule", "group", "IR", 80});
  const std::vector<model::ObservedUnit> groups{b_.seen(group).refs("operations", {op}).value()};
  b_.recorder().snapshot(schedule, groups_graph, groups);
  const Drops found = judged();
  for (const char* field : {"stack_trace", "origins", "origin_node", "original_aten"}) {
    const FieldUnit& there = cell(found, "schedule", field, group);
    EXPECT_EQ(there.reason, Reason::kCarriedBy) << field;
    EXPECT_EQ(there.carrier, "operations") << field;
  }
  EXPECT_EQ(cell(found, "schedule", "traceback", group).reason, Reason::kInheritedGap);
}

TEST_F(DropsTest, AKernelsClaimNamesTheNodesOfItsOperations) {
  enter();
  const GraphId ir = b_.graph(compile_, "ir", "inference");
  const GraphId kernels = b_.graph(compile_, "kernel", "inference");
  const UnitId op = b_.unit(ir, UnitKind::kOperation);
  b_.snapshot("ir_pre_pass", ir, {b_.seen(op).text("name", "op0").refs("origins", {a_}).ref("origin_node", a_)});
  const UnitId claimed = b_.unit(kernels, UnitKind::kKernel);
  const UnitId unclaimed = b_.unit(kernels, UnitKind::kKernel);
  for (UnitId kernel : {claimed, unclaimed}) b_.recorder().link("define_kernel", {op}, {kernel});
  b_.recorder().claim(claimed, "compiler", "origins", {a_, c_});
  b_.snapshot("kernel", kernels, {b_.seen(claimed).text("name", "k0"), b_.seen(unclaimed).text("name", "k1")});
  const Drops found = judged();
  EXPECT_EQ(cell(found, "kernel", "origin_node", claimed).carrier, "claim");
  EXPECT_EQ(cell(found, "kernel", "origin_node", unclaimed).reason, Reason::kDropped);
}

TEST_F(DropsTest, LinesThatOnlySomeNeighboursHadAreNoEvidence) {
  CaptureBuilder b;
  const CompileId compile = b.compile("inductor");
  const GraphId pre = b.graph(compile, "fx");
  const GraphId post = b.graph(compile, "fx", "inference");
  const UnitId one = b.unit(pre, UnitKind::kFxNode);
  const UnitId two = b.unit(pre, UnitKind::kFxNode);
  const UnitId later = b.unit(post, UnitKind::kFxNode);
  b.snapshot("fx_pre_grad", pre,
             {b.seen(one)
                  .text("name", "a")
                  .stack("m.py", 1, "x")
                  .json("source_fn_stack", "[]", "list")
                  .json("nn_module_stack", R"({"fc":1})", "dict"),
              b.seen(two).text("name", "b").stack("m.py", 1, "x").json("source_fn_stack", "[]", "list")});
  b.snapshot("fx_post_grad", post, {b.seen(later).text("name", "c").stack("m.py", 1, "x")});
  const Capture capture = b.finish();
  const auto all = drops(capture);
  ASSERT_TRUE(all);
  EXPECT_EQ(cell(all->front(), "fx_post_grad", "source_fn_stack", later).reason, Reason::kDropped);
  EXPECT_EQ(cell(all->front(), "fx_post_grad", "nn_module_stack", later).reason, Reason::kUnknown);
}

TEST_F(DropsTest, UnknownOnlyWhereNothingIsKnown) {
  CaptureBuilder b;
  const CompileId compile = b.compile("inductor");
  const GraphId graph = b.graph(compile, "fx", "inference");
  const UnitId unit = b.unit(graph, UnitKind::kFxNode);
  b.snapshot("fx_aten", graph, {b.seen(unit).text("name", "x").text("op", "call_function")});
  const Capture capture = b.finish();
  testing::expect_invariants(capture);
  const auto all = drops(capture);
  ASSERT_TRUE(all);
  EXPECT_EQ(cell(all->front(), "fx_aten", "stack_trace", unit).reason, Reason::kUnknown);
  EXPECT_EQ(cell(all->front(), "fx_aten", "from_node", unit).reason, Reason::kUnknown)
      << "fx_joint, which makes it, was not seen";
}

TEST_F(DropsTest, BordersFallBackOnEdgesWithTheirEvidence) {
  const auto built = testing::build_seed000(true);
  const auto all = drops(built.capture);
  ASSERT_TRUE(all);
  const Drops& found = all->front();
  EXPECT_FALSE(found.passes_recorded);
  ASSERT_FALSE(found.losses.empty());
  EXPECT_EQ(found.sites[0].title, "between fx_aten and fx_post_grad");
  EXPECT_EQ(found.sites[0].kind, SiteKind::kBorder);
  EXPECT_EQ(found.losses[0].way, LossWay::kLowering);
  EXPECT_EQ(found.losses[0].evidence, "sibling");
  std::size_t at_post_grad = 0, at_op_spec = 0;
  for (const Loss& loss : found.losses) {
    at_post_grad += found.sites[loss.site].to == "fx_post_grad" ? 1U : 0U;
    at_op_spec += found.sites[loss.site].to == "op_spec" ? 1U : 0U;
  }
  EXPECT_EQ(at_post_grad, 16U);  // four nodes, four fields
  EXPECT_EQ(at_op_spec, 8U);     // what a debug handle does not hold
  EXPECT_EQ(found.losses.size(), at_post_grad + at_op_spec);
}

TEST_F(DropsTest, StagesLimitWhatIsShown) {
  const auto built = testing::build_seed000(true);
  DropOptions options;
  options.analysis.stages = {"op_spec"};
  const auto all = drops(built.capture, options);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->front().stages.size(), 1U);
  EXPECT_EQ(all->front().stages[0].key, "op_spec");
  options.analysis.stages = {"fx_nothing"};
  EXPECT_EQ(drops(built.capture, options).error().code, ErrorCode::kUsage);
}

// ---------------------------------------------------------------- qualities

TEST_F(DropsTest, ASwapIsTwoOverwrittenValues) {
  enter();
  const PassId pass = begin("swaps");
  look(pass, graph_, {aten(a_, "sin", 2), aten(c_, "cos", 1, {a_})});
  Pass done;
  done.changed = {a_, c_};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 2), aten(c_, "cos", 1, {a_})});
  const Drops found = judged();
  EXPECT_TRUE(found.losses.empty());
  ASSERT_EQ(found.marks.size(), 2U);
  for (const Mark& mark : found.marks) {
    EXPECT_EQ(mark.quality, Quality::kOverwritten);
    EXPECT_TRUE(mark.swapped);
    EXPECT_EQ(found.sites[mark.site].pass, pass);
    EXPECT_EQ(mark.others, std::vector<UnitId>{mark.unit == a_ ? c_ : a_});
  }
  EXPECT_EQ(post(found, "stack_trace", a_).quality, Quality::kOverwritten);
  EXPECT_EQ(cell(found, "fx_aten", "stack_trace", a_).quality, Quality::kKept);
  EXPECT_EQ(found.marks[0].was, "model.py:1");
  EXPECT_EQ(found.marks[0].now, "model.py:2");
}

TEST_F(DropsTest, TheRemovedOpsValueOnTheSurvivorIsOverwritten) {
  enter();
  const PassId pass = begin("pointless_arithmetic");
  look(pass, graph_, {aten(a_, "sin", 2)});
  Pass done;
  done.changed = {a_};
  done.erased = {c_};
  done.replaced = {{c_, a_}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 2)});
  const Drops found = judged();
  ASSERT_EQ(found.marks.size(), 1U);
  EXPECT_EQ(found.marks[0].others, std::vector<UnitId>{c_});
  EXPECT_FALSE(found.marks[0].swapped);
  EXPECT_EQ(fate_in(found, pass, c_), Fate::kElided);
}

TEST_F(DropsTest, AValueThatNoSourceHadIsOverwrittenAtBirth) {
  enter();
  const PassId pass = begin("invents");
  const UnitId made = fresh();
  born({made, pass, "replacement", "", LocId::kNone, frame("p.py", 3, "f"), {a_}});
  look(pass, graph_, {aten(made, "y", 7)});
  Pass done;
  done.created = {made};
  done.erased = {a_};
  done.replaced = {{a_, made}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(made, "y", 7), aten(c_, "cos", 2, {made})});
  const Drops found = judged();
  ASSERT_EQ(found.marks.size(), 1U);
  EXPECT_EQ(found.marks[0].quality, Quality::kOverwritten);
  EXPECT_EQ(found.sites[found.marks[0].site].place, "p.py:3 (f)");
  EXPECT_EQ(found.marks[0].now, "model.py:7");
  EXPECT_EQ(found.marks[0].was, "model.py:1");
}

TEST_F(DropsTest, OneOfTwoLinesCarriedIsCollapsed) {
  enter();
  const PassId pass = begin("fuses");
  const UnitId made = fresh();
  born({made, pass, "match", "addmm", frame("p.py", 4, "pattern"), LocId::kNone, {a_, c_}});
  look(pass, graph_, {aten(made, "addmm", 2)});
  Pass done;
  done.created = {made};
  done.erased = {a_, c_};
  done.replaced = {{c_, made}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(made, "addmm", 2)});
  const Drops found = judged();
  EXPECT_EQ(post(found, "stack_trace", made).quality, Quality::kCollapsed);
  EXPECT_EQ(post(found, "original_aten", made).quality, Quality::kKept) << "both sources say the same";
  ASSERT_EQ(found.marks.size(), 1U);
  EXPECT_EQ(found.marks[0].sources, 2U);
  EXPECT_EQ(found.marks[0].others, std::vector<UnitId>{a_});
}

TEST_F(DropsTest, DeclaredRelabelIsNoOverwrite) {
  enter();
  const PassId pass = begin("relabel_linear_permutes", "kerntrail_spyre");
  const auto relabelled = [&] {
    return node(a_, "permute", 1).text("original_aten", "aten.linear.default", "OpOverload");
  };
  look(pass, graph_, {relabelled()});
  Pass done;
  done.changed = {a_};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {relabelled(), aten(c_, "cos", 2, {a_})});
  const Drops found = judged();
  EXPECT_TRUE(found.marks.empty());
  EXPECT_EQ(post(found, "original_aten", a_).quality, Quality::kKept);
  ASSERT_EQ(found.declared.size(), 1U);
  EXPECT_EQ(found.declared[0].unit, a_);
}

TEST_F(DropsTest, AChainThatReachesNothingIsVacuousAndAStackWithoutTheUserIsTheCompilers) {
  enter();
  Seen vacuous = aten(a_, "sin", 1);
  vacuous.from_node(R"([{"name":"","graph":"foreign"}])", {});
  Seen theirs = node(c_, "cos", 0, {a_}).text("original_aten", "aten.sin.default", "OpOverload");
  theirs.stack_at("stack_trace", frame("torch/_inductor/x.py", 5, "f"), "File torch/_inductor/x.py");
  theirs.from_node(R"([{"name":"cos","unit":"c0.n1"}])", {cos_});
  b_.snapshot("fx_post_grad", graph_, {vacuous, theirs});
  const Drops found = judged();
  EXPECT_EQ(post(found, "from_node", a_).quality, Quality::kVacuous);
  EXPECT_EQ(post(found, "stack_trace", a_).quality, Quality::kKept);
  const FieldUnit& stack = post(found, "stack_trace", c_);
  EXPECT_NE(stack.quality, Quality::kKept);
}

TEST_F(DropsTest, AStackThatWasTheCompilersFromTheStart) {
  enter();
  const PassId pass = begin("traces_a_pattern");
  const UnitId made = fresh();
  born({made, pass, "created", "", LocId::kNone, frame("p.py", 4, "f"), {}});
  const auto theirs = [&] {
    Seen seen = node(made, "x", 0);
    seen.stack_at("stack_trace", frame("torch/_inductor/x.py", 5, "f"), "File torch/_inductor/x.py");
    return seen;
  };
  look(pass, graph_, {theirs()});
  b_.recorder().end_pass(pass, {});
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 1), aten(c_, "cos", 2), theirs()});
  const Drops found = judged();
  EXPECT_EQ(post(found, "stack_trace", made).quality, Quality::kCompilerMade);
}

TEST_F(DropsTest, TwoFieldsThatNameDifferentLinesAreInConflict) {
  enter();
  Seen odd = aten(a_, "sin", 1);
  odd.from_node(R"([{"name":"cos"}])", {cos_});
  Seen even = aten(c_, "cos", 2, {a_});
  even.from_node(R"([{"name":"cos"}])", {cos_});
  b_.snapshot("fx_post_grad", graph_, {odd, even});
  const Drops found = judged();
  EXPECT_EQ(post(found, "stack_trace", a_).quality, Quality::kConflict);
  EXPECT_EQ(post(found, "from_node", a_).quality, Quality::kConflict);
  EXPECT_EQ(post(found, "stack_trace", c_).quality, Quality::kKept);
  EXPECT_EQ(post(found, "from_node", c_).quality, Quality::kKept);
}

// -------------------------------------------------------------------- fates

TEST_F(DropsTest, FatesOfAPassAndOfAnIntervalAddUp) {
  std::vector<Seen> units{aten(a_, "sin", 1), aten(c_, "cos", 2, {a_})};
  std::vector<UnitId> extra;
  for (int i = 0; i < 5; ++i) {
    extra.push_back(fresh());
    units.push_back(aten(extra.back(), fmt::format("x{}", i), 1, {a_}));
  }
  b_.snapshot("fx_aten", graph_, units);
  const PassId pass = begin("everything");
  const UnitId made = fresh();
  const UnitId constant = fresh();
  born({made, pass, "replacement", "", LocId::kNone, frame("p.py", 1, "f"), {extra[0]}});
  born({constant, pass, "replacement", "", LocId::kNone, frame("p.py", 2, "f"), {extra[3]}});
  look(pass, graph_,
       {aten(made, "y", 1), node(constant, "c", 1).text("original_aten", "aten.sin.default", "OpOverload")});
  Pass done;
  done.created = {made, constant};
  done.erased = {extra[0], extra[1], extra[2], extra[3], extra[4]};
  done.replaced = {{extra[0], made}, {extra[1], c_}, {extra[2], a_}, {extra[3], constant}};
  b_.recorder().end_pass(pass, done);
  const auto folded = [&] { return node(constant, "c", 1, {}, "aten.full.default"); };
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 1), aten(c_, "cos", 2, {a_}), aten(made, "y", 1), folded()});
  const Drops found = judged();
  UnitId by{};
  EXPECT_EQ(fate_in(found, pass, extra[0], &by), Fate::kReplaced);
  EXPECT_EQ(by, made);
  EXPECT_EQ(fate_in(found, pass, extra[1], &by), Fate::kMerged);
  EXPECT_EQ(by, c_);
  EXPECT_EQ(fate_in(found, pass, extra[2], &by), Fate::kElided);
  EXPECT_EQ(by, a_);
  EXPECT_EQ(fate_in(found, pass, extra[4]), Fate::kDead);
  const StageInterval& interval = found.intervals.back();
  EXPECT_EQ(interval.from, "fx_aten");
  EXPECT_EQ(interval.entering, 7U);
  EXPECT_EQ(interval.fates[static_cast<std::size_t>(Fate::kSurvived)], 2U);
}

TEST_F(DropsTest, AChainOfNoOpsIsElidedAndTheInsideOfAMatchReplaced) {
  std::vector<UnitId> chain{fresh(), fresh()};
  b_.snapshot("fx_aten", graph_,
              {aten(a_, "sin", 1), aten(chain[0], "noop", 1, {a_}), aten(chain[1], "noop_1", 1, {chain[0]}),
               aten(c_, "cos", 2, {chain[1]})});
  const PassId noops = begin("remove_noop_ops");
  Pass done;
  done.erased = chain;
  done.replaced = {{chain[0], a_}, {chain[1], a_}};
  b_.recorder().end_pass(noops, done);
  const PassId fuse = begin("fuses");
  const UnitId made = fresh();
  born({made, fuse, "match", "p", LocId::kNone, LocId::kNone, {a_, c_}});
  look(fuse, graph_, {aten(made, "y", 1)});
  done = {};
  done.created = {made};
  done.erased = {a_, c_};
  done.replaced = {{c_, made}};
  b_.recorder().end_pass(fuse, done);
  b_.snapshot("fx_post_grad", graph_, {aten(made, "y", 1)});
  const Drops found = judged();
  EXPECT_EQ(fate_in(found, noops, chain[0]), Fate::kElided);
  EXPECT_EQ(fate_in(found, noops, chain[1]), Fate::kElided);
  EXPECT_TRUE(found.passes.front().leavers.front().declared);
  UnitId by{};
  EXPECT_EQ(fate_in(found, fuse, a_, &by), Fate::kReplaced);
  EXPECT_EQ(by, made);
}

TEST_F(DropsTest, AConstantThatTakesOverFolds) {
  enter();
  const PassId pass = begin("constant_folding");
  const UnitId constant = fresh();
  Seen folded = b_.seen(constant);
  folded.text("name", "_frozen_0").text("op", "get_attr").text("target", "_frozen_0");
  born({constant, pass, "replacement", "", LocId::kNone, frame("constant_folding.py", 59, "replace_node"), {c_}});
  look(pass, graph_, {folded});
  Pass done;
  done.created = {constant};
  done.erased = {c_};
  done.replaced = {{c_, constant}};
  b_.recorder().end_pass(pass, done);
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 1), folded});
  const Drops found = judged();
  EXPECT_EQ(fate_in(found, pass, c_), Fate::kFolded);
  EXPECT_EQ(post(found, "stack_trace", constant).reason, Reason::kDropped);
}

// ---------------------------------------------------------------- IR passes

class IrPassTest : public DropsTest {
 protected:
  IrPassTest() {
    enter();
    ir_ = b_.graph(compile_, "ir", "inference");
    x_ = b_.unit(ir_, UnitKind::kOperation);
    y_ = b_.unit(ir_, UnitKind::kOperation);
    b_.snapshot("ir_pre_pass", ir_, {op(x_, "op0", {a_, c_}, a_), op(y_, "op1", {c_}, c_)});
  }

  Seen op(UnitId unit, std::string_view name, std::vector<UnitId> origins, UnitId primary,
          std::string_view history = R"([{"kind":"rewrite","pass_name":"p","reason":null}])") {
    Seen seen = b_.seen(unit);
    seen.text("name", name).refs("origins", std::move(origins));
    if (has(primary)) {
      seen.ref("origin_node", primary);
    } else {
      seen.empty("origin_node");
    }
    if (!history.empty()) seen.json("history", history, "tuple");
    return seen;
  }
  Drops after(std::string_view name, const std::vector<Seen>& units, const Pass& done, const std::vector<Seen>& all,
              const DropOptions& options = {}) {
    pass_ = begin_on(ir_, name);
    look(pass_, ir_, units);
    b_.recorder().end_pass(pass_, done);
    b_.snapshot("ir_post_pass", ir_, all);
    return judged(options);
  }
  using Rules = std::vector<std::string>;

  GraphId ir_{};
  UnitId x_{}, y_{};
  PassId pass_{};
};

TEST_F(IrPassTest, LossesOfOneUnitAreAllReported) {
  Pass done;
  done.changed = {x_};
  const Drops found = after("lossy", {op(x_, "op0", {c_}, UnitId::kNone, "[]")}, done,
                            {op(x_, "op0", {c_}, UnitId::kNone, "[]"), op(y_, "op1", {c_}, c_)});
  EXPECT_EQ(rules(found), (Rules{"a", "b", "c"}));
  EXPECT_EQ(found.findings[0].lost, std::vector<UnitId>{a_});
  EXPECT_EQ(found.findings[0].total, 2U);
  EXPECT_EQ(found.findings[0].pass, pass_);
  EXPECT_EQ(cell(found, "ir_post_pass", "origins", x_).quality, Quality::kCollapsed);
  const FieldUnit& primary = cell(found, "ir_post_pass", "origin_node", x_);
  EXPECT_EQ(primary.reason, Reason::kDropped);
  EXPECT_EQ(found.sites[found.losses[primary.loss].site].pass, pass_);
}

TEST_F(IrPassTest, AFusionOfThePassMayClearTheOriginNode) {
  Pass done;
  done.changed = {x_};
  const std::string_view fused =
      R"([{"kind":"rewrite","pass_name":"p","reason":null},{"kind":"fusion","pass_name":"fuses","reason":"why"}])";
  const Drops found = after("fuses", {op(x_, "op0", {a_, c_}, UnitId::kNone, fused)}, done,
                            {op(x_, "op0", {a_, c_}, UnitId::kNone, fused), op(y_, "op1", {c_}, c_)});
  EXPECT_EQ(rules(found), Rules{});
}

TEST_F(IrPassTest, TheSameFusionUnderAnotherNameMayNot) {
  Pass done;
  done.changed = {x_};
  const std::string_view fused =
      R"([{"kind":"rewrite","pass_name":"p","reason":null},{"kind":"fusion","pass_name":"fuses","reason":"why"}])";
  const Drops found = after("other", {op(x_, "op0", {a_, c_}, UnitId::kNone, fused)}, done,
                            {op(x_, "op0", {a_, c_}, UnitId::kNone, fused), op(y_, "op1", {c_}, c_)});
  EXPECT_EQ(rules(found), Rules{"b"});
}

TEST_F(IrPassTest, ARebuiltOperationIsKnownByItsName) {
  const UnitId again = b_.unit(ir_, UnitKind::kOperation);
  Pass done;
  done.created = {again};
  done.erased = {x_};
  const Drops found =
      after("rebuilds", {op(again, "op0", {a_}, a_)}, done, {op(again, "op0", {a_}, a_), op(y_, "op1", {c_}, c_)});
  EXPECT_EQ(rules(found), Rules{"a"});
  EXPECT_EQ(found.findings[0].unit, x_);
  EXPECT_EQ(found.findings[0].now, again);
  EXPECT_EQ(found.findings[0].lost, std::vector<UnitId>{c_});
}

TEST_F(IrPassTest, ANewOperationWithoutOriginsIsReported) {
  const UnitId made = b_.unit(ir_, UnitKind::kOperation);
  Pass done;
  done.created = {made};
  const Drops found =
      after("inserts", {op(made, "op2", {}, UnitId::kNone, "")}, done,
            {op(x_, "op0", {a_, c_}, a_), op(y_, "op1", {c_}, c_), op(made, "op2", {}, UnitId::kNone, "")});
  EXPECT_EQ(rules(found), Rules{"d"});
  EXPECT_EQ(cell(found, "ir_post_pass", "origins", made).reason, Reason::kOrphan);
}

TEST_F(IrPassTest, ADeclaredInsertionHidesNoLossOfOthers) {
  const UnitId made = b_.unit(ir_, UnitKind::kOperation);
  Pass done;
  done.created = {made};
  done.changed = {y_};
  const Drops found =
      after("insert_restickify", {op(made, "op2", {}, UnitId::kNone, ""), op(y_, "op1", {}, UnitId::kNone)}, done,
            {op(x_, "op0", {a_, c_}, a_), op(y_, "op1", {}, UnitId::kNone), op(made, "op2", {}, UnitId::kNone, "")});
  EXPECT_EQ(rules(found), (Rules{"a", "b"}));
  EXPECT_EQ(rules(found, true), Rules{"d"});
  EXPECT_EQ(cell(found, "ir_post_pass", "origins", made).reason, Reason::kSynthesised);
  EXPECT_EQ(cell(found, "ir_post_pass", "origins", y_).reason, Reason::kDropped);
}

TEST_F(IrPassTest, AVanishedOperationNeedsOneSurvivorThatHoldsAllOfIt) {
  Pass done;
  done.erased = {x_};
  const Drops found = after("dedup", {}, done, {op(y_, "op1", {c_}, c_)});
  EXPECT_EQ(rules(found), Rules{"e"});
  EXPECT_EQ(found.findings[0].unit, x_);
  EXPECT_EQ(found.findings[0].total, 2U);
}

TEST_F(IrPassTest, AMergedDuplicateIsNoLoss) {
  Pass done;
  done.erased = {y_};
  const std::string_view both =
      R"([{"kind":"rewrite","pass_name":"p","reason":null},{"kind":"fusion","pass_name":"dedup","reason":"duplicate"}])";
  done.changed = {x_};
  const Drops found = after("dedup", {op(x_, "op0", {a_, c_}, a_, both)}, done, {op(x_, "op0", {a_, c_}, a_, both)});
  EXPECT_EQ(rules(found), Rules{});
}

TEST_F(IrPassTest, RemovalAndRemappingMayBeDeclared) {
  Pass done;
  done.erased = {x_};
  const Drops found = after("deadcode_elimination", {}, done, {op(y_, "op1", {c_}, c_)});
  EXPECT_EQ(rules(found), Rules{});
  EXPECT_EQ(rules(found, true), Rules{"e"});
}

TEST_F(IrPassTest, AUsersRemapExemptsSurvivorsAndVanished) {
  Pass done;
  done.erased = {x_};
  done.changed = {y_};
  DropOptions options;
  options.intents = *parse_intents(R"({"intents":[{"pass":"remap","kind":"remaps","reason":"new origins"}]})", "f");
  const Drops found = after("remap", {op(y_, "op1", {a_}, UnitId::kNone, "[]")}, done,
                            {op(y_, "op1", {a_}, UnitId::kNone, "[]")}, options);
  EXPECT_EQ(rules(found), Rules{});
  EXPECT_EQ(rules(found, true), (Rules{"a", "b", "c", "e"}));
}

// ------------------------------------------------------------------ intents

TEST(Intents, ErrorsNameThePlace) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"([])", "must be an object"},
      {R"({"intents":{}})", "intents: must be a list"},
      {R"({"intent":[]})", "intent: is no member"},
      {R"({"version":2,"intents":[]})", "version: must be 1"},
      {R"({"intents":[1]})", "intents[0]: must be an object"},
      {R"({"intents":[{"pass":"x","kind":"removes","reason":"r"},{"pass":"x"}]})", "intents[1]: \"kind\" is missing"},
      {R"({"intents":[{"pass":"","kind":"removes","reason":"r"}]})", "intents[0].pass: must be a text"},
      {R"({"intents":[{"pass":"x","kind":"hides","reason":"r"}]})", "intents[0].kind: must be \"synthesises\""},
      {R"({"intents":[{"pass":"x","kind":"removes","reason":"r","why":"?"}]})", "intents[0].why: is no member"},
      {R"({"intents":[{"pass":"x","kind":"removes","reason":"r","fields":["a"]}]})", "intents[0].fields: belongs to"},
      {R"({"intents":[{"pass":"x","kind":"remaps","reason":"r","fields":["a",2]}]})", "intents[0].fields[1]: must be"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_intents(text, "mine.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kSchema) << text;
    EXPECT_NE(parsed.error().text().find("mine.json"), std::string::npos);
    EXPECT_NE(parsed.error().message.find(message), std::string::npos) << parsed.error().message;
  }
  EXPECT_EQ(parse_intents("{", "mine.json").error().code, ErrorCode::kSyntax);
  EXPECT_TRUE(parse_intents(R"({"intents":[]})", "")->empty());
}

TEST(Intents, PassesAreNamedByThePathThatDropsShows) {
  CaptureBuilder b;
  const GraphId graph = b.graph(b.compile("inductor"), "fx", "inference");
  PassId around = PassId::kNone;
  for (const auto& [name, kind] : std::vector<std::pair<std::string, PassKind>>{
           {"post_grad_passes", PassKind::kStage}, {"custom / Mine", PassKind::kPass}, {"inner_7", PassKind::kPass}}) {
    Pass pass;
    pass.graph = graph;
    pass.name = name;
    pass.kind = kind;
    pass.parent = around;
    around = b.recorder().begin_pass(pass);
  }
  const Capture capture = b.finish();
  const auto named = [&](const std::string& pass) {
    Intent intent;
    intent.pass = pass;
    const analyse::IntentTable table(capture, {intent});
    std::string found;
    for (std::size_t p = 0; p < capture.passes.size(); ++p)
      found += table.find(IntentKind::kSynthesises, id_at<PassId>(p), {}, {}, {}) == kNoIndex ? '-' : 'x';
    EXPECT_EQ(idle_intents(capture, {intent}).empty(), found != "---") << pass;
    return found;
  };
  EXPECT_EQ(named("inner_7"), "--x");
  EXPECT_EQ(named("custom / Mine / inner_7"), "--x");
  EXPECT_EQ(named("`custom / Mine` / `inner_7`"), "--x") << "as copied";
  EXPECT_EQ(named("Mine / inner_*"), "--x");
  EXPECT_EQ(named("custom / Mine"), "-x-") << "not what is within it";
  EXPECT_EQ(named("custom"), "-x-");
  EXPECT_EQ(named("Mine"), "-x-");
  EXPECT_EQ(named("ine"), "---") << "whole parts only";
  EXPECT_EQ(named("post_grad_passes / custom"), "---") << "stages are not shown";
  EXPECT_EQ(named("post_grad_passes"), "x--");
}

TEST(Intents, BuiltInOnesDeclareNoKnownLoss) {
  for (const Intent& intent : builtin_intents()) {
    EXPECT_FALSE(intent.reason.empty());
    EXPECT_EQ(intent.origin, "built-in");
    for (std::string_view loses : {"pass_pattern_0", "fuse_seed_creation_pass", "group_batch_fusion_0",
                                   "binary_folding", "reinplace_inplaceable_ops", "post_grad_custom_pre_pass"})
      EXPECT_NE(intent.pass, loses);
  }
}

// A chain of a hundred thousand replacements: no recursion, no square.
TEST(DropsScale, LongChainsAndManyUnits) {
  CaptureBuilder b;
  const CompileId compile = b.compile("inductor");
  const GraphId graph = b.graph(compile, "fx", "inference");
  UnitId last = b.unit(graph, UnitKind::kFxNode);
  b.snapshot("fx_pre_grad", graph, {b.seen(last).text("name", "x").stack("m.py", 1, "x")});
  Pass pass;
  pass.graph = graph;
  pass.name = "chain";
  const PassId id = b.recorder().begin_pass(pass);
  Pass done;
  constexpr std::size_t kLength = 100000;
  for (std::size_t i = 0; i < kLength; ++i) {
    const UnitId next = b.unit(graph, UnitKind::kFxNode);
    b.recorder().birth({next, id, "replacement", "", LocId::kNone, LocId::kNone, {last}});
    done.created.push_back(next);
    done.erased.push_back(last);
    done.replaced.emplace_back(last, next);
    last = next;
  }
  std::vector<model::ObservedUnit> seen{b.seen(last).text("name", "y").value()};
  b.recorder().look(id, graph, seen);
  b.recorder().end_pass(id, done);
  b.snapshot("fx_post_grad", graph, {b.seen(last).text("name", "y")});
  const Capture capture = b.finish();
  const auto all = drops(capture);
  ASSERT_TRUE(all);
  const FieldTally& stack = all->front().stages.back().fields.front();
  EXPECT_EQ(stack.name, "stack_trace");
  EXPECT_EQ(stack.of(Reason::kInheritedGap), 1U);
  ASSERT_EQ(all->front().losses.size(), 1U);
  EXPECT_FALSE(all->front().losses[0].in_stage);
}

}  // namespace
}  // namespace kerntrail
