// Sidecars, and what an event resolves to by one, as text to read.
// Must not know: files.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "spyre/sidecar.h"

namespace kerntrail::render {

// Counts, then each compile with its kernels, their event names and source lines. `name` is the file as it was given.
std::string sidecar_text(const spyre::Sidecar& sidecar, std::string_view name);

// A result of spyre::resolve_event: where the kernel comes from, line by line, and what is uncertain about it.
std::string resolution_text(const base::Json& resolution);

}  // namespace kerntrail::render
