// What the gate measures of a capture: how many units of each stage have each field, and each way in which fields are
// lost or spoilt, once. A loss is known by its class, field, direction and place in the compiler, without line
// numbers and counts: editing the model, or making it deeper, gives no new ones.
// Must not know: what is asked for, output formats.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyse/pipeline.h"
#include "kerntrail/gate.h"

namespace kerntrail::analyse {

// The allow list, with what came of each entry.
class AllowList {
 public:
  // `today`: "YYYY-MM-DD".
  AllowList(const std::vector<AllowEntry>& entries, std::string today);

  bool empty() const { return entries_.empty(); }

  // What an entry is asked about; empty members are what is not known of it.
  struct Subject {
    std::string_view rule, stage, field, pass, place;
    std::vector<std::string_view> units;  // names and ids, any of which may be meant
  };
  // The first entry that holds for it, or nullptr. Entries that would but have expired are noted in `expired`.
  const AllowEntry* find(const Subject& subject, const AllowEntry** expired = nullptr);
  // What to say of entries: expired, covering nothing, about to end.
  std::vector<std::string> notes(const std::string& path) const;

 private:
  const std::vector<AllowEntry>& entries_;
  std::string today_;
  std::vector<bool> used_, hit_expired_;
};

// "outer / inner" against itself, its last parts, or a pattern of either.
bool pass_matches(std::string_view path, std::string_view pattern);
// YYYY-MM-DD of the day `days` after that one.
std::string day_after(std::string_view day, int days);

// Units of one stage and field, over all compiles of one direction and backend.
struct GateCells {
  std::string backend, direction, stage, title, noun, field;
  int order = 0;
  std::size_t units = 0;        // all
  std::size_t covered = 0;      // present or carried
  std::size_t kept = 0;         // present and kept, or carried
  std::size_t by_design = 0;    // an intent accounts for it
  std::size_t allowed = 0;      // an allow entry does
  std::size_t not_created = 0;  // the field does not exist yet
  std::size_t unreadable = 0;
  std::vector<GateUnit> missing;             // neither covered nor accounted for; at most kNamedUnits
  std::map<std::string, std::size_t> reasons;  // why the missing lack it

  std::size_t judged() const { return units - by_design - allowed; }
  double ratio(bool kept_only) const;
};
inline constexpr std::size_t kNamedUnits = 50;

struct GateLoss {
  GateFinding finding;  // all but its outcome
  std::map<std::string, std::size_t> cells;  // by stage: slots that lack or spoil the field for this, none allowed
  std::size_t times = 0;                     // losses, marks, orphans
  std::size_t allowed = 0;                   // of these
  double share = 0.0;
  bool ratchets = false;  // a class that a baseline keeps
  const AllowEntry* expired = nullptr;

  bool open() const { return times > allowed; }
};

// One compile, or one direction of it.
struct GatePart {
  std::string compile, backend, direction;
  std::vector<std::string> stages;
  bool passes_recorded = false;
};

struct GateMeasure {
  std::vector<GatePart> parts;
  std::vector<GateCells> cells;  // by backend, direction, stage order, field order
  std::vector<GateLoss> losses;  // in the order in which they happened
  std::vector<std::string> backends, directions, stages, fields;  // that there are
  std::vector<std::string> sources;  // user files, sorted
};

// `allow` is asked about every loss; what it lets pass is counted as allowed.
GateMeasure measure_gate(const Capture& capture, const std::vector<Drops>& all, AllowList& allow);

// The user's files that locations name, sorted.
std::vector<std::string> user_files(const Capture& capture);

}  // namespace kerntrail::analyse
