// Each broken rule of a pass over IR planted in a small capture; the answer must name exactly that.
#include "drops_fixture.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;
using testing::DropsTest;
using Seen = CaptureBuilder::Seen;

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

}  // namespace
}  // namespace kerntrail
