#include "analyse/values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

constexpr std::size_t kShort = 60;
constexpr int kMaxFrames = 10000;

std::uint64_t hash_of(std::vector<UnitId> refs) {
  std::sort(refs.begin(), refs.end());
  refs.erase(std::unique(refs.begin(), refs.end()), refs.end());
  std::uint64_t hash = 1469598103934665603ULL;
  for (UnitId ref : refs) hash = (hash ^ (index(ref) + 1)) * 1099511628211ULL;
  return hash;
}

// User lines of a call chain, innermost first.
std::vector<SourceKey> user_lines(const Capture& capture, LocId chain) {
  std::vector<SourceKey> out;
  for (int steps = 0; has(chain) && steps < kMaxFrames; ++steps) {
    const Loc* here = capture.loc(chain);
    const Loc* range = here->kind == LocKind::kCall ? capture.loc(here->child) : here;
    if (range != nullptr && range->kind == LocKind::kRange && range->frame_class == FrameClass::kUser)
      out.push_back({range->text, range->line});
    chain = here->kind == LocKind::kCall ? here->caller : LocId::kNone;
  }
  return out;
}

// Helper functions give many nodes one innermost line; who called them tells those apart. A stack that was only cut
// short still says the same.
bool same_lines(const Capture& capture, LocId a, LocId b) {
  if (a == b) return true;
  const std::vector<SourceKey> mine = user_lines(capture, a), other = user_lines(capture, b);
  const std::size_t common = std::min(mine.size(), other.size());
  if (common == 0) return false;
  return std::equal(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(common), other.begin());
}

}  // namespace

bool is_references(ValueType type) {
  return type == ValueType::kRef || type == ValueType::kRefs || type == ValueType::kNodeSources;
}

std::optional<SourceKey> line_of(const Capture& capture, const Observation& stack) {
  if (!has(stack.loc)) return std::nullopt;
  const Loc* loc = capture.innermost_user(stack.loc);
  if (loc == nullptr || !has(loc->text) || loc->line <= 0) return std::nullopt;
  return SourceKey{loc->text, loc->line};
}

ValueKey value_key(const Capture& capture, ValueType type, const Observation& seen) {
  if (is_references(type) && !seen.refs.empty()) return {1, hash_of(seen.refs)};
  if (type == ValueType::kStack && has(seen.loc)) {
    std::uint64_t hash = 1469598103934665603ULL;
    for (const SourceKey& line : user_lines(capture, seen.loc))
      hash = (hash ^ ((static_cast<std::uint64_t>(index(line.file)) << 32U) + static_cast<std::uint64_t>(line.line))) *
             1099511628211ULL;
    return {2, hash};
  }
  if (has(seen.text)) return {3, index(seen.text)};
  return {4, index(seen.loc)};
}

Kept kept_of(const Capture& capture, ValueType type, const Observation& before, const Observation& after) {
  if (type == ValueType::kStack && has(before.loc) && has(after.loc))
    return same_lines(capture, before.loc, after.loc) ? Kept::kAll : Kept::kNothing;
  if (!is_references(type))
    return value_key(capture, type, before) == value_key(capture, type, after) ? Kept::kAll : Kept::kNothing;
  if (before.refs.empty() || before.refs == after.refs) return Kept::kAll;
  std::vector<UnitId> sorted = after.refs;
  std::sort(sorted.begin(), sorted.end());
  const auto kept = std::count_if(before.refs.begin(), before.refs.end(),
                                  [&](UnitId ref) { return std::binary_search(sorted.begin(), sorted.end(), ref); });
  if (kept == static_cast<std::ptrdiff_t>(before.refs.size())) return Kept::kAll;
  return kept == 0 ? Kept::kNothing : Kept::kPart;
}

std::string short_value(const Capture& capture, ValueType type, const Observation& seen) {
  if (is_references(type)) return {};
  if (type == ValueType::kStack) {
    // "helper.py:3 < model.py:27"
    constexpr std::size_t kShownLines = 3;
    std::string out;
    const std::vector<SourceKey> lines = user_lines(capture, seen.loc);
    for (std::size_t i = 0; i < lines.size() && i < kShownLines; ++i)
      out += fmt::format("{}{}:{}", i == 0 ? "" : " < ", capture.text(lines[i].file), lines[i].line);
    if (!out.empty()) return out;
  }
  const std::string_view text = base::trim(capture.text(seen.text));
  const std::string_view shown = base::cut(text, kShort);
  return std::string(shown) + (shown.size() < text.size() ? "…" : "");
}

bool is_compiler_made(const Capture& capture, LocId chain) {
  std::vector<LocId> open{chain};
  bool frames = false;
  for (int steps = 0; !open.empty() && steps < kMaxFrames; ++steps) {
    const Loc* loc = capture.loc(open.back());
    open.pop_back();
    if (loc == nullptr) continue;
    switch (loc->kind) {
      case LocKind::kRange:
        if (loc->frame_class == FrameClass::kUser || loc->frame_class == FrameClass::kUnknown) return false;
        frames = true;
        break;
      case LocKind::kCall:
        open.push_back(loc->caller);
        open.push_back(loc->child);
        break;
      case LocKind::kNamed: open.push_back(loc->child); break;
      case LocKind::kFused: open.insert(open.end(), loc->parts.begin(), loc->parts.end()); break;
      case LocKind::kOpaque: return false;
    }
  }
  return frames;
}

}  // namespace kerntrail::analyse
