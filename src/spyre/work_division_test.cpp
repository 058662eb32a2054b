#include "spyre/work_division.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kerntrail::spyre {
namespace {

using Splits = std::vector<std::int64_t>;

Splits pointwise(std::int64_t rows, std::int64_t columns) {
  DivisionRequest request;
  request.dims = {{rows, true, false}, {columns, true, true}};
  return divide_work(request).value();
}

Splits matmul(std::int64_t m, std::int64_t n, std::int64_t k) {
  DivisionRequest request;
  request.dims = {{m, true, false}, {n, true, true}, {k, false, true}};
  request.is_matmul = true;
  return divide_work(request).value();
}

TEST(DivideWork, MatchesTheWorkedShapes) {
  EXPECT_EQ(pointwise(96, 640), (Splits{32, 1}));
  EXPECT_EQ(pointwise(12, 1024), (Splits{2, 16}));
  EXPECT_EQ(pointwise(5, 192), (Splits{5, 3}));
  EXPECT_EQ(pointwise(7, 64), (Splits{7, 1}));
}

TEST(DivideWork, GivesAMatmulsRestToItsReduction) {
  EXPECT_EQ(matmul(2, 256, 128), (Splits{2, 4, 2}));
  EXPECT_EQ(matmul(64, 256, 128), (Splits{32, 1, 1}));
  EXPECT_EQ(matmul(3, 64, 640), (Splits{3, 1, 10}));
}

TEST(DivideWork, LeavesOtherReductionsWhole) {
  DivisionRequest request;
  request.dims = {{3, true, false}, {640, false, true}};
  EXPECT_EQ(divide_work(request).value(), (Splits{3, 1}));
}

TEST(DivideWork, CountsPartSticks) {
  EXPECT_EQ(pointwise(1, 100), (Splits{1, 2}));
  EXPECT_EQ(pointwise(1, 1), (Splits{1, 1}));
}

TEST(DivideWork, RefusesSizesThatMakeNoSense) {
  DivisionRequest request;
  request.dims = {{0, true, false}};
  EXPECT_EQ(divide_work(request).error().code, ErrorCode::kSchema);
  request.dims = {{1, true, false}};
  request.max_cores = 0;
  EXPECT_EQ(divide_work(request).error().code, ErrorCode::kSchema);
  request.max_cores = 1;
  request.stick_elements = 0;
  EXPECT_EQ(divide_work(request).error().code, ErrorCode::kSchema);
}

RC_GTEST_PROP(DivideWork, DividesEveryCountWithinTheCores, ()) {
  DivisionRequest request;
  request.is_matmul = *rc::gen::arbitrary<bool>();
  request.max_cores = *rc::gen::inRange<std::int64_t>(1, 65);
  request.stick_elements = *rc::gen::element<std::int64_t>(32, 64, 128);
  const int n = *rc::gen::inRange(0, 6);
  for (int i = 0; i < n; ++i) {
    request.dims.push_back(
        {*rc::gen::inRange<std::int64_t>(1, 5000), *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()});
  }
  const Splits splits = divide_work(request).value();
  RC_ASSERT(splits.size() == request.dims.size());
  std::int64_t product = 1;
  int divided_reductions = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const DivisionDim& dim = request.dims[i];
    const std::int64_t e = request.stick_elements;
    RC_ASSERT((dim.is_stick ? (dim.extent + e - 1) / e : dim.extent) % splits[i] == 0);
    product *= splits[i];
    if (!dim.is_output && splits[i] > 1) ++divided_reductions;
  }
  RC_ASSERT(product <= request.max_cores);
  RC_ASSERT(divided_reductions <= (request.is_matmul ? 1 : 0));
}

}  // namespace
}  // namespace kerntrail::spyre
