"""Small programs that the Spyre-format back end carries, for tests: what its lowering and its passes can do, one a row.

Each statement stands on a line of its own, so that a line is one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Mlp(nn.Module):
    """The reference model's form."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        x = torch.relu(x)
        x = self.fc2(x)
        return x


class Gated(nn.Module):
    """Several operations on a line, residuals, operations that the device has whole."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((32, 48), (32, 48), (48, 32)))

    def forward(self, x: Tensor) -> Tensor:
        gate = F.silu(self.gate(x))
        up = self.up(x) * 0.5 + 1.0
        mixed = gate * up
        x = x + self.down(mixed)
        x = F.gelu(x)
        return x


class Choices(nn.Module):
    """Bodies of several operations: comparisons, choices, clamps and constants."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        low = torch.clamp(x, -0.5, 0.5)
        picked = torch.where(y > 0, low, y * 0.1)
        square = picked**2
        mixed = torch.maximum(square, torch.sigmoid(y) - 0.5)
        return mixed - x, 1 - low


class Shared(nn.Module):
    """Bodies of two operations, with a product that all three share: the back end computes it once."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a = torch.add(x, y, alpha=3)
        b = torch.sub(x, y, alpha=3)
        c = torch.add(x, y, alpha=3)
        return a, b, torch.relu(c * 2)


class Mixed(nn.Module):
    """Conversions between the types that the device has."""

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        wide = torch.exp(wide * 0.25)
        wide = torch.reciprocal(wide + 1.0)
        return wide.half()


class Transposed(nn.Module):
    """Views that are only ways of indexing."""

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        y = x.abs()
        turned = w.t()
        z = y @ turned
        return z.neg()


@dataclass(frozen=True)
class SpyreModel:
    name: str
    make: Callable[[], nn.Module]
    inputs: tuple[tuple[int, ...], ...]
    dtype: torch.dtype = torch.float16
    options: dict[str, Any] = field(default_factory=dict)

    def build(self) -> tuple[nn.Module, list[Tensor]]:
        torch.manual_seed(0)
        model = self.make().to(self.dtype).eval()
        return model, [torch.randn(shape).to(self.dtype) for shape in self.inputs]


SPYRE_MODELS = [
    SpyreModel("mlp_seed", Mlp, ((2, 32),), options={"metadata": "seed"}),
    SpyreModel("mlp_full", Mlp, ((2, 32),)),
    SpyreModel("mlp_restickify", Mlp, ((2, 32),), options={"restickify": True}),
    SpyreModel("gated", Gated, ((4, 32),)),
    SpyreModel("choices", Choices, ((4, 32), (4, 32))),
    SpyreModel("shared", Shared, ((5, 70), (5, 70)), torch.float32),
    SpyreModel("mixed", Mixed, ((4, 32),)),
    SpyreModel("transposed", Transposed, ((4, 40), (33, 40)), torch.float32),
]
