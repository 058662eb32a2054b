#include <algorithm>
#include <deque>
#include <iterator>

#include "analyse/edges.h"

namespace kerntrail::analyse {
namespace {

// Adds what `more` has and `into` lacks; true if that was anything.
bool merge(std::vector<std::uint64_t>& into, const std::vector<std::uint64_t>& more) {
  if (std::includes(into.begin(), into.end(), more.begin(), more.end())) return false;
  std::vector<std::uint64_t> both;
  both.reserve(into.size() + more.size());
  std::set_union(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(both));
  into = std::move(both);
  return true;
}

}  // namespace

std::vector<std::vector<std::uint64_t>> nearest_sources(const std::vector<std::vector<std::uint64_t>>& own,
                                                        const std::vector<std::vector<std::size_t>>& producers) {
  std::vector<std::vector<std::uint64_t>> result(own.size());
  std::vector<std::vector<std::size_t>> consumers(own.size());
  std::deque<std::size_t> work;
  std::vector<bool> queued(own.size(), false);
  for (std::size_t g = 0; g < own.size(); ++g) {
    for (std::size_t p : producers[g]) {
      if (!own[p].empty()) {
        merge(result[g], own[p]);
      } else {
        consumers[p].push_back(g);
      }
    }
  }
  for (std::size_t g = 0; g < own.size(); ++g) {
    if (own[g].empty() && !result[g].empty()) {
      work.push_back(g);
      queued[g] = true;
    }
  }
  while (!work.empty()) {  // sets only grow, so this ends
    const std::size_t g = work.front();
    work.pop_front();
    queued[g] = false;
    for (std::size_t consumer : consumers[g]) {
      if (consumer == g || !merge(result[consumer], result[g])) continue;
      if (own[consumer].empty() && !queued[consumer]) {
        work.push_back(consumer);
        queued[consumer] = true;
      }
    }
  }
  return result;
}

}  // namespace kerntrail::analyse
