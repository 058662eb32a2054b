// Kernel calls in the module that Inductor generates around its kernels (the "wrapper"): a Python file, or a Python
// file that holds a C++ one (cpp_wrapper). Calls are found by what a line says, not by how it came to be written, so
// that they can be compared with what the compiler says it defined and registered.
// Must not know: captures, Python.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace kerntrail::read {

struct WrapperCall {
  std::string name;      // the kernel: "cpp_fused_relu_0", "extern_kernels.mm", "torch.ops.aten.sort.stable"
  std::string function;  // of the wrapper that holds the line; empty in C++
  std::int64_t line = 0;  // 1-based
  std::string text;      // the line, without its indentation
};

struct WrapperText {
  // In program order: those of a function that is called (a sub-graph, a partition) where it is first called, those of
  // functions that nothing calls at the end.
  std::vector<WrapperCall> calls;
  // Known kernels that some line of Python uses otherwise, e.g. as one of the choices of a multi-kernel.
  std::unordered_set<std::string> mentioned;
};

// `kernels` are names known to be kernels; callees that only Inductor's own namespaces can hold (extern_kernels.,
// torch.ops., ...) are found in Python without being known.
WrapperText read_wrapper(std::string_view wrapper, const std::unordered_set<std::string>& kernels);

}  // namespace kerntrail::read
