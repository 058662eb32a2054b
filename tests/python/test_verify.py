"""`kerntrail verify`: what stock Inductor says wrongly of its kernels comes out on real compiles, in the report and the
lineage too; and the output's schema."""

import copy
import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
jsonschema = pytest.importorskip("jsonschema")

import torch._dynamo  # noqa: E402
from recipes import RECIPES, settings  # noqa: E402

import kerntrail  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "schemas" / "verify.schema.json").read_text(encoding="utf-8")))
GOLDEN = ROOT / "tests" / "golden" / "witnessed" / "verify.json"
BY_NAME = {recipe.name: recipe for recipe in RECIPES}


def captured(path, function, *inputs, level="truth"):
    torch._dynamo.reset()
    with kerntrail.capture(path, level=level):
        torch.compile(function)(*inputs)


def verified(run_kerntrail, path, *arguments):
    done = run_kerntrail("verify", path, "--format", "json", *arguments)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    errors = [f"{error.json_path}: {error.message}" for error in SCHEMA.iter_errors(document)]
    assert not errors, errors[0]
    return document


def lines(document, word):
    """(unit, line's code) of the claims with this verdict; "missed" for what nobody claims."""
    return {(unit["name"], line["code"]) for part in document["parts"] for unit in part["units"] if unit["stage"] == "kernel"
            for line in unit["lines"] if (line["witness"] if line["claimed"] else "missed") == word}


def adds_zeros(x, w):
    a = torch.sin(x)
    b = a + torch.zeros(8)
    return torch.relu(b @ w).view(64).neg()


def test_a_removed_addition_leaves_its_line_on_another_kernel(tmp_path, run_kerntrail):
    path = tmp_path / "c.ndjson"
    captured(path, adds_zeros, torch.randn(8, 8), torch.randn(8, 8))
    document = verified(run_kerntrail, path)
    (part,) = document["parts"]
    (rewrite,) = part["rewrites"]
    assert (rewrite["name"], rewrite["pass"], rewrite["at_birth"]) == ("sin", "constant_fold_uniform_value", False)
    assert "joint_graph.py" in rewrite["place"]
    kernels = {unit["name"] for unit in part["units"] if unit["stage"] == "kernel"}
    (loop,) = [name for name in kernels if name.startswith("cpp_fused_add")]
    assert (loop, "b = a + torch.zeros(8)") in lines(document, "nowhere")
    assert (loop, "a = torch.sin(x)") in lines(document, "missed")
    (mm,) = [unit for unit in part["units"] if unit["name"] == "extern_kernels.mm"]
    assert {node["name"]: node["witness"] for node in mm["nodes"]} == {"mm": "computes", "sin": "elsewhere"}
    # The lineage answers by the witness, and says what it left out.
    text = run_kerntrail("lineage", path, "--kernel", loop).stdout
    assert "a = torch.sin(x)" in text and "comes from" in text
    assert "sin" in text.split("written over")[1] and "constant_fold_uniform_value" in text
    assert "b = a + torch.zeros(8)" not in text.split("Provenance that was written over")[0]
    report = run_kerntrail("report", path).stdout
    assert "## Is it true?" in report and "extern_kernels.mm" in report.split("## Is it true?")[1]


def test_no_false_alarm_where_the_compiler_is_right(tmp_path, run_kerntrail):
    path = tmp_path / "c.ndjson"
    captured(path, lambda x: torch.relu(torch.sin(x) * 2 + 1).t(), torch.randn(8, 8))
    document = verified(run_kerntrail, path)
    assert not any(lines(document, word) for word in ("elsewhere", "nowhere", "missed"))
    assert not document["parts"][0]["rewrites"]
    for row in document["totals"]:
        assert row["lines"]["precision"] == row["lines"]["recall"] == row["nodes"]["precision"] == row["nodes"]["recall"] == 1


def test_forward_and_backward_have_operations_of_the_same_names(tmp_path, run_kerntrail):
    recipe, path = BY_NAME["mlp_training"], tmp_path / "c.ndjson"
    torch._dynamo.reset()
    with settings(recipe), kerntrail.capture(path, level="truth"):
        recipe.run(torch.compile)
    document = verified(run_kerntrail, path)
    (part,) = document["parts"]
    operations = [unit for unit in part["units"] if unit["stage"] == "ir_pre_pass"]
    assert len({unit["name"] for unit in operations}) < len(operations), "both directions have an op0"
    # An operation of one direction is never judged by the other's bodies: all that it is missed for is its own.
    for unit in operations:
        assert not [node for node in unit["nodes"] if not node["claimed"]], unit["name"]
        assert any(node["witness"] not in ("elsewhere", "nowhere") for node in unit["nodes"]), unit["name"]


def scaled(x):
    return torch.sin(x) * 2


def shifted(x):
    return torch.cos(x) + 1


def chooses(flag, x):
    out = torch.cond(flag, scaled, shifted, (torch.relu(x),))
    return out - 3


def test_a_cond_encloses_the_kernels_of_its_branches(tmp_path, run_kerntrail):
    path = tmp_path / "c.ndjson"
    captured(path, chooses, torch.tensor(True), torch.randn(64))
    document = verified(run_kerntrail, path)
    assert not lines(document, "nowhere")
    cond = "out = torch.cond(flag, scaled, shifted, (torch.relu(x),))"
    kernels = {name for name, code in lines(document, "encloses") if code == cond}
    assert {name.split("_")[-2] for name in kernels} <= {"sin", "cos", "relu"} and len(kernels) == 2, kernels
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text.strip() == cond)
    said = run_kerntrail("explain", path, f"test_verify.py:{line}").stdout
    assert all(kernel in said.partition("note:")[0] for kernel in kernels), said


def test_without_a_witness_it_refuses(tmp_path, run_kerntrail):
    path = tmp_path / "c.ndjson"
    captured(path, torch.sin, torch.randn(4), level="origins")
    done = run_kerntrail("verify", path)
    assert done.returncode == 3 and "--level truth" in done.stderr and not done.stdout


def test_the_golden_output_fits_and_damage_does_not():
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert SCHEMA.is_valid(document)
    for key in ("rows", "units", "rewrites", "unverified"):
        extra = copy.deepcopy(document)
        extra["parts"][0][key][0]["surprise"] = 1
        assert not SCHEMA.is_valid(extra), key
        del extra["parts"][0][key]
        assert not SCHEMA.is_valid(extra), key
