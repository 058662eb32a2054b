#include "spyre/executor.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace kerntrail::spyre {
namespace {

TensorArg tensor(std::string name, std::int64_t arg_index, DType dtype, std::vector<std::int64_t> size,
                 std::vector<std::int64_t> stride, std::string index, bool is_input = true) {
  TensorArg arg;
  arg.name = std::move(name);
  arg.arg_index = arg_index;
  arg.dtype = dtype;
  arg.host_size = std::move(size);
  arg.host_stride = std::move(stride);
  arg.index = std::move(index);
  arg.is_input = is_input;
  return arg;
}

TensorArg vector_arg(std::string name, std::int64_t arg_index, DType dtype, std::int64_t n, bool is_input = true) {
  return tensor(std::move(name), arg_index, dtype, {n}, {1}, "c0", is_input);
}

OpSpec pointwise(std::string op, std::int64_t n, std::vector<TensorArg> args) {
  OpSpec spec;
  spec.op = std::move(op);
  spec.iteration_space = {{"c0", n, 1}};
  spec.args = std::move(args);
  return spec;
}

std::vector<float> run_unary(const std::string& op, std::vector<float> in) {
  const auto n = static_cast<std::int64_t>(in.size());
  std::vector<float> out(in.size(), -77.0F);
  const auto kernel = HostKernel::prepare(
      {pointwise(op, n, {vector_arg("a", 0, DType::kFloat32, n), vector_arg("o", 1, DType::kFloat32, n, false)})});
  EXPECT_TRUE(kernel) << kernel.error().text();
  if (!kernel) return out;
  EXPECT_TRUE(kernel->run({in.data(), out.data()}));
  return out;
}

TEST(Half, EveryHalfSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE((half & 0x7c00U) == 0x7c00U && (half & 0x3ffU) != 0);
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      ASSERT_EQ(float_to_half(value), half) << bits;
      const int exponent = (half >> 10) & 31;
      const double fraction = half & 0x3ffU;
      const double size = exponent == 31  ? std::numeric_limits<double>::infinity()
                          : exponent == 0 ? std::ldexp(fraction, -24)
                                          : std::ldexp(1024 + fraction, exponent - 25);
      ASSERT_EQ(static_cast<double>(value), (half & 0x8000U) != 0 ? -size : size);
    }
  }
}

// Nearest even, against a search for the nearest half in double precision.
RC_GTEST_PROP(Half, RoundsToNearestEven, ()) {
  const float value = std::bit_cast<float>(*rc::gen::arbitrary<std::uint32_t>());
  RC_PRE(!std::isnan(value));
  const std::uint16_t half = float_to_half(value);
  if (std::fabs(value) >= 65520.0F) {
    RC_ASSERT(half == (std::signbit(value) ? 0xfc00U : 0x7c00U));
    return;
  }
  const double error = std::fabs(static_cast<double>(half_to_float(half)) - value);
  for (const int step : {-1, 1}) {
    const auto other = static_cast<std::uint16_t>(half + step);
    const float neighbour = half_to_float(other);
    if (!std::isfinite(neighbour)) continue;
    const double distance = std::fabs(static_cast<double>(neighbour) - value);
    RC_ASSERT(error < distance || (error == distance && (half & 1U) == 0) || half_to_float(half) == neighbour);
  }
}

TEST(Executor, UnaryOperations) {
  const std::vector<float> in{-2.5F, -0.5F, 0.25F, 1.0F, 4.0F};
  const auto check = [&](const std::string& op, auto reference) {
    const auto out = run_unary(op, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double expected = reference(static_cast<double>(in[i]));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(out[i])) << op;
      } else {
        EXPECT_NEAR(out[i], expected, 1e-6 * (1 + std::fabs(expected))) << op << " " << in[i];
      }
    }
  };
  check("identity", [](double x) { return x; });
  check("ReStickifyOpHBM", [](double x) { return x; });
  check("abs", [](double x) { return std::fabs(x); });
  check("exp", [](double x) { return std::exp(x); });
  check("log", [](double x) { return std::log(x); });
  check("neg", [](double x) { return -x; });
  check("sqrt", [](double x) { return std::sqrt(x); });
  check("rsqrt", [](double x) { return 1 / std::sqrt(x); });
  check("tanh", [](double x) { return std::tanh(x); });
  check("sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); });
  check("floor", [](double x) { return std::floor(x); });
  check("reciprocal", [](double x) { return 1 / x; });
  check("relufwd", [](double x) { return std::max(x, 0.0); });
  check("gelufwd", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
  check("silu", [](double x) { return x / (1 + std::exp(-x)); });
}

TEST(Executor, NaNPassesThroughReluMaximumAndMinimum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(run_unary("relufwd", {nan})[0]));
  for (const char* op : {"maximum", "minimum"}) {
    std::vector<float> a{nan, 1.0F, 1.0F}, b{1.0F, nan, 2.0F}, out(3);
    const auto kernel =
        HostKernel::prepare({pointwise(op, 3,
                                       {vector_arg("a", 0, DType::kFloat32, 3), vector_arg("b", 1, DType::kFloat32, 3),
                                        vector_arg("o", 2, DType::kFloat32, 3, false)})});
    ASSERT_TRUE(kernel);
    ASSERT_TRUE(kernel->run({a.data(), b.data(), out.data()}));
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
    EXPECT_EQ(out[2], std::string_view(op) == "maximum" ? 2.0F : 1.0F);
  }
}

TEST(Executor, ComparisonsFeedAChoice) {
  std::vector<float> a{1, 2, 3}, b{3, 2, 1}, out(3);
  const auto kernel = HostKernel::prepare(
      {pointwise("lesserthan", 3,
                 {vector_arg("a", 0, DType::kFloat32, 3), vector_arg("b", 1, DType::kFloat32, 3),
                  vector_arg("less", -1, DType::kBool, 3, false)}),
       pointwise("where3", 3,
                 {vector_arg("less", -1, DType::kBool, 3), vector_arg("a", 0, DType::kFloat32, 3),
                  vector_arg("b", 1, DType::kFloat32, 3), vector_arg("o", 2, DType::kFloat32, 3, false)})});
  ASSERT_TRUE(kernel) << kernel.error().text();
  ASSERT_EQ(kernel->arguments().size(), 3U);
  EXPECT_TRUE(kernel->arguments()[2].written);
  EXPECT_FALSE(kernel->arguments()[0].written);
  ASSERT_TRUE(kernel->run({a.data(), b.data(), out.data()}));
  EXPECT_EQ(out, (std::vector<float>{1, 2, 1}));
}

TEST(Executor, ScalarsAndBiasesAreBroadcast) {
  std::vector<float> x{1, 2, 3, 4, 5, 6}, bias{10, 20, 30}, two{2}, out(6);
  OpSpec add;
  add.op = "add";
  add.iteration_space = {{"c0", 2, 1}, {"c1", 3, 1}};
  add.args = {tensor("x", 0, DType::kFloat32, {2, 3}, {3, 1}, "3*c0 + c1"),
              tensor("b", 1, DType::kFloat32, {3}, {1}, "c1"),
              tensor("t", -1, DType::kFloat32, {2, 3}, {3, 1}, "3*c0 + c1", false)};
  OpSpec mul = add;
  mul.op = "mul";
  mul.args = {add.args[2], tensor("two", 2, DType::kFloat32, {}, {}, "0"),
              tensor("o", 3, DType::kFloat32, {2, 3}, {1, 2}, "c0 + 2*c1", false)};  // written transposed
  mul.args[0].is_input = true;
  const auto kernel = HostKernel::prepare({add, mul});
  ASSERT_TRUE(kernel) << kernel.error().text();
  ASSERT_TRUE(kernel->run({x.data(), bias.data(), two.data(), out.data()}));
  EXPECT_EQ(out, (std::vector<float>{22, 28, 44, 50, 66, 72}));
}

// Any shape, either layout of the right side, both types, against sums in double precision.
RC_GTEST_PROP(Executor, MatmulAgreesWithDoublePrecision, ()) {
  const auto m = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto n = *rc::gen::inRange<std::int64_t>(1, 30);
  const auto k = *rc::gen::inRange<std::int64_t>(1, 40);
  const bool transposed = *rc::gen::arbitrary<bool>();
  const bool half = *rc::gen::arbitrary<bool>();
  const DType dtype = half ? DType::kFloat16 : DType::kFloat32;
  const auto values = [&](std::int64_t count) {
    const auto raw = *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(count), rc::gen::inRange(-8, 9));
    return std::vector<float>(raw.begin(), raw.end());  // exact in half precision, as are the sums below 2048 * 64
  };
  const auto x = values(m * k), w = values(k * n);
  OpSpec spec;
  spec.op = "batchmatmul";
  spec.is_reduction = true;
  spec.iteration_space = {{"c0", m, 1}, {"c1", n, 1}, {"c2", k, 1}};
  const std::string sk = std::to_string(k), sn = std::to_string(n);
  spec.args = {tensor("x", 0, dtype, {m, k}, {k, 1}, sk + "*c0 + c2"),
               transposed ? tensor("w", 1, dtype, {n, k}, {k, 1}, sk + "*c1 + c2")
                          : tensor("w", 1, dtype, {k, n}, {n, 1}, sn + "*c2 + c1"),
               tensor("o", 2, dtype, {m, n}, {n, 1}, sn + "*c0 + c1", false)};
  const auto kernel = HostKernel::prepare({spec});
  RC_ASSERT(kernel.has_value());
  std::vector<float> out(static_cast<std::size_t>(m * n));
  if (half) {
    std::vector<std::uint16_t> hx, hw, ho(out.size());
    for (const float v : x) hx.push_back(float_to_half(v));
    for (const float v : w) hw.push_back(float_to_half(v));
    RC_ASSERT(kernel->run({hx.data(), hw.data(), ho.data()}).has_value());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = half_to_float(ho[i]);
  } else {
    auto fx = x, fw = w;
    RC_ASSERT(kernel->run({fx.data(), fw.data(), out.data()}).has_value());
  }
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += static_cast<double>(x[static_cast<std::size_t>(i * k + l)]) *
               static_cast<double>(w[static_cast<std::size_t>(transposed ? j * k + l : l * n + j)]);
      }
      const float expected = half ? half_to_float(float_to_half(static_cast<float>(sum))) : static_cast<float>(sum);
      RC_ASSERT(out[static_cast<std::size_t>(i * n + j)] == expected);
    }
  }
}

// Rows longer than one block, joined loops and strided inputs give what an element-by-element walk gives.
RC_GTEST_PROP(Executor, StridedPointwiseAgreesWithAWalk, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 5);
  const auto columns = *rc::gen::inRange<std::int64_t>(1, 1200);
  const bool transposed = *rc::gen::arbitrary<bool>();
  const auto count = static_cast<std::size_t>(rows * columns);
  std::vector<float> a(count), b(count), out(count, -1);
  for (std::size_t i = 0; i < count; ++i) {
    a[i] = static_cast<float>(i % 251);
    b[i] = static_cast<float>(i % 13);
  }
  OpSpec spec;
  spec.op = "sub";
  spec.iteration_space = {{"c0", rows, 1}, {"c1", columns, 1}};
  const std::string row_major = std::to_string(columns) + "*c0 + c1";
  const std::string column_major = "c0 + " + std::to_string(rows) + "*c1";
  spec.args = {tensor("a", 0, DType::kFloat32, {rows, columns}, {columns, 1}, row_major),
               transposed ? tensor("b", 1, DType::kFloat32, {columns, rows}, {rows, 1}, column_major)
                          : tensor("b", 1, DType::kFloat32, {rows, columns}, {columns, 1}, row_major),
               tensor("o", 2, DType::kFloat32, {rows, columns}, {columns, 1}, row_major, false)};
  const auto kernel = HostKernel::prepare({spec});
  RC_ASSERT(kernel.has_value());
  RC_ASSERT(kernel->run({a.data(), b.data(), out.data()}).has_value());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(i * columns + j);
      RC_ASSERT(out[at] == a[at] - b[transposed ? static_cast<std::size_t>(j * rows + i) : at]);
    }
  }
}

TEST(Executor, RefusesSpecsThatWouldLeaveTheirBuffers) {
  const auto code_of = [](OpSpec spec) {
    const auto kernel = HostKernel::prepare({std::move(spec)});
    return kernel ? std::optional<ErrorCode>{} : std::optional(kernel.error().code);
  };
  const OpSpec good =
      pointwise("abs", 4, {vector_arg("a", 0, DType::kFloat32, 4), vector_arg("o", 1, DType::kFloat32, 4, false)});
  EXPECT_EQ(code_of(good), std::nullopt);
  const auto with = [&](auto change) {
    OpSpec spec = good;
    change(spec);
    return code_of(std::move(spec));
  };
  EXPECT_EQ(with([](OpSpec& s) { s.iteration_space[0].extent = 5; }), ErrorCode::kSchema);
  EXPECT_EQ(with([](OpSpec& s) { s.args[0].index = "c0 - 1"; }), ErrorCode::kSchema);
  EXPECT_EQ(with([](OpSpec& s) { s.args[0].index = "2*c0"; }), ErrorCode::kSchema);
  EXPECT_EQ(with([](OpSpec& s) { s.args[0].index = "c9"; }), ErrorCode::kReference);
  EXPECT_EQ(with([](OpSpec& s) { s.args[0].index = "Mod(c0, 2)"; }), ErrorCode::kUnsupported);
  EXPECT_EQ(with([](OpSpec& s) { s.args[0].arg_index = 7; }), ErrorCode::kSchema);  // arguments 0 and 2..6 missing
  EXPECT_EQ(with([](OpSpec& s) { s.args[0].arg_index = -1; }), ErrorCode::kReference);  // never written
  EXPECT_EQ(with([](OpSpec& s) { s.args[0].dtype = DType::kInt64; }), ErrorCode::kUnsupported);
  EXPECT_EQ(with([](OpSpec& s) { s.args[1].dtype = DType::kFloat16; }), ErrorCode::kUnsupported);
  EXPECT_EQ(with([](OpSpec& s) { s.args[0].host_stride = {}; }), ErrorCode::kSchema);
  EXPECT_EQ(with([](OpSpec& s) { s.args[0].host_size = {0}; }), ErrorCode::kUnsupported);
  EXPECT_EQ(with([](OpSpec& s) { s.args.pop_back(); }), ErrorCode::kSchema);
  EXPECT_EQ(with([](OpSpec& s) { s.is_reduction = true; }), ErrorCode::kSchema);
  EXPECT_EQ(with([](OpSpec& s) { s.op = "softplus"; }), ErrorCode::kUnsupported);
  EXPECT_EQ(with([](OpSpec& s) { s.op_info.set("constants", base::JsonObject{}); }), ErrorCode::kUnsupported);
  EXPECT_EQ(with([](OpSpec& s) { s.iteration_space[0].extent = std::numeric_limits<std::int64_t>::max(); }),
            ErrorCode::kUnsupported);
}

TEST(Executor, RunChecksItsPointers) {
  std::vector<float> a(4), o(4);
  const auto kernel = HostKernel::prepare(
      {pointwise("abs", 4, {vector_arg("a", 0, DType::kFloat32, 4), vector_arg("o", 1, DType::kFloat32, 4, false)})});
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->arguments()[0].elements, 4U);
  EXPECT_EQ(kernel->run({a.data()}).error().code, ErrorCode::kUsage);
  EXPECT_EQ(kernel->run({a.data(), nullptr}).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace kerntrail::spyre
