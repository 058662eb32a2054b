#include "kerntrail/gate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analyse/gate_measure.h"
#include "drops_fixture.h"

namespace kerntrail {
namespace {

constexpr const char* kToday = "2026-12-01";

// sin keeps its line, cos is replaced by a node without one, in pass "replace". `shift` moves the model's lines down,
// `copies` adds replaced nodes.
class GateTest : public testing::DropsTest {
 protected:
  Capture lossy(int copies = 1, bool drop = true) {
    enter();
    const PassId pass = begin("replace");
    std::vector<Seen> after{aten(a_, "sin", 1)};
    std::vector<UnitId> made;
    for (int i = 0; i < copies; ++i) {
      made.push_back(fresh());
      born({made.back(), pass, "replacement", "", LocId::kNone, frame("torch/passes.py", 33, "rewrite"), {c_}});
      after.push_back(aten(made.back(), "new_" + std::to_string(i), drop ? 0 : 2, {a_}));
    }
    std::vector<Seen> looked(after.begin() + 1, after.end());
    Pass done;
    done.created = made;
    done.erased = {c_};
    look(pass, graph_, looked);
    b_.recorder().end_pass(pass, done);
    b_.snapshot("fx_post_grad", graph_, after);
    return b_.finish();
  }

  static GateConfig asking(double min = 1.0) {
    GateConfig config;
    config.path = "k.toml";
    CoverageRule rule;
    rule.at = {1, 1};
    rule.stages = {"fx_post_grad"};
    rule.fields = {"stack_trace"};
    rule.min = min;
    config.coverage.push_back(rule);
    return config;
  }
  static GateConfig dropping(std::vector<std::string> classes = {"dropped"}, double max = 0.0) {
    GateConfig config;
    config.path = "k.toml";
    DropRule rule;
    rule.at = {1, 1};
    rule.classes = std::move(classes);
    rule.max = max;
    config.drops.push_back(rule);
    return config;
  }
  static AllowEntry allowing(std::string pass, std::string expires) {
    AllowEntry entry;
    entry.at = {9, 1};
    entry.pass = std::move(pass);
    entry.reason = "known";
    entry.owner = "me";
    entry.expires = std::move(expires);
    return entry;
  }
  static GateResult judge(const Capture& capture, const GateConfig& config, const GateBaseline* baseline = nullptr) {
    GateInput input;
    input.baseline = baseline;
    input.today = kToday;
    auto result = gate(capture, config, input);
    EXPECT_TRUE(result) << (result ? "" : result.error().text());
    return result ? std::move(*result) : GateResult{};
  }
  static std::vector<std::string> failed(const GateResult& result) {
    std::vector<std::string> out;
    for (const GateFinding& finding : result.findings) {
      if (finding.outcome == GateOutcome::kFailed) out.push_back(finding.rule);
    }
    return out;
  }
  using Words = std::vector<std::string>;
};

TEST_F(GateTest, CoverageIsARatioOfUnits) {
  const Capture capture = lossy();
  EXPECT_TRUE(judge(capture, asking(0.5)).passed);
  const GateResult result = judge(capture, asking(0.51));
  EXPECT_FALSE(result.passed);
  ASSERT_EQ(failed(result), Words{"coverage"});
  EXPECT_EQ(result.findings[0].measured, 0.5);
  EXPECT_EQ(result.findings[0].required, 0.51);
  EXPECT_EQ(result.findings[0].asked.line, 1U);
  ASSERT_EQ(result.findings[0].units.size(), 1U);
  EXPECT_EQ(result.findings[0].units[0].name, "new_0");
  EXPECT_FALSE(result.findings[0].flow.empty());
}

TEST_F(GateTest, ALossNamesPassLineAndModel) {
  const GateResult result = judge(lossy(), dropping());
  ASSERT_EQ(failed(result), Words{"dropped"});
  const GateFinding& loss = result.findings[0];
  EXPECT_EQ(loss.field, "stack_trace");
  EXPECT_EQ(loss.pass, "replace");
  EXPECT_EQ(loss.compiler.file, "torch/passes.py");
  EXPECT_EQ(loss.compiler.line, 33);
  EXPECT_EQ(loss.source.file, "model.py");
  EXPECT_EQ(loss.source.line, 2);
  // From the source line through the stages that had it, the pass that lost it, to those without.
  std::vector<std::string> stages;
  for (const GateStep& step : loss.flow) stages.push_back(step.stage);
  EXPECT_EQ(stages, (Words{"source", "fx_aten", "", "fx_post_grad"}));
}

TEST_F(GateTest, ALimitOnLossesIsAShareOfSlots) {
  const Capture capture = lossy();
  EXPECT_FALSE(judge(capture, dropping({"dropped"}, 0.001)).passed);
  EXPECT_TRUE(judge(capture, dropping({"dropped"}, 0.5)).passed);
  EXPECT_TRUE(judge(capture, dropping({"orphan"})).passed) << "another class";
  GateConfig elsewhere = dropping();
  elsewhere.drops[0].passes = {"other*"};
  EXPECT_TRUE(judge(capture, elsewhere).passed);
  elsewhere.drops[0].passes = {"repl*"};
  EXPECT_FALSE(judge(capture, elsewhere).passed);
  GateConfig field = dropping();
  field.drops[0].fields = {"original_aten"};
  EXPECT_TRUE(judge(capture, field).passed);
  GateConfig stage = dropping();
  stage.drops[0].stages = {"fx_aten"};
  EXPECT_TRUE(judge(capture, stage).passed);
  stage.drops[0].stages = {"fx_post_grad"};
  EXPECT_FALSE(judge(capture, stage).passed);
}

TEST_F(GateTest, AnAllowEntryHoldsUntilItsLastDay) {
  const Capture capture = lossy();
  for (const char* until : {"2026-12-01", "2027-06-30"}) {
    GateConfig config = dropping();
    config.coverage = asking().coverage;
    config.allow = {allowing("replace", until)};
    const GateResult result = judge(capture, config);
    EXPECT_TRUE(result.passed) << until << " " << result.findings[0].message;
    ASSERT_EQ(result.count(GateOutcome::kAllowed), 1U);
    EXPECT_EQ(result.findings[0].allowed_owner, "me");
  }
  GateConfig config = dropping();
  config.allow = {allowing("replace", "2026-11-30")};
  const GateResult expired = judge(capture, config);
  EXPECT_EQ(failed(expired), Words{"dropped"});
  EXPECT_NE(expired.findings[0].why.find("until 2026-11-30: expired"), std::string::npos) << expired.findings[0].why;
  ASSERT_EQ(expired.notes.size(), 1U);
  EXPECT_NE(expired.notes[0].find("k.toml:9: [[allow]] of me"), std::string::npos) << expired.notes[0];
}

TEST_F(GateTest, IdleAndEndingEntriesAreSaid) {
  GateConfig config = dropping();
  config.allow = {allowing("replace", "2026-12-10"), allowing("nothing", "2027-12-10")};
  const GateResult result = judge(lossy(), config);
  EXPECT_TRUE(result.passed);
  ASSERT_EQ(result.notes.size(), 2U);
  EXPECT_NE(result.notes[0].find("ends on 2026-12-10"), std::string::npos) << result.notes[0];
  EXPECT_NE(result.notes[1].find("covers nothing"), std::string::npos) << result.notes[1];
}

TEST_F(GateTest, AllowingOneUnitLeavesTheOthers) {
  GateConfig config = dropping();
  config.allow = {allowing("replace", "2027-01-01")};
  config.allow[0].unit = "new_0";
  const GateResult result = judge(lossy(2), config);
  ASSERT_EQ(failed(result), Words{"dropped"});
  EXPECT_EQ(result.findings[0].why, "1 of 2 are allowed");
}

TEST_F(GateTest, TheBaselineKnowsALossThatStays) {
  const Capture capture = lossy();
  const GateBaseline kept = judge(capture, dropping()).measured;
  ASSERT_EQ(kept.losses.size(), 1U);
  const auto again = parse_baseline(baseline_json(kept), "b.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(baseline_json(*again), baseline_json(kept));
  const GateResult known = judge(capture, dropping(), &*again);
  EXPECT_TRUE(known.passed);
  EXPECT_EQ(known.count(GateOutcome::kKnown), 1U);
  EXPECT_EQ(known.findings[0].baseline, BaselineState::kUnchanged);
  EXPECT_EQ(known.regressions, 0U);
  EXPECT_TRUE(known.improvements.empty());
  // A minimum is a minimum, whatever the baseline has.
  EXPECT_FALSE(judge(capture, asking(), &*again).passed);
}

TEST_F(GateTest, ANewLossFailsWithoutAnyRule) {
  const Capture capture = lossy();
  GateBaseline before = judge(capture, {}).measured;
  before.losses.clear();
  const GateResult result = judge(capture, {}, &before);
  EXPECT_EQ(failed(result), Words{"dropped"});
  EXPECT_EQ(result.findings[0].baseline, BaselineState::kNew);
  EXPECT_EQ(result.regressions, 1U);
}

TEST_F(GateTest, AGrownLossAndALowerRatioFail) {
  const Capture capture = lossy();
  GateBaseline before = judge(capture, {}).measured;
  before.losses[0].share /= 2;
  for (BaselineCoverage& row : before.coverage) {
    if (row.stage == "fx_post_grad" && row.field == "stack_trace") row.ratio = 0.75;
  }
  GateResult result = judge(capture, {}, &before);
  EXPECT_EQ(failed(result), (Words{"regressed", "dropped"}));
  EXPECT_EQ(result.findings[1].baseline, BaselineState::kUpdated);
  EXPECT_EQ(result.regressions, 2U);
  GateConfig lenient;
  lenient.tolerance = 0.3;
  EXPECT_TRUE(judge(capture, lenient, &before).passed);
}

TEST_F(GateTest, BetterThanTheBaselineIsSaid) {
  const Capture capture = lossy();
  GateBaseline before = judge(capture, {}).measured;
  before.losses.push_back({"0123456789abcdef", "reason/dropped", "", "stack_trace", "pass gone", 0.1});
  before.losses[0].share = 0.9;
  for (BaselineCoverage& row : before.coverage) {
    if (row.stage == "fx_post_grad" && row.field == "stack_trace") row.ratio = 0.25;
  }
  const GateResult result = judge(capture, {}, &before);
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(result.improvements.size(), 3U);
}

TEST_F(GateTest, WhatABaselineHadAndIsGoneIsWorse) {
  const Capture capture = lossy();
  GateBaseline before = judge(capture, {}).measured;
  before.coverage.push_back({"", "kernel", "origins", 1.0});
  before.scores.push_back({"kernel", "loop", "origins", "lines", 1.0, 1.0});
  const GateResult result = judge(capture, {}, &before);
  EXPECT_EQ(failed(result), (Words{"regressed", "regressed", "regressed"}));
}

TEST_F(GateTest, ForgottenKeysAndFilesAreNotComparable) {
  const Capture capture = lossy();
  GateBaseline before = judge(capture, {}).measured;
  GateInput input;
  input.baseline = &before;
  EXPECT_TRUE(gate_mismatches(capture, {}, input).empty());
  for (const char* member : {"backend", "torch", "level", "provenance_level", "metadata", "compile"}) {
    GateBaseline other = before;
    for (auto& [key, value] : other.key) {
      if (key == member) value = "another";
    }
    input.baseline = &other;
    const auto found = gate_mismatches(capture, {}, input);
    ASSERT_EQ(found.size(), 1U) << member;
    EXPECT_EQ(found[0].member, member);
    GateConfig ignoring;
    ignoring.ignore = {member};
    EXPECT_TRUE(gate_mismatches(capture, ignoring, input).empty()) << member;
  }
  before.sources = {"other.py"};
  input.baseline = &before;
  ASSERT_EQ(gate_mismatches(capture, {}, input).size(), 1U);
  GateConfig named;
  named.name = "x";
  before.sources = {"model.py", "other.py"};
  before.key[0] = {"model", "y"};
  EXPECT_EQ(gate_mismatches(capture, named, input)[0].member, "model");
}

// The same loss in a model that was edited: other lines, more of it, other names.
TEST(GateFingerprint, StaysWhenLinesMoveAndTheModelGrows) {
  std::vector<std::string> prints;
  for (int variant = 0; variant < 3; ++variant) {
    testing::CaptureBuilder b;
    const CompileId compile = b.compile("inductor");
    const GraphId graph = b.graph(compile, "fx", "inference");
    const auto node = [&](UnitId unit, const std::string& name, int line) {
      auto seen = b.seen(unit);
      seen.text("name", name).text("op", "call_function").text("target", "aten.sin.default");
      if (line > 0) seen.stack("model.py", line, "y = f(x)");
      return seen;
    };
    std::vector<UnitId> units;
    std::vector<testing::CaptureBuilder::Seen> before;
    std::vector<testing::CaptureBuilder::Seen> after;
    for (int i = 0; i <= variant; ++i) {
      units.push_back(b.unit(graph, UnitKind::kFxNode));
      before.push_back(node(units.back(), "n" + std::to_string(variant), 10 * variant + 1));
      after.push_back(node(units.back(), "n" + std::to_string(variant), 0));
    }
    b.snapshot("fx_aten", graph, before);
    Pass pass;
    pass.graph = graph;
    pass.name = "strip";
    pass.loc = b.frame("torch/p.py", 5 + variant, "strip");
    const PassId id = b.recorder().begin_pass(pass);
    std::vector<model::ObservedUnit> observed;
    for (const auto& seen : after) observed.push_back(seen.value());
    b.recorder().look(id, graph, observed);
    Pass done;
    done.changed = units;
    b.recorder().end_pass(id, done);
    b.snapshot("fx_post_grad", graph, after);
    const Capture capture = b.finish();
    GateConfig config;
    config.drops.push_back({{1, 1}, {"dropped"}, {}, {}, {}, 0.0});
    GateInput input;
    input.today = kToday;
    const auto result = gate(capture, config, input);
    ASSERT_TRUE(result);
    ASSERT_EQ(result->findings.size(), 1U);
    EXPECT_EQ(result->findings[0].units.size(), units.size());
    prints.push_back(result->findings[0].fingerprint);
  }
  EXPECT_EQ(prints[0], prints[1]);
  EXPECT_EQ(prints[0], prints[2]);
}

// ---- fails closed ----

TEST_F(GateTest, RulesAboutWhatIsNotThereFail) {
  const Capture capture = lossy();
  GateConfig stage = asking();
  stage.coverage[0].stages = {"fx_pots_grad"};
  EXPECT_EQ(failed(judge(capture, stage)), Words{"missing-stage"});
  EXPECT_NE(judge(capture, stage).findings[0].message.find("did you mean fx_post_grad?"), std::string::npos);
  GateConfig field = asking(0.0);
  field.coverage[0].fields = {"stack_trac"};
  EXPECT_EQ(failed(judge(capture, field)), Words{"missing-field"});
  GateConfig later = asking(0.0);
  later.coverage[0].fields = {"origins"};
  EXPECT_EQ(failed(judge(capture, later)), Words{"missing-field"});
  GateConfig backend = asking(0.0);
  backend.coverage[0].backend = "kerntrail_spyre";
  EXPECT_EQ(failed(judge(capture, backend)), Words{"no-compile"});
  GateConfig every = asking(0.0);
  every.coverage[0].stages = {"*"};
  every.coverage[0].fields = {"debug_handle"};
  EXPECT_EQ(failed(judge(capture, every)), Words{"missing-field"});
  every.coverage[0].fields = {"stack_trace", "orgins"};
  EXPECT_EQ(failed(judge(capture, every)), Words{"missing-field"}) << "beside one that is there";
  GateConfig drops = dropping();
  drops.drops[0].stages = {"kernel"};
  EXPECT_FALSE(judge(capture, drops).passed);
  drops.drops[0].stages.clear();
  drops.drops[0].fields = {"stack_tarce"};
  EXPECT_EQ(failed(judge(capture, drops)), Words{"missing-field"});
  GateConfig verified;
  verified.verified.push_back({{1, 1}, {"kernel"}, {}, {}, false, 0.5, {}});
  EXPECT_EQ(failed(judge(capture, verified)), Words{"no-witness"});
  GateConfig hook;
  hook.hooks.required = {"no_such_hook"};
  EXPECT_EQ(failed(judge(capture, hook)), Words{"hook-absent"});
}

TEST(GateFailsClosed, NothingCompiledTornPartialAndUnseen) {
  const auto rules = [](testing::CaptureBuilder& b, bool complete, bool cut) {
    Capture capture = b.finish(complete);
    if (cut) capture.end.reset();
    GateInput input;
    input.today = kToday;
    const auto result = gate(capture, {}, input);
    std::vector<std::string> out;
    for (const GateFinding& finding : result->findings) out.push_back(finding.rule);
    EXPECT_FALSE(result->passed);
    EXPECT_FALSE(result->whole);
    return out;
  };
  using Words = std::vector<std::string>;
  testing::CaptureBuilder empty;
  EXPECT_EQ(rules(empty, true, false), Words{"no-compile"});
  testing::CaptureBuilder cut;
  EXPECT_EQ(rules(cut, true, true), (Words{"torn-capture", "no-compile"}));
  testing::CaptureBuilder partial;
  EXPECT_EQ(rules(partial, false, false), (Words{"partial-capture", "no-compile"}));
  testing::CaptureBuilder hit;
  const CompileId compile = hit.compile("inductor");
  hit.recorder().note({"not-observed", Severity::kWarning, "not observed: cache hit", compile, GraphId::kNone});
  EXPECT_EQ(rules(hit, true, false), Words{"not-observed"});
}

TEST(GateFailsClosed, PassesAreNeededForRulesAboutThem) {
  testing::CaptureBuilder b(Settings{{"level", "borders"}});
  const GraphId graph = b.graph(b.compile("inductor"), "fx", "inference");
  const UnitId unit = b.unit(graph, UnitKind::kFxNode);
  b.snapshot("fx_aten", graph, {b.seen(unit).text("name", "x").text("op", "call_function").stack("m.py", 1, "x")});
  const Capture capture = b.finish();
  GateInput input;
  input.today = kToday;
  for (const char* word : {"a", "overwritten"}) {
    GateConfig config;
    config.drops.push_back({{1, 1}, {word}, {}, {}, {}, 0.0});
    const auto result = gate(capture, config, input);
    ASSERT_TRUE(result);
    EXPECT_FALSE(result->passed) << word;
    EXPECT_EQ(result->findings[0].rule, "no-passes");
  }
}

TEST(GateFailsClosed, HooksThatFailedErredOrStayed) {
  const auto rules = [](HookRecord hook, HookRule rule) {
    testing::CaptureBuilder b;
    const GraphId graph = b.graph(b.compile("inductor"), "fx", "inference");
    const UnitId unit = b.unit(graph, UnitKind::kFxNode);
    b.snapshot("fx_aten", graph, {b.seen(unit).text("name", "x").text("op", "call_function")});
    Capture capture = b.finish();
    capture.hooks = {std::move(hook)};
    GateConfig config;
    config.hooks = std::move(rule);
    GateInput input;
    input.today = kToday;
    std::vector<std::string> out;
    const auto result = gate(capture, config, input);
    EXPECT_TRUE(result);
    for (const GateFinding& finding : result->findings) out.push_back(finding.rule);
    return out;
  };
  using Words = std::vector<std::string>;
  const HookRecord sound{"kernel", "torch.kernel", HookState::kInstalled, "", "", 3, 0, "", true};
  HookRecord absent = sound;
  absent.state = HookState::kAbsent;
  HookRecord broken = sound;
  broken.state = HookState::kFailed;
  HookRecord erred = sound;
  erred.errors = 2;
  HookRecord stayed = sound;
  stayed.restored = false;
  HookRecord silent = sound;
  silent.fired = 0;
  EXPECT_EQ(rules(sound, {}), Words{});
  EXPECT_EQ(rules(absent, {}), Words{});
  EXPECT_EQ(rules(broken, {}), Words{"hook-failed"});
  EXPECT_EQ(rules(erred, {}), Words{"hook-errors"});
  EXPECT_EQ(rules(stayed, {}), Words{"hook-not-restored"});
  HookRule strict;
  strict.absent = true;
  EXPECT_EQ(rules(absent, strict), Words{"hook-absent"});
  strict.expected_absent = {"torch.k*"};
  EXPECT_EQ(rules(absent, strict), Words{});
  HookRule required;
  required.required = {"kernel"};
  EXPECT_EQ(rules(sound, required), Words{});
  EXPECT_EQ(rules(silent, required), Words{"hook-silent"});
  EXPECT_EQ(rules(absent, required), Words{"hook-absent"});
}

// ---- the baseline file ----

TEST(GateBaselineFile, DamageIsRefusedWithItsPlace) {
  const std::string whole = baseline_json({{{"model", "m"}},
                                           {"m.py"},
                                           {{"", "s", "f", 0.5}},
                                           {{"0123456789abcdef", "reason/dropped", "", "f", "pass p", 0.1}},
                                           true,
                                           {{"kernel", "loop", "origins", "lines", 1.0, 0.5}}});
  ASSERT_TRUE(parse_baseline(whole, "b.json"));
  const auto damaged = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto read = parse_baseline(text, "b.json");
    EXPECT_FALSE(read) << to;
    return read ? Error{} : read.error();
  };
  EXPECT_EQ(damaged("\"version\": 1", "\"version\": 2").code, ErrorCode::kTooNew);
  EXPECT_NE(damaged("kerntrail-gate-baseline", "kerntrail-drops").text().find("not a baseline"), std::string::npos);
  const Error ratio = damaged("\"ratio\": 0.5", "\"ratio\": 1.5");
  EXPECT_NE(ratio.text().find("coverage[0].ratio: must be a ratio"), std::string::npos) << ratio.text();
  EXPECT_GT(ratio.line, 5U);
  EXPECT_NE(damaged("\"site\": \"pass p\"", "\"site\": 3").text().find("losses[0].site: must be a text"),
            std::string::npos);
  EXPECT_NE(damaged("\"witnessed\": true", "\"witnessed\": 1").text().find("witnessed"), std::string::npos);
  for (std::size_t n = 0; n + 2 < whole.size(); n += 7) EXPECT_FALSE(parse_baseline(whole.substr(0, n), "b.json")) << n;
}

TEST(GateDays, AreCountedOverMonthsAndYears) {
  EXPECT_EQ(analyse::day_after("2026-12-25", 14), "2027-01-08");
  EXPECT_EQ(analyse::day_after("2028-02-20", 14), "2028-03-05");
  EXPECT_EQ(analyse::day_after("not a day!", 14), "not a day!");
}

TEST(GatePatterns, PassesAreNamedWhollyInPartAndByPattern) {
  EXPECT_TRUE(analyse::pass_matches("outer / inner", "inner"));
  EXPECT_TRUE(analyse::pass_matches("outer / inner", "outer / inner"));
  EXPECT_TRUE(analyse::pass_matches("outer / inner", "in*"));
  EXPECT_TRUE(analyse::pass_matches("outer / inner", "*"));
  EXPECT_FALSE(analyse::pass_matches("outer / inner", "outer"));
  EXPECT_FALSE(analyse::pass_matches("outer / inner", "nne"));
}

}  // namespace
}  // namespace kerntrail
