// From the body of one loop-level buffer to device operations (host side only).
// A body is the expression tree that the ops recorder noted while the buffer's inner function ran; it becomes one
// OpSpec for each operation in it, the last of which writes the buffer. The device side (layouts, coordinates, splits,
// addresses) is filled in later by plan.h.
// Must not know: Python, torch objects, where provenance comes from, how numbers are computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kerntrail/expected.h"
#include "spyre/op_spec.h"

namespace kerntrail::spyre {

// A tensor of the host side as the graph declares it. Extents and strides in elements.
struct HostBuffer {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> size;
  std::vector<std::int64_t> stride;
};

// kLoad: an element of a buffer. kConstant: a number. kOp: an operation on earlier nodes.
enum class BodyKind : std::uint8_t { kLoad, kConstant, kOp };

// One step of a body, in the order it was recorded; operands refer to earlier nodes of the same body.
struct BodyNode {
  BodyKind kind = BodyKind::kOp;
  std::string name;                    // kLoad: the buffer; kOp: the operation as the compiler names it ("truediv")
  std::string index;                   // kLoad: index expression over c0, c1, ...
  double value = 0;                    // kConstant
  std::optional<DType> dtype;          // kConstant: its type; kOp "to_dtype": the target type
  std::vector<std::size_t> operands;   // kOp
};

// One loop-level buffer: its iteration space, what it reads, what it computes and where it writes.
struct BufferBody {
  HostBuffer output;
  std::string output_index;                    // over c0 .. c(ranges-1)
  std::vector<std::int64_t> ranges;            // output loops, outer first: c0, c1, ...
  std::vector<std::int64_t> reduction_ranges;  // reduction loops, numbered on
  std::string reduction_type;                  // "" for pointwise, else "batchmatmul"
  std::string device_op;                       // not empty: the whole body is this one device operation
  std::vector<HostBuffer> inputs;              // every buffer that a kLoad names
  std::vector<BodyNode> nodes;
  std::vector<std::size_t> roots;              // stored values: one, or two for batchmatmul (left, right)
};

// A number that a kernel reads as a one-element tensor argument.
struct KernelConstant {
  std::string name;
  double value = 0;
  DType dtype = DType::kFloat32;
};

// The constants of all kernels of one graph. Equal (value, type) pairs share one tensor.
class ConstantTable {
 public:
  // Name of the tensor that holds `value`; made on first use. NaNs of one type are equal, -0.0 differs from 0.0.
  std::string name_of(double value, DType dtype);
  const std::vector<KernelConstant>& all() const { return constants_; }

 private:
  std::vector<KernelConstant> constants_;
};

// The device operation for one of the compiler's operation names; empty where there is none.
std::string_view device_op_of(std::string_view compiler_op);

// Loop variables of a body: c0, c1, ... over ranges, then over reduction_ranges. All splits are 1.
std::vector<IterDim> iteration_space_of(const std::vector<std::int64_t>& ranges,
                                        const std::vector<std::int64_t>& reduction_ranges);

// An operation of a body that becomes an OpSpec, and the type of its result.
struct BodyPart {
  std::size_t node = 0;
  DType dtype = DType::kFloat32;
};

// The operations of a pointwise body that need an OpSpec each, operands first, the stored one last. Empty for a body
// without operations, one that the device has whole and for a reduction. Errors as for lower_buffer.
Expected<std::vector<BodyPart>> parts_of(const BufferBody& body);

// kUnsupported names the operation, type or shape that has no device operation; nothing is guessed. `made_from`: for
// each OpSpec the nodes of the body that it stands for, in order: its operation, the loads and constants it reads, and
// what came to nothing on the way to these. A node that several OpSpecs read is in each of theirs.
Expected<std::vector<OpSpec>> lower_buffer(const BufferBody& body, ConstantTable& constants,
                                           std::vector<std::vector<std::size_t>>* made_from = nullptr);

}  // namespace kerntrail::spyre
