// The sidecar: spyre_provenance.json, version 1. From the name of a profiler event it leads to a kernel's identity,
// from there to debug handles, source lines and the names of FX nodes, without the program that was compiled. What it
// must hold beyond its form is in sidecar_rules.h, how it grows in sidecar_merge.h and sidecar_publish.h. Must not
// know: torch, how kernels are compiled or run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "kerntrail/expected.h"
#include "kerntrail/handle.h"

namespace kerntrail::spyre {

using Names = std::vector<std::string>;
// The order of keys is the order in the file.
template <class T>
using NameMap = std::map<std::string, T, std::less<>>;
using NameLists = NameMap<Names>;

struct SidecarHandle {
  std::string id;  // a decimal number
  std::optional<SourceLoc> source;
  std::optional<std::string> aten_op;
  Names ir_chain;
  Names fused_from;  // ids of handles
  std::vector<ProvenanceTransform> transform_history;

  bool operator==(const SidecarHandle&) const = default;
};

struct SpecBinding {
  std::vector<std::int64_t> spec_path;  // places on the way down the kernel's tree of OpSpecs; never empty
  std::string handle;

  bool operator==(const SpecBinding&) const = default;
};

struct KernelIdentity {
  Names direct_handles;  // of the bindings, each once, by first appearance
  std::vector<SpecBinding> bindings;
  Names aten_ops;  // sorted; also those of constituents
  std::string event_base;

  bool operator==(const KernelIdentity&) const = default;
};

// One call that torch's own provenance numbered.
struct Registration {
  std::int64_t ordinal = 1;
  std::string alias;  // "<kernel>:<ordinal>"

  bool operator==(const Registration&) const = default;
};

// A kernel by the name one compile gave it.
struct KernelOccurrence {
  std::string identity, compile, kernel;
  std::vector<Registration> registrations;
  std::optional<std::string> selector;  // reserved; not written here

  bool operator==(const KernelOccurrence&) const = default;
};

// How much of torch's own node mapping a compile has; a later one is worth more.
enum class UpstreamJoin : std::uint8_t { kLevelZero, kCacheReplay, kPartial, kOk };
std::string_view upstream_join_name(UpstreamJoin join);

struct StackContext {
  Names stack_traces, post_grad_nodes, pre_grad_nodes;

  bool operator==(const StackContext&) const = default;
};

// What torch says of one compile.
struct Projection {
  std::string spyre_version, torch_version;
  std::int64_t tracking_level = 0;
  bool structured_tracing = false;
  std::vector<std::pair<std::string, std::string>> kernels;  // name and identity, in the order of the wrapper
  Names uncollected;                                         // kernels without an identity, sorted
  bool failed = false;                                       // torch's mapping could not be taken over whole
  UpstreamJoin join = UpstreamJoin::kLevelZero;
  NameLists pre_to_post, post_to_pre;          // inverse of each other
  NameLists kernel_to_post, post_to_kernel;    // so are these; kernels by alias
  NameMap<StackContext> stack_contexts;        // by alias

  bool operator==(const Projection&) const = default;
};

struct Sidecar {
  std::int64_t generation = 1;  // merges that changed something, and the first writing
  NameMap<SidecarHandle> handles;
  NameMap<KernelIdentity> identities;     // by key
  NameMap<KernelOccurrence> occurrences;  // by occurrence_id()
  NameMap<Projection> projections;        // by compile_id()
  // As stated in a document; what they must be is diagnostics_of() and is_complete().
  NameMap<std::int64_t> diagnostics;
  bool complete = true;

  bool operator==(const Sidecar&) const = default;
};

// Hex SHA-256 over the names and keys of a compile's kernels.
std::string compile_id(const std::vector<std::pair<std::string, std::string>>& kernels);
std::string occurrence_id(const std::string& compile, const std::string& kernel, const std::string& identity);

// "collection-failure" and "upstream-projection-failure" with their numbers, where there are any.
NameMap<std::int64_t> diagnostics_of(const Sidecar& sidecar);
bool is_complete(const Sidecar& sidecar);

// Targets with their sources, in the order of the sources' names.
NameLists inverse(const NameLists& lists);

// Files larger than this are refused.
inline constexpr std::size_t kMaxSidecar = std::size_t{256} << 20;

// Reads, holds against the closed schema and then against the rules. Errors have the line and column in the text.
// Codes: kSyntax for what is no JSON, kTooNew for another version (looked at first), kSchema, kTooLarge for nesting and
// sizes, kReference for a document of the right form that contradicts itself.
Expected<Sidecar> parse_sidecar(std::string_view text, std::string_view path = {});
// The same from a file; whatever keeps it from being read is kIo.
Expected<Sidecar> read_sidecar(const std::string& path);

// What the schema calls these errors: "artifact-read-failure", "unsupported-schema-version",
// "schema-validation-failure", "semantic-validation-failure".
std::string_view sidecar_diagnostic(ErrorCode code);

base::Json sidecar_to_json(const Sidecar& sidecar);
// Members sorted, two spaces, ASCII, a line end at the end.
std::string print_sidecar(const Sidecar& sidecar);

// Parts of it, for results that quote them.
base::Json to_json(const SidecarHandle& handle);
base::Json to_json(const KernelIdentity& identity);
base::Json to_json(const KernelOccurrence& occurrence);
base::Json to_json(const Projection& projection);

}  // namespace kerntrail::spyre
