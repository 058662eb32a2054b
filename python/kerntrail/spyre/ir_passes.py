"""Passes over `graph.operations` of a lowered graph. Each is a function of the lowering; its name is the pass's name.

Buffers are never edited in place where their body changes: a new buffer takes over the name, and the provenance is
forwarded (provenance.py). `insert_restickify` makes buffers that no FX node stands for: they have no origins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch._inductor import ir
from torch._inductor.ops_handler import WrapperHandler
from torch._inductor.virtualized import V, ops

from kerntrail import _native
from kerntrail.spyre import provenance
from kerntrail.spyre.lowerings import DevicePointwise

RESTICKIFY = "ReStickifyOpHBM"
_PROVENANCE = ("origins", "origin_node", "traceback", provenance.HISTORY_ATTRIBUTE)
_OF_THE_BUFFER_ITSELF = ("name", "layout", "data", "operation_name")


# -- the passes -------------------------------------------------------------------------------------------------------


def deadcode_elimination(graph: Any) -> None:
    """Operations whose result nobody reads go. Their provenance goes with them, on purpose."""
    wanted = set(graph.get_output_names())
    for operation in reversed(list(graph.operations)):
        if not isinstance(operation, ir.ComputedBuffer) or operation.get_mutation_names():
            wanted.update(operation.get_read_names())
        elif operation.get_name() in wanted:
            wanted.update(_native.spyre.body_parts(operation)["reads"])
        else:
            _remove(graph, operation)


def split_multi_ops(graph: Any) -> None:
    """A body with several operations becomes one buffer for each; the last one keeps the buffer's name."""
    for operation in list(graph.operations):
        if isinstance(operation, ir.ComputedBuffer):
            body = _native.spyre.body_parts(operation)
            if len(body["parts"]) > 1:
                _split(graph, operation, body)


def dedup_buffers(graph: Any) -> None:
    """Of several buffers that compute the same, the first stays and those who read the others read it. Results of the
    graph stay what they are."""
    first: dict[Any, str] = {}
    outputs = set(graph.get_output_names())
    for name in [operation.get_name() for operation in graph.operations if isinstance(operation, ir.ComputedBuffer)]:
        operation = graph.name_to_buffer[name]  # rebuilt, where it read a duplicate
        if name in outputs or operation.get_mutation_names():
            continue
        kept = first.setdefault(_fingerprint(operation), name)
        if kept != name:
            merge = provenance.merge_provenance
            merge([operation], graph.name_to_buffer[kept], "dedup_buffers", f"duplicate {name}")
            _remove(graph, operation)
            _redirect(graph, name, kept, "dedup_buffers")


def insert_restickify(graph: Any) -> None:
    """A matrix product wants its operands with k and n inside the stick; one that lies otherwise is laid out anew by an
    operation of its own."""
    made: dict[str, ir.ComputedBuffer] = {}
    for operation in list(graph.operations):
        for name in _misplaced_operands(operation):
            if name not in made:
                made[name] = _insert_before(graph, operation, _restickified(graph, name))
            new = made[name].get_name()
            operation = replace_body(graph, operation, _renamed(operation.data, {name: new}), "insert_restickify",
                                     f"reads {name} through {new}")


def assign_dim_hints(graph: Any) -> None:
    """Hints of the user for tiling and core splits, by loop variable. There is no way to give any yet: all empty."""
    for operation in graph.operations:
        operation.dim_hints = {}


def _distribute_work(graph: Any) -> None:
    """Divides each operation's loops over the cores.

    The result is keyed by the loop variable's coefficient, since Inductor renames loop variables between passes: one
    table for output loops (coefficient in the write index), one for reduction loops (in the first read index).
    """
    for operation in graph.operations:
        if isinstance(operation, ir.ComputedBuffer):
            operation.op_it_space_splits = _native.spyre.distribute_work(operation)


# -- rewriting buffers ------------------------------------------------------------------------------------------------


def replace_body(
    graph: Any, old: ir.ComputedBuffer, data: ir.Loops, pass_name: str, reason: str | None
) -> ir.ComputedBuffer:
    """A buffer of the same name and layout that computes `data` takes the place of `old`."""
    new = ir.ComputedBuffer(name=old.get_name(), layout=old.layout, data=data)
    provenance.preserve_provenance(old, new, pass_name, reason)
    _take_place(graph, old, new)
    return new


def copy_op_metadata(old: ir.ComputedBuffer, new: ir.ComputedBuffer) -> None:
    """What earlier passes noted on a buffer, but neither its provenance nor anything cached of its body."""
    for key, value in vars(old).items():
        if key not in _PROVENANCE and key not in _OF_THE_BUFFER_ITSELF and "cache" not in key:
            object.__setattr__(new, key, value)


def _take_place(graph: Any, old: ir.ComputedBuffer, new: ir.ComputedBuffer) -> None:
    copy_op_metadata(old, new)
    new.operation_name = old.get_operation_name()
    for key in ("origins", "origin_node", "traceback"):  # the loops' own copy of what the buffer has
        object.__setattr__(new.data, key, getattr(old.data, key, None))
    graph.operations[_position(graph.operations, old)] = new
    graph.buffers[_position(graph.buffers, old)] = new
    graph.name_to_buffer[new.get_name()] = new
    graph.name_to_op[new.get_operation_name()] = new
    for holder in graph.graph_outputs:
        while isinstance(holder, ir.MutableBox):
            if holder.data is old:
                holder.data = new
            holder = holder.data


def _position(items: Sequence[Any], wanted: Any) -> int:
    return next(i for i, item in enumerate(items) if item is wanted)


def _remove(graph: Any, operation: ir.ComputedBuffer) -> None:
    del graph.operations[_position(graph.operations, operation)]
    graph.removed_operations.add(operation.get_operation_name())
    graph.removed_buffers.add(operation.get_name())


def _insert_before(graph: Any, place: ir.Operation, data: ir.Loops) -> ir.ComputedBuffer:
    """A new buffer for `data`, named by the graph, in front of `place`. It has no provenance yet."""
    box = ir.TensorBox.create(data)
    box.realize()
    new = graph.operations.pop()  # realize() puts it at the end
    new.decide_layout()  # lowering is over: nobody else will
    graph.operations.insert(_position(graph.operations, place), new)
    return new


class _Rename(WrapperHandler):
    """Loads go to the buffers of other names."""

    def __init__(self, inner: Any, names: dict[str, str]) -> None:
        super().__init__(inner)
        self.names = names

    def load(self, name: str, index: Any) -> Any:
        return self._inner.load(self.names.get(name, name), index)


def _renamed(data: ir.Loops, names: dict[str, str]) -> ir.Loops:
    inner_fn = data.inner_fn

    def renamed(*indices: Any) -> Any:
        with V.set_ops_handler(_Rename(V.get_ops_handler(), names)):
            return inner_fn(*indices)

    return _with_body(data, renamed)


def _with_body(data: ir.Loops, inner_fn: Callable[..., Any]) -> ir.Loops:
    new = dataclasses.replace(data, inner_fn=inner_fn)
    if isinstance(data, DevicePointwise):
        object.__setattr__(new, "device_op", data.device_op)
    return new


# -- split_multi_ops --------------------------------------------------------------------------------------------------


def _split(graph: Any, old: ir.ComputedBuffer, body: dict[str, Any]) -> None:
    made: dict[int, ir.ComputedBuffer] = {}
    *first, (root, result) = body["parts"]
    for node, dtype in first:
        data = ir.Pointwise(device=old.get_device(), dtype=getattr(torch, dtype),
                            inner_fn=_part(body["nodes"], node, dtype, dict(made)), ranges=list(old.data.ranges))
        made[node] = _insert_before(graph, old, data)
    data = _with_body(old.data, _part(body["nodes"], root, result, dict(made)))
    last = ir.ComputedBuffer(name=old.get_name(), layout=old.layout, data=data)
    children = [*made.values(), last]
    for child, (node, _) in zip(children, body["parts"], strict=True):
        name = body["nodes"][node][1]
        provenance.decompose_provenance(old, [child], "split_multi_ops", f"materialize {name}")
    _take_place(graph, old, last)
    for child in made.values():
        copy_op_metadata(old, child)


def _part(
    nodes: Sequence[Any], root: int, result: str, made: dict[int, ir.ComputedBuffer]
) -> Callable[[Sequence[Any]], Any]:
    """The body that does one operation, with a value of type `result`: its operands are loads, constants (of that type
    where they say none) and the buffers made for earlier operations."""

    def inner(index: Sequence[Any]) -> Any:
        loops = {sympy.Symbol(f"c{i}", integer=True, nonnegative=True): value for i, value in enumerate(index)}

        def value_of(number: int) -> Any:
            kind, name, place, value, dtype, operands, _ = nodes[number]
            if kind == "load":
                return _again(nodes[number], lambda: ops.load(name, _index(place, loops)))
            if kind == "constant":
                return _again(nodes[number], lambda: ops.constant(value, getattr(torch, dtype or result)))
            if number in made:
                return ops.load(made[number].get_name(), made[number].layout.make_indexer()(index))
            return value_of(operands[0])  # a conversion to the type that the value has already

        kind, name, _, _, dtype, operands, _ = nodes[root]
        values = [value_of(number) for number in operands]
        if name == "to_dtype":
            return _again(nodes[root], lambda: ops.to_dtype(values[0], getattr(torch, dtype)))
        return _again(nodes[root], lambda: getattr(ops, name)(*values))

    return inner


def _again(node: Sequence[Any], operation: Callable[[], Any]) -> Any:
    """Does once more what body_parts noted as `node`: the seam at which a watcher sees that it is the same operation."""
    return operation()


def _index(text: str, loops: dict[sympy.Symbol, Any]) -> Any:
    return sympy.sympify(text, locals={symbol.name: symbol for symbol in loops}).xreplace(loops)


# -- dedup_buffers ----------------------------------------------------------------------------------------------------


def _fingerprint(operation: ir.ComputedBuffer) -> Any:
    """Equal for buffers that compute the same from the same buffers and lie the same way."""
    data, body = operation.data, _native.spyre.body_parts(operation)
    layout = operation.get_layout()
    return (
        type(data).__name__, body["device_op"], getattr(data, "reduction_type", None), tuple(map(str, data.ranges)),
        tuple(map(str, getattr(data, "reduction_ranges", ()))), str(layout.dtype), tuple(map(str, layout.size)),
        tuple(map(str, layout.stride)), tuple(body["roots"]),
        tuple((*node[:3], repr(node[3]), node[4], tuple(node[5])) for node in body["nodes"]),
    )


def _redirect(graph: Any, old: str, new: str, pass_name: str) -> None:
    """Whoever reads `old` reads `new`."""
    for operation in list(graph.operations):
        if isinstance(operation, ir.ComputedBuffer) and old in _native.spyre.body_parts(operation)["reads"]:
            replace_body(graph, operation, _renamed(operation.data, {old: new}), pass_name, f"reads {new} for {old}")


# -- insert_restickify ------------------------------------------------------------------------------------------------


def _misplaced_operands(operation: ir.Operation) -> list[str]:
    """Operands of a matrix product whose fastest dimension is not the one that the product wants there."""
    if not isinstance(operation, ir.ComputedBuffer) or getattr(operation.data, "reduction_type", None) != "batchmatmul":
        return []
    body = _native.spyre.body_parts(operation)
    rank = len(operation.data.ranges)
    names = []
    for root, (wanted, extent) in zip(body["roots"], ((rank, operation.data.reduction_ranges[0]),
                                                      (rank - 1, operation.data.ranges[-1]))):
        _, name, index, *_ = body["nodes"][root]
        symbol = sympy.Symbol(f"c{wanted}", integer=True, nonnegative=True)
        if extent != 1 and sympy.sympify(index, locals={symbol.name: symbol}).coeff(symbol) != 1 and name not in names:
            names.append(name)
    return names


def _restickified(graph: Any, name: str) -> ir.Loops:
    source = graph.get_buffer(name)
    load = source.make_loader()
    data = DevicePointwise(device=source.get_device(), dtype=source.get_dtype(), inner_fn=lambda index: load(index),
                           ranges=list(source.get_size()))
    object.__setattr__(data, "device_op", RESTICKIFY)  # IR nodes are frozen
    return data
