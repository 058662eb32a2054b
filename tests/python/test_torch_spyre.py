"""Where `torch_spyre` can be imported its classes are the ones that are watched: checked with a package of the same
modules, classes, methods and signatures (stand_in/), which must give the capture that our own back end gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from capture_view import CaptureView

pytest.importorskip("torch")

HERE = Path(__file__).resolve().parent
SEAMS = {
    "stage2_pre_grad": "_inductor.passes.CustomPreGradPasses.__call__",
    "stage2_post_grad": "_inductor.passes.CustomPostPasses.__call__",
    "stage3_looplevel_prepass": "_inductor.passes.CustomPreSchedulingPasses.__call__",
    "pre_scheduling_pass_begin": "_inductor.provenance.SpyreGraphTransformObserver.__enter__",
    "pre_scheduling_pass_end": "_inductor.provenance.SpyreGraphTransformObserver.__exit__",
    "provenance_forwarded": "_inductor.provenance._append_transform",
    "stage5_opspec": "_inductor.spyre_kernel.SpyreKernel.create_op_spec",
    "stage6_define_kernel": "_inductor.scheduler.SuperDSCScheduling.define_kernel",
    "stage6_output_dir": "execution.async_compile.get_output_dir",
    "op_specs_executed": "execution.async_compile.SpyreAsyncCompile.sdsc",
}
PROGRAM = """
import sys
import torch
from torch import nn
import kerntrail
import kerntrail.spyre
if "stand-in" in sys.argv:
    import torch_spyre
    torch_spyre.install()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 128)
    def forward(self, x):
        x = self.fc(x)
        return torch.relu(x) + torch.relu(x)

torch.manual_seed(0)
model = Model().half().eval()
x = torch.randn(2, 64, dtype=torch.float16)
with torch.no_grad(), kerntrail.capture(sys.argv[1]):
    got = torch.compile(model, backend="kerntrail_spyre", options={"generation": "july-transform"})(x)
with torch.no_grad():
    torch.testing.assert_close(got, model(x), atol=1e-2, rtol=1e-2)
"""


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """(with the stand-in, with our own classes), each in a process of its own."""
    folder = tmp_path_factory.mktemp("captures")
    (folder / "program.py").write_text(PROGRAM)

    def start(name, *arguments, path=()):
        environment = {
            **os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "INDUCTOR_PROVENANCE": "1",
            "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")]),
        }
        return subprocess.Popen([sys.executable, "program.py", name, *arguments], cwd=folder, env=environment,
                                stderr=subprocess.PIPE, text=True)

    running = [start("theirs.ndjson", "stand-in", path=[str(HERE / "stand_in")]), start("ours.ndjson")]
    for process in running:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    return CaptureView(folder / "theirs.ndjson"), CaptureView(folder / "ours.ndjson")


def test_every_seam_is_the_package_s(captures):
    theirs, ours = captures
    for label, attribute in SEAMS.items():
        hook = theirs.hook(label)
        assert hook["attribute"] == f"torch_spyre.{attribute}" and hook["state"] == "installed", hook
        assert not hook.get("errors"), hook
        assert ours.hook(label)["attribute"].startswith("kerntrail.spyre.")


def test_stages_and_units_are_the_same(captures):
    theirs, ours = captures
    assert theirs.stages() == ours.stages() and {"op_spec", "superdsc", "kernel", "ir_post_pass"} <= set(theirs.stages())
    for stage in theirs.stages():
        assert theirs.at(stage) and theirs.names(stage) == ours.names(stage), stage
        states = [[row["states"] for row in view.at(stage)] for view in captures]
        assert states[0] == states[1], stage


def test_passes_and_what_they_declare_are_the_same(captures):
    def told(view):
        passes = [(p["name"], len(p["created"]), len(p["erased"]), len(p["changed"]), len(p["replaced"]))
                  for p in view.passes(subsystem="pre_scheduling")]
        return passes, sorted((birth["evidence"], birth["unit"]) for birth in view.births())

    theirs, ours = map(told, captures)
    assert theirs == ours
    assert any(evidence == "fusion" for evidence, _ in theirs[1]), "the two relus are one value"


def test_op_specs_that_a_wrapper_hands_over_as_objects_are_read(captures):
    (theirs,), (ours,) = (view.at("kernel") for view in captures)
    assert theirs["states"]["reread"] == "present" and theirs["reread"]
    assert theirs["reread"] == ours["reread"], "handed over as a list, and read from a text"
