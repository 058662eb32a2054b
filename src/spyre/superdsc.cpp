// SuperDSC JSON from the model. Key order is the format's own.
#include "spyre/superdsc.h"

#include <functional>

#include <fmt/format.h>

#include "base/json.h"
#include "spyre/constants.h"
#include "spyre/superdsc_model.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

Json attribute(std::string_view label, std::int64_t factor) {
  return JsonObject{{"factor_", factor}, {"label_", label}};
}
Json affine(std::int64_t alpha) { return JsonObject{{"Affine", JsonObject{{"alpha_", alpha}, {"beta_", 0}}}}; }
Json fold_function(const char* name) { return JsonObject{{name, JsonObject{}}}; }

// {"0": f(0), "1": f(1), ...}
Json for_each_core(std::int64_t cores, const std::function<Json(std::int64_t)>& value) {
  JsonObject out;
  for (std::int64_t core = 0; core < cores; ++core) out.emplace_back(std::to_string(core), value(core));
  return out;
}

Json labels_of(const SdscModel& model, const SdscTensor& tensor) {
  JsonArray out;
  for (const SdscTensorDim& entry : tensor.order) out.emplace_back(model.dims[entry.dim].label);
  return out;
}

const SdscTensor& label_owner(const SdscModel& model, const SdscTensor& tensor) {
  return model.tensors[tensor.first_of_label];
}

std::string tensor_name(std::size_t i) { return fmt::format("Tensor{}", i); }
std::string tensor_ref(std::size_t i) { return fmt::format("Tensor{}-idx{}", i, i); }

// One dim of coordInfo: how the elements of a core's part lie in the dim.
Json coordinate_info(const SdscModel& model, const SdscTensor& tensor, const SdscTensorDim& entry) {
  const SdscDim& dim = model.dims[entry.dim];
  const bool normal = entry.scale == kScaleNormal;
  const bool sparse = entry.scale == kScaleSparse;
  const bool stick = entry.dim == tensor.stick;
  const std::int64_t size = normal ? dim.per_core() : 1;
  const std::int64_t split = normal ? dim.split : 1;
  const std::int64_t e = tensor.stick_elements;
  JsonArray functions;
  JsonArray attributes{attribute("core_fold", split), attribute("corelet_fold", 1), attribute("row_fold", 1)};
  if (stick) {
    functions = {affine(sparse ? e : size), affine(0), affine(0), affine(e), affine(sparse ? 0 : 1)};
    attributes.push_back(attribute("elem_arr_1", sparse ? 1 : size / e));
    attributes.push_back(attribute("elem_arr_0", e));
  } else {
    functions = {affine(size), affine(0), affine(0), affine(1)};
    attributes.push_back(attribute("elem_arr_0", size));
  }
  return JsonObject{
      {"spatial", 3},
      {"temporal", 0},
      {"elemArr", stick ? 2 : 1},
      {"padding", "nopad"},
      {"folds", JsonObject{{"dim_prop_func", std::move(functions)}, {"dim_prop_attr", std::move(attributes)}}}};
}

Json start_addresses(const SdscModel& model, const SdscTensor& tensor, const EmitOptions& options) {
  const bool number = tensor.in_lx && options.lx_addresses_as_numbers;
  JsonObject data;
  for (std::size_t core = 0; core < tensor.addresses.size(); ++core) {
    const std::int64_t address = tensor.addresses[core];
    data.emplace_back(fmt::format("[{}, 0, 0]", core), number ? Json(address) : Json(std::to_string(address)));
  }
  return JsonObject{
      {"dim_prop_func", JsonArray{fold_function("Map"), fold_function("Const"), fold_function("Const")}},
      {"dim_prop_attr", JsonArray{attribute("core", model.cores), attribute("corelet", 1), attribute("time", 1)}},
      {"data_", std::move(data)}};
}

// Device elements of a dim that lie behind the iterated ones; null where there are none.
Json back_gaps(const SdscModel& model, const SdscTensor& tensor) {
  JsonObject gaps;
  for (const SdscTensorDim& entry : tensor.order) {
    if (entry.gap == 0) continue;
    const Json gap = std::to_string(entry.gap);
    const Json value =
        tensor.in_lx ? for_each_core(model.cores, [&](std::int64_t) { return gap; }) : Json(JsonObject{{"-1", gap}});
    gaps.emplace_back(model.dims[entry.dim].label, value);
  }
  return gaps.empty() ? Json() : Json(std::move(gaps));
}

Json allocate_node(const SdscModel& model, std::size_t i, const EmitOptions& options) {
  const SdscTensor& tensor = model.tensors[i];
  const char* component = tensor.in_lx ? "lx" : "hbm";
  JsonObject node{{"nodeType_", "allocate"},
                  {"name_", fmt::format("allocate-{}_{}", tensor_name(i), component)},
                  {"prev_", ""},
                  {"ldsIdx_", i},
                  {"component_", component},
                  {"layoutDimOrder_", labels_of(model, tensor)},
                  {"maxDimSizes_", JsonArray(tensor.order.size(), Json(-1))}};
  if (options.generation >= Generation::kJune) node.emplace_back("indirectAllocType_", "no_indirection");
  node.emplace_back("startAddressCoreCorelet_", start_addresses(model, tensor, options));
  Json gaps = back_gaps(model, tensor);
  if (!gaps.is_null()) node.emplace_back("backGapCore_", std::move(gaps));
  JsonObject info;
  for (const SdscTensorDim& entry : label_owner(model, tensor).order) {
    info.emplace_back(model.dims[entry.dim].label, coordinate_info(model, tensor, *tensor.find(entry.dim)));
  }
  node.emplace_back("coordinates_", JsonObject{{"coordInfo", std::move(info)}, {"coreIdToWkSlice_", JsonObject{}}});
  return node;
}

Json labeled_ds(const SdscModel& model, std::size_t i) {
  const SdscTensor& tensor = model.tensors[i];
  JsonArray scale;
  for (const SdscTensorDim& entry : label_owner(model, tensor).order) scale.emplace_back(tensor.find(entry.dim)->scale);
  const Json present = JsonObject{{"isPresent", 1}};
  JsonObject memory;
  if (!tensor.in_lx) memory.emplace_back("hbm", present);
  memory.emplace_back("lx", present);
  return JsonObject{{"ldsIdx_", i},
                    {"dsName_", tensor_name(i)},
                    {"dsType_", tensor.label},
                    {"scale_", std::move(scale)},
                    {"wordLength", 128 / tensor.stick_elements},
                    {"dataFormat_", tensor.data_format},
                    {"memOrg_", std::move(memory)}};
}

Json primary_layouts(const SdscModel& model) {
  JsonObject out;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    const SdscTensor& tensor = model.tensors[i];
    if (tensor.first_of_label != i) continue;
    out.emplace_back(tensor.label, JsonObject{{"layoutDimOrder_", labels_of(model, tensor)},
                                              {"stickDimOrder_", JsonArray{model.dims[tensor.stick].label}},
                                              {"stickSize_", JsonArray{tensor.stick_elements}}});
  }
  return out;
}

// The string "{}" where there are none, as the reference writes it.
Expected<Json> constant_info(const SdscModel& model, const OpSpec& spec) {
  const base::JsonObject& constants = spec.op_info["constants"].as_object();
  if (constants.empty()) return Json("{}");
  JsonObject out;
  for (const auto& [name, value] : constants) {
    if (!value.is_number())
      return fail(ErrorCode::kSchema, fmt::format("constant '{}' of {} is no number", name, spec.op));
    KERNTRAIL_TRY(const std::int64_t pattern,
                  encode_constant(value.as_double(static_cast<double>(value.as_int())), spec.args.front().dtype));
    JsonObject data{
        {"dim_prop_func", JsonArray{fold_function("Const"), fold_function("Const"), fold_function("Map")}},
        {"dim_prop_attr", JsonArray{attribute("core", model.cores), attribute("corelet", 1), attribute("time", 1)}},
        {"data_", JsonObject{{"[0, 0, 0]", JsonArray{pattern}}}}};
    out.emplace_back(
        std::to_string(out.size()),
        JsonObject{{"dataFormat_", model.tensors.front().data_format}, {"name_", name}, {"data_", std::move(data)}});
  }
  return Json(std::move(out));
}

Json compute_op(const SdscModel& model) {
  const std::size_t output = model.tensors.size() - 1;
  JsonArray inputs;
  for (std::size_t i = 0; i < output; ++i) inputs.emplace_back(tensor_ref(i));
  return JsonObject{
      {"exUnit", model.kind == OpKind::kMatmul ? "pt" : "sfp"},
      {"opFuncName", model.op},
      {"attributes_", JsonObject{{"dataFormat_", model.tensors.front().data_format}, {"fidelity_", "regular"}}},
      {"location", "Inner"},
      {"inputLabeledDs", std::move(inputs)},
      {"outputLabeledDs", JsonArray{tensor_ref(output)}}};
}

Json sizes_of(const SdscModel& model, const char* name, bool per_core) {
  JsonObject out{{"name_", name}};
  for (const SdscDim& dim : model.dims) out.emplace_back(dim.label + "_", per_core ? dim.per_core() : dim.size);
  return out;
}

Expected<Json> dsc_object(const SdscModel& model, const OpSpec& spec, const EmitOptions& options) {
  JsonArray core_ids;
  for (std::int64_t core = 0; core < model.cores; ++core) core_ids.emplace_back(core);
  const Json per_core = sizes_of(model, "core", true);
  JsonArray nodes;
  JsonArray labeled;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    nodes.push_back(allocate_node(model, i, options));
    labeled.push_back(labeled_ds(model, i));
  }
  KERNTRAIL_TRY(Json constants, constant_info(model, spec));
  return Json(JsonObject{{"numCoresUsed_", model.cores},
                         {"numCoreletsUsed_", 1},
                         {"coreIdsUsed_", std::move(core_ids)},
                         {"N_", sizes_of(model, "n", false)},
                         {"coordinateMasking_", JsonObject{}},
                         {"maskingConstId_", -1},
                         {"dataStageParam_", JsonObject{{"0", JsonObject{{"ss_", per_core}, {"el_", per_core}}}}},
                         {"primaryDsInfo_", primary_layouts(model)},
                         {"scheduleTree_", std::move(nodes)},
                         {"labeledDs_", std::move(labeled)},
                         {"constantInfo_", std::move(constants)},
                         {"computeOp_", JsonArray{compute_op(model)}}});
}

Json slices_of(const SdscModel& model, std::int64_t core) {
  JsonObject out;
  const std::vector<std::int64_t>& slice = model.slices[static_cast<std::size_t>(core)];
  for (std::size_t d = 0; d < model.dims.size(); ++d) out.emplace_back(model.dims[d].label, slice[d]);
  return out;
}

// A handle as the generation writes it, constituents too.
DebugHandle handle_in(Generation generation, const DebugHandle& handle) {
  DebugHandle out = handle;
  if (generation == Generation::kJuly) out.transform_history.reset();
  if (generation == Generation::kJulyTransform && !out.transform_history) out.transform_history.emplace();
  for (DebugHandle& child : out.fused_from) child = handle_in(generation, child);
  return out;
}

}  // namespace

Expected<std::string> superdsc_json(const OpSpec& spec, std::int64_t ordinal, const EmitOptions& options) {
  KERNTRAIL_CHECK(check_emit_options(options));
  KERNTRAIL_TRY(const SdscModel model, make_superdsc_model(spec, options.max_cores));
  KERNTRAIL_TRY(Json dsc, dsc_object(model, spec, options));
  const Json once = JsonArray{attribute("time", 1)};
  JsonObject splits;
  for (const SdscDim& dim : model.dims) splits.emplace_back(dim.label, dim.split);
  const std::int64_t n = model.cores;
  JsonObject body;
  if (options.generation >= Generation::kJuly) {
    const bool known = spec.debug_handle.has_value();
    body.emplace_back("debug_handle_",
                      known ? handle_to_json(handle_in(options.generation, *spec.debug_handle)) : Json());
  }
  const JsonObject rest{
      {"sdscFoldProps_", once},
      {"sdscFolds_",
       JsonObject{
           {"dim_prop_func", JsonArray{affine(1)}}, {"dim_prop_attr", once}, {"data_", JsonObject{{"[0]", "0"}}}}},
      {"coreFoldProp_", attribute("core", n)},
      {"coreletFoldProp_", attribute("corelet", 1)},
      {"numCoresUsed_", n},
      {"coreIdToDsc_", for_each_core(n, [](std::int64_t) { return Json(0); })},
      {"numWkSlicesPerDim_", std::move(splits)},
      {"coreIdToWkSlice_", for_each_core(n, [&](std::int64_t core) { return slices_of(model, core); })},
      {"coreIdToDscSchedule", for_each_core(n, [](std::int64_t) { return Json(JsonArray{JsonArray{-1, 0, 0, 0}}); })},
      {"dscs_", JsonArray{JsonObject{{model.op, std::move(dsc)}}}}};
  body.insert(body.end(), rest.begin(), rest.end());
  return Json(JsonObject{{fmt::format("{}_{}", ordinal, model.op), std::move(body)}}).dump(2);
}

}  // namespace kerntrail::spyre
