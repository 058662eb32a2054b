#include "analyse/ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "analyse/synthetic.h"

namespace kerntrail::analyse {
namespace {

const std::vector<HeldField> kFields{{"stack_trace", 0}, {"from_node", 0}};

// x -> a -> b -> (output), and c, which uses a too: keys 1 to 4.
PassObservation chain() {
  PassObservation out;
  out.pass = "pass";
  out.tag = "t";
  out.given = {{"x", {}, {2}, false, kFields},
               {"a", {1}, {3, 4}, true, kFields},
               {"b", {2}, {0}, true, kFields},
               {"c", {2}, {0}, true, kFields}};
  return out;
}

NodeAfter naming(NodeKey key, std::vector<std::uint32_t> ids) {
  NodeAfter out;
  out.key = key;
  out.fields = kFields;
  std::string stack;
  for (const std::uint32_t id : ids) {
    stack += synthetic_stack("t", id, "n");
    out.from_node.push_back(synthetic_source("t", id));
  }
  if (!ids.empty()) out.stack_trace = stack;
  return out;
}

std::string fates(const PassObservation& seen) {
  const auto ledger = judge_pass(seen);
  if (!ledger) return ledger.error().text();
  std::string out;
  for (const LedgerEntry& entry : ledger->entries)
    out += (out.empty() ? "" : " ") + entry.node + ":" + std::string(id_fate_name(entry.fate));
  for (const FabricatedNode& node : ledger->fabricated) out += " +" + node.node;
  return out;
}

TEST(Ledger, APassThatDoesNothing) {
  PassObservation seen = chain();
  seen.after = {naming(1, {1}), naming(2, {2}), naming(3, {3}), naming(4, {4})};
  EXPECT_EQ(fates(seen), "x:survived a:survived b:survived c:survived");
}

TEST(Ledger, ANewNodeThatNamesTheOldOneCarriesIt) {
  PassObservation seen = chain();
  seen.made = {{"k", "p.py:7"}};
  seen.replaced = {{3, 5, "p.py:8"}};
  seen.erased = {{3, "p.py:9"}};
  seen.after = {naming(1, {1}), naming(2, {2}), naming(5, {3}), naming(4, {4})};
  EXPECT_EQ(fates(seen), "x:survived a:survived b:carried c:survived");
  EXPECT_EQ(judge_pass(seen)->entries[2].loc, "p.py:7");
  seen.after[2].stack_trace.reset();  // from_node still names it
  EXPECT_EQ(judge_pass(seen)->entries[2].without, std::vector<std::string>{"stack_trace"});
  EXPECT_EQ(judge_pass(seen)->entries[2].fate, IdFate::kCarried);
}

TEST(Ledger, ANewNodeThatNamesNothingLosesIt) {
  PassObservation seen = chain();
  seen.made = {{"k", "p.py:7"}};
  seen.replaced = {{3, 5, "p.py:8"}};
  seen.erased = {{3, "p.py:9"}};
  seen.after = {naming(1, {1}), naming(2, {2}), naming(5, {}), naming(4, {4})};
  EXPECT_EQ(fates(seen), "x:survived a:survived b:lost c:survived +k");
  EXPECT_EQ(judge_pass(seen)->entries[2].loc, "p.py:7");
  EXPECT_EQ(judge_pass(seen)->fabricated[0].why, "names no source");
}

TEST(Ledger, IdsThatNobodyGaveAreFabricated) {
  PassObservation seen = chain();
  seen.made = {{"k", ""}, {"m", ""}};
  seen.after = {naming(1, {1}), naming(2, {2}), naming(3, {3}), naming(4, {4}), naming(5, {9}), naming(6, {0})};
  seen.after.back().stack_trace = synthetic_stack("another", 1, "n");
  seen.after.back().from_node = {synthetic_source("t", 1)};  // the stack decides
  EXPECT_EQ(fates(seen), "x:survived a:survived b:survived c:survived +k +m");
  EXPECT_EQ(judge_pass(seen)->fabricated[1].why, "names a source that nobody gave");
}

TEST(Ledger, SwappedAndTakenAwayInPlace) {
  PassObservation seen = chain();
  seen.written = {{3, "p.py:1"}, {4, "p.py:2"}, {2, "p.py:3"}};
  seen.after = {naming(1, {1}), naming(2, {}), naming(3, {4}), naming(4, {3})};
  EXPECT_EQ(fates(seen), "x:survived a:lost b:overwritten c:overwritten");
  const auto ledger = judge_pass(seen);
  EXPECT_EQ(ledger->entries[1].loc, "p.py:3");
  EXPECT_EQ(ledger->entries[2].loc, "p.py:1");
  EXPECT_TRUE(ledger->entries[2].is_named);
}

TEST(Ledger, OtherFieldsAreJudgedByValue) {
  PassObservation seen = chain();
  seen.given[2].fields = {{"original_aten", 4}, {"nn_module_stack", 1}};
  seen.given[3].fields = {{"original_aten", 5}, {"nn_module_stack", 1}};
  seen.made = {{"k", "p.py:7"}};
  seen.after = {naming(1, {1}), naming(2, {2}), naming(5, {3}), naming(4, {4})};
  seen.after[2].fields = {{"original_aten", 5}, {"nn_module_stack", 1}};
  seen.after[3].fields = {{"original_aten", 6}, {"nn_module_stack", 1}};
  seen.written = {{4, "p.py:9"}};
  const auto ledger = judge_pass(seen);
  EXPECT_EQ(ledger->entries[2].altered, std::vector<std::string>{"original_aten"});
  EXPECT_EQ(ledger->entries[3].altered, std::vector<std::string>{"original_aten"});
  EXPECT_EQ(ledger->entries[3].fate, IdFate::kSurvived);
  EXPECT_EQ(ledger->entries[3].loc, "p.py:9");
  seen.after[2] = naming(5, {3, 4});  // names both: the value of either is right
  seen.after[2].fields = {{"original_aten", 5}, {"nn_module_stack", 1}};
  EXPECT_TRUE(judge_pass(seen)->entries[2].altered.empty());
}

TEST(Ledger, FaultsAndWhatIsAllowed) {
  Ledger ledger;
  ledger.entries.resize(5);
  const IdFate fates[] = {IdFate::kLost, IdFate::kMerged, IdFate::kMerged, IdFate::kSurvived, IdFate::kSurvived};
  for (std::size_t i = 0; i < 5; ++i) {
    ledger.entries[i].fate = fates[i];
    ledger.entries[i].node = "n" + std::to_string(i);
  }
  ledger.entries[2].is_named = true;
  ledger.entries[3].without = {"from_node"};
  ledger.entries[4].altered = {"original_aten"};
  ledger.fabricated = {{"new", "", ""}};
  const auto kinds = [&](const FaultRules& rules) {
    std::string out;
    for (const LedgerFault& fault : ledger_faults(ledger, rules)) out += std::string(fault.kind) + " ";
    return out;
  };
  EXPECT_EQ(kinds({{"from_node", "original_aten"}, {}}), "lost merged incomplete altered fabricated ");
  EXPECT_EQ(kinds({{}, {}}), "lost merged fabricated ");
  EXPECT_EQ(kinds({{}, {"lost:n?", "merged:x*", "fabricated:*e*"}}), "merged ");
  EXPECT_EQ(allow_error("lost:mm*"), "");
  EXPECT_NE(allow_error("losst").find("'losst'"), std::string::npos);
}

TEST(Ledger, MergedWithAndWithoutItsName) {
  PassObservation seen = chain();
  seen.made = {{"k", "p.py:7"}};
  seen.replaced = {{3, 5, ""}, {4, 5, "p.py:8"}};
  seen.after = {naming(1, {1}), naming(2, {2}), naming(5, {3, 4})};
  EXPECT_EQ(fates(seen), "x:survived a:survived b:merged c:merged");
  EXPECT_TRUE(judge_pass(seen)->entries[3].is_named);
  seen.after.back() = naming(5, {3});
  EXPECT_EQ(fates(seen), "x:survived a:survived b:carried c:merged");
  EXPECT_FALSE(judge_pass(seen)->entries[3].is_named);
  // Into a node that was there.
  seen.made.clear();
  seen.replaced = {{4, 3, "p.py:8"}};
  seen.after.back() = naming(3, {3});
  EXPECT_EQ(fates(seen), "x:survived a:survived b:survived c:merged");
  seen.after.back() = naming(3, {3, 4});
  EXPECT_EQ(fates(seen), "x:survived a:survived b:survived c:merged");
  EXPECT_TRUE(judge_pass(seen)->entries[3].is_named);
}

TEST(Ledger, ElidedAndDead) {
  PassObservation seen = chain();
  seen.replaced = {{3, 2, "p.py:1"}, {4, 1, "p.py:2"}};
  seen.after = {naming(1, {1}), naming(2, {2})};
  EXPECT_EQ(fates(seen), "x:survived a:survived b:elided c:elided");
  // All that used a is gone: so may a be, but not what is impure.
  seen.replaced = {{3, 1, ""}, {4, 1, ""}};
  seen.erased = {{2, "p.py:3"}};
  seen.after = {naming(1, {1})};
  EXPECT_EQ(fates(seen), "x:survived a:elided b:elided c:elided");
  seen.given[1].is_pure = false;
  EXPECT_EQ(fates(seen), "x:survived a:lost b:elided c:elided");
  EXPECT_EQ(judge_pass(seen)->entries[1].loc, "p.py:3");
}

TEST(Ledger, WhatIsInsideAFusionIsLostUnlessNamed) {
  PassObservation seen = chain();
  seen.given[1].users = {3};
  seen.given.pop_back();
  seen.made = {{"fused", "p.py:7"}};
  seen.replaced = {{3, 4, ""}};
  seen.erased = {{3, ""}, {2, "p.py:9"}};
  seen.after = {naming(1, {1}), naming(4, {3})};
  EXPECT_EQ(fates(seen), "x:survived a:lost b:carried");
  EXPECT_EQ(judge_pass(seen)->entries[1].loc, "p.py:9");
}

TEST(Ledger, ErrorsForWhatDoesNotExist) {
  PassObservation seen = chain();
  seen.after = {naming(1, {1}), naming(1, {1})};
  EXPECT_EQ(judge_pass(seen).error().code, ErrorCode::kReference);
  seen.after = {naming(9, {1})};
  EXPECT_EQ(judge_pass(seen).error().code, ErrorCode::kReference);
  seen.after.clear();
  seen.replaced = {{1, 0, ""}};
  EXPECT_EQ(judge_pass(seen).error().code, ErrorCode::kReference);
}

// Whatever a pass did: an entry for each id, and each node after is kept, an heir or fabricated.
RC_GTEST_PROP(Ledger, SumsToIdsAndNodes, ()) {
  PassObservation seen = chain();
  const auto made = *rc::gen::inRange<std::size_t>(0, 4);
  for (std::size_t i = 0; i < made; ++i) seen.made.push_back({"m" + std::to_string(i), ""});
  const auto last = static_cast<NodeKey>(4 + made);
  const auto key = rc::gen::inRange<NodeKey>(1, last + 1);
  for (NodeKey node = 1; node <= last; ++node)
    if (*rc::gen::arbitrary<bool>())
      seen.after.push_back(naming(node, *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(0U, 6U))));
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) seen.replaced.push_back({*key, *key, ""});
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) seen.erased.push_back({*key, ""});
  const auto ledger = judge_pass(seen);
  RC_ASSERT(ledger.has_value());
  RC_ASSERT(ledger->entries.size() == seen.given.size());
  for (std::size_t i = 0; i < ledger->entries.size(); ++i) RC_ASSERT(ledger->entries[i].id == i + 1);
  RC_ASSERT(ledger->kept + ledger->inheriting + ledger->fabricated.size() == seen.after.size());
}

TEST(Synthetic, IdsComeBackOutOfTheirTexts) {
  const std::string both = synthetic_stack("t", 12, "relu") + synthetic_stack("t", 3, "mm");
  EXPECT_EQ(ids_of_stack(both, "t"), (std::vector<std::uint32_t>{3, 12}));
  EXPECT_TRUE(ids_of_stack(both, "t1").empty());
  EXPECT_EQ(id_of_source(synthetic_source("t", 7), "t"), 7U);
  EXPECT_FALSE(id_of_source(synthetic_source("t", 7), "u"));
  EXPECT_FALSE(id_of_source("kerntrail-debugify-t:", "t"));
}

TEST(Synthetic, OriginalsTakeThePlaceOfTheirFrames) {
  const std::string mixed = "  File \"user.py\", line 1, in f\n    x\n" + synthetic_stack("t", 2, "mm");
  EXPECT_EQ(restored_stack(mixed, "t", {"one", "  File \"two.py\", line 2, in g\n    y"}),
            "  File \"user.py\", line 1, in f\n    x\n  File \"two.py\", line 2, in g\n    y\n");
  EXPECT_EQ(restored_stack(synthetic_stack("t", 9, "mm"), "t", {"one"}), "");
}

}  // namespace
}  // namespace kerntrail::analyse
