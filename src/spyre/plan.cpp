// The device side of a bundle: layouts, then splits, then places in memory.
#include "spyre/plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "spyre/checked.h"
#include "spyre/layout.h"
#include "spyre/op_rules.h"
#include "spyre/plan_layouts.h"
#include "spyre/superdsc_model.h"
#include "spyre/work_division.h"

namespace kerntrail::spyre {
namespace {

constexpr std::int64_t kMaxArguments = 1 << 20;
constexpr std::array<std::pair<Generation, std::string_view>, 4> kGenerations{
    {{Generation::kEarly, "early"},
     {Generation::kJune, "june"},
     {Generation::kJuly, "july"},
     {Generation::kJulyTransform, "july-transform"}}};

// A tensor that lives in the pool for part of the bundle.
struct Tenant {
  std::int64_t bytes = 0;
  std::size_t first = 0;  // op that writes it first
  std::size_t last = 0;   // last op that touches it
  std::int64_t offset = 0;
};

Error at_op(const std::vector<OpSpec>& specs, std::size_t i, Error error) {
  error.message = fmt::format("op {} ({}): {}", i, specs[i].op, error.message);
  return error;
}

Expected<void> divide_op(OpSpec& spec, const EmitOptions& options) {
  KERNTRAIL_TRY(const OpKind kind, op_kind(spec));
  KERNTRAIL_TRY(const std::optional<std::string> output_stick, stick_symbol(spec.args.back()));
  KERNTRAIL_TRY(const std::vector<EmittedDim> dims, emitted_dims(spec, kind, output_stick));
  DivisionRequest request;
  request.is_matmul = kind == OpKind::kMatmul;
  request.max_cores = options.max_cores;
  request.stick_elements = 1;
  std::vector<std::string> sticks;
  for (const TensorArg& arg : spec.args) {
    KERNTRAIL_TRY(const std::optional<std::string> stick, stick_symbol(arg));
    sticks.push_back(stick.value_or(""));
    request.stick_elements = std::max(request.stick_elements, stick_elements(arg.dtype));
  }
  for (const EmittedDim& dim : dims) {
    const bool is_stick = !dim.symbol.empty() && std::find(sticks.begin(), sticks.end(), dim.symbol) != sticks.end();
    request.dims.push_back({dim.symbol.empty() ? 1 : dim.extent, !dim.is_reduction, is_stick});
  }
  KERNTRAIL_TRY(const std::vector<std::int64_t> splits, divide_work(request));
  for (IterDim& loop : spec.iteration_space) loop.split = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].position) spec.iteration_space[*dims[d].position].split = splits[d];
  }
  return {};
}

class MemoryPlanner {
 public:
  MemoryPlanner(std::vector<OpSpec>& specs, std::vector<Diagnostic>& diagnostics)
      : specs_(specs), diagnostics_(diagnostics) {}

  Expected<void> run() {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      for (const TensorArg& arg : specs_[i].args) KERNTRAIL_CHECK(note_argument(i, arg));
    }
    KERNTRAIL_CHECK(fill_pool());
    std::int64_t segments = 0;
    const std::int64_t first_segment = tenants_.empty() ? 0 : 1;
    for (OpSpec& spec : specs_) {
      for (TensorArg& arg : spec.args) {
        if (arg.arg_index < 0) {
          arg.memory = Memory::kPool;
          arg.base = tenants_.at(arg.name).offset;
          continue;
        }
        arg.memory = Memory::kHbm;
        arg.base = (arg.arg_index + first_segment) * kSegmentBytes;
        segments = std::max(segments, arg.arg_index + first_segment + 1);
      }
    }
    if (segments > kDeviceSegments) {
      diagnostics_.push_back({"segments-numbered-on",
                              fmt::format("{} segments are used, the device has {}", segments, kDeviceSegments),
                              "bundle"});
    }
    return {};
  }

 private:
  Expected<void> note_argument(std::size_t i, const TensorArg& arg) {
    const auto refuse = [&](ErrorCode code, std::string_view text) {
      return fail(code, fmt::format("op {} ({}), buffer {}: {}", i, specs_[i].op, arg.name, text));
    };
    if (arg.arg_index < -1 || arg.arg_index >= kMaxArguments)
      return refuse(ErrorCode::kTooLarge, "its argument number is out of range");
    const auto [number, is_new] = numbers_.emplace(arg.name, arg.arg_index);
    if (!is_new && number->second != arg.arg_index) return refuse(ErrorCode::kSchema, "it has two argument numbers");
    KERNTRAIL_TRY(const std::int64_t bytes, layout_bytes(arg.layout));
    if (bytes > kSegmentBytes) return refuse(ErrorCode::kUnsupported, "it is larger than a segment");
    if (arg.arg_index >= 0) {
      const auto owner = owners_.emplace(arg.arg_index, arg.name).first;
      if (owner->second != arg.name) return refuse(ErrorCode::kSchema, "its argument number belongs to another buffer");
      return {};
    }
    const auto tenant = tenants_.find(arg.name);
    if (tenant == tenants_.end()) {
      if (arg.is_input) return refuse(ErrorCode::kSchema, "it is read before anything writes it");
      tenants_.emplace(arg.name, Tenant{bytes, i, i, 0});
      arrivals_.push_back(arg.name);
    } else {
      tenant->second.last = i;
    }
    return {};
  }

  // First fit over live ranges; sizes are whole sticks, so every offset is aligned.
  Expected<void> fill_pool() {
    std::vector<const Tenant*> placed;
    for (const std::string& name : arrivals_) {
      Tenant& tenant = tenants_.at(name);
      std::vector<const Tenant*> live;
      for (const Tenant* other : placed) {
        if (other->last >= tenant.first) live.push_back(other);
      }
      std::sort(live.begin(), live.end(), [](const Tenant* a, const Tenant* b) { return a->offset < b->offset; });
      std::int64_t offset = 0;
      for (const Tenant* other : live) {
        if (offset + tenant.bytes <= other->offset) break;
        offset = std::max(offset, other->offset + other->bytes);
      }
      if (offset + tenant.bytes > kPoolBytes) {
        return fail(ErrorCode::kUnsupported, "the intermediates of the bundle do not fit into the pool");
      }
      tenant.offset = offset;
      placed = std::move(live);
      placed.push_back(&tenant);
    }
    return {};
  }

  std::vector<OpSpec>& specs_;
  std::vector<Diagnostic>& diagnostics_;
  std::map<std::string, std::int64_t> numbers_;
  std::map<std::int64_t, std::string> owners_;
  std::map<std::string, Tenant> tenants_;
  std::vector<std::string> arrivals_;
};

void note_formats(const std::vector<OpSpec>& specs, std::vector<Diagnostic>& diagnostics) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& args = specs[i].args;
    const bool single =
        std::any_of(args.begin(), args.end(), [](const TensorArg& a) { return a.dtype == DType::kFloat32; });
    if (!single || has_float32_form(specs[i].op)) continue;
    diagnostics.push_back({"float32-not-listed", fmt::format("the device has no float32 form of {}", specs[i].op),
                           fmt::format("op {} ({})", i, specs[i].op)});
  }
}

}  // namespace

Expected<void> check_emit_options(const EmitOptions& options) {
  if (options.address_mode != AddressMode::kConcrete) {
    return fail(ErrorCode::kUnsupported, "only concrete addresses are written");
  }
  if (options.tensor_limit != 0) {
    return fail(ErrorCode::kUnsupported, "a bundle is not divided at a limit of tensors");
  }
  if (options.max_cores < 1) return fail(ErrorCode::kUsage, "the number of cores must be at least 1");
  return {};
}

std::string_view generation_name(Generation generation) {
  for (const auto& [value, name] : kGenerations) {
    if (value == generation) return name;
  }
  return "july";
}

Expected<Generation> generation_from_name(std::string_view name) {
  for (const auto& [value, known] : kGenerations) {
    if (known == name) return value;
  }
  return fail(ErrorCode::kUsage, fmt::format("no generation \"{}\": early, june, july or july-transform", name));
}

Generation generation_of(const std::vector<OpSpec>& specs) {
  const bool later = std::any_of(specs.begin(), specs.end(), [](const OpSpec& spec) {
    return spec.debug_handle && spec.debug_handle->transform_history;
  });
  return later ? Generation::kJulyTransform : Generation::kJuly;
}

Expected<void> plan_bundle(std::vector<OpSpec>& specs, const EmitOptions& options,
                           std::vector<Diagnostic>& diagnostics) {
  KERNTRAIL_CHECK(check_emit_options(options));
  if (options.keep_device_side) return {};
  std::vector<OpSpec> planned = specs;
  std::vector<Diagnostic> found;
  KERNTRAIL_CHECK(plan_layouts(planned, found));
  if (!options.keep_splits) {
    for (std::size_t i = 0; i < planned.size(); ++i) {
      Expected<void> divided = divide_op(planned[i], options);
      if (!divided) return tl::unexpected(at_op(planned, i, std::move(divided.error())));
    }
  }
  KERNTRAIL_CHECK(MemoryPlanner(planned, found).run());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const Expected<SdscModel> model = make_superdsc_model(planned[i], options.max_cores);
    if (!model) return tl::unexpected(at_op(planned, i, model.error()));
  }
  note_formats(planned, found);
  specs = std::move(planned);
  diagnostics.insert(diagnostics.end(), found.begin(), found.end());
  return {};
}

}  // namespace kerntrail::spyre
