"""What watching costs at each level: time inside the observer as a share of compile CPU time, and the paired wall ratio.

    make bench            or: .venv/bin/python bench/observer_cost_bench.py [--repeat N] [--model mlp|block|bert] [--level borders|passes|origins|truth] [--json]

Each repeat compiles the model once bare and once under `kerntrail.capture`, in alternating order, caches disabled, in
this process; the first compile of each model (torch's own imports and warm-up) is thrown away. `inside` is measured by
the probe itself around every observer, those that run for each node included; `calls` is what merely being called
costs: how often hooks fired, times the measured price of going through one. CPU time is this process's. The wall ratio is reported as the median over pairs
with its spread: on a shared machine it can't resolve less than a few per cent, the share can.
"""

from __future__ import annotations

import argparse
import itertools
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

TARGETS = {"borders": 0.01, "passes": 0.01, "origins": 0.03, "truth": 0.03}  # share of compile CPU time


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


class Bert(nn.Module):
    """Embeddings and post-norm encoder layers with dropout, trained: forward and backward are compiled."""

    def __init__(self, layers: int = 4, width: int = 128) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(1000, width), nn.Embedding(64, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.encoder(x)[:, 0])


MODELS = {
    "mlp": ("reference model (SimpleMLP)", lambda: (Mlp().eval(), torch.randn(2, 128))),
    "block": ("12-layer block", lambda: (Blocks().eval(), torch.randn(2, 16, 256))),
    "bert": ("BERT-like encoder, training", lambda: (Bert().train(), torch.randint(0, 1000, (2, 16)))),
}


def compile_once(model: nn.Module, x: torch.Tensor) -> tuple[float, float]:
    """(wall, CPU) seconds of one compile and one call."""
    torch._dynamo.reset()
    wall, cpu = time.perf_counter(), time.process_time()
    if model.training:
        torch.compile(model)(x).sum().backward()
    else:
        with torch.no_grad():
            torch.compile(model)(x)
    return time.perf_counter() - wall, time.process_time() - cpu


def watched(model: nn.Module, x: torch.Tensor, folder: str, level: str) -> tuple[float, float, float, int, int]:
    """(wall, CPU, seconds inside the observer, bytes written, calls of hooks) of one compile under a capture."""
    path = os.path.join(folder, "capture.ndjson")
    with kerntrail.capture(path, level=level, replace=True) as capture:
        wall, cpu = compile_once(model, x)
        inside = capture.observer_seconds
        calls = sum(hook["fired"] for hook in capture.hooks)
    return wall, cpu, inside, os.path.getsize(path), calls


def price_of_a_call(folder: str, rounds: int = 20000) -> float:
    """Seconds that going through a hook adds to a call: one of a hooked function whose observer has nothing to do."""
    graph = torch.fx.Graph()
    node = graph.placeholder("x")

    def timed() -> float:
        start = time.perf_counter()
        for _ in range(rounds):
            node.replace_all_uses_with(node)
        return (time.perf_counter() - start) / rounds

    bare = min(timed() for _ in range(3))
    with kerntrail.capture(os.path.join(folder, "price.ndjson"), level="passes", replace=True):
        hooked = min(timed() for _ in range(3))
    return max(0.0, hooked - bare)


def measure(name: str, level: str, repeat: int) -> dict[str, object]:
    title, make = MODELS[name]
    torch.manual_seed(0)
    model, x = make()
    compile_once(model, x)
    shares, walls, cpus, insides, size, calls = [], [], [], [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        price = price_of_a_call(folder)
        for i in range(repeat):
            if i % 2:
                wall, cpu, inside, size, calls = watched(model, x, folder, level)
                bare, bare_cpu = compile_once(model, x)
            else:
                bare, bare_cpu = compile_once(model, x)
                wall, cpu, inside, size, calls = watched(model, x, folder, level)
            shares.append(inside / cpu)
            insides.append(inside)
            walls.append(wall / bare)
            cpus.append(cpu / bare_cpu)
    return {"model": title, "level": level, "calls": calls, "calls_ms": 1e3 * calls * price, "repeat": repeat, "inside_ms": 1e3 * statistics.median(insides), "share": statistics.median(shares),
            "wall_ratio": statistics.median(walls), "wall_range": [min(walls), max(walls)],
            "cpu_ratio": statistics.median(cpus), "cpu_range": [min(cpus), max(cpus)], "bytes": size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--level", choices=TARGETS, action="append")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    with inductor.patch(force_disable_caches=True):
        for name, level in itertools.product(options.model or MODELS, options.level or TARGETS):
            row = measure(name, level, options.repeat)
            if options.json:
                print(json.dumps(row), flush=True)
                continue
            verdict = "within" if row["share"] <= TARGETS[level] else "above"
            print(f"{row['model']}, {level}: {row['inside_ms']:.1f} ms inside the observer = {100 * row['share']:.2f} % of compile "
                  f"CPU time ({verdict} the target of {100 * TARGETS[level]:.0f} %), {row['calls']} calls of hooks = "
                  f"{row['calls_ms']:.1f} ms more; wall x{row['wall_ratio']:.3f} ({row['wall_range'][0]:.3f} to "
                  f"{row['wall_range'][1]:.3f}), CPU x{row['cpu_ratio']:.3f} ({row['cpu_range'][0]:.3f} to "
                  f"{row['cpu_range'][1]:.3f}) over {row['repeat']} pairs; {row['bytes'] / 1e3:.0f} kB captured", flush=True)


if __name__ == "__main__":
    main()
