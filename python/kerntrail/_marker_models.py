"""Small models that `kerntrail selftest markers` compiles: what kernels are made of, one of each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).view(2, 8, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1)
        y = (weights @ v).transpose(1, 2).reshape(2, 8, 16)
        return self.out(y) + x


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(20, 16), nn.LayerNorm(16)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        return self.norm(x) * torch.sigmoid(x.mean(-1, keepdim=True))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))


def convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))


def reductions(x: Tensor) -> Any:
    y = torch.sin(x)
    return y.sum(-1), y.amax(0), (y - y.mean()).square().mean(), torch.log_softmax(y, -1)


def masks(x: Tensor) -> Any:
    y = F.pad(torch.cos(x), (1, 2), value=3.0)
    return torch.where(y > 0, y, y * 2), torch.cat([x + 1, y], -1), torch.tril(x)


def in_place(x: Tensor) -> Any:
    y = (x + 1).relu_()
    y[:, :2] = 0
    y.mul_(2)
    return y + x


def branches(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda v: torch.sin(v) + 1, lambda v: torch.cos(v) * 2, (x,)) + 1


def twice(x: Tensor) -> Tensor:
    for _ in range(2):
        x = torch.tanh(x * 1.5) + x.sum(-1, keepdim=True)
    return x


def infer(function: Callable[..., Any], *inputs: Tensor) -> None:
    with torch.no_grad():
        torch.compile(function.eval() if isinstance(function, nn.Module) else function)(*inputs)


def train(module: nn.Module, x: Tensor) -> None:
    torch.compile(module)(x).sum().backward()


MODELS: dict[str, Callable[[], None]] = {
    "mlp": lambda: infer(mlp(), torch.randn(4, 16)),
    "mlp, training": lambda: train(mlp(), torch.randn(4, 16)),
    "convolution": lambda: infer(convolution(), torch.randn(2, 3, 16, 16)),
    "convolution, training": lambda: train(convolution(), torch.randn(2, 3, 16, 16)),
    "attention": lambda: infer(Attention(), torch.randn(2, 8, 16)),
    "attention, training": lambda: train(Attention(), torch.randn(2, 8, 16)),
    "embedding": lambda: infer(Words(), torch.randint(0, 20, (2, 7))),
    "reductions": lambda: infer(reductions, torch.randn(8, 40)),
    "masks and indices": lambda: infer(masks, torch.randn(8, 8)),
    "in place": lambda: infer(in_place, torch.randn(8, 8)),
    "bfloat16": lambda: infer(reductions, torch.randn(8, 64).bfloat16()),
    "branches": lambda: infer(branches, torch.randn(8)),
    "repeated lines": lambda: infer(twice, torch.randn(4, 8)),
}
