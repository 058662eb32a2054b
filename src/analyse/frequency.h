// Counted things, most frequent first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kerntrail::analyse {

// Equal counts stay in the map's order.
template <class Map>
std::vector<std::pair<std::string, std::size_t>> by_frequency(const Map& counts) {
  std::vector<std::pair<std::string, std::size_t>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace kerntrail::analyse
