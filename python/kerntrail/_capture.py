"""Opening and closing a capture in this process. What is watched, and how, is C++ (`kerntrail._native`)."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LEVELS = ("borders", "passes", "origins", "truth")
SOURCES = ("none", "lines", "files")

_lock = threading.Lock()
_open: Capture | None = None


class Capture:
    """One open capture. `close()` takes the hooks away and ends the file; it may be called more than once."""

    def __init__(self, path: str, session: Any, gives_way: bool = False) -> None:
        self.path = path
        self.gives_way = gives_way
        self._session = session

    def close(self) -> None:
        """Ends the capture: hooks are taken away in reverse order and checked by identity, the end record is written."""
        global _open
        with _lock:
            if _open is self:
                _open = None
        self._session.close()

    @property
    def is_partial(self) -> bool:
        """Whether something could not be observed (a hook that failed, a disk that is full). Final after `close()`."""
        return self._session.is_partial

    @property
    def compile_count(self) -> int:
        """How many compiles were seen so far."""
        return self._session.compile_count

    @property
    def observer_seconds(self) -> float:
        """CPU seconds spent inside observers so far."""
        return self._session.observer_seconds

    @property
    def hooks(self) -> list[dict[str, Any]]:
        """State of each hook: label, attribute, installed / absent / failed, fired, errors."""
        return self._session.hooks()

    def _abandon(self) -> None:
        self._session.abandon()


def open_capture(
    path: str | os.PathLike[str],
    *,
    level: str = "passes",
    replace: bool = False,
    source: str = "lines",
    timing: bool = False,
    settings: dict[str, str] | None = None,
    fail: list[tuple[str, str]] | None = None,
    gives_way: bool = False,
) -> Capture:
    """Opens a capture for the whole process. Raises before anything is patched:

    ValueError for an unknown level or source; RuntimeError while another capture is open; OSError when the file
    exists (and `replace` is false) or can't be written. `fail` makes hooks throw, for tests. One that `gives_way` is ended
    by the next that is opened.
    """
    global _open
    if level not in LEVELS:
        raise ValueError(f"unknown level {level!r}: choose one of {', '.join(LEVELS)}")
    if source not in SOURCES:
        raise ValueError(f"unknown source mode {source!r}: choose one of {', '.join(SOURCES)}")
    import torch

    from kerntrail import __version__, _native

    before = _open
    if before is not None and before.gives_way:
        before.close()
    with _lock:
        if _open is not None:
            raise RuntimeError(f"a capture is already open, writing {_open.path}; end it before you open another")
        session = _native.Session(
            path=os.fspath(path),
            replace=replace,
            source=source,
            timing=timing,
            level=LEVELS.index(level),
            run=[("tool", f"kerntrail {__version__}"), ("torch", torch.__version__),
                 ("python", platform.python_version()), ("platform", f"{sys.platform}-{platform.machine()}")],
            settings=list({"level": level, "source": source, **_torch_settings(torch), **(settings or {})}.items()),
            torch_paths=_as_prefixes(torch.__path__),
            package_paths=_as_prefixes(sorted(_package_paths())),
            standard_paths=_as_prefixes({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}),
            working_directory=_as_prefixes([os.getcwd()])[0],
            fail=fail or [],
        )
        _open = Capture(os.fspath(path), session, gives_way)
    session.install_hooks()
    return _open


@contextmanager
def capture(
    path: str | os.PathLike[str], *, level: str = "passes", replace: bool = False, source: str = "lines", timing: bool = False
) -> Iterator[Capture]:
    """Watches every torch.compile inside the block and writes the capture to `path` (.ndjson, .ndjson.gz, .ndjson.zst).

    Inductor's caches are left as they are: a compile served from a cache is recorded as not observed. A backward that
    is compiled only after the block is not in the capture, which says so.
    """
    opened = open_capture(path, level=level, replace=replace, source=source, timing=timing)
    try:
        yield opened
    finally:
        opened.close()


def _abandon_in_child() -> None:
    """A forked child shares the parent's file: it forgets it and observes nothing."""
    global _open, _lock
    _lock = threading.Lock()
    if _open is not None:
        _open._abandon()
        _open = None


os.register_at_fork(after_in_child=_abandon_in_child)


def _as_prefixes(paths: Any) -> list[str]:
    return [os.path.join(os.path.abspath(path), "") for path in paths if path]


def _package_paths() -> set[str]:
    # Our back end is no user code, wherever the package lies (an editable install: outside site-packages).
    back_end = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spyre")
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), back_end}
    paths.update(path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages"))
    return paths


def _torch_settings(torch: Any) -> dict[str, str]:
    """The settings of torch that change what provenance there is to see."""
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    wanted = {
        "provenance_level": lambda: inductor.trace.provenance_tracking_level,
        "force_disable_caches": lambda: inductor.force_disable_caches,
        "fx_graph_cache": lambda: inductor.fx_graph_cache,
        "autograd_cache": lambda: functorch.enable_autograd_cache,
        "pre_grad_pass_timing": lambda: inductor.pre_grad_pass_timing,
        "fx_compile_mode": lambda: os.environ.get("TORCHINDUCTOR_FX_COMPILE_MODE", "normal"),
        "cpu_backend": lambda: inductor.cpu_backend,
    }
    out = {}
    for key, read in wanted.items():
        try:
            out[key] = str(read())
        except AttributeError:  # another torch may not have it
            continue
    return out
