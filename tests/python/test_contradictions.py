"""Each program of contradictions.py, on the torch that is installed: the claim is there, and the kernel says otherwise."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch._inductor.config as inductor  # noqa: E402
from contradictions import CONTRADICTIONS, GONE, Contradiction  # noqa: E402

from kerntrail._capture import open_capture  # noqa: E402

# A view, or an index: the kernel calculates nothing for it. The others contradict.
NO_WORK = ("index", "encloses", "elsewhere", "nowhere")


@dataclass
class Verdict:
    """What is claimed of one kernel, and what it is: a row of `kerntrail verify`."""

    kernel: str
    nodes: dict[str, str]  # claimed node -> what the kernel does for it
    missed: set[str]  # nodes that it works for without being claimed
    lines: dict[str, str]  # text of a claimed line -> what the kernel does for it
    missed_lines: set[str]

    @property
    def works_for(self) -> set[str]:
        return {node for node, word in self.nodes.items() if word not in NO_WORK} | self.missed


def verdicts(run_kerntrail, path: Path) -> tuple[list[Verdict], list[dict]]:
    """Of each kernel by its origins, and the nodes whose provenance was written over."""
    done = run_kerntrail("verify", path, "--stages", "kernel", "--format", "json")
    assert done.returncode == 0, done.stderr
    parts = json.loads(done.stdout)["parts"]
    return [
        Verdict(unit["name"], {node["name"]: node["witness"] for node in unit["nodes"] if node["claimed"]},
                {node["name"] for node in unit["nodes"] if not node["claimed"]},
                {line.get("code", ""): line["witness"] for line in unit["lines"] if line["claimed"]},
                {line.get("code", "") for line in unit["lines"] if not line["claimed"]})
        for part in parts for unit in part["units"] if unit["evidence"] == "origins"
    ], [rewrite for part in parts for rewrite in part["rewrites"]]


def captured(build: Callable, path: Path, **config) -> None:
    torch._dynamo.reset()
    model, inputs = build()
    with torch.no_grad(), inductor.patch({"force_disable_caches": True, **config}):
        expected = model(*inputs)
        model, inputs = build()
        capture = open_capture(path, level="truth")
        try:
            found = torch.compile(model)(*inputs)
        finally:
            capture.close()
    assert torch.allclose(found, expected, atol=1e-4)
    assert not [hook for hook in capture.hooks if hook["errors"]]


def kernel_of(case: Contradiction, found: list[Verdict]) -> Verdict:
    named = [verdict for verdict in found if verdict.kernel.startswith(case.kernel)]
    if not named and case.needs_template:
        pytest.skip("no template fits this processor")
    assert named, [verdict.kernel for verdict in found]
    return next((verdict for verdict in named if verdict.works_for == case.computes), named[0])


@pytest.mark.parametrize("case", CONTRADICTIONS, ids=lambda case: case.name)
def test_the_claim_contradicts_the_kernel(case, tmp_path, run_kerntrail):
    captured(case.build, tmp_path / "c.ndjson", **case.inductor)
    found, rewrites = verdicts(run_kerntrail, tmp_path / "c.ndjson")
    kernel = kernel_of(case, found)
    assert kernel.works_for == case.computes
    # What is too much is exactly this.
    assert {node: word for node, word in kernel.nodes.items() if word in NO_WORK} == case.extra
    if case.line is None:
        assert case.extra
    elif case.line.claimed != case.line.true:
        assert kernel.lines[case.line.claimed] in ("elsewhere", "nowhere")
        assert case.line.true in kernel.missed_lines
        assert case.line.node in {rewrite["name"] for rewrite in rewrites}
    else:
        assert kernel.lines[case.line.claimed] == "index"


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone(name, tmp_path, run_kerntrail):
    """Kernels of loops claim what they work for, and nothing else."""
    captured(GONE[name], tmp_path / "c.ndjson")
    loops = [verdict for verdict in verdicts(run_kerntrail, tmp_path / "c.ndjson")[0] if verdict.kernel.startswith("cpp_")]
    assert loops
    for verdict in loops:
        assert set(verdict.nodes) == verdict.works_for, verdict


def test_each_has_its_place_in_the_documentation(repo_root):
    text = (repo_root / "docs" / "contradictions.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## Class `([\w-]+)`.*?\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    assert set(sections) == {case.fault for case in CONTRADICTIONS}
    for case in CONTRADICTIONS:
        assert f"`{case.name}`" in sections[case.fault], case.name
