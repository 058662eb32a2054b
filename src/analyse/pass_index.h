// Births and passes of a capture, found by unit: who made it, who erased it, what took over its uses, when it was first
// seen. Built once for all compiles.
// Must not know: fields, conclusions.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"

namespace kerntrail::analyse {

// The births that count for where a unit came from: all of the strongest kind of evidence that names a source.
struct ChargedBirth {
  const Birth* birth = nullptr;  // the first of them; where none names a source, the unit's first birth or nullptr
  std::string_view evidence;  // empty where no birth names a source
  std::vector<UnitId> sources;  // of all of them, each once, in order
};

// Which evidence for a birth counts first: smaller is better.
std::size_t charging_rank(std::string_view evidence);

class PassIndex {
 public:
  explicit PassIndex(const Capture& capture);

  bool has_passes(CompileId compile) const;
  std::span<const std::uint32_t> births_of(UnitId unit) const;  // indices into Capture::births, in file order
  ChargedBirth charged(UnitId unit) const;
  // Whether the evidence says that the unit stands for its sources, rather than that it was made beside them.
  static bool names_predecessors(std::string_view evidence);
  // First and last snapshot that shows the unit; kNone where none does.
  SnapshotId first_seen(UnitId unit) const { return first_seen_[index(unit)]; }
  // The look before this one at the same graph; kNone for a graph's first.
  SnapshotId look_before(SnapshotId look) const { return previous_[index(look)]; }
  PassId erased_in(UnitId unit) const { return erased_in_[index(unit)]; }
  // The pass that says it created the unit; kNone where none does.
  PassId created_in(UnitId unit) const { return created_in_[index(unit)]; }
  struct Taken {
    UnitId by = UnitId::kNone;
    PassId pass = PassId::kNone;
  };
  // The last unit that was given every use of this one.
  Taken replaced(UnitId unit) const { return replaced_[index(unit)]; }
  // The first unit that a birth says was made of this one; kNone where none does.
  UnitId heir(UnitId unit) const { return heir_[index(unit)]; }
  // The state before a pass; kNone where nothing had been seen by then.
  SnapshotId before(PassId pass) const;
  const std::vector<PassId>& passes_of(CompileId compile) const { return passes_of_[index(compile)]; }

 private:
  const Capture& capture_;
  std::vector<std::uint32_t> birth_order_, birth_start_;
  std::vector<std::uint8_t> rank_;  // by birth: its charging rank
  std::vector<SnapshotId> first_seen_, previous_;
  std::vector<PassId> erased_in_, created_in_;
  std::vector<Taken> replaced_;
  std::vector<UnitId> heir_;
  std::vector<std::vector<PassId>> passes_of_;
};

}  // namespace kerntrail::analyse
