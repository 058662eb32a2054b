// The places that losses are charged to, each once, in the order in which they show.
// Must not know: fields, units' values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analyse/pass_index.h"
#include "kerntrail/drops.h"

namespace kerntrail::analyse {

class SiteTable {
 public:
  SiteTable(const Capture& capture, const PassIndex& passes) : capture_(capture), passes_(passes) {}

  // A unit made in a pass, or while a graph was traced or copied from stage `from` to stage `to` (keys; may be empty).
  std::uint32_t birth(const ChargedBirth& birth, const std::string& from, const std::string& to, SnapshotId at);
  // A change of a living unit that this look is the first to show.
  std::uint32_t change(SnapshotId at);
  // Between two stages.
  std::uint32_t border(const std::string& from, const std::string& to, SnapshotId at);

  const DropSite& operator[](std::uint32_t i) const { return sites_[i]; }
  std::vector<DropSite> take() { return std::move(sites_); }

 private:
  using Key = std::tuple<SiteKind, PassId, std::string, LocId, std::string, std::string, std::string>;
  std::uint32_t add(DropSite site);
  DropSite in_pass(PassId pass) const;
  std::string stage_key(SnapshotId look) const;

  const Capture& capture_;
  const PassIndex& passes_;
  std::vector<DropSite> sites_;
  std::map<Key, std::uint32_t> known_;
};

// The innermost frame of a chain, whatever its class; nullptr where it has none.
const Loc* innermost_frame(const Capture& capture, LocId chain);

}  // namespace kerntrail::analyse
