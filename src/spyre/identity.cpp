#include "spyre/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <set>

#include "base/hash.h"
#include "spyre/event_name.h"
#include "spyre/index_expr.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

// As Python's float.hex() spells it.
std::string float_hex(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::string_view sign = bits >> 63 != 0 ? "-" : "";
  const auto exponent = static_cast<int>((bits >> 52) & 0x7FF);
  const std::uint64_t fraction = bits & 0xF'FFFF'FFFF'FFFF;
  if (exponent == 0 && fraction == 0) return fmt::format("{}0x0.0p+0", sign);
  const int power = exponent == 0 ? -1022 : exponent - 1023;
  return fmt::format("{}0x{}.{:013x}p{:+d}", sign, exponent == 0 ? 0 : 1, fraction, power);
}

// An expression by what it says: one spelling whatever spaces and parentheses it came with. What is no index expression
// keeps its own text.
Json symbolic(std::string_view text) {
  const auto parsed = IndexExpr::parse(text);
  if (!parsed) return JsonObject{{"sympy", text}};
  if (parsed->is_constant()) {
    if (const auto value = parsed->evaluate({})) return JsonObject{{"sympy", fmt::format("Integer({})", *value)}};
  }
  const std::string plain = parsed->text();
  if (const auto names = parsed->symbols(); names.size() == 1 && names[0] == plain)
    return JsonObject{{"sympy", fmt::format("Symbol('{}')", plain)}};
  return JsonObject{{"sympy", plain}};
}

Json symbolic(std::int64_t value) { return JsonObject{{"sympy", fmt::format("Integer({})", value)}}; }

template <class T>
Json symbolic_list(const std::vector<T>& values) {
  JsonArray out;
  for (const T& value : values) out.push_back(symbolic(value));
  return out;
}

Json mapping(std::vector<std::pair<Json, Json>> members) {
  std::ranges::sort(members, {}, [](const auto& member) { return member.first.canonical(); });
  JsonArray out;
  for (auto& [key, value] : members) out.push_back(JsonArray{std::move(key), std::move(value)});
  return JsonObject{{"mapping", std::move(out)}};
}

// Plain data (op_info, bounds) in the form that tells floats from integers and does not depend on the order of members.
Json plain(const Json& value) {
  if (value.is_double()) return JsonObject{{"float", float_hex(value.as_double())}};
  if (value.is_array()) {
    JsonArray out;
    for (const Json& item : value.as_array()) out.push_back(plain(item));
    return out;
  }
  if (!value.is_object()) return value;
  std::vector<std::pair<Json, Json>> members;
  for (const auto& [key, item] : value.as_object()) members.emplace_back(key, plain(item));
  return mapping(std::move(members));
}

bool has_nan(const Json& value) {
  if (value.is_double()) return std::isnan(value.as_double());
  const bool in_items = std::ranges::any_of(value.as_array(), has_nan);
  return in_items || std::ranges::any_of(value.as_object(), has_nan, &base::JsonMember::second);
}

template <class T>
Json list_of(const std::vector<T>& values) {
  JsonArray out;
  for (const T& value : values) out.emplace_back(value);
  return out;
}

std::string_view memory_name(Memory memory) {
  constexpr std::array<std::string_view, 3> kNames{"hbm", "lx", "hbm_pool"};
  return kNames.at(static_cast<std::size_t>(memory));
}

// The bindings name every field, so that a field that is added does not compile before it is decided whether it tells
// kernels apart.
Json argument_entry(const TensorArg& arg) {
  const auto& [is_input, arg_index, name, dtype, host_size, host_stride, index, layout, coordinates, memory, place] =
      arg;
  const auto& [device_size, stride_map] = layout;
  JsonArray allocation{memory_name(memory), place};
  JsonObject host{{"dtype", dtype_name(dtype)},
                  {"size", list_of(host_size)},
                  {"stride", list_of(host_stride)},
                  {"index", symbolic(index)},
                  {"stride_map", list_of(stride_map)}};
  return JsonObject{{"is_input", is_input},
                    {"arg_index", arg_index},
                    {"name", name},
                    {"device_dtype", device_format(dtype)},
                    {"device_size", symbolic_list(device_size)},
                    {"device_coordinates", symbolic_list(coordinates)},
                    {"allocation", JsonObject{{"mapping", JsonArray{std::move(allocation)}}}},
                    {"host", std::move(host)}};
}

Json op_entry(const OpSpec& spec) {
  const auto& [op, is_reduction, iteration_space, args, op_info, tiled_symbols, symbolic_dim_bounds, handle] = spec;
  JsonArray space;
  for (const auto& [name, extent, split] : iteration_space)
    space.push_back(JsonArray{symbolic(name), symbolic(extent), split});
  JsonArray arguments;
  for (const TensorArg& arg : args) arguments.push_back(argument_entry(arg));
  // Empty here: what other back ends may say of tiles and of the ranges of a node's output.
  return JsonObject{{"kind", "op"},
                    {"op", op},
                    {"is_reduction", is_reduction},
                    {"iteration_space", std::move(space)},
                    {"args", std::move(arguments)},
                    {"op_info", plain(op_info)},
                    {"tiled_symbols", symbolic_list(tiled_symbols)},
                    {"tiled_symbol_trip_counts", mapping({})},
                    {"symbolic_dim_bounds", plain(symbolic_dim_bounds)},
                    {"node_output_ranges", Json()},
                    {"debug_handle_id", handle ? Json(std::to_string(handle->id)) : Json()}};
}

Json entries_of(const SpecTree& specs) {
  JsonArray out;
  for (const SpecNode& node : specs) {
    if (const auto* spec = std::get_if<OpSpec>(&node)) {
      out.push_back(op_entry(*spec));
    } else {
      const SpecLoop& loop = std::get<SpecLoop>(node);
      out.push_back(JsonObject{{"kind", "loop"}, {"count", symbolic(loop.count)}, {"body", entries_of(loop.body)}});
    }
  }
  return out;
}

// Lower case, without padding; as many characters as `width`, five bits each.
std::string base32(const std::array<std::uint8_t, 32>& bytes, std::size_t width) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
  std::string out;
  for (std::size_t bit = 0; out.size() < width; bit += 5) {
    const unsigned pair = (static_cast<unsigned>(bytes.at(bit / 8)) << 8) | bytes.at(bit / 8 + 1);
    out += kLetters[(pair >> (11 - bit % 8)) & 31];
  }
  return out;
}

// Calls `see` for each operation with its path, depth first.
void walk(const SpecTree& specs, std::vector<std::int64_t>& path,
          const std::function<void(const OpSpec&, const std::vector<std::int64_t>&)>& see) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    path.push_back(static_cast<std::int64_t>(i));
    if (const auto* spec = std::get_if<OpSpec>(&specs[i]))
      see(*spec, path);
    else
      walk(std::get<SpecLoop>(specs[i]).body, path, see);
    path.pop_back();
  }
}

void add_aten_ops(const DebugHandle& handle, std::set<std::string>& into) {
  if (handle.aten_op) into.insert(*handle.aten_op);
  for (const DebugHandle& child : handle.fused_from) add_aten_ops(child, into);
}

}  // namespace

SpecTree spec_tree_of(const std::vector<OpSpec>& specs) { return {specs.begin(), specs.end()}; }

Expected<std::string> kernel_key(const SpecTree& specs) {
  bool nan = false;
  std::vector<std::int64_t> path;
  walk(specs, path, [&](const OpSpec& spec, const auto&) {
    nan = nan || has_nan(spec.op_info) || has_nan(spec.symbolic_dim_bounds);
  });
  if (nan) return fail(ErrorCode::kUnsupported, "an OpSpec holds a number that is NaN, so its kernel has no key");
  const Json payload(JsonObject{{"domain", "spyre-kernel-bundle"}, {"version", 1}, {"specs", entries_of(specs)}});
  return base32(base::sha256(payload.canonical()), kKeyWidth);
}

Expected<KernelDescriptor> describe_kernel(const SpecTree& specs) {
  KernelDescriptor out;
  KERNTRAIL_TRY(out.key, kernel_key(specs));
  std::set<std::string> aten_ops;
  std::vector<std::int64_t> path;
  walk(specs, path, [&](const OpSpec& spec, const std::vector<std::int64_t>& at) {
    if (!spec.debug_handle) return;
    const std::uint64_t id = spec.debug_handle->id;
    out.bindings.push_back({at, id});
    if (std::ranges::find(out.debug_handle_ids, id) == out.debug_handle_ids.end()) out.debug_handle_ids.push_back(id);
    add_aten_ops(*spec.debug_handle, aten_ops);
  });
  out.aten_ops.assign(aten_ops.begin(), aten_ops.end());
  return out;
}

}  // namespace kerntrail::spyre
