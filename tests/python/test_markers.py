"""Marker constants: the witness of level truth against a search of the kernels' texts, and that the search can fail it."""

import json

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from recipes import RECIPES, Recipe, settings  # noqa: E402
from test_recipes import CAPTURED, require_package  # noqa: E402

from kerntrail import _marker_models, _markers  # noqa: E402
from kerntrail._capture import open_capture  # noqa: E402

CHEAP = {"mlp_training", "several_outputs", "conditional_training", "embedding", "in_place", "decode_step"}
REFUSED = {"flex": "torch's C++ template of flex_attention refuses what is fused after it"}
# Nothing is compiled in this process, or nothing with a text.
WITHOUT_KERNELS = {"lstm", "subprocess_compile", "other_backend"}


def check(recipe: Recipe) -> _markers.Result:
    def run() -> None:
        with settings(recipe):
            recipe.run(torch.compile)

    torch._dynamo.reset()
    return _markers.check(recipe.name, run)


@pytest.mark.parametrize("recipe", [pytest.param(recipe, id=recipe.name, marks=[] if recipe.name in CHEAP else [pytest.mark.long])
                                    for recipe in CAPTURED])
def test_both_witnesses_agree(recipe):
    require_package(recipe)
    if recipe.name in REFUSED:
        pytest.skip(REFUSED[recipe.name])
    result = check(recipe)
    print(_markers.table([result]))
    assert not result.unexplained and result.lines_agreed == result.lines
    assert (result.kernels > 0) == (recipe.name not in WITHOUT_KERNELS)
    assert CHEAP <= {recipe.name for recipe in RECIPES}


@pytest.fixture(scope="module")
def marked_capture(tmp_path_factory):
    path = tmp_path_factory.mktemp("marked") / "c.ndjson"
    markers: list[_markers.Marker] = []
    torch._dynamo.reset()
    capture = open_capture(path, level="truth")
    try:
        with _markers.marked(markers):
            _marker_models.MODELS["reductions"]()
    finally:
        capture.close()
    return path, markers


def changed(path, tmp_path, change):
    """The same capture with another text of one attribute of a kernel, or another list of what it refers to."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(records)
    out = tmp_path / "changed.ndjson"
    out.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return str(out)


def attr(records, name):
    return next(record for record in records if record.get("attr") == name and record["state"] == "present")


def text(records, number):
    return next(record for record in records if record["record"] == "text" and record["id"] == number)


def test_what_was_recorded_agrees(marked_capture):
    path, markers = marked_capture
    result = _markers.compare("reductions", str(path), markers)
    assert result.kernels == result.agreed == 1 and result.lines_agreed == result.lines >= len(markers) > 3


def test_a_witness_that_is_wrong_is_found(marked_capture, tmp_path):
    path, markers = marked_capture

    def turn(records):
        refs = attr(records, "witness")["refs"]
        refs.append(refs.pop(0))  # every line is for the next node

    result = _markers.compare("reductions", changed(path, tmp_path, turn), markers)
    assert result.unexplained and result.lines_agreed < result.lines


def test_work_that_the_witness_lacks_is_found(marked_capture, tmp_path):
    path, markers = marked_capture

    def forget(records):
        for entry in text(records, attr(records, "witness")["text"])["json"]:
            entry["lines"] = [line for line in entry["lines"] if line["does"] not in ("compute", "constant")]

    result = _markers.compare("reductions", changed(path, tmp_path, forget), markers)
    assert {"its constant is in the text, the witness has no work for it here"} <= {
        difference.text.split(": ", 1)[1] for difference in result.unexplained}


def test_work_that_the_text_lacks_is_found(marked_capture, tmp_path):
    path, markers = marked_capture

    def blank(records):
        source = text(records, attr(records, "source")["text"])
        source["text"] = source["text"].replace(repr(markers[0].constant), "1.0")

    result = _markers.compare("reductions", changed(path, tmp_path, blank), markers)
    assert [difference.text for difference in result.unexplained] == [
        f"{markers[0]}: the witness has work for it here, its constant is not in the text"]
    assert str(markers[0]) in result.nowhere


def test_constants_are_exact_and_none_begins_another():
    texts = [repr(_markers.Marker(i, "", "").constant) for i in range(2000)]
    assert len(set(texts)) == 2000
    assert all(torch.tensor(float(number), dtype=torch.float32).double().item() == float(number) for number in texts)


PROGRAM = """
import sys, torch
from torch import nn

def f(x):
    y = torch.sin(x)
    return y.sum(-1) * 2

if "nothing" not in sys.argv:
    torch.compile(f)(torch.randn(4, 8))
sys.exit(7 if "fail" in sys.argv else 0)
"""


@pytest.mark.parametrize(("argument", "status"), [("", 0), ("nothing", 1), ("fail", 7)])
def test_selftest_of_a_program(run_kerntrail, tmp_path, argument, status):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_kerntrail("selftest", "markers", "program.py", argument)
    assert done.returncode == status, done.stdout + done.stderr
    if not status:
        head, row = done.stdout.splitlines()
        assert head.split()[:4] == ["model", "markers", "kernels", "agreed"]
        assert row.split() == ["program.py", "3", "1", "1", "0", "0", "3", "3", "0", "0"]
    if argument == "nothing":
        assert "nothing was compared" in done.stderr


@pytest.mark.long
def test_selftest_of_the_built_in_models(run_kerntrail):
    done = run_kerntrail("selftest", "markers", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) > len(_marker_models.MODELS)
