#include "spyre/validate_content.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "spyre/checked.h"
#include "spyre/layout.h"
#include "spyre/tensor_part.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using Names = std::string_view;

constexpr std::array<Names, 21> kFormats{
    "SEN169_FP16", "IEEE_FP32",   "IEEE_FP16",  "BFLOAT16",   "BOOL",       "SEN143_FP8", "SEN152_FP8",
    "SEN153_FP9",  "SEN18F_FP24", "SEN080_FP8", "SEN053_FP8", "SENINT2",    "SENINT4",    "SENINT8",
    "SENINT16",    "SENINT24",    "SENUINT2",   "SENUINT32",  "IEEE_INT32", "IEEE_INT64", "SEN121_FP4"};
constexpr std::array<Names, 6> kPaddings{"nopad",           "lowered_padded",  "padded_nozeropad",
                                         "padded_wzeropad", "padded_fullspan", "padded_fullspan_wunneeded"};
constexpr std::array<Names, 2> kFidelities{"regular", "fast"};
constexpr std::array<Names, 2> kUnits{"pt", "sfp"};
constexpr std::array<Names, 4> kFolds{"Const", "Map", "Affine", "WkSplit"};

template <std::size_t N>
bool holds(const std::array<Names, N>& names, Names name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class ContentRules {
 public:
  ContentRules(const Json& document, const SuperdscContent& content, std::vector<Diagnostic>& found)
      : content_(content), model_(content.model), found_(found) {
    key_ = document.as_object()[0].first;
    body_ = &document.as_object()[0].second;
    const auto& member = (*body_)["dscs_"].as_array()[0].as_object()[0];
    dsc_ = &member.second;
    place_ = key_ + ".dscs_[0]." + member.first;
  }

  void run() {
    check_names();
    check_enumerations();
    check_core_map();
    check_constants();
    for (std::size_t i = 0; i < model_.tensors.size(); ++i) {
      check_word(i);
      check_folds(i);
      check_gaps(i);
      if (content_.symbolic) continue;
      check_places(i);
    }
    if (!content_.symbolic) check_regions();
  }

 private:
  void report(Names code, std::string message, const std::string& place) {
    found_.push_back({std::string(code), std::move(message), place});
  }
  std::string node_place(std::size_t i) const { return fmt::format("{}.scheduleTree_[{}]", place_, i); }
  std::string labeled_place(std::size_t i) const { return fmt::format("{}.labeledDs_[{}]", place_, i); }
  const Json& node(std::size_t i) const { return (*dsc_)["scheduleTree_"].as_array()[i]; }
  const Json& labeled(std::size_t i) const { return (*dsc_)["labeledDs_"].as_array()[i]; }

  void check_names() {
    if (const Json* handle = body_->find("debug_handle_");
        handle != nullptr && body_->as_object()[0].first != "debug_handle_")
      report("sdsc-handle-first", "debug_handle_ is not the first key", key_ + ".debug_handle_");
    for (std::size_t i = 0; i < model_.tensors.size(); ++i) {
      const std::string tensor = fmt::format("Tensor{}", i);
      if (labeled(i)["dsName_"].as_string() != tensor)
        report("sdsc-names", fmt::format("tensor {} is not named {}", i, tensor), labeled_place(i) + ".dsName_");
      const std::string name = fmt::format("allocate-{}_{}", tensor, model_.tensors[i].in_lx ? "lx" : "hbm");
      if (node(i)["name_"].as_string() != name)
        report("sdsc-names", fmt::format("the node is not named {}", name), node_place(i) + ".name_");
      if (node(i)["ldsIdx_"].as_int(-1) != static_cast<std::int64_t>(i))
        report("sdsc-names", fmt::format("the node is not that of tensor {}", i), node_place(i) + ".ldsIdx_");
    }
  }

  void check_enumerations() {
    const auto check = [&](const auto& names, const Json& value, const std::string& place) {
      if (!holds(names, value.as_string()))
        report("sdsc-enum", fmt::format("\"{}\" is none of the format's values", value.as_string()), place);
    };
    for (std::size_t i = 0; i < model_.tensors.size(); ++i) {
      check(kFormats, labeled(i)["dataFormat_"], labeled_place(i) + ".dataFormat_");
      check(std::array<Names, 1>{"allocate"}, node(i)["nodeType_"], node_place(i) + ".nodeType_");
      for (const auto& [dim, info] : node(i)["coordinates_"]["coordInfo"].as_object()) {
        const std::string place = fmt::format("{}.coordinates_.coordInfo.{}", node_place(i), dim);
        check(kPaddings, info["padding"], place + ".padding");
        for (const Json& fold : info["folds"]["dim_prop_func"].as_array()) {
          const Names name = fold.as_object().empty() ? Names() : Names(fold.as_object()[0].first);
          check(kFolds, Json(name), place + ".folds.dim_prop_func");
        }
      }
    }
    const Json& op = (*dsc_)["computeOp_"].as_array()[0];
    check(kUnits, op["exUnit"], place_ + ".computeOp_[0].exUnit");
    check(kFormats, op["attributes_"]["dataFormat_"], place_ + ".computeOp_[0].attributes_.dataFormat_");
    check(kFidelities, op["attributes_"]["fidelity_"], place_ + ".computeOp_[0].attributes_.fidelity_");
  }

  // An odometer, first dim fastest; the reduction dim of a matmul may run fastest instead.
  void check_core_map() {
    const std::size_t n = model_.dims.size();
    std::vector<std::size_t> order(n);
    for (std::size_t d = 0; d < n; ++d) order[d] = d;
    if (is_odometer(order)) return;
    std::rotate(order.begin(), order.end() - 1, order.end());
    if (model_.kind == OpKind::kMatmul && is_odometer(order)) return;
    report("sdsc-core-map", "the cores do not take their slices in the format's order", key_ + ".coreIdToWkSlice_");
  }

  bool is_odometer(const std::vector<std::size_t>& fastest_first) const {
    for (std::size_t core = 0; core < model_.slices.size(); ++core) {
      auto rest = static_cast<std::int64_t>(core);
      for (const std::size_t d : fastest_first) {
        if (model_.slices[core][d] != rest % model_.dims[d].split) return false;
        rest /= model_.dims[d].split;
      }
    }
    return true;
  }

  void check_constants() {
    const std::string place = place_ + ".constantInfo_";
    bool has_mask = false;
    for (const auto& [name, value] : content_.constants) {
      has_mask = has_mask || name == "samv-maskvalue";
      if (value < -(std::int64_t{1} << 31) || value > 0xffffffff)
        report("sdsc-constants", fmt::format("{} is encoded in more than 32 bits", name), place);
    }
    if (!content_.masks.empty() && !has_mask) report("sdsc-constants", "there is a mask and no samv-maskvalue", place);
    for (const auto& [number, entry] : (*dsc_)["constantInfo_"].as_object()) {
      if (!holds(kFormats, entry["dataFormat_"].as_string()))
        report("sdsc-constants", fmt::format("constant {} is of no known format", number), place);
    }
  }

  void check_word(std::size_t i) {
    const std::int64_t word = labeled(i)["wordLength"].as_int(-1);
    if (word < 1 || word * model_.tensors[i].stick_elements != kStickBytes)
      report("sdsc-word-length",
             fmt::format("{} elements of {} bytes are no stick of {} bytes", model_.tensors[i].stick_elements, word,
                         kStickBytes),
             labeled_place(i) + ".wordLength");
  }

  // core_fold shares the dim among cores, the element folds cover a core's part.
  void check_folds(std::size_t i) {
    const SdscTensor& tensor = model_.tensors[i];
    for (const SdscTensorDim& entry : tensor.order) {
      const SdscDim& dim = model_.dims[entry.dim];
      const Json& info = node(i)["coordinates_"]["coordInfo"][dim.label];
      const bool normal = entry.scale == kScaleNormal;
      const bool stick = entry.dim == tensor.stick;
      std::map<std::string_view, std::int64_t> factors;
      for (const Json& attribute : info["folds"]["dim_prop_attr"].as_array())
        factors.emplace(attribute["label_"].as_string(), attribute["factor_"].as_int(-1));
      const std::int64_t e = tensor.stick_elements;
      const std::int64_t part = normal ? dim.per_core() : 1;
      std::map<std::string_view, std::int64_t> wanted{
          {"core_fold", normal ? dim.split : 1}, {"corelet_fold", 1}, {"row_fold", 1}};
      wanted["elem_arr_0"] = stick ? e : part;
      if (stick) wanted["elem_arr_1"] = normal ? part / e : 1;
      const Json& first = info["folds"]["dim_prop_func"].as_array().empty()
                              ? Json()
                              : info["folds"]["dim_prop_func"].as_array()[0]["Affine"]["alpha_"];
      const bool steps = first.as_int(-1) == (normal ? part : stick ? e : 1);
      if (factors != wanted || !steps)
        report("sdsc-fold-sizes", fmt::format("the folds of {} do not cover a core's part of it", dim.label),
               fmt::format("{}.coordinates_.coordInfo.{}", node_place(i), dim.label));
    }
  }

  void check_gaps(std::size_t i) {
    const SdscTensor& tensor = model_.tensors[i];
    for (const SdscTensorDim& entry : tensor.order) {
      const bool whole = entry.dim != tensor.stick || entry.gap % tensor.stick_elements == 0;
      const bool listed = entry.scale == kScaleNormal || entry.gap == 0;
      if (!whole || !listed)
        report(
            "sdsc-gap",
            fmt::format("the gap of {} is no whole sticks, or the tensor lacks the dim", model_.dims[entry.dim].label),
            node_place(i) + ".backGapCore_");
    }
  }

  void check_places(std::size_t i) {
    const SdscTensor& tensor = model_.tensors[i];
    const std::string place = node_place(i) + ".startAddressCoreCorelet_.data_";
    const auto cell = [&](std::size_t core) { return fmt::format("{}.[{}, 0, 0]", place, core); };
    const auto part = tensor_part(model_, tensor);
    if (!part) return report("sdsc-sizes", part.error().message, node_place(i));
    for (std::size_t core = 0; core < tensor.addresses.size(); ++core) {
      const std::int64_t address = tensor.addresses[core];
      if (address % kStickBytes != 0) {
        report("sdsc-alignment", fmt::format("address {} is no multiple of {}", address, kStickBytes), cell(core));
        return;
      }
      if (tensor.in_lx) {
        if (address != tensor.addresses[0]) {
          report("sdsc-lx-cores", fmt::format("core {} has it at {}, core 0 at {}", core, address, tensor.addresses[0]),
                 cell(core));
          return;
        }
        if (address + part->bytes > kLxBytes) {
          report("sdsc-lx-limit", fmt::format("it ends at {} of {} bytes", address + part->bytes, kLxBytes),
                 cell(core));
          return;
        }
        continue;
      }
      const std::int64_t wanted = tensor.addresses[0] + part->start(model_, core) - part->start(model_, 0);
      if (address != wanted) {
        report("sdsc-address-rule", fmt::format("core {} begins at {}; its slices lie at {}", core, address, wanted),
               cell(core));
        return;
      }
    }
    const std::int64_t first = tensor.addresses[0];
    if (!tensor.in_lx && first / kSegmentBytes != (first + part->bytes - 1) / kSegmentBytes)
      report("sdsc-segment", fmt::format("it lies from {} over the end of its segment", first), place);
  }

  // What each core writes, as boxes in the output's device coordinates.
  void check_regions() {
    const std::size_t last = model_.tensors.size() - 1;
    const SdscTensor& output = model_.tensors[last];
    const auto part = tensor_part(model_, output);
    if (!part || output.in_lx) return;
    const std::string place = node_place(last) + ".startAddressCoreCorelet_.data_";
    std::map<std::int64_t, std::size_t> owners;  // begin of a region, first core that writes it
    std::map<std::vector<std::int64_t>, std::int64_t> begins;  // output slices, begin
    for (std::size_t core = 0; core < output.addresses.size(); ++core) {
      std::vector<std::int64_t> slices;
      for (const SdscTensorDim& entry : output.order) {
        if (entry.scale == kScaleNormal) slices.push_back(model_.slices[core][entry.dim]);
      }
      const std::int64_t begin = output.addresses[core];
      if (begins.emplace(slices, begin).first->second != begin)
        return report("sdsc-regions", fmt::format("core {} and another with the same part write to two places", core),
                      place);
      owners.emplace(begin, core);
    }
    if (owners.size() != begins.size())
      return report("sdsc-regions", "two cores write different parts to one place", place);
    std::vector<Box> boxes;
    for (const auto& [begin, core] : owners) {
      const auto box = part->box_at(begin - output.addresses[0]);
      if (!box) return report("sdsc-regions", fmt::format("core {} writes outside the tensor", core), place);
      boxes.push_back(*box);
    }
    // Sorted by begin: equal parts of one size overlap exactly where their boxes do.
    for (std::size_t a = 0; a < boxes.size(); ++a) {
      for (std::size_t b = a + 1; b < boxes.size(); ++b) {
        if (overlap(boxes[a], boxes[b])) return report("sdsc-regions", "two cores write to the same elements", place);
      }
    }
    std::int64_t parts = 1;
    for (const SdscTensorDim& entry : output.order) {
      if (entry.scale == kScaleNormal) parts *= model_.dims[entry.dim].split;
    }
    if (static_cast<std::int64_t>(boxes.size()) != parts)
      report("sdsc-regions", fmt::format("{} of {} parts of the output are written", boxes.size(), parts), place);
  }

  const SuperdscContent& content_;
  const SdscModel& model_;
  std::vector<Diagnostic>& found_;
  std::string key_, place_;
  const Json* body_ = nullptr;
  const Json* dsc_ = nullptr;
};

}  // namespace

void validate_content(const Json& document, const SuperdscContent& content, std::vector<Diagnostic>& found) {
  ContentRules(document, content, found).run();
}

}  // namespace kerntrail::spyre
