#include "analyse/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

std::string file_of(std::string_view tag) { return fmt::format("kerntrail-debugify-{}.py", tag); }

// The number that `text` begins with.
std::optional<std::uint32_t> number_at(std::string_view text) {
  std::uint32_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return out;
}

std::optional<std::uint32_t> id_of_frame(std::string_view line, std::string_view tag) {
  const std::string head = fmt::format("File \"{}\", line ", file_of(tag));
  line = base::trim(line);
  if (!line.starts_with(head)) return std::nullopt;
  return number_at(line.substr(head.size()));
}

}  // namespace

std::string synthetic_stack(std::string_view tag, std::uint32_t id, std::string_view node) {
  return fmt::format("  File \"{}\", line {}, in forward\n    {}()\n", file_of(tag), id, node);
}

std::string synthetic_source(std::string_view tag, std::uint32_t id) {
  return fmt::format("kerntrail-debugify-{}:{}", tag, id);
}

std::vector<std::uint32_t> ids_of_stack(std::string_view stack, std::string_view tag) {
  std::vector<std::uint32_t> out;
  for (const std::string_view line : base::split_lines(stack))
    if (const auto id = id_of_frame(line, tag)) out.push_back(*id);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::optional<std::uint32_t> id_of_source(std::string_view source, std::string_view tag) {
  const std::string head = fmt::format("kerntrail-debugify-{}:", tag);
  if (!source.starts_with(head)) return std::nullopt;
  return number_at(source.substr(head.size()));
}

std::string restored_stack(std::string_view stack, std::string_view tag, const std::vector<std::string>& originals) {
  std::string out;
  bool is_code_of_frame = false;  // the line after a synthetic frame belongs to it
  for (const std::string_view line : base::split_lines(stack)) {
    const auto id = id_of_frame(line, tag);
    if (id) {
      if (*id > 0 && *id <= originals.size()) out += originals[*id - 1];
      if (!out.empty() && out.back() != '\n') out += '\n';
    } else if (!is_code_of_frame) {
      out += line;
      out += '\n';
    }
    is_code_of_frame = id.has_value();
  }
  return out;
}

}  // namespace kerntrail::analyse
