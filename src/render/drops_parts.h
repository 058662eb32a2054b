// Words and tables of "where provenance is lost" that its parts share.
// Must not know: how the parts are put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/drops.h"

namespace kerntrail::render {

inline constexpr std::size_t kDropRows = 25;          // of one table; the JSON has all
inline constexpr std::size_t kNamedUnits = 4;         // in one sentence
inline constexpr std::string_view kGoneSoon = "†";    // explained once, in the summary

// "`name` (c0.n3)"
std::string unit_text(const Drops& drops, UnitId unit);
// Units that a row is about, with their ids.
std::string listed_units(const Drops& drops, const std::vector<UnitId>& units);
// Names only, the first few.
std::string units_text(const Drops& drops, const std::vector<UnitId>& units);
// "`outer` / `inner` (group)"
std::string pass_text(const Drops& drops, PassId pass);
// "`true_graph_0` (c0.g3)": the graph that a pass ran on; empty where it is not known.
std::string graph_text(const Drops& drops, PassId pass);
// "pass `x` (group)", "between fx_aten and fx_post_grad"
std::string site_text(const Drops& drops, const DropSite& site);
// Before a place that is the pass's own.
std::string_view of_pass(const DropSite& site);
// All that is known of a site, in one cell.
std::string where_text(const Drops& drops, const DropSite& site);
// "; 3 units made of it later lack it too": each unit once, whichever of the fields it is about.
std::string heirs_text(std::size_t units, const std::set<UnitId>& heirs, std::string_view one, std::string_view many);
// "… and 3 more rows", where a table has more than it shows.
std::string more_rows(std::size_t all);

// How a table's column "Where" spells a site; none: the table has no such column.
using SiteWords = std::function<std::string(const DropSite&)>;
std::string losses_table(const Drops& drops, const std::vector<std::uint32_t>& losses, const SiteWords& where);
std::string marks_table(const Drops& drops, const std::vector<std::uint32_t>& marks, const SiteWords& where);

// Sections: numbers of every stage and field, what became of units, pass by pass.
std::string totals_text(const Drops& drops, const std::string& heading);
std::string fates_text(const Drops& drops, const std::string& heading);
// "2 passes and 1 change outside any pass made or changed something": the rows of the table of passes.
std::string passes_text(const Drops& drops);

// What is not in the capture, before anything is said of what is.
std::string notes_text(const Drops& drops);
// The paragraphs at the top.
std::string summary_text(const Drops& drops, DropGrouping by);

}  // namespace kerntrail::render
