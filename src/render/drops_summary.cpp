#include "render/drops_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

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

}  // namespace

std::string notes_text(const Drops& drops) {
  std::string out;
  for (const Note& note : drops.notes) out += fmt::format("**{}:** {}.\n\n", md_code(note.code), md_text(note.text));
  return out;
}

std::string summary_text(const Drops& drops, DropGrouping by) {
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

}  // namespace kerntrail::render
