"""How long `kerntrail gate` takes from a cold start on a capture of about 10 MB, beside what merely reading it takes.

    make bench            or: .venv/bin/python bench/gate_bench.py [CAPTURE] [--repeat N] [--json]

Without a capture one is recorded first: an encoder in training, compiled until the file has 10 MB. Each figure is the
wall and CPU time of a whole process, median and least of N runs after one that is thrown away; the file is in the page
cache. `start` is `kerntrail --version`: what any process of ours costs. The target is 50 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BINARY = os.environ.get("KERNTRAIL_BINARY") or str(Path(sys.executable).parent / "kerntrail")
TARGET_MS = 50.0
SIZE = 10_000_000
CONFIG = """
[[coverage]]
stages = "*"
fields = "*"
min = 0.0
[[drops]]
classes = ["dropped", "orphan", "overwritten", "collapsed", "a", "b", "c", "d", "e"]
max = 1.0
[hooks]
failed = "fail"
"""


def record(path: Path) -> None:
    os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
    import torch
    import torch._dynamo
    from torch import nn

    import kerntrail

    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    with kerntrail.capture(path):
        for layers in range(2, 40):
            torch._dynamo.reset()
            torch.compile(nn.TransformerEncoder(layer, layers))(torch.randn(2, 10, 32, requires_grad=True)).sum().backward()
            if path.exists() and path.stat().st_size >= SIZE:
                break


def timed(command: list[str], repeat: int) -> dict[str, float]:
    wall, cpu = [], []
    for _ in range(repeat + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        wall.append((time.perf_counter() - start) * 1e3)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}")
    return {"wall_ms": statistics.median(wall[1:]), "wall_least_ms": min(wall[1:]), "cpu_ms": statistics.median(cpu[1:])}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("capture", nargs="?", type=Path)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        capture = options.capture or Path(folder) / "encoder.ndjson"
        if options.capture is None:
            record(capture)
        config, baseline = Path(folder) / "kerntrail.toml", Path(folder) / "baseline.json"
        config.write_text(CONFIG, encoding="utf-8")
        gate = [BINARY, "gate", str(capture), "--config", str(config)]
        subprocess.run([*gate, "--baseline", str(baseline), "--update"], stdout=subprocess.DEVNULL, check=False)
        rows = {
            "start": timed([BINARY, "--version"], options.repeat),
            "info (reads it)": timed([BINARY, "info", str(capture)], options.repeat),
            "gate": timed(gate, options.repeat),
            "gate, baseline": timed([*gate, "--baseline", str(baseline), "--sarif", str(Path(folder) / "g.sarif")], options.repeat),
        }
        size = capture.stat().st_size / 1e6
    if options.json:
        print(json.dumps({"megabytes": size, "target_ms": TARGET_MS, "rows": rows}))
        return 0
    print(f"gate on a capture of {size:.1f} MB, {options.repeat} runs; target {TARGET_MS:.0f} ms")
    for name, row in rows.items():
        print(f"  {name:<16} wall {row['wall_ms']:7.1f} ms (least {row['wall_least_ms']:.1f})   CPU {row['cpu_ms']:6.1f} ms")
    met = rows["gate"]["wall_least_ms"] <= TARGET_MS
    print(f"  target {'met' if met else 'missed'} by the least of the runs ({size / rows['gate']['wall_least_ms'] * 1e3:.0f} MB/s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
