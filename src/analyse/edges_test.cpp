#include "analyse/edges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "model/recorder.h"
#include "model/replay.h"

namespace kerntrail::analyse {
namespace {

using Sets = std::vector<std::vector<std::uint64_t>>;

// What the words say, without any of the shortcuts: walk from a group over all ways, stop at groups with sources.
std::vector<std::uint64_t> naive(const Sets& own, const std::vector<std::vector<std::size_t>>& producers,
                                 std::size_t start) {
  std::set<std::uint64_t> found;
  std::set<std::size_t> seen;
  std::vector<std::size_t> open = producers[start];
  while (!open.empty()) {
    const std::size_t g = open.back();
    open.pop_back();
    if (!seen.insert(g).second) continue;
    if (!own[g].empty()) {
      found.insert(own[g].begin(), own[g].end());
    } else {
      open.insert(open.end(), producers[g].begin(), producers[g].end());
    }
  }
  return {found.begin(), found.end()};
}

RC_GTEST_PROP(NearestSources, AgreesWithANaiveWalkOnRandomGraphs, ()) {
  const auto n = *rc::gen::inRange<std::size_t>(1, 40);
  Sets own(n);
  std::vector<std::vector<std::size_t>> producers(n);
  for (std::size_t g = 0; g < n; ++g) {
    if (*rc::gen::inRange(0, 3) == 0)
      own[g] = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 30));
    std::sort(own[g].begin(), own[g].end());
    own[g].erase(std::unique(own[g].begin(), own[g].end()), own[g].end());
    producers[g] =
        *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, n));  // cycles and all
  }
  const Sets result = nearest_sources(own, producers);
  for (std::size_t g = 0; g < n; ++g) {
    if (own[g].empty()) RC_ASSERT(result[g] == naive(own, producers, g));
  }
}

TEST(NearestSources, LongChainInEitherOrderIsLinear) {
  constexpr std::size_t kLength = 200000;
  for (const bool reversed : {false, true}) {
    Sets own(kLength);
    std::vector<std::vector<std::size_t>> producers(kLength);
    for (std::size_t g = 1; g < kLength; ++g) {
      if (reversed) {
        producers[g - 1] = {g};
      } else {
        producers[g] = {g - 1};
      }
    }
    own[reversed ? kLength - 1 : 0] = {5};
    const Sets result = nearest_sources(own, producers);
    EXPECT_EQ(result[reversed ? 0 : kLength - 1], std::vector<std::uint64_t>{5});
  }
}

TEST(Edges, EveryEvidenceHasANameAndAStrength) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Evidence::kProducer); ++i) {
    const auto evidence = static_cast<Evidence>(i);
    EXPECT_TRUE(names.insert(evidence_name(evidence)).second);
    EXPECT_FALSE(strength_name(strength_of(evidence)).empty());
  }
  // Weaker evidence never has the stronger word.
  for (int i = 1; i <= static_cast<int>(Evidence::kProducer); ++i) {
    EXPECT_LE(strength_of(static_cast<Evidence>(i - 1)), strength_of(static_cast<Evidence>(i)));
  }
}

// A backward node stands beside its forward node in the joint graph and leads to the same line: a copy of the forward
// node is of that one alone, although its chain names the node that both lead to.
TEST(Edges, ACopyComesFromTheOneNodeItCopies) {
  model::Replay replay;
  model::Recorder r(replay);
  const StageId pre = r.stage({"fx_pre_grad", "", "", "FX", 20}), joint = r.stage({"fx_joint", "", "", "FX", 30});
  const StageId aten = r.stage({"fx_aten", "", "", "FX", 40});
  const AttrId chain = r.attr_kind({"from_node", ValueType::kNodeSources, "FX", "fx_joint", true});
  const CompileId compile = r.compile({});
  const auto graph = [&](const char* direction) { return r.graph(compile, "fx", direction); };
  const auto look = [&](StageId stage, GraphId at, std::vector<model::ObservedUnit> units) {
    r.snapshot(stage, at, units);
  };
  const GraphId first = graph("none"), both = graph("joint"), forward = graph("forward");
  const UnitId traced = r.unit(first, UnitKind::kFxNode), mul = r.unit(both, UnitKind::kFxNode);
  const UnitId backward = r.unit(both, UnitKind::kFxNode), copy = r.unit(forward, UnitKind::kFxNode);
  Observation names_traced;
  names_traced.state = State::kPresent;
  names_traced.refs = {traced};
  look(pre, first, {{traced, {}}});
  look(joint, both, {{mul, {{chain, names_traced}}}, {backward, {}}});
  r.birth({mul, PassId::kNone, "frame", "", LocId::kNone, LocId::kNone, {traced}});
  r.birth({backward, PassId::kNone, "sequence", "", LocId::kNone, LocId::kNone, {mul}});
  look(aten, forward, {{copy, {{chain, names_traced}}}});
  r.birth({copy, PassId::kNone, "copy", "", LocId::kNone, LocId::kNone, {mul}});
  r.end(true);
  ASSERT_EQ(replay.error(), nullptr);
  const Capture capture = replay.take();
  const Pipeline pipeline = pipeline_of(capture, compile);
  EdgeFinder edges(capture, pipeline);
  EXPECT_THAT(edges.table(2, 1)[0], testing::ElementsAre(Parent{mul, Evidence::kBirth, false}));
  EXPECT_EQ(edges.table(2, 0)[0].front().unit, traced);
  EXPECT_EQ(edges.table(1, 0)[1].front().unit, traced);
}

}  // namespace
}  // namespace kerntrail::analyse
