// From an OpSpec with its device side to the content of one SuperDSC file.
#include "spyre/superdsc_model.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "spyre/checked.h"
#include "spyre/index_expr.h"
#include "spyre/layout.h"

namespace kerntrail::spyre {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
constexpr std::array<std::string_view, 4> kLabels{"OUTPUT", "KERNEL", "INPUT", "KERNEL_IDX"};
constexpr std::array<std::string_view, 4> kMatmulTensorLabels{"INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX"};

// One argument's coordinates, parsed, with the dim that each one belongs to.
struct Access {
  std::vector<IndexExpr> coordinates;  // a device dim each
  std::vector<std::size_t> dims;       // index of the emitted dim, kNone for a constant
  std::size_t stick = kNone;           // dim inside the stick
};

tl::unexpected<Error> bad_argument(const TensorArg& arg, std::string_view problem,
                                   ErrorCode code = ErrorCode::kSchema) {
  return fail(code, fmt::format("buffer {}: {}", arg.name, problem));
}

Expected<std::int64_t> at_value(const IndexExpr& expression, std::string_view symbol, std::int64_t value) {
  return expression.evaluate(Point{{std::string(symbol), value}});
}

// Outside the stick: the variable itself plus an offset.
Expected<void> check_plain(const TensorArg& arg, const IndexExpr& expression) {
  const Expected<LinearForm> form = expression.linear();
  const bool plain = form && form->terms.size() == 1 && form->terms[0].second == 1 && form->constant >= 0;
  if (plain) return {};
  return bad_argument(arg, fmt::format("coordinate {} is not a loop variable with an offset", expression.text()),
                      ErrorCode::kUnsupported);
}

// The pair of a stick variable: element v lies in stick offset + v / e at place v % e.
Expected<void> check_stick_pair(const TensorArg& arg, const IndexExpr* count, const IndexExpr& place,
                                const EmittedDim& dim, std::int64_t e) {
  std::int64_t first_stick = 0;
  for (const std::int64_t v : {std::int64_t{0}, e - 1, e, 2 * e - 1, dim.extent - 1}) {
    if (v >= dim.extent) continue;
    KERNTRAIL_TRY(const std::int64_t at, at_value(place, dim.symbol, v));
    std::int64_t stick = 0;
    if (count != nullptr) {
      KERNTRAIL_TRY(stick, at_value(*count, dim.symbol, v));
    }
    if (v == 0) first_stick = stick;
    if (at != v % e || stick - first_stick != v / e) {
      return bad_argument(arg, fmt::format("'{}' does not fill sticks of {} elements in order", dim.symbol, e),
                          ErrorCode::kUnsupported);
    }
  }
  return {};
}

Expected<std::size_t> dim_of(const TensorArg& arg, const IndexExpr& expression, const std::vector<EmittedDim>& dims) {
  const std::vector<std::string> symbols = expression.symbols();
  if (symbols.empty()) return kNone;
  if (symbols.size() > 1) {
    return bad_argument(arg, fmt::format("coordinate {} has two loop variables", expression.text()),
                        ErrorCode::kUnsupported);
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].symbol == symbols[0]) return i;
  }
  return bad_argument(arg, fmt::format("coordinate variable '{}' is no loop of the operation", symbols[0]));
}

Expected<Access> read_access(const TensorArg& arg, const std::vector<EmittedDim>& dims) {
  const std::size_t rank = arg.layout.device_size.size();
  const std::int64_t e = stick_elements(arg.dtype);
  if (e == 0) return bad_argument(arg, "its element type has no device format", ErrorCode::kUnsupported);
  if (rank < 2 || arg.layout.stride_map.size() != rank || arg.device_coordinates.size() != rank) {
    return bad_argument(arg, "its layout and coordinates do not fit together");
  }
  if (arg.layout.device_size.back() != e)
    return bad_argument(arg, fmt::format("its last device dim is not a stick of {}", e));
  Access access;
  std::vector<std::size_t> place_of_dim(dims.size(), kNone);
  for (std::size_t i = 0; i < rank; ++i) {
    KERNTRAIL_TRY(IndexExpr expression, IndexExpr::parse(arg.device_coordinates[i]));
    KERNTRAIL_TRY(const std::size_t dim, dim_of(arg, expression, dims));
    if (dim == kNone) {
      KERNTRAIL_TRY(const std::int64_t constant, expression.evaluate({}));
      if (constant != 0) return bad_argument(arg, "a dim is fixed at an index other than 0", ErrorCode::kUnsupported);
    } else if (i + 1 < rank) {
      if (place_of_dim[dim] != kNone) {
        return bad_argument(arg, fmt::format("'{}' lies in two dims", dims[dim].symbol), ErrorCode::kUnsupported);
      }
      place_of_dim[dim] = i;
    }
    access.coordinates.push_back(std::move(expression));
    access.dims.push_back(dim);
  }
  access.stick = access.dims.back();
  for (std::size_t i = 0; i + 1 < rank; ++i) {
    if (access.dims[i] != kNone && access.dims[i] != access.stick) {
      KERNTRAIL_CHECK(check_plain(arg, access.coordinates[i]));
    }
  }
  if (access.stick != kNone) {
    const std::size_t place = place_of_dim[access.stick];
    const IndexExpr* count = place == kNone ? nullptr : &access.coordinates[place];
    KERNTRAIL_CHECK(check_stick_pair(arg, count, access.coordinates.back(), dims[access.stick], e));
  }
  return access;
}

class ModelBuilder {
 public:
  ModelBuilder(const OpSpec& spec, std::int64_t max_cores) : spec_(spec), max_cores_(max_cores) {}

  Expected<SdscModel> run() {
    KERNTRAIL_TRY(model_.kind, op_kind(spec_));
    model_.op = spec_.op;
    KERNTRAIL_TRY(const std::optional<std::string> output_stick, stick_symbol(spec_.args.back()));
    KERNTRAIL_TRY(dims_, emitted_dims(spec_, model_.kind, output_stick));
    for (const TensorArg& arg : spec_.args) {
      KERNTRAIL_TRY(Access access, read_access(arg, dims_));
      accesses_.push_back(std::move(access));
    }
    KERNTRAIL_CHECK(find_sticks());
    KERNTRAIL_CHECK(size_dims());
    slice_cores();
    for (std::size_t i = 0; i < spec_.args.size(); ++i) KERNTRAIL_CHECK(add_tensor(i));
    append_missing_dims();
    KERNTRAIL_CHECK(label_tensors());
    return std::move(model_);
  }

 private:
  std::size_t dim_with_symbol(std::string_view symbol) const {
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      if (dims_[i].symbol == symbol) return i;
    }
    return kNone;
  }
  std::size_t one_stick_dim() const {
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      if (dims_[i].is_one_stick) return i;
    }
    return kNone;
  }

  // The dim whose sticks each argument is made of.
  Expected<void> find_sticks() {
    const std::size_t last = accesses_.size() - 1;
    const std::size_t one_stick = one_stick_dim();
    const std::size_t output = accesses_[last].stick != kNone ? accesses_[last].stick : one_stick;
    sticks_.assign(accesses_.size(), output);
    if (model_.kind == OpKind::kMatmul) {
      const std::size_t k = dim_with_symbol(matmul_k(spec_).symbol);
      const std::size_t n = one_stick != kNone ? one_stick : dim_with_symbol(matmul_n(spec_).symbol);
      sticks_ = {k, n, n};
    } else if (model_.kind == OpKind::kRestickify) {
      sticks_[0] = accesses_[0].stick;
    }
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      const bool absent = accesses_[i].stick == kNone;
      const bool fits = absent || accesses_[i].stick == sticks_[i];
      const bool needs_variable =
          model_.kind == OpKind::kMatmul && sticks_[i] != kNone && !dims_[sticks_[i]].is_one_stick;
      if (sticks_[i] == kNone || !fits || (absent && needs_variable)) {
        return bad_argument(spec_.args[i], fmt::format("its stick is not the one {} needs", spec_.op),
                            ErrorCode::kUnsupported);
      }
    }
    return {};
  }

  Expected<void> size_dims() {
    for (const EmittedDim& dim : dims_) model_.dims.push_back({dim.label, dim.extent, dim.split});
    std::vector<std::int64_t> stick_of(dims_.size(), 1);  // elements of the largest stick along the dim
    for (std::size_t i = 0; i < sticks_.size(); ++i) {
      const std::int64_t e = stick_elements(spec_.args[i].dtype);
      stick_of[sticks_[i]] = std::max(stick_of[sticks_[i]], e);
    }
    std::int64_t cores = 1;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      SdscDim& dim = model_.dims[d];
      const auto size = checked_multiply(ceil_divide(dim.size, stick_of[d]), stick_of[d]);
      if (!size) return fail(ErrorCode::kTooLarge, "a padded extent leaves 64 bits");
      const bool padded = *size != dim.size;
      dim.size = *size;
      if (model_.kind == OpKind::kRestickify && padded) dim.split = 1;
      if (dim.size / stick_of[d] % dim.split != 0) {
        return fail(ErrorCode::kSchema,
                    fmt::format("{}: {} cores cannot share dim {} of {}", spec_.op, dim.split, dim.label, dim.size));
      }
      cores = checked_multiply(cores, dim.split).value_or(max_cores_ + 1);
      if (cores > max_cores_)
        return fail(ErrorCode::kSchema, fmt::format("{} is divided over more than {} cores", spec_.op, max_cores_));
    }
    for (const IterDim& dim : spec_.iteration_space) {
      if (dim.extent == 1 && dim.split != 1)
        return fail(ErrorCode::kSchema, "a loop of one iteration is divided over cores");
    }
    model_.cores = cores;
    return {};
  }

  // The first dim runs fastest; the cores that add up the parts of one product are neighbours.
  void slice_cores() {
    std::vector<std::size_t> fastest_first;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d].is_reduction) fastest_first.push_back(d);
    }
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      if (!dims_[d].is_reduction) fastest_first.push_back(d);
    }
    for (std::int64_t core = 0; core < model_.cores; ++core) {
      std::vector<std::int64_t> slice(dims_.size(), 0);
      std::int64_t rest = core;
      for (const std::size_t d : fastest_first) {
        slice[d] = rest % model_.dims[d].split;
        rest /= model_.dims[d].split;
      }
      model_.slices.push_back(std::move(slice));
    }
  }

  Expected<void> add_tensor(std::size_t i) {
    const TensorArg& arg = spec_.args[i];
    const Access& access = accesses_[i];
    SdscTensor tensor;
    tensor.stick = sticks_[i];
    tensor.stick_elements = stick_elements(arg.dtype);
    // Bits of an int32 copy pass through unchanged under the name of the other 4-byte format.
    const bool raw_copy = spec_.op == "identity" && device_format(arg.dtype) == "IEEE_INT32";
    tensor.data_format = raw_copy ? "IEEE_FP32" : device_format(arg.dtype);
    tensor.in_lx = arg.memory == Memory::kLx;
    const bool sparse = access.stick == kNone && !dims_[tensor.stick].is_one_stick;
    const auto list = [&](std::size_t dim, int scale) {
      if (tensor.find(dim) == nullptr) tensor.order.push_back({dim, scale, 0});
    };
    for (std::size_t d = access.dims.size() - 1; d-- > 0;) {
      if (access.dims[d] != kNone) {
        list(access.dims[d], kScaleNormal);
      } else {
        list(tensor.stick, sparse ? kScaleSparse : kScaleNormal);
      }
    }
    list(tensor.stick, sparse ? kScaleSparse : kScaleNormal);
    // The extra dim of a one-dimensional conversion belongs to both tensors.
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d].symbol.empty() && !dims_[d].is_one_stick)
        tensor.order.insert(tensor.order.begin(), {d, kScaleNormal, 0});
    }
    KERNTRAIL_CHECK(measure_gaps(arg, access, tensor));
    KERNTRAIL_CHECK(place_cores(arg, access, tensor));
    model_.tensors.push_back(std::move(tensor));
    return {};
  }

  Expected<void> measure_gaps(const TensorArg& arg, const Access& access, SdscTensor& tensor) {
    for (SdscTensorDim& entry : tensor.order) {
      if (entry.scale != kScaleNormal) continue;
      const bool in_stick = entry.dim == tensor.stick;
      std::int64_t extent = 1;  // the dim's device extent, in sticks for the stick dim
      for (std::size_t d = 0; d + 1 < access.dims.size(); ++d) {
        if (access.dims[d] == entry.dim) extent = arg.layout.device_size[d];
      }
      if (dims_[entry.dim].is_one_stick && access.stick == kNone) extent = fixed_sticks(arg, access, entry.dim);
      if (in_stick) {
        const auto elements = checked_multiply(extent, tensor.stick_elements);
        if (!elements) return fail(ErrorCode::kTooLarge, "an extent leaves 64 bits");
        extent = *elements;
      }
      entry.gap = extent - model_.dims[entry.dim].size;
      if (entry.gap < 0) {
        return bad_argument(arg, fmt::format("dim {} has {} elements on the device, {} are iterated",
                                             model_.dims[entry.dim].label, extent, model_.dims[entry.dim].size));
      }
    }
    return {};
  }

  // A tensor without a stick variable: the number of its sticks that the dim of one stick runs over, 1 unless some
  // other argument's sticks are longer.
  std::int64_t fixed_sticks(const TensorArg& arg, const Access& access, std::size_t dim) const {
    const std::int64_t needed = ceil_divide(model_.dims[dim].size, stick_elements(arg.dtype));
    for (std::size_t d = 0; d + 1 < access.dims.size(); ++d) {
      if (access.dims[d] == kNone && arg.layout.device_size[d] == needed) return needed;
    }
    return 1;
  }

  // Where each core's part begins: the device offset of its first iteration point.
  Expected<void> place_cores(const TensorArg& arg, const Access& access, SdscTensor& tensor) {
    if (arg.base < 0 || arg.base % kStickBytes != 0) {
      return bad_argument(arg, fmt::format("its address {} is no multiple of {}", arg.base, kStickBytes));
    }
    const auto bytes = static_cast<std::int64_t>(device_element_size(arg.dtype));
    for (const std::vector<std::int64_t>& slice : model_.slices) {
      std::int64_t address = arg.base;
      if (!tensor.in_lx) {
        Point point;
        for (std::size_t d = 0; d < dims_.size(); ++d) {
          if (!dims_[d].symbol.empty()) point[dims_[d].symbol] = slice[d] * model_.dims[d].per_core();
        }
        std::vector<std::int64_t> coordinates;
        for (const IndexExpr& expression : access.coordinates) {
          KERNTRAIL_TRY(const std::int64_t value, expression.evaluate(point));
          coordinates.push_back(value);
        }
        KERNTRAIL_TRY(const std::int64_t offset, device_offset(arg.layout, coordinates));
        const auto in_bytes = checked_multiply(offset, bytes);
        const auto sum = in_bytes ? checked_add(address, *in_bytes) : std::nullopt;
        if (!sum) return fail(ErrorCode::kTooLarge, "an address leaves 64 bits");
        address = *sum;
      }
      tensor.addresses.push_back(address);
    }
    return {};
  }

  // Except in a matmul every tensor lists the dims of the output; those it lacks are broadcast.
  void append_missing_dims() {
    if (model_.kind == OpKind::kMatmul) return;
    const std::vector<SdscTensorDim> reference = model_.tensors.back().order;
    for (SdscTensor& tensor : model_.tensors) {
      for (const SdscTensorDim& entry : reference) {
        if (tensor.find(entry.dim) == nullptr) tensor.order.push_back({entry.dim, kScaleReduced, 0});
      }
    }
  }

  // Tensors with the same stick, dims and stick size share a label, and with it the label's dim order.
  Expected<void> label_tensors() {
    const auto& names = model_.kind == OpKind::kMatmul ? kMatmulTensorLabels : kLabels;
    std::size_t used = 0;
    const auto dims_of = [](const SdscTensor& tensor) {
      std::set<std::size_t> dims;
      for (const SdscTensorDim& entry : tensor.order) dims.insert(entry.dim);
      return dims;
    };
    for (std::size_t i = 0; i < model_.tensors.size(); ++i) {
      SdscTensor& tensor = model_.tensors[i];
      std::size_t same = 0;
      while (same < i && !(model_.tensors[same].stick == tensor.stick &&
                           model_.tensors[same].stick_elements == tensor.stick_elements &&
                           dims_of(model_.tensors[same]) == dims_of(tensor))) {
        ++same;
      }
      if (same < i) {
        tensor.first_of_label = model_.tensors[same].first_of_label;
        tensor.label = model_.tensors[same].label;
        continue;
      }
      if (used == names.size())
        return fail(ErrorCode::kUnsupported, fmt::format("{} needs more than four layouts", spec_.op));
      tensor.first_of_label = i;
      tensor.label = names[used++];
    }
    return {};
  }

  const OpSpec& spec_;
  std::int64_t max_cores_;
  SdscModel model_;
  std::vector<EmittedDim> dims_;
  std::vector<Access> accesses_;
  std::vector<std::size_t> sticks_;  // an argument each
};

}  // namespace

const SdscTensorDim* SdscTensor::find(std::size_t dim) const {
  for (const SdscTensorDim& entry : order) {
    if (entry.dim == dim) return &entry;
  }
  return nullptr;
}

Expected<std::optional<std::string>> stick_symbol(const TensorArg& arg) {
  if (arg.device_coordinates.empty()) return bad_argument(arg, "it has no device coordinates");
  KERNTRAIL_TRY(const IndexExpr place, IndexExpr::parse(arg.device_coordinates.back()));
  const std::vector<std::string> symbols = place.symbols();
  if (symbols.size() > 1) return bad_argument(arg, "two loop variables share its stick", ErrorCode::kUnsupported);
  return symbols.empty() ? std::nullopt : std::optional<std::string>(symbols[0]);
}

Expected<SdscModel> make_superdsc_model(const OpSpec& spec, std::int64_t max_cores) {
  if (max_cores < 1) return fail(ErrorCode::kSchema, "the number of cores must be at least 1");
  return ModelBuilder(spec, max_cores).run();
}

}  // namespace kerntrail::spyre
