// Lists of values by unit that are filled first and read afterwards: one array holds them all, a million lists cost two
// allocations. Values of a unit keep the order in which they were added.
// Must not know: what the values are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"

namespace kerntrail::analyse {

template <class T>
class UnitLists {
 public:
  void add(UnitId unit, const T& value) {
    if (added_.empty()) low_ = index(unit);
    low_ = std::min(low_, index(unit));
    end_ = std::max(end_, index(unit) + 1);
    added_.emplace_back(unit, value);
  }
  // Values that `same` calls equal to the one added to the unit right before them are left out.
  template <class Same>
  void close(Same&& same) {
    begins_.assign(added_.empty() ? 0 : end_ - low_ + 1, 0);
    for (const auto& [unit, value] : added_) ++begins_[index(unit) - low_ + 1];
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    ends_ = begins_;
    values_.resize(added_.size());
    for (auto& [unit, value] : added_) {
      std::uint32_t& end = ends_[index(unit) - low_];
      if (end != begins_[index(unit) - low_] && same(values_[end - 1], value)) continue;
      values_[end++] = std::move(value);
    }
    added_ = {};
  }
  void close() {
    close([](const T&, const T&) { return false; });
  }

  // Empty for a unit that has none, and before close().
  std::span<const T> of(UnitId unit) const {
    const std::size_t at = index(unit) - low_;  // wraps around below `low_`
    if (at >= begins_.size() || at + 1 == begins_.size()) return {};
    return {values_.data() + begins_[at], values_.data() + ends_[at]};
  }
  bool has(UnitId unit) const { return !of(unit).empty(); }

 private:
  std::size_t low_ = 0, end_ = 0;  // ids of the units with values: [low_, end_)
  std::vector<std::pair<UnitId, T>> added_;
  std::vector<std::uint32_t> begins_, ends_;  // by unit from low_, places in `values_`
  std::vector<T> values_;
};

}  // namespace kerntrail::analyse
