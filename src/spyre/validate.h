// Checks on SuperDSC files and bundles: the public validator's rules and the invariants of the format.
// Must not know: how the documents were made; it also judges files of other emitters and generations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "spyre/bundle_reader.h"
#include "spyre/plan.h"

namespace kerntrail::spyre {

struct ValidationRule {
  std::string_view code;
  std::string_view text;  // what must hold
};

// Every rule, in the order in which findings are sorted. Codes are stable.
const std::vector<ValidationRule>& validation_rules();

// Empty where nothing is wrong. `where` is a path inside the document ("0_add.dscs_[0].add.labeledDs_").
std::vector<Diagnostic> validate_superdsc(const base::Json& document);

struct BundleFinding {
  std::string file;  // empty: the bundle as a whole
  Diagnostic found;
};

// A file of a kind that is not carried (data movements, indirect access): that no rule names it proves little.
struct Unjudged {
  std::string file;
  std::string reason;
};
std::vector<Unjudged> unjudged_files(const Bundle& bundle);

// All files, then what only the files together show: order, names, places in memory.
std::vector<BundleFinding> validate_bundle(const Bundle& bundle);

}  // namespace kerntrail::spyre
