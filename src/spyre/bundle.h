// A bundle: one SuperDSC file an operation and bundle.mlir, which lists them in the order they run.
// Must not know: where bundle directories come from, kernels' names.
#pragma once

#include <string>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/op_spec.h"
#include "spyre/plan.h"

namespace kerntrail::spyre {

struct BundleFile {
  std::string name;  // "sdsc_0.json", "bundle.mlir"
  std::string content;

  bool operator==(const BundleFile&) const = default;
};

// Plans the specs and renders sdsc_0.json, sdsc_1.json, ... and bundle.mlir, in this order.
Expected<std::vector<BundleFile>> render_bundle(std::vector<OpSpec> specs, const EmitOptions& options,
                                                std::vector<Diagnostic>& diagnostics);

// Renders before anything is written; then writes every file into `directory` (made where missing) and returns the
// names in order.
Expected<std::vector<std::string>> write_bundle(const std::string& directory, std::vector<OpSpec> specs,
                                                const EmitOptions& options, std::vector<Diagnostic>& diagnostics);

}  // namespace kerntrail::spyre
