// Loop-level buffers of the compiler as plain values: the ops recorder and what it notes.
// Must not know: OpSpecs, kernels, scheduling.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "spyre/lower.h"

namespace kerntrail::python {

namespace nb = nanobind;

// What the recorder noted of one body. Values seen by the compiler's code are numbers of nodes in it.
struct RecordedBody {
  std::vector<spyre::BodyNode> nodes;
  // Left on nodes by whoever watches, 0 where nobody did: handed on with them, never read here. As long as `nodes`.
  std::vector<std::int64_t> marks;
};

// One value of a body, as the compiler's code passes it around.
struct RecordedValue {
  std::size_t node = 0;
};

void bind_body(nb::module_& m);

// A subclass of the compiler's DefaultHandler whose methods note operations. Instances have an attribute `body`.
nb::object make_recorder_class(nb::object base, const std::string& module_name);

// The graph being compiled (torch._inductor.virtualized.V.graph).
nb::object current_graph();
// "torch.float16" and the like; raises for a type that is not carried.
spyre::DType dtype_of(nb::handle torch_dtype);
std::vector<std::int64_t> integers(nb::handle sequence);

// Runs the body of a ComputedBuffer under a recorder. Raises where it holds something that a body can't be here.
// `marks`: those of its nodes.
spyre::BufferBody body_of(nb::handle buffer, std::vector<std::int64_t>* marks = nullptr);

}  // namespace kerntrail::python
