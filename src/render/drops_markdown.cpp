#include "render/drops_markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kRows = 25;   // of one table; the JSON has all
constexpr std::size_t kListed = 8;  // units named in one row
constexpr std::size_t kNamed = 4;   // units named in one sentence
constexpr std::string_view kGoneSoon = "†";  // explained once, in the summary
constexpr std::string_view kAll = "`kerntrail drops --format json` lists all.";

std::string unit_text(const Drops& drops, UnitId unit) {
  const auto found = drops.units.find(unit);
  if (found == drops.units.end()) return "—";
  const UnitLabel& label = found->second;
  return label.name.empty() ? md_code(label.id) : fmt::format("{} ({})", md_code(label.name), label.id);
}

// Units that a row is about, with their ids.
std::string listed_units(const Drops& drops, const std::vector<UnitId>& units) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < units.size() && i < kListed; ++i) parts.push_back(unit_text(drops, units[i]));
  std::string out = base::join(parts, ", ");
  if (units.size() > kListed) out += fmt::format(" and {} more", units.size() - kListed);
  return out;
}

std::string units_text(const Drops& drops, const std::vector<UnitId>& units) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < units.size() && i < kNamed; ++i) {
    const auto found = drops.units.find(units[i]);
    if (found == drops.units.end()) continue;
    parts.push_back(md_code(found->second.name.empty() ? found->second.id : found->second.name));
  }
  std::string out = base::join(parts, ", ");
  if (units.size() > kNamed) out += fmt::format(" and {} more", units.size() - kNamed);
  return out;
}

// A slot names what is in it after a slash, as a pass around another does.
std::string path_codes(const std::string& name) {
  constexpr std::string_view kWithin = " / ";
  std::string_view rest = name;
  std::string out;
  for (std::size_t at = rest.find(kWithin); at != std::string_view::npos; at = rest.find(kWithin)) {
    out += md_code(rest.substr(0, at)) + std::string(kWithin);
    rest.remove_prefix(at + kWithin.size());
  }
  return out + md_code(rest);
}

// "`outer` / `inner` (group)"
std::string pass_text(const Drops& drops, PassId pass) {
  const auto found = drops.pass_labels.find(pass);
  if (found == drops.pass_labels.end()) return "—";
  const PassLabel& label = found->second;
  if (label.kind == PassKind::kGap) return "no pass: " + md_text(label.name);
  std::string out;
  for (auto outer = label.within.rbegin(); outer != label.within.rend(); ++outer) out += path_codes(*outer) + " / ";
  out += path_codes(label.name);
  return label.subsystem.empty() ? out : out + " (" + md_text(label.subsystem) + ")";
}

// "pass `x` (group)", "between fx_aten and fx_post_grad"
std::string site_text(const Drops& drops, const DropSite& site) {
  if (site.kind == SiteKind::kPass) return "pass " + pass_text(drops, site.pass);
  if (site.kind == SiteKind::kGap) return "no pass: " + md_text(site.title);
  return md_text(site.title);
}

// Before a place that is the pass's own.
std::string_view of_pass(const DropSite& site) {
  if (!site.by_pass) return {};
  return site.by_call ? "called at " : "function defined at ";
}

std::string where_text(const Drops& drops, const DropSite& site) {
  std::string out = site_text(drops, site);
  if (!site.pattern.empty()) out += ", pattern " + md_code(site.pattern);
  if (!site.place.empty()) out += fmt::format(", {}{}", of_pass(site), place_code(site.place));
  return out;
}

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

std::vector<Row> rows_by_unit(const Drops& drops, const std::vector<std::uint32_t>& losses) {
  std::vector<Row> rows;
  std::map<std::tuple<UnitId, std::uint32_t, std::string>, std::size_t> known;
  for (std::uint32_t i : losses) {
    const Loss& loss = drops.losses[i];
    std::string evidence = evidence_text(drops, loss);
    const auto [place, fresh] = known.try_emplace({loss.unit, loss.site, evidence}, rows.size());
    if (fresh)
      rows.push_back({{loss.unit}, {}, std::move(evidence), where_text(drops, drops.sites[loss.site]), {}, true});
    Row& row = rows[place->second];
    row.fields.push_back(drops.fields[index(loss.field)]);
    row.heirs.insert(loss.heirs.begin(), loss.heirs.end());
    row.in_stage = loss.in_stage;
  }
  return rows;
}

std::vector<Row> rows_of(const Drops& drops, const std::vector<std::uint32_t>& losses) {
  std::vector<Row> rows;
  std::map<std::tuple<std::vector<std::string>, std::string, std::string, bool>, std::size_t> known;
  for (Row& row : rows_by_unit(drops, losses)) {
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

// "; 3 units made of it later lack it too": each unit once, whichever of the fields it is about.
std::string heirs_text(std::size_t units, const std::set<UnitId>& heirs, std::string_view one, std::string_view many) {
  if (heirs.empty()) return {};
  return fmt::format("; {} made of {} later {} too", base::counted(heirs.size(), "unit"), units == 1 ? "it" : "them",
                     heirs.size() == 1 ? one : many);
}

std::string more(std::size_t all) {
  return all > kRows ? fmt::format("\n… and {} more rows. {}\n", all - kRows, kAll) : std::string();
}

std::string losses_table(const Drops& drops, const std::vector<std::uint32_t>& losses, bool with_where) {
  if (losses.empty()) return {};
  const auto rows = rows_of(drops, losses);
  std::vector<std::string> header{"Units", "Lost", "Evidence"};
  if (with_where) header.insert(header.begin() + 2, "Where");
  std::string out = md_header(header);
  for (std::size_t i = 0; i < rows.size() && i < kRows; ++i) {
    std::string evidence = rows[i].evidence;
    evidence += heirs_text(rows[i].units.size(), rows[i].heirs, "lacks it", "lack it");
    std::string units = listed_units(drops, rows[i].units);
    if (!rows[i].in_stage) units += fmt::format(" {}", kGoneSoon);
    std::vector<std::string> cells{std::move(units), md_codes(rows[i].fields), evidence};
    if (with_where) cells.insert(cells.begin() + 2, rows[i].where);
    out += md_row(cells);
  }
  return out + more(rows.size());
}

std::string value_text(const std::string& value) { return value.empty() ? std::string() : md_code(value); }

// "`a.py:1`, `a.py:2` and 3 more"
std::string values_text(const std::vector<std::string>& values) {
  std::string out =
      md_codes({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(values.size(), kNamed))});
  return values.size() > kNamed ? out + fmt::format(" and {} more", values.size() - kNamed) : out;
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

std::string marks_table(const Drops& drops, const std::vector<std::uint32_t>& marks, bool with_where) {
  if (marks.empty()) return {};
  std::vector<std::string> header{"Units", "Field", "Quality", "What"};
  if (with_where) header.push_back("Where");
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
    if (with_where)
      cells.push_back(mark.site == kNoIndex ? "pass not known" : where_text(drops, drops.sites[mark.site]));
    const auto [place, fresh] = known.try_emplace(cells, rows.size());
    if (fresh) rows.push_back({std::move(cells), {}, {}});
    rows[place->second].units.push_back(mark.unit);
    rows[place->second].heirs.insert(mark.heirs.begin(), mark.heirs.end());
  }
  std::string out = md_header(header);
  for (std::size_t i = 0; i < rows.size() && i < kRows; ++i) {
    std::vector<std::string> cells = std::move(rows[i].cells);
    cells[2] += heirs_text(rows[i].units.size(), rows[i].heirs, "has it", "have it");
    cells.insert(cells.begin(), listed_units(drops, rows[i].units));
    out += md_row(cells);
  }
  return out + more(rows.size());
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

// Where a group is one place, the place stands once above its table.
std::set<std::uint32_t> sites_in(const Drops& drops, const DropGroup& group) {
  std::set<std::uint32_t> sites;
  for (std::uint32_t i : group.losses) sites.insert(drops.losses[i].site);
  for (std::uint32_t i : group.marks) sites.insert(drops.marks[i].site);
  return sites;
}

std::string group_heading(const Drops& drops, const DropGroup& group, DropGrouping by,
                          const std::set<std::uint32_t>& sites) {
  const bool placed = by == DropGrouping::kPass || by == DropGrouping::kLine;
  if (!placed)
    return by == DropGrouping::kField ? md_code(group.title) : unit_text(drops, [&] {
      return group.losses.empty() ? drops.marks[group.marks.front()].unit : drops.losses[group.losses.front()].unit;
    }());
  const DropSite& site = drops.sites[*sites.begin()];
  if (by == DropGrouping::kPass || site.place.empty()) {
    return capitalised(site_text(drops, site));
  }
  return place_code(site.place);
}

std::string site_line(const Drops& drops, const DropSite& site, DropGrouping by) {
  std::vector<std::string> parts;
  if (by == DropGrouping::kLine && !site.place.empty())
    parts.push_back("in " + site_text(drops, site) +
                    (!site.by_pass  ? ""
                     : site.by_call ? ", which is called here"
                                    : ", whose function is defined here"));
  if (!site.pattern.empty()) parts.push_back("pattern " + md_code(site.pattern));
  if (by == DropGrouping::kPass && !site.place.empty()) {
    const std::string_view what = site.by_pass           ? of_pass(site)
                                  : site.pattern.empty() ? "line "
                                                         : "its replacement is written in ";
    parts.push_back(fmt::format("{}{}", what, place_code(site.place)));
  }
  return parts.empty() ? std::string() : capitalised(base::join(parts, ", ")) + ".\n\n";
}

std::string groups_text(const Drops& drops, DropGrouping by, const std::string& heading) {
  std::string out;
  for (const DropGroup& group : group_drops(drops, by)) {
    const auto sites = sites_in(drops, group);
    const bool placed = by == DropGrouping::kPass || by == DropGrouping::kLine;
    const bool with_where = !placed || sites.size() > 1;
    out += fmt::format("{} {}\n\n", heading, group_heading(drops, group, by, sites));
    if (!with_where) out += site_line(drops, drops.sites[*sites.begin()], by);
    const std::string losses = losses_table(drops, group.losses, with_where);
    const std::string marks = marks_table(drops, group.marks, with_where);
    out += losses + (losses.empty() || marks.empty() ? "" : "\n") + marks + "\n";
  }
  return out;
}

std::string unplaced_text(const Drops& drops, const std::string& heading) {
  std::vector<std::uint32_t> marks;
  for (std::uint32_t i = 0; i < drops.marks.size(); ++i) {
    if (drops.marks[i].site == kNoIndex) marks.push_back(i);
  }
  if (marks.empty()) return {};
  return heading + " Present, but not to be relied on\n\nIn which pass or stage these came about is not known.\n\n" +
         marks_table(drops, marks, false) + "\n";
}

// "`torch/x.py:3 (f)`": the line that made it; where only the pass's own place is known, that, named so.
std::string orphan_line(const Drops& drops, const Orphan& orphan) {
  if (orphan.site == kNoIndex || drops.sites[orphan.site].place.empty()) return "not known";
  const DropSite& site = drops.sites[orphan.site];
  return std::string(of_pass(site)) + place_code(site.place);
}

std::string orphans_text(const Drops& drops, const std::string& heading) {
  std::string rows;
  for (std::size_t i = 0; i < drops.orphans.size() && i < kRows; ++i) {
    const Orphan& orphan = drops.orphans[i];
    std::vector<std::string> fields;
    for (AttrId field : orphan.fields) fields.push_back(drops.fields[index(field)]);
    std::string unit = unit_text(drops, orphan.unit);
    if (!orphan.in_stage) unit += fmt::format(" {}", kGoneSoon);
    rows +=
        md_row({unit, orphan.site == kNoIndex ? "not known" : site_text(drops, drops.sites[orphan.site]),
                orphan_line(drops, orphan),
                md_codes(fields) + heirs_text(1, {orphan.heirs.begin(), orphan.heirs.end()}, "lacks it", "lack it")});
  }
  if (rows.empty()) return rows;
  return heading +
         " Units that nothing links to a source\n\nNo match, no replacement of uses and no copied field says what they "
         "were made for, so that nothing can be said to have had what they lack: no loss is counted for them.\n\n" +
         md_header({"Unit", "Made by", "Line that made it", "Missing"}) + rows + more(drops.orphans.size()) + "\n";
}

std::string finding_text(const Drops& drops, const ObserverFinding& found) {
  switch (found.rule) {
    case ObserverRule::kOriginsDropped:
      return fmt::format("lost {} of {}: {}", found.lost.size(), base::counted(found.total, "origin"),
                         units_text(drops, found.lost));
    case ObserverRule::kOriginNodeLost:
      return fmt::format("lost its `origin_node` {} without a fusion of this pass", units_text(drops, found.lost));
    case ObserverRule::kHistoryCut: return "its earlier transform records are not all there any more, in their order";
    case ObserverRule::kCreatedSourceless: return "is new and has no `origins`";
    case ObserverRule::kVanished:
      return fmt::format("went, and no unit left holds all it held ({})", units_text(drops, found.lost));
  }
  return {};
}

std::string findings_text(const Drops& drops, bool declared, const std::string& heading) {
  std::string rows;
  std::size_t n = 0;
  for (const ObserverFinding& found : drops.findings) {
    if ((found.intent != kNoIndex) != declared) continue;
    if (++n > kRows) continue;
    std::string what = finding_text(drops, found);
    if (has(found.now)) what += fmt::format("; now {}", unit_text(drops, found.now));
    std::vector<std::string> cells{pass_text(drops, found.pass), std::string(observer_rule_id(found.rule)),
                                   unit_text(drops, found.unit), what};
    if (declared) cells.push_back(md_text(drops.intents[found.intent].reason));
    rows += md_row(cells);
  }
  if (n == 0) return {};
  std::vector<std::string> header{"Pass", "Rule", "Operation", "What"};
  if (declared) header.emplace_back("By design");
  return heading + md_header(header) + rows + more(n) + "\n";
}

std::string declared_text(const Drops& drops, const std::string& heading) {
  std::map<std::pair<PassId, std::uint32_t>, std::pair<std::set<UnitId>, std::set<std::string>>> uses;
  for (const DeclaredUse& use : drops.declared) {
    auto& [units, fields] = uses[{use.pass, use.intent}];
    units.insert(use.unit);
    fields.insert(drops.fields[index(use.field)]);
  }
  std::string rows;
  for (const auto& [key, found] : uses) {
    const Intent& intent = drops.intents[key.second];
    const std::string pass =
        has(key.first) ? pass_text(drops, key.first) : fmt::format("not recorded; perhaps {}", md_code(intent.pass));
    rows += md_row({pass, std::string(intent_kind_name(intent.kind)), md_text(intent.reason),
                    md_codes({found.second.begin(), found.second.end()}),
                    units_text(drops, {found.first.begin(), found.first.end()}), md_text(intent.origin)});
  }
  std::string out;
  if (!rows.empty()) out += md_header({"Pass", "Kind", "By design", "Fields", "Units", "Declared in"}) + rows + "\n";
  out += findings_text(drops, true, "");
  return out.empty() ? out : heading + " Declared: no losses\n\n" + out;
}

template <class Names, std::size_t N>
std::string counts_text(const std::array<std::size_t, N>& counts, Names name) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < N; ++i) {
    if (counts[i] > 0) parts.push_back(fmt::format("{} {}", counts[i], name(i)));
  }
  return parts.empty() ? "—" : base::join(parts, ", ");
}

// Fields that no unit of any stage has or lost: rows about them would hold nothing.
std::set<std::string> never_there(const Drops& drops) {
  std::set<std::string> never, known;
  for (const Loss& loss : drops.losses) known.insert(drops.fields[index(loss.field)]);
  for (const StageTally& stage : drops.stages) {
    if (stage.units == 0) continue;
    for (const FieldTally& field : stage.fields) {
      const std::size_t nothing =
          field.of(Reason::kNeverMade) + field.of(Reason::kInheritedGap) + field.of(Reason::kNotCreatedYet);
      (nothing == stage.units ? never : known).insert(field.name);
    }
  }
  for (const std::string& name : known) never.erase(name);
  return never;
}

std::string totals_text(const Drops& drops, const std::string& heading) {
  const std::set<std::string> never = never_there(drops);
  std::string rows;
  for (const StageTally& stage : drops.stages) {
    if (stage.units == 0) continue;
    for (const FieldTally& field : stage.fields) {
      if (!field.created && field.present == 0) continue;  // nobody could have it yet
      if (never.contains(field.name)) continue;
      rows += md_row({md_text(stage.key), md_code(field.name), fmt::format("{}", stage.units),
                      fmt::format("{}", field.present), fmt::format("{}", field.absent),
                      fmt::format("{}", field.unreadable),
                      counts_text(field.qualities, [](std::size_t i) { return quality_name(static_cast<Quality>(i)); }),
                      counts_text(field.reasons, [](std::size_t i) { return reason_name(static_cast<Reason>(i)); })});
    }
  }
  std::string out = heading + " Totals\n\n";
  if (!rows.empty())
    out += md_header(
               {"Stage", "Field", "Units", "Present", "Absent", "Unreadable", "Present values are", "Absent because"}) +
           rows + "\n";
  if (!never.empty())
    out += fmt::format("Never made at any of these stages, so never lost: {}.\n\n",
                       md_codes({never.begin(), never.end()}));
  return out;
}

struct NamedTally {
  std::string title;
  std::size_t times = 1;  // runs of that name that did something
  PassTally sum;
};

// A pass that ran several times is one row.
std::vector<NamedTally> passes_by_name(const Drops& drops) {
  std::vector<NamedTally> rows;
  std::map<std::string, std::size_t> known;
  for (const PassTally& pass : drops.passes) {
    std::string title = pass_text(drops, pass.pass);
    const auto [place, fresh] = known.try_emplace(title, rows.size());
    if (fresh) {
      rows.push_back({std::move(title), 1, pass});
      continue;
    }
    NamedTally& row = rows[place->second];
    ++row.times;
    row.sum.created += pass.created;
    row.sum.left += pass.left;
    row.sum.changed += pass.changed;
    row.sum.retargeted += pass.retargeted;
    row.sum.losses += pass.losses;
    row.sum.marks += pass.marks;
    row.sum.findings += pass.findings;
    for (std::size_t i = 0; i < kFates; ++i) row.sum.fates[i] += pass.fates[i];
  }
  return rows;
}

constexpr std::string_view kPassColumns =
    "Units that the pass made, changed in a field, gave other inputs, or took away; the fields lost by it; and its "
    "values that are present but doubtful, with the rules for IR passes that it broke.\n\n";

std::string fates_text(const Drops& drops, const std::string& heading) {
  const auto name = [](std::size_t i) { return fate_name(static_cast<Fate>(i)); };
  std::string out;
  for (const StageInterval& interval : drops.intervals)
    out += fmt::format("- {} to {}: {} entered, {}\n", md_text(interval.from), md_text(interval.to),
                       base::counted(interval.entering, "unit"), counts_text(interval.fates, name));
  const auto passes = passes_by_name(drops);
  if (!passes.empty())
    out += (out.empty() ? "" : "\n") + std::string(kPassColumns) +
           md_header({"Pass", "Made", "Changed", "Retargeted", "Gone", "Which were", "Losses",
                      "Doubtful values, broken rules"});
  for (std::size_t i = 0; i < passes.size() && i < kRows; ++i) {
    const auto& [title, times, pass] = passes[i];
    out += md_row({times > 1 ? fmt::format("{}, {} times", title, times) : title, fmt::format("{}", pass.created),
                   fmt::format("{}", pass.changed), fmt::format("{}", pass.retargeted), fmt::format("{}", pass.left),
                   counts_text(pass.fates, name), fmt::format("{}", pass.losses),
                   fmt::format("{}", pass.marks + pass.findings)});
  }
  out += more(passes.size());
  return out.empty() ? out : heading + " What became of the units\n\n" + out + "\n";
}

// "2 passes and 1 change outside any pass made or changed something": the rows of the table of passes.
std::string passes_text(const Drops& drops) {
  std::size_t passes = 0, steps = 0, gaps = 0;
  for (const NamedTally& row : passes_by_name(drops)) {
    const auto label = drops.pass_labels.find(row.sum.pass);
    const PassKind kind = label == drops.pass_labels.end() ? PassKind::kPass : label->second.kind;
    ++(kind == PassKind::kGap ? gaps : kind == PassKind::kStage ? steps : passes);
  }
  std::vector<std::string> parts;
  if (passes > 0 || steps + gaps == 0) parts.push_back(base::counted(passes, "pass", "passes"));
  if (steps > 0) parts.push_back(base::counted(steps, "function around passes", "functions around passes"));
  std::string out = parts.empty() ? std::string() : base::join(parts, " and ") + " made or changed something";
  if (gaps == 0) return out;
  out += out.empty() ? "" : "; ";
  return out + base::counted(gaps, "change", "changes") + " outside any pass";
}

std::string examined(const Drops& drops) {
  std::vector<std::string> stages;
  std::size_t fields = 0;
  for (const StageTally& stage : drops.stages) {
    stages.push_back(fmt::format("{} ({})", md_text(stage.key), base::counted(stage.units, "unit")));
    fields = std::max(fields, stage.fields.size());
  }
  std::string out = fmt::format("{} of {}", base::counted(fields, "field"), base::join(stages, ", "));
  return drops.passes_recorded ? out + "; " + passes_text(drops) : out;
}

// "3 fields of 2 units": absent where the source of the unit is only guessed.
std::string guessed_text(const Drops& drops) {
  std::set<std::pair<UnitId, AttrId>> fields;
  std::set<UnitId> units;
  for (const StageTally& stage : drops.stages) {
    for (const FieldTally& field : stage.fields) {
      for (const FieldUnit& unit : field.units) {
        if (!unit.guessed) continue;
        fields.emplace(unit.unit, field.attr);
        units.insert(unit.unit);
      }
    }
  }
  if (fields.empty()) return {};
  return fmt::format(
      "{} absent on {} whose source is not known{}: equal lines or neighbours suggest one, which is no evidence.\n\n",
      base::counted(fields.size(), "field is", "fields are"), base::counted(units.size(), "unit"),
      drops.passes_recorded ? "" : " at this level (borders)");
}

// What is not in the capture, before anything is said of what is.
std::string notes_text(const Drops& drops) {
  std::string out;
  for (const Note& note : drops.notes) out += fmt::format("**{}:** {}.\n\n", md_code(note.code), md_text(note.text));
  return out;
}

// Nothing is said of what was not looked at.
std::string no_loss(const Drops& drops) {
  if (drops.state.level == kFilesLevel) return "Nothing can be called lost: only files were read";
  std::string of;
  if (!drops.all_stages) of += " in the stages shown";
  if (drops.state.torn)
    of += of.empty() ? " in what was written before the capture broke off" : ", as far as the capture goes";
  else if (drops.state.partial)
    of += of.empty() ? " in what was observed" : ", as far as it was observed";
  return "Nothing was lost" + of;
}

// What is there and says something false is worse than what is gone.
std::string wrong_clause(const Drops& drops) {
  std::set<UnitId> units;
  std::size_t values = 0;
  for (const Mark& mark : drops.marks) {
    if (mark.quality != Quality::kOverwritten) continue;
    ++values;
    units.insert(mark.unit);
  }
  if (values == 0) return {};
  return fmt::format(", but {} on {} {} wrong: written over with another's", base::counted(values, "value"),
                     base::counted(units.size(), "unit"), values == 1 ? "is" : "are");
}

// Places as the grouping shows them: a heading each, or an entry each in the column "Where".
std::size_t places_of(const Drops& drops, DropGrouping by) {
  std::set<std::string> places;
  std::size_t groups = 0;
  for (const DropGroup& group : group_drops(drops, by)) groups += group.losses.empty() ? 0U : 1U;
  for (const Loss& loss : drops.losses) places.insert(where_text(drops, drops.sites[loss.site]));
  return by == DropGrouping::kPass || by == DropGrouping::kLine ? groups : places.size();
}

// "; 2 units made by a pass have no link to any source"
std::string orphans_clause(const Drops& drops) {
  const auto in_pass = [&](const Orphan& o) {
    return o.site != kNoIndex && drops.sites[o.site].kind == SiteKind::kPass;
  };
  const auto passes = static_cast<std::size_t>(std::count_if(drops.orphans.begin(), drops.orphans.end(), in_pass));
  const std::size_t others = drops.orphans.size() - passes;
  std::vector<std::string> parts;
  if (passes > 0) parts.push_back(base::counted(passes, "unit") + " made by a pass");
  if (others > 0) parts.push_back(base::counted(others, passes > 0 ? "other unit" : "unit"));
  if (parts.empty()) return {};
  return fmt::format("; {} {} no link to any source", base::join(parts, " and "),
                     drops.orphans.size() == 1 ? "has" : "have");
}

std::string summary(const Drops& drops, DropGrouping by) {
  std::set<UnitId> units;
  for (const Loss& loss : drops.losses) units.insert(loss.unit);
  std::size_t broken = 0;
  for (const ObserverFinding& found : drops.findings) broken += found.intent == kNoIndex ? 1U : 0U;
  std::string out;
  const std::string guessed = guessed_text(drops);
  if (!drops.losses.empty()) {
    out = fmt::format("**{} on {}, at {}{}{}.**", base::counted(drops.losses.size(), "field", "fields") + " lost",
                      base::counted(units.size(), "unit"), base::counted(places_of(drops, by), "place"),
                      drops.all_stages ? "" : ", in the stages shown", orphans_clause(drops));
  } else {
    out = fmt::format("**{}{}{}.**", guessed.empty() ? no_loss(drops) : "No loss is known", orphans_clause(drops),
                      wrong_clause(drops));
  }
  std::map<Quality, std::size_t> doubtful;
  for (const Mark& mark : drops.marks) ++doubtful[mark.quality];
  std::vector<std::string> parts;
  for (const auto& [quality, n] : doubtful) parts.push_back(fmt::format("{} {}", n, quality_name(quality)));
  if (!parts.empty()) out += fmt::format(" Present values that are not simply kept: {}.", base::join(parts, ", "));
  if (broken > 0) out += fmt::format(" Rules for IR passes broken {}.", base::counted(broken, "time"));
  out += fmt::format(" Examined: {}.\n\n", examined(drops));
  out += guessed;
  const auto gone = [](const auto& found) { return !found.in_stage; };
  if (std::any_of(drops.losses.begin(), drops.losses.end(), gone) ||
      std::any_of(drops.orphans.begin(), drops.orphans.end(), gone))
    out += fmt::format("{}: gone before the next stage; no stage shows the unit without the field.\n\n", kGoneSoon);
  if (!drops.passes_recorded && drops.state.level == kFilesLevel)
    out += "Only the files of a bundle were read: nothing is known of passes, nor of any stage before.\n\n";
  else if (!drops.passes_recorded)
    out +=
        "Passes were not recorded (level `borders`): a loss is placed between two stages, not in a pass. `kerntrail "
        "record --level passes` records them, and what each unit was made of.\n\n";
  return out;
}

std::string body(const Drops& drops, DropGrouping by, const std::string& heading) {
  std::string out = summary(drops, by) + groups_text(drops, by, heading) + orphans_text(drops, heading);
  const bool placed = by == DropGrouping::kPass || by == DropGrouping::kLine;
  if (placed) out += unplaced_text(drops, heading);
  out += findings_text(drops, false, heading + " Rules for IR passes\n\n");
  return out + declared_text(drops, heading);
}

}  // namespace

std::string drops_section(const Drops& drops, const std::string& heading) {
  return heading +
         " Where provenance is lost\n\n"
         "Concluded from what was seen, by the rules that `kerntrail rules` prints. Present and carried fields are "
         "those "
         "of the matrix; lost ones may differ in number, since the matrix compares each stage with the one shown "
         "before "
         "it and takes guessed sources for sources, while here each loss counts once, in the pass or between the "
         "stages "
         "where it came about, and a guessed source proves nothing. A unit that nothing links to a source has no loss "
         "here, but a row in a table of its own; in the matrix it counts as having lost what a guessed source of it "
         "has.\n\n" +
         body(drops, DropGrouping::kPass, heading + "#");
}

std::string drops_markdown(const std::vector<Drops>& all, DropGrouping by, const CaptureState& state) {
  std::string out = "# Where provenance is lost\n\n" + state_text(state);
  if (all.empty())
    out += state.torn ? "No stage of any compile is in it: nothing was examined, and nothing can be said.\n"
                      : "No stage of any compile was observed: nothing was examined.\n";
  for (const Drops& drops : all) {
    if (all.size() > 1)
      out += fmt::format("## Compile {}{}\n\n", compile_name(drops.compile),
                         drops.direction.empty() ? "" : ", " + md_text(drops.direction));
    const std::string heading = all.size() > 1 ? "###" : "##";
    out += notes_text(drops) + body(drops, by, heading) + totals_text(drops, heading) + fates_text(drops, heading);
  }
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace kerntrail::render
