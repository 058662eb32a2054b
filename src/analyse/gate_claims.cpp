// Claims against the witness, and the capture against its baseline.
#include <fmt/format.h>

#include <algorithm>

#include "analyse/gate_judge.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

constexpr double kEpsilon = 1e-9;

}  // namespace

// ---- claims ----

void GateJudge::contradictions(const VerifiedRule& rule, const ScoreRow& row, GateFinding& finding) const {
  const auto add_unit = [&](const Verification& one, UnitId unit, SourcePlace source) {
    if (finding.units.size() >= kNamedUnits) return;
    const auto label = one.labels.find(unit);
    GateUnit named;
    if (label != one.labels.end()) named = {label->second.id, label->second.name, {}};
    named.source = std::move(source);
    if (finding.source.file.empty()) finding.source = named.source;
    finding.units.push_back(std::move(named));
  };
  for (const Verification& one : *verification_) {
    for (const UnitVerdict& unit : one.units) {
      if (unit.stage != row.stage || unit.unit_class != row.unit_class || unit.evidence != row.evidence) continue;
      for (const LineVerdict& line : unit.lines) {
        if (!rule.nodes && (line.claimed ? contradicts(line.support) : true))
          add_unit(one, unit.unit, {line.file, line.line, line.code});
      }
      for (const NodeVerdict& node : unit.nodes) {
        if (rule.nodes && (node.claimed ? contradicts(node.support) : true)) add_unit(one, unit.unit, {});
      }
    }
  }
}

void GateJudge::verify_row(const VerifiedRule& rule, const ScoreRow& row, GateCheck& check) {
  const Score& score = rule.nodes ? row.nodes : row.lines;
  const auto one = [&](const char* what, double is, const std::optional<double>& min) {
    if (!min || is >= *min - kEpsilon) return;
    const std::string of = fmt::format("{} of {} ({}, {})", rule.nodes ? "nodes" : "lines", row.stage, row.evidence,
                                       row.unit_class.empty() ? "any class" : row.unit_class);
    GateFinding finding = gate_finding(
        what,
        fmt::format("{} of {}: {}, asked for {}; {} of {} claims are contradicted, {} missed", what, of,
                    percent_text(is), percent_text(*min), score.total() - score.right(), score.total(), score.missed),
        of);
    finding.stage = row.stage;
    finding.field = row.evidence;
    finding.measured = is;
    finding.required = min;
    contradictions(rule, row, finding);
    for (const GateUnit& unit : finding.units) {
      if (!unit.source.file.empty())
        finding.flow.push_back({row.stage,
                                fmt::format("{} is said to come from this line, or does and nobody says so", unit.name),
                                unit.source});
    }
    add(check, std::move(finding), May::kBeAllowed);
  };
  one("precision", score.precision(), rule.min_precision);
  one("recall", score.recall(), rule.min_recall);
}

void GateJudge::verified(const VerifiedRule& rule) {
  GateCheck one = check("verified",
                        fmt::format("claims of {} at {}", rule.nodes ? "nodes" : "lines",
                                    rule.stages.empty() ? "every stage" : base::join(rule.stages, ", ")),
                        rule.at);
  if (!verification_) {
    add(one,
        gate_finding(
            "no-witness",
            "claims are to be verified, and nothing in this capture was witnessed: record it with --level truth"),
        May::kNeverBeAllowed);
    return close(std::move(one));
  }
  std::vector<std::string> texts;
  for (const ScoreRow& row : scores_) {
    if (!chosen(rule.stages, row.stage) || !chosen(rule.classes, row.unit_class) ||
        !chosen(rule.evidence, row.evidence))
      continue;
    if (rule.nodes && !row.names_nodes) continue;
    const Score& score = rule.nodes ? row.nodes : row.lines;
    if (score.total() + score.missed == 0) continue;
    verify_row(rule, row, one);
    texts.push_back(fmt::format("{} {}: precision {}, recall {}", row.stage, row.evidence,
                                percent_text(score.precision()), percent_text(score.recall())));
  }
  const auto has_row = [&](const std::string& stage) {
    return stage == "*" ||
           std::any_of(scores_.begin(), scores_.end(), [&](const ScoreRow& row) { return row.stage == stage; });
  };
  for (const std::string& stage : rule.stages) {
    if (has_row(stage)) continue;
    add(one,
        gate_finding("missing-stage",
                     fmt::format("nothing is claimed at stage {}{}", stage, meant(stage, measure_.stages)),
                     "verified" + stage),
        May::kNeverBeAllowed);
  }
  if (texts.empty() && one.passed)
    add(one, gate_finding("no-witness", "claims are to be verified, and the capture holds none of the kind asked for"),
        May::kNeverBeAllowed);
  one.text = base::join(texts, "; ");
  close(std::move(one));
}

// ---- the baseline ----

void GateJudge::baseline() {
  result_.measured = baseline_of(result_.key, measure_, verification_ ? &scores_ : nullptr);
  if (!ratchet_.active()) return;
  result_.compared = true;
  ratchet_.compare(result_.measured);
  GateCheck ratios = check("baseline", "nothing is worse than the baseline");
  for (const Ratchet::Change& change : ratchet_.worse()) {
    const std::string of = change.stage.empty() ? change.what
                                                : fmt::format("{} of {} at {}{}", change.what, change.field,
                                                              change.stage, in_direction(change.direction));
    GateFinding finding = gate_finding("regressed",
                                       fmt::format("{}: {} before, {} now", of, percent_text(change.before),
                                                   change.now ? percent_text(*change.now) : "not there any more"),
                                       of);
    finding.stage = change.stage;
    finding.field = change.field;
    finding.direction = change.direction;
    finding.before = change.before;
    finding.measured = change.now;
    finding.baseline = BaselineState::kUpdated;
    ++result_.regressions;
    add(ratios, std::move(finding), May::kBeAllowed);
  }
  close(std::move(ratios));
  GateCheck fresh = check("baseline", "no loss that the baseline does not have");
  for (std::size_t i = 0; i < measure_.losses.size(); ++i) {
    const GateLoss& loss = measure_.losses[i];
    const bool worse = states_[i] == BaselineState::kNew || states_[i] == BaselineState::kUpdated;
    if (!loss.ratchets || !loss.open() || !worse) continue;
    ++result_.regressions;
    const std::uint32_t at = finding_of(i, GateOutcome::kFailed, {});
    GateFinding& finding = result_.findings[at];
    finding.why += fmt::format("{}{}", finding.why.empty() ? "" : "; ",
                               states_[i] == BaselineState::kNew
                                   ? std::string("the baseline does not have it")
                                   : fmt::format("{} of its slots in the baseline, {} now",
                                                 percent_text(before_[i].value_or(0.0)), percent_text(loss.share)));
    fresh.passed = false;
    fresh.findings.push_back(at);
  }
  close(std::move(fresh));
  result_.improvements = ratchet_.better();
}

void GateJudge::allowed_and_known() {
  for (std::size_t i = 0; i < measure_.losses.size(); ++i) {
    const GateLoss& loss = measure_.losses[i];
    if (!loss.open()) {
      finding_of(i, GateOutcome::kAllowed, {});
    } else if (loss.ratchets && states_[i] == BaselineState::kUnchanged) {
      finding_of(i, GateOutcome::kKnown, {});
    }
  }
}

}  // namespace kerntrail::analyse
