"""What watching costs: time inside the observer as a share of compile CPU time, and the paired wall ratio.

    make bench            or: .venv/bin/python bench/observer_cost_bench.py [--repeat N] [--model mlp|block] [--json]

Each repeat compiles the model once bare and once under `kerntrail.capture`, in alternating order, caches disabled, in
this process; the first compile of each model (torch's own imports and warm-up) is thrown away. `inside` is measured by
the probe itself around every observer; CPU time is this process's. The wall ratio is reported as the median over pairs
with its spread: on a shared machine it can't resolve less than a few per cent, the share can.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")

import torch  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
from torch import nn  # noqa: E402

import kerntrail  # noqa: E402

TARGET = 0.01  # share of compile CPU time


class Mlp(nn.Module):
    """The reference model's shape."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(128, 256)
        self.fc2 = nn.Linear(256, 128)

    def forward(self, x):
        x = self.fc1(x)
        x = torch.relu(x)
        x = self.fc2(x)
        return x


class Block(nn.Module):
    """Pre-norm attention and MLP, written out so that nothing is a single op."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Blocks(nn.Module):
    def __init__(self, layers: int = 12, width: int = 256) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


MODELS = {
    "mlp": ("reference model (SimpleMLP)", lambda: (Mlp().eval(), torch.randn(2, 128))),
    "block": ("12-layer block", lambda: (Blocks().eval(), torch.randn(2, 16, 256))),
}


def compile_once(model: nn.Module, x: torch.Tensor) -> tuple[float, float]:
    """(wall, CPU) seconds of one compile and one call."""
    torch._dynamo.reset()
    wall, cpu = time.perf_counter(), time.process_time()
    with torch.no_grad():
        torch.compile(model)(x)
    return time.perf_counter() - wall, time.process_time() - cpu


def watched(model: nn.Module, x: torch.Tensor, folder: str) -> tuple[float, float, float, int]:
    """(wall, CPU, seconds inside the observer, bytes written) of one compile under a capture."""
    path = os.path.join(folder, "capture.ndjson")
    with kerntrail.capture(path, replace=True) as capture:
        wall, cpu = compile_once(model, x)
        inside = capture.observer_seconds
    return wall, cpu, inside, os.path.getsize(path)


def measure(name: str, repeat: int) -> dict[str, object]:
    title, make = MODELS[name]
    torch.manual_seed(0)
    model, x = make()
    compile_once(model, x)
    shares, walls, cpus, insides, size = [], [], [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(repeat):
            if i % 2:
                wall, cpu, inside, size = watched(model, x, folder)
                bare, bare_cpu = compile_once(model, x)
            else:
                bare, bare_cpu = compile_once(model, x)
                wall, cpu, inside, size = watched(model, x, folder)
            shares.append(inside / cpu)
            insides.append(inside)
            walls.append(wall / bare)
            cpus.append(cpu / bare_cpu)
    return {"model": title, "repeat": repeat, "inside_ms": 1e3 * statistics.median(insides), "share": statistics.median(shares),
            "wall_ratio": statistics.median(walls), "wall_range": [min(walls), max(walls)],
            "cpu_ratio": statistics.median(cpus), "cpu_range": [min(cpus), max(cpus)], "bytes": size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    with inductor.patch(force_disable_caches=True):
        for name in options.model or MODELS:
            row = measure(name, options.repeat)
            if options.json:
                print(json.dumps(row))
                continue
            verdict = "within" if row["share"] <= TARGET else "above"
            print(f"{row['model']}: {row['inside_ms']:.1f} ms inside the observer = {100 * row['share']:.2f} % of compile CPU time "
                  f"({verdict} the target of {100 * TARGET:.0f} %); wall x{row['wall_ratio']:.3f} "
                  f"({row['wall_range'][0]:.3f} to {row['wall_range'][1]:.3f}), CPU x{row['cpu_ratio']:.3f} ({row['cpu_range'][0]:.3f} to "
                  f"{row['cpu_range'][1]:.3f}) over {row['repeat']} pairs; {row['bytes'] / 1e3:.0f} kB captured")


if __name__ == "__main__":
    main()
