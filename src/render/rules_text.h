// The table of rules as a document: docs/rules.md, and JSON.
// Must not know: captures.
#pragma once

#include <string>

namespace kerntrail::render {

std::string rules_markdown();
std::string rules_json();

}  // namespace kerntrail::render
