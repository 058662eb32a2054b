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


class Apart(nn.Module):
    """Results that depend on different lines, in kernels that are shared."""

    def forward(self, x, y):
        a = torch.sin(x) * 0.5
        b = torch.cos(y) + 1.5
        c = a * b
        d = torch.where(y > 0, y, b)
        low = d.amax(-1, keepdim=True)
        return a, b * b, c.sum(-1), d - low, torch.sigmoid(y)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((8, 16), (8, 16), (16, 8)))

    def forward(self, x):
        gate = functional.silu(self.gate(x))
        up = self.up(x)
        mixed = gate * up
        return self.down(mixed), gate.mean(-1)


class Rotated(nn.Module):
    """RMS norm and rotary positions: concatenated halves, broadcast tables."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8) + 0.5)
        self.register_buffer("turn", torch.rand(4, 8) + 0.5)

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        normed = x * scale
        weighted = normed * self.weight
        half = torch.cat([-weighted[..., 4:], weighted[..., :4]], -1)
        return weighted * self.turn + half, scale


MODELS = {
    "mlp": (MlpNorm, lambda: (torch.randn(4, 8),)),
    "twice": (Twice, lambda: (torch.randn(4, 8),)),
    "scans": (Scans, lambda: (torch.randn(4, 8),)),
    "softmax": (Softmax, lambda: (torch.randn(4, 8),)),
    "apart": (Apart, lambda: (torch.randn(4, 8), torch.randn(4, 8))),
    "gated": (Gated, lambda: (torch.randn(4, 8),)),
    "rotated": (Rotated, lambda: (torch.randn(4, 8),)),
}
