"""What one compile of the Spyre-format back end was asked for, readable wherever it is needed while the compile runs."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any

METADATA_RULES = ("seed", "full")
GENERATIONS = ("july", "july-transform")
DEFAULT_ARTIFACT = "<default>"


@dataclasses.dataclass(frozen=True)
class Settings:
    """`metadata`: what the addmm split copies. `generation`: form of the debug handles in kernel files.

    `restickify`: lay matrix operands out by operations of their own instead of at load. `pre_scheduling_passes`: the
    user's passes over the lowered graph, run after the back end's own rewrites and before work is divided.
    `provenance_artifact_path`: where the sidecar is written; empty or None: nowhere; see `sidecar.artifact_path`.
    """

    metadata: str = "full"
    generation: str = "july"
    restickify: bool = False
    pre_scheduling_passes: tuple[Callable[[Any], None], ...] = ()
    provenance_artifact_path: str | os.PathLike[str] | None = DEFAULT_ARTIFACT


_current: contextvars.ContextVar[Settings] = contextvars.ContextVar("kerntrail_spyre_settings", default=Settings())


def current() -> Settings:
    """Those of the compile that this thread is in; the defaults outside any."""
    return _current.get()


@contextlib.contextmanager
def using(settings: Settings) -> Iterator[None]:
    token = _current.set(settings)
    try:
        yield
    finally:
        _current.reset(token)
