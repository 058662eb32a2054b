"""Carrying provenance through passes over loop-level buffers, and the seam at which such passes can be watched.

A buffer's provenance is its `origins` (a set of FX nodes), its `origin_node` (the one it is, or None) and a history: an
immutable tuple of ProvenanceTransform under a private attribute. Passes never copy these by hand; they say what they did
by calling one of the three functions below. Nothing here checks or repairs: whoever watches compares before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kerntrail.spyre.op_spec import ProvenanceTransform

HISTORY_ATTRIBUTE = "_spyre_prov_history"


def preserve_provenance(old: Any, new: Any, pass_name: str, reason: str | None = None) -> None:
    """1 -> 1: `new` takes the place of `old`. An origin_node that the pass has set on `new` stays."""
    _inherit(old, new)
    _append_transform((old,), new, ProvenanceTransform("rewrite", pass_name, reason))


def merge_provenance(sources: Sequence[Any], new: Any, pass_name: str, reason: str | None = None) -> None:
    """n -> 1: `new` stands for all `sources`, so no single node is its origin_node any more."""
    for source in sources:
        _add_origins(source, new)
    object.__setattr__(new, "origin_node", None)
    _append_transform(sources, new, ProvenanceTransform("fusion", pass_name, reason))


def decompose_provenance(
    old: Any, news: Iterable[Any], pass_name: str, reason: str | None = None, *, inherit_origins: bool = True
) -> None:
    """1 -> n: each of `news` does a part of `old`. With `inherit_origins` false only the history is handed on: the parts
    have origins of their own."""
    step = ProvenanceTransform("decomposition", pass_name, reason)
    for new in news:
        if inherit_origins:
            _inherit(old, new)
        _append_transform((old,), new, step)


def transform_history_of(buffer: Any) -> tuple[ProvenanceTransform, ...]:
    return tuple(getattr(buffer, HISTORY_ATTRIBUTE, None) or ())


def _inherit(old: Any, new: Any) -> None:
    _add_origins(old, new)
    if getattr(new, "origin_node", None) is None:
        object.__setattr__(new, "origin_node", getattr(old, "origin_node", None))


def _add_origins(old: Any, new: Any) -> None:
    """In place: the container belongs to `new`, is never shared and keeps its type."""
    origins = getattr(old, "origins", None)
    if origins:
        new.origins.update(origins)


def _append_transform(carriers: Sequence[Any], new: Any, transform: ProvenanceTransform) -> None:
    """The histories of `carriers`, then `new`'s own, then `transform`. What a history has in common with the beginning
    of what is collected so far is not repeated; other equal records are."""
    history: list[ProvenanceTransform] = []
    for carrier in (*carriers, new):
        records = transform_history_of(carrier)
        shared = 0
        while shared < min(len(history), len(records)) and history[shared] == records[shared]:
            shared += 1
        history.extend(records[shared:])
    object.__setattr__(new, HISTORY_ATTRIBUTE, (*history, transform))


class SpyreGraphTransformObserver:
    """Stands around each pass of a pipeline with the pass's name and what it works on. It does nothing by itself:
    `__enter__` and `__exit__` are where a pass can be watched. `kind` is "graphlowering": `target.operations`."""

    def __init__(self, target: Any, pass_name: str, kind: str) -> None:
        self.target = target
        self.pass_name = pass_name
        self.kind = kind

    def __enter__(self) -> SpyreGraphTransformObserver:
        return self

    def __exit__(self, *exception: object) -> None:
        return None
