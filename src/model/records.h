// The closed list of record kinds of the capture file, with their spelling.
// Must not know: what a record holds, how it is written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace kerntrail::model {

enum class RecordKind : std::uint8_t {
  kRun,
  kStage,
  kAttrKind,
  kHook,
  kText,
  kLoc,
  kCompile,
  kGraph,
  kUnit,
  kAttr,
  kSnapshot,
  kPass,
  kBirth,
  kLink,
  kClaim,
  kNote,
  kVolatile,
  kSource,
  kEnd
};
inline constexpr std::size_t kRecordKinds = 19;

std::string_view record_kind_name(RecordKind kind);
std::optional<RecordKind> record_kind_from_name(std::string_view name);

// How many records of each kind went by; what an end record states and a reader compares. The end record itself is
// not counted.
class RecordCounts {
 public:
  void add(RecordKind kind) {
    ++counts_[static_cast<std::size_t>(kind)];
    ++total_;
  }
  std::uint64_t of(RecordKind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  std::uint64_t total() const { return total_; }
  std::map<std::string, std::uint64_t> by_name() const;  // kinds that occurred

 private:
  std::array<std::uint64_t, kRecordKinds> counts_{};
  std::uint64_t total_ = 0;
};

}  // namespace kerntrail::model
