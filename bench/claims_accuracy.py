"""How often the compiler is right about its own kernels: claims against the witness, over the recipes of the tests.

    .venv/bin/python bench/claims_accuracy.py [RECIPE ...] [--json] [--provenance 1]

Compiles each recipe (tests/python/recipes.py; without names: all that need no other package) on a stock back end under
level truth, asks `kerntrail verify`, and adds up what the compiler says of its kernels. Lines and nodes of a claim count
as right when the kernel does something for them: calculates, holds the constant, moves data, or looks through the view.
"Work" leaves views, index expressions and sub-graphs out. No time is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
from recipes import RECIPES, Recipe, settings  # noqa: E402

import kerntrail  # noqa: E402

BINARY = os.environ.get("KERNTRAIL_BINARY") or str(Path(sys.executable).parent / "kerntrail")
RIGHT = ("computes", "constant", "moves", "index", "control", "encloses")


def rows_of(recipe: Recipe, folder: Path, provenance: int) -> list[dict]:
    torch._dynamo.reset()
    path = folder / f"{recipe.name}.ndjson"
    with settings(recipe, **{"trace.provenance_tracking_level": provenance}), kerntrail.capture(path, level="truth", replace=True):
        recipe.run(torch.compile)
    done = subprocess.run([BINARY, "verify", str(path), "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{recipe.name}: {done.stderr.strip()}", file=sys.stderr)
        return []
    return json.loads(done.stdout)["totals"]


def add(total: dict[str, int], score: dict[str, int]) -> None:
    right = sum(score[word] for word in RIGHT)
    for key, value in (("claimed", score["claimed"]), ("right", right), ("work", right - score["index"] - score["encloses"]),
                       ("elsewhere", score["elsewhere"]), ("nowhere", score["nowhere"]), ("missed", score["missed"])):
        total[key] += value


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:5.1f} %" if whole else "    -  "


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recipes", nargs="*", metavar="RECIPE")
    parser.add_argument("--provenance", type=int, default=1, choices=(0, 1, 2), help="torch's own trace.provenance_tracking_level")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    known = {recipe.name: recipe for recipe in RECIPES if not recipe.skip}
    if unknown := [name for name in options.recipes if name not in known]:
        parser.error(f"no such recipe: {', '.join(unknown)}; there are {', '.join(known)}")
    totals: dict[tuple[str, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    with tempfile.TemporaryDirectory() as folder:
        for name in options.recipes or known:
            if sys.stderr.isatty():
                print(f"\r{name:30}", end="", file=sys.stderr)
            for row in rows_of(known[name], Path(folder), options.provenance):
                if row["stage"] != "kernel":
                    continue
                for kind in ("lines", "nodes"):
                    for unit_class in (row["class"], "all"):
                        add(totals[kind, row["evidence"], unit_class], row[kind])
                totals["lines", row["evidence"], row["class"]]["units"] += row["units"]
    if options.json:
        print(json.dumps([{"kind": kind, "evidence": evidence, "class": unit_class, **score}
                          for (kind, evidence, unit_class), score in sorted(totals.items())], indent=2))
        return 0
    print(f"{'claim':26} {'class':9} {'claimed':>7} {'right':>7} {'':7} {'work':>6} {'':7} {'elsewh.':>7} {'nowhere':>7} {'missed':>7}")
    for (kind, evidence, unit_class), score in sorted(totals.items()):
        print(f"{f'{kind}, {evidence}':26} {unit_class:9} {score['claimed']:7} {score['right']:7} {share(score['right'], score['claimed'])} "
              f"{score['work']:6} {share(score['work'], score['claimed'])} {score['elsewhere']:7} {score['nowhere']:7} {score['missed']:7}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
