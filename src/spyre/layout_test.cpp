#include "spyre/layout.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spyre/test_specs.h"

namespace kerntrail::spyre {
namespace {

using testing::Sizes;

DeviceLayout layout_of(const Sizes& size, DType dtype = DType::kFloat16, const std::vector<int>& order = {}) {
  return default_layout(size, contiguous_strides(size), dtype, order).value();
}

TEST(DefaultLayout, MatchesTheTable) {
  EXPECT_EQ(layout_of({}), (DeviceLayout{{1, 64}, {-1, -1}}));
  EXPECT_EQ(layout_of({100}), (DeviceLayout{{2, 64}, {64, 1}}));
  EXPECT_EQ(layout_of({48, 130}), (DeviceLayout{{3, 48, 64}, {64, 130, 1}}));
  EXPECT_EQ(layout_of({7, 33, 200}), (DeviceLayout{{33, 4, 7, 64}, {200, 64, 6600, 1}}));
  EXPECT_EQ(layout_of({2, 3, 5, 70}), (DeviceLayout{{3, 5, 2, 2, 64}, {350, 70, 64, 1050, 1}}));
}

TEST(DefaultLayout, FollowsTypeOrderAndSparseness) {
  EXPECT_EQ(layout_of({48, 130}, DType::kFloat32), (DeviceLayout{{5, 48, 32}, {32, 130, 1}}));
  EXPECT_EQ(layout_of({256, 128}, DType::kFloat16, {1, 0}), (DeviceLayout{{4, 128, 64}, {64 * 128, 1, 128}}));
  EXPECT_EQ(layout_of({10}, DType::kFloat16, {0, kSparse}), (DeviceLayout{{1, 10, 64}, {-1, 1, -1}}));
  EXPECT_EQ(layout_of({1, 128}), (DeviceLayout{{2, 1, 64}, {64, -1, 1}}));
}

TEST(DefaultLayout, ReservesPaddedRows) {
  const Sizes size{100, 192};
  EXPECT_EQ(default_layout(size, contiguous_strides(size), DType::kFloat16, {}, {128, 192}).value(),
            (DeviceLayout{{3, 128, 64}, {64, 192, 1}}));
}

TEST(DefaultLayout, RefusesWhatHasNoLayout) {
  EXPECT_EQ(default_layout({0, 3}, {3, 1}, DType::kFloat16).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(default_layout({3}, {1}, DType::kFloat64).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(default_layout({3}, {1, 1}, DType::kFloat16).error().code, ErrorCode::kSchema);
  EXPECT_EQ(default_layout({3, 3}, {3, 1}, DType::kFloat16, {0, 0}).error().code, ErrorCode::kSchema);
  EXPECT_EQ(default_layout({2, 2, 2, 2, 2, 2}, {32, 16, 8, 4, 2, 1}, DType::kFloat16).error().code,
            ErrorCode::kUnsupported);
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(default_layout({huge, huge}, {huge, 1}, DType::kFloat16).error().code, ErrorCode::kTooLarge);
}

TEST(LayoutBytes, MatchesTheVectors) {
  EXPECT_EQ(layout_bytes(layout_of({7, 33, 200})).value(), 118272);
  EXPECT_EQ(layout_bytes(layout_of({48, 130})).value(), 18432);
}

using Texts = std::vector<std::string>;

TEST(ComputeCoordinates, MatchesTheVectors) {
  const DeviceLayout layout = layout_of({48, 130});
  EXPECT_EQ(compute_coordinates(parse_linear("130*a + b").value(), {{"a", 48, 1}, {"b", 130, 1}}, layout).value(),
            (Texts{"floor(b/64)", "a", "Mod(b, 64)"}));
  EXPECT_EQ(compute_coordinates(parse_linear("a + 130*b").value(), {{"a", 130, 1}, {"b", 48, 1}}, layout).value(),
            (Texts{"floor(a/64)", "b", "Mod(a, 64)"}));
  EXPECT_EQ(
      compute_coordinates(parse_linear("130*a + b + 2080").value(), {{"a", 32, 1}, {"b", 130, 1}}, layout).value(),
      (Texts{"floor(b/64)", "a + 16", "Mod(b, 64)"}));
}

TEST(ComputeCoordinates, RefusesWhatLeavesTheDims) {
  const DeviceLayout layout = layout_of({48, 130});
  const auto code = [&](std::string_view index, std::vector<IterDim> space) {
    return compute_coordinates(parse_linear(index).value(), space, layout).error().code;
  };
  EXPECT_EQ(code("130*a", {{"a", 49, 1}}), ErrorCode::kUnsupported);
  EXPECT_EQ(code("-a", {{"a", 4, 1}}), ErrorCode::kUnsupported);
  EXPECT_EQ(code("a - 1", {{"a", 4, 1}}), ErrorCode::kUnsupported);
  EXPECT_EQ(code("a", {{"a", 48 * 130, 1}}), ErrorCode::kUnsupported);  // rows of 130 are no whole number of sticks
  EXPECT_EQ(code("a + 60", {{"a", 10, 1}}), ErrorCode::kUnsupported);   // carries into the next stick
  EXPECT_EQ(code("a", {{"b", 10, 1}}), ErrorCode::kReference);
}

TEST(ComputeCoordinates, SplitsOneLoopOverSeveralDims) {
  const DeviceLayout layout = layout_of({6, 128});
  EXPECT_EQ(compute_coordinates(parse_linear("a").value(), {{"a", 768, 1}}, layout).value(),
            (Texts{"Mod(floor(a/64), 2)", "floor(a/128)", "Mod(a, 64)"}));
}

// Visits every point of a space.
template <class F>
void for_each_point(const std::vector<IterDim>& space, const F& visit) {
  Point point;
  for (const IterDim& dim : space) point[dim.symbol] = 0;
  while (true) {
    visit(point);
    std::size_t d = 0;
    while (d < space.size() && ++point[space[d].symbol] == space[d].extent) point[space[d++].symbol] = 0;
    if (d == space.size()) return;
  }
}

void check_every_point(const std::string& index, const std::vector<IterDim>& space, const DeviceLayout& layout,
                       bool injective) {
  const auto coordinates = compute_coordinates(parse_linear(index).value(), space, layout);
  RC_ASSERT(coordinates.has_value());
  std::vector<IndexExpr> expressions;
  for (const std::string& text : *coordinates) expressions.push_back(IndexExpr::parse(text).value());
  const IndexExpr expected = IndexExpr::parse(index).value();
  std::set<std::int64_t> places;
  std::size_t points = 0;
  for_each_point(space, [&](const Point& point) {
    Sizes values;
    for (const IndexExpr& expression : expressions) values.push_back(expression.evaluate(point).value());
    RC_ASSERT(host_offset(layout, values).value() == expected.evaluate(point).value());
    places.insert(device_offset(layout, values).value());
    ++points;
  });
  if (injective) RC_ASSERT(places.size() == points);
}

RC_GTEST_PROP(ComputeCoordinates, KeepTheHostOffsetOfEveryPoint, ()) {
  const std::size_t rank = *rc::gen::inRange<std::size_t>(0, 5);
  Sizes size;
  for (std::size_t i = 0; i < rank; ++i) {
    size.push_back(i + 1 == rank ? *rc::gen::element<std::int64_t>(1, 2, 31, 32, 33, 64, 65, 128, 130)
                                 : *rc::gen::inRange<std::int64_t>(1, 6));
  }
  // The host may store its dimensions in any order.
  Sizes storage(rank);
  std::iota(storage.begin(), storage.end(), 0);
  for (std::size_t i = rank; i-- > 1;) std::swap(storage[i], storage[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  Sizes stride(rank, 1);
  std::int64_t step = 1;
  for (std::size_t i = rank; i-- > 0;) {
    const auto dim = static_cast<std::size_t>(storage[i]);
    stride[dim] = step;
    step *= size[dim];
  }
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = rank; i-- > 1;) std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  if (rank > 0 && *rc::gen::inRange(0, 4) == 0) order.push_back(kSparse);
  const DType dtype = *rc::gen::element(DType::kFloat16, DType::kFloat32, DType::kInt8);
  const DeviceLayout layout = default_layout(size, stride, dtype, order).value();
  std::string index;
  for (std::size_t i = 0; i < rank; ++i) {
    if (size[i] > 1) index += (index.empty() ? "" : " + ") + std::to_string(stride[i]) + "*" + testing::symbol(i);
  }
  check_every_point(index.empty() ? "0" : index, testing::loops(size), layout, true);
}

RC_GTEST_PROP(ComputeCoordinates, KeepTheHostOffsetOfSlicesAndBroadcasts, ()) {
  const std::int64_t rows = *rc::gen::inRange<std::int64_t>(1, 9);
  const std::int64_t columns = *rc::gen::inRange<std::int64_t>(2, 200);
  const std::int64_t first = *rc::gen::inRange<std::int64_t>(0, rows);
  const DeviceLayout layout = layout_of({rows, columns});
  const std::string index = std::to_string(columns) + "*c0 + c1 + " + std::to_string(first * columns);
  const std::vector<IterDim> space = testing::loops({rows - first, columns, 3});
  check_every_point(index, space, layout, false);
}

}  // namespace
}  // namespace kerntrail::spyre
