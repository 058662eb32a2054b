#include "kerntrail/gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyse/gate_judge.h"
#include "analyse/rules.h"
#include "base/hash.h"
#include "base/strings.h"

namespace kerntrail {

std::string_view gate_outcome_name(GateOutcome v) {
  switch (v) {
    case GateOutcome::kFailed: return "failed";
    case GateOutcome::kKnown: return "known";
    case GateOutcome::kAllowed: return "allowed";
  }
  return "failed";
}

std::string_view baseline_state_name(BaselineState v) {
  switch (v) {
    case BaselineState::kNone: return "";
    case BaselineState::kNew: return "new";
    case BaselineState::kUnchanged: return "unchanged";
    case BaselineState::kUpdated: return "updated";
  }
  return "";
}

std::size_t GateResult::count(GateOutcome v) const {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const GateFinding& f) { return f.outcome == v; }));
}

std::vector<std::string> gate_classes() {
  std::vector<std::string> out;
  for (const analyse::Rule& rule : analyse::rules()) {
    const bool loss = rule.axis == "reason" &&
                      (rule.id == "dropped" || rule.id == "orphan" || rule.id == "never_made" || rule.id == "unknown");
    if (loss || (rule.axis == "quality" && rule.id != "kept") || rule.axis == "observer") out.emplace_back(rule.id);
  }
  return out;
}

Expected<GateResult> gate(const Capture& capture, const GateConfig& config, const GateInput& input) {
  return analyse::GateJudge(capture, config, input).judge();
}

namespace analyse {

bool holds(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}
bool chosen(const std::vector<std::string>& list, const std::string& word) {
  return list.empty() || holds(list, word) || holds(list, "*");
}

std::string meant(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = base::nearest(word, known);
  if (!near.empty()) return fmt::format("; did you mean {}?", near);
  return known.empty() ? std::string() : "; it has " + base::join(known, ", ");
}

std::string in_direction(const std::string& direction) {
  return direction.empty() ? std::string() : ", " + direction;
}

GateJudge::GateJudge(const Capture& capture, const GateConfig& config, const GateInput& input)
    : capture_(capture),
      config_(config),
      input_(input),
      allow_(config.allow, input.today),
      ratchet_(input.baseline, config.tolerance) {}

Expected<GateResult> GateJudge::judge() {
  DropOptions options;
  options.analysis.compile = input_.compile;
  options.intents = input_.intents;
  KERNTRAIL_TRY(const auto all, kerntrail::drops(capture_, options));
  measure_ = measure_gate(capture_, all, allow_);
  result_.key = gate_key(capture_, config_, input_);
  result_.state = capture_state(capture_);
  if (!config_.verified.empty() || result_.state.level == "truth" ||
      (input_.baseline != nullptr && input_.baseline->witnessed)) {
    if (auto found = verify(capture_, options.analysis)) verification_ = std::move(*found);
    if (verification_) scores_ = total_rows(*verification_);
  }
  for (const GateLoss& loss : measure_.losses) {
    before_.emplace_back();
    states_.push_back(loss.ratchets ? ratchet_.state_of(loss, before_.back()) : BaselineState::kNone);
  }
  whole_capture();
  hooks();
  for (const CoverageRule& rule : config_.coverage) coverage(rule);
  for (const DropRule& rule : config_.drops) drops(rule);
  for (const VerifiedRule& rule : config_.verified) verified(rule);
  baseline();
  finish();
  return std::move(result_);
}

GateCheck GateJudge::check(std::string suite, std::string name, ConfigPlace at) const {
  GateCheck out;
  out.suite = std::move(suite);
  out.name = std::move(name);
  out.asked = at;
  return out;
}

GateFinding GateJudge::gate_finding(std::string rule, std::string message, std::string_view identity) const {
  GateFinding out;
  out.axis = "gate";
  out.fingerprint = base::hex64(base::hash64(fmt::format("gate/{}|{}", rule, identity)));
  out.rule = std::move(rule);
  out.message = std::move(message);
  return out;
}

void GateJudge::add(GateCheck& check, GateFinding finding, May may) {
  if (finding.asked.line == 0) finding.asked = check.asked;
  if (may == May::kBeAllowed) {
    AllowList::Subject subject{finding.rule, finding.stage, finding.field, finding.pass, finding.compiler.file, {}};
    const AllowEntry* expired = nullptr;
    if (const AllowEntry* entry = allow_.find(subject, &expired)) {
      finding.outcome = GateOutcome::kAllowed;
      finding.allowed_reason = entry->reason;
      finding.allowed_owner = entry->owner;
      finding.allowed_until = entry->expires;
      result_.findings.push_back(std::move(finding));
      return;
    }
    if (expired != nullptr)
      finding.why = fmt::format("{}{}it was allowed by {} until {}: expired", finding.why,
                                finding.why.empty() ? "" : "; ", expired->owner, expired->expires);
  }
  check.passed = false;
  check.findings.push_back(static_cast<std::uint32_t>(result_.findings.size()));
  result_.findings.push_back(std::move(finding));
}

void GateJudge::close(GateCheck check) {
  if (check.text.empty() && check.passed) check.text = "as asked";
  for (std::uint32_t i : check.findings) {
    if (!check.passed && check.text.empty()) check.text = result_.findings[i].message;
  }
  result_.checks.push_back(std::move(check));
}

// ---- the capture itself ----

void GateJudge::whole_capture() {
  GateCheck whole = check("capture", "the capture is whole");
  if (result_.state.torn)
    add(whole,
        gate_finding("torn-capture",
                     "the capture has no end record: " +
                         (result_.state.torn_note.empty() ? std::string("it was cut") : result_.state.torn_note)),
        May::kNeverBeAllowed);
  if (result_.state.partial)
    add(whole,
        gate_finding("partial-capture", "something was lost while the capture was made: kerntrail info says what"),
        May::kNeverBeAllowed);
  close(std::move(whole));
  observed_compiles();
  result_.whole =
      std::all_of(result_.checks.begin(), result_.checks.end(), [](const GateCheck& c) { return c.passed; });
}

void GateJudge::observed_compiles() {
  GateCheck seen = check("capture", "every compile was observed");
  std::size_t compiles = 0;
  for (std::size_t i = 0; i < capture_.compiles.size(); ++i) {
    const auto compile = id_at<CompileId>(i);
    const std::string name = compile_name(compile);
    if (!input_.compile.empty() && name != input_.compile) continue;
    ++compiles;
    std::string why;
    for (const Note& note : capture_.notes) {
      const bool unseen = note.code == "not-observed" || note.code == "compile-not-finished";
      if (note.compile == compile && unseen && note.severity != Severity::kInfo) why = note.text;
    }
    const bool any = std::any_of(measure_.parts.begin(), measure_.parts.end(),
                                 [&](const GatePart& part) { return part.compile == name; });
    if (why.empty() && any) continue;
    constexpr std::string_view kSaidTwice = "not observed: ";
    if (why.starts_with(kSaidTwice)) why.erase(0, kSaidTwice.size());
    add(seen,
        gate_finding("not-observed",
                     fmt::format("compile {} was not observed{}", name,
                                 why.empty() ? ": no stage of it is in the capture" : ": " + why),
                     name),
        May::kNeverBeAllowed);
  }
  if (compiles == 0)
    add(seen, gate_finding("no-compile", "nothing was compiled while the capture was made: there is nothing to judge"),
        May::kNeverBeAllowed);
  if (seen.passed) seen.text = base::counted(compiles, "compile");
  close(std::move(seen));
}

// ---- hooks ----

void GateJudge::hook_health(const HookRecord& hook, GateCheck& check) {
  const std::string& name = hook.attribute.empty() ? hook.label : hook.attribute;
  const auto bad = [&](std::string rule, const std::string& what) {
    GateFinding finding = gate_finding(std::move(rule), fmt::format("hook {} {}", name, what), hook.label);
    if (!hook.lost.empty()) finding.why = "lost without it: " + hook.lost;
    finding.site = name;
    finding.pass = hook.label;
    add(check, std::move(finding), May::kBeAllowed);
  };
  const auto expected = [&](const std::string& pattern) {
    return base::matches_pattern(hook.label, pattern) || base::matches_pattern(hook.attribute, pattern);
  };
  const HookRule& rule = config_.hooks;
  const bool fine = std::any_of(rule.expected_absent.begin(), rule.expected_absent.end(), expected);
  if (hook.state == HookState::kAbsent && rule.absent && !fine)
    bad("hook-absent", "was not there to install: " + hook.detail);
  if (hook.state == HookState::kFailed && rule.failed) bad("hook-failed", "could not be installed: " + hook.detail);
  if (hook.errors > 0 && rule.errors)
    bad("hook-errors", fmt::format("failed while the program ran: {}", hook.last_error));
  if (!hook.restored && rule.not_restored)
    bad("hook-not-restored", "was not put back: what it replaced is not the original any more");
}

void GateJudge::required_hooks(GateCheck& check) {
  for (const std::string& wanted : config_.hooks.required) {
    const auto hook = std::find_if(capture_.hooks.begin(), capture_.hooks.end(),
                                   [&](const HookRecord& h) { return h.label == wanted || h.attribute == wanted; });
    if (hook == capture_.hooks.end()) {
      std::vector<std::string> known;
      for (const HookRecord& h : capture_.hooks) known.push_back(h.label);
      const std::string near = base::nearest(wanted, known);
      add(check,
          gate_finding(
              "hook-absent",
              fmt::format("the capture knows no hook {}{}", wanted, near.empty() ? "" : "; did you mean " + near + "?"),
              wanted),
          May::kNeverBeAllowed);
    } else if (hook->state != HookState::kInstalled) {
      add(check,
          gate_finding("hook-absent",
                       fmt::format("required hook {} is {}: {}", wanted, hook_state_name(hook->state), hook->detail),
                       wanted),
          May::kNeverBeAllowed);
    } else if (hook->fired == 0) {
      add(check, gate_finding("hook-silent", fmt::format("required hook {} never fired", wanted), wanted),
          May::kBeAllowed);
    }
  }
}

void GateJudge::hooks() {
  GateCheck health = check("hooks", "hooks did their work", config_.hooks.at);
  for (const HookRecord& hook : capture_.hooks) hook_health(hook, health);
  required_hooks(health);
  if (health.passed) health.text = base::counted(capture_.hooks.size(), "hook");
  close(std::move(health));
}

// ---- closing ----

void GateJudge::finish() {
  allowed_and_known();
  std::vector<std::uint32_t> order(result_.findings.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return result_.findings[a].outcome < result_.findings[b].outcome;
  });
  std::vector<std::uint32_t> place(order.size());
  std::vector<GateFinding> sorted;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(std::move(result_.findings[order[i]]));
  }
  result_.findings = std::move(sorted);
  for (GateCheck& check : result_.checks) {
    for (std::uint32_t& i : check.findings) i = place[i];
  }
  for (std::string& note : allow_.notes(config_.path)) result_.notes.push_back(std::move(note));
  result_.passed =
      std::all_of(result_.checks.begin(), result_.checks.end(), [](const GateCheck& c) { return c.passed; });
}

}  // namespace analyse
}  // namespace kerntrail
