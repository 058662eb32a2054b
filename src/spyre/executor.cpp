#include "spyre/executor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "spyre/index_expr.h"

// The inner loops are the only hot code of this layer and are unusable without optimisation: a debug build of the
// library still has to run a model.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__OPTIMIZE__)
#pragma GCC optimize("O2")
#endif

namespace kerntrail::spyre {
namespace {

enum class OpCode : std::uint8_t {
  kMatmul,
  kIdentity,
  kAbs,
  kExp,
  kLog,
  kNeg,
  kSqrt,
  kRsqrt,
  kTanh,
  kSigmoid,
  kFloor,
  kReciprocal,
  kRelu,
  kGelu,
  kSilu,
  kAdd,
  kSub,
  kMul,
  kMaximum,
  kMinimum,
  kDivide,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kWhere
};

// Which types an operation takes and gives.
enum class Typing : std::uint8_t {
  kFloats,   // operands and result are of one floating type
  kAny,      // one operand, result of the same type, truth values too
  kCompare,  // operands of one floating type, result is a truth value
  kChoice,   // a truth value, then two operands of the result's floating type
  kWiden,    // float16 to float32
  kNarrow    // float32 to float16
};

struct OpInfo {
  std::string_view name;
  OpCode code;
  std::size_t arity;
  Typing typing;
};

constexpr std::array kOps = {
    OpInfo{"batchmatmul", OpCode::kMatmul, 2, Typing::kFloats},
    OpInfo{"identity", OpCode::kIdentity, 1, Typing::kAny},
    OpInfo{"ReStickifyOpHBM", OpCode::kIdentity, 1, Typing::kAny},
    OpInfo{"dl16tofp32", OpCode::kIdentity, 1, Typing::kWiden},
    OpInfo{"fp32todl16", OpCode::kIdentity, 1, Typing::kNarrow},
    OpInfo{"abs", OpCode::kAbs, 1, Typing::kFloats},
    OpInfo{"exp", OpCode::kExp, 1, Typing::kFloats},
    OpInfo{"log", OpCode::kLog, 1, Typing::kFloats},
    OpInfo{"neg", OpCode::kNeg, 1, Typing::kFloats},
    OpInfo{"sqrt", OpCode::kSqrt, 1, Typing::kFloats},
    OpInfo{"rsqrt", OpCode::kRsqrt, 1, Typing::kFloats},
    OpInfo{"tanh", OpCode::kTanh, 1, Typing::kFloats},
    OpInfo{"sigmoid", OpCode::kSigmoid, 1, Typing::kFloats},
    OpInfo{"floor", OpCode::kFloor, 1, Typing::kFloats},
    OpInfo{"reciprocal", OpCode::kReciprocal, 1, Typing::kFloats},
    OpInfo{"relufwd", OpCode::kRelu, 1, Typing::kFloats},
    OpInfo{"gelufwd", OpCode::kGelu, 1, Typing::kFloats},
    OpInfo{"silu", OpCode::kSilu, 1, Typing::kFloats},
    OpInfo{"add", OpCode::kAdd, 2, Typing::kFloats},
    OpInfo{"sub", OpCode::kSub, 2, Typing::kFloats},
    OpInfo{"mul", OpCode::kMul, 2, Typing::kFloats},
    OpInfo{"maximum", OpCode::kMaximum, 2, Typing::kFloats},
    OpInfo{"minimum", OpCode::kMinimum, 2, Typing::kFloats},
    OpInfo{"realdiv", OpCode::kDivide, 2, Typing::kFloats},
    OpInfo{"equal", OpCode::kEqual, 2, Typing::kCompare},
    OpInfo{"notequal", OpCode::kNotEqual, 2, Typing::kCompare},
    OpInfo{"greaterthan", OpCode::kGreater, 2, Typing::kCompare},
    OpInfo{"greaterequal", OpCode::kGreaterEqual, 2, Typing::kCompare},
    OpInfo{"lesserthan", OpCode::kLess, 2, Typing::kCompare},
    OpInfo{"lesserequal", OpCode::kLessEqual, 2, Typing::kCompare},
    OpInfo{"where3", OpCode::kWhere, 3, Typing::kChoice},
};

constexpr std::size_t kMaxRank = 16;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 36;  // of one buffer; more is a damaged file, not a model
constexpr std::int64_t kMaxPoints = std::int64_t{1} << 50;    // of one iteration space
constexpr std::size_t kRow = 512;                             // elements converted and computed at a time

const OpInfo* find_op(std::string_view name) {
  const auto* it = std::ranges::find(kOps, name, &OpInfo::name);
  return it == kOps.end() ? nullptr : it;
}

bool is_float(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kFloat32; }

// A view of a buffer along the loops of one step, in elements.
struct Access {
  bool is_argument = false;
  std::size_t slot = 0;  // argument number or intermediate number
  DType dtype = DType::kFloat32;
  std::int64_t offset = 0;
  std::array<std::int64_t, kMaxRank> stride{};
};

struct Step {
  OpCode code = OpCode::kIdentity;
  std::size_t rank = 0;
  std::array<std::int64_t, kMaxRank> extent{};
  std::size_t inputs = 0;
  std::array<Access, 4> access;  // inputs, then the output
};

// A buffer as one call sees it.
struct Base {
  std::byte* bytes = nullptr;
  std::byte* at(const Access& access, std::int64_t index) const {
    return bytes + static_cast<std::size_t>(index) * dtype_size(access.dtype);
  }
};

void load_row(const std::byte* from, DType dtype, std::int64_t stride, std::size_t n, float* row) {
  const auto step = static_cast<std::ptrdiff_t>(stride);
  if (dtype == DType::kFloat32) {
    const auto* p = reinterpret_cast<const float*>(from);
    for (std::size_t i = 0; i < n; ++i, p += step) row[i] = *p;
  } else if (dtype == DType::kFloat16) {
    const auto* p = reinterpret_cast<const std::uint16_t*>(from);
    for (std::size_t i = 0; i < n; ++i, p += step) row[i] = half_to_float(*p);
  } else {
    const auto* p = reinterpret_cast<const std::uint8_t*>(from);
    for (std::size_t i = 0; i < n; ++i, p += step) row[i] = *p == 0 ? 0.0F : 1.0F;
  }
}

void store_row(std::byte* to, DType dtype, std::int64_t stride, std::size_t n, const float* row) {
  const auto step = static_cast<std::ptrdiff_t>(stride);
  if (dtype == DType::kFloat32) {
    auto* p = reinterpret_cast<float*>(to);
    for (std::size_t i = 0; i < n; ++i, p += step) *p = row[i];
  } else if (dtype == DType::kFloat16) {
    auto* p = reinterpret_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < n; ++i, p += step) *p = float_to_half(row[i]);
  } else {
    auto* p = reinterpret_cast<std::uint8_t*>(to);
    for (std::size_t i = 0; i < n; ++i, p += step) *p = row[i] != 0.0F ? 1 : 0;
  }
}

template <class F>
void map1(std::size_t n, const float* a, float* out, F f) {
  for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i]);
}

template <class F>
void map2(std::size_t n, const float* a, const float* b, float* out, F f) {
  for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
}

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }
float as_float(bool x) { return x ? 1.0F : 0.0F; }

void compute_unary(OpCode code, std::size_t n, const float* a, float* out) {
  switch (code) {
    case OpCode::kAbs: return map1(n, a, out, [](float x) { return std::fabs(x); });
    case OpCode::kExp: return map1(n, a, out, [](float x) { return std::exp(x); });
    case OpCode::kLog: return map1(n, a, out, [](float x) { return std::log(x); });
    case OpCode::kNeg: return map1(n, a, out, [](float x) { return -x; });
    case OpCode::kSqrt: return map1(n, a, out, [](float x) { return std::sqrt(x); });
    case OpCode::kRsqrt: return map1(n, a, out, [](float x) { return 1.0F / std::sqrt(x); });
    case OpCode::kTanh: return map1(n, a, out, [](float x) { return std::tanh(x); });
    case OpCode::kSigmoid: return map1(n, a, out, sigmoid);
    case OpCode::kFloor: return map1(n, a, out, [](float x) { return std::floor(x); });
    case OpCode::kReciprocal: return map1(n, a, out, [](float x) { return 1.0F / x; });
    // Written so that NaN passes through, as it does in eager.
    case OpCode::kRelu: return map1(n, a, out, [](float x) { return x < 0.0F ? 0.0F : x; });
    case OpCode::kGelu: return map1(n, a, out, [](float x) { return 0.5F * x * (1.0F + std::erf(x * 0.70710678F)); });
    case OpCode::kSilu: return map1(n, a, out, [](float x) { return x / (1.0F + std::exp(-x)); });
    default: return map1(n, a, out, [](float x) { return x; });
  }
}

float larger(float x, float y) { return std::isnan(x) || x > y ? x : y; }
float smaller(float x, float y) { return std::isnan(x) || x < y ? x : y; }

void compute_binary(OpCode code, std::size_t n, const float* a, const float* b, float* out) {
  switch (code) {
    case OpCode::kAdd: return map2(n, a, b, out, [](float x, float y) { return x + y; });
    case OpCode::kSub: return map2(n, a, b, out, [](float x, float y) { return x - y; });
    case OpCode::kMul: return map2(n, a, b, out, [](float x, float y) { return x * y; });
    case OpCode::kDivide: return map2(n, a, b, out, [](float x, float y) { return x / y; });
    case OpCode::kMaximum: return map2(n, a, b, out, larger);
    case OpCode::kMinimum: return map2(n, a, b, out, smaller);
    case OpCode::kEqual: return map2(n, a, b, out, [](float x, float y) { return as_float(x == y); });
    case OpCode::kNotEqual: return map2(n, a, b, out, [](float x, float y) { return as_float(x != y); });
    case OpCode::kGreater: return map2(n, a, b, out, [](float x, float y) { return as_float(x > y); });
    case OpCode::kGreaterEqual: return map2(n, a, b, out, [](float x, float y) { return as_float(x >= y); });
    case OpCode::kLess: return map2(n, a, b, out, [](float x, float y) { return as_float(x < y); });
    default: return map2(n, a, b, out, [](float x, float y) { return as_float(x <= y); });
  }
}

void compute_row(const Step& step, std::size_t n, std::array<std::array<float, kRow>, 4>& rows) {
  float* out = rows[3].data();
  if (step.inputs == 1) return compute_unary(step.code, n, rows[0].data(), out);
  if (step.inputs == 2) return compute_binary(step.code, n, rows[0].data(), rows[1].data(), out);
  for (std::size_t i = 0; i < n; ++i) out[i] = rows[0][i] != 0.0F ? rows[1][i] : rows[2][i];
}

// Calls `body` with the offset of every access at each point of the first `rank` loops.
template <class F>
void for_each_point(const Step& step, std::size_t rank, F body) {
  std::array<std::int64_t, kMaxRank> at{};
  std::array<std::int64_t, 4> offset{};
  for (std::size_t a = 0; a <= step.inputs; ++a) offset[a] = step.access[a].offset;
  while (true) {
    body(offset);
    std::size_t d = rank;
    while (d-- > 0) {
      for (std::size_t a = 0; a <= step.inputs; ++a) offset[a] += step.access[a].stride[d];
      if (++at[d] < step.extent[d]) break;
      for (std::size_t a = 0; a <= step.inputs; ++a) offset[a] -= step.access[a].stride[d] * step.extent[d];
      at[d] = 0;
    }
    if (d == static_cast<std::size_t>(-1)) return;
  }
}

void run_pointwise(const Step& step, const std::array<Base, 4>& base) {
  const std::size_t last = step.rank - 1;  // at least one loop: prepare() sees to it
  const std::int64_t extent = step.extent[last];
  std::array<std::array<float, kRow>, 4> rows;
  for_each_point(step, last, [&](const std::array<std::int64_t, 4>& offset) {
    for (std::int64_t begin = 0; begin < extent; begin += static_cast<std::int64_t>(kRow)) {
      const auto n = static_cast<std::size_t>(std::min<std::int64_t>(extent - begin, kRow));
      for (std::size_t a = 0; a < step.inputs; ++a) {
        const Access& in = step.access[a];
        load_row(base[a].at(in, offset[a] + begin * in.stride[last]), in.dtype, in.stride[last], n, rows[a].data());
      }
      compute_row(step, n, rows);
      const Access& out = step.access[step.inputs];
      const std::int64_t to = offset[step.inputs] + begin * out.stride[last];
      store_row(base[step.inputs].at(out, to), out.dtype, out.stride[last], n, rows[3].data());
    }
  });
}

// Register block of the matrix product: 4 rows by 8 columns keep all sums in the registers of the oldest x86-64.
constexpr std::size_t kTileRows = 4;
constexpr std::size_t kTileColumns = 8;
using Lane = float __attribute__((vector_size(16)));

// a: kTileRows rows of k values each, `k` apart. b: k rows of kTileColumns values. sums: kTileRows x kTileColumns.
void multiply_tile(std::size_t k, const float* a, const float* b, float* sums) {
  std::array<std::array<Lane, 2>, kTileRows> sum{};
  for (std::size_t i = 0; i < k; ++i) {
    Lane b0;
    Lane b1;
    std::memcpy(&b0, b + i * kTileColumns, sizeof b0);
    std::memcpy(&b1, b + i * kTileColumns + 4, sizeof b1);
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const float value = a[r * k + i];
      const Lane wide = {value, value, value, value};
      sum[r][0] += wide * b0;
      sum[r][1] += wide * b1;
    }
  }
  std::memcpy(sums, sum.data(), sizeof sum);
}

std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Scratch of one matrix product: the left operand whole, one panel of the right one, both in single precision.
struct MatmulScratch {
  std::vector<float> left;
  std::vector<float> panel;
};

void multiply(const Step& step, const std::array<Base, 4>& base, const std::array<std::int64_t, 4>& offset,
              MatmulScratch& scratch) {
  const std::size_t dm = step.rank - 3, dn = step.rank - 2, dk = step.rank - 1;
  const auto m = static_cast<std::size_t>(step.extent[dm]), n = static_cast<std::size_t>(step.extent[dn]);
  const auto k = static_cast<std::size_t>(step.extent[dk]);
  const Access& x = step.access[0];
  const Access& y = step.access[1];
  const Access& z = step.access[2];
  for (std::size_t i = 0; i < m; ++i) {
    load_row(base[0].at(x, offset[0] + static_cast<std::int64_t>(i) * x.stride[dm]), x.dtype, x.stride[dk], k,
             scratch.left.data() + i * k);
  }
  std::vector<float> column(k);
  std::array<float, kTileRows * kTileColumns> sums{};
  for (std::size_t j = 0; j < n; j += kTileColumns) {
    const std::size_t columns = std::min(kTileColumns, n - j);
    for (std::size_t c = 0; c < columns; ++c) {
      load_row(base[1].at(y, offset[1] + static_cast<std::int64_t>(j + c) * y.stride[dn]), y.dtype, y.stride[dk], k,
               column.data());
      for (std::size_t i = 0; i < k; ++i) scratch.panel[i * kTileColumns + c] = column[i];
    }
    for (std::size_t i = 0; i < m; i += kTileRows) {
      multiply_tile(k, scratch.left.data() + i * k, scratch.panel.data(), sums.data());
      for (std::size_t r = 0; r < std::min(kTileRows, m - i); ++r) {
        const std::int64_t to =
            offset[2] + static_cast<std::int64_t>(i + r) * z.stride[dm] + static_cast<std::int64_t>(j) * z.stride[dn];
        store_row(base[2].at(z, to), z.dtype, z.stride[dn], columns, sums.data() + r * kTileColumns);
      }
    }
  }
}

void run_matmul(const Step& step, const std::array<Base, 4>& base) {
  const auto m = static_cast<std::size_t>(step.extent[step.rank - 3]);
  const auto k = static_cast<std::size_t>(step.extent[step.rank - 1]);
  MatmulScratch scratch{std::vector<float>(round_up(m, kTileRows) * k), std::vector<float>(kTileColumns * k)};
  for_each_point(step, step.rank - 3,
                 [&](const std::array<std::int64_t, 4>& offset) { multiply(step, base, offset, scratch); });
}

// Loops that step through every buffer as one longer loop are joined, so that rows are long.
void join_loops(Step& step) {
  std::size_t kept = 0;
  for (std::size_t d = 1; d < step.rank; ++d) {
    bool joint = true;
    for (std::size_t a = 0; a <= step.inputs; ++a) {
      const Access& access = step.access[a];
      joint = joint && access.stride[kept] == access.stride[d] * step.extent[d];
    }
    if (!joint) ++kept;
    step.extent[kept] = joint ? step.extent[kept] * step.extent[d] : step.extent[d];
    for (std::size_t a = 0; a <= step.inputs; ++a) step.access[a].stride[kept] = step.access[a].stride[d];
  }
  step.rank = kept + 1;
}

struct Intermediate {
  std::string name;
  DType dtype = DType::kFloat32;
  std::size_t elements = 0;
};

// Elements from a buffer's first to its last, inclusive.
Expected<std::int64_t> storage_elements(const TensorArg& arg) {
  if (arg.host_size.size() != arg.host_stride.size()) {
    return fail(ErrorCode::kSchema,
                fmt::format("{}: {} extents, {} strides", arg.name, arg.host_size.size(), arg.host_stride.size()));
  }
  std::int64_t last = 0;
  for (std::size_t i = 0; i < arg.host_size.size(); ++i) {
    const std::int64_t size = arg.host_size[i], stride = arg.host_stride[i];
    if (size < 1 || stride < 0 || size > kMaxElements || stride > kMaxElements ||
        (size > 1 && stride > kMaxElements / (size - 1)) || last + (size - 1) * stride >= kMaxElements) {
      return fail(ErrorCode::kUnsupported, fmt::format("{}: extent {} with stride {}", arg.name, size, stride));
    }
    last += (size - 1) * stride;
  }
  return last + 1;
}

// Checks specs one after the other and collects the buffers they name.
class Preparation {
 public:
  Expected<void> add(const OpSpec& spec) {
    const OpInfo* info = find_op(spec.op);
    if (info == nullptr) return fail(ErrorCode::kUnsupported, fmt::format("no host operation \"{}\"", spec.op));
    if (!spec.op_info.as_object().empty()) {
      return fail(ErrorCode::kUnsupported, fmt::format("{}: op_info is not understood", spec.op));
    }
    if (spec.is_reduction != (info->code == OpCode::kMatmul) || spec.args.size() != info->arity + 1) {
      return fail(ErrorCode::kSchema, fmt::format("{}: {} arguments", spec.op, spec.args.size()));
    }
    Step step;
    step.code = info->code;
    step.inputs = info->arity;
    KERNTRAIL_CHECK(set_loops(spec, step));
    for (std::size_t i = 0; i <= info->arity; ++i) {
      const bool is_output = i == info->arity;
      if (spec.args[i].is_input == is_output) {
        return fail(ErrorCode::kSchema, fmt::format("{}: inputs come first, the output last", spec.op));
      }
      KERNTRAIL_TRY(step.access[i], access_of(spec, spec.args[i]));
    }
    KERNTRAIL_CHECK(check_types(*info, step));
    KERNTRAIL_CHECK(check_matmul(spec, step));
    if (step.code != OpCode::kMatmul) join_loops(step);
    steps.push_back(step);
    return {};
  }

  Expected<void> finish() const {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].elements == 0) return fail(ErrorCode::kSchema, fmt::format("argument {} is never used", i));
    }
    return {};
  }

  std::vector<Step> steps;
  std::vector<KernelArgument> arguments;
  std::vector<Intermediate> intermediates;

 private:
  static Expected<void> set_loops(const OpSpec& spec, Step& step) {
    step.rank = spec.iteration_space.size();
    if (step.rank > kMaxRank) return fail(ErrorCode::kUnsupported, fmt::format("{}: {} loops", spec.op, step.rank));
    std::int64_t points = 1;
    for (std::size_t i = 0; i < step.rank; ++i) {
      step.extent[i] = spec.iteration_space[i].extent;
      if (step.extent[i] < 1 || step.extent[i] > kMaxPoints / points) {
        return fail(ErrorCode::kUnsupported, fmt::format("{}: loop of {}", spec.op, step.extent[i]));
      }
      points *= step.extent[i];
    }
    if (step.rank == 0) {  // a scalar is one point of one loop
      step.rank = 1;
      step.extent[0] = 1;
    }
    return {};
  }

  Expected<Access> access_of(const OpSpec& spec, const TensorArg& arg) {
    KERNTRAIL_TRY(const std::int64_t elements, storage_elements(arg));
    KERNTRAIL_TRY(const LinearForm index, parse_linear(arg.index));
    Access access;
    access.dtype = arg.dtype;
    access.offset = index.constant;
    __extension__ using Wide = __int128;
    Wide low = index.constant, high = index.constant;
    std::size_t known = 0;
    for (std::size_t d = 0; d < spec.iteration_space.size(); ++d) {
      const std::int64_t stride = index.coefficient(spec.iteration_space[d].symbol);
      known += stride == 0 ? 0 : 1;
      access.stride[d] = stride;
      const Wide reach = static_cast<Wide>(stride) * (spec.iteration_space[d].extent - 1);
      (reach < 0 ? low : high) += reach;
    }
    if (known != index.terms.size()) {
      return fail(ErrorCode::kReference, fmt::format("{}: unknown symbol in \"{}\"", spec.op, arg.index));
    }
    if (low < 0 || high >= elements) {
      return fail(ErrorCode::kSchema, fmt::format("{}: \"{}\" leaves {}", spec.op, arg.index, arg.name));
    }
    KERNTRAIL_CHECK(place(arg, elements, access));
    return access;
  }

  Expected<void> place(const TensorArg& arg, std::int64_t elements, Access& access) {
    const auto count = static_cast<std::size_t>(elements);
    access.is_argument = arg.arg_index >= 0;
    if (!access.is_argument) return place_intermediate(arg, count, access);
    if (arg.arg_index > 65535) return fail(ErrorCode::kTooLarge, fmt::format("argument {}", arg.arg_index));
    access.slot = static_cast<std::size_t>(arg.arg_index);
    if (arguments.size() <= access.slot) arguments.resize(access.slot + 1);
    KernelArgument& known = arguments[access.slot];
    if (known.elements != 0 && (known.name != arg.name || known.dtype != arg.dtype)) {
      return fail(ErrorCode::kSchema, fmt::format("argument {} is {} and {}", arg.arg_index, known.name, arg.name));
    }
    known.name = arg.name;
    known.dtype = arg.dtype;
    known.elements = std::max(known.elements, count);
    known.written = known.written || !arg.is_input;
    return {};
  }

  Expected<void> place_intermediate(const TensorArg& arg, std::size_t count, Access& access) {
    auto it = std::ranges::find(intermediates, arg.name, &Intermediate::name);
    if (it == intermediates.end()) {
      if (arg.is_input) return fail(ErrorCode::kReference, fmt::format("{} is read before it is written", arg.name));
      it = intermediates.insert(it, {arg.name, arg.dtype, count});
    }
    if (it->dtype != arg.dtype || it->elements != count) {
      return fail(ErrorCode::kSchema, fmt::format("{} is described in two ways", arg.name));
    }
    access.slot = static_cast<std::size_t>(it - intermediates.begin());
    return {};
  }

  static Expected<void> check_types(const OpInfo& info, const Step& step) {
    const DType out = step.access[step.inputs].dtype;
    const DType in = step.access[step.inputs - 1].dtype;
    bool good = true;
    for (std::size_t i = info.typing == Typing::kChoice ? 1 : 0; i < step.inputs; ++i) {
      good =
          good && step.access[i].dtype == in && (is_float(in) || (info.typing == Typing::kAny && in == DType::kBool));
    }
    switch (info.typing) {
      case Typing::kFloats:
      case Typing::kAny: good = good && out == in; break;
      case Typing::kCompare: good = good && out == DType::kBool; break;
      case Typing::kChoice: good = good && out == in && step.access[0].dtype == DType::kBool; break;
      case Typing::kWiden: good = good && in == DType::kFloat16 && out == DType::kFloat32; break;
      case Typing::kNarrow: good = good && in == DType::kFloat32 && out == DType::kFloat16; break;
    }
    if (good) return {};
    return fail(ErrorCode::kUnsupported, fmt::format("{} from {} to {}", info.name, dtype_name(in), dtype_name(out)));
  }

  // [batch.., m, n, k]: x does not move with n, y not with m, the result not with k.
  static Expected<void> check_matmul(const OpSpec& spec, const Step& step) {
    if (step.code != OpCode::kMatmul) return {};
    const std::size_t rank = step.rank;
    const bool good = rank >= 3 && step.access[0].stride[rank - 2] == 0 && step.access[1].stride[rank - 3] == 0 &&
                      step.access[2].stride[rank - 1] == 0;
    if (good) return {};
    return fail(ErrorCode::kUnsupported, fmt::format("{}: not a product of m x k and k x n", spec.op));
  }
};

}  // namespace

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t rest = bits & 0x7fffU;
  if (rest >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x3ffU) << 13);
  // The half's exponent and fraction read as a tiny float; the product moves the exponent to its place, and
  // normalises subnormals on the way.
  const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
}

std::uint16_t float_to_half(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  bits &= 0x7fffffffU;
  std::uint32_t half = 0;
  if (bits > 0x7f800000U) {
    half = 0x7e00U;
  } else if (bits >= 0x477ff000U) {  // 65520 and above round to infinity
    half = 0x7c00U;
  } else if (bits < 0x38800000U) {   // below 2^-14: adding 0.5 leaves the half's fraction, rounded, in the low bits
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + 0.5F) - 0x3f000000U;
  } else {
    half = (bits + 0xfffU + ((bits >> 13) & 1U) - 0x38000000U) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

bool can_execute(std::string_view op) { return find_op(op) != nullptr; }

bool compute_pointwise_row(std::string_view op, const float* const* inputs, std::size_t count, std::size_t n,
                           float* out) {
  const OpInfo* info = find_op(op);
  if (info == nullptr || info->code == OpCode::kMatmul || info->arity != count) return false;
  Step step;
  step.code = info->code;
  step.inputs = count;
  std::array<std::array<float, kRow>, 4> rows;
  for (std::size_t begin = 0; begin < n; begin += kRow) {
    const std::size_t part = std::min(kRow, n - begin);
    for (std::size_t i = 0; i < count; ++i) std::copy_n(inputs[i] + begin, part, rows[i].data());
    compute_row(step, part, rows);
    std::copy_n(rows[3].data(), part, out + begin);
  }
  return true;
}

struct HostKernel::Program {
  std::vector<Step> steps;
  std::vector<KernelArgument> arguments;
  std::vector<Intermediate> intermediates;
};

HostKernel::HostKernel(std::unique_ptr<Program> program) : program_(std::move(program)) {}
HostKernel::HostKernel(HostKernel&&) noexcept = default;
HostKernel& HostKernel::operator=(HostKernel&&) noexcept = default;
HostKernel::~HostKernel() = default;

Expected<HostKernel> HostKernel::prepare(const std::vector<OpSpec>& specs) {
  Preparation preparation;
  for (const OpSpec& spec : specs) KERNTRAIL_CHECK(preparation.add(spec));
  KERNTRAIL_CHECK(preparation.finish());
  auto program = std::make_unique<Program>();
  program->steps = std::move(preparation.steps);
  program->arguments = std::move(preparation.arguments);
  program->intermediates = std::move(preparation.intermediates);
  return HostKernel(std::move(program));
}

const std::vector<KernelArgument>& HostKernel::arguments() const { return program_->arguments; }

Expected<void> HostKernel::run(const std::vector<void*>& pointers) const {
  if (pointers.size() != program_->arguments.size() || std::ranges::count(pointers, nullptr) != 0) {
    return fail(ErrorCode::kUsage,
                fmt::format("{} pointers for {} arguments", pointers.size(), program_->arguments.size()));
  }
  try {
    std::vector<std::vector<std::byte>> memory;
    for (const Intermediate& i : program_->intermediates) memory.emplace_back(i.elements * dtype_size(i.dtype));
    for (const Step& step : program_->steps) {
      std::array<Base, 4> base;
      for (std::size_t a = 0; a <= step.inputs; ++a) {
        const Access& access = step.access[a];
        base[a].bytes =
            access.is_argument ? static_cast<std::byte*>(pointers[access.slot]) : memory[access.slot].data();
      }
      step.code == OpCode::kMatmul ? run_matmul(step, base) : run_pointwise(step, base);
    }
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kTooLarge, "no memory for the intermediates of a kernel");
  }
  return {};
}

}  // namespace kerntrail::spyre
