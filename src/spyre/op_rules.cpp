// Kinds, kept dims and labels of operations.
#include "spyre/op_rules.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace kerntrail::spyre {
namespace {

using Names = std::string_view;

constexpr std::array<Names, 5> kConversions{"dl16tofp32", "fp32todl16", "fp8todl16", "fp32toint32", "int32tofp32"};

// Operations with rules of their own that are not carried: masks, sparse results, windows, cross-core moves.
constexpr std::array<Names, 14> kNotCarried{"layernormscale", "layernormnorm", "exx2",       "topkvalue",
                                            "topkindex",      "keepbyindex",   "qfp8ch",     "qfp8wt",
                                            "conv2d",         "shuffle",       "avgpoolfwd", "depthwiseconv2dnative",
                                            "ReStickifyOpLx", "batchmatmulfp8"};

constexpr std::array<Names, 28> kFloat32Forms{
    "add",     "sub",           "mul",       "where3",    "realdiv",  "relufwd",        "reciprocal",
    "mean",    "sum",           "max",       "min",       "abs",      "layernormscale", "neg",
    "exp",     "sigmoid",       "exx2",      "floor",     "identity", "sqrt",           "rsqrt",
    "maximum", "layernormnorm", "topkvalue", "topkindex", "to_dtype", "minimum",        "ReStickifyOpHBM"};

constexpr std::array<Names, 7> kPointwiseLabels{"mb", "x", "y", "i", "j", "ki", "kj"};
constexpr std::array<Names, 7> kMatmulLabels{"ki", "kj", "y", "x", "mb", "out", "in"};
// A product of one batch with a shared weight names its rows as a batch dim.
constexpr std::array<Names, 6> kSharedWeightLabels{"ki", "kj", "y", "x", "out", "in"};

template <std::size_t N>
bool holds(const std::array<Names, N>& names, Names name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Expected<void> check_arguments(const OpSpec& spec, std::size_t at_least, std::size_t at_most) {
  const std::size_t n = spec.args.size();
  if (n < at_least || n > at_most) {
    return fail(ErrorCode::kSchema, fmt::format("{} has {} arguments", spec.op, n));
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (spec.args[i].is_input != (i + 1 < n)) {
      return fail(ErrorCode::kSchema, fmt::format("{} must list its inputs and then one output", spec.op));
    }
  }
  return {};
}

template <std::size_t N>
Expected<void> label_last(std::vector<EmittedDim>& dims, const std::array<Names, N>& labels, std::string_view op) {
  if (dims.size() > N) return fail(ErrorCode::kUnsupported, fmt::format("{} has more than {} dims", op, N));
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i].label = labels[N - dims.size() + i];
  return {};
}

Expected<void> label_pointwise(std::vector<EmittedDim>& dims, std::string_view op) {
  if (dims.size() > kPointwiseLabels.size() + 1) {
    return fail(ErrorCode::kUnsupported, fmt::format("{} has more than {} dims", op, kPointwiseLabels.size() + 1));
  }
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i].label = i + 1 == dims.size() ? "out" : kPointwiseLabels[i];
  return {};
}

EmittedDim loop_dim(const OpSpec& spec, std::size_t position) {
  const IterDim& dim = spec.iteration_space[position];
  EmittedDim out;
  out.symbol = dim.symbol;
  out.extent = dim.extent;
  out.split = dim.split;
  out.position = position;
  return out;
}

Expected<std::vector<EmittedDim>> matmul_dims(const OpSpec& spec) {
  std::vector<EmittedDim> dims;
  const std::size_t n = spec.iteration_space.size();
  if (matmul_k(spec).extent == 1) {
    return fail(ErrorCode::kUnsupported, "a matrix product over one element is a mul, not a batchmatmul");
  }
  for (std::size_t i = 0; i < n; ++i) {
    EmittedDim dim = loop_dim(spec, i);
    dim.is_reduction = i + 1 == n;
    if (dim.extent == 1) {
      if (i + 2 != n) continue;
      dim.symbol.clear();
      dim.is_one_stick = true;
    }
    dims.push_back(std::move(dim));
  }
  const bool shared_weight = spec.op_info["shared_weight_unit_bmm"].as_bool();
  if (shared_weight) {
    KERNTRAIL_CHECK(label_last(dims, kSharedWeightLabels, spec.op));
  } else {
    KERNTRAIL_CHECK(label_last(dims, kMatmulLabels, spec.op));
  }
  return dims;
}

}  // namespace

bool has_float32_form(std::string_view op) { return holds(kFloat32Forms, op) || holds(kConversions, op); }

Expected<OpKind> op_kind(const OpSpec& spec) {
  if (spec.op.empty()) return fail(ErrorCode::kSchema, "an operation has no name");
  if (spec.op == "batchmatmul") {
    KERNTRAIL_CHECK(check_arguments(spec, 3, 3));
    if (spec.iteration_space.size() < 2)
      return fail(ErrorCode::kSchema, "a batchmatmul needs the loops N and K at least");
    return OpKind::kMatmul;
  }
  if (spec.is_reduction || holds(kNotCarried, spec.op)) {
    return fail(ErrorCode::kUnsupported, fmt::format("the format's rules for {} are not carried", spec.op));
  }
  if (holds(kConversions, spec.op)) {
    KERNTRAIL_CHECK(check_arguments(spec, 2, 2));
    return OpKind::kConversion;
  }
  if (spec.op == "ReStickifyOpHBM") {
    KERNTRAIL_CHECK(check_arguments(spec, 2, 2));
    return OpKind::kRestickify;
  }
  KERNTRAIL_CHECK(check_arguments(spec, 2, 8));
  return OpKind::kPointwise;
}

Expected<std::vector<EmittedDim>> emitted_dims(const OpSpec& spec, OpKind kind,
                                               const std::optional<std::string>& output_stick) {
  for (const IterDim& dim : spec.iteration_space) {
    if (dim.extent == 0) return fail(ErrorCode::kUnsupported, fmt::format("{} iterates over nothing", spec.op));
    if (dim.extent < 0 || dim.split < 1)
      return fail(ErrorCode::kSchema, fmt::format("{} has a loop of no size", spec.op));
  }
  if (kind == OpKind::kMatmul) return matmul_dims(spec);
  std::vector<EmittedDim> dims;
  for (std::size_t i = 0; i < spec.iteration_space.size(); ++i) {
    if (spec.iteration_space[i].extent > 1) dims.push_back(loop_dim(spec, i));
  }
  if (!output_stick) {
    dims.emplace_back();
    dims.back().is_one_stick = true;
  }
  if (kind == OpKind::kConversion && dims.size() == 1) dims.insert(dims.begin(), EmittedDim{});
  KERNTRAIL_CHECK(label_pointwise(dims, spec.op));
  return dims;
}

}  // namespace kerntrail::spyre
