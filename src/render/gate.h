// What a gate found, for each of those who read it: people, scripts, pull requests, code scanning, CI systems.
// Must not know: captures, files.
#pragma once

#include <string>

#include "kerntrail/gate.h"

namespace kerntrail::render {

struct GateView {
  std::string capture, config, baseline;  // as given; baseline may be empty
  std::string root;  // absolute; files below it are written relative to it
};

std::string gate_text(const GateResult& result, const GateView& view);
std::string gate_json(const GateResult& result, const GateView& view);
// For a comment on a pull request: at most 65,536 characters; says what it left out.
std::string gate_markdown(const GateResult& result, const GateView& view);
// Workflow commands of GitHub Actions: at most ten errors, ten warnings and ten notices, as a step may have; says what
// it left out.
std::string gate_github(const GateResult& result, const GateView& view);
// SARIF 2.1.0, within what GitHub's code scanning takes.
std::string gate_sarif(const GateResult& result, const GateView& view);
// JUnit XML: a suite a stage, a case a requirement.
std::string gate_junit(const GateResult& result, const GateView& view);

// "2 of 9 checks failed"
std::string gate_headline(const GateResult& result);
// Where a finding is to be shown: the model's line, else the rule of the configuration that asks for it.
SourcePlace gate_place(const GateFinding& finding, const GateView& view);
// As a relative path where it lies below the root, or in an installed package; else as it is.
std::string relative_file(const std::string& file, const GateView& view);
// "allowed by A until D: why"; empty for a finding that is not.
std::string allowed_text(const GateFinding& finding);

}  // namespace kerntrail::render
