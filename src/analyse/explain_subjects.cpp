#include "analyse/explain_subjects.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "analyse/handles.h"
#include "analyse/pipeline.h"

namespace kerntrail::analyse {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "model.py:25", but not "triton_poi_fused_0:3" or "0": what follows the last colon is a line of a file.
bool is_place(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  return colon != std::string::npos && colon > 0 && is_number(std::string_view(text).substr(colon + 1)) &&
         text.find('.') != std::string::npos && text.find('.') < colon;
}

std::vector<std::uint32_t> with_handle(const Capture& capture, const Lineage& lineage, const std::string& id) {
  std::vector<std::uint32_t> out;
  const AttrNames names(capture);
  if (capture.snapshots.empty()) return out;
  const auto last = id_at<SnapshotId>(capture.snapshots.size() - 1);
  for (std::uint32_t i = 0; i < lineage.nodes.size(); ++i) {
    if (!has(lineage.nodes[i].unit)) continue;
    const auto handle = read_handle(capture, present(capture, lineage.nodes[i].unit, names["debug_handle"], last));
    if (handle && handle->id == id) out.push_back(i);
  }
  return out;
}

Expected<std::vector<std::uint32_t>> subjects(const Capture& capture, const Lineage& lineage, const std::string& what) {
  if (is_number(what)) return with_handle(capture, lineage, what);
  LineageQuery query;
  (is_place(what) ? query.line : query.node) = what;
  return find_nodes(lineage, capture, query);
}

// The same unit at several layers is one subject; a line is one.
std::vector<std::vector<std::uint32_t>> grouped(const Lineage& lineage, const std::vector<std::uint32_t>& found) {
  std::vector<std::vector<std::uint32_t>> out;
  std::map<UnitId, std::size_t> known;
  for (std::uint32_t i : found) {
    const UnitId unit = lineage.nodes[i].unit;
    const auto [place, fresh] = known.try_emplace(unit, out.size());
    if (fresh || !has(unit)) {
      out.push_back({i});
    } else {
      out[place->second].push_back(i);
    }
  }
  return out;
}

}  // namespace

Expected<std::vector<std::vector<std::uint32_t>>> subjects_of(const Capture& capture, const Lineage& lineage,
                                                              const std::string& what) {
  KERNTRAIL_TRY(const auto found, subjects(capture, lineage, what));
  return grouped(lineage, found);
}

CompileId compile_in(const Capture& capture, std::string_view what) {
  const std::size_t dot = what.find('.');
  if (what.size() < 2 || what.front() != 'c' || dot == std::string_view::npos) return CompileId::kNone;
  std::uint32_t number = 0;
  const char* end = what.data() + dot;
  const auto read = std::from_chars(what.data() + 1, end, number);
  if (read.ec != std::errc() || read.ptr != end || number >= capture.compiles.size()) return CompileId::kNone;
  const std::string_view rest = what.substr(dot + 1);
  return !rest.empty() && is_number(rest.substr(1)) ? id_at<CompileId>(number) : CompileId::kNone;
}

}  // namespace kerntrail::analyse
