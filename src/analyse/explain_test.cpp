// What an explanation says of chains that hold, that break, that are written over and that are contradicted.
#include "kerntrail/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "capture_builder.h"
#include "cases.h"

namespace kerntrail {
namespace {

Explanation explained(const Capture& capture, const std::string& what) {
  const auto all = explain(capture, what);
  EXPECT_TRUE(all) << what << ": " << (all ? "" : all.error().text());
  if (!all || all->empty()) return {};
  return all->front();
}

std::vector<std::string> ids(const std::vector<ExplainedLayer>& layers, std::string_view key) {
  std::vector<std::string> out;
  for (const ExplainedLayer& layer : layers) {
    if (layer.key != key) continue;
    for (const ExplainedUnit& unit : layer.units) out.push_back(has(unit.unit) ? unit.name : unit.id);
  }
  return out;
}

using Names = std::vector<std::string>;

TEST(Explain, AKernelByNameLeadsToItsLineByTheWitness) {
  const Capture capture = testing::witnessed().capture;
  const Explanation one = explained(capture, "cpp_fused_add_0");
  EXPECT_EQ(one.id, "c0.k0");
  EXPECT_EQ(ids(one.comes_from, "source"), Names{"model.py:3"});
  EXPECT_EQ(ids(one.comes_from, "fx_post_grad"), Names{"sin"});
  EXPECT_TRUE(one.becomes.empty());
  EXPECT_TRUE(one.breaks.empty());
  EXPECT_TRUE(one.witnessed);
  ASSERT_EQ(one.rewrites.size(), 1U);
  EXPECT_EQ(one.rewrites[0].now, "model.py:4");
  EXPECT_EQ(one.rewritten[0], "sin (c0.n9)");
  const auto post = std::find_if(one.comes_from.begin(), one.comes_from.end(),
                                 [](const ExplainedLayer& layer) { return layer.key == "fx_post_grad"; });
  EXPECT_EQ(post->units[0].evidence, Evidence::kWitness);
}

TEST(Explain, ContradictedClaimsOfTheChainAreTold) {
  const Explanation one = explained(testing::witnessed().capture, "extern_kernels.mm");
  ASSERT_EQ(one.contradicted.size(), 2U);
  EXPECT_EQ(one.contradicted_units[1], "extern_kernels.mm (c0.k1)");
  EXPECT_EQ(one.contradicted[1].name, "sin");
}

TEST(Explain, ALineThatWasFoldedAwaySaysWhoseWorkItIs) {
  const Explanation one = explained(testing::witnessed().capture, "model.py:4");
  EXPECT_EQ(one.stage, "Source");
  EXPECT_TRUE(one.comes_from.empty());
  ASSERT_EQ(one.ends.size(), 1U);
  EXPECT_EQ(one.ends[0].name, "add");
  EXPECT_EQ(one.ends[0].fate, "elided");
  EXPECT_EQ(one.ends[0].by, "sin");
  EXPECT_EQ(one.ends[0].pass, "fold");
}

TEST(Explain, ABrokenLinkNamesTheFieldTheReasonAndWhatCanBeRecovered) {
  const Explanation one = explained(testing::build_seed000().capture, "add_tensor");
  ASSERT_EQ(one.breaks.size(), 1U);
  EXPECT_EQ(one.breaks[0].name, "add_tensor");
  EXPECT_EQ(one.breaks[0].field, "stack_trace");
  EXPECT_FALSE(one.breaks[0].reason.empty());
  EXPECT_FALSE(one.breaks[0].meaning.empty());
  ASSERT_EQ(one.recovered.size(), 1U);
  EXPECT_EQ(one.recovered[0].line, 27);
  EXPECT_EQ(one.recovered[0].evidence, Evidence::kProducer);
}

TEST(Explain, APassThatDroppedTheFieldIsBlamedWithItsEvidence) {
  const Explanation one = explained(testing::lossy_passes().capture, "sdpa");
  ASSERT_FALSE(one.breaks.empty());
  const BrokenLink& link = one.breaks.front();
  EXPECT_EQ(link.field, "stack_trace");
  EXPECT_EQ(link.reason, "dropped");
  EXPECT_EQ(link.evidence, "match");
  EXPECT_FALSE(link.had.empty());
  EXPECT_FALSE(link.pass.empty());
  ASSERT_FALSE(one.recovered.empty());
  EXPECT_EQ(one.recovered.front().evidence, Evidence::kBirth) << "seen being made of nodes that have lines";
}

TEST(Explain, AHandleByItsIdAndAUnitByItsId) {
  const Capture capture = testing::build_seed000().capture;
  const auto by_unit = explain(capture, "c0.p0");
  ASSERT_TRUE(by_unit);
  EXPECT_EQ(by_unit->size(), 1U);
  const Explanation by_handle = explained(capture, "3841103980854345041");
  EXPECT_EQ(by_handle.stage, "OpSpec");
  EXPECT_EQ(ids(by_handle.comes_from, "source"), Names{"reference_mlp.py:25"});
  const auto unknown = explain(capture, "123");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
}

TEST(Explain, WhateverIsAskedOfACaptureWithoutCompilesIsRefused) {
  testing::CaptureBuilder b;
  const Capture capture = b.finish();
  for (const char* what : {"", "a:b", "c0.k0", "model.py:0", "x.py:99999999999999999999"}) {
    const auto all = explain(capture, what);
    EXPECT_FALSE(all) << what;
  }
}

}  // namespace
}  // namespace kerntrail
