// An attr record in the one spelling that our writer gives it, read without a JSON parser: nine of ten lines of a
// capture are attr records. Any other spelling is left to the general parser, so that both accept exactly the same
// files.
// Must not know: what names stand for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kerntrail/capture.h"

namespace kerntrail::read {

struct AttrLine {
  std::string_view unit, attr, state;
  std::uint32_t at = 0;
  std::uint32_t python_type = kNoIndex, repr = kNoIndex, text = kNoIndex, loc = kNoIndex;
  std::vector<std::string_view> refs;
};

// False: not in that spelling, or no attr record; `out` then holds nothing of use. Views are into `line`.
bool scan_attr_line(std::string_view line, AttrLine& out);

}  // namespace kerntrail::read
