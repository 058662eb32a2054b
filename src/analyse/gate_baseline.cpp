#include "analyse/gate_baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyse/settings.h"
#include "base/strings.h"

namespace kerntrail::analyse {
namespace {

constexpr double kEpsilon = 1e-6;  // what writing a ratio down may change

// "2.13.0+cpu" -> "2.13": patch releases and build marks are comparable.
std::string release(std::string_view version) {
  const std::size_t first = version.find('.');
  const std::size_t second = first == std::string_view::npos ? first : version.find('.', first + 1);
  return std::string(version.substr(0, second));
}

std::string backends_of(const Capture& capture, const std::string& compile) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < capture.compiles.size(); ++i) {
    if (compile.empty() || compile_name(id_at<CompileId>(i)) == compile) names.push_back(capture.compiles[i].backend);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return base::join(names, ", ");
}

std::string metadata_of(const Capture& capture) {
  for (const Compile& compile : capture.compiles) {
    if (const std::string_view own = setting(compile.attributes, "metadata"); !own.empty()) return std::string(own);
  }
  return std::string(setting(capture.run.settings, "metadata"));
}

double rounded(double ratio) { return std::floor(ratio * 1e6 + 0.5) / 1e6; }

std::string in_text(const std::string& direction) { return direction.empty() ? std::string() : " (" + direction + ")"; }

}  // namespace

std::string percent_text(double ratio) {
  if (ratio >= 1.0) return "100 %";
  if (ratio <= 0.0) return "0 %";
  return fmt::format("{:.1f} %", std::clamp(ratio * 100.0, 0.1, 99.9));
}

Settings gate_key(const Capture& capture, const GateConfig& config, const GateInput& input) {
  Settings key;
  const auto add = [&](std::string_view name, std::string_view value) { key.emplace_back(name, value); };
  const std::string_view program = setting(capture.run.settings, "program");
  add("model", config.name.empty() ? base::basename(program) : std::string_view(config.name));
  add("backend", backends_of(capture, input.compile));
  add("torch", release(capture.run.torch));
  add("level", setting(capture.run.settings, "level"));
  add("provenance_level", setting(capture.run.settings, "provenance_level"));
  add("metadata", metadata_of(capture));
  add("compile", input.compile);
  return key;
}

GateBaseline baseline_of(const Settings& key, const GateMeasure& measure, const std::vector<ScoreRow>* scores) {
  GateBaseline out;
  out.key = key;
  out.sources = measure.sources;
  for (const GateCells& cells : measure.cells) {
    if (cells.not_created == cells.units) continue;
    const auto same = std::find_if(out.coverage.begin(), out.coverage.end(), [&](const BaselineCoverage& known) {
      return known.direction == cells.direction && known.stage == cells.stage && known.field == cells.field;
    });
    // Of several back ends in one capture the worst counts.
    if (same != out.coverage.end()) {
      same->ratio = std::min(same->ratio, rounded(cells.ratio(false)));
    } else {
      out.coverage.push_back({cells.direction, cells.stage, cells.field, rounded(cells.ratio(false))});
    }
  }
  for (const GateLoss& loss : measure.losses) {
    if (!loss.ratchets || !loss.open()) continue;
    out.losses.push_back({loss.finding.fingerprint, loss.finding.axis + "/" + loss.finding.rule, loss.finding.direction,
                          loss.finding.field, loss.finding.site, rounded(loss.share)});
  }
  out.witnessed = scores != nullptr;
  if (scores == nullptr) return out;
  for (const ScoreRow& row : *scores) {
    out.scores.push_back({row.stage, row.unit_class, row.evidence, "lines", rounded(row.lines.precision()),
                          rounded(row.lines.recall())});
    if (row.names_nodes)
      out.scores.push_back({row.stage, row.unit_class, row.evidence, "nodes", rounded(row.nodes.precision()),
                            rounded(row.nodes.recall())});
  }
  return out;
}

Ratchet::Ratchet(const GateBaseline* before, double tolerance) : before_(before), tolerance_(tolerance) {}

BaselineState Ratchet::state_of(const GateLoss& loss, std::optional<double>& before) {
  if (before_ == nullptr) return BaselineState::kNone;
  for (const BaselineLoss& known : before_->losses) {
    if (known.fingerprint != loss.finding.fingerprint) continue;
    before = known.share;
    return loss.share > known.share + tolerance_ + kEpsilon ? BaselineState::kUpdated : BaselineState::kUnchanged;
  }
  return BaselineState::kNew;
}

void Ratchet::compare(const GateBaseline& now) {
  if (before_ == nullptr) return;
  compare_coverage(now);
  compare_losses(now);
  compare_scores(now);
}

void Ratchet::change(Change change) {
  if (!change.now || *change.now < change.before - tolerance_ - kEpsilon) {
    worse_.push_back(std::move(change));
  } else if (*change.now > change.before + kEpsilon) {
    better_.push_back(fmt::format("{}{}{}: {} → {}", change.what,
                                  change.stage.empty() ? "" : fmt::format(" of {} at {}", change.field, change.stage),
                                  in_text(change.direction), percent_text(change.before), percent_text(*change.now)));
  }
}

void Ratchet::compare_coverage(const GateBaseline& now) {
  for (const BaselineCoverage& was : before_->coverage) {
    Change one{was.stage, was.field, was.direction, "coverage", was.ratio, std::nullopt};
    for (const BaselineCoverage& is : now.coverage) {
      if (is.direction == was.direction && is.stage == was.stage && is.field == was.field) one.now = is.ratio;
    }
    change(std::move(one));
  }
}

void Ratchet::compare_losses(const GateBaseline& now) {
  for (const BaselineLoss& was : before_->losses) {
    const auto is = std::find_if(now.losses.begin(), now.losses.end(),
                                 [&](const BaselineLoss& loss) { return loss.fingerprint == was.fingerprint; });
    if (is == now.losses.end()) {
      better_.push_back(fmt::format("{} of {}{} is gone{}", was.rule, was.field, in_text(was.direction),
                                    was.site.empty() ? "" : ": " + was.site));
    } else if (is->share < was.share - kEpsilon) {
      better_.push_back(fmt::format("{} of {}{}{}: {} → {} of its slots", was.rule, was.field, in_text(was.direction),
                                    was.site.empty() ? "" : ", " + was.site, percent_text(was.share),
                                    percent_text(is->share)));
    }
  }
}

void Ratchet::compare_score(const BaselineScore& was, const BaselineScore* is) {
  const std::string of = fmt::format("{} of {} ({}, {})", was.of, was.stage, was.evidence,
                                     was.unit_class.empty() ? "any class" : was.unit_class);
  const auto now = [&](double BaselineScore::* member) {
    return is == nullptr ? std::optional<double>() : std::optional<double>(is->*member);
  };
  change({"", "", "", "precision of " + of, was.precision, now(&BaselineScore::precision)});
  change({"", "", "", "recall of " + of, was.recall, now(&BaselineScore::recall)});
}

void Ratchet::compare_scores(const GateBaseline& now) {
  for (const BaselineScore& was : before_->scores) {
    const auto is = std::find_if(now.scores.begin(), now.scores.end(), [&](const BaselineScore& score) {
      return score.stage == was.stage && score.unit_class == was.unit_class && score.evidence == was.evidence &&
             score.of == was.of;
    });
    compare_score(was, is == now.scores.end() ? nullptr : &*is);
  }
}

}  // namespace kerntrail::analyse

namespace kerntrail {

std::vector<GateMismatch> gate_mismatches(const Capture& capture, const GateConfig& config, const GateInput& input) {
  std::vector<GateMismatch> out;
  if (input.baseline == nullptr) return out;
  const GateBaseline& there = *input.baseline;
  const auto ignored = [&](std::string_view member) {
    return std::find(config.ignore.begin(), config.ignore.end(), member) != config.ignore.end();
  };
  const Settings here = analyse::gate_key(capture, config, input);
  for (const auto& [member, value] : here) {
    const std::string_view kept = analyse::setting(there.key, member);
    const bool unknown = member == "model" && (value.empty() || kept.empty());  // then the files decide
    if (value != kept && !unknown && !ignored(member)) out.push_back({member, value, std::string(kept)});
  }
  if (ignored("sources") || there.sources.empty()) return out;
  const std::vector<std::string> files = analyse::user_files(capture);
  const bool shared = std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    return std::find(there.sources.begin(), there.sources.end(), file) != there.sources.end();
  });
  if (!shared && !files.empty()) out.push_back({"sources", base::join(files, ", "), base::join(there.sources, ", ")});
  return out;
}

}  // namespace kerntrail
