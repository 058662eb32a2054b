#include "render/drops_markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "render/drops_parts.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

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
    parts.push_back((site.kind == SiteKind::kPass ? "in " : "") + site_text(drops, site) +
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

// "`true_graph_0` (c0.g5), `false_graph_0` (c0.g6)": where a pass ran on several graphs; else empty.
std::string graphs_of(const Drops& drops, const std::set<std::uint32_t>& sites) {
  std::vector<std::string> graphs;
  for (std::uint32_t i : sites) {
    const std::string graph = graph_text(drops, drops.sites[i].pass);
    if (!graph.empty() && std::find(graphs.begin(), graphs.end(), graph) == graphs.end()) graphs.push_back(graph);
  }
  return graphs.size() > 1 ? base::join(graphs, ", ") : std::string();
}

// Beside a heading that names the pass: what tells its places apart.
std::string within_pass(const Drops& drops, const DropSite& site, bool several_graphs) {
  std::vector<std::string> parts;
  if (several_graphs) parts.push_back("on " + graph_text(drops, site.pass));
  if (!site.pattern.empty()) parts.push_back("pattern " + md_code(site.pattern));
  if (!site.place.empty()) parts.push_back(fmt::format("{}{}", of_pass(site), place_code(site.place)));
  return parts.empty() ? "—" : base::join(parts, ", ");
}

std::string group_text(const Drops& drops, const DropGroup& group, DropGrouping by, const std::string& heading) {
  const auto sites = sites_in(drops, group);
  const bool placed = by == DropGrouping::kPass || by == DropGrouping::kLine;
  const std::string graphs = by == DropGrouping::kPass ? graphs_of(drops, sites) : std::string();
  SiteWords where = [&](const DropSite& site) {
    const bool of_heading = by == DropGrouping::kPass && site.kind == SiteKind::kPass;
    return of_heading ? within_pass(drops, site, !graphs.empty()) : where_text(drops, site);
  };
  std::set<std::string> places;
  for (std::uint32_t i : sites) {
    if (placed) places.insert(where(drops.sites[i]));  // by field and unit a mark's site may not be known
  }
  std::string out = fmt::format("{} {}\n\n", heading, group_heading(drops, group, by, sites));
  if (!graphs.empty()) out += fmt::format("Ran on several graphs: {}.\n\n", graphs);
  if (places.size() == 1) {
    out += site_line(drops, drops.sites[*sites.begin()], by);
    where = nullptr;
  }
  const std::string losses = losses_table(drops, group.losses, where);
  const std::string marks = marks_table(drops, group.marks, where);
  return out + losses + (losses.empty() || marks.empty() ? "" : "\n") + marks + "\n";
}

std::string groups_text(const Drops& drops, DropGrouping by, const std::string& heading) {
  std::string out;
  for (const DropGroup& group : group_drops(drops, by)) out += group_text(drops, group, by, heading);
  return out;
}

std::string unplaced_text(const Drops& drops, const std::string& heading) {
  std::vector<std::uint32_t> marks;
  for (std::uint32_t i = 0; i < drops.marks.size(); ++i) {
    if (drops.marks[i].site == kNoIndex) marks.push_back(i);
  }
  if (marks.empty()) return {};
  return heading + " Present, but not to be relied on\n\nIn which pass or stage these came about is not known.\n\n" +
         marks_table(drops, marks, nullptr) + "\n";
}

// "`torch/x.py:3 (f)`": the line that made it; where only the pass's own place is known, that, named so.
std::string orphan_line(const Drops& drops, const Orphan& orphan) {
  if (orphan.site == kNoIndex || drops.sites[orphan.site].place.empty()) return "not known";
  const DropSite& site = drops.sites[orphan.site];
  return std::string(of_pass(site)) + place_code(site.place);
}

std::string orphans_text(const Drops& drops, const std::string& heading) {
  std::string rows;
  for (std::size_t i = 0; i < drops.orphans.size() && i < kDropRows; ++i) {
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
         md_header({"Unit", "Where it was made", "Line that made it", "Missing"}) + rows +
         more_rows(drops.orphans.size()) + "\n";
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
    if (++n > kDropRows) continue;
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
  return heading + md_header(header) + rows + more_rows(n) + "\n";
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

std::string body(const Drops& drops, DropGrouping by, const std::string& heading) {
  std::string out = summary_text(drops, by) + groups_text(drops, by, heading) + orphans_text(drops, heading);
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
