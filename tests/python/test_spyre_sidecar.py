"""Keys, events and the sidecar of a real compile by the Spyre-format back end, against torch's own tables and profiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import sympy  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor import config as inductor_config  # noqa: E402
from torch._inductor.utils import run_and_get_code  # noqa: E402

from kerntrail.spyre import async_compile, scheduling, sidecar, spyre_kernel  # noqa: E402


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64)

    def forward(self, x):
        x = self.fc(x)
        return torch.relu(x)


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def runners(monkeypatch):
    """Every kernel that a wrapper makes while the test runs."""
    made, original = [], async_compile.SpyreAsyncCompile.sdsc

    def sdsc(self, *args):
        made.append(original(self, *args))
        return made[-1]

    monkeypatch.setattr(async_compile.SpyreAsyncCompile, "sdsc", sdsc)
    return made


@pytest.fixture
def kernels(monkeypatch):
    """Every kernel as code generation has it when its text is made: (name, key)."""
    made, original = [], scheduling.SuperDSCScheduling.define_kernel

    def define_kernel(self, source, nodes, kernel):
        name = original(self, source, nodes, kernel)
        made.append((name, kernel.provenance_key))
        return name

    monkeypatch.setattr(scheduling.SuperDSCScheduling, "define_kernel", define_kernel)
    return made


@pytest.fixture
def warnings(monkeypatch):
    """What the sidecar's logger is told."""
    said = []
    monkeypatch.setattr(sidecar.log, "warning", lambda text, *values: said.append(text % values))
    return said


def compiled(path, level=1, model=None, **options):
    torch.manual_seed(0)
    model = (model or Model()).half().eval()
    options = {"provenance_artifact_path": path, **options}
    fn = torch.compile(model, backend="kerntrail_spyre", options=options)
    with torch.no_grad(), inductor_config.patch({"trace.provenance_tracking_level": level}):
        _, code = run_and_get_code(fn, torch.randn(2, 64, dtype=torch.float16))
    return fn, code


def run(fn):
    with torch.no_grad():
        return fn(torch.randn(2, 64, dtype=torch.float16))


def line_of(text):
    source = open(__file__, encoding="utf-8").read().splitlines()
    return source.index(text) + 1


def test_key_at_code_generation_is_that_of_the_executed_wrapper(tmp_path, runners, kernels):
    compiled(tmp_path / "s.json")
    assert kernels and kernels == [(r.kernel_name, r.provenance.key) for r in runners]


def test_key_does_not_depend_on_how_symbols_and_integers_are_held(tmp_path, runners, kernels, monkeypatch):
    """The assumptions of a symbol and the type of an integer are lost in a wrapper's text (torch-spyre #3975)."""
    original = spyre_kernel.SpyreKernel.create_op_spec

    def create_op_spec(self, *args):
        spec = original(self, *args)
        spec.iteration_space = {
            sympy.Symbol(name, integer=True, positive=True): (sympy.Integer(extent), split)
            for name, (extent, split) in spec.iteration_space.items()
        }
        return spec

    compiled(tmp_path / "plain.json")
    plain = list(kernels)
    monkeypatch.setattr(spyre_kernel.SpyreKernel, "create_op_spec", create_op_spec)
    torch._dynamo.reset()
    compiled(tmp_path / "symbolic.json")
    symbolic = kernels[len(plain):]
    assert [key for _, key in symbolic] == [r.provenance.key for r in runners[len(plain):]]
    assert symbolic == plain, "nor on what the specs were made of"


def test_key_changes_with_the_kernel(tmp_path, runners):
    compiled(tmp_path / "a.json")
    torch._dynamo.reset()
    compiled(tmp_path / "b.json", model=nn.Sequential(nn.Linear(64, 128), nn.ReLU()))
    assert len({r.provenance.key for r in runners}) == len(runners) == 2


def test_sidecar_holds_the_compile_and_joins_torchs_tables(tmp_path, runners):
    path = tmp_path / "made" / "s.json"
    _, (code,) = compiled(path)
    document = json.loads(path.read_text())
    assert document["status"] == "complete" and document["diagnostics"] == {} and document["mergeGeneration"] == 1
    (projection,) = document["upstreamProjections"].values()
    assert projection["upstreamJoin"] == "ok" and projection["settings"]["provenanceTrackingLevel"] == 1
    assert projection["producer"]["torchVersion"] == torch.__version__
    (runner,) = runners
    assert projection["kernels"] == [{"compilerKernelName": runner.kernel_name, "identityKey": runner.provenance.key}]
    (occurrence,) = document["kernelOccurrences"].values()
    assert occurrence["registrations"] == [{"ordinal": 1, "alias": f"{runner.kernel_name}:1"}]
    assert f"[Provenance debug handles] {runner.kernel_name}:1" in code
    assert projection["preToPost"]["relu"] == ["relu"] and len(projection["preToPost"]["x"]) == 3
    context = projection["kernelStackTraces"][f"{runner.kernel_name}:1"]
    assert set(context["preGradNodes"]) == {"x", "relu"}
    assert any("return torch.relu(x)" in trace for trace in context["stackTraces"])


def test_each_launch_is_an_event_that_leads_to_source_lines(tmp_path, run_kerntrail):
    path = tmp_path / "s.json"
    fn, _ = compiled(path)
    with torch.profiler.profile(record_shapes=True) as profile:
        for _ in range(3):
            run(fn)
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    events = [e for e in trace if str(e.get("name")).startswith("spyre_kernel_")]
    assert len(events) == 3 and len({e["name"] for e in events}) == 1
    done = run_kerntrail("sidecar", path, "--event", events[0]["name"], "--format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["status"] == "complete" and result["event"]["commandStep"] == 0
    assert result["identityKey"] == events[0]["args"]["provenance_key"]
    assert result["directHandleIds"] == events[0]["args"]["debug_handles"]
    lines = {h["source"]["start_line"] for h in result["handles"].values() if h["source"]}
    assert lines == {line_of("        x = self.fc(x)"), line_of("        return torch.relu(x)")}
    text = run_kerntrail("sidecar", path, "--event", events[0]["name"]).stdout
    assert all(f"{__file__}:{line}" in text for line in lines), text


def test_compiles_come_together_in_one_file(tmp_path):
    path = tmp_path / "s.json"
    compiled(path)
    first = path.read_bytes()
    torch._dynamo.reset()
    compiled(path)
    assert path.read_bytes() == first, "the same compile again adds nothing"
    torch._dynamo.reset()
    compiled(path, model=nn.Sequential(nn.Linear(64, 128), nn.ReLU()))
    document = json.loads(path.read_text())
    assert len(document["upstreamProjections"]) == 2 and document["mergeGeneration"] == 2


def test_wrapper_executed_by_itself_is_a_replay(tmp_path, monkeypatch):
    path = tmp_path / "s.json"
    _, (code,) = compiled(path)
    fresh = path.read_bytes()
    monkeypatch.setenv(sidecar.PATH_VARIABLE, str(path))
    with inductor_config.patch({"trace.provenance_tracking_level": 1}):
        exec(compile(code, "wrapper", "exec"), {"__name__": "wrapper"})
    assert path.read_bytes() == fresh
    monkeypatch.setenv(sidecar.PATH_VARIABLE, str(tmp_path / "alone.json"))
    with inductor_config.patch({"trace.provenance_tracking_level": 1}):
        exec(compile(code, "wrapper", "exec"), {"__name__": "wrapper"})
    alone = json.loads((tmp_path / "alone.json").read_text())
    (projection,) = alone["upstreamProjections"].values()
    assert projection["upstreamJoin"] == "unavailable-cache-replay" and alone["status"] == "partial"
    assert alone["kernelIdentities"] == json.loads(fresh)["kernelIdentities"]


@pytest.mark.parametrize("nowhere", [None, ""])
def test_no_path_no_file(tmp_path, monkeypatch, nowhere):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(sidecar.PATH_VARIABLE)
    compiled(nowhere)
    assert not (tmp_path / "torch_compile_debug").exists() and not list(tmp_path.glob("*.json"))


def test_path_comes_from_option_environment_or_debug_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(sidecar.PATH_VARIABLE, "from_environment.json")
    monkeypatch.chdir(tmp_path)
    assert sidecar.artifact_path() == str(tmp_path / "from_environment.json")
    monkeypatch.setenv(sidecar.PATH_VARIABLE, "")
    assert sidecar.artifact_path() == ""
    monkeypatch.delenv(sidecar.PATH_VARIABLE)
    with inductor_config.patch({"trace.debug_dir": str(tmp_path / "run")}):
        assert sidecar.artifact_path() == str(tmp_path / "run" / "torchinductor" / "spyre_provenance.json")
    assert os.path.join("torch_compile_debug", "run_") in sidecar.artifact_path()
    with pytest.raises(Exception, match="provenance_artifact_path"):
        compiled(3)


def test_level_0_is_said_once(tmp_path, warnings, monkeypatch):
    monkeypatch.setattr(sidecar, "_said_level_0", False)
    compiled(tmp_path / "s.json", level=0)
    torch._dynamo.reset()
    compiled(tmp_path / "t.json", level=0)
    assert len(warnings) == 1 and "INDUCTOR_PROVENANCE=1" in warnings[0]
    document = json.loads((tmp_path / "s.json").read_text())
    (projection,) = document["upstreamProjections"].values()
    assert projection["upstreamJoin"] == "unavailable-provenance-level-0" and projection["preToPost"] == {}


def test_failures_warn_and_stop_nothing(tmp_path, warnings, monkeypatch):
    (tmp_path / "s.json").write_text("not ours")
    fn, _ = compiled(tmp_path / "s.json")
    assert (tmp_path / "s.json").read_text() == "not ours"
    (said,) = warnings
    assert "s.json" in said and str(tmp_path) not in said
    assert run(fn).shape == (2, 64)

    warnings.clear()
    torch._dynamo.reset()

    def broken(*_):
        raise RuntimeError("planted")

    monkeypatch.setattr(sidecar._native.spyre, "describe_kernel", broken)
    monkeypatch.setattr(sidecar.debug, "create_kernel_information_json", broken)
    fn, _ = compiled(tmp_path / "t.json")
    assert run(fn).shape == (2, 64)
    assert sum("planted" in said for said in warnings) == 2


def test_history_of_passes_is_in_the_sidecar(tmp_path):
    path = tmp_path / "s.json"

    class Twice(nn.Module):
        def forward(self, x):
            return torch.relu(x * 2.0) + torch.relu(x * 2.0)

    compiled(path, model=Twice(), generation="july-transform")
    handles = json.loads(path.read_text())["handles"].values()
    assert {step["kind"] for handle in handles for step in handle["transform_history"]}


@pytest.mark.long
def test_processes_share_a_file(tmp_path):
    """Two programs at once: both compiles are there."""
    program = """
import sys, torch
from torch import nn
import kerntrail.spyre
model = nn.Sequential(nn.Linear(64, int(sys.argv[1]))).half().eval()
with torch.no_grad():
    torch.compile(model, backend="kerntrail_spyre")(torch.randn(2, 64, dtype=torch.float16))
"""
    environment = {**os.environ, sidecar.PATH_VARIABLE: str(tmp_path / "s.json"), "INDUCTOR_PROVENANCE": "1"}
    running = [
        subprocess.Popen([sys.executable, "-c", program, size], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
        for size in ("64", "128")
    ]
    for process in running:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err.decode()
    document = json.loads((tmp_path / "s.json").read_text())
    assert len(document["upstreamProjections"]) == 2 and document["status"] == "complete"
