// OpSpecs and handles as JSON text, both ways.
#include "spyre/op_spec.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

// Constituents of constituents do not occur; the limit only keeps hostile text from using up the machine stack.
constexpr int kMaxHandleDepth = 64;

constexpr std::array<std::pair<Memory, std::string_view>, 3> kMemoryNames{
    {{Memory::kHbm, "hbm"}, {Memory::kLx, "lx"}, {Memory::kPool, "pool"}}};

std::string_view memory_name(Memory memory) {
  for (const auto& [value, name] : kMemoryNames) {
    if (value == memory) return name;
  }
  return "hbm";
}

template <class T>
Json array_of(const std::vector<T>& values) {
  JsonArray out;
  for (const T& value : values) out.emplace_back(value);
  return out;
}

Json argument_to_json(const TensorArg& arg) {
  return JsonObject{{"is_input", arg.is_input},
                    {"arg_index", arg.arg_index},
                    {"name", arg.name},
                    {"dtype", dtype_name(arg.dtype)},
                    {"host_size", array_of(arg.host_size)},
                    {"host_stride", array_of(arg.host_stride)},
                    {"index", arg.index},
                    {"device_size", array_of(arg.layout.device_size)},
                    {"stride_map", array_of(arg.layout.stride_map)},
                    {"device_coordinates", array_of(arg.device_coordinates)},
                    {"memory", memory_name(arg.memory)},
                    {"base", arg.base}};
}

Json spec_to_json(const OpSpec& spec) {
  JsonArray space;
  for (const IterDim& dim : spec.iteration_space) space.emplace_back(JsonArray{dim.symbol, dim.extent, dim.split});
  JsonArray args;
  for (const TensorArg& arg : spec.args) args.push_back(argument_to_json(arg));
  return JsonObject{{"op", spec.op},
                    {"is_reduction", spec.is_reduction},
                    {"iteration_space", std::move(space)},
                    {"args", std::move(args)},
                    {"op_info", spec.op_info},
                    {"tiled_symbols", array_of(spec.tiled_symbols)},
                    {"symbolic_dim_bounds", spec.symbolic_dim_bounds},
                    {"debug_handle", spec.debug_handle ? handle_to_json(*spec.debug_handle) : Json()}};
}

// Reads members of one object; keeps the first error and what it was reading, so that readers stay one line a field.
class Fields {
 public:
  Fields(const Json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object_.is_object()) report("is no object");
  }

  const Json* get(std::string_view key) {
    const Json* member = object_.find(key);
    if (member == nullptr) report(fmt::format("has no \"{}\"", key));
    return member;
  }
  std::string text(std::string_view key) {
    const Json* member = get(key);
    if (member != nullptr && !member->is_string()) report(fmt::format("\"{}\" is no string", key));
    return member == nullptr ? std::string() : std::string(member->as_string());
  }
  bool boolean(std::string_view key) {
    const Json* member = get(key);
    if (member != nullptr && !member->is_bool()) report(fmt::format("\"{}\" is no boolean", key));
    return member != nullptr && member->as_bool();
  }
  std::int64_t integer(std::string_view key, std::int64_t least) {
    const Json* member = get(key);
    return member == nullptr ? least : integer_of(*member, key, least);
  }
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least) {
    std::vector<std::int64_t> out;
    for (const Json& item : array(key)) out.push_back(integer_of(item, key, least));
    return out;
  }
  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> out;
    for (const Json& item : array(key)) {
      if (!item.is_string()) report(fmt::format("\"{}\" holds something that is no string", key));
      out.emplace_back(item.as_string());
    }
    return out;
  }
  const JsonArray& array(std::string_view key) {
    static const JsonArray kNone;
    const Json* member = get(key);
    if (member != nullptr && !member->is_array()) report(fmt::format("\"{}\" is no array", key));
    return member == nullptr ? kNone : member->as_array();
  }
  Json object(std::string_view key) {
    const Json* member = get(key);
    if (member != nullptr && !member->is_object()) report(fmt::format("\"{}\" is no object", key));
    return member != nullptr && member->is_object() ? *member : Json(JsonObject{});
  }
  void report(std::string problem) {
    if (error_.empty()) error_ = fmt::format("{} {}", what_, std::move(problem));
  }
  Expected<void> done() const {
    if (!error_.empty()) return fail(ErrorCode::kSchema, error_);
    return {};
  }

 private:
  std::int64_t integer_of(const Json& value, std::string_view key, std::int64_t least) {
    if (!value.is_int() || value.as_int() < least) {
      report(fmt::format("\"{}\" holds something that is no integer from {} on", key, least));
      return least;
    }
    return value.as_int();
  }

  const Json& object_;
  std::string what_;
  std::string error_;
};

Expected<Memory> memory_from_name(std::string_view text) {
  for (const auto& [value, name] : kMemoryNames) {
    if (name == text) return value;
  }
  return fail(ErrorCode::kSchema, fmt::format("memory \"{}\" is none of hbm, lx, pool", text));
}

// The value, or its error with what was being read.
template <class T>
Expected<T> placed(Expected<T> value, const std::string& what) {
  if (!value) value.error().message = fmt::format("{}: {}", what, value.error().message);
  return value;
}

Expected<TensorArg> argument_from_json(const Json& json, const std::string& what) {
  Fields fields(json, what);
  TensorArg arg;
  arg.is_input = fields.boolean("is_input");
  arg.arg_index = fields.integer("arg_index", -1);
  arg.name = fields.text("name");
  const std::string dtype = fields.text("dtype");
  arg.host_size = fields.integers("host_size", 0);
  arg.host_stride = fields.integers("host_stride", 0);
  arg.index = fields.text("index");
  arg.layout.device_size = fields.integers("device_size", 1);
  arg.layout.stride_map = fields.integers("stride_map", -1);
  arg.device_coordinates = fields.texts("device_coordinates");
  const std::string memory = fields.text("memory");
  arg.base = fields.integer("base", 0);
  KERNTRAIL_CHECK(fields.done());
  KERNTRAIL_TRY(arg.dtype, placed(dtype_from_name(dtype), what));
  KERNTRAIL_TRY(arg.memory, placed(memory_from_name(memory), what));
  return arg;
}

Expected<IterDim> dim_from_json(const Json& json, const std::string& what) {
  const JsonArray& parts = json.as_array();
  const bool fits = parts.size() == 3 && parts[0].is_string() && parts[1].is_int() && parts[1].as_int() >= 0 &&
                    parts[2].is_int() && parts[2].as_int() >= 1;
  if (!fits)
    return fail(ErrorCode::kSchema, fmt::format("{} has an iteration dim that is not [symbol, extent, split]", what));
  return IterDim{std::string(parts[0].as_string()), parts[1].as_int(), parts[2].as_int()};
}

Expected<OpSpec> spec_from_json(const Json& json, std::string what) {
  Fields fields(json, what);
  OpSpec spec;
  spec.op = fields.text("op");
  spec.is_reduction = fields.boolean("is_reduction");
  const JsonArray& space = fields.array("iteration_space");
  const JsonArray& args = fields.array("args");
  spec.op_info = fields.object("op_info");
  spec.tiled_symbols = fields.texts("tiled_symbols");
  spec.symbolic_dim_bounds = fields.object("symbolic_dim_bounds");
  const Json* handle = fields.get("debug_handle");
  KERNTRAIL_CHECK(fields.done());
  for (const Json& dim : space) {
    KERNTRAIL_TRY(IterDim parsed, dim_from_json(dim, what));
    spec.iteration_space.push_back(std::move(parsed));
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    KERNTRAIL_TRY(TensorArg parsed, argument_from_json(args[i], fmt::format("{}, argument {}", what, i)));
    spec.args.push_back(std::move(parsed));
  }
  if (!handle->is_null()) {
    KERNTRAIL_TRY(spec.debug_handle, placed(handle_from_json(*handle), what));
  }
  return spec;
}

Json optional_integer(const std::optional<std::int64_t>& value) { return value ? Json(*value) : Json(); }

Json source_to_json(const std::optional<SourceLoc>& source) {
  if (!source) return {};
  return JsonObject{{"file", source->file},
                    {"start_line", source->start_line},
                    {"start_col", source->start_col},
                    {"end_line", optional_integer(source->end_line)},
                    {"end_col", optional_integer(source->end_col)}};
}

Expected<std::optional<std::int64_t>> optional_integer_from(const Json& value, std::string_view key) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_int())
    return fail(ErrorCode::kSchema, fmt::format("a source's \"{}\" is neither null nor an integer", key));
  return value.as_int();
}

Expected<SourceLoc> source_from_json(const Json& json) {
  Fields fields(json, "a debug handle's source");
  SourceLoc source;
  source.file = fields.text("file");
  source.start_line = fields.integer("start_line", 0);
  source.start_col = fields.integer("start_col", 0);
  KERNTRAIL_CHECK(fields.done());
  KERNTRAIL_TRY(source.end_line, optional_integer_from(json["end_line"], "end_line"));
  KERNTRAIL_TRY(source.end_col, optional_integer_from(json["end_col"], "end_col"));
  return source;
}

Expected<std::uint64_t> id_from_text(std::string_view text) {
  std::uint64_t id = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool whole = result.ec == std::errc{} && result.ptr == text.data() + text.size();
  if (!whole || (id >> 63) != 0) return fail(ErrorCode::kSchema, "a debug handle's id is no decimal string of 63 bits");
  return id;
}

Json history_to_json(const std::vector<ProvenanceTransform>& history) {
  JsonArray out;
  for (const ProvenanceTransform& step : history) {
    out.push_back(JsonObject{
        {"kind", step.kind}, {"pass_name", step.pass_name}, {"reason", step.reason ? Json(*step.reason) : Json()}});
  }
  return out;
}

Expected<std::vector<ProvenanceTransform>> history_from_json(const Json& json) {
  if (!json.is_array()) return fail(ErrorCode::kSchema, "a debug handle's \"transform_history\" is no list");
  std::vector<ProvenanceTransform> out;
  for (const Json& item : json.as_array()) {
    Fields fields(item, "a record of a transform history");
    ProvenanceTransform step;
    step.kind = fields.text("kind");
    step.pass_name = fields.text("pass_name");
    const Json* reason = fields.get("reason");
    if (reason != nullptr && !reason->is_null() && !reason->is_string())
      fields.report("\"reason\" is neither null nor a string");
    KERNTRAIL_CHECK(fields.done());
    if (!reason->is_null()) step.reason = std::string(reason->as_string());
    out.push_back(std::move(step));
  }
  return out;
}

Expected<DebugHandle> handle_at_depth(const Json& json, int depth) {
  if (depth > kMaxHandleDepth) return fail(ErrorCode::kTooLarge, "debug handles are nested too deeply");
  Fields fields(json, "a debug handle");
  const std::string id = fields.text("id");
  const Json* source = fields.get("source");
  const Json* aten = fields.get("aten_op");
  DebugHandle handle;
  handle.ir_chain = fields.texts("ir_chain");
  const JsonArray& constituents = fields.array("fused_from");
  if (aten != nullptr && !aten->is_null() && !aten->is_string())
    fields.report("\"aten_op\" is neither null nor a string");
  KERNTRAIL_CHECK(fields.done());
  KERNTRAIL_TRY(handle.id, id_from_text(id));
  if (!aten->is_null()) handle.aten_op = std::string(aten->as_string());
  if (!source->is_null()) {
    KERNTRAIL_TRY(handle.source, source_from_json(*source));
  }
  for (const Json& constituent : constituents) {
    KERNTRAIL_TRY(DebugHandle child, handle_at_depth(constituent, depth + 1));
    handle.fused_from.push_back(std::move(child));
  }
  if (const Json* history = json.find("transform_history")) {
    KERNTRAIL_TRY(handle.transform_history, history_from_json(*history));
  }
  return handle;
}

}  // namespace

std::string print_op_specs(const std::vector<OpSpec>& specs) {
  JsonArray out;
  for (const OpSpec& spec : specs) out.push_back(spec_to_json(spec));
  return Json(std::move(out)).dump();
}

Expected<std::vector<OpSpec>> parse_op_specs(std::string_view text) {
  KERNTRAIL_TRY(const Json document, Json::parse(text));
  if (!document.is_array()) return fail(ErrorCode::kSchema, "a list of OpSpecs is a JSON array");
  std::vector<OpSpec> specs;
  for (const Json& item : document.as_array()) {
    KERNTRAIL_TRY(OpSpec spec, spec_from_json(item, fmt::format("OpSpec {}", specs.size())));
    specs.push_back(std::move(spec));
  }
  return specs;
}

Json handle_to_json(const DebugHandle& handle) {
  JsonArray constituents;
  for (const DebugHandle& child : handle.fused_from) constituents.push_back(handle_to_json(child));
  JsonObject out{{"id", std::to_string(handle.id)},
                 {"source", source_to_json(handle.source)},
                 {"aten_op", handle.aten_op ? Json(*handle.aten_op) : Json()},
                 {"ir_chain", array_of(handle.ir_chain)},
                 {"fused_from", std::move(constituents)}};
  if (handle.transform_history) {
    out.emplace_back("transform_history", history_to_json(*handle.transform_history));
  } else {
    out.emplace_back("fusion_context", Json());
  }
  return out;
}

Expected<DebugHandle> handle_from_json(const Json& json) { return handle_at_depth(json, 0); }

}  // namespace kerntrail::spyre
