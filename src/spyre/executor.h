// Runs OpSpecs on the host: the reference semantics of the device operations, so that results can be compared with
// eager. Half precision is read into single precision, computed there, and rounded to nearest even when stored; matrix
// products accumulate in single precision over the whole of k. Must not know: torch, Python, device layouts, cores. It
// reads the host side of an OpSpec only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre {

// IEEE binary16 <-> binary32, round to nearest even; NaN stays NaN, overflow becomes infinity.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);

// What the caller must pass for one argument of a kernel.
struct KernelArgument {
  std::string name;
  DType dtype = DType::kFloat32;
  std::size_t elements = 0;  // the memory behind the pointer holds at least this many elements
  bool written = false;
};

// Whether the executor has an operation of that name.
bool can_execute(std::string_view op);

// One row of a pointwise operation, as HostKernel computes it. False where there is no such operation on `count` inputs.
bool compute_pointwise_row(std::string_view op, const float* const* inputs, std::size_t count, std::size_t n, float* out);

// A list of OpSpecs checked once and run many times. Running is thread-safe: intermediates belong to one call.
class HostKernel {
 public:
  // Checks everything that running relies on: operation and operand types known, index expressions linear and inside
  // their buffers, argument numbers complete, no intermediate read before it is written.
  static Expected<HostKernel> prepare(const std::vector<OpSpec>& specs);

  HostKernel(HostKernel&&) noexcept;
  HostKernel& operator=(HostKernel&&) noexcept;
  ~HostKernel();

  // By arg_index.
  const std::vector<KernelArgument>& arguments() const;

  // `pointers[i]` is argument i; written arguments may not overlap others. Fails only when the number of pointers is
  // wrong or one of them is null.
  Expected<void> run(const std::vector<void*>& pointers) const;

 private:
  struct Program;
  explicit HostKernel(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace kerntrail::spyre
