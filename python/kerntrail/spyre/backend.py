"""`torch.compile(model, backend="kerntrail_spyre")`: the entry point, options, and what is registered while it compiles.

Inductor's tables for device cpu are replaced only while a graph of ours is compiled, under torch's own compile lock, and
put back whatever happens. A graph that can't be carried goes to plain `compile_fx` with nothing of ours around it.
"""

from __future__ import annotations

import contextlib
import contextvars
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._dynamo import convert_frame
from torch._inductor import lowering
from torch._inductor.codegen import common

from kerntrail.spyre import carry, lowerings, passes
from kerntrail.spyre.carry import Reason
from kerntrail.spyre.settings import GENERATIONS, METADATA_RULES, Settings, using

# `torch._inductor.compile_fx` is a module and, on some releases, also a function of the package: take the module.
_inductor = importlib.import_module("torch._inductor.compile_fx")

# The metadata rule for compiles that name none: of the context, else of the process (threads start in a fresh context).
default_metadata: contextvars.ContextVar[str | None] = contextvars.ContextVar("kerntrail_default_metadata", default=None)
process_metadata = "full"
process_restickify = False  # for compiles that don't say

# Values that an option may have; None: see _checked_options.
OPTIONS: dict[str, tuple[Any, ...] | None] = {
    "metadata": METADATA_RULES, "generation": GENERATIONS, "restickify": (False, True), "pre_scheduling_passes": None,
    "provenance_artifact_path": None,
}

# Inductor settings of a carried graph: one buffer for each operation, nothing fused, reused, padded or cached.
CONFIG = {
    "pattern_matcher": False,
    "split_reductions": False,
    "unroll_reductions_threshold": 1,
    "allow_buffer_reuse": False,
    "inplace_buffers": False,
    "reorder_for_locality": False,
    "comprehensive_padding": False,
    "benchmark_harness": False,
    "emulate_precision_casts": False,
    "force_disable_caches": True,
}


def kerntrail_spyre(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend: called once for each Dynamo graph."""
    settings = _checked_options(mode, options)
    reasons = carry.reasons_against(gm, example_inputs)
    if reasons:
        return fall_back(reasons, gm, example_inputs)
    return _compile(gm, example_inputs, settings)


def fall_back(reasons: list[Reason], gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Hands a graph to stock Inductor as it came. `reasons` is for whoever watches this function."""
    return _inductor.compile_fx(gm, example_inputs)


def _checked_options(mode: str | None, options: dict[str, Any] | None) -> Settings:
    if mode not in (None, "default"):
        raise RuntimeError(f"kerntrail_spyre has no mode {mode!r}, known modes are ['default']")
    chosen = {"metadata": default_metadata.get() or process_metadata, "restickify": process_restickify, **(options or {})}
    for key, value in chosen.items():
        if key not in OPTIONS:
            raise RuntimeError(f"Unexpected optimization option {key}, known options are {list(OPTIONS)}")
        known = OPTIONS[key]
        if known is not None and value not in known:
            raise RuntimeError(f"Unexpected value {value!r} of option {key}, known values are {list(known)}")
    extra = tuple(chosen.pop("pre_scheduling_passes", ()))
    if not all(callable(fn) for fn in extra):
        raise RuntimeError("option pre_scheduling_passes is a list of functions of the lowered graph")
    artifact = chosen.get("provenance_artifact_path")
    if artifact is not None and not isinstance(artifact, (str, os.PathLike)):
        raise RuntimeError("option provenance_artifact_path is a path, or None for no file")
    return Settings(**chosen, pre_scheduling_passes=extra)


def _compile(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], settings: Settings) -> Callable[..., Any]:
    def inner(*args: Any, **kwargs: Any) -> Any:
        with registered(), using(settings):
            return _inductor.compile_fx_inner(*args, **kwargs)

    patches = {
        **CONFIG,
        "pre_grad_custom_pass": passes.CustomPreGradPasses(),
        "post_grad_custom_pre_pass": passes.CustomPrePasses(settings.metadata),
        "post_grad_custom_post_pass": passes.CustomPostPasses(),
    }
    return _inductor.compile_fx(
        gm, example_inputs, inner_compile=inner, config_patches=patches, decompositions=carry.decompositions()
    )


@contextlib.contextmanager
def registered() -> Iterator[None]:
    """Makes our scheduling, wrapper and lowerings those of device cpu, for one compile."""
    from kerntrail.spyre.scheduling import SuperDSCScheduling
    from kerntrail.spyre.wrapper import SpyrePythonWrapperCodegen

    with convert_frame.compile_lock:
        common.init_backend_registration()
        tables = (common.device_codegens, common.custom_backend_passes, common.custom_backend_codegen_configs,
                  lowering.user_lowerings)
        saved = [dict(table) for table in tables]
        # Operations that stock decomposes and we keep whole: unless they have an entry, Inductor makes fallbacks for
        # them before it looks at user_lowerings, in tables that nobody clears.
        kept = {op: own for op, own in lowerings.OWN.items() if op not in lowering.lowerings}
        try:
            lowering.lowerings.update(kept)
            common.register_backend_for_device("cpu", SuperDSCScheduling, SpyrePythonWrapperCodegen)
            yield
        finally:
            for op in kept:
                lowering.lowerings.pop(op, None)
            for table, content in zip(tables, saved):
                table.clear()
                table.update(content)
