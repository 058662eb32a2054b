#include "spyre/sidecar_merge.h"

#include <fmt/format.h>

#include <algorithm>

#include "spyre/sidecar_rules.h"

namespace kerntrail::spyre {
namespace {

tl::unexpected<Error> conflict(std::string_view place, std::string_view problem) {
  return fail(ErrorCode::kReference, fmt::format("sidecar.{} {}; the file was made by something else: move it away or "
                                                 "name another one",
                                                 place, problem));
}

bool is_part(const Names& part, const Names& whole) {
  return std::ranges::all_of(part, [&](const auto& name) { return std::ranges::find(whole, name) != whole.end(); });
}
bool is_part(const StackContext& part, const StackContext& whole) {
  return is_part(part.stack_traces, whole.stack_traces) && is_part(part.post_grad_nodes, whole.post_grad_nodes) &&
         is_part(part.pre_grad_nodes, whole.pre_grad_nodes);
}
template <class T>
bool is_part(const NameMap<T>& part, const NameMap<T>& whole) {
  return std::ranges::all_of(part, [&](const auto& entry) {
    const auto found = whole.find(entry.first);
    return found != whole.end() && is_part(entry.second, found->second);
  });
}

void unite(Names& into, const Names& more) {
  for (const std::string& name : more) {
    if (std::ranges::find(into, name) == into.end()) into.push_back(name);
  }
}
void unite(StackContext& into, const StackContext& more) {
  unite(into.stack_traces, more.stack_traces);
  unite(into.post_grad_nodes, more.post_grad_nodes);
  unite(into.pre_grad_nodes, more.pre_grad_nodes);
}
template <class T>
void unite(NameMap<T>& into, const NameMap<T>& more) {
  for (const auto& [key, value] : more) unite(into[key], value);
}

template <class T>
Expected<void> take_equal(NameMap<T>& into, const NameMap<T>& more, std::string_view place) {
  for (const auto& [key, value] : more) {
    const auto [at, is_new] = into.emplace(key, value);
    if (!is_new && at->second != value)
      return conflict(fmt::format("{}.{}", place, key), "is another record in the file than in this compile");
  }
  return {};
}

Expected<void> merge_occurrence(KernelOccurrence& into, const KernelOccurrence& more, const std::string& place) {
  // Compile, kernel and identity are in the id.
  if (into.selector != more.selector) return conflict(place + ".selector", "differs");
  for (const Registration& registration : more.registrations) {
    if (std::ranges::find(into.registrations, registration) == into.registrations.end())
      into.registrations.push_back(registration);
  }
  std::ranges::sort(into.registrations, {}, &Registration::ordinal);
  return {};
}

// The maps that say what the join has; their inverses follow.
Expected<void> merge_join(Projection& into, const Projection& more, const std::string& place) {
  if (into.join != more.join) {
    const bool stronger = more.join > into.join;
    const Projection& weak = stronger ? into : more;
    const Projection& strong = stronger ? more : into;
    const bool fits = is_part(weak.pre_to_post, strong.pre_to_post) &&
                      is_part(weak.kernel_to_post, strong.kernel_to_post) &&
                      is_part(weak.stack_contexts, strong.stack_contexts);
    if (!fits) return conflict(place, "says what the fuller mapping of the same compile does not");
    if (!stronger) return {};
    into.pre_to_post = more.pre_to_post;
    into.kernel_to_post = more.kernel_to_post;
    into.stack_contexts = more.stack_contexts;
    into.join = more.join;
  } else {
    unite(into.pre_to_post, more.pre_to_post);
    unite(into.kernel_to_post, more.kernel_to_post);
    unite(into.stack_contexts, more.stack_contexts);
  }
  into.post_to_pre = inverse(into.pre_to_post);
  into.post_to_kernel = inverse(into.kernel_to_post);
  return {};
}

Expected<void> merge_projection(Projection& into, const Projection& more, const std::string& place) {
  if (into.spyre_version != more.spyre_version || into.torch_version != more.torch_version)
    return conflict(place + ".producer", "is of another version");
  KERNTRAIL_CHECK(merge_join(into, more, place));
  into.tracking_level = std::max(into.tracking_level, more.tracking_level);
  into.structured_tracing = into.structured_tracing || more.structured_tracing;
  into.failed = into.failed || more.failed;
  unite(into.uncollected, more.uncollected);
  std::ranges::sort(into.uncollected);
  return {};
}

}  // namespace

Expected<Sidecar> merge_sidecars(const Sidecar& existing, const Sidecar& addition) {
  Sidecar out = existing;
  KERNTRAIL_CHECK(take_equal(out.handles, addition.handles, "handles"));
  KERNTRAIL_CHECK(take_equal(out.identities, addition.identities, "kernelIdentities"));
  for (const auto& [id, occurrence] : addition.occurrences) {
    const auto [at, is_new] = out.occurrences.emplace(id, occurrence);
    if (!is_new) KERNTRAIL_CHECK(merge_occurrence(at->second, occurrence, "kernelOccurrences." + id));
  }
  for (const auto& [id, projection] : addition.projections) {
    const auto [at, is_new] = out.projections.emplace(id, projection);
    if (!is_new) KERNTRAIL_CHECK(merge_projection(at->second, projection, "upstreamProjections." + id));
  }
  out.diagnostics = diagnostics_of(out);
  out.complete = is_complete(out);
  if (const auto misfit = misfit_of(out)) return conflict(misfit->place, misfit->problem);
  if (out != existing) ++out.generation;
  return out;
}

}  // namespace kerntrail::spyre
