#include "spyre/sidecar_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "spyre/event_name.h"

namespace kerntrail::spyre {
namespace {

// Steps from handle to constituent that are taken for all identities together; real files need a few thousand.
constexpr std::size_t kMaxSteps = std::size_t{20} << 20;

class Rules {
 public:
  Rules(const Sidecar& sidecar, RuleSet rules) : sidecar_(sidecar), rules_(rules) {}

  std::optional<SidecarMisfit> first() {
    for (const auto& [id, handle] : sidecar_.handles) check_handle(id, handle);
    if (!misfit_) check_cycles();
    for (const auto& [key, identity] : sidecar_.identities) {
      if (misfit_) break;
      check_identity(key, identity);
    }
    for (const auto& [id, occurrence] : sidecar_.occurrences) check_occurrence(id, occurrence);
    for (const auto& [id, projection] : sidecar_.projections) check_projection(id, projection);
    if (!misfit_) check_totals();
    return misfit_;
  }

 private:
  void refuse(std::string place, std::string problem, bool too_large = false) {
    if (!misfit_) misfit_ = SidecarMisfit{std::move(place), std::move(problem), too_large};
  }

  void check_handle(const std::string& id, const SidecarHandle& handle) {
    if (handle.id != id) refuse(fmt::format("handles.{}.id", id), fmt::format("is {}", handle.id));
    check_known(handle.fused_from, fmt::format("handles.{}.fused_from", id));
  }

  void check_known(const Names& ids, const std::string& place) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!sidecar_.handles.contains(ids[i]))
        refuse(fmt::format("{}[{}]", place, i), fmt::format("names handle {}, which is not there", ids[i]));
    }
  }

  // Without the machine's stack: lineages may be thousands deep.
  void check_cycles() {
    enum class State : std::uint8_t { kNew, kOpen, kDone };
    std::unordered_map<std::string_view, State> states;
    std::vector<std::pair<const SidecarHandle*, std::size_t>> way;
    for (const auto& [start, handle] : sidecar_.handles) {
      if (states[start] != State::kNew) continue;
      states[start] = State::kOpen;
      way.emplace_back(&handle, 0);
      while (!way.empty()) {
        auto& [at, next] = way.back();
        if (next == at->fused_from.size()) {
          states[at->id] = State::kDone;
          way.pop_back();
          continue;
        }
        const SidecarHandle& child = sidecar_.handles.find(at->fused_from[next++])->second;
        State& state = states[child.id];
        if (state == State::kOpen)
          return refuse(fmt::format("handles.{}.fused_from", child.id), "leads back to the handle itself");
        if (state == State::kDone) continue;
        state = State::kOpen;
        way.emplace_back(&child, 0);
      }
    }
  }

  Names aten_ops_of(const Names& handles) {
    std::set<std::string> ops;
    const Names reached = reachable_handles(sidecar_, handles);
    for (const std::string& id : reached) {
      const SidecarHandle& handle = sidecar_.handles.find(id)->second;
      steps_ += handle.fused_from.size() + 1;
      if (handle.aten_op) ops.insert(*handle.aten_op);
    }
    return {ops.begin(), ops.end()};
  }

  void check_identity(const std::string& key, const KernelIdentity& identity) {
    const std::string place = "kernelIdentities." + key;
    check_known(identity.direct_handles, place + ".directHandleIds");
    Names direct;
    std::unordered_set<std::string_view> seen;
    for (std::size_t i = 0; i < identity.bindings.size(); ++i) {
      const std::string& id = identity.bindings[i].handle;
      if (!sidecar_.handles.contains(id))
        refuse(fmt::format("{}.specHandleBindings[{}].handleId", place, i), "names a handle that is not there");
      if (seen.insert(id).second) direct.push_back(id);
    }
    if (direct != identity.direct_handles)
      refuse(place + ".directHandleIds", "is not what specHandleBindings say, each once, in their order");
    if (misfit_) return;
    if (aten_ops_of(direct) != identity.aten_ops)
      refuse(place + ".atenOps", "is not what its handles and their constituents say, sorted");
    if (steps_ > kMaxSteps) refuse(place, "comes after more constituents than are followed", true);
    check_event_name(place + ".eventNameBase", key, identity);
  }

  void check_event_name(const std::string& place, const std::string& key, const KernelIdentity& identity) {
    const auto parsed = parse_event_name(identity.event_base);
    if (!parsed) return refuse(place, fmt::format("is no event name: {}", parsed.error().message));
    if (parsed->step) return refuse(place, "has a step; a base has none");
    if (parsed->key != key) return refuse(place, fmt::format("has another key, {}", parsed->key));
    if (rules_ == RuleSet::kWriter && parsed->display != event_display(identity.aten_ops))
      refuse(place, fmt::format("should say {}", event_display(identity.aten_ops)));
  }

  void check_occurrence(const std::string& id, const KernelOccurrence& occurrence) {
    const std::string place = "kernelOccurrences." + id;
    if (!sidecar_.identities.contains(occurrence.identity))
      refuse(place + ".identityKey", "names an identity that is not there");
    if (!sidecar_.projections.contains(occurrence.compile))
      refuse(place + ".compileId", "names a compile that is not there");
    if (occurrence_id(occurrence.compile, occurrence.kernel, occurrence.identity) != id)
      refuse(place, "stands under another id than its compile, kernel and identity give");
    kernels_[occurrence.compile].emplace(occurrence.kernel, occurrence.identity);
    for (std::size_t i = 0; i < occurrence.registrations.size(); ++i) {
      const Registration& registration = occurrence.registrations[i];
      const std::string at = fmt::format("{}.registrations[{}]", place, i);
      if (registration.alias != fmt::format("{}:{}", occurrence.kernel, registration.ordinal))
        refuse(at + ".alias", "is not <kernel>:<ordinal>");
      if (!ordinals_[occurrence.compile].insert(registration.ordinal).second)
        refuse(at + ".ordinal", "is taken by another registration of the same compile");
      aliases_[occurrence.compile].push_back(registration.alias);
    }
  }

  void check_projection(const std::string& id, const Projection& projection) {
    const std::string place = "upstreamProjections." + id;
    if (compile_id(projection.kernels) != id) refuse(place, "stands under another id than its kernels give");
    std::set<std::pair<std::string, std::string>> kernels;
    std::set<std::string_view> names;
    for (const auto& kernel : projection.kernels) {
      kernels.insert(kernel);
      if (!names.insert(kernel.first).second) refuse(place + ".kernels", fmt::format("has {} twice", kernel.first));
    }
    if (kernels != kernels_[id]) refuse(place + ".kernels", "is not what the occurrences of this compile say");
    for (const std::string& name : projection.uncollected) {
      if (names.contains(name)) refuse(place + ".uncollectedKernels", fmt::format("has {}, which has a key", name));
    }
    if (!std::ranges::is_sorted(projection.uncollected)) refuse(place + ".uncollectedKernels", "is not sorted");
    if (projection.post_to_pre != inverse(projection.pre_to_post))
      refuse(place + ".postToPre", "is not the inverse of preToPost, in the order of its keys");
    if (projection.post_to_kernel != inverse(projection.kernel_to_post))
      refuse(place + ".postToCppCode", "is not the inverse of cppCodeToPost, in the order of its keys");
    if (projection.join != UpstreamJoin::kOk) return;
    for (const std::string& alias : aliases_[id]) {
      if (!projection.kernel_to_post.contains(alias))
        refuse(place + ".cppCodeToPost", fmt::format("lacks {}, though upstreamJoin is ok", alias));
      if (!projection.stack_contexts.contains(alias))
        refuse(place + ".kernelStackTraces", fmt::format("lacks {}, though upstreamJoin is ok", alias));
    }
  }

  void check_totals() {
    if (sidecar_.diagnostics != diagnostics_of(sidecar_))
      refuse("diagnostics", "does not count what the projections say");
    if (sidecar_.complete != is_complete(sidecar_))
      refuse("status",
             sidecar_.complete ? "is complete, but something is missing" : "is partial, but nothing is missing");
  }

  const Sidecar& sidecar_;
  RuleSet rules_;
  std::optional<SidecarMisfit> misfit_;
  std::size_t steps_ = 0;
  // By compile, from its occurrences.
  NameMap<std::set<std::pair<std::string, std::string>>> kernels_;
  NameMap<std::set<std::int64_t>> ordinals_;
  NameMap<Names> aliases_;
};

}  // namespace

std::optional<SidecarMisfit> misfit_of(const Sidecar& sidecar, RuleSet rules) { return Rules(sidecar, rules).first(); }

Names reachable_handles(const Sidecar& sidecar, const Names& start) {
  Names out;
  std::unordered_set<std::string_view> seen;
  std::vector<std::string_view> open(start.rbegin(), start.rend());
  while (!open.empty()) {
    const std::string_view id = open.back();
    open.pop_back();
    const auto found = sidecar.handles.find(id);
    if (found == sidecar.handles.end() || !seen.insert(id).second) continue;
    out.emplace_back(id);
    const Names& next = found->second.fused_from;
    open.insert(open.end(), next.rbegin(), next.rend());
  }
  return out;
}

}  // namespace kerntrail::spyre
