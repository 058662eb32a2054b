// What may differ between two captures beside a lost field, planted one at a time: losses that moved, values that are
// wrong, claims that the witness contradicts, losses among units that can't be told apart.
#include <gtest/gtest.h>

#include "diff_program.h"
#include "kerntrail/diff.h"

namespace kerntrail {
namespace {

using testing::described;
using testing::expect_sums;
using testing::need;
using testing::Program;
using testing::Variant;

constexpr std::uint64_t kPrograms = 30;

// Other names, another order, other fusion: what is planted must be found in spite of them.
Variant other(std::uint64_t seed) {
  Variant out;
  out.seed = seed + 1;
  out.rename = out.reorder = out.refuse = true;
  out.shift = 7;
  return out;
}

Variant losing(Variant variant, int node) {
  variant.lost_node = node;
  variant.lost_field = "stack_trace";
  return variant;
}

struct Compared {
  Capture old, now;
  Diff result;

  const DiffPart& part() const { return result.parts.at(0); }
};

Compared compared(std::uint64_t seed, const Variant& first, const Variant& second) {
  Compared out{Program(seed, first).run(), Program(seed, second).run(), {}};
  out.result = need(out.old, out.now);
  expect_sums(out.result);
  EXPECT_EQ(out.result.parts.size(), 1U) << "seed " << seed;
  return out;
}

int made_node(std::uint64_t seed) {
  Program program(seed, {});
  program.run();
  return program.post_node("aten.mm");
}

TEST(DiffPlanted, ALossAtAnotherLineOfItsPassIsShifted) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const int mm = made_node(seed);
    Variant second = losing(other(seed), mm);
    second.pass_line = 12;
    const Compared both = compared(seed, losing({}, mm), second);
    const DiffPart& part = both.part();
    ASSERT_EQ(part.drops.size(), 1U) << "seed " << seed << "\n" << described(both.result);
    EXPECT_EQ(part.drops[0].change, DropChange::kShifted);
    ASSERT_NE(part.drops[0].old_site, kNoIndex);
    ASSERT_NE(part.drops[0].new_site, kNoIndex);
    EXPECT_EQ(part.sites[part.drops[0].old_site].place, "torch/decompose.py:7 (decompose)");
    EXPECT_EQ(part.sites[part.drops[0].new_site].place, "torch/decompose.py:12 (decompose)");
    EXPECT_TRUE(part.fields.empty());
    EXPECT_TRUE(both.result.totals.same()) << "a line that moved is no news";
  }
}

TEST(DiffPlanted, AnotherFolderIsTheSamePlace) {
  const int mm = made_node(3);
  Variant second = losing(other(3), mm);
  second.pass_file = "/venv/torch/decompose.py";
  EXPECT_TRUE(compared(3, losing({}, mm), second).part().drops.empty());
}

TEST(DiffPlanted, ALossInAnotherPassHasMoved) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    const int mm = made_node(seed);
    Variant second = losing(other(seed), mm);
    second.pass_name = "fold";
    const Compared both = compared(seed, losing({}, mm), second);
    const DiffPart& part = both.part();
    ASSERT_EQ(part.drops.size(), 1U) << "seed " << seed;
    EXPECT_EQ(part.drops[0].change, DropChange::kMoved);
    EXPECT_EQ(part.sites[part.drops[0].old_site].path, "decompose");
    EXPECT_FALSE(part.sites[part.drops[0].old_site].in_other);
    EXPECT_EQ(part.sites[part.drops[0].new_site].path, "fold");
    ASSERT_EQ(part.drops[0].units.size(), 1U);
    EXPECT_EQ(part.drops[0].units[0].second, std::vector<std::string>{"stack_trace"});
    EXPECT_TRUE(part.fields.empty());
    EXPECT_EQ(both.result.totals.drops_moved, 1U);
    EXPECT_FALSE(both.result.totals.worse());
    EXPECT_FALSE(both.result.totals.same());
  }
}

TEST(DiffPlanted, ALossOfAUnitWithoutCounterpartStandsApart) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Variant second = other(seed);
    second.neg = true;
    second.lost_field = "stack_trace";
    const Compared both = compared(seed, {}, second);
    const DiffPart& part = both.part();
    ASSERT_EQ(part.drops.size(), 1U) << "seed " << seed << "\n" << described(both.result);
    EXPECT_EQ(part.drops[0].change, DropChange::kApart);
    EXPECT_EQ(part.sites[part.drops[0].new_site].path, "decompose");
    ASSERT_EQ(part.drops[0].units.size(), 1U);
    const UnitPair& units = part.drops[0].units[0].first;
    EXPECT_FALSE(has(units.old_unit));
    EXPECT_EQ(part.new_labels.at(units.new_unit).target, "aten.neg");
    EXPECT_TRUE(part.fields.empty());
    EXPECT_EQ(both.result.totals.fields_lost, 0U);
  }
}

TEST(DiffPlanted, AStackThatNamesAnotherLineIsAValueThatChanged) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Program probe(seed, {});
    probe.run();
    Variant second = other(seed);
    second.misnamed_node = static_cast<int>(probe.post_nodes()) - 1;
    Compared both = compared(seed, {}, second);
    const DiffPart& part = both.part();
    Program after(seed, second);
    after.run();
    const UnitId wrong = after.post_unit(probe.post_nodes() - 1);
    if (part.values.empty()) {  // the first line is the last one too: the layers are one loop
      EXPECT_TRUE(both.result.totals.same());
      continue;
    }
    ASSERT_EQ(part.values.size(), 1U) << "seed " << seed << "\n" << described(both.result);
    EXPECT_EQ(part.values[0].units.new_unit, wrong);
    EXPECT_EQ(part.values[0].stage, "fx_post_grad");
    EXPECT_NE(part.values[0].was_code, part.values[0].now_code);
    EXPECT_EQ(part.values[0].followers, 0U);
    // An overwritten value is worse than none.
    ASSERT_EQ(part.qualities.size(), 1U) << "seed " << seed;
    EXPECT_EQ(part.qualities[0].was, Quality::kKept);
    EXPECT_EQ(part.qualities[0].now, Quality::kOverwritten);
    EXPECT_EQ(part.qualities[0].field, "stack_trace");
    EXPECT_TRUE(both.result.totals.worse());
    EXPECT_EQ(both.result.totals.doubts_new, 1U);
    // The other way round it was mended.
    const Diff back = need(both.now, both.old);
    EXPECT_EQ(back.totals.doubts_new, 0U);
    EXPECT_EQ(back.totals.doubts_gone, 1U);
    EXPECT_FALSE(back.totals.worse());
  }
}

TEST(DiffPlanted, AModelWithALayerMoreIsCompared) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Variant second = other(seed);
    second.more_layers = 1;
    const Compared both = compared(seed, {}, second);
    EXPECT_TRUE(incomparable(both.old, both.now).empty()) << "seed " << seed;
    EXPECT_EQ(both.result.totals.fields_lost, 0U) << "seed " << seed << "\n" << described(both.result);
    EXPECT_GT(both.result.totals.only_new, 0U) << "seed " << seed;
    EXPECT_EQ(both.result.totals.drops_new + both.result.totals.drops_moved, 0U) << "seed " << seed;
    EXPECT_FALSE(both.result.totals.worse()) << "seed " << seed << "\n" << described(both.result);
    EXPECT_TRUE(both.part().values.empty()) << "seed " << seed << ": each layer is its own counterpart";
  }
}

Variant witnessed(Variant variant) {
  variant.settings = {{"level", "truth"}, {"provenance_level", "0"}};
  variant.witnessed = true;
  return variant;
}

// Claimed nodes that the witness contradicts.
std::size_t contradicted(const DiffPart& part, Score TruthRow::* score) {
  Score all;
  for (const TruthRow& row : part.truth) all += row.*score;
  return all.total() - all.right();
}

TEST(DiffPlanted, TruthIsBetterOrWorseByTheWitness) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Variant second = witnessed(other(seed));
    second.refuse = false;  // the kernels are the same ones
    second.false_claim = 0;
    const Compared both = compared(seed, witnessed({}), second);
    const DiffPart& part = both.part();
    EXPECT_TRUE(part.witnessed);
    EXPECT_EQ(both.result.not_witnessed, 0U);
    EXPECT_EQ(contradicted(part, &TruthRow::old_nodes), 0U) << "seed " << seed;
    EXPECT_GE(contradicted(part, &TruthRow::new_nodes), 1U) << "seed " << seed;
    ASSERT_FALSE(part.contradictions.empty()) << "seed " << seed << "\n" << described(both.result);
    for (const TruthDiff& one : part.contradictions) {
      EXPECT_TRUE(one.in_new);
      EXPECT_EQ(one.evidence, "origins");
      EXPECT_FALSE(one.what.empty());
      EXPECT_TRUE(has(one.units.new_unit));
    }
    EXPECT_TRUE(both.result.totals.worse());
    EXPECT_EQ(both.result.totals.doubts_new, part.contradictions.size());
    const Diff back = need(both.now, both.old);
    EXPECT_EQ(back.totals.doubts_gone, part.contradictions.size());
    EXPECT_EQ(back.totals.doubts_new, 0U);
    // What both claim falsely is no difference.
    Variant first = witnessed({});
    first.false_claim = 0;
    EXPECT_TRUE(compared(seed, first, second).part().contradictions.empty()) << "seed " << seed;
  }
}

TEST(DiffPlanted, ACaptureWithoutAWitnessIsSaidToHaveNone) {
  const Capture plain = Program(1, {}).run();
  const Capture truth = Program(1, witnessed({})).run();
  EXPECT_EQ(need(plain, truth).not_witnessed, 1U);
  EXPECT_EQ(need(truth, plain).not_witnessed, 2U);
}

TEST(DiffPlanted, ALossAmongTwinsIsFoundAndGivenToTheGroup) {
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    Variant first;
    first.twins = true;
    Variant second = other(seed);
    second.twins = true;
    {
      const Compared both = compared(seed, first, second);
      EXPECT_TRUE(both.result.totals.same()) << "seed " << seed << "\n" << described(both.result);
    }
    second.twin_loses = true;
    second.lost_field = "stack_trace";
    const Compared both = compared(seed, first, second);
    const DiffPart& part = both.part();
    ASSERT_EQ(part.fields.size(), 1U) << "seed " << seed << "\n" << described(both.result);
    EXPECT_EQ(part.fields[0].change, Change::kLost);
    EXPECT_EQ(part.fields[0].of_group, 2U);
    EXPECT_EQ(part.fields[0].affected, 1U);
    EXPECT_FALSE(has(part.fields[0].units.old_unit)) << "which of the two it was can't be told";
    EXPECT_EQ(part.new_labels.at(part.fields[0].units.new_unit).target, "aten.check");
    EXPECT_EQ(both.result.totals.fields_lost, 1U);
    // Both lose it: both do.
    first.twin_loses = true;
    first.lost_field = "stack_trace";
    EXPECT_EQ(need(Program(seed, first).run(), both.now).totals.fields_lost, 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace kerntrail
