// Each reason planted in a small capture; the answer must name exactly that.
#include <algorithm>

#include "drops_fixture.h"
#include "seed000/seed000.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;
using testing::DropsTest;
using Seen = CaptureBuilder::Seen;

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
  EXPECT_TRUE(found.sites[loss.site].by_pass) << "no frame of the loss itself";
  EXPECT_EQ(found.sites[loss.site].place, "passes.py:7 (drops_it)");
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
  EXPECT_FALSE(found.sites[loss.site].by_pass);
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
  EXPECT_EQ(found.losses[0].heirs, std::vector<UnitId>{heir});
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

TEST_F(DropsTest, EqualLinesAreNoEvidenceForASource) {
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
  for (const char* field : {"source_fn_stack", "nn_module_stack"}) {
    const FieldUnit& there = cell(all->front(), "fx_post_grad", field, later);
    EXPECT_EQ(there.reason, Reason::kUnknown) << field;
    EXPECT_TRUE(there.guessed) << field;
  }
  EXPECT_TRUE(all->front().losses.empty());
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

TEST_F(DropsTest, BordersConcludeFromRecordedEdgesAndNotFromNeighbours) {
  const auto built = testing::build_seed000(true);
  const auto all = drops(built.capture);
  ASSERT_TRUE(all);
  const Drops& found = all->front();
  EXPECT_FALSE(found.passes_recorded);
  EXPECT_EQ(found.losses.size(), 8U);  // what a debug handle does not hold
  for (const Loss& loss : found.losses) {
    EXPECT_EQ(found.sites[loss.site].kind, SiteKind::kBorder);
    EXPECT_EQ(found.sites[loss.site].title, "between ir_post_pass and op_spec");
    EXPECT_EQ(loss.way, LossWay::kLowering);
    EXPECT_EQ(loss.evidence, "link");
  }
  std::size_t guessed = 0;
  for (const StageTally& stage : found.stages) {
    for (const FieldTally& field : stage.fields) {
      for (const FieldUnit& unit : field.units) {
        if (!unit.guessed) continue;
        EXPECT_EQ(unit.reason, Reason::kUnknown);
        guessed += stage.key == "fx_post_grad" ? 1U : 0U;
      }
    }
  }
  EXPECT_EQ(guessed, 16U);  // four nodes, four fields
}

// A change in place that a pass would make by design, had it been recorded which pass made it.
TEST_F(DropsTest, AtBordersARelabelOfTheBackEndIsNotCalledWrong) {
  for (const std::string_view backend : {"kerntrail_spyre", "inductor"}) {
    CaptureBuilder b;
    const GraphId graph = b.graph(b.compile(backend), "fx", "inference");
    const UnitId unit = b.unit(graph, UnitKind::kFxNode);
    const auto permute = [&](std::string_view op) {
      return b.seen(unit).text("name", "permute").text("op", "call_function").text("original_aten", op, "OpOverload");
    };
    b.snapshot("fx_aten", graph, {permute("aten.t.default")});
    b.snapshot("fx_post_grad", graph, {permute("aten.linear.default")});
    const Capture capture = b.finish();
    testing::expect_invariants(capture);
    const auto all = drops(capture);
    ASSERT_TRUE(all);
    const Drops& found = all->front();
    const bool by_design = backend == "kerntrail_spyre";
    EXPECT_EQ(found.marks.size(), by_design ? 0U : 1U) << backend;
    ASSERT_EQ(found.declared.size(), by_design ? 1U : 0U) << backend;
    for (const DeclaredUse& use : found.declared) EXPECT_EQ(use.pass, PassId::kNone);
  }
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

// A pass that rewires by hand leaves no trace of what its node stands for; neither has what is made of that.
TEST_F(DropsTest, AUnitThatNothingLinksToASourceIsListedWithTheLineThatMadeIt) {
  enter();
  const PassId pass = begin("rewires");
  const UnitId made = fresh(), gone = fresh(), heir = fresh();
  for (const UnitId unit : {made, gone})
    born({unit, pass, "created", "", LocId::kNone, frame("mine.py", unit == made ? 35 : 40, "f"), {}});
  const auto bare = [&](UnitId unit, std::string_view name) { return node(unit, name, 0); };
  look(pass, graph_, {bare(made, "x"), bare(gone, "y")});
  Pass done;
  done.created = {made, gone};
  done.erased = {c_};
  b_.recorder().end_pass(pass, done);
  const PassId later = begin("replaces");
  born({heir, later, "replacement", "", LocId::kNone, frame("p.py", 3, "f"), {gone}});
  look(later, graph_, {bare(heir, "z")});
  done = {};
  done.created = {heir};
  done.erased = {gone};
  done.replaced = {{gone, heir}};
  b_.recorder().end_pass(later, done);
  b_.snapshot("fx_post_grad", graph_, {aten(a_, "sin", 1), bare(made, "x"), bare(heir, "z")});
  const Drops found = judged();
  EXPECT_TRUE(found.losses.empty());
  ASSERT_EQ(found.orphans.size(), 2U);
  EXPECT_EQ(found.orphans[0].unit, made);
  EXPECT_TRUE(found.orphans[0].in_stage);
  EXPECT_TRUE(found.orphans[0].heirs.empty());
  EXPECT_EQ(found.orphans[1].unit, gone);
  EXPECT_FALSE(found.orphans[1].in_stage) << "no stage shows it, only what was made of it";
  EXPECT_EQ(found.orphans[1].heirs, std::vector<UnitId>{heir});
  EXPECT_EQ(post(found, "stack_trace", heir).orphan, gone);
  for (const Orphan& orphan : found.orphans) {
    ASSERT_NE(orphan.site, kNoIndex);
    EXPECT_EQ(found.sites[orphan.site].pass, pass);
    EXPECT_EQ(found.sites[orphan.site].place, orphan.unit == made ? "mine.py:35 (f)" : "mine.py:40 (f)");
    std::vector<std::string> fields;
    for (const AttrId field : orphan.fields) fields.push_back(found.fields[index(field)]);
    EXPECT_EQ(std::count(fields.begin(), fields.end(), "stack_trace"), 1);
    EXPECT_EQ(std::count(fields.begin(), fields.end(), "original_aten"), 1);
  }
}

}  // namespace
}  // namespace kerntrail
