// What Spyre bundles say, for people and as JSON: their operations, the findings of the validator, the comparison of
// the files' numbers with their OpSpecs'.
// Must not know: files, captures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spyre/bundle_executor.h"
#include "spyre/bundle_reader.h"
#include "spyre/validate.h"

namespace kerntrail::render {

// Each operation with its dims, splits, tensors, addresses, constants and handle; what could not be read, and why.
std::string bundle_text(const spyre::Bundle& bundle);
// schemas/bundle.schema.json
std::string bundle_json(const spyre::Bundle& bundle);

// What was found wrong with a bundle. `compared`: absent where the files were not executed.
struct BundleJudgement {
  std::string path;
  std::vector<spyre::BundleFinding> findings;
  std::vector<spyre::Unjudged> unjudged;
  std::optional<std::vector<spyre::OpComparison>> compared;

  bool broken() const;  // a finding, or a wrong number
  bool sound() const { return !broken() && unjudged.empty(); }
};

std::string judgement_text(const BundleJudgement& judgement, std::size_t files);
std::string judgement_json(const BundleJudgement& judgement, std::size_t files);

}  // namespace kerntrail::render
