// Fuzz target: bytes as the text of OpSpecs. What is read prints as itself, and is written as files or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "spyre/bundle.h"
#include "spyre/op_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kerntrail;
  const auto specs = spyre::parse_op_specs({reinterpret_cast<const char*>(data), size});
  if (!specs) {
    if (specs.error().message.empty()) std::abort();
    return 0;
  }
  const auto again = spyre::parse_op_specs(spyre::print_op_specs(*specs));
  if (!again || *again != *specs) std::abort();
  for (const bool keep : {false, true}) {
    spyre::EmitOptions options;
    options.keep_splits = options.keep_device_side = keep;
    std::vector<spyre::Diagnostic> diagnostics;
    const auto files = spyre::render_bundle(*specs, options, diagnostics);
    if (!files && files.error().message.empty()) std::abort();
  }
  return 0;
}
