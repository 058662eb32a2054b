// Who really emits what: while one graph is lowered and its code is generated, which FX node's lowering is running, and
// so which node each operation of a loop body and each line of a kernel's text comes from. `origins` is never read.
// Everything here belongs to one thread and one call of the compiler, and goes with it.
// Must not know: hooks, the capture file.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kerntrail/capture.h"
#include "model/loop_ops.h"
#include "tracing.h"

namespace kerntrail::probe {

namespace nb = nanobind;

using model::Does;
using model::does_name;

// Who asked for an operation: a node, or (compiler_made) a line of the compiler itself.
struct WitnessSource {
  UnitId unit = UnitId::kNone;
  FrameRef maker;
};

// An operation of loop bodies, by the name of its handler.
struct WitnessOp {
  std::string name;
  Does does = Does::kCompute;
};

constexpr std::int32_t kNothing = -1;

// What is running: which source asks, and at code generation which operation is being printed.
struct Running {
  std::int32_t source = kNothing;
  std::int32_t op = kNothing;
  bool shared = false;  // an index that whoever comes first asks for, and others use
  const PyObject* block = nullptr;  // graph of the loop body's block that is being printed; an address, no more
};

struct WitnessLine {
  Running by;
  std::vector<std::int32_t> also;  // further sources that were given this line's value instead of one of their own
};

// One line of a kernel's text that was written for somebody.
struct TextLine {
  std::int64_t line = 0;  // 1-based
  WitnessLine what;
};

class Witness {
 public:
  Witness();

  // Sources are numbered as they come. The marks they leave on objects of the compiler are good for this witness only.
  std::int32_t source_of(UnitId unit);
  std::int32_t made_at(FrameRef frame);
  const WitnessSource& source(std::int32_t i) const { return sources_[static_cast<std::size_t>(i)]; }
  std::int64_t mark(std::int32_t source) const { return (serial_ << 32) | source; }
  // The source of a mark; kNothing for one of another witness.
  std::int32_t marked(std::int64_t mark) const;

  // The operation that a node of a loop body prints; `target` is the node's.
  std::int32_t op_of(nb::handle target);
  const WitnessOp& op(std::int32_t i) const { return ops_[static_cast<std::size_t>(i)]; }

  // Buffers of text. `lines` is the buffer's own list, after what is told has happened to it.
  void wrote(nb::handle buffer, std::size_t size);
  void copied(nb::handle to, std::size_t first, std::size_t size, nb::handle from, std::size_t from_size);
  // Of the list `before` the buffer has kept `after`, in the same order.
  void filtered(nb::handle buffer, nb::handle before, nb::handle after);
  void printed(nb::handle buffer, nb::handle lines);
  bool knows(nb::handle buffer) const { return buffers_.contains(buffer.ptr()); }

  // A variable that stands for the value of a line; a later wish for the same value is given the variable again.
  std::size_t lines_so_far() const { return lines_.size(); }
  void named(nb::handle variable, std::size_t line);
  void given_again(nb::handle variable);

  // The lines of `text` that were written for somebody, by what was printed latest. Of what was printed until now, all
  // that is in `text` is used up; the rest may be in a text that is taken later.
  std::vector<TextLine> take(std::string_view text);

  std::vector<Running> running;  // innermost last
  std::vector<nb::object> lowered;  // nodes being lowered, innermost last
  int partitioning = 0;  // nests that share nothing become several kernels, each of which is registered with all of them
  int splicing = 0;  // a buffer is being copied: who wrote its lines is known already
  // Who asked for the initial value of each accumulator of a C++ kernel: printed when all its loops are known.
  std::unordered_map<PyObject*, std::vector<Running>> accumulators;
  std::vector<Running> finalizing;  // those of the kernel that is being finalized, last first
  // Who asked for what was found to be the same as an operation of another buffer, by that buffer and the operation's
  // place in its body; place -1: the loop nest.
  std::map<std::pair<std::string, std::int64_t>, std::vector<std::int32_t>> served;
  // An operation that was made while a node was being lowered; and the node of one, kNone where none is known. One that
  // took another's place under its name is for the other's node.
  void lowering(nb::handle operation, UnitId unit);
  UnitId lowered_for(nb::handle operation) const;

  std::vector<nb::object> keep;  // so that addresses name them

 private:
  struct Buffer {
    nb::object keep;
    std::vector<std::int32_t> lines;  // kNothing: control; by index in the buffer
  };
  struct Printed {
    std::vector<std::string> text;  // without indentation
    std::vector<std::int32_t> lines;
    std::size_t known = 0;  // lines written for somebody
    bool is_used = false;
  };

  // Whether it is in `text` at all, placed or not.
  bool place(const Printed& printed, const std::vector<std::string_view>& text, std::vector<std::int32_t>& out) const;

  std::int64_t serial_;
  std::vector<WitnessSource> sources_;
  std::unordered_map<UnitId, std::int32_t> by_unit_;
  std::vector<WitnessOp> ops_;
  std::unordered_map<std::string, std::int32_t> by_op_;
  std::unordered_map<PyObject*, std::pair<nb::object, std::int32_t>> by_target_;
  std::vector<WitnessLine> lines_;
  std::vector<std::pair<nb::object, UnitId>> operations_;  // in the order they were made
  std::unordered_map<PyObject*, std::size_t> by_operation_;
  std::unordered_map<PyObject*, Buffer> buffers_;
  std::unordered_map<PyObject*, std::pair<nb::object, std::size_t>> variables_;
  std::deque<Printed> printed_;
};

// A function that says, while it runs, which source asks. It forwards every attribute to the one it stands for.
void bind_tagged_type(nb::module_& module);
nb::object tagged(const Witness& witness, nb::handle function, std::int32_t source);
bool is_tagged(nb::handle object);
// The source of a tagged function; kNothing for any other object.
std::int32_t tag_of(const Witness& witness, nb::handle object);

}  // namespace kerntrail::probe
