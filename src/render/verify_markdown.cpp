#include "render/verify_markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/strings.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kRows = 40;   // of one table; the JSON has all
constexpr std::size_t kNamed = 4;   // units named in one cell
constexpr std::string_view kAll = "`kerntrail verify --format json` lists all.";

std::string percent(double share) {
  // 99.96 % must not read as 100 %.
  if (share >= 1.0) return "100 %";
  return fmt::format("{:.1f} %", std::min(share * 100.0, 99.9));
}

std::string unit_text(const Verification& one, UnitId unit) {
  const auto found = one.labels.find(unit);
  if (found == one.labels.end()) return "—";
  const VerifyLabel& label = found->second;
  return label.name.empty() ? md_code(label.id) : fmt::format("{} ({})", md_code(label.name), label.id);
}

std::vector<std::string> unit_texts(const Verification& one, const std::vector<UnitId>& units) {
  std::vector<std::string> out;
  for (UnitId unit : units) out.push_back(unit_text(one, unit));
  return out;
}

// The first of them, and how many more there are.
std::string listed(const std::vector<std::string>& texts) {
  const std::size_t shown = std::min(texts.size(), kNamed);
  std::string out = base::join({texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(shown)}, ", ");
  if (texts.size() > kNamed) out += fmt::format(" and {} more", texts.size() - kNamed);
  return out.empty() ? "—" : out;
}

std::string units_text(const Verification& one, const std::vector<UnitId>& units) {
  return listed(unit_texts(one, units));
}

std::vector<std::string> score_cells(const Score& score) {
  std::vector<std::string> out{fmt::format("{}", score.total())};
  for (std::size_t i = 0; i < kSupports; ++i) out.push_back(fmt::format("{}", score.claimed[i]));
  out.push_back(percent(score.precision()));
  out.push_back(fmt::format("{}", score.missed));
  out.push_back(percent(score.recall()));
  return out;
}

std::string score_table(const std::vector<ScoreRow>& rows, bool lines) {
  std::vector<std::string> header{"Stage", "Who says so", "Class", "Units", "Claimed"};
  for (std::size_t i = 0; i < kSupports; ++i) header.emplace_back(support_name(static_cast<Support>(i)));
  for (std::string_view title : {"Precision", "Missed", "Recall"}) header.emplace_back(title);
  std::string out = md_header(header);
  for (const ScoreRow& row : rows) {
    if (!lines && !row.names_nodes) continue;
    std::vector<std::string> cells{md_text(row.title), "compiler, " + md_code(row.evidence),
                                   row.unit_class.empty() ? "—" : md_text(row.unit_class),
                                   fmt::format("{}", row.units)};
    for (std::string& cell : score_cells(lines ? row.lines : row.nodes)) cells.push_back(std::move(cell));
    out += md_row(cells);
  }
  return out + "\n";
}

std::string tables(const std::vector<ScoreRow>& rows, const std::string& heading) {
  return fmt::format(
             "{} Source lines\n\nWhether the unit does something for the source line that the compiler names, through "
             "the nodes it names or in a handle.\n\n{}{} Nodes\n\n",
             heading, score_table(rows, true), heading) +
         score_table(rows, false);
}

// Several records of the compiler may say the same of several units, an operation and the kernel that it went into
// among them: one row, with all units and all who say so.
struct Row {
  std::vector<std::string> units, evidence, instead;
  std::string what, verdict, why;
};

void add_once(std::vector<std::string>& into, const std::string& text) {
  if (std::find(into.begin(), into.end(), text) == into.end()) into.push_back(text);
}

class Rows {
 public:
  void add(const std::string& unit, const std::string& evidence, const std::string& what, const std::string& verdict,
           const std::vector<std::string>& instead, const std::string& why) {
    const auto [at, fresh] = at_.try_emplace(base::join({what, verdict, why}, "\n"), rows_.size());
    if (fresh) rows_.push_back({{}, {}, {}, what, verdict, why});
    Row& row = rows_[at->second];
    add_once(row.units, unit);
    add_once(row.evidence, evidence);
    for (const std::string& one : instead) add_once(row.instead, one);
  }
  const std::vector<Row>& all() const { return rows_; }

 private:
  std::vector<Row> rows_;
  std::unordered_map<std::string, std::size_t> at_;
};

std::string line_text(const LineVerdict& line) {
  const std::string place = md_code(fmt::format("{}:{}", line.file, line.line));
  return line.code.empty() ? place : fmt::format("{} {}", place, md_code(line.code));
}

std::string node_text(const Verification& one, UnitId node) {
  const auto found = one.labels.find(node);
  std::string out = unit_text(one, node);
  if (found != one.labels.end() && !found->second.target.empty()) out += " " + md_code(found->second.target);
  return out;
}

std::string rewrite_text(const Verification& one, std::uint32_t i) {
  const Rewrite& rewrite = one.rewrites[i];
  std::string out = fmt::format("{} was made from {}, and names {}", unit_text(one, rewrite.node),
                                md_codes(rewrite.was), md_code(rewrite.now));
  out += rewrite.at_birth ? " from the first" : " since";
  if (rewrite.at_birth || (rewrite.pass.empty() && rewrite.place.empty())) return out;
  if (!rewrite.pass.empty()) out += " " + md_code(rewrite.pass);
  if (!rewrite.place.empty())
    out += fmt::format(", {}{}", rewrite.place_is_pass ? "defined at " : "", place_code(rewrite.place));
  return out;
}

std::string why(const Verification& one, const LineVerdict& line) {
  std::vector<std::string> parts;
  for (std::uint32_t i : line.rewrites) parts.push_back(rewrite_text(one, i));
  if (parts.empty() && line.claimed && !line.nodes.empty())
    parts.push_back("claimed through " + units_text(one, line.nodes));
  return parts.empty() ? "—" : base::join(parts, "; ");
}

std::vector<Row> contradictions(const Verification& one, bool missed) {
  Rows rows;
  for (const UnitVerdict& unit : one.units) {
    const std::string name = unit_text(one, unit.unit);
    for (const LineVerdict& line : unit.lines) {
      if (missed ? line.claimed : !(line.claimed && contradicts(line.support))) continue;
      rows.add(name, unit.evidence, line_text(line), std::string(support_name(line.support)),
               unit_texts(one, missed ? line.nodes : line.elsewhere), why(one, line));
    }
    for (const NodeVerdict& node : unit.nodes) {
      if (missed ? node.claimed : !(node.claimed && contradicts(node.support))) continue;
      rows.add(name, unit.evidence, node_text(one, node.node), std::string(support_name(node.support)),
               missed ? std::vector<std::string>() : unit_texts(one, node.elsewhere), "—");
    }
  }
  return rows.all();
}

std::string rows_text(const std::vector<Row>& rows, std::vector<std::string> header) {
  std::string out = md_header(header);
  for (std::size_t i = 0; i < rows.size() && i < kRows; ++i) {
    const Row& row = rows[i];
    out += md_row({row.what, listed(row.units), md_codes(row.evidence), row.verdict, listed(row.instead), row.why});
  }
  if (rows.size() > kRows) out += fmt::format("\nand {} more; {}\n", rows.size() - kRows, kAll);
  return out + "\n";
}

std::string found(const Verification& one, const std::string& heading) {
  std::string out;
  const auto false_claims = contradictions(one, false);
  out += heading + " Contradictions\n\n";
  if (false_claims.empty()) {
    out += one.units.empty() ? "No claim was examined.\n\n"
                             : "None: each unit does something for every node and every line that it is said to come "
                               "from.\n\n";
  } else {
    out += "The compiler says that the units come from this, and nothing in them is for it.\n\n" +
           rows_text(false_claims, {"This", "Is said to be in", "By", "Witness", "Done by", "Why"});
  }
  const auto missed = contradictions(one, true);
  if (!missed.empty()) {
    out += heading + " Missed\n\nThe units work for this, and the compiler does not say so.\n\n" +
           rows_text(missed, {"This", "Is in", "Not said by", "It", "Through", "Why"});
  }
  if (!one.unverified.empty()) {
    out += heading + " Not verified\n\nNothing witnesses these: what is said of them stays a claim.\n\n" +
           md_header({"Unit", "Stage", "Why"});
    for (std::size_t i = 0; i < one.unverified.size() && i < kRows; ++i) {
      const Unverified& unit = one.unverified[i];
      out += md_row({unit_text(one, unit.unit), md_code(unit.stage), md_text(unit.reason)});
    }
    if (one.unverified.size() > kRows) out += fmt::format("\nand {} more; {}\n", one.unverified.size() - kRows, kAll);
    out += "\n";
  }
  return out;
}

constexpr std::string_view kExplained =
    "What the compiler says of each unit, checked against the witness: which node asked for each operation and each "
    "line of it, found without reading what the compiler says. *computes*: the unit calculates for it · *constant*: it "
    "holds its constant, no more · *moves*: it reads, writes or hands on a value · *index*: a view or an index "
    "expression, which shapes where it reads and writes · *control*: an assertion or the like · *encloses*: it "
    "works for a sub-graph that the node calls · *elsewhere*: nothing, other units do it · *nowhere*: nothing, and no "
    "unit does. The last two contradict the claim. Precision: claims "
    "that are not contradicted, of all. Recall: these, of these and the missed ones.\n\n";

}  // namespace

std::string verify_section(const Verification& one, const std::string& heading) {
  return heading + " Is it true?\n\n" + std::string(kExplained) + tables(one.rows, heading + "#") +
         found(one, heading + "#");
}

std::string verify_markdown(const std::vector<Verification>& all, const CaptureState& state) {
  std::string out = "# Claims against the witness\n\n" + state_text(state) + std::string(kExplained);
  const bool several = all.size() > 1;
  if (several) out += "## All compiles\n\n";
  out += tables(total_rows(all), several ? "###" : "##");
  for (const Verification& one : all) {
    if (several) out += fmt::format("## Compile {}\n\n", compile_name(one.compile));
    out += found(one, several ? "###" : "##");
  }
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace kerntrail::render
