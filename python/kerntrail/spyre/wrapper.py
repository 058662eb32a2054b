"""The wrapper class: runs the pre-scheduling passes and makes `async_compile` ours in the generated module."""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.virtualized import V

from kerntrail.spyre import passes, settings


class SpyrePythonWrapperCodegen(PythonWrapperCodegen):
    # Kernels are bundles on disk, not text alone: a cached module would name directories that are gone.
    supports_caching = False

    @staticmethod
    def create(
        is_subgraph: bool, subgraph_name: str | None, parent_wrapper: Any, partition_signatures: Any = None
    ) -> PythonWrapperCodegen:
        if is_subgraph:
            raise RuntimeError("kerntrail_spyre: a sub-graph reached code generation; it should have been refused")
        # All operations are lowered and no Scheduler exists yet: the one moment for passes over `graph.operations`.
        passes.CustomPreSchedulingPasses(settings.current())(V.graph)
        return SpyrePythonWrapperCodegen()

    def write_header(self) -> None:
        super().write_header()
        self.header.splice(
            """
            from kerntrail.spyre.async_compile import SpyreAsyncCompile, spyre_constant_tensor
            async_compile = SpyreAsyncCompile()
            """,
            strip=True,
        )
