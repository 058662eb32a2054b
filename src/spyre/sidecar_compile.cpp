#include "spyre/sidecar_compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "spyre/event_name.h"

namespace kerntrail::spyre {
namespace {

SidecarHandle record_of(const DebugHandle& handle) {
  SidecarHandle out{std::to_string(handle.id), handle.source, handle.aten_op, handle.ir_chain, {}, {}};
  for (const DebugHandle& child : handle.fused_from) out.fused_from.push_back(std::to_string(child.id));
  if (handle.transform_history) out.transform_history = *handle.transform_history;
  return out;
}

tl::unexpected<Error> two_records(const std::string& id) {
  return fail(ErrorCode::kReference, fmt::format("debug handle {} stands for two different records", id));
}

// The handle and all it is fused from, each by its id.
Expected<void> add_handles(NameMap<SidecarHandle>& into, const DebugHandle& handle) {
  SidecarHandle record = record_of(handle);
  const std::set<std::string> constituents(record.fused_from.begin(), record.fused_from.end());
  if (constituents.size() != record.fused_from.size())
    return fail(ErrorCode::kReference, fmt::format("debug handle {} names one constituent twice", record.id));
  const auto [at, is_new] = into.emplace(record.id, record);
  if (!is_new && at->second != record) return two_records(record.id);
  for (const DebugHandle& child : handle.fused_from) KERNTRAIL_CHECK(add_handles(into, child));
  return {};
}

Expected<void> add_handles(NameMap<SidecarHandle>& into, const SpecTree& specs) {
  for (const SpecNode& node : specs) {
    if (const auto* loop = std::get_if<SpecLoop>(&node)) {
      KERNTRAIL_CHECK(add_handles(into, loop->body));
    } else if (const auto& handle = std::get<OpSpec>(node).debug_handle) {
      KERNTRAIL_CHECK(add_handles(into, *handle));
    }
  }
  return {};
}

Expected<KernelIdentity> identity_of(const KernelDescriptor& descriptor) {
  KernelIdentity out;
  out.aten_ops = descriptor.aten_ops;
  for (const std::uint64_t id : descriptor.debug_handle_ids) out.direct_handles.push_back(std::to_string(id));
  for (const HandleBinding& binding : descriptor.bindings)
    out.bindings.push_back({binding.path, std::to_string(binding.handle)});
  KERNTRAIL_TRY(out.event_base, event_name_base(descriptor.aten_ops, descriptor.key));
  return out;
}

// All of a kernel or nothing of it: what is wrong with one must not cost the others.
Expected<std::string> add_kernel(Sidecar& into, const CompiledKernel& kernel) {
  if (!kernel.specs) return fail(ErrorCode::kUnsupported, "has no OpSpecs");
  KERNTRAIL_TRY(const KernelDescriptor descriptor, describe_kernel(*kernel.specs));
  NameMap<SidecarHandle> handles;
  KERNTRAIL_CHECK(add_handles(handles, *kernel.specs));
  KERNTRAIL_TRY(KernelIdentity identity, identity_of(descriptor));
  for (const auto& [id, record] : handles) {
    const auto known = into.handles.find(id);
    if (known != into.handles.end() && known->second != record) return two_records(id);
  }
  into.handles.merge(handles);
  into.identities.emplace(descriptor.key, std::move(identity));
  return descriptor.key;
}

// "<kernel>:<number>" with a number from 1 on.
std::optional<std::pair<std::string, std::int64_t>> split_alias(std::string_view alias) {
  const std::size_t colon = alias.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::int64_t ordinal = 0;
  const char* end = alias.data() + alias.size();
  const auto read = std::from_chars(alias.data() + colon + 1, end, ordinal);
  if (read.ec != std::errc{} || read.ptr != end || ordinal < 1) return std::nullopt;
  return std::pair(std::string(alias.substr(0, colon)), ordinal);
}

using Registrations = NameMap<std::vector<Registration>>;  // by kernel

Registrations registrations_of(const UpstreamTables& upstream) {
  Registrations out;
  std::set<std::string_view> aliases;
  for (const auto& [alias, nodes] : upstream.kernel_to_post) aliases.insert(alias);
  for (const auto& [alias, context] : upstream.stack_contexts) aliases.insert(alias);
  for (const std::string_view alias : aliases) {
    if (const auto parts = split_alias(alias)) out[parts->first].push_back({parts->second, std::string(alias)});
  }
  for (auto& [kernel, list] : out) std::ranges::sort(list, {}, &Registration::ordinal);
  return out;
}

// Of torch's mapping what leads to the kernels of this compile. True where it is whole: every kernel is registered,
// every registration has nodes' names and a context that says the same.
bool project(Projection& into, const UpstreamTables& upstream, const Registrations& registrations) {
  bool whole = true;
  std::set<std::string_view> reached;
  for (const auto& [name, key] : into.kernels) {
    const auto found = registrations.find(name);
    whole = whole && found != registrations.end();
    if (found == registrations.end()) continue;
    for (const Registration& registration : found->second) {
      const auto nodes = upstream.kernel_to_post.find(registration.alias);
      const auto context = upstream.stack_contexts.find(registration.alias);
      if (nodes != upstream.kernel_to_post.end()) into.kernel_to_post.insert(*nodes);
      if (context != upstream.stack_contexts.end()) into.stack_contexts.insert(*context);
      const bool agree = nodes != upstream.kernel_to_post.end() && context != upstream.stack_contexts.end() &&
                         nodes->second == context->second.post_grad_nodes;
      whole = whole && agree;
      if (nodes != upstream.kernel_to_post.end()) reached.insert(nodes->second.begin(), nodes->second.end());
    }
  }
  for (const auto& [pre, post] : upstream.pre_to_post) {
    Names kept;
    std::ranges::copy_if(post, std::back_inserter(kept), [&](const auto& node) { return reached.contains(node); });
    if (!kept.empty()) into.pre_to_post.emplace(pre, std::move(kept));
  }
  into.post_to_pre = inverse(into.pre_to_post);
  into.post_to_kernel = inverse(into.kernel_to_post);
  return whole;
}

void join_upstream(Projection& into, const CompileRecord& compile, const Registrations& registrations) {
  if (compile.tracking_level == 0) {
    into.join = UpstreamJoin::kLevelZero;
  } else if (!compile.live_graph) {
    into.join = UpstreamJoin::kCacheReplay;
  } else {
    into.failed = !project(into, compile.upstream, registrations);
    into.join = into.failed ? UpstreamJoin::kPartial : UpstreamJoin::kOk;
  }
}

}  // namespace

Expected<Sidecar> sidecar_of(const CompileRecord& compile, std::vector<std::string>* reasons) {
  Sidecar out;
  Projection projection;
  projection.spyre_version = compile.spyre_version;
  projection.torch_version = compile.torch_version;
  projection.tracking_level = compile.tracking_level;
  projection.structured_tracing = compile.structured_tracing;
  for (const CompiledKernel& kernel : compile.kernels) {
    const auto key = add_kernel(out, kernel);
    if (key) {
      projection.kernels.emplace_back(kernel.name, *key);
      continue;
    }
    projection.uncollected.push_back(kernel.name);
    if (reasons != nullptr) reasons->push_back(fmt::format("{}: {}", kernel.name, key.error().message));
  }
  std::ranges::sort(projection.uncollected);
  const bool tracked = compile.tracking_level > 0 && compile.live_graph;
  const Registrations registrations = tracked ? registrations_of(compile.upstream) : Registrations{};
  join_upstream(projection, compile, registrations);

  const std::string id = compile_id(projection.kernels);
  for (const auto& [name, key] : projection.kernels) {
    const auto found = registrations.find(name);
    out.occurrences.emplace(
        occurrence_id(id, name, key),
        KernelOccurrence{key, id, name, found == registrations.end() ? std::vector<Registration>{} : found->second,
                         std::nullopt});
  }
  out.projections.emplace(id, std::move(projection));
  out.diagnostics = diagnostics_of(out);
  out.complete = is_complete(out);
  return out;
}

}  // namespace kerntrail::spyre
