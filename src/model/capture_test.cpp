#include "kerntrail/capture.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "model/records.h"

namespace kerntrail {
namespace {

template <class Id>
Id id(std::uint32_t n) {
  return static_cast<Id>(n);
}

Observation present(std::uint32_t text) {
  Observation o;
  o.state = State::kPresent;
  o.text = id<TextId>(text);
  return o;
}

template <class Enum, class Name, class FromName>
void expect_names(int count, Name name, FromName from_name) {
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(i);
    EXPECT_EQ(from_name(name(value)), value) << name(value);
  }
  EXPECT_FALSE(from_name("no such name").has_value());
  EXPECT_FALSE(from_name("").has_value());
}

TEST(Names, EveryEnumeratorHasASpellingThatReadsBack) {
  expect_names<ValueType>(10, value_type_name, value_type_from_name);
  expect_names<State>(4, state_name, state_from_name);
  expect_names<HookState>(3, hook_state_name, hook_state_from_name);
  expect_names<LocKind>(5, loc_kind_name, loc_kind_from_name);
  expect_names<FrameClass>(5, frame_class_name, frame_class_from_name);
  expect_names<FrameRule>(6, frame_rule_name, frame_rule_from_name);
  expect_names<UnitKind>(8, unit_kind_name, unit_kind_from_name);
  expect_names<Severity>(3, severity_name, severity_from_name);
  expect_names<model::RecordKind>(17, model::record_kind_name, model::record_kind_from_name);
}

TEST(Names, SpellingsStandForTheRightValues) {
  EXPECT_EQ(state_name(State::kNoSlot), "no_slot");
  EXPECT_EQ(value_type_name(ValueType::kNodeSources), "node_sources");
  EXPECT_EQ(unit_kind_name(UnitKind::kKernelCall), "kernel_call");
  EXPECT_EQ(frame_rule_name(FrameRule::kNotAFile), "not_a_file");
  EXPECT_EQ(model::record_kind_name(model::RecordKind::kAttrKind), "attr_kind");
  std::string letters;
  for (int i = 0; i < 8; ++i) letters += unit_kind_letter(static_cast<UnitKind>(i));
  EXPECT_EQ(letters, "nospklfu");
}

TEST(Capture, FindsTheVersionInForce) {
  Capture c;
  const auto unit = id<UnitId>(2);
  const auto attr = id<AttrId>(5);
  c.set(unit, attr, id<SnapshotId>(1), present(10));
  c.set(unit, attr, id<SnapshotId>(4), Observation{});
  c.set(unit, attr, id<SnapshotId>(6), present(11));
  EXPECT_EQ(c.at(unit, attr, id<SnapshotId>(0)), nullptr);
  EXPECT_EQ(c.at(unit, attr, id<SnapshotId>(1))->text, id<TextId>(10));
  EXPECT_EQ(c.at(unit, attr, id<SnapshotId>(3))->text, id<TextId>(10));
  EXPECT_EQ(c.at(unit, attr, id<SnapshotId>(4)), nullptr);
  EXPECT_EQ(c.at(unit, attr, id<SnapshotId>(99))->text, id<TextId>(11));
  EXPECT_EQ(c.at(unit, id<AttrId>(4), id<SnapshotId>(9)), nullptr);
  EXPECT_EQ(c.at(id<UnitId>(77), attr, id<SnapshotId>(9)), nullptr);
}

// Against a plain map from (unit, attr, snapshot) to what was set.
RC_GTEST_PROP(Capture, AgreesWithANaiveTable,
              (const std::vector<std::tuple<std::uint8_t, std::uint8_t, std::uint8_t, std::uint8_t>>& sets)) {
  Capture c;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Observation> table;
  for (const auto& [u, a, s, t] : sets) {
    const Observation value = t % 4 == 0 ? Observation{} : present(t);
    c.set(id<UnitId>(u % 3), id<AttrId>(a % 4), id<SnapshotId>(s % 8), value);
    table[{u % 3U, a % 4U, s % 8U}] = value;
  }
  for (std::uint32_t u = 0; u < 3; ++u) {
    for (std::uint32_t s = 0; s < 8; ++s) {
      std::vector<std::pair<AttrId, Observation>> expected;
      for (std::uint32_t a = 0; a < 4; ++a) {
        const Observation* last = nullptr;
        for (std::uint32_t t = 0; t <= s; ++t) {
          if (const auto found = table.find({u, a, t}); found != table.end()) last = &found->second;
        }
        const bool there = last && last->state != State::kNoSlot;
        const Observation* got = c.at(id<UnitId>(u), id<AttrId>(a), id<SnapshotId>(s));
        RC_ASSERT((got != nullptr) == there);
        if (there) RC_ASSERT(*got == *last);
        if (there) expected.emplace_back(id<AttrId>(a), *last);
      }
      const auto all = c.attrs_at(id<UnitId>(u), id<SnapshotId>(s));
      RC_ASSERT(all.size() == expected.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        RC_ASSERT(all[i].first == expected[i].first && *all[i].second == expected[i].second);
    }
  }
}

Loc range(FrameClass frame_class, std::int64_t line) {
  Loc l;
  l.kind = LocKind::kRange;
  l.frame_class = frame_class;
  l.line = line;
  return l;
}

TEST(Capture, FindsTheInnermostUserFrame) {
  Capture c;
  c.locs = {range(FrameClass::kLibrary, 1), range(FrameClass::kUser, 2), range(FrameClass::kUser, 3), {}, {}, {}, {}};
  c.locs[3].kind = LocKind::kCall;  // 1 called by 2
  c.locs[3].child = id<LocId>(0);
  c.locs[3].caller = id<LocId>(1);
  c.locs[4].kind = LocKind::kCall;  // 1 called by 2 called by 3
  c.locs[4].child = id<LocId>(3);
  c.locs[4].caller = id<LocId>(2);
  c.locs[5].kind = LocKind::kNamed;
  c.locs[5].child = id<LocId>(4);
  c.locs[6].kind = LocKind::kFused;
  c.locs[6].parts = {id<LocId>(0), id<LocId>(2)};
  EXPECT_EQ(c.innermost_user(id<LocId>(0))->line, 1);  // no user frame: the innermost of all
  EXPECT_EQ(c.innermost_user(id<LocId>(4))->line, 2);
  EXPECT_EQ(c.innermost_user(id<LocId>(5))->line, 2);
  EXPECT_EQ(c.innermost_user(id<LocId>(6))->line, 3);
  EXPECT_EQ(c.innermost_user(LocId::kNone), nullptr);
}

TEST(Capture, StopsAtACycleAndAtSharedParts) {
  Capture c;
  c.locs.resize(1);
  c.locs[0].kind = LocKind::kCall;
  c.locs[0].child = c.locs[0].caller = id<LocId>(0);
  EXPECT_EQ(c.innermost_user(id<LocId>(0)), nullptr);
  for (std::uint32_t i = 1; i < 64; ++i) {  // 2^63 paths
    Loc l;
    l.kind = LocKind::kFused;
    l.parts = {id<LocId>(i - 1), id<LocId>(i - 1)};
    c.locs.push_back(l);
  }
  c.locs[0] = Loc{};
  EXPECT_EQ(c.innermost_user(id<LocId>(63)), nullptr);
}

TEST(Capture, ColumnsFollowTheOrderOfStages) {
  Capture c;
  c.stages = {{"late", "", "", "", 50}, {"early", "", "", "", 10}, {"also late", "", "", "", 50}};
  EXPECT_EQ(c.stages_in_order(), (std::vector<StageId>{id<StageId>(1), id<StageId>(0), id<StageId>(2)}));
  EXPECT_EQ(c.find_stage("late"), id<StageId>(0));
  EXPECT_FALSE(c.find_stage("none").has_value());
}

}  // namespace
}  // namespace kerntrail
