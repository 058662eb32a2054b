// The baseline: made of a measure, compared with one. The ratchet turns one way: worse fails, better may be kept.
// Must not know: files, output formats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyse/gate_measure.h"
#include "kerntrail/gate.h"
#include "kerntrail/verify.h"

namespace kerntrail::analyse {

// What must agree for two captures to be comparable.
Settings gate_key(const Capture& capture, const GateConfig& config, const GateInput& input);

GateBaseline baseline_of(const Settings& key, const GateMeasure& measure, const std::vector<ScoreRow>* scores);

// Looks up what was accepted; each question marks what it asked for as still there.
class Ratchet {
 public:
  // `before` may be null: everything is new, and nothing is worse.
  Ratchet(const GateBaseline* before, double tolerance);

  bool active() const { return before_ != nullptr; }
  BaselineState state_of(const GateLoss& loss, std::optional<double>& before);

  struct Change {
    std::string stage, field, direction, what;  // what: "coverage", "precision of lines"
    double before = 0.0;
    std::optional<double> now;  // nothing: it is no longer there
  };
  // Worse and better ratios. Losses that are gone are better.
  void compare(const GateBaseline& now);
  const std::vector<Change>& worse() const { return worse_; }
  const std::vector<std::string>& better() const { return better_; }

 private:
  void compare_coverage(const GateBaseline& now);
  void compare_losses(const GateBaseline& now);
  void compare_scores(const GateBaseline& now);
  void compare_score(const BaselineScore& was, const BaselineScore* is);
  void change(Change change);

  const GateBaseline* before_;
  double tolerance_;
  std::vector<Change> worse_;
  std::vector<std::string> better_;
};

// "42.9 %"; 100 % only where nothing is missing.
std::string percent_text(double ratio);

}  // namespace kerntrail::analyse
