#include "spyre/event_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/strings.h"

namespace kerntrail::spyre {
namespace {

constexpr std::string_view kPrefix = "spyre_kernel_v";
constexpr std::string_view kVersion = "1";
constexpr std::size_t kMaxDisplay = kMaxEventBase - kPrefix.size() - kVersion.size() - kKeyWidth - 2;
static_assert(kMaxDisplay == 73);

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// The part of an operation's name that people say: "linear" of "aten.linear.default".
std::string_view packet_name(std::string_view aten_op) {
  const auto parts = base::split(aten_op, '.');
  return parts.size() >= 3 ? parts[1] : aten_op;
}

// Takes the digits at the front of `text` off.
std::string_view take_digits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const std::string_view digits(text.begin(), end);
  text.remove_prefix(digits.size());
  return digits;
}

tl::unexpected<Error> no_event(std::string_view text, std::string_view why) {
  return fail(ErrorCode::kUsage, fmt::format("\"{}\" is no name of a Spyre kernel event: {}", text, why));
}

}  // namespace

bool is_kernel_key(std::string_view text) {
  return text.size() == kKeyWidth &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); });
}

std::string event_display(const std::vector<std::string>& aten_ops) {
  std::set<std::string_view> names;
  for (const std::string& op : aten_ops) names.insert(packet_name(op));
  std::string out = names.empty() ? "fused_unknown" : fmt::format("fused_{}", fmt::join(names, "_"));
  std::ranges::replace_if(out, [](char c) { return !is_word(c); }, '_');
  out.resize(std::min(out.size(), kMaxDisplay));
  out.erase(out.find_last_not_of('_') + 1);
  return out;
}

Expected<std::string> event_name_base(const std::vector<std::string>& aten_ops, std::string_view key) {
  if (!is_kernel_key(key)) return fail(ErrorCode::kUsage, fmt::format("\"{}\" is no kernel key", key));
  return fmt::format("{}{}_{}_{}", kPrefix, kVersion, event_display(aten_ops), key);
}

Expected<EventName> parse_event_name(std::string_view text) {
  std::string_view rest = text;
  if (!rest.starts_with(kPrefix)) return no_event(text, fmt::format("it does not begin with \"{}\"", kPrefix));
  rest.remove_prefix(kPrefix.size());
  const std::string_view version = take_digits(rest);
  if (version.empty() || !rest.starts_with('_')) return no_event(text, "it has no version");
  if (version != kVersion) return no_event(text, fmt::format("version {} is not known, only 1 is", version));
  rest.remove_prefix(1);

  EventName out;
  out.name = text;
  if (const std::size_t mark = rest.find('#'); mark != std::string_view::npos) {
    std::string_view digits = rest.substr(mark + 1);
    out.step_text = take_digits(digits);
    if (out.step_text.empty() || !digits.empty()) return no_event(text, "behind \"#\" stands no number");
    std::uint64_t step = 0;
    const char* end = out.step_text.data() + out.step_text.size();
    if (std::from_chars(out.step_text.data(), end, step).ec != std::errc{})
      return no_event(text, "its step is larger than 64 bits hold");
    out.step = step;
    rest = rest.substr(0, mark);
  }
  // The key's letters have no "_", so the last one is where it begins.
  const std::size_t mark = rest.rfind('_');
  if (mark == std::string_view::npos || mark == 0) return no_event(text, "it is not <display>_<key>");
  out.display = rest.substr(0, mark);
  out.key = rest.substr(mark + 1);
  if (!std::ranges::all_of(out.display, is_word)) return no_event(text, "its display part has other than letters");
  if (!is_kernel_key(out.key)) return no_event(text, "it does not end with a key (16 of a-z and 2-7)");
  out.base_name = text.substr(0, static_cast<std::size_t>(rest.data() + rest.size() - text.data()));
  return out;
}

}  // namespace kerntrail::spyre
