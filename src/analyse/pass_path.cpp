#include "analyse/pass_path.h"

#include <algorithm>

namespace kerntrail::analyse {
namespace {

constexpr std::size_t kMaxWithin = 8;  // passes named around one; the bound ends what a damaged file may spell

}  // namespace

std::vector<std::string_view> shown_path(const Capture& capture, PassId pass) {
  const std::string_view own = capture.passes[index(pass)].name;
  std::vector<std::string_view> path{own};
  // A pass begins after the one around it.
  PassId inner = pass;
  for (PassId outer = capture.passes[index(pass)].parent; has(outer) && outer < inner && path.size() <= kMaxWithin;
       inner = outer, outer = capture.passes[index(outer)].parent) {
    const Pass& around = capture.passes[index(outer)];
    if (around.kind == PassKind::kPass && around.name != own) path.push_back(around.name);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::string path_text(const Capture& capture, PassId pass) {
  std::string out;
  for (std::string_view name : shown_path(capture, pass)) {
    if (!out.empty()) out += kWithin;
    out += name;
  }
  return out;
}

}  // namespace kerntrail::analyse
