// Ids and derived values of a sidecar, and its text.
#include "spyre/sidecar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hash.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

constexpr std::array<std::string_view, 4> kJoinNames{"unavailable-provenance-level-0", "unavailable-cache-replay",
                                                     "partial", "ok"};

std::string hash_of(const Json& value) {
  const auto digest = base::sha256(value.canonical());
  return base::hex(digest.data(), digest.size());
}

template <class T>
Json list_of(const std::vector<T>& values) {
  JsonArray out;
  for (const T& value : values) out.emplace_back(value);
  return out;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T, class Write>
Json map_of(const NameMap<T>& map, Write write) {
  JsonObject out;
  for (const auto& [key, value] : map) out.emplace_back(key, write(value));
  return out;
}

Json lists_to_json(const NameLists& lists) {
  return map_of(lists, [](const Names& names) { return list_of(names); });
}

Json source_to_json(const SourceLoc& source) {
  return JsonObject{{"file", source.file},
                    {"start_line", source.start_line},
                    {"start_col", source.start_col},
                    {"end_line", or_null(source.end_line)},
                    {"end_col", or_null(source.end_col)}};
}

Json context_to_json(const StackContext& context) {
  return JsonObject{{"stackTraces", list_of(context.stack_traces)},
                    {"postGradNodes", list_of(context.post_grad_nodes)},
                    {"preGradNodes", list_of(context.pre_grad_nodes)}};
}

}  // namespace

std::string_view upstream_join_name(UpstreamJoin join) { return kJoinNames.at(static_cast<std::size_t>(join)); }

std::string compile_id(const std::vector<std::pair<std::string, std::string>>& kernels) {
  JsonArray list;
  for (const auto& [name, key] : kernels) list.push_back(JsonArray{name, key});
  return hash_of(JsonObject{{"domain", "torch-spyre-compile-v1"}, {"kernels", std::move(list)}});
}

std::string occurrence_id(const std::string& compile, const std::string& kernel, const std::string& identity) {
  return hash_of(JsonObject{{"domain", "torch-spyre-occurrence-v1"},
                            {"compileId", compile},
                            {"compilerKernelName", kernel},
                            {"identityKey", identity}});
}

NameMap<std::int64_t> diagnostics_of(const Sidecar& sidecar) {
  std::int64_t uncollected = 0;
  std::int64_t failed = 0;
  for (const auto& [id, projection] : sidecar.projections) {
    uncollected += static_cast<std::int64_t>(projection.uncollected.size());
    failed += projection.failed ? 1 : 0;
  }
  NameMap<std::int64_t> out;
  if (uncollected > 0) out["collection-failure"] = uncollected;
  if (failed > 0) out["upstream-projection-failure"] = failed;
  return out;
}

bool is_complete(const Sidecar& sidecar) {
  return diagnostics_of(sidecar).empty() && std::ranges::all_of(sidecar.projections, [](const auto& projection) {
           return projection.second.join == UpstreamJoin::kOk;
         });
}

NameLists inverse(const NameLists& lists) {
  NameLists out;
  for (const auto& [source, targets] : lists) {
    for (const std::string& target : targets) {
      Names& sources = out[target];
      if (sources.empty() || sources.back() != source) sources.push_back(source);
    }
  }
  return out;
}

std::string_view sidecar_diagnostic(ErrorCode code) {
  switch (code) {
    case ErrorCode::kIo:
    case ErrorCode::kSyntax: return "artifact-read-failure";
    case ErrorCode::kTooNew: return "unsupported-schema-version";
    case ErrorCode::kReference: return "semantic-validation-failure";
    default: return "schema-validation-failure";
  }
}

Json to_json(const SidecarHandle& handle) {
  JsonArray history;
  for (const ProvenanceTransform& step : handle.transform_history) {
    history.push_back(JsonObject{{"kind", step.kind}, {"pass_name", step.pass_name}, {"reason", or_null(step.reason)}});
  }
  return JsonObject{{"id", handle.id},
                    {"source", handle.source ? source_to_json(*handle.source) : Json()},
                    {"aten_op", or_null(handle.aten_op)},
                    {"ir_chain", list_of(handle.ir_chain)},
                    {"fused_from", list_of(handle.fused_from)},
                    {"transform_history", std::move(history)}};
}

Json to_json(const KernelIdentity& identity) {
  JsonArray bindings;
  for (const SpecBinding& binding : identity.bindings)
    bindings.push_back(JsonObject{{"specPath", list_of(binding.spec_path)}, {"handleId", binding.handle}});
  return JsonObject{{"directHandleIds", list_of(identity.direct_handles)},
                    {"specHandleBindings", std::move(bindings)},
                    {"atenOps", list_of(identity.aten_ops)},
                    {"eventNameBase", identity.event_base}};
}

Json to_json(const KernelOccurrence& occurrence) {
  JsonArray registrations;
  for (const Registration& registration : occurrence.registrations)
    registrations.push_back(JsonObject{{"ordinal", registration.ordinal}, {"alias", registration.alias}});
  JsonObject out{{"identityKey", occurrence.identity},
                 {"compileId", occurrence.compile},
                 {"compilerKernelName", occurrence.kernel},
                 {"registrations", std::move(registrations)}};
  if (occurrence.selector) out.emplace_back("selector", *occurrence.selector);
  return out;
}

Json to_json(const Projection& projection) {
  JsonArray kernels;
  for (const auto& [name, key] : projection.kernels)
    kernels.push_back(JsonObject{{"compilerKernelName", name}, {"identityKey", key}});
  JsonObject producer{{"torchSpyreVersion", projection.spyre_version}, {"torchVersion", projection.torch_version}};
  JsonObject settings{{"provenanceTrackingLevel", projection.tracking_level},
                      {"structuredTracing", projection.structured_tracing}};
  return JsonObject{{"source", "inductor_provenance_tracking_node_mappings"},
                    {"version", 2.0},
                    {"producer", std::move(producer)},
                    {"settings", std::move(settings)},
                    {"kernels", std::move(kernels)},
                    {"uncollectedKernels", list_of(projection.uncollected)},
                    {"upstreamProjectionFailed", projection.failed},
                    {"upstreamJoin", upstream_join_name(projection.join)},
                    {"preToPost", lists_to_json(projection.pre_to_post)},
                    {"postToPre", lists_to_json(projection.post_to_pre)},
                    {"cppCodeToPost", lists_to_json(projection.kernel_to_post)},
                    {"postToCppCode", lists_to_json(projection.post_to_kernel)},
                    {"kernelStackTraces", map_of(projection.stack_contexts, context_to_json)}};
}

Json sidecar_to_json(const Sidecar& sidecar) {
  const auto write = [](const auto& record) { return to_json(record); };
  return JsonObject{{"schemaVersion", 1},
                    {"eventKey", JsonObject{{"version", 1},
                                            {"algorithm", "sha256-prefix-80-base32-lower"},
                                            {"width", 16},
                                            {"stepAttribution", "bundle"}}},
                    {"mergeGeneration", sidecar.generation},
                    {"status", sidecar.complete ? "complete" : "partial"},
                    {"diagnostics", map_of(sidecar.diagnostics, [](std::int64_t n) { return Json(n); })},
                    {"handles", map_of(sidecar.handles, write)},
                    {"kernelIdentities", map_of(sidecar.identities, write)},
                    {"kernelOccurrences", map_of(sidecar.occurrences, write)},
                    {"upstreamProjections", map_of(sidecar.projections, write)}};
}

std::string print_sidecar(const Sidecar& sidecar) { return sidecar_to_json(sidecar).sorted().dump(2) + "\n"; }

}  // namespace kerntrail::spyre
