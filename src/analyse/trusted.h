// Values before anything overwrote them, and so the source lines that a node was really made from.
// Must not know: claims, kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyse/drop_sites.h"
#include "analyse/pass_index.h"
#include "analyse/pipeline.h"
#include "analyse/sources.h"
#include "analyse/unit_map.h"
#include "kerntrail/capture.h"
#include "kerntrail/verify.h"

namespace kerntrail::analyse {

struct TrustedValue {
  const Observation* value = nullptr;  // nullptr: it never had one
  SnapshotId overwritten = SnapshotId::kNone;  // the look that first shows another value instead
};

// The last value up to a look that says at least what the unit was made with. A pass that gives a node another target
// may give it another source too.
TrustedValue trusted_value(const Capture& capture, UnitId unit, AttrId attr, SnapshotId until);

// The source line of a unit by its own stack, as it was before anything overwrote it.
std::optional<SourceLine> trusted_source(const Capture& capture, AttrId stack_trace, UnitId unit, SnapshotId until);

struct TrueSource {
  std::vector<SourceKey> lines;                // each once; empty where nothing leads to any
  std::optional<SourceKey> named;              // by its own stack, in the end
  SnapshotId overwritten = SnapshotId::kNone;  // the look at which its own stack ceased to be true
  bool wrong_at_birth = false;                 // it was made with a stack that none of its sources has
};

// For FX nodes. A node has the line it was made with, unless that is none of those of the nodes it was made of: then it
// has theirs.
class TrueSources {
 public:
  TrueSources(const Capture& capture, const PassIndex& passes);
  // Lasts until the next unit is asked for.
  const TrueSource& of(UnitId unit);
  // Text of a line, from whichever stack was seen to name it first; empty where none did.
  std::string_view code(const SourceKey& line) const;

 private:
  bool is_being_decided(UnitId unit) const;
  bool decide(UnitId unit, std::vector<UnitId>& needed);
  void note_code(const Observation& stack);

  const Capture& capture_;
  const PassIndex& passes_;
  AttrId stack_trace_ = AttrId::kNone;
  UnitMap<TrueSource> known_;
  UnitMap<bool> deciding_;  // true while it is
  std::unordered_map<SourceKey, TextId, SourceKeyHash> codes_;
};

// Where the line that a node names in the end is none of those it was made from; nothing where it is.
std::optional<Rewrite> rewrite_of(const Capture& capture, TrueSources& sources, SiteTable& sites, UnitId node);

}  // namespace kerntrail::analyse
