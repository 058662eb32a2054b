// A map from units to values for analyses that touch most units: ids are dense, so finding is one look into an array.
// Entries are walked in the order in which they were made, which keeps results independent of hashing.
// Must not know: what the values are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"

namespace kerntrail::analyse {

// Four bytes a unit from the smallest to the largest id that was put in: a compile's units lie together. References and
// iterators last until the next insertion.
template <class T>
class UnitMap {
 public:
  using value_type = std::pair<UnitId, T>;
  using iterator = typename std::vector<value_type>::iterator;
  using const_iterator = typename std::vector<value_type>::const_iterator;

  const_iterator find(UnitId unit) const {
    const std::uint32_t place = place_of(unit);
    return place == 0 ? entries_.end() : entries_.begin() + static_cast<std::ptrdiff_t>(place - 1);
  }
  iterator find(UnitId unit) {
    const std::uint32_t place = place_of(unit);
    return place == 0 ? entries_.end() : entries_.begin() + static_cast<std::ptrdiff_t>(place - 1);
  }
  std::size_t count(UnitId unit) const { return place_of(unit) == 0 ? 0 : 1; }
  bool contains(UnitId unit) const { return place_of(unit) != 0; }
  const T& at(UnitId unit) const {
    const auto found = find(unit);
    if (found == entries_.end()) throw std::out_of_range("no such unit");
    return found->second;
  }
  T& at(UnitId unit) {
    const auto found = find(unit);
    if (found == entries_.end()) throw std::out_of_range("no such unit");
    return found->second;
  }
  T& operator[](UnitId unit) { return try_emplace(unit).first->second; }

  template <class... Args>
  std::pair<iterator, bool> try_emplace(UnitId unit, Args&&... args) {
    make_room(index(unit));
    std::uint32_t& place = places_[index(unit) - low_];
    const bool fresh = place == 0;
    if (fresh) {
      entries_.emplace_back(std::piecewise_construct, std::forward_as_tuple(unit),
                            std::forward_as_tuple(std::forward<Args>(args)...));
      place = static_cast<std::uint32_t>(entries_.size());
    }
    return {entries_.begin() + static_cast<std::ptrdiff_t>(place - 1), fresh};
  }
  template <class... Args>
  std::pair<iterator, bool> emplace(UnitId unit, Args&&... args) {
    return try_emplace(unit, std::forward<Args>(args)...);
  }

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

 private:
  std::uint32_t place_of(UnitId unit) const {
    const std::size_t at = index(unit) - low_;  // wraps around below `low_`
    return at < places_.size() ? places_[at] : 0;
  }

  // Grows by half its size in the direction that is needed, so that a walk either way costs no more than its length.
  void make_room(std::size_t at) {
    if (places_.empty()) {
      low_ = at;
      places_.resize(kFirst, 0);
    } else if (at < low_) {
      const std::size_t more = std::min(low_, low_ - at + places_.size() / 2);
      places_.insert(places_.begin(), more, 0);
      low_ -= more;
    } else if (at - low_ >= places_.size()) {
      places_.resize((at - low_ + 1) + (at - low_) / 2, 0);
    }
  }

  static constexpr std::size_t kFirst = 8;
  std::size_t low_ = 0;  // id of the first of `places_`
  std::vector<std::uint32_t> places_;  // by unit: place in `entries_`, from 1; 0: none
  std::vector<value_type> entries_;
};

}  // namespace kerntrail::analyse
