#include "source_text.h"

#include <algorithm>
#include <charconv>

#include "base/files.h"
#include "base/hash.h"
#include "base/strings.h"

namespace kerntrail::probe {
namespace {

constexpr std::int64_t kContextLines = 2;
constexpr std::size_t kMaxSourceBytes = std::size_t{16} << 20;

// `  File "path", line 12, in function`
bool parse_frame_line(std::string_view line, TraceFrame& out) {
  line = base::trim(line);
  constexpr std::string_view kStart = "File \"";
  constexpr std::string_view kLine = "\", line ";
  if (!line.starts_with(kStart)) return false;
  line.remove_prefix(kStart.size());
  const std::size_t end = line.rfind(kLine);
  if (end == std::string_view::npos) return false;
  out.file = line.substr(0, end);
  line.remove_prefix(end + kLine.size());
  const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), out.line);
  if (error != std::errc() || out.line <= 0) return false;
  line.remove_prefix(static_cast<std::size_t>(rest - line.data()));
  constexpr std::string_view kIn = ", in ";
  if (line.starts_with(kIn)) out.function = line.substr(kIn.size());
  return true;
}

bool is_caret_line(std::string_view line) {
  return !line.empty() && line.find_first_not_of("^~ ") == std::string_view::npos;
}

bool below(std::string_view file, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& p) { return file.starts_with(p); });
}

// Parts of torch that compile; the rest of it (nn, functional, optim, ...) is a library that user code calls.
bool is_compiler_part(std::string_view file, const std::vector<std::string>& torch) {
  static constexpr std::string_view kParts[] = {
      "_dynamo/",     "_inductor/",         "_functorch/",    "fx/",      "_decomp/",   "_prims/",  "_refs/",
      "_subclasses/", "_higher_order_ops/", "_prims_common/", "_export/", "_dispatch/", "compiler/"};
  for (const std::string& prefix : torch) {
    if (!file.starts_with(prefix)) continue;
    const std::string_view rest = file.substr(prefix.size());
    return std::any_of(std::begin(kParts), std::end(kParts),
                       [&](std::string_view part) { return rest.starts_with(part); });
  }
  return false;
}

}  // namespace

std::vector<TraceFrame> parse_trace(std::string_view trace) {
  std::vector<TraceFrame> frames;
  bool wants_code = false;
  for (const std::string_view line : base::split_lines(trace)) {
    TraceFrame frame;
    if (parse_frame_line(line, frame)) {
      frames.push_back(frame);
      wants_code = true;
    } else if (wants_code && !base::trim(line).empty() && !is_caret_line(base::trim(line))) {
      frames.back().code = base::trim(line);
      wants_code = false;
    }
  }
  return frames;
}

std::pair<FrameClass, FrameRule> classify_frame(std::string_view file, const FrameRules& rules) {
  if (file.starts_with('<') || file.empty()) return {FrameClass::kGenerated, FrameRule::kNotAFile};
  if (below(file, rules.torch)) {
    return {is_compiler_part(file, rules.torch) ? FrameClass::kCompiler : FrameClass::kLibrary, FrameRule::kTorchPath};
  }
  if (below(file, rules.packages)) return {FrameClass::kLibrary, FrameRule::kSitePackages};
  if (below(file, rules.standard)) return {FrameClass::kLibrary, FrameRule::kStandardLibrary};
  return {FrameClass::kUser, FrameRule::kElsewhere};
}

std::string SourceTexts::shown_path(std::string_view file) const {
  const std::string& directory = rules_.working_directory;
  if (!directory.empty() && file.starts_with(directory)) return std::string(file.substr(directory.size()));
  return std::string(file);
}

bool SourceTexts::is_torch_or_no_file(std::string_view file) const {
  const FrameRule rule = classify_frame(file, rules_).second;
  return rule == FrameRule::kTorchPath || rule == FrameRule::kNotAFile;
}

LocId SourceTexts::chain(std::string_view trace) {
  const auto [it, inserted] = chains_.try_emplace(std::string(trace), LocId::kNone);
  if (!inserted) return it->second;
  LocId outer = LocId::kNone;
  for (const TraceFrame& frame : parse_trace(trace)) {
    const std::string shown = shown_path(frame.file);
    Loc range;
    range.kind = LocKind::kRange;
    range.text = recorder_.text(shown);
    range.line = frame.line;
    if (!frame.function.empty()) range.function = recorder_.text(frame.function);
    if (!frame.code.empty()) range.code = recorder_.text(frame.code);
    std::tie(range.frame_class, range.rule) = classify_frame(frame.file, rules_);
    if (range.frame_class == FrameClass::kUser) {
      auto& [path, lines] = user_lines_[shown];
      path = std::string(frame.file);
      lines.insert(frame.line);
    }
    const LocId inner = recorder_.loc(range);
    if (has(outer)) {
      Loc call;
      call.kind = LocKind::kCall;
      call.child = inner;
      call.caller = outer;
      outer = recorder_.loc(call);
    } else {
      outer = inner;
    }
  }
  it->second = outer;
  return outer;
}

void SourceTexts::write(std::string_view mode) {
  if (mode == "none") return;
  for (const auto& [shown, entry] : user_lines_) {
    const auto& [path, wanted] = entry;
    SourceFile out;
    out.file = shown;
    if (const auto content = base::read_file(path, kMaxSourceBytes)) {
      const auto digest = base::sha256(*content);
      out.sha256 = base::hex(digest.data(), digest.size());
      const auto lines = base::split_lines(*content);
      const auto count = static_cast<std::int64_t>(lines.size());
      const auto keep = [&](std::int64_t line) {
        out.lines[line] = std::string(lines[static_cast<std::size_t>(line - 1)]);
      };
      if (mode == "files") {
        for (std::int64_t line = 1; line <= count; ++line) keep(line);
      } else {
        for (const std::int64_t line : wanted) {
          for (std::int64_t l = std::max<std::int64_t>(1, line - kContextLines);
               l <= std::min(count, line + kContextLines); ++l)
            keep(l);
        }
      }
    }
    recorder_.source(out);
  }
}

}  // namespace kerntrail::probe
