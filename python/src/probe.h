// The hook table: every attribute that the probe watches, what each row sees, and what a capture lacks without it.
// A new hook is one row and its observer.
// Must not know: the file format.
#pragma once

#include <memory>
#include <vector>

#include "session.h"

namespace kerntrail::probe {

// One site a row, owners resolved (an invalid owner: the module or class is not there). Nothing is patched yet.
std::vector<std::shared_ptr<HookSite>> make_hook_table(Session& session);

}  // namespace kerntrail::probe
