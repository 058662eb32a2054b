#include "cli/bundle.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>

#include "base/files.h"
#include "render/bundle_output.h"
#include "render/text.h"
#include "spyre/bundle_executor.h"
#include "spyre/bundle_reader.h"
#include "spyre/validate.h"

namespace kerntrail::cli {
namespace {

Expected<std::vector<spyre::OpSpec>> specs_for(const spyre::Bundle& bundle, const std::string& file) {
  if (file.empty()) return spyre::op_specs_of(bundle);
  KERNTRAIL_TRY(const std::string text, base::read_file(file));
  auto specs = spyre::parse_op_specs(text);
  if (!specs && specs.error().path.empty()) specs.error().path = file;
  return specs;
}

Expected<render::BundleJudgement> judged(const spyre::Bundle& bundle, const std::string& path,
                                         const BundleCheck& check) {
  render::BundleJudgement out;
  out.path = path;
  out.findings = spyre::validate_bundle(bundle);
  out.unjudged = spyre::unjudged_files(bundle);
  if (!check.execute) return out;
  KERNTRAIL_TRY(const auto specs, specs_for(bundle, check.specs));
  KERNTRAIL_TRY(out.compared, spyre::compare_bundle(bundle, specs));
  return out;
}

std::optional<int> only_one(std::string_view verb, const std::vector<std::string>& bundles, bool needed,
                            Streams& streams) {
  if (!needed || bundles.size() == 1) return std::nullopt;
  streams.err << fmt::format("kerntrail {}: that is for one bundle, and {} are here: name one of them, e.g. {}\n", verb,
                             bundles.size(), render::visible(bundles.front()));
  return kUsageError;
}

}  // namespace

int show_bundles(const CommonOptions& options, const std::vector<std::string>& bundles, const std::string& format,
                 Streams& streams) {
  if (const auto single = only_one("info", bundles, format != "text", streams)) return *single;
  std::string out;
  for (const std::string& path : bundles) {
    const auto bundle = spyre::read_bundle(path);
    if (!bundle) return refuse("info", bundle.error(), streams);
    if (format == "json") out += render::bundle_json(*bundle);
    if (format == "text") out += (out.empty() ? "" : "\n") + render::bundle_text(*bundle);
    if (format != "specs") continue;
    const auto specs = spyre::op_specs_of(*bundle);
    if (!specs) return refuse("info", specs.error(), streams);
    out += spyre::print_op_specs(*specs) + "\n";
  }
  return deliver(out, options, "info", streams);
}

int check_bundles(const CommonOptions& options, const std::vector<std::string>& bundles, const std::string& format,
                  const BundleCheck& check, Streams& streams) {
  if (const auto single = only_one("validate", bundles, format != "text" || !check.specs.empty(), streams))
    return *single;
  std::string out;
  bool broken = false, judged_in_full = true;
  for (const std::string& path : bundles) {
    const auto bundle = spyre::read_bundle(path);
    if (!bundle) return refuse("validate", bundle.error(), streams);
    const auto judgement = judged(*bundle, path, check);
    if (!judgement) return refuse("validate", judgement.error(), streams);
    broken = broken || judgement->broken();
    judged_in_full = judged_in_full && judgement->unjudged.empty();
    const std::size_t files = bundle->entries.size();
    out += format == "json" ? render::judgement_json(*judgement, files) : render::judgement_text(*judgement, files);
  }
  const int written = deliver(out, options, "validate", streams);
  if (written != kDone) return written;
  if (broken) return kUnsound;
  return judged_in_full ? kDone : kUnreadable;
}

}  // namespace kerntrail::cli
