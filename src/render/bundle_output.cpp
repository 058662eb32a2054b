#include "render/bundle_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/strings.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using spyre::SdscDim;
using spyre::SdscModel;
using spyre::SdscTensor;
using spyre::SuperdscContent;

std::int64_t count(std::size_t n) { return static_cast<std::int64_t>(n); }

std::string_view kind_name(spyre::OpKind kind) {
  switch (kind) {
    case spyre::OpKind::kPointwise: return "pointwise";
    case spyre::OpKind::kMatmul: return "matmul";
    case spyre::OpKind::kConversion: return "conversion";
    case spyre::OpKind::kRestickify: return "restickify";
  }
  return "unknown";
}

std::string_view mode_name(spyre::AddressMode mode) {
  return mode == spyre::AddressMode::kConcrete ? "concrete" : "symbolic";
}

std::string files_text(const spyre::Bundle& bundle) {
  const std::string files = base::counted(bundle.entries.size(), "file");
  if (bundle.directory.empty()) return "one file";
  if (bundle.program_error)
    return files + ", by their numbers; bundle.mlir can't be read: " + visible(bundle.program_error->text());
  if (!bundle.program) return files + ", by their numbers: there is no bundle.mlir";
  return files + ", in the order that bundle.mlir runs them";
}

std::string dim_text(const SdscDim& dim) {
  std::string out = fmt::format("{} {}", visible(dim.label), dim.size);
  if (dim.split > 1)
    out +=
        fmt::format(" over {} ({} each)", base::counted(static_cast<std::size_t>(dim.split), "core"), dim.per_core());
  return out;
}

// "mb 64, in 128 (sticks of 64)"; dims that the tensor does not have are left out.
std::string shape_text(const SdscModel& model, const SdscTensor& tensor) {
  std::vector<std::string> parts;
  for (auto at = tensor.order.rbegin(); at != tensor.order.rend(); ++at) {
    if (at->scale == spyre::kScaleReduced || at->dim >= model.dims.size()) continue;
    const SdscDim& dim = model.dims[at->dim];
    std::string part = fmt::format("{} {}", visible(dim.label), at->scale == spyre::kScaleSparse ? 1 : dim.size);
    if (at->gap > 0) part += fmt::format("+{}", at->gap);
    if (at->dim == tensor.stick) part += fmt::format(" in sticks of {}", tensor.stick_elements);
    parts.push_back(std::move(part));
  }
  return parts.empty() ? "one stick" : base::join(parts, ", ");
}

// "0x400000000", "0x0 to 0x1f00, 0x100 a core"
std::string addresses_text(const std::vector<std::int64_t>& all, bool symbolic) {
  if (all.empty()) return "no address";
  const auto one = [&](std::int64_t v) { return symbolic ? fmt::format("symbol {}", v) : fmt::format("{:#x}", v); };
  const bool same = std::all_of(all.begin(), all.end(), [&](std::int64_t v) { return v == all.front(); });
  if (same) return one(all.front()) + (all.size() > 1 ? ", the same on every core" : "");
  const std::int64_t step = all[1] - all[0];
  bool even = true;
  for (std::size_t i = 1; i < all.size(); ++i) even = even && all[i] - all[i - 1] == step;
  if (even && !symbolic) return fmt::format("{} to {}, {:#x} a core", one(all.front()), one(all.back()), step);
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  return fmt::format("{} to {}, unevenly over the cores", one(*least), one(*most));
}

std::string source_text(const SourceLoc& source) {
  return fmt::format("{}:{}", visible(source.file), source.start_line);
}

std::string handle_line(const DebugHandle& handle) {
  std::string out = fmt::format("{}", handle.id);
  out += handle.source ? "  " + source_text(*handle.source) : "  no one source line";
  if (handle.aten_op) out += "  " + visible(*handle.aten_op);
  if (!handle.ir_chain.empty()) out += "  from " + visible(base::join(handle.ir_chain, ", "));
  return out;
}

// `constants`: their decoded values by name, as far as they are known.
std::string content_text(const SuperdscContent& content, const Json& constants) {
  const SdscModel& model = content.model;
  std::vector<std::string> dims;
  for (const SdscDim& dim : model.dims) dims.push_back(dim_text(dim));
  std::string out = fmt::format("    {:<10} {}\n", "dims", base::join(dims, ", "));
  for (const SdscTensor& tensor : model.tensors) {
    out += fmt::format("    {:<10} {}  [{}]  {} {}\n", visible(tensor.label), visible(tensor.data_format),
                       shape_text(model, tensor), tensor.in_lx ? "LX" : "HBM",
                       addresses_text(tensor.addresses, content.symbolic && !tensor.in_lx));
  }
  for (const auto& [name, encoded] : content.constants) {
    const Json& value = constants[name];
    out += fmt::format(
        "    {:<10} {} = {}\n", "constant", visible(name),
        value.is_null() ? fmt::format("{} (encoded)", encoded) : fmt::format("{} (encoded {})", value.dump(), encoded));
  }
  for (const auto& [dim, valid] : content.masks) {
    const std::string label = dim < model.dims.size() ? visible(model.dims[dim].label) : "?";
    out += fmt::format("    {:<10} {}: {} elements count, the rest is padding\n", "mask", label, valid);
  }
  if (!content.handle) return out + "    handle     none: nothing in the file leads back to source\n";
  out += "    handle     " + handle_line(*content.handle) + "\n";
  for (const DebugHandle& part : content.handle->fused_from) out += "      fused of  " + handle_line(part) + "\n";
  for (const ProvenanceTransform& one : content.handle->transform_history.value_or(std::vector<ProvenanceTransform>{}))
    out += fmt::format("      {} by {}{}\n", visible(one.kind), visible(one.pass_name),
                       one.reason ? ": " + visible(*one.reason) : "");
  return out;
}

// Without the file's name, which stands beside it.
std::string reason_of(const spyre::BundleEntry& entry) {
  Error error = *entry.error;
  error.path.clear();
  return error.text();
}

std::string entry_text(const spyre::BundleEntry& entry, std::size_t place) {
  std::string out = fmt::format("\n{:>3}  {}", place, visible(entry.file));
  if (entry.error) return out + "  can't be read: " + visible(reason_of(entry)) + "\n";
  if (!entry.content) return out + "  holds nothing that was read\n";
  const SdscModel& model = entry.content->model;
  out += fmt::format("  {} ({}) on {}\n", visible(model.op), kind_name(model.kind),
                     base::counted(static_cast<std::size_t>(model.cores), "core"));
  out += content_text(*entry.content, entry.spec ? entry.spec->op_info["constants"] : Json());
  if (entry.refusal) out += "    no OpSpec can be had from it: " + visible(entry.refusal->text()) + "\n";
  return out;
}

template <class T>
JsonArray array_of(const std::vector<T>& values) {
  JsonArray out;
  for (const T& value : values) out.emplace_back(value);
  return out;
}

Json tensor_json(const SdscModel& model, const SdscTensor& tensor) {
  JsonArray dims;
  for (const spyre::SdscTensorDim& one : tensor.order) {
    if (one.dim >= model.dims.size()) continue;
    dims.push_back(JsonObject{{"dim", model.dims[one.dim].label}, {"scale", one.scale}, {"gap", one.gap}});
  }
  return JsonObject{{"label", tensor.label},
                    {"format", tensor.data_format},
                    {"dims_inner_first", std::move(dims)},
                    {"stick", tensor.stick < model.dims.size() ? Json(model.dims[tensor.stick].label) : Json()},
                    {"stick_elements", tensor.stick_elements},
                    {"memory", tensor.in_lx ? "lx" : "hbm"},
                    {"addresses", array_of(tensor.addresses)}};
}

Json entry_json(const spyre::BundleEntry& entry) {
  JsonObject out{{"file", entry.file}};
  if (entry.error) out.emplace_back("error", entry.error->text());
  if (!entry.content) return out;
  const SdscModel& model = entry.content->model;
  JsonArray dims, tensors, constants, masks;
  for (const SdscDim& dim : model.dims)
    dims.push_back(JsonObject{{"label", dim.label}, {"size", dim.size}, {"split", dim.split}});
  for (const SdscTensor& tensor : model.tensors) tensors.push_back(tensor_json(model, tensor));
  for (const auto& [name, value] : entry.content->constants)
    constants.push_back(JsonObject{{"name", name}, {"encoded", value}});
  for (const auto& [dim, valid] : entry.content->masks) {
    if (dim < model.dims.size()) masks.push_back(JsonObject{{"dim", model.dims[dim].label}, {"elements", valid}});
  }
  out.emplace_back("ordinal", entry.content->ordinal);
  out.emplace_back("op", model.op);
  out.emplace_back("kind", kind_name(model.kind));
  out.emplace_back("cores", model.cores);
  out.emplace_back("symbolic", entry.content->symbolic);
  out.emplace_back("dims", std::move(dims));
  out.emplace_back("tensors", std::move(tensors));
  out.emplace_back("constants", std::move(constants));
  out.emplace_back("masks", std::move(masks));
  out.emplace_back("handle", entry.content->handle ? spyre::handle_to_json(*entry.content->handle) : Json());
  if (entry.refusal) out.emplace_back("refusal", entry.refusal->text());
  return out;
}

}  // namespace

std::string bundle_text(const spyre::Bundle& bundle) {
  std::string out = fmt::format("bundle {}: {}\n", visible(bundle.name), files_text(bundle));
  const spyre::EmitOptions style = spyre::style_of(bundle);
  const bool known = std::any_of(bundle.entries.begin(), bundle.entries.end(), [](const auto& e) { return e.content; });
  const bool symbolic = std::any_of(bundle.entries.begin(), bundle.entries.end(),
                                    [](const auto& e) { return e.content && e.content->symbolic; });
  if (known)
    out += fmt::format("written as generation {}, {} addresses, for {}\n", spyre::generation_name(style.generation),
                       mode_name(symbolic ? spyre::AddressMode::kSymbolic : spyre::AddressMode::kConcrete),
                       base::counted(static_cast<std::size_t>(style.max_cores), "core"));
  for (const std::string& name : bundle.unlisted) out += fmt::format("not run by bundle.mlir: {}\n", visible(name));
  for (std::size_t i = 0; i < bundle.entries.size(); ++i) out += entry_text(bundle.entries[i], i);
  return out;
}

std::string bundle_json(const spyre::Bundle& bundle) {
  JsonArray entries;
  for (const spyre::BundleEntry& entry : bundle.entries) entries.push_back(entry_json(entry));
  const spyre::EmitOptions style = spyre::style_of(bundle);
  JsonObject out{{"format", "kerntrail-bundle"},
                 {"version", 1},
                 {"name", bundle.name},
                 {"generation", spyre::generation_name(style.generation)},
                 {"max_cores", style.max_cores},
                 {"program", bundle.program.has_value() && !bundle.program_error},
                 {"unlisted", array_of(bundle.unlisted)},
                 {"files", std::move(entries)}};
  if (bundle.program_error) out.emplace_back("program_error", bundle.program_error->text());
  return Json(std::move(out)).dump(2) + "\n";
}

bool BundleJudgement::broken() const {
  const auto wrong = [](const spyre::OpComparison& one) { return one.wrong > 0; };
  return !findings.empty() || (compared && std::any_of(compared->begin(), compared->end(), wrong));
}

namespace {

std::string rules_text(const BundleJudgement& judgement) {
  const std::string unjudged =
      judgement.unjudged.empty() ? std::string() : fmt::format("; {} not judged in full", judgement.unjudged.size());
  if (!judgement.findings.empty()) return base::counted(judgement.findings.size(), "finding") + unjudged;
  return (unjudged.empty() ? "every rule is kept" : "every rule that was checked is kept") + unjudged;
}

}  // namespace

std::string judgement_text(const BundleJudgement& judgement, std::size_t files) {
  std::string out;
  for (const spyre::BundleFinding& one : judgement.findings) {
    out += fmt::format("{}{}{}: {} [{}]\n", visible(one.file.empty() ? judgement.path : one.file),
                       one.found.where.empty() ? "" : ": ", visible(one.found.where), visible(one.found.message),
                       one.found.code);
  }
  for (const spyre::Unjudged& one : judgement.unjudged)
    out += fmt::format("{}: not judged in full: {}\n", visible(one.file), visible(one.reason));
  bool said = false;
  for (const spyre::OpComparison& one : judgement.compared.value_or(std::vector<spyre::OpComparison>{})) {
    if (one.wrong == 0) continue;
    out += fmt::format("{}: {} of {} numbers of {} are wrong, first {}{}\n", visible(one.file), one.wrong, one.numbers,
                       visible(one.buffer), visible(one.first_wrong), said ? "" : "; what comes after it reads them");
    said = true;
  }
  out += fmt::format("{}: {}, {}", visible(judgement.path), base::counted(files, "file"), rules_text(judgement));
  if (!judgement.compared) return out + "\n";
  std::int64_t numbers = 0, not_finite = 0, wrong = 0;
  for (const spyre::OpComparison& one : *judgement.compared) {
    numbers += one.numbers;
    not_finite += one.not_finite;
    wrong += one.wrong;
  }
  out += wrong == 0 ? fmt::format("; executed: all {} numbers are the OpSpecs'", numbers)
                    : fmt::format("; executed: {} of {} numbers are wrong", wrong, numbers);
  if (not_finite > 0) out += fmt::format(" ({} overflowed or are undefined and prove little)", not_finite);
  return out + "\n";
}

std::string judgement_json(const BundleJudgement& judgement, std::size_t files) {
  JsonArray findings, unjudged;
  for (const spyre::Unjudged& one : judgement.unjudged)
    unjudged.push_back(JsonObject{{"file", one.file}, {"reason", one.reason}});
  for (const spyre::BundleFinding& one : judgement.findings)
    findings.push_back(JsonObject{
        {"rule", one.found.code}, {"file", one.file}, {"where", one.found.where}, {"message", one.found.message}});
  JsonObject out{{"format", "kerntrail-bundle-validation"},
                 {"version", 1},
                 {"path", judgement.path},
                 {"files", count(files)},
                 {"sound", judgement.sound()},
                 {"findings", std::move(findings)},
                 {"unjudged", std::move(unjudged)}};
  if (judgement.compared) {
    JsonArray compared;
    for (const spyre::OpComparison& one : *judgement.compared)
      compared.push_back(JsonObject{{"file", one.file},
                                    {"op", one.name},
                                    {"buffer", one.buffer},
                                    {"numbers", one.numbers},
                                    {"wrong", one.wrong},
                                    {"not_finite", one.not_finite},
                                    {"first_wrong", one.first_wrong}});
    out.emplace_back("executed", std::move(compared));
  }
  return Json(std::move(out)).dump(2) + "\n";
}

}  // namespace kerntrail::render
