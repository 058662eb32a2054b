"""Names the kernels of an executed wrapper and puts them into `spyre_provenance.json`.

Everything about the file is C++ (src/spyre/sidecar*); here is what only torch knows: where the file goes, the tables of
torch's own provenance, and whether they are of the wrapper that is being executed. Nothing here stops a compile.
"""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import torch
from torch._inductor import config, debug
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V

from kerntrail import _native
from kerntrail.spyre import settings

FILE_NAME = "spyre_provenance.json"
PATH_VARIABLE = "TORCH_SPYRE_PROVENANCE_PATH"

log = logging.getLogger(__name__)
_said_level_0 = False


def artifact_path() -> str:
    """The file: the compile's option, else the environment's, else in torch's debug folder of this run; "": none."""
    chosen = settings.current().provenance_artifact_path
    if chosen == settings.DEFAULT_ARTIFACT:
        chosen = os.environ.get(PATH_VARIABLE, settings.DEFAULT_ARTIFACT)
    if chosen == settings.DEFAULT_ARTIFACT:
        from torch._dynamo.utils import get_debug_dir

        chosen = os.path.join(config.trace.debug_dir or get_debug_dir(), "torchinductor", FILE_NAME)
    return os.path.abspath(chosen) if chosen else ""


def describe(kernel_name: str, op_specs: Any) -> Any | None:
    """The kernel's key and event name, or None with a warning: a kernel runs without them too."""
    try:
        return _native.spyre.describe_kernel(op_specs)
    except Exception as error:
        log.warning("%s has no provenance key: %s", kernel_name, error)
        return None


class Collection:
    """The kernels of one wrapper, in its order."""

    def __init__(self) -> None:
        self._record = _native.spyre.CompileRecord()

    def add(self, kernel_name: str, op_specs: Any) -> None:
        try:
            self._record.add_kernel(kernel_name, op_specs)
        except Exception:
            self._record.add_kernel(kernel_name, None)

    def publish(self) -> None:
        """Merges what was collected into the file, and hands it to torch's structured trace."""
        try:
            self._publish()
        except Exception as error:
            log.warning("the provenance of this compile was not published: %s", error)

    def _publish(self) -> None:
        if not len(self._record):
            return
        self._see_torch()
        text, reasons = self._record.text()
        if reasons:
            log.warning("kernels without a provenance key: %s", "; ".join(reasons))
        torch._logging.trace_structured(
            "artifact", metadata_fn=lambda: {"name": "spyre_provenance", "encoding": "json"}, payload_fn=lambda: text
        )
        path = artifact_path()
        if path and not self._record.tracking_level:
            _warn_level_0()
        self._record.publish(path)

    def _see_torch(self) -> None:
        from kerntrail import __version__

        record = self._record
        record.spyre_version, record.torch_version = __version__, torch.__version__
        record.tracking_level = config.trace.provenance_tracking_level
        record.structured_tracing = bool(torch._logging._internal.trace_log.handlers)
        # A wrapper that is executed later, by itself, finds no graph, or none of its own.
        record.live_graph = isinstance(V.graph, GraphLowering)
        if record.tracking_level and record.live_graph:
            mapping = {
                "preToPost": debug._inductor_post_to_pre_grad_nodes.get("preToPost", {}),
                "cppCodeToPost": debug._inductor_triton_kernel_to_post_grad_node_info,
            }
            kernels = debug.create_kernel_information_json()
            record.set_upstream(json.dumps(mapping, default=list), json.dumps(kernels, default=list))


def _warn_level_0() -> None:
    global _said_level_0
    if not _said_level_0:
        _said_level_0 = True
        log.warning(
            "%s is written without names of FX nodes: torch._inductor.config.trace.provenance_tracking_level is 0; "
            "set INDUCTOR_PROVENANCE=1 for them",
            FILE_NAME,
        )
