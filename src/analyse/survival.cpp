#include "analyse/survival.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <unordered_set>

#include "analyse/handles.h"

namespace kerntrail {

std::string_view verdict_name(Verdict v) {
  constexpr std::array<std::string_view, 5> kNames{"own", "carried", "lost", "not-before", "unreadable"};
  return kNames[static_cast<std::size_t>(v)];
}

std::string_view glyph_name(Glyph v) {
  constexpr std::array<std::string_view, 4> kNames{"all", "some", "dash", "none"};
  return kNames[static_cast<std::size_t>(v)];
}

namespace analyse {
namespace {

// Finds what a unit holds of a field without having it in a slot of its own.
class Carriers {
 public:
  Carriers(const Capture& capture, const Pipeline& pipeline, EdgeFinder& edges)
      : capture_(capture), pipeline_(pipeline), edges_(edges), names_(capture) {
    for (const Claim& claim : capture.claims) {
      if (claim.claimant == "compiler") claims_[claim.kernel].push_back(&claim);
    }
  }

  // Name of the carrier, or empty.
  std::string_view of(const ColumnUnit& unit, AttrId field, std::size_t column) {
    const AttrKind& kind = capture_.attr_kinds[index(field)];
    if (kind.layer == "FX" && origins_carry(unit, field, column)) return "origins";
    if (operations_carry(unit, field, kind, column)) return "operations";
    if (handle_carries(unit, kind.name)) return "debug_handle";
    if (claims_carry(unit, field, kind, column)) return "claim";
    if (field == names_["origin_node"] && claim_names_it(unit, field, column)) return "claim";
    return forward_copy(unit, field);
  }

 private:
  // AOTAutograd gives a backward node its forward node's metadata under keys of their own.
  std::string_view forward_copy(const ColumnUnit& unit, AttrId field) const {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kCopies{
        {{"nn_module_stack", "fwd_nn_module_stack"}, {"source_fn_stack", "fwd_source_fn_stack"}}};
    for (const auto& [own, copy] : kCopies) {
      if (field != names_[own]) continue;
      const Observation* keys = present(capture_, unit.unit, names_["keys"], unit.snapshot);
      if (keys != nullptr && capture_.text(keys->text).find('"' + std::string(copy) + '"') != std::string_view::npos)
        return copy;
    }
    return {};
  }

  // A kernel has no representative node of its own, but what the compiler claims of it names those of its operations.
  bool claim_names_it(const ColumnUnit& unit, AttrId field, std::size_t column) {
    const auto claims = claims_.find(unit.unit);
    if (claims == claims_.end()) return false;
    std::unordered_set<UnitId> claimed;
    for (const Claim* claim : claims->second) claimed.insert(claim->units.begin(), claim->units.end());
    const std::size_t position = pipeline_.columns[column].positions.at(unit.unit);
    for (std::size_t above = column; above-- > 0;) {
      const Column& before = pipeline_.columns[above];
      for (const Parent& parent : edges_.table(column, above)[position]) {
        const SnapshotId look = before.units[before.positions.at(parent.unit)].snapshot;
        const Observation* node = present(capture_, parent.unit, field, look);
        if (node == nullptr) continue;
        if (std::any_of(node->refs.begin(), node->refs.end(), [&](UnitId ref) { return claimed.contains(ref); }))
          return true;
      }
    }
    return false;
  }

  bool had(UnitId node, AttrId field, std::size_t column, SnapshotId otherwise) const {
    if (!has(field)) return false;
    for (std::size_t c = column; c-- > 0;) {
      const Column& fx = pipeline_.columns[c];
      auto place = fx.positions.find(node);
      if (fx.layer != "FX" || place == fx.positions.end()) continue;
      return present(capture_, node, field, fx.units[place->second].snapshot) != nullptr;
    }
    return present(capture_, node, field, otherwise) != nullptr;
  }

  bool origins_carry(const ColumnUnit& unit, AttrId field, std::size_t column) const {
    const Observation* origins = present(capture_, unit.unit, names_["origins"], unit.snapshot);
    if (origins == nullptr) return false;
    return std::any_of(origins->refs.begin(), origins->refs.end(),
                       [&](UnitId node) { return had(node, field, column, unit.snapshot); });
  }

  // A scheduler group holds its operations, which hold fields and origins of their own.
  bool operations_carry(const ColumnUnit& unit, AttrId field, const AttrKind& kind, std::size_t column) const {
    const Observation* operations = present(capture_, unit.unit, names_["operations"], unit.snapshot);
    if (operations == nullptr) return false;
    return std::any_of(operations->refs.begin(), operations->refs.end(), [&](UnitId operation) {
      if (present(capture_, operation, field, unit.snapshot) != nullptr) return true;
      return kind.layer == "FX" && origins_carry({operation, unit.snapshot}, field, column);
    });
  }

  bool handle_carries(const ColumnUnit& unit, std::string_view field) {
    const auto& view = handle(unit);
    if (!view) return false;
    if (field == "stack_trace" || field == "get_stack_traces") return view->has_source();
    if (field == "original_aten") return !view->aten_op.empty();
    if (field == "origins") return !view->ir_chain.empty();
    return field == "origin_node" && view->names_one_node();
  }

  bool claims_carry(const ColumnUnit& unit, AttrId field, const AttrKind& kind, std::size_t column) const {
    auto claims = claims_.find(unit.unit);
    if (claims == claims_.end()) return false;
    if (kind.name != "origins" && kind.name != "get_stack_traces" && kind.layer != "FX") return false;
    const AttrId through = kind.name == "get_stack_traces" ? names_["stack_trace"] : field;
    for (const Claim* claim : claims->second) {
      for (UnitId node : claim->units) {
        if (kind.name == "origins" || had(node, through, column, unit.snapshot)) return true;
      }
    }
    return false;
  }

  const std::optional<HandleView>& handle(const ColumnUnit& unit) {
    auto [place, fresh] = handles_.try_emplace({unit.unit, unit.snapshot});
    if (fresh)
      place->second = read_handle(capture_, present(capture_, unit.unit, names_["debug_handle"], unit.snapshot));
    return place->second;
  }

  const Capture& capture_;
  const Pipeline& pipeline_;
  EdgeFinder& edges_;
  AttrNames names_;
  UnitMap<std::vector<const Claim*>> claims_;
  std::map<std::pair<UnitId, SnapshotId>, std::optional<HandleView>> handles_;
};

void count(MatrixCell& cell, const CellUnit& unit) {
  switch (unit.state) {
    case State::kPresent: ++cell.present; break;
    case State::kEmpty: ++cell.empty; break;
    case State::kNoSlot: ++cell.no_slot; break;
    case State::kUnreadable: ++cell.unreadable; break;
  }
  if (unit.verdict == Verdict::kCarried) ++cell.carried;
  if (unit.verdict == Verdict::kLostHere) ++cell.lost;
  if (unit.verdict == Verdict::kNotBefore) ++cell.not_before;
}

Glyph glyph_of(const MatrixCell& cell) {
  if (cell.total > 0 && cell.present == cell.total) return Glyph::kAll;
  if (cell.present > 0) return Glyph::kSome;
  if (!cell.created || (cell.carried > 0 && cell.lost == 0)) return Glyph::kDash;
  return Glyph::kNone;
}

class Builder {
 public:
  Builder(const Capture& capture, const Pipeline& pipeline, const std::vector<std::size_t>& columns, EdgeFinder& edges)
      : capture_(capture), pipeline_(pipeline), columns_(columns), edges_(edges), carriers_(capture, pipeline, edges) {}

  MatrixRow row(AttrId attr) {
    const AttrKind& kind = capture_.attr_kinds[index(attr)];
    MatrixRow result{attr, kind.name, kind.layer, {}};
    const int first = first_order(capture_, pipeline_, attr);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const MatrixCell* previous = i == 0 ? nullptr : &result.cells[i - 1];
      MatrixCell next = cell(attr, i, previous);
      next.created = pipeline_.columns[columns_[i]].order >= first;
      next.glyph = glyph_of(next);
      result.cells.push_back(std::move(next));
    }
    return result;
  }

 private:
  MatrixCell cell(AttrId attr, std::size_t i, const MatrixCell* previous) {
    const Column& column = pipeline_.columns[columns_[i]];
    MatrixCell result;
    result.total = column.units.size();
    result.units.reserve(column.units.size());
    for (std::size_t p = 0; p < column.units.size(); ++p) {
      CellUnit unit = judge(attr, i, p, previous);
      count(result, unit);
      result.units.push_back(unit);
    }
    return result;
  }

  CellUnit judge(AttrId attr, std::size_t i, std::size_t p, const MatrixCell* previous) {
    const ColumnUnit& unit = pipeline_.columns[columns_[i]].units[p];
    const Observation* seen = capture_.at(unit.unit, attr, unit.snapshot);
    CellUnit result{unit.unit, seen == nullptr ? State::kNoSlot : seen->state, Verdict::kNotBefore, {}};
    if (result.state == State::kPresent) {
      result.verdict = Verdict::kOwn;
    } else if (result.state == State::kUnreadable) {
      result.verdict = Verdict::kUnreadable;
    } else if (result.carrier = carriers_.of(unit, attr, columns_[i]); !result.carrier.empty()) {
      result.verdict = Verdict::kCarried;
    } else if (previous != nullptr && came_from_one_that_had(i, p, *previous)) {
      result.verdict = Verdict::kLostHere;
    }
    return result;
  }

  bool came_from_one_that_had(std::size_t i, std::size_t p, const MatrixCell& previous) {
    const Column& before = pipeline_.columns[columns_[i - 1]];
    const auto& parents = edges_.table(columns_[i], columns_[i - 1])[p];
    return std::any_of(parents.begin(), parents.end(), [&](const Parent& parent) {
      const CellUnit& cell = previous.units[before.positions.at(parent.unit)];
      return cell.verdict == Verdict::kOwn || (cell.verdict == Verdict::kCarried && !is_of_forward(cell.carrier));
    });
  }

  const Capture& capture_;
  const Pipeline& pipeline_;
  const std::vector<std::size_t>& columns_;
  EdgeFinder& edges_;
  Carriers carriers_;
};

}  // namespace

std::vector<AttrId> tracked_attrs(const Capture& capture, const Pipeline& pipeline) {
  std::vector<std::string_view> layers;  // in the order in which the pipeline reaches them
  for (const Column& column : pipeline.columns) {
    if (std::find(layers.begin(), layers.end(), column.layer) == layers.end()) layers.push_back(column.layer);
  }
  std::vector<AttrId> result;
  for (std::string_view layer : layers) {
    for (std::size_t i = 0; i < capture.attr_kinds.size(); ++i) {
      const AttrKind& kind = capture.attr_kinds[i];
      if (kind.provenance && kind.layer == layer) result.push_back(id_at<AttrId>(i));
    }
  }
  return result;
}

bool is_of_forward(std::string_view carrier) { return carrier.starts_with("fwd_"); }

int first_order(const Capture& capture, const Pipeline& pipeline, AttrId attr) {
  if (auto order = stage_order(capture, capture.attr_kinds[index(attr)].first_stage)) return *order;
  for (const Column& column : pipeline.columns) {
    for (const ColumnUnit& unit : column.units) {
      const Observation* seen = capture.at(unit.unit, attr, unit.snapshot);
      if (seen != nullptr && seen->state != State::kNoSlot) return column.order;
    }
  }
  return std::numeric_limits<int>::max();
}

Matrix matrix_of(const Capture& capture, const Pipeline& pipeline, const std::vector<std::size_t>& columns,
                 EdgeFinder& edges) {
  Matrix result;
  result.compile = pipeline.compile;
  result.direction = pipeline.direction;
  for (std::size_t c : columns) {
    const Column& column = pipeline.columns[c];
    result.columns.push_back({column.stage, column.key, column.title, column.noun, column.layer, column.units.size()});
  }
  Builder builder(capture, pipeline, columns, edges);
  for (AttrId attr : tracked_attrs(capture, pipeline)) result.rows.push_back(builder.row(attr));
  return result;
}

}  // namespace analyse

Expected<std::vector<Matrix>> matrices(const Capture& capture, const AnalysisOptions& options) {
  std::vector<Matrix> result;
  KERNTRAIL_TRY(const auto compiles, analyse::select_compiles(capture, options));
  for (CompileId compile : compiles) {
    for (const std::string& direction : analyse::directions_of(capture, compile)) {
      const auto pipeline = analyse::pipeline_of(capture, compile, direction);
      KERNTRAIL_TRY(const auto columns, analyse::select_columns(capture, pipeline, options.stages));
      if (pipeline.columns.empty()) continue;
      analyse::EdgeFinder edges(capture, pipeline);
      result.push_back(analyse::matrix_of(capture, pipeline, columns, edges));
    }
  }
  return result;
}

}  // namespace kerntrail
