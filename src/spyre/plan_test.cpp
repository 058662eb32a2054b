#include "spyre/plan.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spyre/bundle.h"
#include "spyre/superdsc.h"
#include "spyre/superdsc_model.h"
#include "spyre/test_specs.h"
#include "spyre/validate.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using testing::contiguous_index;
using testing::pointwise;
using testing::Sizes;
using testing::tensor;

std::vector<std::string> codes(const std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> out;
  for (const Diagnostic& d : diagnostics) out.push_back(d.code);
  return out;
}

// The reference model's five operations: two linear layers with a relu between.
std::vector<OpSpec> mlp(std::int64_t batch, std::int64_t in, std::int64_t hidden, std::int64_t out,
                        DType dtype = DType::kFloat16) {
  const auto rows = [&](std::string name, std::int64_t index, std::int64_t width) {
    return tensor(std::move(name), index, {batch, width}, contiguous_index({batch, width}), dtype);
  };
  const auto bias = [&](std::string name, std::int64_t index, std::int64_t width) {
    return tensor(std::move(name), index, {width}, width == 1 ? "0" : "c1", dtype);
  };
  return {
      testing::matmul(batch, hidden, in, rows("x", 0, in), "w1", 1, true, rows("buf0", -1, hidden), dtype),
      pointwise("add", {batch, hidden}, {bias("b1", 2, hidden), rows("buf0", -1, hidden), rows("buf1", -1, hidden)}),
      pointwise("relufwd", {batch, hidden}, {rows("buf1", -1, hidden), rows("buf2", -1, hidden)}),
      testing::matmul(batch, out, hidden, rows("buf2", -1, hidden), "w2", 3, true, rows("buf3", -1, out), dtype),
      pointwise("add", {batch, out}, {bias("b2", 4, out), rows("buf3", -1, out), rows("buf4", 5, out)})};
}

TEST(PlanBundle, TheReferenceModel) {
  std::vector<OpSpec> specs = mlp(2, 128, 256, 128);
  std::vector<Diagnostic> diagnostics;
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
  EXPECT_EQ(codes(diagnostics), (std::vector<std::string>{"laid-out-at-load", "laid-out-at-load"}));
  // The pool takes the first segment.
  EXPECT_EQ(specs[0].args[0].base, kSegmentBytes);
  EXPECT_EQ(specs[4].args[2].base, 6 * kSegmentBytes);
  EXPECT_EQ(specs[0].args[1].layout, (DeviceLayout{{4, 128, 64}, {64 * 128, 1, 128}}));
  EXPECT_EQ(specs[0].args[2].memory, Memory::kPool);
  // buf0 4 sticks x 2 rows x 128 bytes; buf1 behind it, buf2 in its place again.
  EXPECT_EQ(specs[0].args[2].base, 0);
  EXPECT_EQ(specs[1].args[2].base, 1024);
  EXPECT_EQ(specs[2].args[1].base, 0);
  EXPECT_EQ(specs[0].iteration_space[0].split, 2);
  EXPECT_EQ(specs[0].iteration_space[1].split, 4);
  EXPECT_EQ(specs[0].iteration_space[2].split, 2);
  // Ranks are made equal.
  EXPECT_EQ(specs[1].args[0].layout.device_size, (Sizes{1, 4, 64}));
  EXPECT_EQ(specs[1].args[0].device_coordinates, (std::vector<std::string>{"0", "floor(c1/64)", "Mod(c1, 64)"}));
}

TEST(PlanBundle, PlanningAgainChangesNothing) {
  std::vector<OpSpec> specs = mlp(3, 100, 65, 1);
  std::vector<Diagnostic> first;
  ASSERT_TRUE(plan_bundle(specs, {}, first));
  std::vector<OpSpec> again = parse_op_specs(print_op_specs(specs)).value();
  std::vector<Diagnostic> second;
  ASSERT_TRUE(plan_bundle(again, {}, second));
  EXPECT_EQ(again, specs);
  EXPECT_EQ(second, first);
}

TEST(PlanBundle, NumbersSegmentsOn) {
  std::vector<TensorArg> args;
  for (int i = 0; i < 8; ++i) args.push_back(tensor("t" + std::to_string(i), i, {4, 64}, "64*c0 + c1"));
  std::vector<OpSpec> specs{pointwise("where3", {4, 64}, args)};
  std::vector<Diagnostic> diagnostics;
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
  EXPECT_EQ(codes(diagnostics), std::vector<std::string>{"segments-numbered-on"});
  EXPECT_EQ(specs[0].args[7].base, 7 * kSegmentBytes);
  specs[0].args.pop_back();
  specs[0].args.back().is_input = false;
  diagnostics.clear();
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
  EXPECT_TRUE(diagnostics.empty());
}

TEST(PlanBundle, PadsTheRowsOfAWeightAtLoad) {
  std::vector<OpSpec> specs = mlp(3, 100, 64, 64);
  std::vector<Diagnostic> diagnostics;
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
  EXPECT_EQ(codes(diagnostics), (std::vector<std::string>{"laid-out-at-load", "laid-out-at-load", "padded-at-load"}));
  EXPECT_EQ(specs[0].args[1].layout.device_size, (Sizes{1, 128, 64}));

  // A product of two tensors the bundle made itself.
  const TensorArg a = tensor("a", 0, {4, 100}, "100*c0 + c1");
  const TensorArg b = tensor("b", 1, {100, 64}, "64*c0 + c1");
  specs = {pointwise("neg", {100, 64}, {b, tensor("buf0", -1, {100, 64}, "64*c0 + c1")}),
           testing::matmul(4, 64, 100, a, "buf0", -1, false, tensor("buf1", 2, {4, 64}, "64*c0 + c1"))};
  diagnostics.clear();
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
  EXPECT_EQ(codes(diagnostics), std::vector<std::string>{"unwritten-padding"});
}

ErrorCode plan_error(std::vector<OpSpec> specs, const EmitOptions& options = {}) {
  const std::vector<OpSpec> before = specs;
  std::vector<Diagnostic> diagnostics;
  const auto result = plan_bundle(specs, options, diagnostics);
  EXPECT_FALSE(result);
  EXPECT_EQ(specs, before);
  EXPECT_TRUE(diagnostics.empty());
  return result ? ErrorCode::kUsage : result.error().code;
}

// A restickify reads W [N, K] with k in the stick and leaves it with n there, as the product wants it.
std::vector<OpSpec> restickified_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  const Sizes size{n, k};
  const TensorArg w = tensor("w", 1, size, contiguous_index(size));
  const TensorArg turned = tensor("buf0", -1, size, contiguous_index(size));
  const TensorArg x = tensor("x", 0, {m, k}, contiguous_index({m, k}));
  return {pointwise("ReStickifyOpHBM", size, {w, turned}),
          testing::matmul(m, n, k, x, "buf0", -1, true, tensor("buf1", 2, {m, n}, contiguous_index({m, n})))};
}

TEST(PlanBundle, ARestickifyIsLaidOutForItsReaders) {
  std::vector<OpSpec> specs = restickified_product(2, 256, 128);
  std::vector<Diagnostic> diagnostics;
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
  EXPECT_TRUE(diagnostics.empty());  // nothing is laid out at load
  const OpSpec& turn = specs[0];
  EXPECT_EQ(turn.args[0].layout, (DeviceLayout{{2, 256, 64}, {64, 128, 1}}));
  EXPECT_EQ(turn.args[1].layout, (DeviceLayout{{4, 128, 64}, {64 * 128, 1, 128}}));
  EXPECT_EQ(turn.args[0].device_coordinates.back(), "Mod(c1, 64)");
  EXPECT_EQ(turn.args[1].device_coordinates.back(), "Mod(c0, 64)");
  EXPECT_EQ(specs[1].args[1].layout, turn.args[1].layout);
  for (const OpSpec& spec : specs) {
    const auto json = superdsc_json(spec, 0, {});
    ASSERT_TRUE(json) << json.error().text();
    EXPECT_TRUE(validate_superdsc(Json::parse(*json).value()).empty());
  }
  // Reading the same tensor as it was, too, is fine: the input keeps its own layout.
  const TensorArg w = tensor("w", 1, {256, 128}, "128*c0 + c1");
  specs.push_back(pointwise("neg", {256, 128}, {w, tensor("buf2", 3, {256, 128}, "128*c0 + c1")}));
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
}

RC_GTEST_PROP(PlanBundle, ARestickifyOfAnySizeCanBeWritten, ()) {
  const auto size = [] { return *rc::gen::inRange<std::int64_t>(2, 200); };
  std::vector<OpSpec> specs = restickified_product(size(), size(), size());
  std::vector<Diagnostic> diagnostics;
  const auto planned = plan_bundle(specs, {}, diagnostics);
  RC_ASSERT(planned.has_value());
  for (const OpSpec& spec : specs) RC_ASSERT(superdsc_json(spec, 0, {}).has_value());
}

TEST(PlanBundle, RefusesWhatNeedsARestickify) {
  const TensorArg x = tensor("x", 0, {64, 64}, "64*c0 + c1");
  const TensorArg made = tensor("buf0", -1, {64, 64}, "64*c0 + c1");
  TensorArg transposed = made;
  transposed.index = "c0 + 64*c1";
  const TensorArg result = tensor("buf1", 1, {64, 64}, "64*c0 + c1");
  EXPECT_EQ(plan_error({pointwise("neg", {64, 64}, {x, made}), pointwise("abs", {64, 64}, {transposed, result})}),
            ErrorCode::kUnsupported);
  // An input that two operations read with different sticks.
  TensorArg x_transposed = x;
  x_transposed.index = "c0 + 64*c1";
  EXPECT_EQ(plan_error({pointwise("add", {64, 64}, {x, x_transposed, result})}), ErrorCode::kUnsupported);
  std::vector<OpSpec> alone{pointwise("abs", {64, 64}, {x_transposed, result})};
  std::vector<Diagnostic> diagnostics;
  ASSERT_TRUE(plan_bundle(alone, {}, diagnostics));
  EXPECT_EQ(codes(diagnostics), std::vector<std::string>{"laid-out-at-load"});
  EXPECT_EQ(alone[0].args[0].device_coordinates, alone[0].args[1].device_coordinates);
}

TEST(PlanBundle, RefusesContradictions) {
  const auto relu = [](TensorArg x, TensorArg y) {
    return pointwise("relufwd", {4, 64}, {std::move(x), std::move(y)});
  };
  const TensorArg x = tensor("x", 0, {4, 64}, "64*c0 + c1");
  const TensorArg y = tensor("y", 1, {4, 64}, "64*c0 + c1");
  TensorArg other = x;
  EXPECT_EQ(plan_error({relu(tensor("buf0", -1, {4, 64}, "64*c0 + c1"), y)}),
            ErrorCode::kSchema);  // read, never written
  other.arg_index = 3;
  EXPECT_EQ(plan_error({relu(x, y), relu(other, tensor("z", 2, {4, 64}, "64*c0 + c1"))}), ErrorCode::kSchema);
  EXPECT_EQ(plan_error({relu(x, tensor("y", 0, {4, 64}, "64*c0 + c1"))}), ErrorCode::kSchema);  // one number, two names
  other = x;
  other.index = "64*c0 + c7";
  EXPECT_EQ(plan_error({relu(other, y)}), ErrorCode::kReference);
  other.index = "64*c0 + c1 +";
  EXPECT_EQ(plan_error({relu(other, y)}), ErrorCode::kSyntax);
  other.index = "Mod(c1, 32)";
  EXPECT_EQ(plan_error({relu(other, y)}), ErrorCode::kUnsupported);
  other = tensor("x", 0, {256}, "64*c0 + c1");
  EXPECT_EQ(plan_error({relu(other, y)}), ErrorCode::kUnsupported);  // a view
  other = tensor("x", 0, {4, 64}, "64*c0 + c1", DType::kFloat64);
  EXPECT_EQ(plan_error({relu(other, y)}), ErrorCode::kUnsupported);
  other = x;
  other.host_stride = {64};
  EXPECT_EQ(plan_error({relu(other, y)}), ErrorCode::kSchema);
  OpSpec wrong = relu(x, y);
  wrong.args.back().is_input = true;
  EXPECT_EQ(plan_error({wrong}), ErrorCode::kSchema);
  wrong = relu(x, y);
  wrong.op = "sum";
  wrong.is_reduction = true;
  EXPECT_EQ(plan_error({wrong}), ErrorCode::kUnsupported);
}

TEST(PlanBundle, RefusesOptionsItDoesNotCarry) {
  EmitOptions options;
  options.address_mode = AddressMode::kSymbolic;
  EXPECT_EQ(plan_error(mlp(2, 64, 64, 64), options), ErrorCode::kUnsupported);
  options = {};
  options.tensor_limit = 6;
  EXPECT_EQ(plan_error(mlp(2, 64, 64, 64), options), ErrorCode::kUnsupported);
  options = {};
  options.max_cores = 0;
  EXPECT_EQ(plan_error(mlp(2, 64, 64, 64), options), ErrorCode::kUsage);
  options = {};
  options.keep_splits = true;
  std::vector<OpSpec> specs = mlp(2, 64, 64, 64);
  specs[0].iteration_space[1].split = 2;  // one stick
  EXPECT_EQ(plan_error(specs, options), ErrorCode::kSchema);
}

TEST(PlanBundle, SaysWhatHasNoFloat32Form) {
  std::vector<OpSpec> specs = mlp(2, 64, 64, 64, DType::kFloat32);
  std::vector<Diagnostic> diagnostics;
  ASSERT_TRUE(plan_bundle(specs, {}, diagnostics));
  EXPECT_EQ(std::count_if(diagnostics.begin(), diagnostics.end(),
                          [](const Diagnostic& d) { return d.code == "float32-not-listed"; }),
            2);
}

// --- Properties over random programs
// -----------------------------------------------------------------------------------

// Elements of the part of an HBM tensor that a core touches, read from the JSON alone: device offsets in elements,
// sorted.
std::vector<std::int64_t> core_region(const Json& body, std::size_t t, std::int64_t core, const std::string& op) {
  const Json& dsc = body["dscs_"].as_array()[0][op];
  const Json& node = dsc["scheduleTree_"].as_array()[t];
  const Json& labeled = dsc["labeledDs_"].as_array()[t];
  const Json& label = dsc["primaryDsInfo_"][labeled["dsType_"].as_string()];
  const std::string stick(label["stickDimOrder_"].as_array()[0].as_string());
  const std::int64_t e = label["stickSize_"].as_array()[0].as_int();
  std::map<std::string, std::int64_t> scale;
  for (std::size_t d = 0; d < labeled["scale_"].as_array().size(); ++d) {
    scale[std::string(label["layoutDimOrder_"].as_array()[d].as_string())] = labeled["scale_"].as_array()[d].as_int();
  }
  const std::string address(
      node["startAddressCoreCorelet_"]["data_"]["[" + std::to_string(core) + ", 0, 0]"].as_string());
  std::vector<std::int64_t> places{std::stoll(address) / labeled["wordLength"].as_int()};
  std::int64_t stride = e;
  for (const Json& dim_json : node["layoutDimOrder_"].as_array()) {
    const std::string dim(dim_json.as_string());
    if (scale[dim] != 1) continue;
    const std::int64_t per_core = dsc["dataStageParam_"]["0"]["ss_"][dim + "_"].as_int();
    std::int64_t extent = dsc["N_"][dim + "_"].as_int();
    const Json& gap = node["backGapCore_"][dim]["-1"];
    if (gap.is_string()) extent += std::stoll(std::string(gap.as_string()));
    std::vector<std::int64_t> next;
    for (const std::int64_t place : places) {
      for (std::int64_t i = 0; i < per_core; ++i)
        next.push_back(place + (dim == stick ? i / e * stride + i % e : i * stride));
    }
    places = std::move(next);
    stride *= dim == stick ? extent / e : extent;
  }
  std::sort(places.begin(), places.end());
  return places;
}

// The points of the loops that an index depends on; other loops stand at 0.
std::vector<Point> points_of(const OpSpec& spec, const IndexExpr& index) {
  Point start;
  for (const IterDim& dim : spec.iteration_space) start[dim.symbol] = 0;
  std::vector<Point> points{start};
  for (const std::string& name : index.symbols()) {
    const auto dim = std::find_if(spec.iteration_space.begin(), spec.iteration_space.end(),
                                  [&](const IterDim& d) { return d.symbol == name; });
    std::vector<Point> next;
    for (const Point& point : points) {
      for (std::int64_t i = 0; i < dim->extent; ++i) {
        next.push_back(point);
        next.back()[name] = i;
      }
    }
    points = std::move(next);
  }
  return points;
}

// Every point: the host element its index names is the one its device coordinates name, and some core touches it.
void check_points(const OpSpec& spec, const Json& body) {
  for (std::size_t t = 0; t < spec.args.size(); ++t) {
    const TensorArg& arg = spec.args[t];
    const IndexExpr index = IndexExpr::parse(arg.index).value();
    std::vector<IndexExpr> coordinates;
    for (const std::string& text : arg.device_coordinates) coordinates.push_back(IndexExpr::parse(text).value());
    std::vector<std::int64_t> touched;
    for (std::int64_t core = 0; core < body["numCoresUsed_"].as_int(); ++core) {
      const auto region = core_region(body, t, core, spec.op);
      touched.insert(touched.end(), region.begin(), region.end());
    }
    std::sort(touched.begin(), touched.end());
    const std::int64_t base = arg.base / static_cast<std::int64_t>(device_element_size(arg.dtype));
    for (const Point& point : points_of(spec, index)) {
      Sizes at;
      for (const IndexExpr& expression : coordinates) at.push_back(expression.evaluate(point).value());
      RC_ASSERT(host_offset(arg.layout, at).value() == index.evaluate(point).value());
      RC_ASSERT(std::binary_search(touched.begin(), touched.end(), base + device_offset(arg.layout, at).value()));
    }
  }
}

// Cores that differ in an output slice write disjoint parts, which together fill the tensor where it has no gap.
void check_output(const OpSpec& spec, const Json& body) {
  const std::size_t t = spec.args.size() - 1;
  const bool adds_parts = body["numWkSlicesPerDim_"]["in"].as_int(1) > 1;
  std::vector<std::int64_t> all;
  for (std::int64_t core = 0; core < body["numCoresUsed_"].as_int(); ++core) {
    if (adds_parts && body["coreIdToWkSlice_"][std::to_string(core)]["in"].as_int() != 0) continue;
    const auto region = core_region(body, t, core, spec.op);
    all.insert(all.end(), region.begin(), region.end());
  }
  std::sort(all.begin(), all.end());
  RC_ASSERT(std::adjacent_find(all.begin(), all.end()) == all.end());
  const auto bytes = static_cast<std::int64_t>(all.size() * device_element_size(spec.args[t].dtype));
  const bool has_gap = body["dscs_"].as_array()[0][spec.op]["scheduleTree_"].as_array()[t]["backGapCore_"].is_object();
  const std::int64_t whole = layout_bytes(spec.args[t].layout).value();
  RC_ASSERT(bytes == whole || (has_gap && bytes < whole));
}

void check_bundle(std::vector<OpSpec> specs, const EmitOptions& options) {
  std::vector<Diagnostic> diagnostics;
  const auto files = render_bundle(specs, options, diagnostics);
  if (!files) RC_FAIL(files.error().text());
  RC_ASSERT(plan_bundle(specs, options, diagnostics).has_value());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Json document = Json::parse((*files)[i].content).value();
    for (const Diagnostic& d : validate_superdsc(document)) RC_FAIL(d.code + " " + d.where + ": " + d.message);
    const Json& body = document.as_object()[0].second;
    RC_ASSERT(body["numCoresUsed_"].as_int() <= options.max_cores);
    check_points(specs[i], body);
    check_output(specs[i], body);
  }
}

DType any_dtype() { return *rc::gen::element(DType::kFloat16, DType::kFloat32); }
std::int64_t any_width() { return *rc::gen::element<std::int64_t>(1, 2, 10, 32, 33, 64, 65, 100, 128, 192); }

EmitOptions any_options() {
  EmitOptions options;
  options.max_cores = *rc::gen::element<std::int64_t>(1, 2, 6, 32);
  return options;
}

RC_GTEST_PROP(PlanBundle, PointwiseProgramsKeepEveryElement, ()) {
  const std::size_t rank = *rc::gen::inRange<std::size_t>(0, 5);
  Sizes size;
  for (std::size_t i = 0; i < rank; ++i)
    size.push_back(i + 1 == rank ? any_width() : *rc::gen::inRange<std::int64_t>(1, 5));
  const DType dtype = any_dtype();
  const auto full = [&](std::string name, std::int64_t index) {
    return tensor(std::move(name), index, size, contiguous_index(size), dtype);
  };
  // An operand that lacks leading dims, has unit dims, or is one element; read through the loops of the full shape.
  const auto broadcast = [&](std::string name, std::int64_t index) {
    Sizes part(size.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(rank) + 1), size.end());
    for (std::int64_t& extent : part) {
      if (*rc::gen::inRange(0, 3) == 0) extent = 1;
    }
    const Sizes stride = contiguous_strides(part);
    std::string text = "0";
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] > 1) text += " + " + std::to_string(stride[i]) + "*" + testing::symbol(rank - part.size() + i);
    }
    return tensor(std::move(name), index, part, text, dtype);
  };
  check_bundle({pointwise("add", size, {full("x", 0), broadcast("b", 1), full("buf0", -1)}),
                pointwise("mul", size, {broadcast("c", 2), full("buf0", -1), full("buf1", -1)}),
                pointwise("relufwd", size, {full("buf1", -1), full("buf2", 3)})},
               any_options());
}

RC_GTEST_PROP(PlanBundle, ModelsOfAnySizeKeepEveryElement, ()) {
  const std::int64_t in = *rc::gen::element<std::int64_t>(2, 33, 64, 70);
  check_bundle(mlp(*rc::gen::inRange<std::int64_t>(1, 4), in, *rc::gen::element<std::int64_t>(2, 32, 65),
                   *rc::gen::element<std::int64_t>(1, 3, 70), any_dtype()),
               any_options());
}

RC_GTEST_PROP(PlanBundle, ConversionsKeepEveryElement, ()) {
  const Sizes size{*rc::gen::inRange<std::int64_t>(1, 5), any_width()};
  const std::string index = contiguous_index(size);
  check_bundle(
      {pointwise("fp32todl16", size, {tensor("x", 0, size, index, DType::kFloat32), tensor("buf0", -1, size, index)}),
       pointwise("dl16tofp32", size,
                 {tensor("buf0", -1, size, index), tensor("buf1", 1, size, index, DType::kFloat32)})},
      any_options());
}

RC_GTEST_PROP(PlanBundle, MasksBesideFloat32KeepEveryElement, ()) {
  const Sizes size{*rc::gen::inRange<std::int64_t>(1, 5), any_width()};
  const std::string index = contiguous_index(size);
  const auto at = [&](std::string name, std::int64_t number, DType dtype) {
    return tensor(std::move(name), number, size, index, dtype);
  };
  check_bundle({pointwise("lesserthan", size,
                          {at("x", 0, DType::kFloat32), at("y", 1, DType::kFloat32), at("buf0", -1, DType::kBool)}),
                pointwise("where3", size,
                          {at("buf0", -1, DType::kBool), at("x", 0, DType::kFloat32), at("y", 1, DType::kFloat32),
                           at("buf1", 2, DType::kFloat32)})},
               any_options());
}

RC_GTEST_PROP(PlanBundle, AnyLegalSplitIsKept, ()) {
  const std::int64_t m = *rc::gen::inRange<std::int64_t>(1, 9);
  std::vector<OpSpec> specs{
      testing::matmul(m, 96, 64, tensor("x", 0, {m, 64}, "", DType::kFloat32), "w", 1, *rc::gen::arbitrary<bool>(),
                      tensor("buf0", 2, {m, 96}, contiguous_index({m, 96}), DType::kFloat32), DType::kFloat32)};
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= m; ++d) {
    if (m % d == 0) divisors.push_back(d);
  }
  const Sizes splits{*rc::gen::elementOf(divisors), *rc::gen::element<std::int64_t>(1, 3),
                     *rc::gen::element<std::int64_t>(1, 2)};
  for (std::size_t d = 0; d < 3; ++d) specs[0].iteration_space[d].split = splits[d];
  EmitOptions options;
  options.keep_splits = true;
  options.max_cores = 64;
  check_bundle(specs, options);
  std::vector<Diagnostic> diagnostics;
  const auto files = render_bundle(specs, options, diagnostics).value();
  const Json document = Json::parse(files[0].content).value();
  RC_ASSERT(document.as_object()[0].second["numCoresUsed_"].as_int() == splits[0] * splits[1] * splits[2]);
}

RC_GTEST_PROP(PlanBundle, TenantsOfThePoolNeverOverlap, ()) {
  // A random chain: every operation reads two of the tensors made so far.
  const int n = *rc::gen::inRange(2, 12);
  std::vector<OpSpec> specs;
  std::vector<TensorArg> made{tensor("x", 0, {4, 64}, "64*c0 + c1")};
  for (int i = 0; i < n; ++i) {
    TensorArg out = tensor("buf" + std::to_string(i), i + 1 == n ? 1 : -1, {4, 64}, "64*c0 + c1");
    specs.push_back(pointwise("add", {4, 64}, {*rc::gen::elementOf(made), *rc::gen::elementOf(made), out}));
    made.push_back(out);
  }
  std::vector<Diagnostic> diagnostics;
  RC_ASSERT(plan_bundle(specs, {}, diagnostics).has_value());
  std::map<std::string, std::pair<std::size_t, std::size_t>> life;
  std::map<std::string, std::int64_t> offset;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const TensorArg& arg : specs[i].args) {
      if (arg.arg_index >= 0) continue;
      RC_ASSERT(arg.memory == Memory::kPool && arg.base % kStickBytes == 0);
      life.emplace(arg.name, std::make_pair(i, i)).first->second.second = i;
      RC_ASSERT(offset.emplace(arg.name, arg.base).first->second == arg.base);
    }
  }
  for (const auto& [a, a_life] : life) {
    for (const auto& [b, b_life] : life) {
      const bool together = a_life.first <= b_life.second && b_life.first <= a_life.second;
      if (a < b && together) RC_ASSERT(offset[a] + 512 <= offset[b] || offset[b] + 512 <= offset[a]);
    }
  }
}

}  // namespace
}  // namespace kerntrail::spyre
