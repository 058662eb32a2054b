"""Shapes of code that a witness could lose track of: C++ code that is generated and never run (no compiler is needed)."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch._dynamo
import torch._inductor.config as inductor
import torch.nn.functional as F
from capture_view import CaptureView
from torch import Tensor
from torch._inductor.graph import GraphLowering

from kerntrail._capture import open_capture


class NeverRun(Exception):
    pass


def only_text(self: GraphLowering, code: Any) -> types.ModuleType:
    def call(*_: Any) -> None:
        raise NeverRun

    module = types.ModuleType("never_run")
    module.call, module.runner, module.__file__ = call, None, "never_run.py"
    return module


def generated(path: Path, function: Callable[..., Any], *inputs: Any, **config: Any) -> CaptureView:
    """A capture of the code that Inductor would have run."""
    torch._dynamo.reset()
    with (torch.no_grad(), inductor.patch({"force_disable_caches": True, **config}),
          mock.patch.object(GraphLowering, "_compile_to_module_lines", only_text)):
        capture = open_capture(path, level="truth", replace=True)
        try:
            torch.compile(function)(*inputs)
        except NeverRun:
            pass
        finally:
            capture.close()
    assert not [hook for hook in capture.hooks if hook["errors"]]
    return CaptureView(path)


def scans(x: Tensor) -> Any:
    return torch.cumsum(x * 2, -1) + 1, torch.sort(x.sin(), -1), x.argmax(-1), x.prod(), (x > 0).any(-1)


def normalisations(x: Tensor) -> Any:
    return F.layer_norm(x, (64,)), torch.softmax(x, -1), torch.log_softmax(x, 0), x.std(), F.gelu(x) * 2


def casts(x: Tensor) -> Any:
    return x.sin() + 1, x.sum(-1), x.float().to(torch.bfloat16), x.to(torch.int32), x.t().contiguous() * 2


def moved(x: Tensor) -> Any:
    y = x.clone()
    y[1:3] = 0
    y[:, ::2] += 1
    padded = F.pad(torch.cos(x), (1, 2, 3, 4), value=2.0)
    return y, padded, F.pad(x[None], (1, 1), mode="reflect"), torch.roll(x, 1, 0), x.flip(0), torch.tril(x), torch.cat([x, x * 2], 1)


def indirect(x: Tensor, places: Tensor, values: Tensor) -> Any:
    index = places[:, None].expand_as(values)
    return (x.index_add(0, places, values), x.index_put((places,), values), x.scatter_add(0, index, values), x[places],
            x.gather(0, index), F.embedding(places, x))


def expressions(x: Tensor) -> Any:
    return torch.arange(9) * 2, torch.eye(4), torch.full((3,), 2.0), torch.linspace(0, 1, 7), x + torch.arange(64), F.one_hot(x.argmax(-1), 64)


def random_numbers(x: Tensor) -> Any:
    return torch.rand_like(x) + torch.randn(64), torch.bernoulli(x.sigmoid()), F.dropout(x, 0.5), torch.randint(0, 9, (4,))


def several_results(x: Tensor) -> Any:
    return torch.linalg.svd(x.sin()), torch.topk(x, 2), x.median(-1), torch.var_mean(x, -1), torch.unbind(x + 1)


def integers(x: Tensor) -> Any:
    whole = x.round().to(torch.int64)
    return whole // 3, whole % 3, whole << 1, torch.clamp(whole, 0, 255).to(torch.uint8) + 1, ~whole, torch.where(x > 0, whole, 1)


def resampled(x: Tensor) -> Any:
    image = x[None, None]
    return F.max_pool2d(image, 2, return_indices=True), F.avg_pool2d(image, 3, 1, 1), F.interpolate(image, size=(5, 5))


def lists(x: Tensor) -> Any:
    parts = [x, x[:4], x[:, :3]]
    return torch._foreach_mul(parts, 2), torch._foreach_addcdiv(parts, parts, parts)


SHAPES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "scans": (scans, {}), "normalisations": (normalisations, {}), "casts": (casts, {}), "moved": (moved, {}),
    "indirect": (indirect, {}), "expressions": (expressions, {}), "random_numbers": (random_numbers, {}),
    "several_results": (several_results, {}), "integers": (integers, {}), "resampled": (resampled, {}), "lists": (lists, {}),
    "scalar": (normalisations, {"cpp.simdlen": 0}), "scalar_tails": (normalisations, {"cpp.enable_loop_tail_vec": False}),
    "cpp_wrapper": (several_results, {"cpp_wrapper": True}),
}


def inputs_of(function: Callable[..., Any]) -> list[Tensor]:
    torch.manual_seed(0)
    if function is indirect:
        return [torch.randn(8, 16), torch.randint(0, 8, (5,)), torch.randn(5, 16)]
    x = torch.randn(9, 64)
    return [x.to(torch.bfloat16) if function is casts else x]
