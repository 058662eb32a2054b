// Debug handles, July 2026 recipe.
#include "spyre/handle.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/strings.h"

namespace kerntrail::spyre {
namespace {

constexpr std::string_view kFileMark = "File \"";
constexpr std::string_view kLineMark = "\", line ";

// A frame that starts at `at` (where kFileMark stands), or nothing.
std::optional<SourceLoc> frame_at(std::string_view text, std::size_t at) {
  const std::size_t path_begin = at + kFileMark.size();
  const std::size_t path_end = text.find('"', path_begin);
  if (path_end == std::string_view::npos || path_end == path_begin) return std::nullopt;
  if (text.substr(path_end, kLineMark.size()) != kLineMark) return std::nullopt;
  const char* first = text.data() + path_end + kLineMark.size();
  const char* last = text.data() + text.size();
  if (first == last || *first < '0' || *first > '9') return std::nullopt;
  std::int64_t line = 0;
  if (std::from_chars(first, last, line).ec != std::errc{}) return std::nullopt;
  return SourceLoc{std::string(text.substr(path_begin, path_end - path_begin)), line, 0, std::nullopt, std::nullopt};
}

bool is_torch_path(std::string_view path) { return path.find("/torch/") != std::string_view::npos; }

std::optional<SourceLoc> source_of(const OriginFacts& origin) {
  return origin.stack_trace ? source_from_stack_trace(*origin.stack_trace) : std::nullopt;
}

// The one value among those present, compared by `text`; nothing where there are none or several.
template <class T, class Text>
std::optional<T> the_only(const std::vector<std::optional<T>>& values, Text text) {
  std::optional<T> found;
  for (const std::optional<T>& value : values) {
    if (!value) continue;
    if (found && text(*found) != text(*value)) return std::nullopt;
    found = value;
  }
  return found;
}

std::optional<SourceLoc> agreed_source(const std::vector<OriginFacts>& origins) {
  std::vector<std::optional<SourceLoc>> sources;
  for (const OriginFacts& origin : origins) sources.push_back(source_of(origin));
  return the_only(sources, [](const SourceLoc& s) { return source_text(s); });
}

std::optional<std::string> agreed_aten(const std::vector<OriginFacts>& origins) {
  std::vector<std::optional<std::string>> ops;
  for (const OriginFacts& origin : origins) ops.push_back(origin.aten);
  return the_only(ops, [](const std::string& s) { return s; });
}

DebugHandle handle_of(std::optional<SourceLoc> source, std::optional<std::string> aten,
                      std::vector<std::string> chain) {
  DebugHandle handle;
  handle.id = debug_handle_id(source, aten, chain);
  handle.source = std::move(source);
  handle.aten_op = std::move(aten);
  handle.ir_chain = std::move(chain);
  return handle;
}

}  // namespace

std::optional<SourceLoc> source_from_stack_trace(std::string_view stack_trace) {
  std::optional<SourceLoc> innermost;
  std::optional<SourceLoc> innermost_user;
  for (std::size_t at = stack_trace.find(kFileMark); at != std::string_view::npos;
       at = stack_trace.find(kFileMark, at + 1)) {
    std::optional<SourceLoc> frame = frame_at(stack_trace, at);
    if (!frame) continue;
    if (!is_torch_path(frame->file)) innermost_user = frame;
    innermost = std::move(frame);
  }
  return innermost_user ? innermost_user : innermost;
}

std::string source_text(const SourceLoc& source) {
  return fmt::format("{}:{}:{}", source.file, source.start_line, source.start_col);
}

std::uint64_t debug_handle_id(const std::optional<SourceLoc>& source, const std::optional<std::string>& aten,
                              const std::vector<std::string>& chain) {
  const std::string text =
      fmt::format("{}|{}|{}", source ? source_text(*source) : "", aten.value_or(""), base::join(chain, ","));
  const auto digest = base::sha256(text);
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < 8; ++i) id = (id << 8) | digest[i];
  return id >> 1;
}

std::optional<DebugHandle> build_debug_handle(const std::vector<OriginFacts>& origins,
                                              const std::optional<OriginFacts>& origin_node,
                                              const std::string& buffer_name) {
  if (origins.empty()) return std::nullopt;
  std::vector<OriginFacts> sorted = origins;
  std::stable_sort(sorted.begin(), sorted.end(), [](const OriginFacts& a, const OriginFacts& b) {
    return a.name != b.name ? a.name < b.name : a.aten.value_or("") < b.aten.value_or("");
  });

  std::optional<SourceLoc> source = origin_node ? source_of(*origin_node) : std::nullopt;
  if (!source) source = agreed_source(sorted);
  std::vector<std::string> chain;
  for (const OriginFacts& origin : sorted) chain.push_back(origin.name);
  chain.push_back(buffer_name);

  DebugHandle handle =
      handle_of(std::move(source), origin_node ? origin_node->aten : agreed_aten(sorted), std::move(chain));
  if (sorted.size() > 1) {
    for (const OriginFacts& origin : sorted) {
      handle.fused_from.push_back(handle_of(source_of(origin), origin.aten, {origin.name}));
    }
  }
  return handle;
}

}  // namespace kerntrail::spyre
