// What became of the ids that `kerntrail debugify` gave: as text, and as JSON (schemas/debugify.schema.json).
// Must not know: torch, files.
#pragma once

#include <string>

#include "analyse/ledger.h"

namespace kerntrail::render {

// "  overwritten sin: the node now names add, at file.py:12", without a line end.
std::string ledger_row(const analyse::LedgerEntry& entry);
std::string ledger_row(const analyse::FabricatedNode& node);

// A table a graph, a row for each pass that did something, then the ids that a pass did not leave as they were.
std::string debugify_text(const analyse::DebugifyReport& report);
std::string debugify_json(const analyse::DebugifyReport& report);

// What the report says in one number each.
struct DebugifyTotals {
  std::size_t graphs = 0, passes = 0, faults = 0, unjudged = 0;
};
DebugifyTotals debugify_totals(const analyse::DebugifyReport& report);

}  // namespace kerntrail::render
