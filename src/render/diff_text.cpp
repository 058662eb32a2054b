#include "render/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kRows = 40;   // of one table; the JSON has all
constexpr std::size_t kNamed = 6;   // units named in one cell
constexpr std::string_view kAll = "`--format json` lists all.";

std::string value_text(const std::string& value) { return value.empty() ? "nothing" : md_code(value); }

std::string difference_text(const Difference& one) {
  return fmt::format("{}: {} → {}", md_text(one.name), value_text(one.was), value_text(one.now));
}

class Table {
 public:
  Table(std::string heading, std::string intro, std::vector<std::string> header)
      : heading_(std::move(heading)), intro_(std::move(intro)), header_(std::move(header)) {}

  void row(const std::vector<std::string>& cells) {
    if (n_++ < kRows) rows_ += md_row(cells);
  }
  // Nothing where there is no row.
  std::string text() const {
    if (n_ == 0) return {};
    std::string out = heading_ + "\n\n" + (intro_.empty() ? "" : intro_ + "\n\n") + md_header(header_) + rows_;
    if (n_ > kRows) out += fmt::format("\nand {} more; {}\n", n_ - kRows, kAll);
    return out + "\n";
  }

 private:
  std::string heading_, intro_, rows_;
  std::vector<std::string> header_;
  std::size_t n_ = 0;
};

class Part {
 public:
  Part(const DiffPart& part, std::string heading) : part_(part), h_(std::move(heading)) {}

  std::string text() const {
    std::string out =
        fields(Change::kLost) + fields(Change::kGained) + drops() + links() + qualities() + values() + truth();
    return out + matching();
  }

 private:
  // In NEW's name; OLD's beside it where it differs or where there is no other.
  std::string unit(const UnitPair& units) const {
    const UnitLabel* old = label(part_.old_labels, units.old_unit);
    const UnitLabel* now = label(part_.new_labels, units.new_unit);
    if (now == nullptr) return old == nullptr ? "—" : fmt::format("{} ({} of OLD)", name(*old), old->id);
    if (old == nullptr || old->name == now->name) return fmt::format("{} ({})", name(*now), now->id);
    return fmt::format("{} ({}; in OLD {}, {})", name(*now), now->id, name(*old), old->id);
  }

  static const UnitLabel* label(const std::unordered_map<UnitId, UnitLabel>& labels, UnitId unit) {
    const auto found = labels.find(unit);
    return found == labels.end() ? nullptr : &found->second;
  }
  static std::string name(const UnitLabel& label) { return md_code(label.name.empty() ? label.id : label.name); }

  std::string site(std::uint32_t i) const {
    if (i == kNoIndex) return "not known";
    const DiffSite& site = part_.sites[i];
    std::string out = site.kind == SiteKind::kPass ? "pass " + md_code(site.path) : md_text(site.path);
    if (!site.subsystem.empty()) out += fmt::format(" ({})", md_text(site.subsystem));
    if (!site.pattern.empty()) out += ", pattern " + md_code(site.pattern);
    if (!site.place.empty()) out += ", " + place_code(site.place);
    if (site.kind == SiteKind::kPass && !site.in_other)
      out += fmt::format("; the pass did not run in {}", site.in_new ? "OLD" : "NEW");
    return out;
  }

  std::string fields(Change change) const {
    const bool lost = change == Change::kLost;
    Table table(
        fmt::format("{} Fields {}", h_, lost ? "lost" : "gained"),
        lost ? "OLD has them, NEW does not, on a unit that both have. What follows from it further down is counted."
             : "NEW has them, OLD does not, on a unit that both have. What follows from it further down is counted.",
        {"Unit", "Stage", "Fields", lost ? "Lost by (NEW)" : "Was lost by (OLD)", "And then"});
    for (const FieldChange& one : part_.fields) {
      if (one.change != change) continue;
      std::string what = unit(one.units);
      if (one.of_group > 0)
        what = fmt::format("{} of {} that can't be told apart, {}", one.affected, base::counted(one.of_group, "unit"),
                           what);
      std::string then = "—";
      if (one.followers > 0) {
        std::vector<std::string> stages;
        for (const std::string& stage : one.follower_stages) stages.push_back(md_text(stage));
        then = fmt::format("{} made of it: {}", base::counted(one.followers, "unit"), base::join(stages, ", "));
      }
      std::string by = one.site == kNoIndex ? fmt::format("not known ({})", one.reason) : site(one.site);
      table.row({what, md_text(one.stage), md_codes(one.fields), by, then});
    }
    return table.text();
  }

  std::string drops() const {
    Table table(
        fmt::format("{} Drops", h_),
        "Places that lose provenance. *new*: NEW loses there what OLD has · *fixed*: OLD lost there what NEW has "
        "· *moved*: both lose it, elsewhere · *shifted*: at another line of the same pass · *apart*: NEW loses "
        "it on units that OLD has no counterpart of.",
        {"Change", "In OLD", "In NEW", "Units and fields"});
    for (const DropDiff& drop : part_.drops) {
      std::map<std::string, std::vector<std::string>> by_fields;
      for (const auto& [units, names] : drop.units) by_fields[md_codes(names)].push_back(unit(units));
      std::vector<std::string> cells;
      for (auto& [names, units] : by_fields) {
        std::string text = base::join(
            {units.begin(), units.begin() + static_cast<std::ptrdiff_t>(std::min(units.size(), kNamed))}, ", ");
        if (units.size() > kNamed) text += fmt::format(" and {} more", units.size() - kNamed);
        cells.push_back(text + ": " + names);
      }
      if (cells.size() > kNamed) {
        const std::size_t left = cells.size() - kNamed;
        cells.resize(kNamed);
        cells.push_back(fmt::format("and {} more", base::counted(left, "set of fields", "sets of fields")));
      }
      table.row({std::string(drop_change_name(drop.change)), drop.old_site == kNoIndex ? "—" : site(drop.old_site),
                 drop.new_site == kNoIndex ? "—" : site(drop.new_site), base::join(cells, "; ")});
    }
    return table.text();
  }

  std::string links() const {
    std::string out;
    for (const bool worse : {true, false}) {
      Table table(
          fmt::format("{} Links {}", h_, worse ? "lost or weaker" : "gained or firmer"),
          "From a source line to a kernel. *recorded*: the compiler's own records lead there · *seen*: what was "
          "watched from outside does · *derived*: only equal lines or neighbours suggest it.",
          {"Source line", "Kernel", "OLD", "NEW", "By"});
      for (const LinkDiff& link : part_.links) {
        if (link.worse() != worse) continue;
        std::string line =
            fmt::format("{} {}", md_code(fmt::format("{}:{}", link.file, link.line)), md_code(link.code));
        if (link.old_line != link.line) line += fmt::format(" (line {} in OLD)", link.old_line);
        table.row({line, unit(link.kernels), std::string(link_rank_name(link.was)),
                   std::string(link_rank_name(link.now)), link.site == kNoIndex ? "not known" : site(link.site)});
      }
      out += table.text();
    }
    return out;
  }

  std::string qualities() const {
    Table table(fmt::format("{} Values of another worth", h_),
                "Present on both sides. What the words mean: `kerntrail rules`.",
                {"Unit", "Stage", "Field", "OLD", "NEW", "Where", "And then"});
    for (const QualityChange& one : part_.qualities) {
      table.row({unit(one.units), md_text(one.stage), md_code(one.field), std::string(quality_name(one.was)),
                 std::string(quality_name(one.now)), one.site == kNoIndex ? "not known" : site(one.site),
                 one.followers == 0 ? "—" : base::counted(one.followers, "unit")});
    }
    return table.text();
  }

  std::string values() const {
    Table table(fmt::format("{} Other source lines", h_),
                "The stack of a unit names another line than its counterpart's, lines compared by their text.",
                {"Unit", "Stage", "OLD", "NEW", "Also"});
    for (const ValueChange& one : part_.values) {
      table.row({unit(one.units), md_text(one.stage), md_code(one.was) + " " + md_code(one.was_code),
                 md_code(one.now) + " " + md_code(one.now_code),
                 one.followers == 0 ? "—" : base::counted(one.followers, "more unit")});
    }
    return table.text();
  }

  static std::string percent(double was, double now) {
    return was == now ? fmt::format("{:.1f} %", now * 100) : fmt::format("{:.1f} → {:.1f} %", was * 100, now * 100);
  }

  std::string truth() const {
    std::string out;
    if (!part_.witnessed) return out;
    Table scores(
        fmt::format("{} Claims against the witness", h_), "",
        {"Stage", "Class", "Who says so", "Lines: precision", "Lines: recall", "Nodes: precision", "Nodes: recall"});
    for (const TruthRow& row : part_.truth) {
      scores.row({md_text(row.stage), row.unit_class.empty() ? "—" : md_text(row.unit_class), md_code(row.evidence),
                  percent(row.old_lines.precision(), row.new_lines.precision()),
                  percent(row.old_lines.recall(), row.new_lines.recall()),
                  percent(row.old_nodes.precision(), row.new_nodes.precision()),
                  percent(row.old_nodes.recall(), row.new_nodes.recall())});
    }
    out += scores.text();
    for (const bool in_new : {true, false}) {
      Table table(fmt::format("{} Contradictions {}", h_, in_new ? "that are new" : "that are gone"), "",
                  {"Unit", "Is said to come from", "By"});
      for (const TruthDiff& one : part_.contradictions) {
        if (one.in_new == in_new) table.row({unit(one.units), md_code(one.what), md_code(one.evidence)});
      }
      out += table.text();
    }
    return out;
  }

  static std::string reasons(const StageMatch& stage) {
    std::map<MatchReason, std::size_t> counts;
    for (const UnitMatch& pair : stage.pairs) ++counts[pair.reason];
    std::vector<std::string> parts;
    for (const auto& [reason, n] : counts) parts.push_back(fmt::format("{} {}", n, match_reason_name(reason)));
    return parts.empty() ? "—" : base::join(parts, ", ");
  }

  std::string matching() const {
    Table table(
        fmt::format("{} How units were matched", h_), "",
        {"Stage", "OLD", "NEW", "Matched by", "Can't be told apart", "Grouped otherwise", "Only OLD", "Only NEW"});
    Table apart(fmt::format("{} Without a counterpart, or kept apart", h_), "", {"Stage", "What", "OLD", "NEW"});
    for (const StageMatch& stage : part_.stages) {
      std::size_t ambiguous = 0;
      std::size_t regrouped = 0;
      for (const UnitGroup& group : stage.groups) {
        const bool alike = group.kind == GroupKind::kAmbiguous;
        (alike ? ambiguous : regrouped) += group.new_units.size();
        apart.row({md_text(stage.key), alike ? "can't be told apart" : "grouped otherwise",
                   names(group.old_units, false), names(group.new_units, true)});
      }
      if (!stage.only_old.empty()) apart.row({md_text(stage.key), "only in OLD", names(stage.only_old, false), "—"});
      if (!stage.only_new.empty()) apart.row({md_text(stage.key), "only in NEW", "—", names(stage.only_new, true)});
      table.row({md_text(stage.key), fmt::format("{}", stage.old_total), fmt::format("{}", stage.new_total),
                 reasons(stage), fmt::format("{}", ambiguous), fmt::format("{}", regrouped),
                 fmt::format("{}", stage.only_old.size()), fmt::format("{}", stage.only_new.size())});
    }
    std::vector<std::string> notes;
    const auto missing = [&](const std::vector<std::string>& stages, std::string_view side) {
      if (!stages.empty()) notes.push_back(fmt::format("Only {} has {}: not compared.", side, md_codes(stages)));
    };
    missing(part_.stages_only_old, "OLD");
    missing(part_.stages_only_new, "NEW");
    if (part_.lines_unmatched > 0)
      notes.push_back(fmt::format("{} without a counterpart by text: links from them are not compared.",
                                  base::counted(part_.lines_unmatched, "source line")));
    if (part_.unreadable > 0)
      notes.push_back(
          fmt::format("{} could not be read on a side: not compared.", base::counted(part_.unreadable, "field")));
    return table.text() + (notes.empty() ? "" : base::join(notes, " ") + "\n\n") + apart.text();
  }

  std::string names(const std::vector<UnitId>& units, bool in_new) const {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < units.size() && i < kNamed; ++i) {
      const UnitLabel* found = label(in_new ? part_.new_labels : part_.old_labels, units[i]);
      if (found != nullptr) parts.push_back(fmt::format("{} ({})", name(*found), found->id));
    }
    std::string out = base::join(parts, ", ");
    if (units.size() > kNamed) out += fmt::format(" and {} more", units.size() - kNamed);
    return out;
  }

  const DiffPart& part_;
  std::string h_;
};

std::string summary(const DiffTotals& t) {
  std::vector<std::string> worse, better, other;
  const auto say = [](std::vector<std::string>& into, std::size_t n, std::string_view noun, std::string_view what) {
    if (n > 0) into.push_back(fmt::format("{} {}", base::counted(n, noun), what));
  };
  say(worse, t.fields_lost, "field", "lost");
  say(worse, t.links_worse, "link", "lost or weaker");
  say(worse, t.drops_new, "new place", "of loss");
  say(worse, t.doubts_new, "new doubt", "about values and claims");
  say(better, t.fields_gained, "field", "gained");
  say(better, t.links_better, "link", "gained or firmer");
  say(better, t.drops_fixed, "place", "of loss fixed");
  say(better, t.doubts_gone, "doubt", "about values and claims gone");
  say(other, t.drops_moved, "place", "of loss moved");
  std::vector<std::string> parts;
  if (!worse.empty()) parts.push_back("**Worse: " + base::join(worse, ", ") + ".**");
  if (!better.empty()) parts.push_back("**Better: " + base::join(better, ", ") + ".**");
  if (worse.empty() && better.empty()) parts.push_back("**No field, link or truth was lost or gained.**");
  if (!other.empty()) parts.push_back(base::join(other, ", ") + ".");
  parts.push_back(fmt::format("Over all stages {} matched, {} of NEW kept apart, {} only in OLD, {} only in NEW.",
                              base::counted(t.matched, "pair of units", "pairs of units"), t.ambiguous, t.only_old,
                              t.only_new));
  return base::join(parts, " ") + "\n\n";
}

std::string settings(const Diff& diff) {
  std::size_t matter = 0;
  for (const Difference& one : diff.settings) matter += one.can_matter ? 1U : 0U;
  std::string out;
  if (diff.cause != kNoIndex) {
    out = fmt::format(
        "One recorded setting that can matter differs, {}: nothing else that was recorded can be the cause.\n\n",
        difference_text(diff.settings[diff.cause]));
  } else if (matter > 1) {
    out = fmt::format("{} settings that can matter differ: which of them is the cause is not shown.\n\n", matter);
  } else if (diff.unlike.empty()) {
    out = "No recorded setting that can matter differs.\n\n";
  }
  if (diff.settings.size() == (diff.cause != kNoIndex ? 1U : 0U)) return out;
  Table table("## What differs between the runs", "", {"What", "OLD", "NEW", "Can matter"});
  for (const Difference& one : diff.settings)
    table.row({md_text(one.name), value_text(one.was), value_text(one.now), one.can_matter ? "yes" : "no"});
  return out + table.text();
}

std::string compiles(const std::vector<CompileId>& ids, std::string_view side) {
  if (ids.empty()) return {};
  return fmt::format("Only {} has {}: not compared.\n\n", side, compiles_text(ids));
}

}  // namespace

std::string unlike_text(const std::vector<Difference>& unlike) {
  std::string out;
  for (const Difference& one : unlike) {
    out += fmt::format("  {}: {}: {} in OLD, {} in NEW\n", one.code, visible(one.name),
                       one.was.empty() ? "nothing" : visible(one.was), one.now.empty() ? "nothing" : visible(one.now));
  }
  return out;
}

std::string diff_markdown(const Diff& diff, const DiffNames& names) {
  std::string out = "# Provenance compared\n\n";
  out += fmt::format("OLD: {} · NEW: {}\n\n", md_code(names.old_name), md_code(names.new_name));
  if (!diff.unlike.empty()) {
    out +=
        "**These captures are not comparable; compared all the same, as was asked for.** What follows may come from "
        "this:\n\n";
    for (const Difference& one : diff.unlike) out += fmt::format("- {}: {}\n", one.code, difference_text(one));
    out += "\n";
  }
  out += summary(diff.totals) + settings(diff);
  if (diff.not_witnessed != 0)
    out += fmt::format("Claims are not compared: {} has no witness (recorded below level truth).\n\n",
                       diff.not_witnessed == 1 ? "OLD" : "NEW");
  out += compiles(diff.only_old, "OLD") + compiles(diff.only_new, "NEW");
  const bool several = diff.parts.size() > 1;
  std::size_t quiet = 0;
  for (const DiffPart& part : diff.parts) {
    const bool same = part.fields.empty() && part.drops.empty() && part.links.empty() && part.qualities.empty() &&
                      part.values.empty() && part.contradictions.empty();
    if (several && same) {
      ++quiet;
      continue;
    }
    if (several)
      out += fmt::format("## Compile {} ({} in OLD; {})\n\n", compile_name(part.new_compile),
                         compile_name(part.old_compile), md_text(part.matched_by));
    out += Part(part, several ? "###" : "##").text();
  }
  if (quiet > 0) out += fmt::format("{} without a difference; {}\n", base::counted(quiet, "compile"), kAll);
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace kerntrail::render
