"""What a generated wrapper calls when it is executed: kernel text in, bundle and runnable kernel out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import torch
from torch._inductor.runtime.cache_dir_utils import cache_dir

from kerntrail import _native


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
    """A kernel with its bundle. `run` takes the tensors in argument order and writes the outputs in place."""

    def __init__(self, kernel_name: str, kernel: Any, output_dir: str) -> None:
        self.kernel_name = kernel_name
        self.output_dir = output_dir
        self._kernel = kernel

    def run(self, *args: torch.Tensor) -> None:
        self._kernel.run(args)


class SpyreAsyncCompile:
    """Takes the place of Inductor's `async_compile` in the generated module. Everything happens at once."""

    def sdsc(self, kernel_name: str, op_specs: str) -> SpyreSDSCKernelRunner:
        """`op_specs` is the text made by `print_op_specs`; the bundle is written before this returns."""
        specs = read_op_specs(kernel_name, op_specs)
        output_dir = get_output_dir(kernel_name)
        return SpyreSDSCKernelRunner(kernel_name, _native.spyre.build_kernel(specs, output_dir), output_dir)

    def wait(self, scope: dict[str, Any]) -> None:
        """The generated module ends with this call; nothing is pending."""
