"""Small models on which stock Inductor 2.13 loses provenance, each known from watching it. Run as a program: compiles one
model under a capture. `python loss_models.py NAME CAPTURE`."""

from __future__ import annotations

import contextlib
import math
import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class WrittenOutAttention(nn.Module):
    def forward(self, q, k, v):
        weights = q @ k.transpose(-2, -1)
        weights = weights / math.sqrt(q.shape[-1])
        weights = weights.softmax(-1)
        return weights @ v


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 10)

    def forward(self, x, target):
        scores = self.linear(x)
        scores = F.dropout(scores, 0.1)
        return F.cross_entropy(scores, target)


class Heads(nn.Module):
    """Equal linears over different inputs: what the batching passes look for."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(64, 64) for _ in range(5))

    def forward(self, a, b, c, d, e):
        first = self.heads[0](a)
        second = self.heads[1](b)
        third = self.heads[2](c)
        fourth = self.heads[3](d)
        fifth = self.heads[4](e)
        return torch.relu(first), torch.tanh(second), torch.sigmoid(third), fourth, fifth


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        x = self.norm(x)
        x = F.relu(x)
        x = self.second(x)
        return F.avg_pool2d(x, 2)


class InPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 0] = 1.0
        flat = y.view(-1)
        flat.add_(2.0)
        z = y.t().contiguous()
        z.mul_(x.t())
        return (z * 1).sum(0)


class AddsZeros(nn.Module):
    def forward(self, x):
        a = torch.sin(x)
        return torch.exp(a + torch.zeros(4, 8))


class Clean(nn.Module):
    """Nothing of this is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(32, 64), nn.LayerNorm(64), nn.Linear(64, 32)

    def forward(self, x):
        h = self.up(x)
        h = F.gelu(h)
        h = self.norm(h)
        return self.down(h) + x


def _batching(stage: str) -> dict[str, Any]:
    if stage == "pre":
        return {"pre_grad_fusion_options": {"batch_linear": {"require_fbgemm": False}}, "post_grad_fusion_options": {}}
    return {"pre_grad_fusion_options": {}, "post_grad_fusion_options": {
        "batch_linear_post_grad": {"shape_broadcast_batch_linear": False, "fuse_nodes_with_same_parent": True},
        "batch_aten_tanh": {}, "batch_aten_sigmoid": {}}}


def models() -> dict[str, tuple[nn.Module, tuple[torch.Tensor, ...], dict[str, Any]]]:
    """name -> (model, inputs, settings of Inductor); a model in training mode is also run backward."""
    torch.manual_seed(0)
    heads = tuple(torch.randn(8, 64) for _ in range(5))
    return {
        "attention": (WrittenOutAttention().eval(), tuple(torch.randn(2, 4, 16, 16) for _ in range(3)), {}),
        "classifier": (Classifier().train(), (torch.randn(8, 32), torch.randint(0, 10, (8,))), {}),
        "heads_pre": (Heads().eval(), heads, _batching("pre")),
        "heads_post": (Heads().eval(), heads, _batching("post")),
        "frozen": (Convolutions().eval(), (torch.randn(2, 3, 8, 8),), {"freezing": True}),
        "in_place": (InPlace().eval(), (torch.randn(4, 6),), {}),
        "adds_zeros": (AddsZeros().eval(), (torch.randn(4, 8),), {}),
        "clean": (Clean().eval(), (torch.randn(8, 32),), {}),
        "clean_training": (Clean().train(), (torch.randn(8, 32),), {}),
    }


def run(name: str, capture: str, level: str = "passes") -> None:
    import torch._inductor.config as config

    import kerntrail

    model, inputs, settings = models()[name]
    torch._dynamo.reset()
    with config.patch({"force_disable_caches": True, **settings}), kerntrail.capture(capture, replace=True, level=level):
        with contextlib.nullcontext() if model.training else torch.no_grad():
            result = torch.compile(model)(*inputs)
        if model.training:
            result.sum().backward()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2])
