"""The pass pipelines, and the passes over FX graphs. Each list runs in the order written; every class is a seam that
tools may wrap, and every pass runs inside an observer that carries its name: torch's own for FX graphs, that of
provenance.py for the lowered graph (whose passes are in ir_passes.py).

decompose_addmm and relabel_linear_permutes run before Inductor's post-grad passes, so that what CustomPostPasses sees
is the graph that is lowered.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._inductor import lowering
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch.fx.passes.graph_transform_observer import GraphTransformObserver

from kerntrail.spyre import ir_passes, lowerings, provenance
from kerntrail.spyre.settings import Settings

aten = torch.ops.aten

# What the addmm split copies from the addmm it replaces. "seed" is what torch 2.11's pattern replacement kept.
SEED_META_KEYS = ("original_aten", "val", "tensor_meta")


class _SpyreGraphPass(CustomGraphPass):
    """A list of passes over one FX graph, each under an observer that carries its name."""

    def passes(self) -> Iterable[tuple[str, Callable[[torch.fx.Graph], None]]]:
        return ()

    def __call__(self, graph: torch.fx.Graph) -> None:
        module = graph.owning_module
        for name, fn in self.passes():
            GraphTransformObserver(module, name, subsystem="kerntrail_spyre").apply_graph_pass(fn)

    def uuid(self) -> Any:
        return get_hash_for_files((__file__, lowerings.__file__))


class CustomPreGradPasses(_SpyreGraphPass):
    """Nothing has to be done before autograd; the seam is where the pre-grad graph is observed."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        super().__call__(graph)


class CustomPrePasses(_SpyreGraphPass):
    """Post-grad, before Inductor's own passes."""

    def __init__(self, metadata: str) -> None:
        self.metadata = metadata

    def passes(self) -> Iterable[tuple[str, Callable[[torch.fx.Graph], None]]]:
        return (
            ("decompose_addmm", functools.partial(decompose_addmm, metadata=self.metadata)),
            ("relabel_linear_permutes", relabel_linear_permutes),
        )

    def uuid(self) -> Any:
        return (super().uuid(), self.metadata)


class CustomPostPasses(_SpyreGraphPass):
    """Post-grad, after Inductor's own passes: the graph is final."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        super().__call__(graph)

    def passes(self) -> Iterable[tuple[str, Callable[[torch.fx.Graph], None]]]:
        return (("register_buffer_lowerings", register_buffer_lowerings),)


def decompose_addmm(graph: torch.fx.Graph, metadata: str) -> None:
    """addmm(bias, x, w) becomes mm(x, w) and add(bias, mm).

    Last addmm first: FX numbers the names of new nodes in the order they are made, and the last linear of the reference
    model carries the plain names.
    """
    for node in reversed(graph.find_nodes(op="call_function", target=aten.addmm.default)):
        bias, left, right = node.args
        with graph.inserting_before(node):
            mm = graph.call_function(aten.mm.default, (left, right))
            add = graph.call_function(aten.add.Tensor, (bias, mm))
        for new in (mm, add):
            for key, value in node.meta.items():
                if metadata == "full" or key in SEED_META_KEYS:
                    new.meta[key] = value
        node.replace_all_uses_with(add)
        graph.erase_node(node)


def relabel_linear_permutes(graph: torch.fx.Graph) -> None:
    """The permute of a linear's weight belongs to aten.linear.

    On cpu linear is decomposed before the trace and its permute is labelled aten.t; on the device linear is dispatched
    whole and owns it. This emulates the device on purpose.
    """
    for node in graph.find_nodes(op="call_function", target=aten.permute.default):
        stack = node.meta.get("source_fn_stack")
        if stack and getattr(stack[-1][1], "__name__", "") in ("linear", "Linear"):
            node.meta["original_aten"] = aten.linear.default


def register_buffer_lowerings(graph: torch.fx.Graph) -> None:
    """Every operation left gets a lowering that realises its result: one buffer per operation.

    The table is put back when the compile ends (backend.registered). The mark is set while a node is lowered, not here,
    so that it is in no node's meta while the graph can still be looked at.
    """
    for node in graph.nodes:
        if node.op == "call_function" and node.target not in lowerings.UNREALIZED and node.target is not operator.getitem:
            lowering.user_lowerings[node.target] = lowerings.realizing(node.target)


class CustomPreSchedulingPasses:
    """Passes over the lowered graph, after lowering and before the Scheduler exists: `passes`, in this order.

    Layouts are chosen for a whole kernel when its text is made (C++, plan.h), so that the reference's passes for them
    have no counterpart here.
    """

    def __init__(self, settings: Settings) -> None:
        self.passes: list[Callable[[Any], None]] = [
            ir_passes.deadcode_elimination,
            ir_passes.split_multi_ops,
            *((ir_passes.insert_restickify,) if settings.restickify else ()),
            ir_passes.dedup_buffers,
            *settings.pre_scheduling_passes,
            ir_passes.assign_dim_hints,
            ir_passes._distribute_work,
        ]

    def __call__(self, graph: Any) -> None:
        for fn in self.passes:
            name = getattr(fn, "__name__", type(fn).__name__)
            with provenance.SpyreGraphTransformObserver(graph, name, kind="graphlowering"):
                fn(graph)
