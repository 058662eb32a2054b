// Content hashes of texts, locations and observations, and the digest of a snapshot. Writer and replay share this:
// a digest depends on content only, never on the numbers that interning gave out.
// Must not know: where observations come from.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"

namespace kerntrail::model {

class ContentHashes {
 public:
  void add_text(std::string_view text, bool is_json);          // ids in order
  void add_loc(const Loc& loc);                                 // parts must have been added
  void add_unit(std::string_view unit_name);                    // "c0.n3"
  void add_attr(std::string_view attr_name);
  std::uint64_t observation(const Observation& value) const;    // 0 for no_slot
  std::uint64_t attr(AttrId id) const { return attrs_[index(id)]; }
  std::uint64_t unit(UnitId id) const { return units_[index(id)]; }

 private:
  std::uint64_t text(TextId id) const;
  std::uint64_t loc(LocId id) const;
  std::vector<std::uint64_t> texts_, locs_, units_, attrs_;
};

// Feeds units in snapshot order; attrs of a unit in any order (they are summed, so that order cannot matter).
class SnapshotDigest {
 public:
  explicit SnapshotDigest(const ContentHashes& hashes) : hashes_(hashes) {}
  void begin_unit(UnitId unit);
  void add(AttrId attr, const Observation& value);  // no_slot adds nothing
  void add_hash(AttrId attr, std::uint64_t observation_hash);
  // What one attr adds to its unit's sum (modulo 2^64); 0 for no_slot. Keepers of running sums add these.
  static std::uint64_t contribution(std::uint64_t attr_hash, std::uint64_t observation_hash);
  void add_contribution(std::uint64_t contribution) { sum_ += contribution; }
  std::uint64_t finish();

 private:
  void close_unit();
  const ContentHashes& hashes_;
  std::uint64_t digest_ = 0, unit_ = 0, sum_ = 0;
  bool open_ = false;
};

}  // namespace kerntrail::model
