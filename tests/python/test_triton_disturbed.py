"""The dynamic witness of Triton kernels: disturbing a line of a kernel changes results, and none that the source line it is
witnessed for does not reach in an eager run. No GPU: Triton's interpreter, in a process of its own
(triton_fixtures/disturb.py says how)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
if find_spec("triton") is None:
    pytest.skip("triton is not installed (requirements/test.txt has it)", allow_module_level=True)

HERE = Path(__file__).parent
Rows = list[dict[str, Any]]


def disturbed(models: str, folder: Path) -> dict[str, Any]:
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "triton_fixtures.disturb", models, str(folder)], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "disturbed.json").read_text(encoding="utf-8"))


def outside(rows: Rows, reached: list[list[int]]) -> Rows:
    return [row for row, those in zip(rows, reached, strict=True) if not set(row["changed"]) <= set(those)]


def check(name: str, result: dict[str, Any]) -> Rows:
    rows = [row for row in result["rows"] if row["source_lines"]]
    print(f"{name}: {len(rows)} of {len(result['rows'])} lines have a source line; {sum(bool(r.get('changed')) for r in rows)} "
          f"change a result, {sum(r['bent'] for r in rows)} of them only when bent; "
          f"{sum(r['changed'] == r['reached'] for r in rows)} change all that their source line reaches")
    assert result["same"], "the kernels and eager disagree undisturbed"
    assert rows and not [row for row in result["rows"] if "error" in row]
    assert not [row for row in rows if not row["changed"]]
    assert outside(rows, [row["reached"] for row in rows]) == []
    return rows


def test_each_line_changes_what_its_source_line_reaches(tmp_path):
    rows = check("apart", disturbed("apart", tmp_path)["apart"])
    # It can fail: lines that are given another's reach, as a witness would that names the wrong node.
    by_node = {row["node"]: row["reached"] for row in rows}
    assert len({tuple(reached) for reached in by_node.values()}) >= 4
    wrong = outside(rows, [by_node["sin"] if row["node"] == "sigmoid" else row["reached"] for row in rows])
    assert wrong and {row["node"] for row in wrong} == {"sigmoid"}
    # What is loaded once for several nodes is for all of them.
    (load,) = [row for row in rows if "tl.load(in_ptr1" in row["text"]]
    assert len(load["source_lines"]) >= 3 and load["changed"] == load["reached"]


@pytest.mark.long
def test_more_models(tmp_path):
    results = disturbed("mlp,scans,gated,rotated,twice,softmax", tmp_path)
    for name in ("mlp", "scans", "gated", "rotated", "twice"):
        check(name, results[name])
    # The online softmax is made by a pass that gives its nodes no line: nothing can be said of these.
    assert not [row for row in results["softmax"]["rows"] if row["source_lines"] and not row["changed"]]
