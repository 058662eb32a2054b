// Layout choice. A buffer has the layout its first dimension order allows for every use; only a kernel input can be
// laid out otherwise, since whoever loads it can permute it, while a tensor made by the bundle would need a restickify.
// A restickify reads whatever layout its input has and writes the one that the readers of its output need.
#include "spyre/plan_layouts.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/strings.h"
#include "spyre/checked.h"
#include "spyre/layout.h"
#include "spyre/op_rules.h"

namespace kerntrail::spyre {
namespace {

using Symbol = std::optional<std::string>;

// One argument of one operation, seen from its buffer.
struct Use {
  std::size_t spec = 0;
  std::size_t arg = 0;
  LinearForm index;
  std::vector<Symbol> dims;  // the loop variable that runs over each host dimension
  Symbol stick;  // the variable the operation wants inside the stick; absent: none may be there
  bool any_stick = false;  // it takes what it gets: `stick` is set when the buffer's order is known
};

struct Buffer {
  std::vector<Use> uses;
  bool written = false;
  bool restickified = false;  // written by a restickify
  std::vector<int> order;  // host dimensions, the one in the stick last; may end in kSparse
  std::vector<std::int64_t> padded;  // host extents to reserve
  DeviceLayout layout;
};

std::string op_place(const std::vector<OpSpec>& specs, std::size_t i) {
  return fmt::format("op {} ({})", i, specs[i].op);
}
std::string buffer_place(const TensorArg& arg) { return fmt::format("buffer {}", arg.name); }

tl::unexpected<Error> at_buffer(const std::vector<OpSpec>& specs, const Use& use, ErrorCode code,
                                std::string_view text) {
  return fail(code,
              fmt::format("{}, buffer {}: {}", op_place(specs, use.spec), specs[use.spec].args[use.arg].name, text));
}

Expected<std::vector<Symbol>> dims_of_index(const LinearForm& index, const OpSpec& spec, const TensorArg& arg) {
  std::vector<Symbol> dims(arg.host_size.size());
  for (const auto& [symbol, coefficient] : index.terms) {
    const auto loop = std::find_if(spec.iteration_space.begin(), spec.iteration_space.end(),
                                   [&](const IterDim& d) { return d.symbol == symbol; });
    if (loop == spec.iteration_space.end()) {
      return fail(ErrorCode::kReference, fmt::format("index symbol '{}' is no loop variable", symbol));
    }
    if (loop->extent <= 1) continue;
    bool found = false;
    for (std::size_t h = 0; h < dims.size() && !found; ++h) {
      found = !dims[h] && arg.host_stride[h] == coefficient && arg.host_size[h] >= loop->extent;
      if (found) dims[h] = symbol;
    }
    if (!found) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("loop '{}' runs over no single dimension of the buffer (a view)", symbol));
    }
  }
  return dims;
}

class LayoutPlanner {
 public:
  LayoutPlanner(std::vector<OpSpec>& specs, std::vector<Diagnostic>& diagnostics)
      : specs_(specs), diagnostics_(diagnostics) {}

  Expected<void> run() {
    for (std::size_t i = 0; i < specs_.size(); ++i) KERNTRAIL_CHECK(collect(i));
    for (const std::string& name : names_) KERNTRAIL_CHECK(choose_order(buffers_[name]));
    for (std::size_t i = 0; i < specs_.size(); ++i) KERNTRAIL_CHECK(reserve_padding(i));
    for (const std::string& name : names_) KERNTRAIL_CHECK(lay_out(buffers_[name]));
    for (OpSpec& spec : specs_) equalise_ranks(spec);
    return {};
  }

 private:
  const TensorArg& arg_of(const Use& use) const { return specs_[use.spec].args[use.arg]; }

  Expected<void> collect(std::size_t i) {
    const OpSpec& spec = specs_[i];
    KERNTRAIL_TRY(const OpKind kind, op_kind(spec));
    std::vector<Use> uses;
    for (std::size_t a = 0; a < spec.args.size(); ++a) {
      Use use;
      use.spec = i;
      use.arg = a;
      const auto explain = [&](const Error& error) { return at_buffer(specs_, use, error.code, error.message); };
      if (spec.args[a].host_size.size() != spec.args[a].host_stride.size()) {
        return at_buffer(specs_, use, ErrorCode::kSchema, "as many strides as extents are needed");
      }
      Expected<LinearForm> index = parse_linear(spec.args[a].index);
      if (!index) return explain(index.error());
      use.index = std::move(*index);
      Expected<std::vector<Symbol>> dims = dims_of_index(use.index, spec, spec.args[a]);
      if (!dims) return explain(dims.error());
      use.dims = std::move(*dims);
      uses.push_back(std::move(use));
    }
    set_wanted_sticks(spec, kind, uses);
    for (Use& use : uses) KERNTRAIL_CHECK(record(std::move(use)));
    if (kind == OpKind::kRestickify) buffers_[spec.args.back().name].restickified = true;
    return {};
  }

  static void set_wanted_sticks(const OpSpec& spec, OpKind kind, std::vector<Use>& uses) {
    if (kind == OpKind::kMatmul) {
      const Symbol n = matmul_n(spec).extent > 1 ? Symbol(matmul_n(spec).symbol) : std::nullopt;
      uses[0].stick = matmul_k(spec).symbol;
      uses[1].stick = n;
      uses[2].stick = n;
      return;
    }
    if (kind == OpKind::kRestickify) {
      for (Use& use : uses) use.any_stick = true;
      return;
    }
    const std::vector<Symbol>& output = uses.back().dims;
    for (Use& use : uses) use.stick = output.empty() ? std::nullopt : output.back();
  }

  Expected<void> record(Use use) {
    const TensorArg& arg = arg_of(use);
    if (arg.name.empty()) return at_buffer(specs_, use, ErrorCode::kSchema, "it has no name");
    Buffer& buffer = buffers_[arg.name];
    if (buffer.uses.empty()) {
      names_.push_back(arg.name);
      buffer.padded = arg.host_size;
    } else {
      const TensorArg& first = arg_of(buffer.uses.front());
      if (first.host_size != arg.host_size || first.host_stride != arg.host_stride || first.dtype != arg.dtype) {
        return at_buffer(specs_, use, ErrorCode::kUnsupported, "it is used with another shape or type before");
      }
    }
    buffer.written = buffer.written || !arg.is_input;
    buffer.uses.push_back(std::move(use));
    return {};
  }

  // Whether a use can work with host dimension `last` in the stick (kSparse: none).
  static bool fits(const Use& use, int last) {
    if (use.any_stick) return last != kSparse;
    const Symbol inside = last == kSparse ? std::nullopt : use.dims[static_cast<std::size_t>(last)];
    if (inside) return inside == use.stick;
    return !use.stick || std::find(use.dims.begin(), use.dims.end(), use.stick) == use.dims.end();
  }

  static std::vector<int> order_with_last(std::size_t rank, int last) {
    std::vector<int> order;
    for (int h = 0; h < static_cast<int>(rank); ++h) {
      if (h != last) order.push_back(h);
    }
    order.push_back(last);
    return order;
  }

  Expected<void> choose_order(Buffer& buffer) {
    const TensorArg& arg = arg_of(buffer.uses.front());
    const int rank = static_cast<int>(arg.host_size.size());
    const bool loadable = !buffer.written && arg.arg_index >= 0;
    const bool any_order = loadable || buffer.restickified;
    for (int last = rank - 1; last >= kSparse; --last) {
      const bool is_default = last == rank - 1;
      if (!is_default && !any_order) break;
      const auto fits_here = [&](const Use& use) { return fits(use, last); };
      if (!std::all_of(buffer.uses.begin(), buffer.uses.end(), fits_here)) continue;
      if (rank > 0) buffer.order = order_with_last(arg.host_size.size(), last);
      for (Use& taker : buffer.uses) {
        if (taker.any_stick && last >= 0) taker.stick = taker.dims[static_cast<std::size_t>(last)];
      }
      if (!is_default && loadable) {
        diagnostics_.push_back({"laid-out-at-load", describe_order(arg, buffer.order), buffer_place(arg)});
      }
      return {};
    }
    const auto misfit =
        std::find_if(buffer.uses.begin(), buffer.uses.end(), [&](const Use& use) { return !fits(use, rank - 1); });
    const Use& use = misfit == buffer.uses.end() ? buffer.uses.front() : *misfit;
    return at_buffer(specs_, use, ErrorCode::kUnsupported,
                     loadable
                         ? "its uses need different sticks, which needs a restickify"
                         : "the operation needs another stick than the one it was made with, which needs a restickify");
  }

  static std::string describe_order(const TensorArg& arg, const std::vector<int>& order) {
    std::vector<std::string> parts;
    for (const int h : order) parts.push_back(h == kSparse ? "one element a stick" : std::to_string(h));
    return fmt::format("{} of {} is loaded in dim order [{}]", arg.name,
                       base::counted(arg.host_size.size(), "dimension"), base::join(parts, ", "));
  }

  // A loop over sticks runs to the end of its last stick, in every tensor it indexes.
  Expected<void> reserve_padding(std::size_t i) {
    std::map<std::string, std::int64_t> stick_of;  // elements of the largest stick along a loop
    for (const TensorArg& arg : specs_[i].args) {
      for (const Use& use : buffers_[arg.name].uses) {
        if (use.spec != i || !use.stick) continue;
        std::int64_t& e = stick_of[*use.stick];
        e = std::max(e, stick_elements(arg.dtype));
      }
    }
    for (const IterDim& loop : specs_[i].iteration_space) {
      const auto found = stick_of.find(loop.symbol);
      if (found == stick_of.end() || found->second <= 0 || loop.extent <= 1) continue;
      const auto size = checked_multiply(ceil_divide(loop.extent, found->second), found->second);
      if (!size) return fail(ErrorCode::kTooLarge, "a padded extent leaves 64 bits");
      for (const TensorArg& arg : specs_[i].args) reserve(buffers_[arg.name], i, loop.symbol, *size);
    }
    reserve_one_stick(i);
    return {};
  }

  // Where no variable runs inside the stick, an operation does one stick of its widest argument; tensors of shorter
  // sticks need as many elements.
  void reserve_one_stick(std::size_t i) {
    std::int64_t e = 1;
    for (const TensorArg& arg : specs_[i].args) e = std::max(e, stick_elements(arg.dtype));
    for (const TensorArg& arg : specs_[i].args) {
      Buffer& buffer = buffers_[arg.name];
      for (const Use& use : buffer.uses) {
        if (use.spec != i || use.stick || stick_elements(arg.dtype) >= e) continue;
        const bool has_dim = !buffer.order.empty() && buffer.order.back() != kSparse;
        const std::size_t at = has_dim ? static_cast<std::size_t>(buffer.order.back()) : arg.host_size.size();
        buffer.padded.resize(std::max(buffer.padded.size(), at + 1), 1);
        buffer.padded[at] = std::max(buffer.padded[at], e);
      }
    }
  }

  void reserve(Buffer& buffer, std::size_t spec, const std::string& symbol, std::int64_t needed) {
    const TensorArg& arg = arg_of(buffer.uses.front());
    const std::int64_t e = std::max<std::int64_t>(stick_elements(arg.dtype), 1);
    for (const Use& use : buffer.uses) {
      if (use.spec != spec) continue;
      for (std::size_t h = 0; h < use.dims.size(); ++h) {
        if (use.dims[h] != symbol) continue;
        const bool in_stick = buffer.order.back() == static_cast<int>(h);
        const std::int64_t have = in_stick ? ceil_divide(buffer.padded[h], e) * e : buffer.padded[h];
        if (needed <= have) continue;
        buffer.padded[h] = needed;
        if (!in_stick) report_padding(buffer, arg, h);
      }
    }
  }

  void report_padding(const Buffer& buffer, const TensorArg& arg, std::size_t h) {
    const std::string text = fmt::format("dimension {} of {} has {} of {} device rows on the host", h, arg.name,
                                         arg.host_size[h], buffer.padded[h]);
    if (buffer.written) {
      diagnostics_.push_back({"unwritten-padding", text + "; nothing zeroes the others", buffer_place(arg)});
    } else {
      diagnostics_.push_back({"padded-at-load", text + "; the others must be loaded as zeros", buffer_place(arg)});
    }
  }

  Expected<void> lay_out(Buffer& buffer) {
    const TensorArg& first = arg_of(buffer.uses.front());
    Expected<DeviceLayout> layout =
        default_layout(first.host_size, first.host_stride, first.dtype, buffer.order, buffer.padded);
    if (!layout) return at_buffer(specs_, buffer.uses.front(), layout.error().code, layout.error().message);
    buffer.layout = std::move(*layout);
    for (const Use& use : buffer.uses) {
      TensorArg& arg = specs_[use.spec].args[use.arg];
      Expected<std::vector<std::string>> coordinates =
          compute_coordinates(use.index, specs_[use.spec].iteration_space, buffer.layout);
      if (!coordinates) return at_buffer(specs_, use, coordinates.error().code, coordinates.error().message);
      arg.layout = buffer.layout;
      arg.device_coordinates = std::move(*coordinates);
      complete_stick_pair(buffer, use, arg);
    }
    return {};
  }

  // A variable that fits into one stick still runs over the sticks that padding added.
  static void complete_stick_pair(const Buffer& buffer, const Use& use, TensorArg& arg) {
    if (buffer.order.empty() || buffer.order.back() == kSparse) return;
    const Symbol inside = use.dims[static_cast<std::size_t>(buffer.order.back())];
    const std::size_t rank = arg.layout.device_size.size();
    const std::size_t count = buffer.order.size() > 1 ? rank - 3 : rank - 2;
    if (!inside || arg.layout.device_size[count] == 1 || arg.device_coordinates[count] != "0") return;
    arg.device_coordinates[count] = fmt::format("floor({}/{})", *inside, arg.layout.device_size.back());
    arg.device_coordinates.back() = fmt::format("Mod({}, {})", *inside, arg.layout.device_size.back());
  }

  static void equalise_ranks(OpSpec& spec) {
    std::size_t rank = 0;
    for (const TensorArg& arg : spec.args) rank = std::max(rank, arg.layout.device_size.size());
    for (TensorArg& arg : spec.args) {
      const std::size_t missing = rank - arg.layout.device_size.size();
      arg.layout.device_size.insert(arg.layout.device_size.begin(), missing, 1);
      arg.layout.stride_map.insert(arg.layout.stride_map.begin(), missing, -1);
      arg.device_coordinates.insert(arg.device_coordinates.begin(), missing, "0");
    }
  }

  std::vector<OpSpec>& specs_;
  std::vector<Diagnostic>& diagnostics_;
  std::map<std::string, Buffer> buffers_;
  std::vector<std::string> names_;  // in order of first use
};

}  // namespace

Expected<void> plan_layouts(std::vector<OpSpec>& specs, std::vector<Diagnostic>& diagnostics) {
  return LayoutPlanner(specs, diagnostics).run();
}

}  // namespace kerntrail::spyre
