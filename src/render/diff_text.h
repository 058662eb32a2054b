// Two captures compared, in Markdown that reads on a screen.
// Must not know: captures, files.
#pragma once

#include <string>

#include "kerntrail/diff.h"

namespace kerntrail::render {

struct DiffNames {
  std::string old_name, new_name;  // of the files
};

std::string diff_markdown(const Diff& diff, const DiffNames& names);
std::string diff_json(const Diff& diff, const DiffNames& names);
// Why the two can't be compared, a line each: for a terminal.
std::string unlike_text(const std::vector<Difference>& unlike);

}  // namespace kerntrail::render
