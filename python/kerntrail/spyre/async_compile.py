"""What a generated wrapper calls when it is executed: kernel text in, bundle and runnable kernel out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import torch
from torch._inductor.runtime.cache_dir_utils import cache_dir

from kerntrail import _native
from kerntrail.spyre import sidecar


def get_output_dir(kernel_name: str) -> str:
    """A fresh directory for the bundle of one kernel, below Inductor's cache directory."""
    base = os.path.join(cache_dir(), "inductor-spyre")
    os.makedirs(base, exist_ok=True)
    return tempfile.mkdtemp(prefix=f"{kernel_name}_", dir=base)


def spyre_constant_tensor(value: float, dtype: str) -> torch.Tensor:
    """A scalar operand: the device reads it as a tensor of one element."""
    return torch.tensor(value, dtype=getattr(torch, dtype), device="cpu")


def read_op_specs(kernel_name: str, text: str) -> Sequence[Any]:
    """The OpSpecs that a wrapper embeds as text: what a kernel is built from."""
    return _native.spyre.read_op_specs(text)


class SpyreSDSCKernelRunner:
    """A kernel with its bundle. `run` takes the tensors in argument order and writes the outputs in place.

    `provenance` is its key and event name, None where it has none. While torch's profiler runs, a launch is an event of
    that name with the key and the debug handles as arguments (a trace has these with `record_shapes`).
    """

    def __init__(self, kernel_name: str, kernel: Any, output_dir: str, provenance: Any | None = None) -> None:
        self.kernel_name = kernel_name
        self.output_dir = output_dir
        self.provenance = provenance
        self._kernel = kernel

    def run(self, *args: torch.Tensor) -> None:
        if self.provenance is None or not torch.autograd.profiler._is_profiler_enabled:
            self._kernel.run(args)
            return
        # The host runs a bundle as one command, so its number is always 0.
        name = f"{self.provenance.event_name}#0"
        carried = {"provenance_key": self.provenance.key, "debug_handles": self.provenance.debug_handles}
        with torch._C._profiler._RecordFunctionFast(name, args, carried):
            self._kernel.run(args)


class SpyreAsyncCompile:
    """Takes the place of Inductor's `async_compile` in the generated module. Everything happens at once."""

    def __init__(self) -> None:
        self._collection = sidecar.Collection()

    def sdsc(self, kernel_name: str, op_specs: str) -> SpyreSDSCKernelRunner:
        """`op_specs` is the text made by `print_op_specs`; the bundle is written before this returns."""
        specs = read_op_specs(kernel_name, op_specs)
        output_dir = get_output_dir(kernel_name)
        kernel = _native.spyre.build_kernel(specs, output_dir)
        self._collection.add(kernel_name, specs)
        return SpyreSDSCKernelRunner(kernel_name, kernel, output_dir, sidecar.describe(kernel_name, specs))

    def wait(self, scope: dict[str, Any]) -> None:
        """The generated module ends with this call; nothing is pending but the provenance of its kernels."""
        self._collection.publish()
