"""The dynamic witness of the Spyre-format back end: what a source line produces is disturbed, and the OpSpecs whose
results change are those that the line reaches. No provenance is read: an OpSpec is known by the value it computes.

Eager side: the post-grad graph, run node by node on the inputs that the compiled model was given, once as it is and once
for each line with the results of all nodes of that line disturbed. Device side: each OpSpec alone in the host executor,
on the disturbed values of the nodes whose values its operands have.
"""

from __future__ import annotations

import copy
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch import Tensor, fx

from kerntrail import _native
from kerntrail.spyre import async_compile, passes

Values = dict[str, Any]


@dataclass
class Recorded:
    """One compile and one run of it: the graph, the OpSpecs in order, and every tensor that a kernel was handed."""

    graph: fx.GraphModule | None = None
    specs: list[Any] = field(default_factory=list)
    tensors: Values = field(default_factory=dict)  # by name of the graph's placeholder, or of the constant


def record(compile_and_run: Any) -> Recorded:
    out = Recorded()
    post, sdsc, run = passes.CustomPostPasses.__call__, async_compile.SpyreAsyncCompile.sdsc, async_compile.SpyreSDSCKernelRunner.run

    def keep_graph(self: Any, graph: fx.Graph) -> None:
        post(self, graph)
        assert out.graph is None, "one graph at a time"
        out.graph = fx.GraphModule(graph.owning_module, copy.deepcopy(graph))

    def keep_specs(self: Any, name: str, text: str) -> Any:
        runner = sdsc(self, name, text)
        runner.kept = _native.spyre.parse_op_specs(text)
        out.specs += runner.kept
        return runner

    def keep_inputs(self: Any, *tensors: Tensor) -> None:
        for spec in self.kept:
            for arg in spec.args:
                if arg.is_input and arg.arg_index >= 0:
                    out.tensors.setdefault(arg.name, tensors[arg.arg_index].clone())
        run(self, *tensors)

    with (mock.patch.object(passes.CustomPostPasses, "__call__", keep_graph),
          mock.patch.object(async_compile.SpyreAsyncCompile, "sdsc", keep_specs),
          mock.patch.object(async_compile.SpyreSDSCKernelRunner, "run", keep_inputs)):
        compile_and_run()
    assert out.graph is not None and out.specs
    return out


def line_of(node: fx.Node, file: str) -> int | None:
    """The innermost one in a file."""
    lines = re.findall(rf'{re.escape(file)}", line (\d+)', node.meta.get("stack_trace") or "")
    return int(lines[-1]) if lines else None


def disturbed(value: Any) -> Any:
    """Another value of the same type, different everywhere."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(disturbed, value))
    if not isinstance(value, Tensor):
        return value
    return ~value if value.dtype is torch.bool else value * 1.25 + 0.5


class Disturbing(fx.Interpreter):
    """Keeps what each node gives; disturbs it first where the node is one of `nodes`."""

    def __init__(self, module: fx.GraphModule, nodes: Iterable[str] = ()) -> None:
        super().__init__(module)
        self.nodes, self.values = set(nodes), Values()

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        self.values[n.name] = disturbed(value) if n.name in self.nodes else value
        return self.values[n.name]


def eager_values(recorded: Recorded, nodes: Iterable[str] = ()) -> Values:
    inputs = [recorded.tensors.get(node.name) for node in recorded.graph.graph.nodes if node.op == "placeholder"]
    run = Disturbing(recorded.graph, nodes)
    with torch.no_grad():
        run.run(*inputs)
    return run.values


def differ(a: Tensor, b: Tensor) -> bool:
    """By more than rounding."""
    if a.dtype is torch.bool:
        return not torch.equal(a, b)
    scale = max(1.0, a.float().abs().max().item())
    return not torch.allclose(a.float(), b.float(), rtol=0.0, atol=64 * torch.finfo(a.dtype).eps * scale, equal_nan=True)


class Executor:
    """Each OpSpec as a kernel of its own."""

    def __init__(self, specs: list[Any], folder: str) -> None:
        self.kernels = []
        for i, spec in enumerate(specs):
            names = list(dict.fromkeys(arg.name for arg in spec.args))
            for arg in spec.args:
                arg.arg_index = names.index(arg.name)
            self.kernels.append((spec, _native.spyre.build_kernel([spec], f"{folder}/{i}")))

    def run(self, number: int, values: Values) -> Tensor:
        spec, kernel = self.kernels[number]
        tensors: dict[str, Tensor] = {}
        for arg in spec.args:
            space = torch.empty_strided(arg.host_size, arg.host_stride, dtype=getattr(torch, arg.dtype))
            if arg.is_input:
                space.copy_(values[arg.name].reshape(arg.host_size))
            tensors.setdefault(arg.name, space)
        kernel.run(tuple(tensors.values()))
        return tensors[spec.args[-1].name]


@dataclass
class Reached:
    by_value: set[int] = field(default_factory=set)  # the node whose value the OpSpec computes changed
    by_executor: set[int] = field(default_factory=set)  # the OpSpec itself gave another result

    def all(self) -> set[int]:
        return self.by_value | self.by_executor


@dataclass
class Reachability:
    lines: dict[int, Reached]
    nodes_of_line: dict[int, set[str]]
    line_of_node: dict[str, int]
    same_value: list[set[str]]  # by OpSpec: nodes that have its value
    # Of OpSpecs whose value no node has (parts of a split body, copies into another layout): lines that have a node whose
    # value changes when theirs is disturbed.
    parts: dict[int, set[int]]

    def reaches(self, line: int, spec: int) -> bool:
        return spec in self.lines[line].all() or line in self.parts.get(spec, ())


def reachability(recorded: Recorded, file: str) -> Reachability:
    """Which OpSpecs (by place) each line of `file` reaches."""
    base = eager_values(recorded)
    line_of_node = {node.name: line for node in recorded.graph.graph.nodes
                    if node.op == "call_function" and (line := line_of(node, file)) is not None}
    lines: dict[int, set[str]] = {}
    for name, line in line_of_node.items():
        lines.setdefault(line, set()).add(name)
    with tempfile.TemporaryDirectory() as folder:
        executor = Executor(recorded.specs, folder)
        plain = dict(recorded.tensors)
        same_value: list[set[str]] = []
        for i, spec in enumerate(recorded.specs):
            result = plain[spec.args[-1].name] = executor.run(i, plain)
            same_value.append({node.name for node in recorded.graph.graph.nodes if node.op == "call_function"
                               and isinstance(value := base[node.name], Tensor) and value.dtype is result.dtype
                               and value.shape == result.shape and not differ(value, result)})
        reached = {}
        for line, nodes in lines.items():
            reached[line] = _reached(recorded, executor, base, plain, same_value, nodes)
        parts = {}
        for i in range(len(recorded.specs)):
            if not same_value[i]:
                nodes = set().union(*(same_value[k] for k in _dependent(recorded, executor, plain, i)))
                parts[i] = {line_of_node[node] for node in nodes if node in line_of_node}
    return Reachability(reached, lines, line_of_node, same_value, parts)


def _dependent(recorded: Recorded, executor: Executor, plain: Values, number: int) -> list[int]:
    """OpSpecs whose results change when that of `number` is disturbed."""
    values, out = dict(plain), []
    for i, spec in enumerate(recorded.specs[number:], number):
        name = spec.args[-1].name
        values[name] = disturbed(plain[name]) if i == number else executor.run(i, values)
        if i != number and differ(plain[name], values[name]):
            out.append(i)
    return out


def _reached(recorded: Recorded, executor: Executor, base: Values, plain: Values, same_value: list[set[str]],
             nodes: set[str]) -> Reached:
    out = Reached()
    after, values = eager_values(recorded, nodes), dict(recorded.tensors)
    for i, spec in enumerate(recorded.specs):
        name = spec.args[-1].name
        result = executor.run(i, values)
        if differ(plain[name], result):
            out.by_executor.add(i)
        changed = [node for node in same_value[i] if differ(base[node], after[node])]
        if changed:
            out.by_value.add(i)
        # Who reads it reads what the line's disturbance makes of it, where a node says what that is.
        values[name] = after[changed[0]] if changed else result
    return out
