// Sidecars for tests: the public fixtures and small ones made of kernels.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "spyre/sidecar_compile.h"

namespace kerntrail::spyre::testing {

inline std::string fixture_text(const std::string& name) {
  const auto text = base::read_file(std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/spyre_provenance/" + name);
  EXPECT_TRUE(text) << name;
  return text ? *text : std::string();
}

inline Sidecar fixture(const std::string& name) {
  auto read = parse_sidecar(fixture_text(name), name);
  EXPECT_TRUE(read) << read.error().text();
  return read ? *read : Sidecar{};
}

// One operation with a handle of its own that comes from `line`.
inline OpSpec op_from_line(std::uint64_t handle, std::int64_t line, const std::string& aten = "aten.relu.default") {
  OpSpec spec;
  spec.op = "identity";
  spec.debug_handle = DebugHandle{handle, SourceLoc{"/m/model.py", line, 0, {}, {}}, aten, {"buf0"}, {}, std::nullopt};
  return spec;
}

inline CompiledKernel kernel(std::string name, std::vector<OpSpec> specs) {
  return {std::move(name), spec_tree_of(specs)};
}

// A compile at level 1, each kernel registered once in order, of node "<kernel>_node" that comes from "<kernel>_pre".
inline CompileRecord tracked(std::vector<CompiledKernel> kernels) {
  CompileRecord out;
  out.spyre_version = "0.1";
  out.torch_version = "2.13";
  out.tracking_level = 1;
  out.kernels = std::move(kernels);
  std::int64_t ordinal = 0;
  for (const CompiledKernel& k : out.kernels) {
    const std::string alias = k.name + ":" + std::to_string(++ordinal);
    out.upstream.kernel_to_post[alias] = {k.name + "_node"};
    out.upstream.stack_contexts[alias] = {{"trace of " + k.name}, {k.name + "_node"}, {k.name + "_pre"}};
    out.upstream.pre_to_post[k.name + "_pre"] = {k.name + "_node", "of another kernel"};
  }
  return out;
}

inline Sidecar sidecar(const CompileRecord& compile) {
  auto made = sidecar_of(compile);
  EXPECT_TRUE(made) << made.error().text();
  return made ? *made : Sidecar{};
}

}  // namespace kerntrail::spyre::testing
