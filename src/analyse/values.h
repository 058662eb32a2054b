// Whether two values of a field say the same: a stack by the source line it names, references by what they refer to,
// everything else by its text.
// Must not know: units, passes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyse/sources.h"
#include "kerntrail/capture.h"

namespace kerntrail::analyse {

// Equal keys: the values say the same. Only for values that are present.
struct ValueKey {
  std::uint64_t kind = 0, value = 0;
  bool operator==(const ValueKey&) const = default;
};

struct ValueKeyHash {
  std::size_t operator()(const ValueKey& key) const {
    return std::hash<std::uint64_t>()(key.value * 0x9E3779B97F4A7C15ULL + key.kind);
  }
};

ValueKey value_key(const Capture& capture, ValueType type, const Observation& seen);
// The source line that a stack names; nothing where it names none.
std::optional<SourceKey> line_of(const Capture& capture, const Observation& stack);

// What of `before` is still in `after`: all (references may have been added), part of it, or nothing.
enum class Kept : std::uint8_t { kAll, kPart, kNothing };
Kept kept_of(const Capture& capture, ValueType type, const Observation& before, const Observation& after);

bool is_references(ValueType type);
// A few words for a value: "model.py:12", "aten.add.Tensor"; empty where it has no short form.
std::string short_value(const Capture& capture, ValueType type, const Observation& seen);
// Whether a chain has frames, and none of them is the user's or of an unknown class.
bool is_compiler_made(const Capture& capture, LocId chain);

}  // namespace kerntrail::analyse
