// The numbers of a bundle's files against those of its OpSpecs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "base/strings.h"
#include "spyre/bundle_executor.h"
#include "spyre/checked.h"
#include "spyre/executor.h"
#include "spyre/index_expr.h"
#include "spyre/op_rules.h"
#include "spyre/superdsc_model.h"
#include "spyre/tensor_part.h"

namespace kerntrail::spyre {
namespace {

constexpr std::size_t kMaxHostBytes = std::size_t{1} << 30;

struct HostBuffer {
  DType dtype = DType::kFloat16;
  std::vector<std::byte> bytes;
};

float host_number(const HostBuffer& buffer, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i) * dtype_size(buffer.dtype);
  if (buffer.dtype == DType::kFloat32) {
    float value = 0;
    std::memcpy(&value, buffer.bytes.data() + at, sizeof value);
    return value;
  }
  if (buffer.dtype == DType::kBool) return buffer.bytes[at] == std::byte{0} ? 0.0F : 1.0F;
  std::uint16_t bits = 0;
  std::memcpy(&bits, buffer.bytes.data() + at, sizeof bits);
  return half_to_float(bits);
}

void set_host_number(HostBuffer& buffer, std::size_t i, float value) {
  const std::size_t at = i * dtype_size(buffer.dtype);
  if (buffer.dtype == DType::kFloat32) {
    std::memcpy(buffer.bytes.data() + at, &value, sizeof value);
  } else if (buffer.dtype == DType::kBool) {
    buffer.bytes[at] = value == 0 ? std::byte{0} : std::byte{1};
  } else {
    const std::uint16_t bits = float_to_half(value);
    std::memcpy(buffer.bytes.data() + at, &bits, sizeof bits);
  }
}

// Eighths from -15/8 to 15/8 but for 0: products and sums of many are exact, neighbours differ.
float input_number(std::size_t buffer, std::size_t i) {
  std::uint64_t h = (buffer + 1) * 0x9E3779B97F4A7C15U ^ (i + 1) * 0xC2B2AE3D27D4EB4FU;
  h ^= h >> 29;
  h *= 0xBF58476D1CE4E5B9U;
  h ^= h >> 32;
  const auto step = static_cast<int>(h % 30);
  return static_cast<float>(step < 15 ? step - 15 : step - 14) / 8.0F;
}

Expected<NumberFormat> number_format(DType dtype) {
  if (dtype == DType::kFloat32) return NumberFormat::kSingle;
  if (dtype == DType::kFloat16 || dtype == DType::kBool) return NumberFormat::kHalf;
  return fail(ErrorCode::kUnsupported, fmt::format("numbers of type {} are not run", dtype_name(dtype)));
}

// Every element of one argument: where it lies on the device by the OpSpec's own rules, and on the host.
class Elements {
 public:
  static Expected<Elements> of(const OpSpec& spec, const SdscModel& model, const std::vector<EmittedDim>& dims,
                               std::size_t arg) {
    Elements out;
    out.model_ = &model;
    out.tensor_ = &model.tensors[arg];
    KERNTRAIL_TRY(out.part_, tensor_part(model, model.tensors[arg]));
    KERNTRAIL_TRY(out.format_, number_format(spec.args[arg].dtype));
    KERNTRAIL_TRY(const LinearForm index, parse_linear(spec.args[arg].index));
    out.constant_ = index.constant;
    for (const EmittedDim& dim : dims) {
      out.host_.push_back(dim.symbol.empty() ? 0 : index.coefficient(dim.symbol));
      out.extent_.push_back(dim.extent);
    }
    return out;
  }

  NumberFormat format() const { return format_; }

  // visit(space, address, host index, indices); elements that are padding are left out.
  template <class F>
  void for_each(F visit) const {
    std::vector<std::size_t> moving;
    for (std::size_t d = 0; d < model_->dims.size(); ++d) {
      const SdscTensorDim* entry = tensor_->find(d);
      if (entry != nullptr && entry->scale == kScaleNormal) moving.push_back(d);
    }
    for (std::size_t core = 0; core < model_->slices.size(); ++core) walk(core, moving, visit);
  }

 private:
  template <class F>
  void walk(std::size_t core, const std::vector<std::size_t>& moving, F& visit) const {
    const std::int64_t space = tensor_->in_lx ? static_cast<std::int64_t>(core) : DeviceMemory::kHbm;
    std::vector<std::int64_t> at(moving.size(), 0), global(moving.size(), 0);
    while (true) {
      std::int64_t host = constant_, elements = 0;
      bool padding = false;
      for (std::size_t k = 0; k < moving.size(); ++k) {
        const std::size_t d = moving[k];
        global[k] = model_->slices[core][d] * model_->dims[d].per_core() + at[k];
        padding = padding || global[k] >= extent_[d];
        host += host_[d] * global[k];
        const std::int64_t e = tensor_->stick_elements;
        elements += d == tensor_->stick ? at[k] / e * part_.stride[d] + at[k] % e : at[k] * part_.stride[d];
      }
      if (!padding) visit(space, tensor_->addresses[core] + elements * part_.word, host, global);
      std::size_t k = moving.size();
      while (k-- > 0) {
        if (++at[k] < model_->dims[moving[k]].per_core()) break;
        at[k] = 0;
      }
      if (k == static_cast<std::size_t>(-1)) return;
    }
  }

  const SdscModel* model_ = nullptr;
  const SdscTensor* tensor_ = nullptr;
  TensorPart part_;
  NumberFormat format_ = NumberFormat::kHalf;
  std::int64_t constant_ = 0;
  std::vector<std::int64_t> host_, extent_;  // an emitted dim each
};

// One OpSpec, ready to run on the host by itself: every buffer is an argument.
struct Reference {
  OpSpec spec;
  SdscModel model;
  std::vector<EmittedDim> dims;
  std::vector<std::string> buffers;  // by argument number of `spec`
};

class Comparison {
 public:
  Comparison(const Bundle& bundle, const std::vector<OpSpec>& specs) : bundle_(bundle), specs_(specs) {}

  Expected<std::vector<OpComparison>> run() {
    if (bundle_.entries.size() != specs_.size())
      return fail(ErrorCode::kSchema,
                  fmt::format("the bundle runs {} files, there are {} OpSpecs", bundle_.entries.size(), specs_.size()));
    std::int64_t points = 0;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      const Expected<void> prepared = prepare(i, points);
      if (!prepared) return at_op(i, prepared.error());
    }
    KERNTRAIL_CHECK(load_inputs());
    std::vector<OpComparison> out;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      Expected<OpComparison> one = run_op(i);
      if (!one) return at_op(i, one.error());
      out.push_back(std::move(*one));
    }
    return out;
  }

 private:
  tl::unexpected<Error> at_op(std::size_t i, Error error) const {
    error.message = fmt::format("operation {} ({}): {}", i, specs_[i].op, error.message);
    if (error.path.empty()) error.path = bundle_.entries[i].file;
    return tl::unexpected(std::move(error));
  }

  Expected<void> prepare(std::size_t i, std::int64_t& points) {
    const BundleEntry& entry = bundle_.entries[i];
    if (entry.error) return tl::unexpected(*entry.error);
    if (!entry.content) return fail(ErrorCode::kSchema, "the file could not be read");
    Reference reference;
    reference.spec = specs_[i];
    // A flag that only chooses labels; the numbers do not depend on it.
    if (reference.spec.op_info["shared_weight_unit_bmm"].as_bool() && reference.spec.op_info.as_object().size() == 1)
      reference.spec.op_info = base::JsonObject{};
    KERNTRAIL_TRY(reference.model, make_superdsc_model(specs_[i], kMaxCoresRead));
    KERNTRAIL_TRY(const std::optional<std::string> stick, stick_symbol(specs_[i].args.back()));
    KERNTRAIL_TRY(reference.dims, emitted_dims(specs_[i], reference.model.kind, stick));
    // The file's loops and the OpSpec's are both run, and need not be the same.
    points += std::max(executed_points(entry.content->model), executed_points(reference.model));
    if (points > kMaxExecutedPoints)
      return fail(ErrorCode::kTooLarge, fmt::format("the bundle has more than {} loop points", kMaxExecutedPoints));
    number_buffers(reference);
    KERNTRAIL_TRY(const HostKernel kernel, HostKernel::prepare({reference.spec}));
    for (std::size_t b = 0; b < reference.buffers.size(); ++b) {
      HostBuffer& buffer = host_[reference.buffers[b]];
      const KernelArgument& argument = kernel.arguments()[b];
      const std::size_t bytes = argument.elements * dtype_size(argument.dtype);
      if (!buffer.bytes.empty() && buffer.dtype != argument.dtype)
        return fail(ErrorCode::kSchema, fmt::format("buffer {} is of two types", argument.name));
      buffer.dtype = argument.dtype;
      if (bytes > kMaxHostBytes)
        return fail(ErrorCode::kTooLarge, fmt::format("buffer {} is too large to run", argument.name));
      if (buffer.bytes.size() < bytes) buffer.bytes.resize(bytes);
    }
    references_.push_back(std::move(reference));
    return {};
  }

  static void number_buffers(Reference& reference) {
    for (TensorArg& arg : reference.spec.args) {
      auto known = std::find(reference.buffers.begin(), reference.buffers.end(), arg.name);
      if (known == reference.buffers.end()) known = reference.buffers.insert(known, arg.name);
      arg.arg_index = known - reference.buffers.begin();
    }
  }

  // What is read before it is written gets numbers, on the host and, laid out as every reader says, on the device.
  Expected<void> load_inputs() {
    std::map<std::string, bool> written;
    std::size_t number = 0;
    for (const Reference& reference : references_) {
      for (const TensorArg& arg : reference.spec.args) {
        const bool is_new = written.emplace(arg.name, !arg.is_input).second;
        if (!is_new || !arg.is_input) continue;
        HostBuffer& buffer = host_[arg.name];
        const std::size_t n = buffer.bytes.size() / dtype_size(buffer.dtype);
        for (std::size_t i = 0; i < n; ++i) set_host_number(buffer, i, input_number(number, i));
        ++number;
      }
    }
    for (const Reference& reference : references_) {
      for (std::size_t a = 0; a < reference.spec.args.size(); ++a) {
        if (written.at(reference.spec.args[a].name) || !reference.spec.args[a].is_input) continue;
        KERNTRAIL_TRY(const Elements elements, Elements::of(reference.spec, reference.model, reference.dims, a));
        const HostBuffer& buffer = host_.at(reference.spec.args[a].name);
        elements.for_each([&](std::int64_t space, std::int64_t address, std::int64_t host, const auto&) {
          memory_.write(space, address, elements.format(), host_number(buffer, host));
        });
      }
    }
    return {};
  }

  Expected<OpComparison> run_op(std::size_t i) {
    const Reference& reference = references_[i];
    KERNTRAIL_TRY(const HostKernel kernel, HostKernel::prepare({reference.spec}));
    std::vector<void*> pointers;
    for (const std::string& name : reference.buffers) pointers.push_back(host_.at(name).bytes.data());
    KERNTRAIL_CHECK(kernel.run(pointers));
    KERNTRAIL_CHECK(execute_file(*bundle_.entries[i].content, memory_));
    OpComparison out;
    out.op = i;
    out.file = bundle_.entries[i].file;
    out.name = bundle_.entries[i].content->model.op;
    out.buffer = reference.spec.args.back().name;
    KERNTRAIL_CHECK(compare_output(reference, out));
    return out;
  }

  Expected<void> compare_output(const Reference& reference, OpComparison& out) const {
    const std::size_t last = reference.spec.args.size() - 1;
    const HostBuffer& buffer = host_.at(out.buffer);
    KERNTRAIL_TRY(const Elements elements, Elements::of(reference.spec, reference.model, reference.dims, last));
    float largest = 0;
    elements.for_each([&](std::int64_t, std::int64_t, std::int64_t host, const auto&) {
      const float value = std::fabs(host_number(buffer, host));
      if (std::isfinite(value)) largest = std::max(largest, value);
    });
    // Partial sums may be added in another order; a wrong address is off by more than a rounding.
    const float step = elements.format() == NumberFormat::kHalf ? 0x1p-9F : 0x1p-16F;
    elements.for_each([&](std::int64_t space, std::int64_t address, std::int64_t host, const auto& at) {
      const float is = memory_.read(space, address, elements.format());
      const float should = host_number(buffer, host);
      ++out.numbers;
      if (!std::isfinite(should)) ++out.not_finite;
      const bool same = is == should || (std::isnan(is) && std::isnan(should)) ||
                        std::fabs(is - should) <= step * std::max(std::fabs(should), largest / 16);
      if (same) return;
      if (out.wrong++ == 0) {
        std::vector<std::string> parts;
        for (const std::int64_t index : at) parts.push_back(std::to_string(index));
        out.first_wrong = fmt::format("[{}]: {}, should be {}", base::join(parts, ", "), is, should);
      }
    });
    return {};
  }

  const Bundle& bundle_;
  const std::vector<OpSpec>& specs_;
  std::vector<Reference> references_;
  std::map<std::string, HostBuffer> host_;
  DeviceMemory memory_;
};

}  // namespace

Expected<std::vector<OpComparison>> compare_bundle(const Bundle& bundle, const std::vector<OpSpec>& specs) {
  return Comparison(bundle, specs).run();
}

}  // namespace kerntrail::spyre
