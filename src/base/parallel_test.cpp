#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace kerntrail::base {
namespace {

TEST(Parallel, DoesEachPieceOnce) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{1000}}) {
    std::vector<std::atomic<int>> times(n);
    parallel_for(n, [&](std::size_t i) { ++times[i]; });
    for (const auto& count : times) EXPECT_EQ(count, 1);
  }
}

TEST(Parallel, ThrowsOnWhatTheFirstPieceThrewAndDoesTheRest) {
  std::atomic<int> done{0};
  try {
    parallel_for(100, [&](std::size_t i) {
      ++done;
      if (i == 7 || i == 90) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "7");
  }
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace kerntrail::base
