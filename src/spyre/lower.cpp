#include "spyre/lower.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace kerntrail::spyre {
namespace {

// What the type of an operation's result is.
enum class ResultType : std::uint8_t {
  kSame,     // that of the operands, which must agree
  kBool,     // a comparison: operands agree, the result is a truth value
  kBranches  // a choice: the first operand is a truth value, the other two agree and give the type
};

struct OpRule {
  std::string_view compiler_op;
  std::string_view device_op;
  std::size_t arity;
  ResultType result;
};

constexpr std::array kOpRules = {
    OpRule{"abs", "abs", 1, ResultType::kSame},         OpRule{"exp", "exp", 1, ResultType::kSame},
    OpRule{"log", "log", 1, ResultType::kSame},         OpRule{"neg", "neg", 1, ResultType::kSame},
    OpRule{"sqrt", "sqrt", 1, ResultType::kSame},       OpRule{"rsqrt", "rsqrt", 1, ResultType::kSame},
    OpRule{"tanh", "tanh", 1, ResultType::kSame},       OpRule{"sigmoid", "sigmoid", 1, ResultType::kSame},
    OpRule{"floor", "floor", 1, ResultType::kSame},     OpRule{"reciprocal", "reciprocal", 1, ResultType::kSame},
    OpRule{"relu", "relufwd", 1, ResultType::kSame},    OpRule{"add", "add", 2, ResultType::kSame},
    OpRule{"sub", "sub", 2, ResultType::kSame},         OpRule{"mul", "mul", 2, ResultType::kSame},
    OpRule{"maximum", "maximum", 2, ResultType::kSame}, OpRule{"minimum", "minimum", 2, ResultType::kSame},
    OpRule{"truediv", "realdiv", 2, ResultType::kSame}, OpRule{"eq", "equal", 2, ResultType::kBool},
    OpRule{"ne", "notequal", 2, ResultType::kBool},     OpRule{"gt", "greaterthan", 2, ResultType::kBool},
    OpRule{"ge", "greaterequal", 2, ResultType::kBool}, OpRule{"lt", "lesserthan", 2, ResultType::kBool},
    OpRule{"le", "lesserequal", 2, ResultType::kBool},  OpRule{"where", "where3", 3, ResultType::kBranches},
};

const OpRule* rule_of(std::string_view compiler_op) {
  const auto* it = std::ranges::find(kOpRules, compiler_op, &OpRule::compiler_op);
  return it == kOpRules.end() ? nullptr : it;
}

std::vector<std::int64_t> contiguous_stride(const std::vector<std::int64_t>& size) {
  std::vector<std::int64_t> stride(size.size(), 1);
  for (std::size_t i = size.size(); i-- > 1;) stride[i - 1] = stride[i] * size[i];
  return stride;
}

std::string contiguous_index(const std::vector<std::int64_t>& ranges) {
  std::string text;
  const auto stride = contiguous_stride(ranges);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i] == 1) continue;
    if (!text.empty()) text += " + ";
    text += stride[i] == 1 ? fmt::format("c{}", i) : fmt::format("{}*c{}", stride[i], i);
  }
  return text.empty() ? "0" : text;
}

// One pass over a body; `specs` grows as values are needed.
class Lowering {
 public:
  Lowering(const BufferBody& body, ConstantTable& constants)
      : body_(body), constants_(constants), space_(iteration_space_of(body.ranges, body.reduction_ranges)) {}

  Expected<std::vector<OpSpec>> run() {
    KERNTRAIL_CHECK(check_shape());
    if (body_.reduction_type == "batchmatmul") return matmul();
    if (!body_.reduction_type.empty()) {
      return unsupported(fmt::format("reduction \"{}\" has no device operation", body_.reduction_type));
    }
    if (!body_.device_op.empty()) return whole();
    KERNTRAIL_CHECK(store(body_.roots[0]));
    return std::move(specs_);
  }

  const std::vector<BodyPart>& parts() const { return parts_; }
  std::vector<std::vector<std::size_t>> take_made_from() { return std::move(made_from_); }

 private:
  tl::unexpected<Error> unsupported(std::string message) const {
    return fail(ErrorCode::kUnsupported, fmt::format("{}: {}", body_.output.name, std::move(message)));
  }

  // Operands refer backwards and roots exist; the rest relies on it.
  Expected<void> check_shape() const {
    const std::size_t wanted = body_.reduction_type == "batchmatmul" ? 2 : 1;
    if (body_.roots.size() != wanted) return unsupported(fmt::format("{} stored values", body_.roots.size()));
    for (std::size_t i = 0; i < body_.nodes.size(); ++i) {
      for (const std::size_t operand : body_.nodes[i].operands) {
        if (operand >= i) return unsupported(fmt::format("node {} reads node {}, which is not before it", i, operand));
      }
    }
    for (const std::size_t root : body_.roots) {
      if (root >= body_.nodes.size()) return unsupported("a stored value is no node of the body");
    }
    return {};
  }

  Expected<TensorArg> load(const BodyNode& node) const {
    const auto it = std::ranges::find(body_.inputs, node.name, &HostBuffer::name);
    if (it == body_.inputs.end()) return unsupported(fmt::format("unknown buffer \"{}\"", node.name));
    TensorArg arg;
    arg.name = it->name;
    arg.dtype = it->dtype;
    arg.host_size = it->size;
    arg.host_stride = it->stride;
    arg.index = node.index;
    return arg;
  }

  TensorArg output() const {
    TensorArg arg;
    arg.is_input = false;
    arg.name = body_.output.name;
    arg.dtype = body_.output.dtype;
    arg.host_size = body_.output.size;
    arg.host_stride = body_.output.stride;
    arg.index = body_.output_index;
    return arg;
  }

  TensorArg temporary(DType dtype) {
    TensorArg arg;
    arg.is_input = false;
    arg.name = fmt::format("{}_t{}", body_.output.name, temporaries_++);
    arg.dtype = dtype;
    arg.host_size = body_.ranges;
    arg.host_stride = contiguous_stride(body_.ranges);
    arg.index = contiguous_index(body_.ranges);
    return arg;
  }

  TensorArg constant(double value, DType dtype) {
    TensorArg arg;
    arg.name = constants_.name_of(value, dtype);
    arg.dtype = dtype;
    arg.index = "0";
    return arg;
  }

  // What an operand stands for beside the OpSpec that reads it: a load, a constant, a conversion that came to nothing.
  // An operation with an OpSpec of its own is that one's.
  void add_read(std::size_t index, std::vector<std::size_t>& nodes) const {
    for (;; index = body_.nodes[index].operands[0]) {
      const bool is_op = body_.nodes[index].kind == BodyKind::kOp;
      if (is_op && !folded_.contains(index)) return;
      if (std::ranges::find(nodes, index) == nodes.end()) nodes.push_back(index);
      if (!is_op) return;
    }
  }

  // The nodes of an OpSpec that computes node `index`, or copies it where that is no operation.
  std::vector<std::size_t> nodes_of(std::size_t index) const {
    std::vector<std::size_t> nodes;
    if (body_.nodes[index].kind != BodyKind::kOp) {
      add_read(index, nodes);
      return nodes;
    }
    for (const std::size_t operand : body_.nodes[index].operands) add_read(operand, nodes);
    nodes.push_back(index);
    std::ranges::sort(nodes);
    return nodes;
  }

  std::vector<std::size_t> all_nodes() const {
    std::vector<std::size_t> nodes(body_.nodes.size());
    std::iota(nodes.begin(), nodes.end(), std::size_t{0});
    return nodes;
  }

  void emit(std::string_view op, std::vector<TensorArg> inputs, TensorArg target, std::vector<std::size_t> nodes,
            bool is_reduction = false) {
    made_from_.push_back(std::move(nodes));
    OpSpec spec;
    spec.op = op;
    spec.is_reduction = is_reduction;
    spec.iteration_space = space_;
    for (TensorArg& arg : inputs) arg.is_input = true;
    target.is_input = false;
    inputs.push_back(std::move(target));
    spec.args = std::move(inputs);
    specs_.push_back(std::move(spec));
  }

  // The type of a node's value. A constant takes the type of what it is combined with, so it has none of its own here.
  Expected<std::optional<DType>> type_of(std::size_t index) const {
    const BodyNode& node = body_.nodes[index];
    if (node.kind == BodyKind::kConstant) return std::optional<DType>{};
    if (node.kind == BodyKind::kLoad) {
      KERNTRAIL_TRY(const TensorArg arg, load(node));
      return std::optional(arg.dtype);
    }
    if (const auto it = values_.find(index); it != values_.end()) return std::optional(it->second.dtype);
    return unsupported(fmt::format("node {} is used before it is lowered", index));
  }

  // The one type that operands [first, end) agree on; constants adopt it. All constant: their declared type.
  Expected<DType> common_type(const BodyNode& node, std::size_t first) const {
    std::optional<DType> found;
    for (std::size_t i = first; i < node.operands.size(); ++i) {
      KERNTRAIL_TRY(const std::optional<DType> dtype, type_of(node.operands[i]));
      if (!dtype) continue;
      if (found && *found != *dtype) {
        return unsupported(fmt::format("\"{}\" on {} and {}", node.name, dtype_name(*found), dtype_name(*dtype)));
      }
      found = dtype;
    }
    if (found) return *found;
    const std::optional<DType> declared = body_.nodes[node.operands[first]].dtype;
    return declared.value_or(body_.output.dtype);
  }

  Expected<TensorArg> operand(std::size_t index, DType dtype) {
    const BodyNode& node = body_.nodes[index];
    if (node.kind == BodyKind::kConstant) return constant(node.value, dtype);
    if (node.kind == BodyKind::kLoad) return load(node);
    return values_.at(index);
  }

  // Lowers every operation that `root` needs, operands first, without recursion: bodies can be long chains.
  Expected<void> lower_operands(std::size_t root) {
    std::vector<bool> needed(body_.nodes.size(), false);
    needed[root] = true;
    for (std::size_t i = root + 1; i-- > 0;) {
      if (!needed[i]) continue;
      for (const std::size_t operand : body_.nodes[i].operands) needed[operand] = true;
    }
    for (std::size_t i = 0; i < root; ++i) {
      if (needed[i] && body_.nodes[i].kind == BodyKind::kOp) KERNTRAIL_CHECK(lower_op(i, false));
    }
    return {};
  }

  Expected<void> finish(std::size_t index, std::string_view op, std::vector<TensorArg> inputs, DType dtype, bool last) {
    if (last && dtype != body_.output.dtype) {
      return unsupported(fmt::format("stores {} into {}", dtype_name(dtype), dtype_name(body_.output.dtype)));
    }
    TensorArg target = last ? output() : temporary(dtype);
    values_[index] = target;
    parts_.push_back({index, dtype});
    emit(op, std::move(inputs), std::move(target), nodes_of(index));
    return {};
  }

  Expected<void> convert(std::size_t index, bool last) {
    const BodyNode& node = body_.nodes[index];
    if (node.operands.size() != 1 || !node.dtype) return unsupported("malformed conversion");
    KERNTRAIL_TRY(const DType from, common_type(node, 0));
    KERNTRAIL_TRY(TensorArg input, operand(node.operands[0], from));
    const DType to = *node.dtype;
    if (from == to && !last) {
      values_[index] = std::move(input);
      folded_.insert(index);
      return {};
    }
    std::string_view op;
    if (from == to) op = "identity";
    if (from == DType::kFloat16 && to == DType::kFloat32) op = "dl16tofp32";
    if (from == DType::kFloat32 && to == DType::kFloat16) op = "fp32todl16";
    if (op.empty()) return unsupported(fmt::format("conversion from {} to {}", dtype_name(from), dtype_name(to)));
    std::vector<TensorArg> inputs;
    inputs.push_back(std::move(input));
    return finish(index, op, std::move(inputs), to, last);
  }

  Expected<void> lower_op(std::size_t index, bool last) {
    const BodyNode& node = body_.nodes[index];
    if (node.name == "to_dtype") return convert(index, last);
    const bool square = node.name == "square";  // has no device operation of its own: x * x
    const OpRule* rule = rule_of(square ? "mul" : node.name);
    if (rule == nullptr) return unsupported(fmt::format("\"{}\" has no device operation", node.name));
    if (node.operands.size() != (square ? 1 : rule->arity)) {
      return unsupported(fmt::format("\"{}\" with {} operands", node.name, node.operands.size()));
    }
    const std::size_t first = rule->result == ResultType::kBranches ? 1 : 0;
    KERNTRAIL_TRY(const DType dtype, common_type(node, first));
    std::vector<TensorArg> inputs;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      KERNTRAIL_TRY(TensorArg arg, operand(node.operands[i], i < first ? DType::kBool : dtype));
      if (i < first && arg.dtype != DType::kBool) return unsupported("the condition of a choice is no truth value");
      inputs.push_back(std::move(arg));
    }
    if (square) inputs.push_back(inputs[0]);
    return finish(index, rule->device_op, std::move(inputs), rule->result == ResultType::kBool ? DType::kBool : dtype,
                  last);
  }

  Expected<void> store(std::size_t root) {
    KERNTRAIL_CHECK(lower_operands(root));
    const BodyNode& node = body_.nodes[root];
    if (node.kind == BodyKind::kOp) return lower_op(root, true);
    KERNTRAIL_TRY(TensorArg input, operand(root, body_.output.dtype));
    if (input.dtype != body_.output.dtype) {
      return unsupported(fmt::format("copies {} into {}", dtype_name(input.dtype), dtype_name(body_.output.dtype)));
    }
    std::vector<TensorArg> inputs;
    inputs.push_back(std::move(input));
    emit("identity", std::move(inputs), output(), nodes_of(root));
    return {};
  }

  // The whole body is one device operation: its inputs are the distinct loads, in the order of reading.
  Expected<std::vector<OpSpec>> whole() {
    std::vector<TensorArg> inputs;
    for (const BodyNode& node : body_.nodes) {
      if (node.kind != BodyKind::kLoad) continue;
      KERNTRAIL_TRY(TensorArg arg, load(node));
      if (arg.dtype != body_.output.dtype) return unsupported("an operation kept whole changes the type");
      if (std::ranges::find(inputs, arg) == inputs.end()) inputs.push_back(std::move(arg));
    }
    if (inputs.empty()) return unsupported(fmt::format("\"{}\" reads nothing", body_.device_op));
    emit(body_.device_op, std::move(inputs), output(), all_nodes());
    return std::move(specs_);
  }

  Expected<std::vector<OpSpec>> matmul() {
    std::vector<TensorArg> inputs;
    for (const std::size_t root : body_.roots) {
      if (body_.nodes[root].kind != BodyKind::kLoad) return unsupported("a matmul operand is computed in its body");
      KERNTRAIL_TRY(TensorArg arg, load(body_.nodes[root]));
      if (arg.dtype != body_.output.dtype) return unsupported("matmul operands and result differ in type");
      inputs.push_back(std::move(arg));
    }
    if (body_.ranges.size() < 2 || body_.reduction_ranges.size() != 1) return unsupported("matmul of unknown rank");
    emit("batchmatmul", std::move(inputs), output(), all_nodes(), true);
    return std::move(specs_);
  }

  const BufferBody& body_;
  ConstantTable& constants_;
  std::vector<IterDim> space_;
  std::vector<OpSpec> specs_;
  std::map<std::size_t, TensorArg> values_;  // operations lowered so far: where their result is
  std::vector<BodyPart> parts_;
  std::set<std::size_t> folded_;  // conversions that came to nothing
  std::vector<std::vector<std::size_t>> made_from_;  // as specs_
  int temporaries_ = 0;
};

}  // namespace

std::string ConstantTable::name_of(double value, DType dtype) {
  const auto same = [&](const KernelConstant& c) {
    const bool nan = std::isnan(value) && std::isnan(c.value);
    return c.dtype == dtype && (nan || std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(c.value));
  };
  const auto it = std::ranges::find_if(constants_, same);
  if (it != constants_.end()) return it->name;
  constants_.push_back({fmt::format("constant_{}", constants_.size()), value, dtype});
  return constants_.back().name;
}

std::string_view device_op_of(std::string_view compiler_op) {
  const OpRule* rule = rule_of(compiler_op);
  return rule == nullptr ? std::string_view{} : rule->device_op;
}

std::vector<IterDim> iteration_space_of(const std::vector<std::int64_t>& ranges,
                                        const std::vector<std::int64_t>& reduction_ranges) {
  std::vector<IterDim> space;
  for (const auto* list : {&ranges, &reduction_ranges}) {
    for (const std::int64_t extent : *list) space.push_back({fmt::format("c{}", space.size()), extent, 1});
  }
  return space;
}

Expected<std::vector<BodyPart>> parts_of(const BufferBody& body) {
  ConstantTable scratch;
  Lowering lowering(body, scratch);
  KERNTRAIL_CHECK(lowering.run());
  return lowering.parts();
}

Expected<std::vector<OpSpec>> lower_buffer(const BufferBody& body, ConstantTable& constants,
                                           std::vector<std::vector<std::size_t>>* made_from) {
  Lowering lowering(body, constants);
  auto specs = lowering.run();
  if (made_from != nullptr && specs) *made_from = lowering.take_made_from();
  return specs;
}

}  // namespace kerntrail::spyre
