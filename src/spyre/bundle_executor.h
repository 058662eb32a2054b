// Runs a bundle by what its files say, core by core and address by address, and holds the numbers against those of the
// OpSpecs it should come from, so that a wrong address shows as a wrong number.
// Must not know: torch, devices. A number of 16 bits is IEEE binary16 here, as in the host executor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/bundle_reader.h"
#include "spyre/device_memory.h"

namespace kerntrail::spyre {

// Loop points of a whole bundle that are run; a served model's layer has more.
inline constexpr std::int64_t kMaxExecutedPoints = std::int64_t{1} << 33;

// What running one file costs: the loop points of all its cores, one more than the limit where there are more.
std::int64_t executed_points(const SdscModel& model);

// Runs one file: reads, computes and writes in `memory`. kUnsupported for operations and formats that the host executor
// does not have, kTooLarge.
Expected<void> execute_file(const SuperdscContent& content, DeviceMemory& memory);

// One operation's output, file against OpSpec.
struct OpComparison {
  std::size_t op = 0;
  std::string file;
  std::string name;  // the operation
  std::string buffer;  // its output
  std::int64_t numbers = 0;  // compared
  std::int64_t wrong = 0;
  std::int64_t not_finite = 0;  // in the reference: overflowed or undefined, which prove little
  std::string first_wrong;  // "[3, 64]: 1.5, should be 0.25"
};

// Kernel inputs get numbers that depend on nothing but their order in the bundle. `specs` have both sides; their inputs
// are laid out as they say, each of their outputs is looked for where they say it lies. What is wrong early is wrong
// later too: the first operation with wrong numbers is the one at fault. kUnsupported, kTooLarge, kSchema (other
// operations than the bundle's), with the operation.
Expected<std::vector<OpComparison>> compare_bundle(const Bundle& bundle, const std::vector<OpSpec>& specs);

}  // namespace kerntrail::spyre
