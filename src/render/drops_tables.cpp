#include "render/drops_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/strings.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

std::string match_text(const Drops& drops, const Loss& loss) {
  if (loss.sources == 1) return fmt::format("made for the matched node {}, which had it", units_text(drops, loss.had));
  const std::string had =
      loss.had.size() == loss.sources ? "all of which" : fmt::format("{} of which", loss.had.size());
  return fmt::format("made for a match of {} nodes, {} had it: {}", loss.sources, had, units_text(drops, loss.had));
}

std::string evidence_text(const Drops& drops, const Loss& loss) {
  if (loss.way == LossWay::kInPlace) return "it had it until then";
  if (loss.evidence == "match") return match_text(drops, loss);
  static const std::map<std::string_view, std::string_view> kWords{
      {"replacement", "took over the uses of"},      {"users", "what was made of it took over the uses of"},
      {"frame", "made while this was interpreted:"}, {"copy", "copied from"},
      {"rewrite", "declared as a rewrite of"},       {"fusion", "declared as a fusion of"},
      {"decomposition", "declared as a part of"}};
  const auto words = kWords.find(loss.evidence);
  const std::string had =
      loss.sources == loss.had.size() ? "which had it" : fmt::format("{} of {} had it", loss.had.size(), loss.sources);
  if (words != kWords.end()) return fmt::format("{} {}, {}", words->second, units_text(drops, loss.had), had);
  const bool derived = loss.evidence == "location" || loss.evidence == "sibling" || loss.evidence == "producer";
  return fmt::format("{} {} ({}), {}", derived ? "comes, as far as can be told, from" : "comes from",
                     units_text(drops, loss.had), loss.evidence, had);
}

// What one unit lost at one place, or several units alike.
struct Row {
  std::vector<UnitId> units;
  std::vector<std::string> fields;
  std::string evidence, where;
  std::set<UnitId> heirs;
  bool in_stage = true;
};

std::vector<Row> rows_by_unit(const Drops& drops, const std::vector<std::uint32_t>& losses, const SiteWords& where) {
  std::vector<Row> rows;
  std::map<std::tuple<UnitId, std::uint32_t, std::string>, std::size_t> known;
  for (std::uint32_t i : losses) {
    const Loss& loss = drops.losses[i];
    std::string evidence = evidence_text(drops, loss);
    const auto [place, fresh] = known.try_emplace({loss.unit, loss.site, evidence}, rows.size());
    if (fresh)
      rows.push_back(
          {{loss.unit}, {}, std::move(evidence), where ? where(drops.sites[loss.site]) : std::string(), {}, true});
    Row& row = rows[place->second];
    row.fields.push_back(drops.fields[index(loss.field)]);
    row.heirs.insert(loss.heirs.begin(), loss.heirs.end());
    row.in_stage = loss.in_stage;
  }
  return rows;
}

std::vector<Row> rows_of(const Drops& drops, const std::vector<std::uint32_t>& losses, const SiteWords& where) {
  std::vector<Row> rows;
  std::map<std::tuple<std::vector<std::string>, std::string, std::string, bool>, std::size_t> known;
  for (Row& row : rows_by_unit(drops, losses, where)) {
    const auto [place, fresh] = known.try_emplace({row.fields, row.evidence, row.where, row.in_stage}, rows.size());
    if (fresh) {
      rows.push_back(std::move(row));
      continue;
    }
    Row& same = rows[place->second];
    same.units.push_back(row.units.front());
    same.heirs.insert(row.heirs.begin(), row.heirs.end());
  }
  return rows;
}

std::string value_text(const std::string& value) { return value.empty() ? std::string() : md_code(value); }

// "`a.py:1`, `a.py:2` and 3 more"
std::string values_text(const std::vector<std::string>& values) {
  std::string out =
      md_codes({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(values.size(), kNamedUnits))});
  return values.size() > kNamedUnits ? out + fmt::format(" and {} more", values.size() - kNamedUnits) : out;
}

std::string overwritten_text(const Drops& drops, const Mark& mark) {
  const bool values = !mark.was.empty() && !mark.now.empty();
  if (mark.given_up.size() > 1 && values)
    return fmt::format("says {}, none of its {} sources does ({}): {}", md_code(mark.now), mark.sources,
                       values_text(mark.given_up), units_text(drops, mark.others));
  std::string out = values ? fmt::format("says {}, not {}", md_code(mark.now), md_code(mark.was))
                           : std::string("names another source than before");
  if (mark.evidence != "identity")
    out += fmt::format("; none of its sources says so ({})", units_text(drops, mark.others));
  else if (!mark.others.empty())
    out += fmt::format("; the value of {}", units_text(drops, mark.others));
  return mark.swapped ? out + ", which got this unit's" : out;
}

std::string collapsed_text(const Drops& drops, const Mark& mark) {
  if (mark.evidence == "identity") return "part of what it named is gone";
  const std::string what =
      mark.different == mark.sources ? "different things" : base::counted(mark.different, "different thing");
  std::string out = fmt::format("{} sources say {}; given up: {}", mark.sources, what, units_text(drops, mark.others));
  if (mark.given_up.empty() || mark.now.empty()) return out;
  return out + fmt::format(" ({}), kept: {}", values_text(mark.given_up), md_code(mark.now));
}

// Who says what: the chain or the origins lead to units with lines, the other field says one itself.
std::string conflict_text(const Drops& drops, const Mark& mark) {
  if (!has(mark.against)) return "its place in the bundle and its handle name different OpSpecs";
  const std::string &field = drops.fields[index(mark.field)], &other = drops.fields[index(mark.against)];
  const auto leads = [&](const std::string& name) {
    return fmt::format("{} leads to {} ({})", md_code(name), units_text(drops, mark.others),
                       values_text(mark.given_up));
  };
  if (field == "from_node") return fmt::format("{}, {} says {}", leads(field), md_code(other), md_code(mark.was));
  return fmt::format("{} says {}, {}", md_code(field), md_code(mark.now), leads(other));
}

std::string mark_text(const Drops& drops, const Mark& mark) {
  const auto and_so = [&] {
    return has(mark.against) ? fmt::format("; {} is in conflict with it, for that reason alone",
                                           md_code(drops.fields[index(mark.against)]))
                             : std::string();
  };
  switch (mark.quality) {
    case Quality::kOverwritten: return overwritten_text(drops, mark) + and_so();
    case Quality::kCollapsed: return collapsed_text(drops, mark) + and_so();
    case Quality::kVacuous: return "its chain reaches no traced node that has a line";
    case Quality::kCompilerMade:
      if (!mark.others.empty())
        return fmt::format("names itself ({}), not what it was made from: {}", value_text(mark.now),
                           units_text(drops, mark.others));
      return "no frame of the user's" + (mark.now.empty() ? "" : ": " + value_text(mark.now));
    case Quality::kConflict: return conflict_text(drops, mark);
    case Quality::kKept: break;
  }
  return {};
}

}  // namespace

std::string losses_table(const Drops& drops, const std::vector<std::uint32_t>& losses, const SiteWords& where) {
  if (losses.empty()) return {};
  const auto rows = rows_of(drops, losses, where);
  std::vector<std::string> header{"Units", "Lost", "Evidence"};
  if (where) header.insert(header.begin() + 2, "Where");
  std::string out = md_header(header);
  for (std::size_t i = 0; i < rows.size() && i < kDropRows; ++i) {
    std::string evidence = rows[i].evidence;
    evidence += heirs_text(rows[i].units.size(), rows[i].heirs, "lacks it", "lack it");
    std::string units = listed_units(drops, rows[i].units);
    if (!rows[i].in_stage) units += fmt::format(" {}", kGoneSoon);
    std::vector<std::string> cells{std::move(units), md_codes(rows[i].fields), evidence};
    if (where) cells.insert(cells.begin() + 2, rows[i].where);
    out += md_row(cells);
  }
  return out + more_rows(rows.size());
}

std::string marks_table(const Drops& drops, const std::vector<std::uint32_t>& marks, const SiteWords& where) {
  if (marks.empty()) return {};
  std::vector<std::string> header{"Units", "Field", "Quality", "What"};
  if (where) header.push_back("Where");
  struct MarkRow {
    std::vector<std::string> cells;
    std::vector<UnitId> units;
    std::set<UnitId> heirs;
  };
  std::vector<MarkRow> rows;
  std::map<std::vector<std::string>, std::size_t> known;
  for (std::uint32_t m : marks) {
    const Mark& mark = drops.marks[m];
    std::vector<std::string> cells{md_code(drops.fields[index(mark.field)]), std::string(quality_name(mark.quality)),
                                   mark_text(drops, mark)};
    if (where) cells.push_back(mark.site == kNoIndex ? "pass not known" : where(drops.sites[mark.site]));
    const auto [place, fresh] = known.try_emplace(cells, rows.size());
    if (fresh) rows.push_back({std::move(cells), {}, {}});
    rows[place->second].units.push_back(mark.unit);
    rows[place->second].heirs.insert(mark.heirs.begin(), mark.heirs.end());
  }
  std::string out = md_header(header);
  for (std::size_t i = 0; i < rows.size() && i < kDropRows; ++i) {
    std::vector<std::string> cells = std::move(rows[i].cells);
    cells[2] += heirs_text(rows[i].units.size(), rows[i].heirs, "has it", "have it");
    cells.insert(cells.begin(), listed_units(drops, rows[i].units));
    out += md_row(cells);
  }
  return out + more_rows(rows.size());
}

}  // namespace kerntrail::render
