#include "render/drops_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/strings.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

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

}  // namespace

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
  for (std::size_t i = 0; i < passes.size() && i < kDropRows; ++i) {
    const auto& [title, times, pass] = passes[i];
    out += md_row({times > 1 ? fmt::format("{}, {} times", title, times) : title, fmt::format("{}", pass.created),
                   fmt::format("{}", pass.changed), fmt::format("{}", pass.retargeted), fmt::format("{}", pass.left),
                   counts_text(pass.fates, name), fmt::format("{}", pass.losses),
                   fmt::format("{}", pass.marks + pass.findings)});
  }
  out += more_rows(passes.size());
  return out.empty() ? out : heading + " What became of the units\n\n" + out + "\n";
}

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

}  // namespace kerntrail::render
