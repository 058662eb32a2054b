#include "analyse/edges.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

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

}  // namespace
}  // namespace kerntrail::analyse
