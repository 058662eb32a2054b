"""The probe on Inductor's Triton code, without a GPU: device cpu through Triton's interpreter, and a CUDA device that
does not exist. Each run has a process of its own (triton_fixtures/run.py says what it does)."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from capture_view import CaptureView

pytest.importorskip("torch")
if find_spec("triton") is None:
    pytest.skip("triton is not installed (requirements/test.txt has it)", allow_module_level=True)

HERE = Path(__file__).parent
CASES = [
    ("cpu", "mlp", "inference", 0),
    ("cpu", "mlp", "training", 1),
    ("cpu", "twice", "inference", 1),
    ("cuda", "mlp", "training", 1),
    ("cuda", "softmax", "inference", 0),
]


@dataclass
class Run:
    case: tuple[str, str, str, int]
    path: Path
    view: CaptureView
    result: dict

    @property
    def level(self) -> int:
        return self.case[3]

    def kernels(self, kernel_class: str) -> list[dict]:
        rows = [row for d in ("inference", "forward", "backward") for row in self.view.at("kernel", direction=d)]
        return [row for row in rows if row.get("class") == kernel_class]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, case)))
def run(request, tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("triton")
    command = [sys.executable, "-m", "triton_fixtures.run", *map(str, request.param), str(folder)]
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
        capture_output=True, text=True, timeout=600, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return Run(request.param, folder / "capture.ndjson", CaptureView(folder / "capture.ndjson"), result)


def test_code_is_the_same_with_and_without(run):
    assert run.result["before"] == run.result["during"] == run.result["after"]
    assert len(run.result["during"]) == (2 if run.case[2] == "training" else 1)
    assert run.result["error"] < 1e-5


def test_the_capture_is_whole(run, run_kerntrail):
    assert run.view.end["status"] == "complete"
    assert all(hook.get("errors", 0) == 0 for hook in run.view.of("hook"))
    assert not run.view.notes("kernel-not-registered") and not run.view.notes("kernel-not-called")
    checked = run_kerntrail("validate", run.path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_triton_kernels_are_known_by_text_class_and_comment(run):
    loops = run.kernels("loop")
    assert loops
    for kernel in loops:
        assert kernel["name"].startswith("triton_")
        assert kernel["source"].startswith("async_compile.triton(") and "@triton.jit" in kernel["source"]
        assert kernel["name"] in kernel["source"]
        assert "Original ATen: [" in kernel["comment"]
        assert kernel["seen"] == {"defined": 1, "called": len(kernel["calls"]), "registered": len(kernel["calls"])}
    assert run.kernels("extern") or run.case[1] == "softmax"


def test_calls_are_lines_of_the_wrapper_in_order(run):
    wrappers = [code.splitlines() for code in run.result["during"]]
    graphs = {}
    for kernel in run.kernels("loop") + run.kernels("extern"):
        graphs.setdefault(run.view.units[kernel["unit"]]["graph"], []).extend((c["order"], c, kernel) for c in kernel["calls"])
    assert len(graphs) == len(wrappers)
    for lines, graph in zip(wrappers, sorted(graphs, key=lambda name: int(name.split(".g")[1]))):
        calls = sorted(graphs[graph], key=lambda entry: entry[0])
        assert [order for order, _, _ in calls] == list(range(len(calls)))
        for _, call, kernel in calls:
            assert lines[call["line"] - 1].strip() == call["text"]
            assert call["text"].startswith(kernel["name"])
    links = [link for link in run.view.of("link") if link["kind"] == "call_kernel"]
    assert len(links) == sum(len(calls) for calls in graphs.values())
    assert all(run.view.units[link["to"][0]]["kind"] == "kernel_call" for link in links)


def test_handles_and_mappings_are_torchs_own(run):
    for kernel in run.kernels("loop"):
        if run.level == 0:
            assert kernel["states"]["handles"] == "empty" and "stacks" not in kernel["states"]
            continue
        assert kernel["handles"] == [call["handle"] for call in kernel["calls"]]
        assert all(handle.rpartition(":")[0] == kernel["name"] for handle in kernel["handles"])
    claims = run.view.of("claim")
    assert {claim["claimant"] for claim in claims} == {"compiler"}
    assert {claim["evidence"] for claim in claims} == ({"origins", "mapping"} if run.level else {"origins"})
    by_origins = {claim["kernel"]: set(claim["units"]) for claim in claims if claim["evidence"] == "origins"}
    for claim in claims:
        assert set(claim["units"]) <= by_origins[claim["kernel"]]
    for kernel in run.kernels("loop"):
        assert by_origins[kernel["unit"]]


def test_stacks_lead_to_the_model(run):
    if run.level == 0 or run.case[2] == "training":
        pytest.skip("stacks come with provenance level 1, and those of a backward are of no pre-grad node")
    stacks = [stack for kernel in run.kernels("loop") for stack in kernel["stacks"] or []]
    assert any("models.py" in stack for stack in stacks)


def test_one_text_called_twice_is_one_kernel(run):
    if run.case[1] != "twice":
        pytest.skip("only this model has one")
    (kernel,) = run.kernels("loop")
    assert len(kernel["calls"]) == 2 and len(set(kernel["handles"])) == 2
    assert kernel["calls"][0]["operations"] != kernel["calls"][1]["operations"]


def test_gpu_passes_ran_for_the_gpu(run):
    if run.case[0] != "cuda":
        pytest.skip("device cpu")
    assert all("cuda" in (row["type"] or {}).get("device", "cuda") for row in run.view.at("ir_pre_pass", direction=None))
    assert "device_str='cuda'" in run.kernels("loop")[0]["source"]
