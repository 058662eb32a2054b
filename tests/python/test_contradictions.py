"""Each program of contradictions.py, on the torch that is installed: the claim is there, and the kernel says otherwise."""

import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch._inductor.config as inductor  # noqa: E402
from capture_view import CaptureView  # noqa: E402
from contradictions import CONTRADICTIONS, GONE, Contradiction  # noqa: E402
from witness_view import read_use  # noqa: E402

from kerntrail._capture import open_capture  # noqa: E402

FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass
class Verdict:
    """What is claimed of one kernel, and what it is."""

    kernel: str
    claimed: set[str]  # nodes
    computes: set[str]  # nodes that the witness has there, however
    lines: dict[str, str]  # claimed node -> text of the user's line that it has


def verdicts(view: CaptureView) -> list[Verdict]:
    """Of each kernel with a witness. All that the tests know of a capture; `verify --format json` says the same."""
    names = {unit: view.value(attrs["name"]) for snapshot in view.snapshots
             for unit, attrs in snapshot["units"].items() if "name" in attrs}
    stacks = {unit: view.value(attrs["stack_trace"]) for snapshot in view.snapshots if snapshot["stage"] == "fx_post_grad"
              for unit, attrs in snapshot["units"].items() if "stack_trace" in attrs}
    out = []
    for snapshot in view.snapshots:
        for unit, attrs in snapshot["units"].items() if snapshot["stage"] == "kernel" else ():
            if attrs["witness"]["state"] != "present":
                continue
            seen = [names[ref] for ref in attrs["witness"].get("refs", [])]
            text = view.value(attrs["source"]).split("\n") if "source" in attrs else []
            uses = [read_use(entry, seen, text, "", "") for entry in view.value(attrs["witness"])]
            computes = {node for use in uses for line in use.lines for node in (line.node, *line.also) if node}
            computes |= {node for use in uses for node in (*use.computes(), *use.lowered.values()) if node}
            claimed = {of for claim in view.of("claim") if (claim["kernel"], claim["evidence"]) == (unit, "origins")
                       for of in claim["units"]}
            out.append(Verdict(names[unit], {names[of] for of in claimed}, computes,
                               {names[of]: user_line(stacks.get(of)) for of in claimed}))
    return out


def user_line(stack) -> str:
    frames = FRAME.findall(stack if isinstance(stack, str) else str(stack or ""))
    return linecache.getline(frames[-1][0], int(frames[-1][1])).strip() if frames else ""


def line_at(view: CaptureView, stage: str, node: str) -> str:
    (row,) = [row for row in view.at(stage) if row["name"] == node]
    return user_line(row["stack_trace"])


def captured(build: Callable, path: Path, **config) -> CaptureView:
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
    return CaptureView(path)


def kernel_of(case: Contradiction, found: list[Verdict]) -> Verdict:
    named = [verdict for verdict in found if verdict.kernel.startswith(case.kernel)]
    if not named and case.needs_template:
        pytest.skip("no template fits this processor")
    assert named, [verdict.kernel for verdict in found]
    return next((verdict for verdict in named if verdict.computes == case.computes), named[0])


@pytest.mark.parametrize("case", CONTRADICTIONS, ids=lambda case: case.name)
def test_the_claim_contradicts_the_kernel(case, tmp_path):
    view = captured(case.build, tmp_path / "c.ndjson", **case.inductor)
    found = verdicts(view)
    kernel = kernel_of(case, found)
    assert kernel.computes == case.computes
    # What is too much is exactly this.
    everywhere = set().union(*(verdict.computes for verdict in found))
    extra = {node: "elsewhere" if node in everywhere else "nowhere" for node in kernel.claimed - kernel.computes}
    assert extra == case.extra
    if case.line is not None:
        assert case.line.node in kernel.claimed
        assert kernel.lines[case.line.node] == case.line.claimed
        assert line_at(view, "fx_joint", case.line.node) == case.line.true
    assert extra or case.line.claimed != case.line.true


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone(name, tmp_path):
    """Kernels of loops claim what they compute, and nothing else."""
    loops = [verdict for verdict in verdicts(captured(GONE[name], tmp_path / "c.ndjson")) if verdict.kernel.startswith("cpp_")]
    assert loops
    for verdict in loops:
        assert verdict.claimed == verdict.computes, verdict


def test_each_has_its_place_in_the_documentation(repo_root):
    text = (repo_root / "docs" / "contradictions.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## Class `([\w-]+)`.*?\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    assert set(sections) == {case.fault for case in CONTRADICTIONS}
    for case in CONTRADICTIONS:
        assert f"`{case.name}`" in sections[case.fault], case.name
