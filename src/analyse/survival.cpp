#include "analyse/survival.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <unordered_set>

#include "analyse/handles.h"
#include "base/parallel.h"

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

// What of a field's nature decides how a unit may carry it; worked out once a field.
struct Field {
  enum class InHandle : std::uint8_t { kNo, kSource, kAten, kOrigins, kOneNode };

  AttrId attr = AttrId::kNone;
  bool of_fx = false;         // nodes have it, so origins lead to it
  bool is_origins = false;
  bool is_origin_node = false;
  bool claimable = false;
  AttrId of_claimed = AttrId::kNone;  // the field of claimed nodes that stands for it
  InHandle in_handle = InHandle::kNo;
  std::string_view forward_copy;      // key of a backward node that holds its forward node's
};

Field field_of(const Capture& capture, const AttrNames& names, AttrId attr) {
  const AttrKind& kind = capture.attr_kinds[index(attr)];
  Field field;
  field.attr = attr;
  field.of_fx = kind.layer == "FX";
  field.is_origins = kind.name == "origins";
  field.is_origin_node = kind.name == "origin_node";
  const bool traces = kind.name == "get_stack_traces";
  field.claimable = field.is_origins || traces || field.of_fx;
  field.of_claimed = traces ? names["stack_trace"] : attr;
  if (kind.name == "stack_trace" || traces) field.in_handle = Field::InHandle::kSource;
  if (kind.name == "original_aten") field.in_handle = Field::InHandle::kAten;
  if (field.is_origins) field.in_handle = Field::InHandle::kOrigins;
  if (field.is_origin_node) field.in_handle = Field::InHandle::kOneNode;
  // AOTAutograd gives a backward node its forward node's metadata under keys of their own.
  if (kind.name == "nn_module_stack") field.forward_copy = "fwd_nn_module_stack";
  if (kind.name == "source_fn_stack") field.forward_copy = "fwd_source_fn_stack";
  return field;
}

// Finds what a unit holds of a field without having it in a slot of its own.
class Carriers {
 public:
  Carriers(const Capture& capture, const Pipeline& pipeline, EdgeFinder& edges)
      : capture_(capture), pipeline_(pipeline), edges_(edges), names_(capture) {
    for (const Claim& claim : capture.claims_of(pipeline.compile)) {
      if (claim.claimant == "compiler" && capture.compile_of(claim.kernel) == pipeline.compile)
        claims_[claim.kernel].push_back(&claim);
    }
  }

  const AttrNames& names() const { return names_; }

  // Name of the carrier, or empty. Questions of one unit are asked one after the other.
  std::string_view of(const ColumnUnit& unit, const Field& field, std::size_t column) {
    if (unit.unit != unit_.unit || unit.snapshot != unit_.snapshot || column != column_) look_at(unit, column);
    if (field.of_fx && any_had(origins_, field.attr)) return "origins";
    if (operations_carry(field)) return "operations";
    if (handle_carries(field)) return "debug_handle";
    if (claims_carry(field)) return "claim";
    if (field.is_origin_node && claim_names_it(field.attr)) return "claim";
    return forward_copy(field);
  }

 private:
  struct Look {
    UnitId unit;
    SnapshotId snapshot;
  };

  void look_at(const ColumnUnit& unit, std::size_t column) {
    unit_ = unit;
    column_ = column;
    origins_.clear();
    claimed_.clear();
    add_looks(origins_, unit.unit);
    operations_ = present(capture_, unit.unit, names_["operations"], unit.snapshot);
    const Observation* handle = present(capture_, unit.unit, names_["debug_handle"], unit.snapshot);
    handle_ = handle == nullptr ? std::nullopt : read_handle(capture_, handle);
    const auto claims = claims_.find(unit.unit);
    unit_claims_ = claims == claims_.end() ? nullptr : &claims->second;
    if (unit_claims_ == nullptr) return;
    for (const Claim* claim : *unit_claims_) {
      for (UnitId node : claim->units) claimed_.push_back(last_look(node));
    }
  }

  void add_looks(std::vector<Look>& looks, UnitId unit) const {
    const Observation* origins = present(capture_, unit, names_["origins"], unit_.snapshot);
    if (origins == nullptr) return;
    for (UnitId node : origins->refs) looks.push_back(last_look(node));
  }

  // A node as the last FX column before the unit's saw it; one that none saw, as it was when the unit was looked at.
  Look last_look(UnitId node) const {
    for (std::size_t c = column_; c-- > 0;) {
      const Column& fx = pipeline_.columns[c];
      if (fx.layer != "FX") continue;
      const auto place = fx.positions.find(node);
      if (place != fx.positions.end()) return {node, fx.units[place->second].snapshot};
    }
    return {node, unit_.snapshot};
  }

  bool any_had(const std::vector<Look>& looks, AttrId field) const {
    return std::any_of(looks.begin(), looks.end(),
                       [&](const Look& look) { return present(capture_, look.unit, field, look.snapshot) != nullptr; });
  }

  std::string_view forward_copy(const Field& field) const {
    if (field.forward_copy.empty()) return {};
    const Observation* keys = present(capture_, unit_.unit, names_["keys"], unit_.snapshot);
    if (keys == nullptr) return {};
    const std::string_view text = capture_.text(keys->text);
    for (std::size_t at = text.find(field.forward_copy); at != std::string_view::npos;
         at = text.find(field.forward_copy, at + 1)) {
      const std::size_t after = at + field.forward_copy.size();
      if (at > 0 && text[at - 1] == '"' && after < text.size() && text[after] == '"') return field.forward_copy;
    }
    return {};
  }

  // A kernel has no representative node of its own, but what the compiler claims of it names those of its operations.
  bool claim_names_it(AttrId field) {
    if (unit_claims_ == nullptr) return false;
    std::unordered_set<UnitId> claimed;
    for (const Claim* claim : *unit_claims_) claimed.insert(claim->units.begin(), claim->units.end());
    const std::size_t position = pipeline_.columns[column_].positions.at(unit_.unit);
    for (std::size_t above = column_; above-- > 0;) {
      const Column& before = pipeline_.columns[above];
      for (const Parent& parent : edges_.table(column_, above)[position]) {
        const SnapshotId look = before.units[before.positions.at(parent.unit)].snapshot;
        const Observation* node = present(capture_, parent.unit, field, look);
        if (node == nullptr) continue;
        if (std::any_of(node->refs.begin(), node->refs.end(), [&](UnitId ref) { return claimed.contains(ref); }))
          return true;
      }
    }
    return false;
  }

  // A scheduler group holds its operations, which hold fields and origins of their own.
  bool operations_carry(const Field& field) const {
    if (operations_ == nullptr) return false;
    return std::any_of(operations_->refs.begin(), operations_->refs.end(), [&](UnitId operation) {
      if (present(capture_, operation, field.attr, unit_.snapshot) != nullptr) return true;
      if (!field.of_fx) return false;
      std::vector<Look> looks;
      add_looks(looks, operation);
      return any_had(looks, field.attr);
    });
  }

  bool handle_carries(const Field& field) const {
    if (!handle_) return false;
    switch (field.in_handle) {
      case Field::InHandle::kNo: return false;
      case Field::InHandle::kSource: return handle_->has_source();
      case Field::InHandle::kAten: return !handle_->aten_op.empty();
      case Field::InHandle::kOrigins: return !handle_->ir_chain.empty();
      case Field::InHandle::kOneNode: return handle_->names_one_node();
    }
    return false;
  }

  bool claims_carry(const Field& field) const {
    if (unit_claims_ == nullptr || !field.claimable) return false;
    return field.is_origins ? !claimed_.empty() : any_had(claimed_, field.of_claimed);
  }

  const Capture& capture_;
  const Pipeline& pipeline_;
  EdgeFinder& edges_;
  AttrNames names_;
  UnitMap<std::vector<const Claim*>> claims_;
  // Of the unit that was asked about last.
  ColumnUnit unit_;
  std::size_t column_ = 0;
  std::vector<Look> origins_, claimed_;
  const Observation* operations_ = nullptr;
  std::optional<HandleView> handle_;
  const std::vector<const Claim*>* unit_claims_ = nullptr;
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

  std::vector<MatrixRow> rows(const std::vector<AttrId>& attrs) {
    for (AttrId attr : attrs) {
      const AttrKind& kind = capture_.attr_kinds[index(attr)];
      fields_.push_back(field_of(capture_, carriers_.names(), attr));
      rows_.push_back({attr, kind.name, kind.layer, std::vector<MatrixCell>(columns_.size())});
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) column(i);
    for (MatrixRow& row : rows_) {
      const int first = first_order(capture_, pipeline_, row.attr);
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        row.cells[i].created = pipeline_.columns[columns_[i]].order >= first;
        row.cells[i].glyph = glyph_of(row.cells[i]);
      }
    }
    return std::move(rows_);
  }

 private:
  // Unit by unit, all fields of each: its values lie beside each other.
  void column(std::size_t i) {
    const Column& column = pipeline_.columns[columns_[i]];
    for (MatrixRow& row : rows_) {
      row.cells[i].total = column.units.size();
      row.cells[i].units.reserve(column.units.size());
    }
    for (std::size_t p = 0; p < column.units.size(); ++p) {
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        MatrixCell& cell = rows_[r].cells[i];
        cell.units.push_back(judge(fields_[r], i, p, i == 0 ? nullptr : &rows_[r].cells[i - 1]));
        count(cell, cell.units.back());
      }
    }
  }

  CellUnit judge(const Field& field, std::size_t i, std::size_t p, const MatrixCell* previous) {
    const ColumnUnit& unit = pipeline_.columns[columns_[i]].units[p];
    const Observation* seen = capture_.at(unit.unit, field.attr, unit.snapshot);
    CellUnit result{unit.unit, seen == nullptr ? State::kNoSlot : seen->state, Verdict::kNotBefore, {}};
    if (result.state == State::kPresent) {
      result.verdict = Verdict::kOwn;
    } else if (result.state == State::kUnreadable) {
      result.verdict = Verdict::kUnreadable;
    } else if (result.carrier = carriers_.of(unit, field, columns_[i]); !result.carrier.empty()) {
      result.verdict = Verdict::kCarried;
    } else if (previous != nullptr && came_from_one_that_had(i, p, *previous)) {
      result.verdict = Verdict::kLostHere;
    }
    return result;
  }

  bool came_from_one_that_had(std::size_t i, std::size_t p, const MatrixCell& previous) {
    const Column& before = pipeline_.columns[columns_[i - 1]];
    const auto parents = edges_.table(columns_[i], columns_[i - 1])[p];
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
  std::vector<Field> fields_;  // by row
  std::vector<MatrixRow> rows_;
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
  result.rows = Builder(capture, pipeline, columns, edges).rows(tracked_attrs(capture, pipeline));
  return result;
}

}  // namespace analyse

Expected<std::vector<Matrix>> matrices(const Capture& capture, const AnalysisOptions& options) {
  KERNTRAIL_TRY(const auto parts, analyse::parts_of(capture, options, analyse::Directions::kApart));
  std::vector<Matrix> result(parts.size());
  base::parallel_for(parts.size(), [&](std::size_t i) {
    analyse::EdgeFinder edges(capture, parts[i].pipeline);
    result[i] = analyse::matrix_of(capture, parts[i].pipeline, parts[i].columns, edges);
  });
  return result;
}

}  // namespace kerntrail
