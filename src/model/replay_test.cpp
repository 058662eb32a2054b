#include "model/replay.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/capture_fixtures.h"
#include "model/digest.h"
#include "model/recorder.h"

namespace kerntrail::model {
namespace {

template <class Id>
Id id(std::uint32_t n) {
  return static_cast<Id>(n);
}

// A valid start: one stage, one attr, a text, two compiles with a graph and a unit each.
void begin(Replay& r) {
  r.run({});
  r.stage(id<StageId>(0), {"s", "", "", "", 0});
  r.attr_kind(id<AttrId>(0), {"a", ValueType::kText, "", "", false});
  r.text(id<TextId>(0), "x", false);
  for (std::uint32_t i = 0; i < 2; ++i) {
    r.compile(id<CompileId>(i), {});
    r.graph(id<GraphId>(i), {id<CompileId>(i), 0, "fx", "", ""});
    r.unit(id<UnitId>(i), {id<GraphId>(i), UnitKind::kFxNode, 0, ""});
  }
}

AttrChange change(std::uint32_t unit, std::uint32_t attr, std::uint32_t at) {
  AttrChange c{id<UnitId>(unit), id<AttrId>(attr), id<SnapshotId>(at), {}};
  c.value.state = State::kPresent;
  return c;
}

Snapshot snapshot(std::vector<UnitId> units) { return {id<StageId>(0), id<GraphId>(0), std::move(units), 0, false}; }

Pass pass_on(std::uint32_t graph) {
  Pass pass;
  pass.graph = id<GraphId>(graph);
  return pass;
}

// Of a look at nothing.
std::uint64_t empty_digest() {
  const ContentHashes hashes;
  return SnapshotDigest(hashes).finish();
}

struct Case {
  const char* name;
  ErrorCode code;
  const char* message;
  std::function<void(Replay&)> act;
};

std::vector<Case> cases() {
  using C = ErrorCode;
  return {
      {"TextTwice", C::kReference, "text 0 was declared before", [](Replay& r) { r.text(id<TextId>(0), "y", false); }},
      {"TextHole", C::kReference, "text 5 is declared where text 1 comes next",
       [](Replay& r) { r.text(id<TextId>(5), "y", false); }},
      {"StageTwice", C::kReference, "stage \"s\" was declared before",
       [](Replay& r) { r.stage(id<StageId>(1), {"s", "", "", "", 0}); }},
      {"StageWithoutKey", C::kSchema, "a stage has an empty key", [](Replay& r) { r.stage(id<StageId>(1), {}); }},
      {"AttrTwice", C::kReference, "attr \"a\" was declared before",
       [](Replay& r) { r.attr_kind(id<AttrId>(1), {"a", ValueType::kText, "", "", false}); }},
      {"RunTwice", C::kSchema, "a second run record", [](Replay& r) { r.run({}); }},
      {"LocBeforeItsPart", C::kReference, "loc 3 was never declared",
       [](Replay& r) {
         Loc l;
         l.parts = {id<LocId>(3)};
         r.loc(id<LocId>(0), l);
       }},
      {"LocOfItself", C::kReference, "loc 0 was never declared",
       [](Replay& r) {
         Loc l;
         l.caller = id<LocId>(0);
         r.loc(id<LocId>(0), l);
       }},
      {"GraphHole", C::kReference, "c0 graph 4 is declared where c0 graph 1 comes next",
       [](Replay& r) { r.graph(id<GraphId>(2), {id<CompileId>(0), 4, "", "", ""}); }},
      {"GraphOfNoCompile", C::kReference, "a graph belongs to a compile that was never declared",
       [](Replay& r) { r.graph(id<GraphId>(2), {id<CompileId>(9), 0, "", "", ""}); }},
      {"UnitTwice", C::kReference, "c0 fx_node 0 was declared before",
       [](Replay& r) { r.unit(id<UnitId>(2), {id<GraphId>(0), UnitKind::kFxNode, 0, ""}); }},
      {"AttrOfNoUnit", C::kReference, "an attr belongs to a unit that was never declared",
       [](Replay& r) { r.attr(change(9, 0, 0)); }},
      {"AttrOfNoKind", C::kReference, "an attr is of a kind that was never declared",
       [](Replay& r) { r.attr(change(0, 9, 0)); }},
      {"AttrAtAnotherSnapshot", C::kReference, "an attr is seen at snapshot 4 where snapshot 0 comes next",
       [](Replay& r) { r.attr(change(0, 0, 4)); }},
      {"AttrWithUnknownRef", C::kReference, "refs names a unit that was never declared",
       [](Replay& r) {
         AttrChange c = change(0, 0, 0);
         c.value.refs = {id<UnitId>(7)};
         r.attr(c);
       }},
      {"AttrWithUnknownText", C::kReference, "text 7 was never declared",
       [](Replay& r) {
         AttrChange c = change(0, 0, 0);
         c.value.text = id<TextId>(7);
         r.attr(c);
       }},
      {"SnapshotTwiceTheUnit", C::kReference, "unit c0.n0 is in the snapshot twice",
       [](Replay& r) { r.snapshot(id<SnapshotId>(0), snapshot({id<UnitId>(0), id<UnitId>(0)})); }},
      {"SnapshotOfAnotherCompile", C::kReference, "unit c1.n0 is of another compile than graph c0.g0",
       [](Replay& r) { r.snapshot(id<SnapshotId>(0), snapshot({id<UnitId>(1)})); }},
      {"SnapshotWithoutTheAttrsUnit", C::kReference,
       "an attr of unit c0.n0 belongs to snapshot 0, which does not hold that unit",
       [](Replay& r) {
         r.attr(change(0, 0, 0));
         r.snapshot(id<SnapshotId>(0), snapshot({}));
       }},
      {"WrongDigest", C::kDigest,
       "snapshot 0 (stage \"s\", graph c0.g0) has digest 0000000000000000, but the records before it give",
       [](Replay& r) { r.snapshot(id<SnapshotId>(0), snapshot({id<UnitId>(0)})); }},
      {"SnapshotOfNothing", C::kSchema, "a snapshot is of a stage or of a pass, and not of both",
       [](Replay& r) { r.snapshot(id<SnapshotId>(0), {StageId::kNone, id<GraphId>(0), {}, 0, false}); }},
      {"LookOfNoPass", C::kReference, "pass 0 was never declared",
       [](Replay& r) {
         r.snapshot(id<SnapshotId>(0), {StageId::kNone, id<GraphId>(0), {}, 0, false, id<PassId>(0)});
       }},
      {"PassOnNoGraph", C::kReference, "a pass runs on a graph that was never declared",
       [](Replay& r) { r.pass(id<PassId>(0), {}, false); }},
      {"PassEndsOnly", C::kReference, "pass 0 ends but never began",
       [](Replay& r) { r.pass(id<PassId>(0), pass_on(0), true); }},
      {"PassEndsTwice", C::kReference, "pass 0 had ended",
       [](Replay& r) {
         r.pass(id<PassId>(0), pass_on(0), false);
         r.pass(id<PassId>(0), {}, true);
         r.pass(id<PassId>(0), {}, true);
       }},
      {"PassHole", C::kReference, "pass 3 is declared where pass 0 comes next",
       [](Replay& r) { r.pass(id<PassId>(3), pass_on(0), false); }},
      {"PassInNoPass", C::kReference, "pass 7 was never declared",
       [](Replay& r) {
         Pass pass = pass_on(0);
         pass.parent = id<PassId>(7);
         r.pass(id<PassId>(0), pass, false);
       }},
      {"PassMakesUnitsOfAnotherCompile", C::kReference, "unit c1.n0 is of another compile than the pass",
       [](Replay& r) {
         r.pass(id<PassId>(0), pass_on(0), false);
         Pass done;
         done.replaced = {{id<UnitId>(0), id<UnitId>(1)}};
         r.pass(id<PassId>(0), done, true);
       }},
      {"SecondLook", C::kReference, "pass 0 has a second look",
       [](Replay& r) {
         r.pass(id<PassId>(0), pass_on(0), false);
         for (std::uint32_t i = 0; i < 2; ++i)
           r.snapshot(id<SnapshotId>(i), {StageId::kNone, id<GraphId>(0), {}, empty_digest(), false, id<PassId>(0)});
       }},
      {"BirthOfNoUnit", C::kReference, "a birth names a unit that was never declared",
       [](Replay& r) { r.birth({id<UnitId>(9), PassId::kNone, "match", "", LocId::kNone, LocId::kNone, {}}); }},
      {"BirthWithoutEvidence", C::kSchema, "a birth has no evidence",
       [](Replay& r) { r.birth({id<UnitId>(0), PassId::kNone, "", "", LocId::kNone, LocId::kNone, {}}); }},
      {"ClaimOfNoKernel", C::kReference, "a claim names a unit that was never declared",
       [](Replay& r) { r.claim({id<UnitId>(5), "", "", {}}); }},
      {"NoteOfNoGraph", C::kReference, "a note names a compile or graph",
       [](Replay& r) { r.note({"c", Severity::kInfo, "", CompileId::kNone, id<GraphId>(9)}); }},
      {"HookEndsOnly", C::kReference, "hook \"h\" ends but never started",
       [](Replay& r) {
         HookRecord h;
         h.label = "h";
         r.hook(h, true);
       }},
      {"HookStartsTwice", C::kReference, "hook \"h\" was declared before",
       [](Replay& r) {
         HookRecord h;
         h.label = "h";
         r.hook(h, false);
         r.hook(h, false);
       }},
      {"EndWithWrongCount", C::kSchema, "the end record counts 7 text records, the file has 1",
       [](Replay& r) { r.end({true, {{"text", 7}}}); }},
      {"EndWithoutACount", C::kSchema, "the end record leaves out", [](Replay& r) { r.end({true, {}}); }},
      {"AttrBeforeTheEnd", C::kReference, "attr records before the end belong to no snapshot",
       [](Replay& r) {
         r.attr(change(0, 0, 0));
         r.end({true, {}});
       }},
      {"SourceChanges", C::kReference, "line 3 of source \"f\" was declared before with other text",
       [](Replay& r) {
         r.source({"f", "", {{3, "a"}}});
         r.source({"f", "", {{3, "b"}}});
       }},
  };
}

class ReplayRefuses : public testing::TestWithParam<Case> {};

TEST_P(ReplayRefuses, WithCodeMessageAndLine) {
  Replay r;
  begin(r);
  ASSERT_EQ(r.error(), nullptr) << r.error()->text();
  r.set_position("file", 41);
  GetParam().act(r);
  ASSERT_NE(r.error(), nullptr);
  EXPECT_EQ(r.error()->code, GetParam().code);
  EXPECT_EQ(r.error()->message.substr(0, std::string(GetParam().message).size()), GetParam().message);
  EXPECT_EQ(r.error()->path, "file");
  EXPECT_EQ(r.error()->line, 41U);
  // The first error stays.
  r.text(id<TextId>(99), "z", false);
  EXPECT_EQ(r.error()->line, 41U);
}

INSTANTIATE_TEST_SUITE_P(Rules, ReplayRefuses, testing::ValuesIn(cases()),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Replay, RunMustBeFirst) {
  Replay r;
  r.text(id<TextId>(0), "x", false);
  ASSERT_NE(r.error(), nullptr);
  EXPECT_EQ(r.error()->message, "the first record must be \"run\", not \"text\"");
}

TEST(Replay, NewerFormatIsNamedWithBothVersions) {
  Replay r;
  RunInfo run;
  run.format_version = 7;
  r.run(run);
  ASSERT_NE(r.error(), nullptr);
  EXPECT_EQ(r.error()->code, ErrorCode::kTooNew);
  EXPECT_EQ(r.error()->message, "has format version 7; this build reads up to version 1");
}

TEST(Replay, DigestsMayBeLeftUnchecked) {
  Replay r({.check_digests = false});
  begin(r);
  r.snapshot(id<SnapshotId>(0), snapshot({id<UnitId>(0)}));
  EXPECT_EQ(r.error(), nullptr);
}

TEST(Replay, FullSnapshotForgetsWhatItDoesNotName) {
  Replay r({.check_digests = false});
  begin(r);
  r.attr(change(0, 0, 0));
  r.snapshot(id<SnapshotId>(0), snapshot({id<UnitId>(0)}));
  Snapshot full = snapshot({id<UnitId>(0)});
  full.full = true;
  r.snapshot(id<SnapshotId>(1), full);
  ASSERT_EQ(r.error(), nullptr);
  EXPECT_NE(r.capture().at(id<UnitId>(0), id<AttrId>(0), id<SnapshotId>(0)), nullptr);
  EXPECT_EQ(r.capture().at(id<UnitId>(0), id<AttrId>(0), id<SnapshotId>(1)), nullptr);
}

TEST(Replay, ClosingHookRecordKeepsWhatTheStartSaid) {
  Replay r;
  Recorder recorder(r);
  fixtures::record_sample(recorder);
  ASSERT_EQ(r.error(), nullptr) << r.error()->text();
  const HookRecord& hook = r.capture().hooks[0];
  EXPECT_EQ(hook.attribute, "torch._inductor.compile_fx._recursive_post_grad_passes");
  EXPECT_EQ(hook.lost, "stage fx_post_grad");
  EXPECT_EQ(hook.fired, 1U);
  EXPECT_EQ(r.capture().hooks[1].state, HookState::kAbsent);
}

TEST(Digest, AttrsOfAUnitAreSummed) {
  ContentHashes hashes;
  hashes.add_text("x", false);
  hashes.add_unit("c0.n0");
  hashes.add_attr("a");
  hashes.add_attr("b");
  Observation x = change(0, 0, 0).value, nothing;
  Observation y = x;
  y.text = id<TextId>(0);
  const auto digest = [&](std::vector<std::pair<std::uint32_t, Observation>> attrs) {
    SnapshotDigest d(hashes);
    d.begin_unit(id<UnitId>(0));
    for (const auto& [attr, value] : attrs) d.add(id<AttrId>(attr), value);
    return d.finish();
  };
  EXPECT_EQ(digest({{0, x}, {1, y}}), digest({{1, y}, {0, x}}));
  EXPECT_NE(digest({{0, x}, {1, y}}), digest({{0, y}, {1, x}}));
  EXPECT_EQ(digest({{0, x}, {1, nothing}}), digest({{0, x}}));
  EXPECT_NE(digest({}), SnapshotDigest(hashes).finish());
}

}  // namespace
}  // namespace kerntrail::model
