// Names of profiler events of Spyre kernels: spyre_kernel_v1_<display>_<key>, in a trace with "#<step>" behind.
// <display> is for eyes, <key> (src/spyre/identity.h) is what leads back to the kernel; no file, no line.
// Must not know: what a key is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/expected.h"

namespace kerntrail::spyre {

inline constexpr std::size_t kKeyWidth = 16;
// The runtime's buffer for a name holds 127 characters; "#" and the largest step take 21 of them.
inline constexpr std::size_t kMaxEventBase = 106;

struct EventName {
  std::string name;       // as given
  std::string base_name;  // without the step
  std::string display;
  std::string key;
  std::optional<std::uint64_t> step;  // number of the command within one launch
  std::string step_text;              // the digits as given: leading zeros stay; empty without a step

  bool operator==(const EventName&) const = default;
};

// Sixteen characters of a-z and 2-7.
bool is_kernel_key(std::string_view text);

// "fused_" and the sorted names of the operations, each once: "aten.linear.default" is "linear". Cut to what a name has
// room for; "fused_unknown" where there are none.
std::string event_display(const std::vector<std::string>& aten_ops);

// The name without a step. kUsage where `key` is no key.
Expected<std::string> event_name_base(const std::vector<std::string>& aten_ops, std::string_view key);

// The whole text must be a name of version 1; else kUsage, with what is wrong.
Expected<EventName> parse_event_name(std::string_view text);

}  // namespace kerntrail::spyre
