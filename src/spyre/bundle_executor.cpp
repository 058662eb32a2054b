// What the files say, run.
#include "spyre/bundle_executor.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "spyre/checked.h"
#include "spyre/executor.h"
#include "spyre/layout.h"
#include "spyre/tensor_part.h"

namespace kerntrail::spyre {
namespace {

constexpr std::int64_t kMaxRow = std::int64_t{1} << 24;    // of one dim on one core
constexpr std::size_t kMaxSteps = std::size_t{1} << 26;    // of all dims of all tensors
constexpr std::size_t kMaxPanel = std::size_t{1} << 28;    // of a right operand on one core

// One tensor during a run: where each index of each dim leads, in bytes.
struct View {
  std::vector<std::vector<std::int64_t>> step;  // [dim][local index]
  NumberFormat format = NumberFormat::kHalf;
  const SdscTensor* tensor = nullptr;

  std::int64_t space(std::size_t core) const {
    return tensor->in_lx ? static_cast<std::int64_t>(core) : DeviceMemory::kHbm;
  }
};

class FileRun {
 public:
  FileRun(const SuperdscContent& content, DeviceMemory& memory) : model_(content.model), memory_(memory) {}

  Expected<void> run() {
    for (const SdscTensor& tensor : model_.tensors) {
      KERNTRAIL_TRY(View view, view_of(tensor));
      views_.push_back(std::move(view));
    }
    for (std::size_t core = 0; core < model_.slices.size(); ++core) {
      KERNTRAIL_CHECK(model_.kind == OpKind::kMatmul ? run_matmul(core) : run_rows(core));
    }
    if (memory_.overflowed()) return fail(ErrorCode::kTooLarge, "it writes more memory than is held");
    return {};
  }

 private:
  Expected<View> view_of(const SdscTensor& tensor) {
    KERNTRAIL_TRY(const TensorPart part, tensor_part(model_, tensor));
    View view;
    view.tensor = &tensor;
    if (tensor.data_format == "SEN169_FP16" && part.word == 2) {
      view.format = NumberFormat::kHalf;
    } else if (tensor.data_format == "IEEE_FP32" && part.word == 4) {
      view.format = NumberFormat::kSingle;
    } else {
      return fail(ErrorCode::kUnsupported, fmt::format("numbers of format {} are not run", tensor.data_format));
    }
    for (std::size_t d = 0; d < model_.dims.size(); ++d) {
      if (model_.dims[d].per_core() > kMaxRow)
        return fail(ErrorCode::kTooLarge, fmt::format("a core has more than {} of {}", kMaxRow, model_.dims[d].label));
      const auto n = static_cast<std::size_t>(model_.dims[d].per_core());
      if ((steps_ += n) > kMaxSteps)
        return fail(ErrorCode::kTooLarge, fmt::format("a core's dims have more than {} indices", kMaxSteps));
      std::vector<std::int64_t> steps(n, 0);
      const SdscTensorDim* entry = tensor.find(d);
      const bool moves = entry != nullptr && entry->scale == kScaleNormal;
      for (std::size_t i = 0; i < steps.size() && moves; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const std::int64_t e = tensor.stick_elements;
        const std::int64_t elements = d == tensor.stick ? at / e * part.stride[d] + at % e : at * part.stride[d];
        steps[i] = elements * part.word;
      }
      view.step.push_back(std::move(steps));
    }
    return view;
  }

  // Calls `body` with the offset of every tensor at each point of the dims that are not in `inner`.
  template <class F>
  Expected<void> for_each_outer(const std::vector<std::size_t>& inner, F body) {
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < model_.dims.size(); ++d) {
      if (std::find(inner.begin(), inner.end(), d) == inner.end()) dims.push_back(d);
    }
    std::vector<std::size_t> at(dims.size(), 0);
    std::vector<std::int64_t> offset(views_.size(), 0);
    while (true) {
      for (std::size_t t = 0; t < views_.size(); ++t) {
        offset[t] = 0;
        for (std::size_t k = 0; k < dims.size(); ++k) offset[t] += views_[t].step[dims[k]][at[k]];
      }
      KERNTRAIL_CHECK(body(offset));
      std::size_t k = dims.size();
      while (k-- > 0) {
        if (++at[k] < static_cast<std::size_t>(model_.dims[dims[k]].per_core())) break;
        at[k] = 0;
      }
      if (k == static_cast<std::size_t>(-1)) return {};
    }
  }

  float load(std::size_t t, std::size_t core, std::int64_t offset) const {
    return memory_.read(views_[t].space(core), views_[t].tensor->addresses[core] + offset, views_[t].format);
  }
  void store(std::size_t t, std::size_t core, std::int64_t offset, float value) {
    memory_.write(views_[t].space(core), views_[t].tensor->addresses[core] + offset, views_[t].format, value);
  }

  Expected<void> run_rows(std::size_t core) {
    const std::size_t last = views_.size() - 1;
    const std::size_t row_dim = views_[last].tensor->stick;
    const auto n = static_cast<std::size_t>(model_.dims[row_dim].per_core());
    std::vector<std::vector<float>> rows(views_.size(), std::vector<float>(n));
    std::vector<const float*> inputs;
    for (std::size_t t = 0; t < last; ++t) inputs.push_back(rows[t].data());
    return for_each_outer({row_dim}, [&](const std::vector<std::int64_t>& offset) -> Expected<void> {
      for (std::size_t t = 0; t < last; ++t) {
        for (std::size_t i = 0; i < n; ++i) rows[t][i] = load(t, core, offset[t] + views_[t].step[row_dim][i]);
      }
      if (!compute_pointwise_row(model_.op, inputs.data(), last, n, rows[last].data()))
        return fail(ErrorCode::kUnsupported, fmt::format("no host operation \"{}\" on {} tensors", model_.op, last));
      for (std::size_t i = 0; i < n; ++i)
        store(last, core, offset[last] + views_[last].step[row_dim][i], rows[last][i]);
      return {};
    });
  }

  Expected<void> run_matmul(std::size_t core) {
    if (views_.size() != 3 || model_.dims.size() < 2 || model_.op != "batchmatmul")
      return fail(ErrorCode::kUnsupported, fmt::format("{} is not run", model_.op));
    const std::size_t dim_n = model_.dims.size() - 2, dim_k = model_.dims.size() - 1;
    const auto n = static_cast<std::size_t>(model_.dims[dim_n].per_core());
    const auto k = static_cast<std::size_t>(model_.dims[dim_k].per_core());
    if (n * k > kMaxPanel) return fail(ErrorCode::kTooLarge, "a core's part of the right operand is too large to run");
    std::vector<float> left(k), sums(n), right(n * k);
    std::optional<std::int64_t> loaded;  // offset of the right operand that `right` holds
    return for_each_outer({dim_n, dim_k}, [&](const std::vector<std::int64_t>& offset) -> Expected<void> {
      for (std::size_t i = 0; i < k; ++i) left[i] = load(0, core, offset[0] + views_[0].step[dim_k][i]);
      if (loaded != offset[1]) load_right(core, offset[1], right);
      loaded = offset[1];
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (std::size_t i = 0; i < k; ++i) {
        for (std::size_t j = 0; j < n; ++j) sums[j] += left[i] * right[i * n + j];
      }
      for (std::size_t j = 0; j < n; ++j) add_to(core, offset[2] + views_[2].step[dim_n][j], sums[j]);
      return {};
    });
  }

  void load_right(std::size_t core, std::int64_t offset, std::vector<float>& right) const {
    const std::vector<std::int64_t>& over_n = views_[1].step[model_.dims.size() - 2];
    const std::vector<std::int64_t>& over_k = views_[1].step[model_.dims.size() - 1];
    for (std::size_t i = 0; i < over_k.size(); ++i) {
      for (std::size_t j = 0; j < over_n.size(); ++j)
        right[i * over_n.size() + j] = load(1, core, offset + over_k[i] + over_n[j]);
    }
  }

  // Parts of one product are added up in single precision and rounded once.
  void add_to(std::size_t core, std::int64_t offset, float value) {
    if (model_.dims.back().split > 1 && !views_[2].tensor->in_lx)
      value = partial_[views_[2].tensor->addresses[core] + offset] += value;
    store(2, core, offset, value);
  }

  const SdscModel& model_;
  DeviceMemory& memory_;
  std::vector<View> views_;
  std::size_t steps_ = 0;  // held by `views_`
  std::unordered_map<std::int64_t, float> partial_;
};

}  // namespace

// Cores need not share the work: where nothing is divided, each of them does all of it.
std::int64_t executed_points(const SdscModel& model) {
  constexpr std::int64_t kTooMany = kMaxExecutedPoints + 1;
  auto points = static_cast<std::int64_t>(model.slices.size());
  for (const SdscDim& dim : model.dims)
    points = std::min(checked_multiply(points, dim.per_core()).value_or(kTooMany), kTooMany);
  return points;
}

Expected<void> execute_file(const SuperdscContent& content, DeviceMemory& memory) {
  if (content.symbolic)
    return fail(ErrorCode::kUnsupported, "its addresses are symbols, which are bound at launch only");
  if (content.output_is_input) return fail(ErrorCode::kUnsupported, fmt::format("{} is not run", content.model.op));
  if (executed_points(content.model) > kMaxExecutedPoints)
    return fail(ErrorCode::kTooLarge,
                fmt::format("{} has more than {} loop points", content.model.op, kMaxExecutedPoints));
  return FileRun(content, memory).run();
}

}  // namespace kerntrail::spyre
