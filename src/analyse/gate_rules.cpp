#include <fmt/format.h>

#include <algorithm>

#include "analyse/gate_judge.h"
#include "base/hash.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

constexpr double kEpsilon = 1e-9;
constexpr std::size_t kNamed = 4;  // units that a sentence names

std::string names_of(const std::vector<GateUnit>& units, std::size_t of) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < units.size() && i < kNamed; ++i)
    names.push_back(units[i].name.empty() ? units[i].id : units[i].name);
  std::string out = base::join(names, ", ");
  if (of > names.size()) out += fmt::format("{}{} more", names.empty() ? "" : " and ", of - names.size());
  return out;
}

std::string place_text(const SourcePlace& place) {
  if (place.file.empty()) return {};
  return fmt::format("{}:{}{}", place.file, place.line, place.code.empty() ? "" : " (" + place.code + ")");
}

std::string drops_name(const DropRule& rule) {
  std::string name = (rule.max > 0 ? "little " : "no ") + base::join(rule.classes, ", ");
  if (!rule.fields.empty()) name += " of " + base::join(rule.fields, ", ");
  if (!rule.stages.empty()) name += " at " + base::join(rule.stages, ", ");
  if (!rule.passes.empty()) name += " in " + base::join(rule.passes, ", ");
  return name;
}

}  // namespace

// ---- coverage ----

bool GateJudge::named_stages_are_there(const std::vector<std::string>& stages, const CoverageRule* of, ConfigPlace at,
                                       GateCheck& check) {
  bool all = true;
  for (const std::string& stage : stages) {
    if (stage == "*") continue;
    for (const GatePart& part : measure_.parts) {
      if (of != nullptr && ((!of->backend.empty() && of->backend != part.backend) ||
                            (!of->direction.empty() && of->direction != part.direction)))
        continue;
      if (holds(part.stages, stage)) continue;
      all = false;
      GateFinding finding = gate_finding("missing-stage",
                                         fmt::format("compile {}{} has no stage {}{}", part.compile,
                                                     in_direction(part.direction), stage, meant(stage, part.stages)),
                                         part.compile + part.direction + stage);
      finding.stage = stage;
      finding.asked = at;
      add(check, std::move(finding), May::kNeverBeAllowed);
    }
  }
  return all;
}

void GateJudge::coverage(const CoverageRule& rule) {
  const bool any = std::any_of(measure_.parts.begin(), measure_.parts.end(), [&](const GatePart& part) {
    return (rule.backend.empty() || rule.backend == part.backend) &&
           (rule.direction.empty() || rule.direction == part.direction);
  });
  if (!any) {
    GateCheck none = check("capture", "coverage: there is a compile to look at", rule.at);
    const std::string what =
        fmt::format("no observed compile{}{}", rule.backend.empty() ? "" : " has backend " + rule.backend,
                    rule.direction.empty() ? "" : " has direction " + rule.direction);
    add(none, gate_finding("no-compile", what, rule.backend + rule.direction), May::kNeverBeAllowed);
    return close(std::move(none));
  }
  for (const std::string& stage : rule.stages) {
    GateCheck there =
        check(stage, fmt::format("coverage of {}: the stage is there", base::join(rule.fields, ", ")), rule.at);
    if (!named_stages_are_there({stage}, &rule, rule.at, there)) close(std::move(there));
  }
  for (const std::string& field : rule.fields) coverage_of(rule, field);
}

void GateJudge::coverage_of(const CoverageRule& rule, const std::string& field) {
  const std::size_t looked = looked_;
  const std::size_t failed = failed_checks();
  for (const std::string& stage : measure_.stages) {
    if (chosen(rule.stages, stage)) coverage_at(rule, field, stage);
  }
  // A pattern of stages asks for the field where it can be: but somewhere it must.
  if (!holds(rule.stages, "*") || looked != looked_ || failed != failed_checks()) return;
  GateCheck none = check("capture", fmt::format("coverage of {}: it is there", field), rule.at);
  if (field == "*" || holds(measure_.fields, field)) {
    nothing_to_judge(none, fmt::format("no stage has {} to look at", field == "*" ? "a field" : field));
  } else {
    missing_field(none, field, fmt::format("no stage has a field {}{}", field, meant(field, measure_.fields)));
  }
  close(std::move(none));
}

void GateJudge::missing_field(GateCheck& check, const std::string& field, const std::string& message) {
  GateFinding finding = gate_finding("missing-field", message, check.suite + field);
  finding.field = field;
  add(check, std::move(finding), May::kNeverBeAllowed);
}

void GateJudge::coverage_at(const CoverageRule& rule, const std::string& field, const std::string& stage) {
  const bool named = holds(rule.stages, stage);
  GateCheck one = check(stage, fmt::format("coverage of {}", field == "*" ? "every field" : field), rule.at);
  const auto has_field = [&](const GateCells& cells) {
    return cells.stage == stage && cells.field == field && (cells.units == 0 || cells.not_created < cells.units);
  };
  if (field != "*" && std::none_of(measure_.cells.begin(), measure_.cells.end(), has_field)) {
    if (!named) return;
    missing_field(one, field,
                  fmt::format("stage {} has no field {}{}", stage, field,
                              holds(measure_.fields, field) ? std::string(": it does not exist yet there")
                                                            : meant(field, measure_.fields)));
    return close(std::move(one));
  }
  const std::size_t looked = looked_;
  cover_all(rule, field, stage, one);
  if (looked == looked_ && one.passed && named)
    nothing_to_judge(one, fmt::format("stage {} has none of the fields asked for", stage));
  close(std::move(one));
}

void GateJudge::nothing_to_judge(GateCheck& check, const std::string& message) {
  add(check, gate_finding("empty-stage", message + ": nothing was judged", check.name), May::kNeverBeAllowed);
}

std::size_t GateJudge::failed_checks() const {
  return static_cast<std::size_t>(
      std::count_if(result_.checks.begin(), result_.checks.end(), [](const GateCheck& c) { return !c.passed; }));
}

// Every cell of the stage that the rule is about.
void GateJudge::cover_all(const CoverageRule& rule, const std::string& field, const std::string& stage,
                          GateCheck& check) {
  std::vector<std::string> texts;
  for (const GateCells& cells : measure_.cells) {
    const bool asked = cells.stage == stage && (field == "*" || field == cells.field) &&
                       (rule.backend.empty() || rule.backend == cells.backend) &&
                       (rule.direction.empty() || rule.direction == cells.direction);
    if (!asked || (cells.units > 0 && cells.not_created == cells.units)) continue;
    cover(rule, cells, check);
    if (field == "*") continue;
    texts.push_back(fmt::format("{} of {} ({}){}{}{}", rule.kept ? cells.kept : cells.covered, cells.judged(),
                                percent_text(cells.ratio(rule.kept)), in_direction(cells.direction),
                                cells.by_design == 0 ? "" : fmt::format(", {} by design", cells.by_design),
                                cells.allowed == 0 ? "" : fmt::format(", {} allowed", cells.allowed)));
  }
  check.text =
      fmt::format("{}{}at least {}", base::join(texts, "; "), texts.empty() ? "" : "; ", percent_text(rule.min));
}

void GateJudge::cover(const CoverageRule& rule, const GateCells& cells, GateCheck& check) {
  const std::string identity = fmt::format("{}|{}|{}|{}", cells.backend, cells.direction, cells.stage, cells.field);
  if (cells.units == 0) {
    if (holds(rule.stages, "*"))
      return result_.notes.push_back(
          fmt::format("stage {} has no units{}: nothing to judge there", cells.stage, in_direction(cells.direction)));
    GateFinding empty = gate_finding(
        "empty-stage",
        fmt::format("stage {} has no units{}: nothing to judge", cells.stage, in_direction(cells.direction)), identity);
    empty.stage = cells.stage;
    return add(check, std::move(empty), May::kNeverBeAllowed);
  }
  ++looked_;
  const double ratio = cells.ratio(rule.kept);
  if (ratio >= rule.min - kEpsilon) return;
  const std::size_t lacking = cells.judged() - (rule.kept ? cells.kept : cells.covered);
  GateFinding finding = gate_finding(
      "coverage",
      fmt::format(
          "{} of {} {}s at {} have {}{} ({}; asked for {}){}", rule.kept ? cells.kept : cells.covered, cells.judged(),
          cells.noun, cells.stage, rule.kept ? "a sound " : "", cells.field, percent_text(ratio),
          percent_text(rule.min),
          cells.missing.empty() ? "" : ": not " + names_of(cells.missing, std::max(lacking, cells.missing.size()))),
      identity);
  std::vector<std::string> reasons;
  for (const auto& [reason, n] : cells.reasons) reasons.push_back(fmt::format("{} {}", n, reason));
  finding.why = base::join(reasons, ", ");
  finding.direction = cells.direction;
  finding.stage = cells.stage;
  finding.field = cells.field;
  finding.measured = ratio;
  finding.required = rule.min;
  finding.units = cells.missing;
  for (const GateUnit& unit : cells.missing) {
    if (finding.source.file.empty()) finding.source = unit.source;
  }
  for (const GateCells& step : measure_.cells) {
    if (step.field == cells.field && step.backend == cells.backend && step.direction == cells.direction &&
        step.units > step.not_created)
      finding.flow.push_back({step.stage,
                              fmt::format("{}: {} on {} of {}", step.title, step.field, step.covered, step.judged()),
                              finding.source});
  }
  add(check, std::move(finding), May::kBeAllowed);
}

// ---- losses ----

bool GateJudge::selects(const DropRule& rule, const GateLoss& loss) const {
  if (!holds(rule.classes, loss.finding.rule) || !chosen(rule.fields, loss.finding.field)) return false;
  const auto matches = [&](const std::string& pattern) { return pass_matches(loss.finding.pass, pattern); };
  if (!rule.passes.empty() && std::none_of(rule.passes.begin(), rule.passes.end(), matches)) return false;
  return rule.stages.empty() || cells_at(rule, loss) > 0;
}

std::size_t GateJudge::cells_at(const DropRule& rule, const GateLoss& loss) const {
  std::size_t n = 0;
  for (const auto& [stage, cells] : loss.cells) n += chosen(rule.stages, stage) ? cells : 0;
  return n;
}

std::size_t GateJudge::slots_of(const DropRule& rule) const {
  std::size_t n = 0;
  for (const GateCells& cells : measure_.cells)
    n += chosen(rule.stages, cells.stage) && chosen(rule.fields, cells.field) ? cells.units : 0;
  return n;
}

std::uint32_t GateJudge::finding_of(std::size_t at, GateOutcome outcome, ConfigPlace asked) {
  const auto [place, fresh] = findings_.try_emplace(at, static_cast<std::uint32_t>(result_.findings.size()));
  if (!fresh) {
    GateFinding& known = result_.findings[place->second];
    if (outcome == GateOutcome::kFailed) known.outcome = outcome;
    return place->second;
  }
  const GateLoss& loss = measure_.losses[at];
  GateFinding finding = loss.finding;
  finding.outcome = outcome;
  finding.asked = asked;
  finding.baseline = states_[at];
  finding.before = before_[at];
  finding.measured = loss.share;
  const std::string where = finding.site.empty() ? (finding.stage.empty() ? std::string() : " at " + finding.stage)
                                                 : (finding.site.starts_with("between ") ? " " : " in ") + finding.site;
  const std::string rule = finding.axis == "observer" ? "rule " + finding.rule + " is broken" : finding.rule;
  finding.message = fmt::format("{}: {} on {} ({}){}{}", finding.field, rule, base::counted(loss.times, "unit"),
                                names_of(finding.units, loss.times), where,
                                finding.compiler.file.empty() ? "" : ", " + place_text(finding.compiler));
  if (loss.open()) {
    if (loss.allowed > 0) finding.why = fmt::format("{} of {} are allowed", loss.allowed, loss.times);
    finding.allowed_reason.clear();
    if (loss.expired != nullptr)
      finding.why += fmt::format("{}it was allowed by {} until {}: expired", finding.why.empty() ? "" : "; ",
                                 loss.expired->owner, loss.expired->expires);
  }
  result_.findings.push_back(std::move(finding));
  return place->second;
}

void GateJudge::drops_are_judgeable(const DropRule& rule, GateCheck& check) {
  named_stages_are_there(rule.stages, nullptr, rule.at, check);
  for (const std::string& field : rule.fields) {
    if (field != "*" && !holds(measure_.fields, field))
      missing_field(check, field, fmt::format("no stage has a field {}{}", field, meant(field, measure_.fields)));
  }
  const auto needs_passes = [](const std::string& word) { return word.size() == 1 || word == "overwritten"; };
  if (std::none_of(rule.classes.begin(), rule.classes.end(), needs_passes)) return;
  for (const GatePart& part : measure_.parts) {
    if (part.passes_recorded) continue;
    const std::string what =
        fmt::format("passes of compile {} were not recorded, so {} can't be judged: record with --level passes",
                    part.compile, base::join(rule.classes, ", "));
    add(check, gate_finding("no-passes", what, part.compile), May::kNeverBeAllowed);
  }
}

void GateJudge::drops(const DropRule& rule) {
  GateCheck one = check("passes", drops_name(rule), rule.at);
  drops_are_judgeable(rule, one);
  std::vector<std::size_t> open;
  std::size_t cells = 0;
  for (std::size_t i = 0; i < measure_.losses.size(); ++i) {
    const GateLoss& loss = measure_.losses[i];
    if (!loss.open() || states_[i] == BaselineState::kUnchanged || !selects(rule, loss)) continue;
    open.push_back(i);
    cells += cells_at(rule, loss);
  }
  const std::size_t slots = slots_of(rule);
  const double ratio = slots == 0 ? 0.0 : static_cast<double>(cells) / static_cast<double>(slots);
  if (slots == 0 && one.passed) nothing_to_judge(one, "no stage has the fields that the rule is about");
  if (!open.empty() && (rule.max <= 0.0 || ratio > rule.max + kEpsilon)) {
    one.passed = false;
    for (std::size_t i : open) {
      const std::uint32_t at = finding_of(i, GateOutcome::kFailed, rule.at);
      result_.findings[at].required = rule.max;
      one.findings.push_back(at);
    }
  }
  if (one.passed || !open.empty()) {
    one.text = open.empty() ? std::string("none")
                            : fmt::format("{}, {} of the slots looked at", base::counted(open.size(), "finding"),
                                          percent_text(ratio));
    if (rule.max > 0) one.text += fmt::format("; at most {}", percent_text(rule.max));
  }
  close(std::move(one));
}

}  // namespace kerntrail::analyse
