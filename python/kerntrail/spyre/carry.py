"""Whether a graph can be carried: decided on a traced copy, before AOTAutograd, without touching the graph itself.

Every operation that is not listed here is refused. One refused node refuses the whole graph; all reasons are collected.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor import config as inductor_config
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from kerntrail.spyre import lowerings

aten = torch.ops.aten
prims = torch.ops.prims

FLOATS = (torch.float16, torch.float32)
MAX_RANK = 4


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why a graph is not carried.

    Codes: `setting` (an Inductor setting we don't run under), `autocast`, `needs_gradient`, `grad_mode`,
    `symbolic_dimension`, `input` (not a dense cpu tensor of a carried type), `module_state` (a tensor or module held by
    the graph instead of passed in), `sub_graph`, `trace_failed`, `no_device_op`, `operand` (an operation we have, on
    operands we don't), `layout_conflict`, `output`, `nothing_to_run`.
    """

    code: str
    message: str
    node: str | None = None


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Inductor's table without the operations that the device has whole."""
    return {op: fn for op, fn in select_decomp_table().items() if op not in lowerings.UNDECOMPOSED}


def reasons_against(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> list[Reason]:
    """Empty: the graph can be carried. Neither `gm` nor any global state is changed, and no guard is added."""
    reasons = [*_environment(), *_inputs(gm, example_inputs), *_module(gm)]
    if reasons:
        return reasons
    try:
        traced = _trace(gm, example_inputs)
    except Exception as error:  # whatever stops the copy: stock Inductor compiles the original, or raises its own error
        return [Reason("trace_failed", f"{type(error).__name__}: {error}".splitlines()[0])]
    return _Checker(traced).run()


def _environment() -> list[Reason]:
    from torch._inductor import compile_fx

    reasons = []
    for name in ("cpp_wrapper", "fx_wrapper", "freezing", "pre_grad_custom_pass",
                 "post_grad_custom_pre_pass", "post_grad_custom_post_pass"):
        if getattr(inductor_config, name, None):
            reasons.append(Reason("setting", f"torch._inductor.config.{name} is set"))
    if compile_fx.fx_compile_mode != compile_fx.FxCompileMode.NORMAL:
        reasons.append(Reason("setting", f"fx_compile_mode is {compile_fx.fx_compile_mode.name}"))
    if torch.is_autocast_enabled("cpu"):
        reasons.append(Reason("autocast", "autocast is on"))
    return reasons


def _is_static(values: Sequence[Any]) -> bool:
    return all(type(value) is int for value in values)


def _inputs(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> list[Reason]:
    names = [node.name for node in gm.graph.nodes if node.op == "placeholder"]
    reasons = []
    for name, value in zip(names, example_inputs):
        if not isinstance(value, torch.Tensor):
            symbolic = isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
            code = "symbolic_dimension" if symbolic else "input"
            reasons.append(Reason(code, f"input of type {type(value).__name__}", name))
        elif not _is_static((*value.shape, *value.stride(), value.storage_offset())):
            reasons.append(Reason("symbolic_dimension", "shape or stride is symbolic", name))
        elif (why := _unfit_input(value)) is not None:
            reasons.append(Reason("input", why, name))
        if isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled():
            reasons.append(Reason("needs_gradient", "input requires a gradient and gradients are on", name))
    return reasons


def _unfit_input(value: torch.Tensor) -> str | None:
    if value.device.type != "cpu":
        return f"on device {value.device}"
    if value.layout is not torch.strided:
        return f"layout {value.layout}"
    if type(value) not in (torch.Tensor, torch.nn.Parameter, torch._subclasses.FakeTensor):
        return f"tensor subclass {type(value).__name__}"
    return None


def _module(gm: torch.fx.GraphModule) -> list[Reason]:
    reasons = []
    for node in gm.graph.nodes:
        if node.op == "call_module":
            reasons.append(Reason("module_state", f"calls module {node.target}", node.name))
        elif node.op == "get_attr":
            held = gm
            for part in str(node.target).split("."):
                held = getattr(held, part, None)
            code = "sub_graph" if isinstance(held, torch.fx.GraphModule) else "module_state"
            reasons.append(Reason(code, f"reads attribute {node.target}", node.name))
        elif node.op == "call_function" and "grad_enabled" in getattr(node.target, "__name__", ""):
            reasons.append(Reason("grad_mode", "switches gradients inside the graph", node.name))
        elif node.op == "call_function" and "autocast" in getattr(node.target, "__name__", ""):
            reasons.append(Reason("autocast", "switches autocast inside the graph", node.name))
    return reasons


def _trace(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> torch.fx.Graph:
    """The ATen graph of a copy, on fake tensors of a mode of its own, functionalised, without dead nodes."""
    mode = FakeTensorMode()
    with torch._guards.tracing(None), torch.no_grad(), torch.fx.traceback.preserve_node_meta():
        with mode:
            fakes = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in example_inputs]
            run = torch.func.functionalize(lambda *args: torch.fx.Interpreter(gm).run(*args), remove="mutations")
            traced = make_fx(run, decomposition_table=decompositions(), tracing_mode="real")(*fakes)
    traced.graph.eliminate_dead_code()
    return traced.graph


class _Refused(Exception):
    def __init__(self, message: str, code: str = "operand") -> None:
        super().__init__(message)
        self.code = code


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise _Refused(message)


def _value(node: Any) -> torch.Tensor:
    return node.meta["val"]


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _broadcasts(shape: Sequence[int], out: Sequence[int]) -> bool:
    """One element, or (after leading ones) exactly the last dimensions of `out`: a bias."""
    if len(shape) > len(out):
        return False
    core = list(shape)
    while core and core[0] == 1:
        core.pop(0)
    return not core or core == list(out[len(out) - len(core):])


class _Checker:
    """Looks at each node of a traced graph once and refuses what has no rule."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph

    def run(self) -> list[Reason]:
        reasons, computed = [], 0
        for node in self.graph.nodes:
            try:
                if node.op == "placeholder":
                    self.check_placeholder(node)
                elif node.op == "output":
                    self.check_output(node)
                elif node.op == "get_attr":
                    raise _Refused(f"reads attribute {node.target}", "module_state")
                else:
                    self.check_call(node)
                    computed += node.target not in lowerings.UNREALIZED
            except _Refused as refusal:
                reasons.append(Reason(refusal.code, str(refusal), _origin(node)))
        if not reasons and not computed:
            reasons.append(Reason("nothing_to_run", "the graph computes nothing"))
        return reasons

    def check_placeholder(self, node: torch.fx.Node) -> None:
        if not node.users:
            return
        value = _value(node)
        if value.dtype not in FLOATS:
            raise _Refused(f"type {value.dtype}", "input")
        if not value.is_contiguous() or value.numel() == 0:
            raise _Refused(f"shape {tuple(value.shape)} with strides {value.stride()}", "input")
        permuted = [user for user in node.users if user.target is aten.permute.default]
        if permuted and len(permuted) != len(node.users):
            raise _Refused("used transposed and as it is: the device needs two layouts of one tensor", "layout_conflict")

    def check_output(self, node: torch.fx.Node) -> None:
        flat: list[Any] = []
        torch.fx.node.map_arg(node.args, flat.append)
        for result in flat:
            if result.op != "call_function" or result.target in lowerings.UNREALIZED:
                raise _Refused(f"output {result.name} is an input, a view or a constant", "output")
            if _value(result).dtype not in FLOATS:
                raise _Refused(f"output {result.name} is of type {_value(result).dtype}", "output")

    def check_call(self, node: torch.fx.Node) -> None:
        rule = RULES.get(node.target) if node.op == "call_function" else None
        if rule is None:
            raise _Refused(f"{node.target} has no OpSpec", "no_device_op")
        out = node.meta.get("val")
        _need(isinstance(out, torch.Tensor) and _is_static(out.shape), "result is no tensor of fixed shape")
        if node.target not in lowerings.UNREALIZED:
            _need(out.is_contiguous() and out.numel() > 0 and 1 <= out.dim() <= MAX_RANK,
                  f"result of shape {tuple(out.shape)} with strides {out.stride()}")
            _need(out.device.type == "cpu", f"result on {out.device}")
        rule(node, out)
        if out.dtype is torch.bool:
            _need(all(user.target is aten.where.self and user.args[0] is node
                      and node not in user.args[1:] for user in node.users),
                  "a truth value is used other than as the condition of where")


def _origin(node: torch.fx.Node) -> str:
    """The node of the graph handed in that this traced node comes from, where the trace tells."""
    chain = node.meta.get("from_node")
    return chain[-1].name if chain else node.name


def _operands(operands: Sequence[Any], out: torch.Tensor, dtype: torch.dtype) -> None:
    """Tensors of `dtype` that broadcast to the result, or numbers; at least one tensor."""
    _need(dtype in FLOATS, f"type {dtype}")
    tensors = [x for x in operands if isinstance(x, torch.fx.Node)]
    _need(bool(tensors), "no tensor operand")
    for x in operands:
        if not isinstance(x, torch.fx.Node):
            _need(_is_number(x), f"operand {x!r}")
            continue
        value = _value(x)
        _need(x.target is not aten.permute.default, "a transposed tensor outside a matrix product")
        _need(value.dtype is dtype, f"operands of type {value.dtype} and {dtype}")
        _need(_broadcasts(value.shape, out.shape), f"shape {tuple(value.shape)} broadcast to {tuple(out.shape)}")


def _no_keywords(node: torch.fx.Node, *allowed: str) -> None:
    for key, value in node.kwargs.items():
        _need(key in allowed or value is None, f"argument {key}={value}")


def _unary(node: torch.fx.Node, out: torch.Tensor) -> None:
    _no_keywords(node)
    _need(len(node.args) == 1, "more than one argument")
    _operands(node.args, out, out.dtype)


def _gelu(node: torch.fx.Node, out: torch.Tensor) -> None:
    _need(node.kwargs.get("approximate", "none") == "none", "the tanh approximation of gelu")
    _no_keywords(node, "approximate")
    _operands(node.args, out, out.dtype)


def _clone(node: torch.fx.Node, out: torch.Tensor) -> None:
    _no_keywords(node, "memory_format")
    _operands(node.args, out, out.dtype)


def _binary(node: torch.fx.Node, out: torch.Tensor) -> None:
    _no_keywords(node, "alpha")
    _need(_is_number(node.kwargs.get("alpha", 1)), "alpha is no number")
    _need(len(node.args) == 2, "more than two operands")
    _operands(node.args, out, out.dtype)


def _comparison(node: torch.fx.Node, out: torch.Tensor) -> None:
    _no_keywords(node)
    tensors = [x for x in node.args if isinstance(x, torch.fx.Node)]
    _need(bool(tensors), "no tensor operand")
    _operands(node.args, out, _value(tensors[0]).dtype)


def _square(node: torch.fx.Node, out: torch.Tensor) -> None:
    _need(node.args[1] == 2, f"power {node.args[1]}")
    _operands(node.args[:1], out, out.dtype)


def _where(node: torch.fx.Node, out: torch.Tensor) -> None:
    condition = node.args[0]
    _need(_value(condition).dtype is torch.bool and condition.op == "call_function", "condition is no comparison")
    _need(_value(condition).shape == out.shape, "a condition that is broadcast")
    _operands(node.args[1:], out, out.dtype)


def _convert(node: torch.fx.Node, out: torch.Tensor) -> None:
    _no_keywords(node)
    source = _value(node.args[0])
    _need(out.dtype in FLOATS, f"conversion to {out.dtype}")
    _operands(node.args[:1], out, source.dtype)


def _permute(node: torch.fx.Node, out: torch.Tensor) -> None:
    weight, order = node.args
    _need(weight.op == "placeholder" and list(order) == [1, 0], "a view other than the transpose of an input matrix")
    for user in node.users:
        right = {aten.mm.default: 1, aten.addmm.default: 2}.get(user.target)
        _need(right is not None and [i for i, x in enumerate(user.args) if x is node] == [right],
              "a transposed tensor that is not the right side of a matrix product")


def _constant(node: torch.fx.Node, out: torch.Tensor) -> None:
    value = node.args[0] if node.target is aten.scalar_tensor.default else node.args[1]
    _need(_is_number(value), f"constant {value!r}")
    _need(out.dtype in FLOATS and out.device.type == "cpu", f"constant of type {out.dtype} on {out.device}")


def _product(left: torch.fx.Node, right: torch.fx.Node, out: torch.Tensor) -> None:
    _need(out.dtype in FLOATS, f"type {out.dtype}")
    for side in (left, right):
        _need(_value(side).dtype is out.dtype, f"operands of type {_value(side).dtype} and {out.dtype}")
        _need(side.target not in (aten.full.default, aten.scalar_tensor.default), "a constant matrix")
    _need(left.target is not aten.permute.default, "the left side is transposed")
    _need(_value(left).shape[1] > 1, "a product over one element")


def _mm(node: torch.fx.Node, out: torch.Tensor) -> None:
    _no_keywords(node)
    _need(len(node.args) == 2, "a product with an output type")
    _product(*node.args, out)


def _addmm(node: torch.fx.Node, out: torch.Tensor) -> None:
    _no_keywords(node, "alpha", "beta")
    for key in ("alpha", "beta"):
        _need(node.kwargs.get(key, 1) == 1, f"{key} is {node.kwargs.get(key)}")
    bias, left, right = node.args
    _operands((bias,), out, out.dtype)
    _product(left, right, out)


RULES: dict[Any, Callable[[torch.fx.Node, torch.Tensor], None]] = {
    **dict.fromkeys(
        (aten.abs.default, aten.exp.default, aten.log.default, aten.neg.default, aten.sqrt.default, aten.rsqrt.default,
         aten.tanh.default, aten.sigmoid.default, aten.floor.default, aten.reciprocal.default, aten.relu.default,
         aten.silu.default),
        _unary,
    ),
    **dict.fromkeys(
        (aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.mul.Tensor, aten.mul.Scalar,
         aten.div.Tensor, aten.div.Scalar, aten.maximum.default, aten.minimum.default, aten.clamp_min.default,
         aten.clamp_max.default),
        _binary,
    ),
    **{getattr(getattr(aten, name), kind): _comparison
       for name in ("eq", "ne", "gt", "ge", "lt", "le") for kind in ("Tensor", "Scalar")},
    aten.gelu.default: _gelu,
    aten.clone.default: _clone,
    aten.pow.Tensor_Scalar: _square,
    aten.where.self: _where,
    prims.convert_element_type.default: _convert,
    aten.permute.default: _permute,
    aten.scalar_tensor.default: _constant,
    aten.full.default: _constant,
    aten.mm.default: _mm,
    aten.addmm.default: _addmm,
}
