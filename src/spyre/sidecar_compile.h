// What one compile adds to a sidecar: its kernels' identities and handles, and what torch's provenance says of it.
// Must not know: torch; callers copy what they see of its tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spyre/identity.h"
#include "spyre/sidecar.h"

namespace kerntrail::spyre {

inline constexpr std::string_view kSidecarName = "spyre_provenance.json";

// One kernel of a wrapper. Without OpSpecs, or with such as have no key, it is kept by name as uncollected.
struct CompiledKernel {
  std::string name;
  std::optional<SpecTree> specs;
};

// torch's tables as they stand when a wrapper is executed. Aliases are "<kernel>:<number>"; those of kernels that are
// not of this wrapper are left out.
struct UpstreamTables {
  NameLists pre_to_post;
  NameLists kernel_to_post;           // by alias
  NameMap<StackContext> stack_contexts;  // by alias
};

struct CompileRecord {
  std::string spyre_version, torch_version;
  std::int64_t tracking_level = 0;
  bool structured_tracing = false;
  bool live_graph = true;  // false: the wrapper is run from a cache, so that torch's tables are of something else
  std::vector<CompiledKernel> kernels;  // in the order of the wrapper, each name once
  UpstreamTables upstream;
};

// A sidecar of this compile alone. Kernels that could not be described are in `uncollected` of its projection, with the
// reason in `reasons` ("<kernel>: <why>"). kReference where two handles of one id differ.
Expected<Sidecar> sidecar_of(const CompileRecord& compile, std::vector<std::string>* reasons = nullptr);

}  // namespace kerntrail::spyre
