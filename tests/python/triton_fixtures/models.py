"""Small models: shapes are kept small, the interpreter is slow."""

import torch
from torch import nn
from torch.nn import functional


class MlpNorm(nn.Module):
    """Matrix products and a fused normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        h = functional.gelu(self.up(x))
        y = self.down(h) + x
        return self.norm(y)


class Twice(nn.Module):
    """Two kernels with one text: defined once, called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 8, bias=False)
        self.b = nn.Linear(8, 8, bias=False)

    def forward(self, x):
        y = torch.relu(self.a(x))
        z = torch.relu(self.b(y))
        return z @ z.T


class Softmax(nn.Module):
    def forward(self, x):
        y = x * 2.0
        return torch.softmax(y, -1)


class Scans(nn.Module):
    """Scan, sort, a masked sub-block and an index that several operations share."""

    def forward(self, x):
        ordered, places = torch.sort(x * 2.0, -1)
        running = torch.cumsum(ordered, -1)
        padded = functional.pad(running, (1, 1), value=3.0)
        return padded.sin() + places.sum(-1, keepdim=True)


MODELS = {
    "mlp": (MlpNorm, lambda: (torch.randn(4, 8),)),
    "twice": (Twice, lambda: (torch.randn(4, 8),)),
    "scans": (Scans, lambda: (torch.randn(4, 8),)),
    "softmax": (Softmax, lambda: (torch.randn(4, 8),)),
}
