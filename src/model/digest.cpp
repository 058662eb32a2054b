#include "model/digest.h"

#include "base/hash.h"

namespace kerntrail::model {
namespace {

// Mixed in for an id that is not set; any fixed value that no content hash is made of.
constexpr std::uint64_t kNothing = 0x6E6F6E65ULL;

template <class Id>
std::uint64_t look_up(const std::vector<std::uint64_t>& hashes, Id id) {
  return has(id) ? hashes[index(id)] : kNothing;
}

std::uint64_t signed_bits(std::int64_t v) { return static_cast<std::uint64_t>(v); }

}  // namespace

void ContentHashes::add_text(std::string_view text, bool is_json) {
  texts_.push_back(base::hash64(text, is_json ? 1 : 0));
}
void ContentHashes::add_unit(std::string_view unit_name) { units_.push_back(base::hash64(unit_name)); }
void ContentHashes::add_attr(std::string_view attr_name) { attrs_.push_back(base::hash64(attr_name)); }
std::uint64_t ContentHashes::text(TextId id) const { return look_up(texts_, id); }
std::uint64_t ContentHashes::loc(LocId id) const { return look_up(locs_, id); }

void ContentHashes::add_loc(const Loc& l) {
  std::uint64_t h = base::hash64(static_cast<std::uint64_t>(l.kind), 0);
  for (const std::uint64_t part :
       {text(l.text), text(l.function), text(l.code), signed_bits(l.line), signed_bits(l.col), signed_bits(l.end_line),
        signed_bits(l.end_col), static_cast<std::uint64_t>(l.frame_class), static_cast<std::uint64_t>(l.rule),
        loc(l.child), loc(l.caller), static_cast<std::uint64_t>(l.parts.size())}) {
    h = base::hash64(part, h);
  }
  for (const LocId part : l.parts) h = base::hash64(loc(part), h);
  locs_.push_back(h);
}

std::uint64_t ContentHashes::observation(const Observation& value) const {
  if (value.state == State::kNoSlot) return 0;
  std::uint64_t h = base::hash64(static_cast<std::uint64_t>(value.state), 0);
  for (const std::uint64_t part : {text(value.python_type), text(value.repr), text(value.text), loc(value.loc)})
    h = base::hash64(part, h);
  for (const UnitId ref : value.refs) h = base::hash64(units_[index(ref)], h);
  return h == 0 ? 1 : h;  // 0 is kept for no_slot
}

std::uint64_t SnapshotDigest::contribution(std::uint64_t attr_hash, std::uint64_t observation_hash) {
  return observation_hash == 0 ? 0 : base::hash64(observation_hash, attr_hash);
}

void SnapshotDigest::begin_unit(UnitId unit) {
  close_unit();
  unit_ = hashes_.unit(unit);
  sum_ = 0;
  open_ = true;
}

void SnapshotDigest::add(AttrId attr, const Observation& value) { add_hash(attr, hashes_.observation(value)); }

void SnapshotDigest::add_hash(AttrId attr, std::uint64_t observation_hash) {
  add_contribution(contribution(hashes_.attr(attr), observation_hash));
}

void SnapshotDigest::close_unit() {
  if (open_) digest_ = base::hash64(sum_, base::hash64(unit_, digest_));
  open_ = false;
}

std::uint64_t SnapshotDigest::finish() {
  close_unit();
  return digest_;
}

}  // namespace kerntrail::model
