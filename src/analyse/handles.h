// Debug handles as the capture recorded them (JSON), read field by field. What is missing stays missing.
// Must not know: how handles are built or hashed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "kerntrail/capture.h"

namespace kerntrail::analyse {

struct HandleView {
  std::string id;  // decimal text
  std::string file;
  std::int64_t start_line = 0;
  std::int64_t end_line = 0;  // 0: none
  std::string aten_op;
  std::vector<std::string> ir_chain;
  std::vector<std::string> constituents;  // aten op of each member of fused_from; empty text where it has none
  base::Json json;                        // the whole, as recorded

  bool has_source() const { return !file.empty() && start_line > 0; }
  // "file.py:25" or "file.py:25-27"; empty without a source.
  std::string place() const;
  // Whether the one constituent whose aten op is the handle's own stands for the unit's representative node.
  // A handle without constituents stands for itself.
  bool names_one_node() const;
};

// Nothing for an empty or unreadable slot and for text that is no JSON object.
std::optional<HandleView> read_handle(const Capture& capture, const Observation* seen);

}  // namespace kerntrail::analyse
