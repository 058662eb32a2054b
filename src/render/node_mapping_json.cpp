// Torch's provenance documents. Keys and their order are torch's, not ours: readers of them look for these.
#include "base/json.h"
#include "render/exports.h"

namespace kerntrail::render {
namespace {

constexpr double kVersion = 2.0;

void write_list(base::JsonWriter& json, const std::vector<std::string>& values) {
  json.begin_array();
  for (const std::string& value : values) json.value(value);
  json.end_array();
}

void write_table(base::JsonWriter& json, std::string_view key, const analyse::NameTable& table) {
  json.key(key).begin_object();
  for (const auto& [name, values] : table) {
    json.key(name);
    write_list(json, values);
  }
  json.end_object();
}

}  // namespace

std::string node_mappings_json(const analyse::NodeMapping& mapping) {
  analyse::NameTable kernels;
  for (const analyse::MappedKernel& kernel : mapping.kernels) kernels.emplace_back(kernel.key, kernel.nodes);
  std::string out;
  base::JsonWriter json(out, -1, true);
  json.begin_object();
  write_table(json, "preToPost", analyse::inverse(mapping.post_to_pre));
  write_table(json, "postToPre", mapping.post_to_pre);
  write_table(json, "cppCodeToPost", kernels);
  write_table(json, "postToCppCode", analyse::inverse(kernels));
  json.member("version", kVersion).end_object();
  return out;
}

std::string kernel_stack_traces_json(const analyse::NodeMapping& mapping) {
  std::string out;
  base::JsonWriter json(out, -1, true);
  json.begin_object();
  for (const analyse::MappedKernel& kernel : mapping.kernels) {
    json.key(kernel.key);
    write_list(json, kernel.stacks);
  }
  json.end_object();
  return out;
}

}  // namespace kerntrail::render
