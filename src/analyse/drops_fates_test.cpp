// Each fate planted in a small capture; the answer must name exactly that.
#include <fmt/format.h>

#include "drops_fixture.h"

#include <map>

namespace kerntrail {
namespace {

using testing::CaptureBuilder;
using testing::DropsTest;
using Seen = CaptureBuilder::Seen;

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

TEST_F(DropsTest, WhatIsReadButNotSeenAgainIsNotDead) {
  const UnitId read = fresh(), reader = fresh(), unread = fresh();
  const PassId outer = begin_on(graph_, "post_grad_passes", "", PassId::kNone, PassKind::kStage);
  b_.recorder().end_pass(outer, {});
  b_.snapshot("fx_aten", graph_,
              {aten(a_, "sin", 1), aten(read, "saved", 1, {a_}), aten(reader, "backward", 1, {read}),
               aten(unread, "nothing", 1, {a_})});
  b_.recorder().note({"backward-not-observed", Severity::kInfo, "never run", compile_, GraphId::kNone});
  const GraphId forward = b_.graph(compile_, "fx", "forward");
  const UnitId copy = b_.unit(forward, UnitKind::kFxNode);
  born({copy, PassId::kNone, "copy", "", LocId::kNone, LocId::kNone, {a_}});
  b_.snapshot("fx_post_grad", forward, {aten(copy, "sin", 1)});
  const Drops found = judged();
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_EQ(found.notes[0].code, "backward-not-observed");
  std::map<UnitId, Fate> fates;
  for (const UnitFate& fate : found.intervals.back().leavers) fates[fate.unit] = fate.fate;
  EXPECT_EQ(fates[a_], Fate::kReplaced);
  EXPECT_EQ(fates[read], Fate::kUnseen);
  EXPECT_EQ(fates[reader], Fate::kDead) << "nothing reads it";
  EXPECT_EQ(fates[unread], Fate::kDead);
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

}  // namespace
}  // namespace kerntrail
