// Edges between any two captured stages of a pipeline, from links, reference-valued attrs, claims, equal locations
// and, for units without any, the sources of their siblings and producers. Computed on demand, never stored.
// Must not know: output formats, which stages a caller shows.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyse/pipeline.h"
#include "analyse/sources.h"
#include "analyse/support.h"
#include "analyse/unit_lists.h"
#include "analyse/unit_map.h"
#include "analyse/witness.h"
#include "kerntrail/capture.h"
#include "kerntrail/lineage.h"

namespace kerntrail::analyse {

struct Parent {
  UnitId unit = UnitId::kNone;
  Evidence evidence = Evidence::kIdentity;
  bool ambiguous = false;

  bool operator==(const Parent&) const = default;
};

// Parents of each unit of a later column, by its position there.
class ParentTable {
 public:
  std::span<const Parent> operator[](std::size_t position) const {
    return {all_.data() + starts_[position], all_.data() + starts_[position + 1]};
  }
  std::size_t size() const { return starts_.size() - 1; }

 private:
  friend class EdgeFinder;
  std::vector<Parent> all_;
  std::vector<std::size_t> starts_{0};
};

// Columns are indices into the pipeline's. Keeps references: capture and pipeline must outlive it.
class EdgeFinder {
 public:
  EdgeFinder(const Capture& capture, const Pipeline& pipeline);

  // Parents of every unit of column `to` among the counted units of column `from` (from < to), sorted by position.
  const ParentTable& table(std::size_t to, std::size_t from);
  // Kernel that a bundle file belongs to; kNone where no link says.
  UnitId kernel_of(UnitId file) const;
  // Files whose place in the bundle and whose handle id name different OpSpecs, in bundle order.
  const std::vector<UnitId>& disagreeing_files() const { return disagreeing_; }
  const WitnessIndex& witness() const { return witness_; }
  const SupportFinder& support() const { return support_; }
  // What the compiler says that a kernel comes from.
  std::span<const UnitId> claimed(UnitId kernel) const { return claimed_.of(kernel); }

 private:
  struct Fact {
    UnitId from;
    Evidence evidence;
    bool ambiguous = false;
  };
  using Tier = std::vector<Fact>;
  static constexpr std::size_t kTiers = 7;

  void index_columns();
  void index_links();
  void index_births();
  void index_bundles();
  void pair_bundle(const std::vector<UnitId>& files, const std::vector<UnitId>& specs);
  std::size_t index_of(const Column& column) const;
  void index_handles();
  void index_owners();
  void index_reverse();
  // Appends what tier `which` knows of the unit; tiers are asked in order.
  void add_tier(std::size_t which, UnitId unit, SnapshotId snapshot, Tier& tier) const;
  void add_refs(Tier& tier, UnitId unit, AttrId attr, SnapshotId snapshot, Evidence evidence) const;
  void add_origins(Tier& tier, UnitId unit, SnapshotId snapshot) const;
  void follow_fact(const Fact& fact, std::size_t to, std::size_t from, std::vector<Parent>& result);
  void add_by_location(UnitId unit, SnapshotId snapshot, std::size_t from, std::vector<Parent>& result);
  void add_own_parents(const ColumnUnit& unit, std::size_t to, std::size_t from, std::vector<Parent>& result);
  void attach_sourceless(std::size_t to, std::size_t from, ParentTable& table) const;
  // Sorts what lies behind `start` and leaves out duplicates.
  void sort_parents(std::vector<Parent>& parents, std::size_t start, std::size_t from) const;
  std::string handle_id(UnitId unit) const;

  const Capture& capture_;
  const Pipeline& pipeline_;
  AttrNames names_;
  WitnessIndex witness_;
  SupportFinder support_;
  UnitLists<std::size_t> columns_of_;              // ascending
  UnitMap<SnapshotId> last_look_;                  // at the unit's last column
  UnitLists<UnitId> linked_from_;  // sides `from` of links whose `to` holds the unit
  UnitMap<std::vector<UnitId>> files_of_;  // kernel -> its bundle
  UnitMap<UnitId> kernel_of_;  // file -> kernel
  UnitLists<Fact> bundle_specs_;   // file -> OpSpec at its place
  UnitLists<Fact> handle_specs_;   // file -> OpSpecs with its handle id
  UnitLists<UnitId> claimed_;      // kernel -> claimed units
  UnitLists<Fact> born_of_, copy_of_;  // what it was seen being made or copied of
  UnitMap<UnitId> owner_;  // FX node -> first OpSpec (else operation) of it
  UnitLists<std::pair<UnitId, Evidence>> reverse_;
  std::map<std::size_t, std::unordered_map<SourceKey, std::vector<UnitId>, SourceKeyHash>> locations_;
  std::map<std::pair<std::size_t, std::size_t>, ParentTable> tables_;
  std::vector<UnitId> disagreeing_;
};

// Nearest source-bearing ancestors of groups that have no sources of their own: the least solution of
// result(g) = union over p in producers(g) of (own(p) if p has any, else result(p)). Cycles are harmless.
// Values are sorted and unique; own, producers and the result are indexed by group.
std::vector<std::vector<std::uint64_t>> nearest_sources(const std::vector<std::vector<std::uint64_t>>& own,
                                                        const std::vector<std::vector<std::size_t>>& producers);

}  // namespace kerntrail::analyse
