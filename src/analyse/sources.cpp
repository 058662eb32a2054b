#include "analyse/sources.h"

#include "analyse/pipeline.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

std::string embedded_line(const Capture& capture, std::string_view file, std::int64_t line) {
  for (const SourceFile& source : capture.sources) {
    if (source.file != file) continue;
    auto found = source.lines.find(line);
    if (found != source.lines.end()) return std::string(base::trim(found->second));
  }
  return {};
}

}  // namespace

std::optional<SourceLine> source_of(const Capture& capture, AttrId stack_trace, UnitId unit, SnapshotId snapshot) {
  return source_in(capture, present(capture, unit, stack_trace, snapshot));
}

std::optional<SourceLine> source_in(const Capture& capture, const Observation* seen) {
  if (seen == nullptr || !has(seen->loc)) return std::nullopt;
  const Loc* loc = capture.innermost_user(seen->loc);
  if (loc == nullptr || !has(loc->text) || loc->line <= 0) return std::nullopt;
  SourceLine result{{loc->text, loc->line}, std::string(base::trim(capture.text(loc->code)))};
  if (result.code.empty()) result.code = embedded_line(capture, capture.text(loc->text), loc->line);
  return result;
}

std::string_view last_code_line(std::string_view stack) {
  const auto lines = base::split_lines(stack);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string_view text = base::trim(*line);
    const bool carets = text.find_first_not_of("^~ ") == std::string_view::npos;  // Python 3.11 marks the column
    if (!text.empty() && !carets) return text;
  }
  return {};
}

}  // namespace kerntrail::analyse
