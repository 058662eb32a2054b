"""`kerntrail export`: torch's own provenance documents from any capture, and flat tables that other programs read."""

import contextlib
import copy
import csv
import json
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
import torch._inductor.debug as torch_debug  # noqa: E402
from recipes import RECIPES, settings  # noqa: E402

import kerntrail  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = ROOT / "tests" / "data" / "captures" / "hostile.ndjson"
BY_NAME = {recipe.name: recipe for recipe in RECIPES}
MAPPINGS = "inductor_provenance_tracking_node_mappings.json"
STACKS = "inductor_provenance_tracking_kernel_stack_traces.json"
COMPARED = ["mlp_training", "attention", "cnn_training", "custom_ops", "graph_break", "twins", "experts", "conditional"]


@contextlib.contextmanager
def watched():
    """What torch writes: (node mappings, kernel stack traces) of each graph that it lowers, in order."""
    written = []
    original = torch_debug.dump_inductor_provenance_info

    def dump():
        document = original()
        stacks = copy.deepcopy(torch_debug._inductor_kernel_stack_trace)
        written.append((json.loads(json.dumps(document)), json.loads(json.dumps(stacks))))
        return document

    with mock.patch.object(torch_debug, "dump_inductor_provenance_info", dump):
        yield written


def run(recipe, path, provenance, level="passes"):
    torch._dynamo.reset()
    with settings(recipe, **{"trace.provenance_tracking_level": provenance}), watched() as written:
        with kerntrail.capture(path, level=level):
            recipe.run(torch.compile)
    torch._dynamo.reset()
    return written


def exported(run_kerntrail, path, file, folder, *arguments):
    """Documents by compile and direction, in the order in which the compiles were made."""
    form = "node-mappings" if file == MAPPINGS else "kernel-stack-traces"
    done = run_kerntrail("export", path, "--format", form, "-o", folder, *arguments)
    assert done.returncode == 0, done.stderr
    return {found.parent.name: json.loads(found.read_text()) for found in sorted(folder.rglob(file))}, done.stderr


def as_sets(table):
    return {key: set(values) for key, values in table.items()}


@pytest.mark.parametrize("name", COMPARED)
def test_claims_are_what_torch_wrote_itself(tmp_path, run_kerntrail, name):
    path = tmp_path / "c.ndjson"
    written = run(BY_NAME[name], path, provenance=1)
    mappings, said = exported(run_kerntrail, path, MAPPINGS, tmp_path / "out", "--from", "claims")
    stacks, _ = exported(run_kerntrail, path, STACKS, tmp_path / "out", "--from", "claims")
    # Graphs whose code is made at once are in the order of their compiles, lazy backwards come last.
    places = sorted(mappings, key=lambda place: ("backward" in place, place))
    assert len(written) == len(places), (len(written), places)
    compared = 0
    for place, (theirs, their_stacks) in zip(places, written, strict=True):
        ours = mappings[place]
        assert list(ours) == ["preToPost", "postToPre", "cppCodeToPost", "postToCppCode", "version"]
        assert ours["version"] == theirs["version"] == 2.0
        is_backward = "backward" in place
        if is_backward:  # torch lists the kernels of every lazy backward before, of whatever model, beside its own
            their_stacks = {key: their_stacks[key] for key in stacks[place]}
        assert as_sets(stacks[place]) == as_sets(their_stacks), place
        if "cppCodeToPost" not in theirs:
            assert is_backward, "torch writes nothing but the version for a lazy backward"
            assert ours["cppCodeToPost"] and all(ours["cppCodeToPost"].values())
            continue
        for key in ("cppCodeToPost", "postToCppCode", "postToPre", "preToPost"):
            assert as_sets(ours[key]) == as_sets(theirs[key]), (place, key)
        assert list(ours["cppCodeToPost"]) == sorted(theirs["cppCodeToPost"], key=lambda each: int(each.rpartition(":")[2]))
        compared += sum(map(len, ours["cppCodeToPost"].values())) + len(ours["postToPre"])
    assert compared > 0, "nothing was there to compare"
    assert "from the compiler's claims" in said
