#include "model/loop_ops.h"

#include <algorithm>
#include <array>

namespace kerntrail::model {
namespace {

constexpr std::array<std::string_view, 8> kDoes = {"compute",  "move",  "load",    "store",
                                                   "constant", "index", "control", "compiler_made"};

struct Row {
  std::string_view name;
  Does does;
};

// What is no calculation; names of sub-blocks without their number.
constexpr Row kOps[] = {{"load", Does::kLoad},
                        {"load_seed", Does::kLoad},
                        {"store", Does::kStore},
                        {"store_reduction", Does::kStore},
                        {"constant", Does::kConstant},
                        {"identity", Does::kMove},
                        {"index_expr", Does::kIndex},
                        {"value_expr", Does::kIndex},
                        {"get_index", Does::kIndex},
                        {"set_indirect", Does::kIndex},
                        {"indirect_indexing", Does::kIndex},
                        {"check_bounds", Does::kIndex},
                        {"device_assert_async", Does::kControl},
                        {"output", Does::kControl},
                        {"placeholder", Does::kControl}};

}  // namespace

std::string_view does_name(Does does) { return kDoes[static_cast<std::size_t>(does)]; }

std::optional<Does> does_from_name(std::string_view name) {
  const auto found = std::find(kDoes.begin(), kDoes.end(), name);
  if (found == kDoes.end()) return std::nullopt;
  return static_cast<Does>(found - kDoes.begin());
}

Does does_of_op(std::string_view op) {
  for (const Row& row : kOps) {
    if (row.name == op) return row.does;
  }
  return Does::kCompute;
}

}  // namespace kerntrail::model
