// kerntrail.toml -> GateConfig. Errors have line, column, the reason, and the known word that may have been meant.
// Must not know: captures.
#pragma once

#include <string>
#include <string_view>

#include "kerntrail/gate.h"

namespace kerntrail::cli {

// kSyntax: no TOML. kSchema: a member that is unknown, missing, of another type or out of range.
Expected<GateConfig> parse_gate_config(std::string_view toml, const std::string& path);

}  // namespace kerntrail::cli
