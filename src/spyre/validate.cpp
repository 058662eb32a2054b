// Rules on SuperDSC documents. Every check reports and goes on, so that one document gives all its problems at once.
#include "spyre/validate.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "spyre/checked.h"
#include "spyre/layout.h"
#include "spyre/op_spec.h"
#include "spyre/superdsc_reader.h"
#include "spyre/validate_content.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonMember;

constexpr std::size_t kMaxLabeled = 8;
// Cores a document is read for; a larger number is reported, not walked.
constexpr std::int64_t kMaxCores = 1 << 16;

std::optional<std::int64_t> address_of(const Json& value) {
  if (value.is_int()) return value.as_int();
  const std::string_view text = value.as_string();
  std::int64_t address = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), address);
  if (text.empty() || result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return address;
}

// "<digits>_<name>"; the name, or nothing.
std::optional<std::string_view> op_of_key(std::string_view key) {
  const std::size_t bar = key.find('_');
  if (bar == std::string_view::npos || bar == 0 || bar + 1 == key.size()) return std::nullopt;
  const std::string_view digits = key.substr(0, bar);
  const bool number = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number ? std::optional<std::string_view>(key.substr(bar + 1)) : std::nullopt;
}

class Validator {
 public:
  std::vector<Diagnostic> run(const Json& document) {
    if (document.as_object().size() != 1 || !op_of_key(document.as_object()[0].first)) {
      report("sdsc-top-key", "the document is not one object under \"<number>_<operation>\"", "");
      return std::move(found_);
    }
    key_ = document.as_object()[0].first;
    const Json& body = document.as_object()[0].second;
    const Json* handle = body.find("debug_handle_");
    if (handle != nullptr && !handle->is_null() && !handle_from_json(*handle)) {
      report("sdsc-handle", "debug_handle_ is neither null nor a handle", ".debug_handle_");
    }
    const bool has_compute = body.find("dscs_") != nullptr;
    if (has_compute == (body.find("dataOpdscs_") != nullptr)) {
      report("sdsc-one-dsc", "exactly one of dscs_ and dataOpdscs_ is needed", "");
    }
    if (!has_compute) return std::move(found_);
    const auto& list = body["dscs_"].as_array();
    if (list.size() != 1 || list[0].as_object().size() != 1) {
      report("sdsc-one-dsc", "dscs_ is not one object with one operation", ".dscs_");
      return std::move(found_);
    }
    const JsonMember& member = list[0].as_object()[0];
    place_ = ".dscs_[0]." + member.first;
    check_cores(body, member.second);
    check_slices(body);
    check_sizes(member.second);
    check_labels(member.second);
    check_nodes(member.second);
    check_compute(member.second);
    check_output_regions(body, member.second);
    const Expected<SuperdscContent> content = decode_superdsc(document);
    if (content) {
      validate_content(document, *content, found_);
    } else if (found_.empty() && content.error().code != ErrorCode::kUnsupported) {  // that is for unjudged_files()
      const std::size_t end = content.error().message.find(' ');
      found_.push_back({"sdsc-shape", content.error().message.substr(end == std::string::npos ? 0 : end + 1),
                        content.error().message.substr(0, end)});
    }
    return std::move(found_);
  }

 private:
  void report(std::string code, std::string message, std::string_view place) {
    found_.push_back({std::move(code), std::move(message), key_ + std::string(place)});
  }
  void report_dsc(std::string code, std::string message, std::string_view place) {
    report(std::move(code), std::move(message), place_ + std::string(place));
  }

  void check_cores(const Json& body, const Json& dsc) {
    cores_ = body["numCoresUsed_"].as_int(-1);
    if (cores_ < 1 || cores_ > kMaxCores) {
      report("sdsc-cores", "numCoresUsed_ is no number of cores", ".numCoresUsed_");
      cores_ = 0;
      return;
    }
    if (dsc["numCoresUsed_"].as_int(-1) != cores_)
      report_dsc("sdsc-cores", "the two numbers of cores differ", ".numCoresUsed_");
    const auto& ids = dsc["coreIdsUsed_"].as_array();
    bool counted = static_cast<std::int64_t>(ids.size()) == cores_;
    for (std::size_t i = 0; i < ids.size(); ++i) counted = counted && ids[i].as_int(-1) == static_cast<std::int64_t>(i);
    if (!counted) report_dsc("sdsc-cores", "coreIdsUsed_ does not count numCoresUsed_ cores from 0", ".coreIdsUsed_");
    for (const char* key : {"coreIdToDsc_", "coreIdToWkSlice_", "coreIdToDscSchedule"}) {
      if (static_cast<std::int64_t>(body[key].as_object().size()) != cores_) {
        report("sdsc-cores", "an entry a core is needed", std::string(".") + key);
      }
    }
    std::int64_t product = 1;
    for (const auto& [dim, split] : body["numWkSlicesPerDim_"].as_object()) {
      splits_[dim] = split.as_int(0);
      product = split.as_int(0) < 1 ? 0 : checked_multiply(product, split.as_int()).value_or(0);
    }
    if (product != cores_) report("sdsc-cores", "the splits do not multiply to numCoresUsed_", ".numWkSlicesPerDim_");
  }

  void check_slices(const Json& body) {
    std::set<std::vector<std::int64_t>> seen;
    for (const auto& [core, slices] : body["coreIdToWkSlice_"].as_object()) {
      std::vector<std::int64_t> slice;
      for (const auto& [dim, split] : splits_) {
        const std::int64_t index = slices[dim].as_int(-1);
        if (index < 0 || index >= split)
          report("sdsc-core-slices", fmt::format("core {} has no slice of {}", core, dim), ".coreIdToWkSlice_");
        slice.push_back(index);
      }
      if (slices.as_object().size() != splits_.size()) {
        report("sdsc-core-slices", fmt::format("core {} names other dims than numWkSlicesPerDim_", core),
               ".coreIdToWkSlice_");
      }
      if (!seen.insert(slice).second) {
        report("sdsc-core-slices", fmt::format("core {} repeats another core's work", core), ".coreIdToWkSlice_");
      }
    }
  }

  // "mb_" -> "mb"; dims are the members of N_ without its name.
  void check_sizes(const Json& dsc) {
    for (const auto& [key, size] : dsc["N_"].as_object()) {
      if (key == "name_") continue;
      if (key.size() < 2 || key.back() != '_' || size.as_int(0) < 1) {
        report_dsc("sdsc-sizes", fmt::format("{} is no size of a dim", key), ".N_");
        continue;
      }
      sizes_[key.substr(0, key.size() - 1)] = size.as_int();
    }
    for (const auto& [dim, split] : splits_) {
      if (sizes_.count(dim) == 0) report("sdsc-dims", fmt::format("dim {} is not in N_", dim), ".numWkSlicesPerDim_");
    }
    if (splits_.size() != sizes_.size())
      report("sdsc-dims", "N_ and the splits have different dims", ".numWkSlicesPerDim_");
    for (const char* part : {"ss_", "el_"}) {
      for (const auto& [dim, size] : sizes_) {
        const auto split = splits_.find(dim);
        const std::int64_t per_core = dsc["dataStageParam_"]["0"][part][dim + "_"].as_int(-1);
        if (split == splits_.end() || split->second < 1) continue;
        const auto whole = checked_multiply(per_core, split->second);
        if (whole != size) {
          report_dsc("sdsc-sizes", fmt::format("{} of {} times its split is not N_", dim, part), ".dataStageParam_");
        }
      }
    }
    const bool masked = !dsc["coordinateMasking_"].as_object().empty();
    if (masked != (dsc["maskingConstId_"].as_int(-1) >= 0)) {
      report_dsc("sdsc-masking", "a mask and its constant go together", ".maskingConstId_");
    }
    for (const JsonMember& mask : dsc["coordinateMasking_"].as_object()) check_dim(mask.first, ".coordinateMasking_");
  }

  void check_dim(std::string_view dim, std::string_view place) {
    if (sizes_.find(std::string(dim)) == sizes_.end())
      report_dsc("sdsc-dims", fmt::format("dim {} is not in N_", dim), place);
  }

  void check_labels(const Json& dsc) {
    for (const auto& [label, info] : dsc["primaryDsInfo_"].as_object()) {
      const auto& order = info["layoutDimOrder_"].as_array();
      std::vector<std::string> dims;
      for (const Json& dim : order) {
        check_dim(dim.as_string(), ".primaryDsInfo_");
        dims.emplace_back(dim.as_string());
      }
      const auto& stick = info["stickDimOrder_"].as_array();
      const auto& size = info["stickSize_"].as_array();
      const bool one = stick.size() == 1 && size.size() == 1 && size[0].as_int() > 0;
      if (!one || std::find(dims.begin(), dims.end(), stick[0].as_string()) == dims.end()) {
        report_dsc("sdsc-labels", fmt::format("{} has not one stick dim of its own", label), ".primaryDsInfo_");
        continue;
      }
      orders_[label] = std::move(dims);
      sticks_[label] = std::string(stick[0].as_string());
      const auto found = sizes_.find(sticks_[label]);
      if (found != sizes_.end() && found->second % size[0].as_int() != 0) {
        report_dsc("sdsc-sizes", fmt::format("{} does not iterate whole sticks", label), ".primaryDsInfo_");
      }
    }
    const auto& labeled = dsc["labeledDs_"].as_array();
    if (labeled.empty() || labeled.size() > kMaxLabeled) {
      report_dsc("sdsc-labels", fmt::format("{} labeled tensors; 1 to {} are allowed", labeled.size(), kMaxLabeled),
                 ".labeledDs_");
    }
    for (std::size_t i = 0; i < labeled.size(); ++i) {
      const Json& entry = labeled[i];
      const auto order = orders_.find(std::string(entry["dsType_"].as_string()));
      if (order == orders_.end()) {
        report_dsc("sdsc-labels", fmt::format("tensor {} has a label that primaryDsInfo_ lacks", i), ".labeledDs_");
      } else if (order->second.size() != entry["scale_"].as_array().size()) {
        report_dsc("sdsc-labels", fmt::format("tensor {} has not one scale a dim", i), ".labeledDs_");
      }
      if (entry["ldsIdx_"].as_int(-1) != static_cast<std::int64_t>(i)) {
        report_dsc("sdsc-labels", fmt::format("tensor {} has another ldsIdx_", i), ".labeledDs_");
      }
      names_.insert(fmt::format("{}-idx{}", entry["dsName_"].as_string(), i));
    }
  }

  void check_nodes(const Json& dsc) {
    const auto& nodes = dsc["scheduleTree_"].as_array();
    if (nodes.size() != dsc["labeledDs_"].as_array().size()) {
      report_dsc("sdsc-tensors", "not one allocate node a tensor", ".scheduleTree_");
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Json& node = nodes[i];
      const std::string place = fmt::format(".scheduleTree_[{}]", i);
      const auto& order = node["layoutDimOrder_"].as_array();
      for (const Json& dim : order) check_dim(dim.as_string(), place);
      if (node["maxDimSizes_"].as_array().size() != order.size()) {
        report_dsc("sdsc-tensors", "maxDimSizes_ has not one entry a dim", place);
      }
      check_addresses(node, place);
      const auto& info = node["coordinates_"]["coordInfo"].as_object();
      if (info.size() != order.size())
        report_dsc("sdsc-tensors", "coordInfo has other dims than layoutDimOrder_", place);
      for (const auto& [dim, coordinate] : info) {
        check_dim(dim, place);
        const std::int64_t expected = coordinate["elemArr"].as_int(-1) + 3;
        const auto& folds = coordinate["folds"];
        if (static_cast<std::int64_t>(folds["dim_prop_func"].as_array().size()) != expected ||
            static_cast<std::int64_t>(folds["dim_prop_attr"].as_array().size()) != expected) {
          report_dsc("sdsc-folds", fmt::format("{} has not elemArr + 3 folds", dim), place);
        }
      }
    }
  }

  void check_addresses(const Json& node, const std::string& place) {
    const auto& data = node["startAddressCoreCorelet_"]["data_"].as_object();
    if (static_cast<std::int64_t>(data.size()) != cores_) report_dsc("sdsc-address", "not one address a core", place);
    const bool symbolic = node["isStartAddrSymbolic_"].as_int(0) == 1;
    for (const auto& [core, value] : data) {
      const std::optional<std::int64_t> address = address_of(value);
      if (!address || (*address < 0) != symbolic) {
        report_dsc("sdsc-address", fmt::format("core {} has no address of the node's kind", core), place);
      }
    }
  }

  void check_compute(const Json& dsc) {
    const auto& ops = dsc["computeOp_"].as_array();
    if (ops.size() != 1) report_dsc("sdsc-compute", "not one compute operation", ".computeOp_");
    for (const Json& op : ops) {
      for (const char* key : {"inputLabeledDs", "outputLabeledDs", "indirectAccessIndexLabeledDs"}) {
        for (const Json& name : op[key].as_array()) {
          if (names_.count(std::string(name.as_string())) == 0) {
            report_dsc("sdsc-compute", fmt::format("tensor {} does not exist", name.as_string()), ".computeOp_");
          }
        }
      }
      if (op["outputLabeledDs"].as_array().empty()) report_dsc("sdsc-compute", "it writes nothing", ".computeOp_");
    }
  }

  // With symbolic addresses: cores that differ in a dim of an HBM output have different symbols; cores that differ only
  // in a dim the output lacks (parts of one product) have the same. Concrete ones are for validate_content.
  void check_output_regions(const Json& body, const Json& dsc) {
    const auto& nodes = dsc["scheduleTree_"].as_array();
    const auto& labeled = dsc["labeledDs_"].as_array();
    if (nodes.empty() || nodes.size() != labeled.size()) return;
    const Json& node = nodes.back();
    const auto order = orders_.find(std::string(labeled.back()["dsType_"].as_string()));
    const bool symbolic = node["isStartAddrSymbolic_"].as_int(0) == 1;
    if (!symbolic || node["component_"].as_string() != "hbm" || order == orders_.end()) return;
    const auto& scale = labeled.back()["scale_"].as_array();
    std::map<std::vector<std::int64_t>, std::string> place_of;
    std::map<std::string, std::vector<std::int64_t>> owner_of;
    for (const auto& [core, slices] : body["coreIdToWkSlice_"].as_object()) {
      std::vector<std::int64_t> slice;
      for (std::size_t d = 0; d < order->second.size() && d < scale.size(); ++d) {
        if (scale[d].as_int() > 0) slice.push_back(slices[order->second[d]].as_int(-1));
      }
      const Json& value = node["startAddressCoreCorelet_"]["data_"][fmt::format("[{}, 0, 0]", core)];
      const std::string address = value.is_int() ? std::to_string(value.as_int()) : std::string(value.as_string());
      const bool same_place = place_of.emplace(slice, address).first->second == address;
      const bool same_owner = owner_of.emplace(address, slice).first->second == slice;
      if (!same_place || !same_owner) {
        report_dsc("sdsc-regions", fmt::format("core {} and another do not divide the output", core), ".scheduleTree_");
        return;
      }
    }
  }

  std::vector<Diagnostic> found_;
  std::string key_;
  std::string place_;
  std::int64_t cores_ = 0;
  std::map<std::string, std::int64_t> splits_;
  std::map<std::string, std::int64_t> sizes_;
  std::map<std::string, std::vector<std::string>> orders_;
  std::map<std::string, std::string> sticks_;
  std::set<std::string> names_;
};

}  // namespace

const std::vector<ValidationRule>& validation_rules() {
  static const std::vector<ValidationRule> kRules{
      {"bundle-program", "bundle.mlir is there and runs a list of files of the folder, in the static form"},
      {"bundle-unreadable", "every file that the program runs is a JSON document of the format, in the folder itself"},
      {"bundle-unlisted", "every sdsc file of the folder is run"},
      {"bundle-order", "the files run in the order of the numbers in their keys, which count from 0"},
      {"bundle-file-name", "a file's name says the number, and where it has one the operation, of its key"},
      {"bundle-generation", "all files are written in one generation of the format"},
      {"bundle-lx-unwritten", "what is read from a scratchpad was written there before, over the same cores"},
      {"bundle-overlap", "no operation writes over what a later one still reads as something else"},
      {"sdsc-top-key", "the document is one object under \"<number>_<operation>\""},
      {"sdsc-shape", "every member that the format needs is there and of its kind"},
      {"sdsc-one-dsc", "exactly one of dscs_ and dataOpdscs_ is there, with exactly one operation"},
      {"sdsc-handle", "debug_handle_ is null or a handle"},
      {"sdsc-handle-first", "debug_handle_ is the first key"},
      {"sdsc-cores", "the splits multiply to numCoresUsed_, and every list and map has an entry a core"},
      {"sdsc-core-slices", "every core has a slice of each dim below its split, and no two cores the same slices"},
      {"sdsc-core-map", "slices are dealt out with the first dim fastest, or the reduction dim of a matmul"},
      {"sdsc-dims", "dims of every structure come from N_"},
      {"sdsc-sizes", "sizes are whole sticks and divide by their splits; ss_ and el_ are N_ over the split"},
      {"sdsc-masking", "a mask and the number of its constant go together"},
      {"sdsc-labels", "1 to 8 tensors, each with a label of primaryDsInfo_ and one scale a dim of it"},
      {"sdsc-names", "tensors, nodes and their numbers are named after their place in the list"},
      {"sdsc-enum", "formats, paddings, units, folds and fidelities are values of the format"},
      {"sdsc-word-length", "wordLength times stickSize_ is 128 bytes"},
      {"sdsc-tensors", "one allocate node a tensor, with one entry a dim in each of its lists"},
      {"sdsc-folds", "the number of fold functions and attributes is elemArr + 3"},
      {"sdsc-fold-sizes", "the folds of a dim multiply to a core's part of it and step by that part"},
      {"sdsc-gap", "a gap is whole sticks along the stick, and only of dims that the tensor has"},
      {"sdsc-constants", "constants fit 32 bits and a known format; a mask has its samv-maskvalue"},
      {"sdsc-compute", "one operation that writes the last tensor; every tensor it names exists"},
      {"sdsc-address", "one address a core: a number from 0 on, or a symbol's number where the node is symbolic"},
      {"sdsc-alignment", "every address is a multiple of 128"},
      {"sdsc-address-rule", "a core's address is core 0's plus its slices times the extent strides"},
      {"sdsc-segment", "a tensor lies in one segment of 16 GiB"},
      {"sdsc-lx-cores", "a scratchpad address is the same on every core"},
      {"sdsc-lx-limit", "a scratchpad tensor ends at or below 1625344 bytes"},
      {"sdsc-regions", "what different cores write is disjoint and covers the output"}};
  return kRules;
}

std::vector<Diagnostic> validate_superdsc(const Json& document) { return Validator().run(document); }

}  // namespace kerntrail::spyre
