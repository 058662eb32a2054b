// What a kernel is, as a key that names it: a hash over the finished OpSpecs of a bundle, the same wherever it is
// computed (when the kernel is generated, or from the text that the generated wrapper holds), on every run and machine.
// The key names an identity, not an occurrence: two launches, or two kernels that are alike, share it.
// Must not know: events, files, where kernels lie.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre {

// A bundle's finished operations as a tree. This back end makes flat bundles; a loop repeats its body.
struct SpecLoop;
using SpecNode = std::variant<OpSpec, SpecLoop>;
using SpecTree = std::vector<SpecNode>;
struct SpecLoop {
  std::string count;  // an index expression
  SpecTree body;
};

SpecTree spec_tree_of(const std::vector<OpSpec>& specs);

// First 80 bits of SHA-256, as 16 characters of base32, over the canonical JSON of {domain, version, specs}.
// In it, whatever may be symbolic (loop variables, extents, counts, coordinates) is written by what it says, not by how
// it was held: a symbol has no assumptions and an integer no type, so that a key does not change where a wrapper's text
// is read back. Not in it: paths, names of kernels, what passes did. kUnsupported for a number that is no number.
Expected<std::string> kernel_key(const SpecTree& specs);

// Which handle an operation carries: `path` are the places on the way down the tree.
struct HandleBinding {
  std::vector<std::int64_t> path;
  std::uint64_t handle = 0;

  bool operator==(const HandleBinding&) const = default;
};

struct KernelDescriptor {
  std::string key;
  std::vector<HandleBinding> bindings;  // depth first
  std::vector<std::uint64_t> debug_handle_ids;  // those of the bindings, each once, by first appearance
  std::vector<std::string> aten_ops;  // sorted, each once; also of constituents
};

Expected<KernelDescriptor> describe_kernel(const SpecTree& specs);

}  // namespace kerntrail::spyre
