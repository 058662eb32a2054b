"""Lowerings to the loop-level shapes that the C++ side understands.

A matrix product is a Reduction whose body is the pair of its two loads; an operation that the device has whole is a
Pointwise that carries the device's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.virtualized import V, ops

aten = torch.ops.aten

# Kept out of the decomposition table: the device has them whole.
UNDECOMPOSED = (aten.silu.default, aten.gelu.default)
# No buffer of their own: the permute of a weight is a view, scalars are inlined where they are used.
UNREALIZED = (aten.permute.default, aten.scalar_tensor.default, aten.full.default)


def lower_mm(left: ir.TensorBox, right: ir.TensorBox) -> ir.TensorBox:
    left.realize()
    right.realize()
    rows, inner = left.get_size()
    columns = right.get_size()[-1]
    load_left, load_right = left.make_loader(), right.make_loader()

    def body(index: Any, reduction_index: Any) -> tuple[Any, Any]:
        m, n = index
        (k,) = reduction_index
        return load_left((m, k)), load_right((k, n))

    result = ir.TensorBox.create(
        ir.Reduction(
            device=left.get_device(),
            dtype=left.get_dtype(),
            inner_fn=body,
            ranges=[rows, columns],
            reduction_ranges=[inner],
            reduction_type="batchmatmul",
            src_dtype=left.get_dtype(),
            reduction_hint=ir.ReductionHint.DEFAULT,
        )
    )
    result.realize()
    return result


class DevicePointwise(ir.Pointwise):
    """A Pointwise that is one device operation, `device_op`. Its body only tells the scheduler what is read."""

    device_op: str


def whole(device_op: str, formula: Callable[[Any], Any]) -> Callable[..., ir.TensorBox]:
    def lower(x: ir.TensorBox, **_: Any) -> ir.TensorBox:
        x.realize()
        load = x.make_loader()
        data = DevicePointwise(
            device=x.get_device(), dtype=x.get_dtype(), inner_fn=lambda i: formula(load(i)), ranges=list(x.get_size())
        )
        object.__setattr__(data, "device_op", device_op)  # IR nodes are frozen
        return ir.TensorBox.create(data)

    return lower


OWN: dict[Any, Callable[..., ir.TensorBox]] = {
    aten.mm.default: lower_mm,
    aten.silu.default: whole("silu", lambda v: ops.mul(v, ops.sigmoid(v))),
    aten.gelu.default: whole("gelufwd", lambda v: ops.mul(v, ops.erf(v))),
}


def realizing(target: Any) -> Callable[..., Any]:
    """A `user_lowerings` entry for `target`: our own lowering, or None, which makes Inductor use its own.

    Either way the result is realised: Inductor reads the mark of the node it has just lowered.
    """
    own = OWN.get(target)

    def lower(*args: Any, **kwargs: Any) -> Any:
        V.graph.current_node.meta["inductor_realize_to_strides"] = True
        return own(*args, **kwargs) if own is not None else None

    return lower
