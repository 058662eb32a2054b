// Bundles: files in order.
#include "spyre/bundle.h"

#include <fmt/format.h>

#include "base/files.h"
#include "spyre/superdsc.h"

namespace kerntrail::spyre {
namespace {

std::string file_name(std::size_t ordinal, const OpSpec& spec, const EmitOptions& options) {
  return options.op_in_file_names ? fmt::format("sdsc_{}_{}.json", ordinal, spec.op)
                                  : fmt::format("sdsc_{}.json", ordinal);
}

// With concrete addresses a bundle takes no operands.
std::string bundle_mlir(const std::vector<BundleFile>& files) {
  std::string out = "module {\n\tfunc.func @sdsc_bundle() {\n";
  for (const BundleFile& file : files) {
    out += fmt::format("\t\tsdscbundle.sdsc_execute () {{sdsc_filename=\"{}\"}}\n", file.name);
  }
  return out + "\t\treturn\n\t}\n}\n";
}

}  // namespace

Expected<std::vector<BundleFile>> render_bundle(std::vector<OpSpec> specs, const EmitOptions& options,
                                                std::vector<Diagnostic>& diagnostics) {
  KERNTRAIL_CHECK(plan_bundle(specs, options, diagnostics));
  std::vector<BundleFile> files;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    KERNTRAIL_TRY(std::string content, superdsc_json(specs[i], static_cast<std::int64_t>(i), options));
    files.push_back({file_name(i, specs[i], options), std::move(content)});
  }
  std::string program = bundle_mlir(files);
  files.push_back({"bundle.mlir", std::move(program)});
  return files;
}

Expected<std::vector<std::string>> write_bundle(const std::string& directory, std::vector<OpSpec> specs,
                                                const EmitOptions& options, std::vector<Diagnostic>& diagnostics) {
  KERNTRAIL_TRY(const std::vector<BundleFile> files, render_bundle(std::move(specs), options, diagnostics));
  KERNTRAIL_CHECK(base::make_directories(directory));
  std::vector<std::string> names;
  for (const BundleFile& file : files) {
    KERNTRAIL_CHECK(base::write_file(directory + "/" + file.name, file.content));
    names.push_back(file.name);
  }
  return names;
}

}  // namespace kerntrail::spyre
