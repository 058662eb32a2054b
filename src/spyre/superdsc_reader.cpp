// SuperDSC JSON back to the model, and the model back to an OpSpec.
#include "spyre/superdsc_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "spyre/checked.h"
#include "spyre/constants.h"
#include "spyre/json_cursor.h"
#include "spyre/layout.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonObject;

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
constexpr std::int64_t kMaxAddress = std::int64_t{1} << 56;
constexpr std::string_view kMaskConstant = "samv-maskvalue";

// A decimal string or a number; a symbol's number is negative.
std::optional<std::int64_t> integer_of(const Json& value) {
  if (value.is_int()) return value.as_int();
  const std::string_view text = value.as_string();
  std::int64_t out = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool whole = !text.empty() && result.ec == std::errc{} && result.ptr == text.data() + text.size();
  return whole ? std::optional(out) : std::nullopt;
}

class Decoder {
 public:
  Expected<SuperdscContent> run(const Json& document) {
    const JsonCursor root(document, "", error_);
    if (document.as_object().size() != 1)
      return fail(ErrorCode::kSchema, "the document is no object of one \"<number>_<operation>\"");
    const auto& [key, body_json] = document.as_object()[0];
    const std::size_t bar = key.find('_');
    const std::string_view digits = std::string_view(key).substr(0, bar == std::string::npos ? 0 : bar);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), out_.ordinal);
    const bool numbered = !digits.empty() && digits[0] != '-' && parsed.ec == std::errc{} &&
                          parsed.ptr == digits.data() + digits.size() && bar + 1 < key.size();
    if (!numbered) return fail(ErrorCode::kSchema, fmt::format("the key \"{}\" is no \"<number>_<operation>\"", key));
    out_.model.op = key.substr(bar + 1);
    const JsonCursor body(body_json, key, error_);
    if (body.object().empty()) body.refuse("is empty");
    if (!error_ && body_json.find("dscs_") == nullptr && body_json.find("dataOpdscs_") != nullptr)
      return fail(ErrorCode::kUnsupported, key + " moves data only (dataOpdscs_), which is not carried");
    KERNTRAIL_CHECK(read_body(body));
    if (error_) return tl::unexpected(*error_);
    return std::move(out_);
  }

 private:
  Expected<void> read_body(const JsonCursor& body) {
    if (const Json* handle = body.json().find("debug_handle_")) {
      has_handle_ = true;
      if (!handle->is_null()) {
        Expected<DebugHandle> read = handle_from_json(*handle);
        if (!read)
          return fail(read.error().code, fmt::format("{}.debug_handle_: {}", body.path(), read.error().message));
        out_.handle = std::move(*read);
      }
    }
    const JsonCursor list = body["dscs_"];
    if (list.array().size() != 1 || list.at(0).object().size() != 1) list.refuse("is not one object of one operation");
    if (error_) return {};
    const auto& [op, dsc_json] = list.json().as_array()[0].as_object()[0];
    if (op != out_.model.op) list.refuse(fmt::format("holds {}, the document {}", op, out_.model.op));
    const JsonCursor dsc(dsc_json, fmt::format("{}[0].{}", list.path(), op), error_);
    read_cores(body);
    if (!error_) read_dims(body, dsc);
    if (!error_) read_slices(body["coreIdToWkSlice_"]);
    if (!error_) read_layouts(dsc["primaryDsInfo_"]);
    if (!error_) read_tensors(dsc["labeledDs_"], dsc["scheduleTree_"]);
    if (!error_) read_masks(dsc["coordinateMasking_"]);
    if (!error_) read_constants(dsc["constantInfo_"]);
    if (!error_) read_compute(dsc["computeOp_"]);
    set_style();
    return {};
  }

  void read_cores(const JsonCursor& body) { out_.model.cores = body["numCoresUsed_"].integer(1, kMaxCoresRead); }

  // Iteration order is that of numWkSlicesPerDim_; N_ has the extents.
  void read_dims(const JsonCursor& body, const JsonCursor& dsc) {
    const JsonCursor splits = body["numWkSlicesPerDim_"];
    if (splits.object().size() > kMaxDimsRead) splits.refuse("has too many dims", ErrorCode::kTooLarge);
    const JsonCursor sizes = dsc["N_"];
    for (const auto& [label, split] : splits.object()) {
      if (error_) return;
      SdscDim dim;
      dim.label = label;
      dim.split = splits[label].integer(1, kMaxCoresRead);
      dim.size = sizes[label + "_"].integer(1, kMaxExtent);
      if (dim.size % dim.split != 0) sizes[label + "_"].refuse("is no multiple of its split");
      dims_.emplace(label, out_.model.dims.size());
      out_.model.dims.push_back(std::move(dim));
    }
    for (const auto& [key, size] : sizes.object()) {
      const bool known = key == "name_" || (key.ends_with('_') && dims_.count(key.substr(0, key.size() - 1)) != 0);
      if (!known) sizes[key].refuse("is no dim of numWkSlicesPerDim_");
    }
    if (out_.model.dims.empty()) splits.refuse("is empty");
  }

  std::optional<std::size_t> dim_of(const JsonCursor& label) {
    const auto found = dims_.find(label.text());
    if (found != dims_.end()) return found->second;
    label.refuse(fmt::format("names \"{}\", which is no dim", label.json().as_string()));
    return std::nullopt;
  }

  void read_slices(const JsonCursor& map) {
    if (static_cast<std::int64_t>(map.object().size()) != out_.model.cores) map.refuse("has not one entry a core");
    for (std::int64_t core = 0; core < out_.model.cores && !error_; ++core) {
      const JsonCursor entry = map[std::to_string(core)];
      std::vector<std::int64_t> slice;
      for (const SdscDim& dim : out_.model.dims) slice.push_back(entry[dim.label].integer(0, dim.split - 1));
      out_.model.slices.push_back(std::move(slice));
    }
  }

  struct Layout {
    std::vector<std::size_t> order;
    std::size_t stick = 0;
    std::int64_t stick_elements = 1;
  };

  std::vector<std::size_t> read_order(const JsonCursor& list) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < list.array().size() && !error_; ++i) {
      const auto dim = dim_of(list.at(i));
      if (!dim) break;
      if (std::find(order.begin(), order.end(), *dim) != order.end()) list.at(i).refuse("is listed twice");
      order.push_back(*dim);
    }
    return order;
  }

  void read_layouts(const JsonCursor& labels) {
    for (const auto& [label, info] : labels.object()) {
      if (error_) return;
      const JsonCursor one = labels[label];
      Layout layout;
      layout.order = read_order(one["layoutDimOrder_"]);
      if (one["stickDimOrder_"].array().size() != 1) one["stickDimOrder_"].refuse("has not one dim");
      layout.stick = dim_of(one["stickDimOrder_"].at(0)).value_or(0);
      layout.stick_elements = one["stickSize_"].at(0).integer(1, kStickBytes);
      layouts_.emplace(label, std::move(layout));
    }
  }

  void read_tensors(const JsonCursor& labeled, const JsonCursor& nodes) {
    const std::size_t n = labeled.array().size();
    if (n == 0 || n > kMaxTensorsRead) labeled.refuse(fmt::format("lists {} tensors", n));
    if (nodes.array().size() != n) nodes.refuse("has not one node a tensor");
    for (std::size_t i = 0; i < n && !error_; ++i) read_tensor(labeled.at(i), nodes.at(i), i);
  }

  void read_tensor(const JsonCursor& labeled, const JsonCursor& node, std::size_t i) {
    SdscTensor tensor;
    tensor.label = labeled["dsType_"].text();
    const auto layout = layouts_.find(tensor.label);
    if (layout == layouts_.end()) return labeled["dsType_"].refuse("is no label of primaryDsInfo_");
    tensor.stick = layout->second.stick;
    tensor.stick_elements = layout->second.stick_elements;
    tensor.data_format = labeled["dataFormat_"].text();
    tensor.first_of_label = i;
    for (std::size_t k = i; k-- > 0;) {
      if (out_.model.tensors[k].label == tensor.label) tensor.first_of_label = k;
    }
    const std::string_view component = node["component_"].text();
    tensor.in_lx = component == "lx";
    if (!tensor.in_lx && component != "hbm") node["component_"].refuse("is neither hbm nor lx");
    read_scales(labeled["scale_"], layout->second, node["layoutDimOrder_"], tensor);
    if (const Json* gaps = node.json().find("backGapCore_"); gaps != nullptr && !error_)
      read_gaps(node["backGapCore_"], tensor);
    if (!error_) read_addresses(node, tensor);
    const Json* indirect = node.json().find("indirectAllocType_");
    has_indirect_ = has_indirect_ || indirect != nullptr;
    if (indirect != nullptr && indirect->as_string() != "no_indirection")
      node["indirectAllocType_"].refuse("is an indirect access, which is not carried", ErrorCode::kUnsupported);
    out_.model.tensors.push_back(std::move(tensor));
  }

  void read_scales(const JsonCursor& scales, const Layout& layout, const JsonCursor& own_order, SdscTensor& tensor) {
    if (scales.array().size() != layout.order.size()) return scales.refuse("has not one entry a dim of its label");
    const std::vector<std::size_t> order = read_order(own_order);
    for (const std::size_t dim : order) {
      const auto place = std::find(layout.order.begin(), layout.order.end(), dim);
      if (place == layout.order.end() || order.size() != layout.order.size())
        return own_order.refuse("has other dims than the tensor's label");
      const JsonCursor scale = scales.at(static_cast<std::size_t>(place - layout.order.begin()));
      tensor.order.push_back({dim, static_cast<int>(scale.integer(kScaleSparse, kScaleNormal)), 0});
      if (tensor.order.back().scale == 0) scale.refuse("is 0");
    }
    if (tensor.find(tensor.stick) == nullptr) own_order.refuse("lacks the stick dim");
  }

  void read_gaps(const JsonCursor& gaps, SdscTensor& tensor) {
    for (const auto& [label, of_core] : gaps.object()) {
      const JsonCursor values = gaps[label];
      const auto found = dims_.find(label);
      auto entry = std::find_if(tensor.order.begin(), tensor.order.end(),
                                [&](const SdscTensorDim& e) { return found != dims_.end() && e.dim == found->second; });
      if (entry == tensor.order.end()) return values.refuse("is no dim of the tensor");
      if (values.object().empty()) return values.refuse("is empty");
      std::optional<std::int64_t> gap;
      for (const auto& [core, value] : values.object()) {
        const auto one = integer_of(value);
        if (!one || *one < 0 || *one > kMaxExtent || (gap && gap != one))
          return values[core].refuse("is no gap, or not that of the other cores");
        gap = one;
      }
      entry->gap = *gap;
    }
  }

  void read_addresses(const JsonCursor& node, SdscTensor& tensor) {
    const JsonCursor data = node["startAddressCoreCorelet_"]["data_"];
    if (static_cast<std::int64_t>(data.object().size()) != out_.model.cores) data.refuse("has not one address a core");
    for (std::int64_t core = 0; core < out_.model.cores && !error_; ++core) {
      const JsonCursor cell = data[fmt::format("[{}, 0, 0]", core)];
      const auto address = integer_of(cell.json());
      if (!address || *address > kMaxAddress || *address < -kMaxAddress) return cell.refuse("is no address");
      out_.symbolic = out_.symbolic || *address < 0;
      if (tensor.in_lx) lx_numbers_ = lx_numbers_ || cell.json().is_int();
      tensor.addresses.push_back(*address);
    }
  }

  void read_masks(const JsonCursor& masks) {
    for (const auto& [label, mask] : masks.object()) {
      const auto dim = dims_.find(label);
      if (dim == dims_.end()) return masks[label].refuse("is no dim");
      const JsonCursor pair = masks[label].at(0);
      const std::int64_t size = out_.model.dims[dim->second].size;
      const std::int64_t valid = pair.at(0).integer(1, size);
      pair.at(1).integer(size - valid, size - valid);
      out_.masks.emplace_back(dim->second, valid);
    }
  }

  // A string holds JSON of its own: "{}" where there are none.
  void read_constants(const JsonCursor& constants) {
    if (constants.json().is_string()) {
      if (constants.text() != "{}") constants.refuse("is a string other than \"{}\"");
      return;
    }
    for (const auto& [number, entry] : constants.object()) {
      const JsonCursor one = constants[number];
      const JsonCursor value = one["data_"]["data_"]["[0, 0, 0]"].at(0);
      if (!value.json().is_int()) value.refuse("is no encoded number");
      out_.constants.emplace_back(one["name_"].text(), value.json().as_int());
    }
  }

  void read_compute(const JsonCursor& ops) {
    if (ops.array().size() != 1) return ops.refuse("is not one operation");
    const JsonCursor op = ops.at(0);
    if (op["opFuncName"].text() != out_.model.op) op["opFuncName"].refuse("is not the operation of the document");
    out_.model.kind = op["exUnit"].text() == "pt" ? OpKind::kMatmul : OpKind::kPointwise;
    if (out_.model.op == "ReStickifyOpHBM") out_.model.kind = OpKind::kRestickify;
    const std::size_t last = out_.model.tensors.size() - 1;
    const std::string output = fmt::format("Tensor{}-idx{}", last, last);
    const JsonCursor inputs = op["inputLabeledDs"];
    for (const Json& name : inputs.array()) out_.output_is_input = out_.output_is_input || name.as_string() == output;
    const JsonCursor outputs = op["outputLabeledDs"];
    if (outputs.array().size() != 1 || outputs.at(0).text() != output) outputs.refuse("is not the last tensor");
    if (inputs.array().size() != last + (out_.output_is_input ? 1U : 0U)) inputs.refuse("are not the other tensors");
  }

  void set_style() {
    EmitOptions& style = out_.style;
    style.keep_splits = true;
    style.keep_device_side = true;
    style.max_cores = std::max<std::int64_t>(style.max_cores, out_.model.cores);
    style.lx_addresses_as_numbers = lx_numbers_;
    style.generation = has_indirect_ ? Generation::kJune : Generation::kEarly;
    if (!has_handle_) return;
    const bool history = out_.handle && out_.handle->transform_history.has_value();
    style.generation = history ? Generation::kJulyTransform : Generation::kJuly;
  }

  SuperdscContent out_;
  std::optional<Error> error_;
  std::map<std::string, std::size_t, std::less<>> dims_;
  std::map<std::string, Layout, std::less<>> layouts_;
  bool has_handle_ = false;
  bool has_indirect_ = false;
  bool lx_numbers_ = false;
};

// --- To an OpSpec ---------------------------------------------------------------------------------------------------

constexpr std::array<std::pair<std::string_view, DType>, 5> kFormats{{{"SEN169_FP16", DType::kFloat16},
                                                                      {"IEEE_FP32", DType::kFloat32},
                                                                      {"IEEE_INT32", DType::kInt32},
                                                                      {"SENINT8", DType::kInt8},
                                                                      {"SENUINT32", DType::kUInt8}}};

// Operations whose results or first operand are truth values, which travel as 16-bit numbers.
constexpr std::array<std::string_view, 6> kComparisons{"equal",        "notequal",   "greaterthan",
                                                       "greaterequal", "lesserthan", "lesserequal"};

std::string symbol_of(std::size_t dim) { return fmt::format("c{}", dim); }

class Recovery {
 public:
  explicit Recovery(const SuperdscContent& content) : content_(content), model_(content.model) {}

  Expected<OpSpec> run() {
    if (content_.symbolic)
      return fail(ErrorCode::kUnsupported, "its addresses are symbols, which are bound at launch only");
    spec_.op = model_.op;
    constexpr std::string_view kSuffix = "nonstick";
    if (spec_.op.size() > kSuffix.size() && spec_.op.ends_with(kSuffix))
      spec_.op.resize(spec_.op.size() - kSuffix.size());
    spec_.is_reduction = content_.output_is_input || model_.kind == OpKind::kMatmul;
    spec_.debug_handle = content_.handle;
    add_loops();
    for (std::size_t i = 0; i < model_.tensors.size(); ++i) KERNTRAIL_CHECK(add_argument(i));
    KERNTRAIL_CHECK(add_constants());
    return std::move(spec_);
  }

 private:
  void add_loops() {
    std::size_t first = 0;
    if (model_.kind == OpKind::kMatmul) {
      bool has_rows = false;
      bool has_batch = false;
      for (const SdscDim& dim : model_.dims) {
        has_rows = has_rows || dim.label == "mb";
        has_batch = has_batch || dim.label == "x";
      }
      if (has_batch && !has_rows) spec_.op_info = JsonObject{{"shared_weight_unit_bmm", true}};
      // One row: the loop is not written, since it has one iteration.
      if (model_.dims.size() == 2) {
        spec_.iteration_space.push_back({symbol_of(0), 1, 1});
        first = 1;
      }
    }
    for (std::size_t d = 0; d < model_.dims.size(); ++d) {
      symbols_.push_back(symbol_of(first + d));
      std::int64_t extent = model_.dims[d].size;
      for (const auto& [dim, valid] : content_.masks) {
        if (dim == d) extent = valid;
      }
      spec_.iteration_space.push_back({symbols_.back(), extent, model_.dims[d].split});
    }
  }

  Expected<DType> dtype_of(std::size_t i) const {
    const SdscTensor& tensor = model_.tensors[i];
    const bool compares = std::find(kComparisons.begin(), kComparisons.end(), model_.op) != kComparisons.end();
    const bool truth = (compares && i + 1 == model_.tensors.size()) || (model_.op == "where3" && i == 0);
    for (const auto& [format, dtype] : kFormats) {
      if (format != tensor.data_format) continue;
      return truth && dtype == DType::kFloat16 ? DType::kBool : dtype;
    }
    return fail(ErrorCode::kUnsupported,
                fmt::format("Tensor{} is of format {}, which no host tensor has", i, tensor.data_format));
  }

  // Device dims from the outermost in, then the stick; host dims in the same order, the stick dim last.
  Expected<void> add_argument(std::size_t i) {
    const SdscTensor& tensor = model_.tensors[i];
    TensorArg arg;
    KERNTRAIL_TRY(arg.dtype, dtype_of(i));
    if (stick_elements(arg.dtype) != tensor.stick_elements)
      return fail(ErrorCode::kSchema, fmt::format("Tensor{} has sticks of {}, its format of {}", i,
                                                  tensor.stick_elements, stick_elements(arg.dtype)));
    arg.is_input = i + 1 < model_.tensors.size();
    arg.memory = tensor.in_lx ? Memory::kLx : Memory::kHbm;
    arg.base = tensor.addresses.front();
    std::int64_t stick_extent = 0;  // of the host's stick dim; 0: none
    for (std::size_t k = tensor.order.size(); k-- > 0;) {
      const SdscTensorDim& entry = tensor.order[k];
      if (entry.scale == kScaleReduced) continue;
      KERNTRAIL_CHECK(add_device_dim(tensor, entry, arg, stick_extent));
    }
    arg.layout.device_size.push_back(tensor.stick_elements);
    arg.device_coordinates.push_back(
        stick_extent > 0 ? fmt::format("Mod({}, {})", symbols_[tensor.stick], tensor.stick_elements) : "0");
    if (stick_extent > 0) arg.host_size.push_back(stick_extent);
    finish_host_side(tensor, stick_extent, arg);
    name(arg);
    spec_.args.push_back(std::move(arg));
    return {};
  }

  Expected<void> add_device_dim(const SdscTensor& tensor, const SdscTensorDim& entry, TensorArg& arg,
                                std::int64_t& stick_extent) const {
    const auto extent = checked_add(model_.dims[entry.dim].size, entry.gap);
    if (!extent) return fail(ErrorCode::kTooLarge, "an extent leaves 64 bits");
    if (entry.dim != tensor.stick) {
      arg.layout.device_size.push_back(*extent);
      arg.device_coordinates.push_back(symbols_[entry.dim]);
      arg.host_size.push_back(*extent);
      return {};
    }
    const bool sparse = entry.scale == kScaleSparse;
    if (!sparse && *extent % tensor.stick_elements != 0)
      return fail(ErrorCode::kSchema,
                  fmt::format("{} elements of {} are no whole sticks", *extent, model_.dims[entry.dim].label));
    arg.layout.device_size.push_back(sparse ? 1 : *extent / tensor.stick_elements);
    arg.device_coordinates.push_back(sparse ? "0"
                                            : fmt::format("floor({}/{})", symbols_[entry.dim], tensor.stick_elements));
    if (!sparse) stick_extent = *extent;
    return {};
  }

  // Host strides are those of a contiguous tensor; stride_map and the index follow from them.
  void finish_host_side(const SdscTensor& tensor, std::int64_t stick_extent, TensorArg& arg) const {
    arg.host_stride = contiguous_strides(arg.host_size);
    std::size_t host = 0;
    std::string index;
    const auto add_term = [&](std::int64_t stride, const std::string& symbol) {
      if (!index.empty()) index += " + ";
      index += stride == 1 ? symbol : fmt::format("{}*{}", stride, symbol);
    };
    for (std::size_t k = tensor.order.size(); k-- > 0;) {
      const SdscTensorDim& entry = tensor.order[k];
      if (entry.scale == kScaleReduced) continue;
      if (entry.dim == tensor.stick) {
        arg.layout.stride_map.push_back(stick_extent > 0 ? tensor.stick_elements : -1);
        continue;
      }
      const std::int64_t stride = arg.host_stride[host++];
      arg.layout.stride_map.push_back(stride);
      add_term(stride, symbols_[entry.dim]);
    }
    arg.layout.stride_map.push_back(stick_extent > 0 ? 1 : -1);
    if (stick_extent > 0) add_term(1, symbols_[tensor.stick]);
    arg.index = index.empty() ? "0" : index;
  }

  void name(TensorArg& arg) const {
    for (const TensorArg& other : spec_.args) {
      const bool same = other.memory == arg.memory && other.base == arg.base &&
                        other.layout.device_size == arg.layout.device_size && other.dtype == arg.dtype;
      if (!same) continue;
      arg.name = other.name;
      arg.arg_index = other.arg_index;
      return;
    }
    std::int64_t next = 0;
    for (const TensorArg& other : spec_.args) next = std::max(next, other.arg_index + 1);
    arg.arg_index = arg.memory == Memory::kHbm ? next : -1;
    arg.name = fmt::format("t{}", spec_.args.size());
  }

  Expected<void> add_constants() {
    JsonObject constants;
    for (const auto& [name, pattern] : content_.constants) {
      if (name == kMaskConstant) continue;
      const auto value = decode_constant(pattern, spec_.args.front().dtype);
      if (!value) return fail(ErrorCode::kUnsupported, fmt::format("constant {} has no readable value", name));
      constants.emplace_back(name, *value);
    }
    if (!constants.empty()) spec_.op_info.set("constants", std::move(constants));
    return {};
  }

  const SuperdscContent& content_;
  const SdscModel& model_;
  OpSpec spec_;
  std::vector<std::string> symbols_;
};

std::string type_text(const Json& json) {
  if (json.is_object()) return "an object";
  return json.is_array() ? "an array" : json.dump();
}

}  // namespace

Expected<SuperdscContent> decode_superdsc(const Json& document) { return Decoder().run(document); }

Expected<SuperdscContent> decode_superdsc_text(std::string_view text) {
  if (text.size() > kMaxSuperdscBytes)
    return fail(ErrorCode::kTooLarge, fmt::format("is larger than {} bytes", kMaxSuperdscBytes));
  KERNTRAIL_TRY(const Json document, Json::parse(text));
  return decode_superdsc(document);
}

Expected<OpSpec> recover_op_spec(const SuperdscContent& content) { return Recovery(content).run(); }

std::string first_difference(const Json& a, const Json& b) {
  if (a.is_object() && b.is_object()) {
    const JsonObject& x = a.as_object();
    const JsonObject& y = b.as_object();
    for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
      if (i >= x.size()) return fmt::format(".{}: only the second has it", y[i].first);
      if (i >= y.size()) return fmt::format(".{}: only the first has it", x[i].first);
      if (x[i].first != y[i].first)
        return fmt::format(".{}: the second has \"{}\" in its place", x[i].first, y[i].first);
      const std::string inner = first_difference(x[i].second, y[i].second);
      if (!inner.empty()) return fmt::format(".{}{}", x[i].first, inner);
    }
    return {};
  }
  if (a.is_array() && b.is_array() && a.as_array().size() == b.as_array().size()) {
    for (std::size_t i = 0; i < a.as_array().size(); ++i) {
      const std::string inner = first_difference(a.as_array()[i], b.as_array()[i]);
      if (!inner.empty()) return fmt::format("[{}]{}", i, inner);
    }
    return {};
  }
  if (a == b) return {};
  if (a.is_array() && b.is_array()) return fmt::format(": {} and {} entries", a.as_array().size(), b.as_array().size());
  return fmt::format(": {} and {}", type_text(a), type_text(b));
}

}  // namespace kerntrail::spyre
