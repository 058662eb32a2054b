// May this change merge? What a configuration asks of a capture, what was accepted before (the baseline), and every
// place where the capture falls short of either. Fails closed: what is missing, torn, partial or was not observed is
// never a pass.
// Must not know: files, command lines, output formats.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"
#include "kerntrail/drops.h"

namespace kerntrail {

// ---- what is asked ----

// Where in the configuration something stands.
struct ConfigPlace {
  std::uint64_t line = 0, column = 0;  // 1-based; 0: unknown
};

// The share of units of a stage that have a field, in a slot of their own or carried by another of theirs. Units that
// an intent or an allow entry accounts for are left out of it.
struct CoverageRule {
  ConfigPlace at;
  std::vector<std::string> stages, fields;  // keys and names; "*": all that a compile has
  std::string backend, direction;           // only compiles of it; empty: all
  double min = 1.0;
  bool kept = false;  // values that are wrong or less than they could be do not count
};

// At most this share of the fields of units may be lost or spoilt in one of these ways.
struct DropRule {
  ConfigPlace at;
  std::vector<std::string> classes;                // words of `kerntrail rules`: "dropped", "overwritten", "a"
  std::vector<std::string> stages, fields;         // empty: all
  std::vector<std::string> passes;  // "outer / inner", its last parts, or patterns of them; empty: all
  double max = 0.0;
};

// How far the compiler's claims are to be trusted, by the witness (level truth).
struct VerifiedRule {
  ConfigPlace at;
  std::vector<std::string> stages, classes, evidence;  // empty: all
  bool nodes = false;  // of nodes; else of source lines
  std::optional<double> min_precision, min_recall;
};

struct HookRule {
  ConfigPlace at;
  bool absent = false, failed = true, errors = true, not_restored = true;  // true: fails the gate
  std::vector<std::string> required;  // labels or attributes: must be installed and have fired
  std::vector<std::string> expected_absent;  // patterns: absent is fine
};

// Lets findings pass that are like this, until a day. Empty members match anything.
struct AllowEntry {
  ConfigPlace at;
  std::string rule, stage, field, pass, place, unit;
  std::string reason, owner;  // never empty
  std::string expires;  // "YYYY-MM-DD": the last day on which it holds
};

struct GateConfig {
  std::string path;  // as given; stands in messages
  std::string name;  // of the model; empty: the capture's program
  std::string intents;  // file of declared intents, relative to the configuration
  std::vector<CoverageRule> coverage;
  std::vector<DropRule> drops;
  std::vector<VerifiedRule> verified;
  HookRule hooks;
  std::vector<AllowEntry> allow;
  double tolerance = 0.0;  // how much worse than the baseline a ratio may be
  std::vector<std::string> ignore;  // members of the key that need not agree with the baseline's
};

// The words that DropRule::classes may hold.
std::vector<std::string> gate_classes();

// ---- what was accepted before ----

struct BaselineCoverage {
  std::string direction, stage, field;
  double ratio = 0.0;
};
struct BaselineLoss {
  std::string fingerprint;  // of its logical identity: no line numbers, no counts
  std::string rule, direction, field, site;  // for people
  double share = 0.0;  // of the field's slots over all stages
};
struct BaselineScore {
  std::string stage, unit_class, evidence, of;  // of: "lines", "nodes"
  double precision = 1.0, recall = 1.0;
};

struct GateBaseline {
  Settings key;  // what must agree for two captures to be comparable
  std::vector<std::string> sources;  // the user's files that units lead back to
  std::vector<BaselineCoverage> coverage;
  std::vector<BaselineLoss> losses;
  bool witnessed = false;
  std::vector<BaselineScore> scores;
};

// Errors name line, column and place. kTooNew: written by a newer version.
Expected<GateBaseline> parse_baseline(std::string_view json, std::string_view path);
std::string baseline_json(const GateBaseline& baseline);

// ---- what was found ----

enum class GateOutcome : std::uint8_t {
  kFailed,
  kKnown,  // in the baseline, and no worse
  kAllowed,  // by an entry of the allow list
};
std::string_view gate_outcome_name(GateOutcome v);  // "failed", "known", "allowed"

// Against the baseline.
enum class BaselineState : std::uint8_t { kNone, kNew, kUnchanged, kUpdated };
std::string_view baseline_state_name(BaselineState v);  // "", "new", "unchanged", "updated"

struct SourcePlace {
  std::string file;  // as in the capture; empty: none
  std::int64_t line = 0;
  std::string code;
};

// One step from the source line to the last stage that shows the loss.
struct GateStep {
  std::string stage, text;
  SourcePlace place;  // may be empty
};

struct GateUnit {
  std::string id, name;
  SourcePlace source;  // the line of the model behind it, where known
};

struct GateFinding {
  std::string axis, rule;  // "reason" "dropped"; "gate" "coverage" (analyse/rules.h)
  GateOutcome outcome = GateOutcome::kFailed;
  BaselineState baseline = BaselineState::kNone;
  std::string fingerprint;
  std::string message;  // one sentence
  std::string why;  // why it fails, or does not
  std::string direction, stage, field, pass, site;
  SourcePlace compiler;  // the line of the compiler that is charged
  SourcePlace source;  // the line of the model; may be empty
  ConfigPlace asked;  // the rule of the configuration that asks for it; line 0: none
  std::vector<GateUnit> units;
  std::vector<GateStep> flow;
  std::optional<double> measured, required, before;  // ratios
  std::string allowed_reason, allowed_owner, allowed_until;
};

// One requirement, tested once.
struct GateCheck {
  std::string suite;  // a stage, "capture", "hooks", "passes", "baseline"
  std::string name;
  std::string text;  // "3 of 7 (42.9 %), asked for 100 %"
  bool passed = true;
  ConfigPlace asked;
  std::vector<std::uint32_t> findings;  // that failed it
};

struct GateResult {
  bool passed = false;
  bool whole = false;  // the capture can be judged at all: complete, with compiles, everything observed
  bool compared = false;  // with a baseline
  CaptureState state;
  Settings key;
  std::vector<GateCheck> checks;
  std::vector<GateFinding> findings;  // failed first, then known, then allowed; within these in pipeline order
  std::vector<std::string> improvements;  // better than the baseline: --update would keep it so
  std::vector<std::string> notes;  // entries that are idle, expired or soon will be, ...
  std::size_t regressions = 0;  // worse than the baseline, allowed or not
  GateBaseline measured;  // what an update writes

  std::size_t count(GateOutcome v) const;
};

struct GateInput {
  const GateBaseline* baseline = nullptr;
  std::string today;  // "YYYY-MM-DD"
  std::string compile;  // "c1": only this; empty: all
  std::vector<Intent> intents;  // beside the built-in ones
};

// One thing in which a capture and a baseline differ so that comparing them would say nothing.
struct GateMismatch {
  std::string member, here, there;
};
std::vector<GateMismatch> gate_mismatches(const Capture& capture, const GateConfig& config, const GateInput& input);

// kUsage: a compile that the capture does not have.
Expected<GateResult> gate(const Capture& capture, const GateConfig& config, const GateInput& input);

}  // namespace kerntrail
