#include <fmt/format.h>

#include "base/strings.h"
#include "render/gate.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

// GitHub refuses a comment of more characters; bytes are never fewer than characters.
constexpr std::size_t kLimit = 65'536;
constexpr std::size_t kReserve = 1'500;  // for what is said of what was left out
constexpr std::size_t kText = 600;       // of one cell

std::string shown(const std::string& text) { return md_text(base::cut(text, kText)); }

// Adds pieces as long as they fit, and counts those that did not.
class Page {
 public:
  // A section's own lines are written with its first row.
  void section(std::string title, std::string head) {
    close();
    title_ = std::move(title);
    head_ = "\n## " + title_ + "\n\n" + std::move(head);
  }
  // `make` is asked only while there is room.
  template <class Make>
  void row(Make make) {
    const std::string text = left_ > 0 ? std::string() : make();
    const std::size_t needed = text.size() + (head_written_ ? 0 : head_.size());
    if (left_ > 0 || out.size() + needed > kLimit - kReserve) {
      ++left_;
      return;
    }
    if (!head_written_) out += head_;
    head_written_ = true;
    out += text;
  }
  void close() {
    if (left_ > 0) missing_ += fmt::format("{}{} of \"{}\"", missing_.empty() ? "" : ", ", left_, title_);
    left_ = 0;
    head_written_ = false;
  }
  std::string finished() {
    close();
    if (!missing_.empty())
      out += fmt::format("\n**Left out, as a comment holds {} characters:** {}. `--format json` has all.\n", kLimit,
                         missing_);
    return out;
  }
  std::string out;

 private:
  std::string title_, head_, missing_;
  bool head_written_ = false;
  std::size_t left_ = 0;
};

std::string place_cell(const SourcePlace& place) {
  return place.file.empty() ? std::string("—")
                            : md_code(base::cut(fmt::format("{}:{}", place.file, place.line), kText));
}

std::string finding_row(const GateFinding& finding, const std::string& last, const GateView& view) {
  SourcePlace source = finding.source;
  source.file = relative_file(source.file, view);
  SourcePlace compiler = finding.compiler;
  compiler.file = relative_file(compiler.file, view);
  return md_row({md_code(finding.axis + "/" + finding.rule), shown(finding.message), place_cell(source),
                 place_cell(compiler), last.empty() ? "—" : shown(last)});
}

void findings(Page& page, const GateResult& result, const GateView& view, GateOutcome outcome,
              const std::string& title) {
  const std::string last = outcome == GateOutcome::kAllowed ? "Allowed" : "Why";
  page.section(title, md_header({"Rule", "What", "Model", "Compiler", last}));
  for (const GateFinding& finding : result.findings) {
    if (finding.outcome == outcome)
      page.row([&] {
        return finding_row(finding, outcome == GateOutcome::kAllowed ? allowed_text(finding) : finding.why, view);
      });
  }
}

void list(Page& page, const std::string& title, const std::vector<std::string>& lines) {
  page.section(title, "");
  for (const std::string& line : lines) page.row([&] { return "- " + shown(line) + "\n"; });
}

}  // namespace

std::string gate_markdown(const GateResult& result, const GateView& view) {
  Page page;
  page.out = fmt::format("# Provenance gate: {}\n\n{} **{}.** Capture {}, asked for in {}",
                         result.passed ? "passed" : "failed", result.passed ? "✓" : "✗", gate_headline(result),
                         md_code(view.capture), md_code(view.config));
  page.out += view.baseline.empty() ? ".\n" : fmt::format(", baseline {}.\n", md_code(view.baseline));
  findings(page, result, view, GateOutcome::kFailed, "Fails");
  list(page, "Better than the baseline: `--update` keeps it so", result.improvements);
  page.section("Checks", md_header({"", "Where", "Check", "Found"}));
  for (bool passed : {false, true}) {
    for (const GateCheck& check : result.checks) {
      if (check.passed == passed)
        page.row(
            [&] { return md_row({passed ? "✓" : "✗", md_code(check.suite), shown(check.name), shown(check.text)}); });
    }
  }
  findings(page, result, view, GateOutcome::kAllowed, "Allowed");
  findings(page, result, view, GateOutcome::kKnown, "In the baseline, and no worse");
  list(page, "Notes", result.notes);
  return page.finished();
}

}  // namespace kerntrail::render
