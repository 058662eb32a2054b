#include "render/drops_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kListed = 8;  // units named in one row
constexpr std::string_view kAll = "`kerntrail drops --format json` lists all.";

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

}  // namespace

std::string unit_text(const Drops& drops, UnitId unit) {
  const auto found = drops.units.find(unit);
  if (found == drops.units.end()) return "—";
  const UnitLabel& label = found->second;
  return label.name.empty() ? md_code(label.id) : fmt::format("{} ({})", md_code(label.name), label.id);
}

std::string listed_units(const Drops& drops, const std::vector<UnitId>& units) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < units.size() && i < kListed; ++i) parts.push_back(unit_text(drops, units[i]));
  std::string out = base::join(parts, ", ");
  if (units.size() > kListed) out += fmt::format(" and {} more", units.size() - kListed);
  return out;
}

std::string units_text(const Drops& drops, const std::vector<UnitId>& units) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < units.size() && i < kNamedUnits; ++i) {
    const auto found = drops.units.find(units[i]);
    if (found == drops.units.end()) continue;
    parts.push_back(md_code(found->second.name.empty() ? found->second.id : found->second.name));
  }
  std::string out = base::join(parts, ", ");
  if (units.size() > kNamedUnits) out += fmt::format(" and {} more", units.size() - kNamedUnits);
  return out;
}

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

std::string graph_text(const Drops& drops, PassId pass) {
  const auto found = drops.pass_labels.find(pass);
  if (found == drops.pass_labels.end() || found->second.graph.empty()) return {};
  const PassLabel& label = found->second;
  return label.graph_path.empty() ? md_code(label.graph)
                                  : fmt::format("{} ({})", md_code(label.graph_path), label.graph);
}

std::string site_text(const Drops& drops, const DropSite& site) {
  if (site.kind == SiteKind::kPass) return "pass " + pass_text(drops, site.pass);
  if (site.kind == SiteKind::kGap) return "no pass: " + md_text(site.title);
  return md_text(site.title);
}

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

std::string heirs_text(std::size_t units, const std::set<UnitId>& heirs, std::string_view one, std::string_view many) {
  if (heirs.empty()) return {};
  return fmt::format("; {} made of {} later {} too", base::counted(heirs.size(), "unit"), units == 1 ? "it" : "them",
                     heirs.size() == 1 ? one : many);
}

std::string more_rows(std::size_t all) {
  return all > kDropRows ? fmt::format("\n… and {} more rows. {}\n", all - kDropRows, kAll) : std::string();
}

}  // namespace kerntrail::render
