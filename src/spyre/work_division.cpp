// Greedy division of an iteration space over cores.
#include "spyre/work_division.h"

#include <algorithm>
#include <numeric>

namespace kerntrail::spyre {
namespace {

std::int64_t largest_divisor_up_to(std::int64_t count, std::int64_t bound) {
  for (std::int64_t candidate = std::min(count, bound); candidate > 1; --candidate) {
    if (count % candidate == 0) return candidate;
  }
  return 1;
}

}  // namespace

Expected<std::vector<std::int64_t>> divide_work(const DivisionRequest& request) {
  if (request.max_cores < 1) return fail(ErrorCode::kSchema, "the number of cores must be at least 1");
  if (request.stick_elements < 1) return fail(ErrorCode::kSchema, "a stick must hold at least 1 element");
  std::vector<std::int64_t> counts;
  for (const DivisionDim& dim : request.dims) {
    if (dim.extent < 1) return fail(ErrorCode::kSchema, "an iteration dim must have an extent of at least 1");
    const std::int64_t e = request.stick_elements;
    counts.push_back(dim.is_stick ? dim.extent / e + (dim.extent % e != 0 ? 1 : 0) : dim.extent);
  }

  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });

  std::vector<std::int64_t> splits(counts.size(), 1);
  std::int64_t remaining = request.max_cores;
  for (std::size_t i : order) {
    if (!request.dims[i].is_output) continue;
    splits[i] = largest_divisor_up_to(counts[i], remaining);
    remaining /= splits[i];
  }
  if (!request.is_matmul || remaining <= 1) return splits;

  std::size_t best = splits.size();
  std::int64_t best_split = 1;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    if (request.dims[i].is_output) continue;
    const std::int64_t split = largest_divisor_up_to(counts[i], remaining);
    if (split > best_split) {
      best = i;
      best_split = split;
    }
  }
  if (best < splits.size()) splits[best] = best_split;
  return splits;
}

}  // namespace kerntrail::spyre
