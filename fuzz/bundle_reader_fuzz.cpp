// Fuzz target: bytes as one file of a bundle, or as several behind each other. Reading, judging, rendering and running
// must give a result or an error with a text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spyre/bundle_executor.h"
#include "spyre/bundle_reader.h"
#include "spyre/validate.h"

namespace {

constexpr std::string_view kNext = "\n---\n";  // between files: sdsc_0.json, sdsc_1.json, ..., bundle.mlir
constexpr std::int64_t kMaxPoints = 1 << 22;  // a larger operation is read, not run

bool is_small(const kerntrail::spyre::BundleEntry& entry) {
  return kerntrail::spyre::executed_points(entry.content->model) < kMaxPoints;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kerntrail;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::pair<std::string, std::string>> files;
  while (!rest.empty() && files.size() < 8) {
    const std::size_t at = rest.find(kNext);
    const std::string_view text = rest.substr(0, at);
    const std::string name =
        text.starts_with("module") ? "bundle.mlir" : "sdsc_" + std::to_string(files.size()) + ".json";
    files.emplace_back(name, text);
    rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + kNext.size());
  }
  const spyre::Bundle bundle = spyre::bundle_of("input", std::move(files));
  for (const spyre::BundleEntry& entry : bundle.entries) {
    if (entry.error && entry.error->message.empty()) std::abort();
    if (entry.refusal && entry.refusal->message.empty()) std::abort();
  }
  for (const spyre::BundleFinding& one : spyre::validate_bundle(bundle)) {
    if (one.found.code.empty() || one.found.message.empty()) std::abort();
  }
  const auto specs = spyre::op_specs_of(bundle);
  if (!specs) {
    if (specs.error().message.empty()) std::abort();
    return 0;
  }
  for (const spyre::BundleEntry& entry : bundle.entries) {
    if (!is_small(entry)) return 0;
  }
  const auto compared = spyre::compare_bundle(bundle, *specs);
  if (!compared && compared.error().message.empty()) std::abort();
  return 0;
}
