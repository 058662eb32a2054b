// Holds a capture against what a gate asks: one method a kind of requirement, each adds checks and findings.
// Must not know: files, output formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyse/gate_baseline.h"
#include "analyse/gate_measure.h"
#include "kerntrail/gate.h"
#include "kerntrail/verify.h"

namespace kerntrail::analyse {

// Lists of names in rules.
bool holds(const std::vector<std::string>& list, const std::string& word);
// Empty and "*" stand for all.
bool chosen(const std::vector<std::string>& list, const std::string& word);
// "; did you mean x?", or what there is.
std::string meant(const std::string& word, const std::vector<std::string>& known);
std::string in_direction(const std::string& direction);  // ", forward"

class GateJudge {
 public:
  GateJudge(const Capture& capture, const GateConfig& config, const GateInput& input);
  Expected<GateResult> judge();

 private:
  enum class May : std::uint8_t { kBeAllowed, kNeverBeAllowed };

  void whole_capture();
  void observed_compiles();
  void hooks();
  void hook_health(const HookRecord& hook, GateCheck& check);
  void required_hooks(GateCheck& check);
  void coverage(const CoverageRule& rule);
  void coverage_of(const CoverageRule& rule, const std::string& field);
  void coverage_at(const CoverageRule& rule, const std::string& field, const std::string& stage);
  void cover_all(const CoverageRule& rule, const std::string& field, const std::string& stage, GateCheck& check);
  void missing_field(GateCheck& check, const std::string& field, const std::string& message);
  void cover(const CoverageRule& rule, const GateCells& cells, GateCheck& check);
  bool named_stages_are_there(const std::vector<std::string>& stages, const CoverageRule* of, ConfigPlace at,
                              GateCheck& check);
  void drops_are_judgeable(const DropRule& rule, GateCheck& check);
  void drops(const DropRule& rule);
  bool selects(const DropRule& rule, const GateLoss& loss) const;
  std::size_t cells_at(const DropRule& rule, const GateLoss& loss) const;
  std::size_t slots_of(const DropRule& rule) const;
  void verified(const VerifiedRule& rule);
  void verify_row(const VerifiedRule& rule, const ScoreRow& row, GateCheck& check);
  void contradictions(const VerifiedRule& rule, const ScoreRow& row, GateFinding& finding) const;
  void baseline();
  void allowed_and_known();
  void finish();

  // A rule that looked at nothing is never a pass.
  void nothing_to_judge(GateCheck& check, const std::string& message);
  std::size_t failed_checks() const;
  GateCheck check(std::string suite, std::string name, ConfigPlace at = {}) const;
  GateFinding gate_finding(std::string rule, std::string message, std::string_view identity = {}) const;
  // The finding of a loss, made where it is the first to ask for it.
  std::uint32_t finding_of(std::size_t loss, GateOutcome outcome, ConfigPlace at);
  void add(GateCheck& check, GateFinding finding, May may);
  void close(GateCheck check);

  const Capture& capture_;
  const GateConfig& config_;
  const GateInput& input_;
  AllowList allow_;
  Ratchet ratchet_;
  GateMeasure measure_;
  std::optional<std::vector<Verification>> verification_;
  std::vector<ScoreRow> scores_;
  std::vector<BaselineState> states_;           // of the losses
  std::vector<std::optional<double>> before_;   // their shares in the baseline
  std::unordered_map<std::size_t, std::uint32_t> findings_;  // by loss
  std::size_t looked_ = 0;  // cells that a coverage rule judged
  GateResult result_;
};

}  // namespace kerntrail::analyse
