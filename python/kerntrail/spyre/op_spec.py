"""OpSpec and debug handle as Python objects: what `SpyreKernel.create_op_spec` returns.

The fields and their order are an interface: tools read them by name. The C++ side builds these objects and reads them
back when the kernel's text is printed, so a change made in between is a change of the kernel.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class SourceLoc:
    """A place in user code; lines are 1-based, columns 0-based, ends absent where only a line is known."""

    file: str
    start_line: int
    start_col: int = 0
    end_line: int | None = None
    end_col: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.start_line}:{self.start_col}"

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class ProvenanceTransform:
    """One step of a buffer's history below the FX graph; `kind` is rewrite, fusion, decomposition, clone or remap."""

    kind: str
    pass_name: str
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class DebugHandle:
    """Where an operation comes from. `id` hashes source, aten op and chain; `to_dict` writes it as a decimal string.

    `transform_history` is what passes did to the buffer, oldest first; None in generations without the field.
    """

    id: int
    source: SourceLoc | None
    aten_op: str | None
    ir_chain: tuple[str, ...]
    fused_from: tuple[DebugHandle, ...] = ()
    transform_history: tuple[ProvenanceTransform, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        if self.transform_history is None:
            last: dict[str, Any] = {"fusion_context": None}
        else:
            last = {"transform_history": [step.to_dict() for step in self.transform_history]}
        return {
            "id": str(self.id),
            "source": self.source.to_dict() if self.source else None,
            "aten_op": self.aten_op,
            "ir_chain": list(self.ir_chain),
            "fused_from": [child.to_dict() for child in self.fused_from],
            **last,
        }


@dataclasses.dataclass
class OpSpec:
    """One device operation.

    `iteration_space` maps each loop symbol to (extent, cores), outer loops first. `args` are
    `kerntrail._native.spyre.TensorArg`, inputs in order and the output last.
    """

    op: str
    is_reduction: bool
    iteration_space: dict[str, tuple[int, int]]
    args: list[Any]
    op_info: dict[str, Any]
    tiled_symbols: list[str] = dataclasses.field(default_factory=list)
    symbolic_dim_bounds: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    debug_handle: DebugHandle | None = None
