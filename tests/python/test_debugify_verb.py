"""`kerntrail debugify`: the passes of a whole program, judged; what is compiled is the same."""

import json
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
jsonschema = pytest.importorskip("jsonschema")

import torch._inductor.compile_fx as compile_fx  # noqa: E402
from recipes import RECIPES  # noqa: E402
from test_recipes import assert_same, run_compiled  # noqa: E402
from torch.fx.passes.graph_transform_observer import GraphTransformObserver  # noqa: E402

from kerntrail import _debugify, testing  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "schemas" / "debugify.schema.json").read_text(encoding="utf-8")))
BY_NAME = {recipe.name: recipe for recipe in RECIPES}
NO_OP = """
    import torch
    def f(x):
        return torch.sin(x) + torch.zeros(8)
    with torch.no_grad():
        print("sum", torch.compile(f)(torch.zeros(8)).sum().item())
"""
PASSES = """
    import torch
    aten = torch.ops.aten
    seen = []
    def sin_to_cos_of_less(graph):
        seen.append(graph)
        for target in (aten.sin.default, torch.sin):
            for node in graph.find_nodes(op="call_function", target=target):
                with graph.inserting_before(node):
                    new = graph.call_function(aten.tanh.default, node.args)  # the line
                new.meta.update({key: node.meta[key] for key in ("val", "example_value") if key in node.meta})
                node.replace_all_uses_with(new)
                graph.erase_node(node)
    def nothing(graph):
        pass
    def fails(graph):
        raise KeyError("mine")
    value = 3
"""


@pytest.fixture
def program(tmp_path):
    def write(text: str, name: str = "program.py") -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write


def judging(**options) -> _debugify.Judging:
    return _debugify.Judging({"stages": list(_debugify.STAGES), "pass": "", "allow": [], "fields": [], **options})


def document(text: str) -> dict:
    found = json.loads(text)
    errors = [f"{error.json_path}: {error.message}" for error in SCHEMA.iter_errors(found)]
    assert not errors, errors[0]
    for graph in found["graphs"]:
        for ledger in graph["passes"]:
            assert sum(ledger["fates"].values()) == ledger["ids"]
            assert sum(row.get("fault") is not None for row in ledger["entries"] + ledger["fabricated"]) == ledger["faults"]
    assert found["faults"] == sum(ledger["faults"] for graph in found["graphs"] for ledger in graph["passes"])
    assert found["unjudged"] == sum(len(graph["unjudged"]) for graph in found["graphs"])
    return found


def rows(found: dict) -> set[tuple[str, str, str, str]]:
    """(stage, pass, fate, node) of whatever did not survive as it was."""
    return {
        (graph["stage"], ledger["pass"], row.get("fate", "fabricated"), row["node"])
        for graph in found["graphs"]
        for ledger in graph["passes"]
        for row in ledger["entries"] + ledger["fabricated"]
    }


def patched() -> list[object]:
    owners = [compile_fx, compile_fx._InProcessFxCompile, GraphTransformObserver, torch.fx.Graph, torch.fx.Node]
    return [dict(owner.__dict__) for owner in owners]


# A joint graph and a backward, branches with a backward, random numbers, a node whose provenance is overwritten, in-place buffers.
@pytest.mark.parametrize(
    ("name", "provenance"),
    [pytest.param(name, level, marks=[] if (name, level) in {("mlp_training", 0), ("conditional_training", 1), ("custom_ops", 1)}
                  else [pytest.mark.long])
     for name in ("mlp_training", "conditional_training", "dropout", "custom_ops", "decode_step") for level in (0, 1)])
def test_what_is_compiled_is_the_same(name, provenance):
    recipe = BY_NAME[name]
    plain, before = run_compiled(recipe, provenance), patched()
    judge = judging()
    with judge.installed():
        seen = run_compiled(recipe, provenance)
    assert patched() == before
    assert_same(recipe, plain, seen)
    found = document(judge.report.json())
    assert found["unjudged"] == 0
    assert {graph["stage"] for graph in found["graphs"]} == {"pre_grad", "joint", "post_grad"}
    for graph in found["graphs"]:
        assert len(graph["passes"]) >= (5 if graph["stage"] != "post_grad" else 15), graph
        assert graph["compile"]
    directions = {graph.get("direction") for graph in found["graphs"] if graph["stage"] == "post_grad"}
    assert directions == recipe.directions
    assert {graph["path"] for graph in found["graphs"] if graph["stage"] == "post_grad"} == recipe.paths


def test_the_removal_of_a_no_op_is_found_on_stock_torch(run_kerntrail, program):
    done = run_kerntrail("debugify", "--stage", "joint", program(NO_OP))
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["sum 0.0", "joint, compile 0/0"]
    assert lines[2].split()[1:] == ["ids", *testing.FATES, "fabricated", "faults"]
    assert lines[3].split() == ["constant_fold_uniform_value", *"4 1 1 0 0 1 0 1 0 1".split()]
    # The line that writes, of torch's own source.
    (found,) = [line for line in lines if line.startswith("    overwritten sin: the node now names add, at torch/_inductor/")]
    path, line = found.rpartition(" at ")[2].rsplit(":", 1)
    source = Path(torch.__path__[0]).parent / path
    assert source.name == "joint_graph.py" and "meta.update(" in source.read_text().splitlines()[int(line) - 1]
    assert lines[-1].endswith(" passes over 1 graph: 1 fault")

    allowed = run_kerntrail("debugify", "--stage", "joint", "--allow", "overwritten:sin", "--format", "json", "-o", "l.json", program(NO_OP))
    assert allowed.returncode == 0 and allowed.stdout == "sum 0.0\n", allowed.stderr
    found = document((program(NO_OP).parent / "l.json").read_text())
    assert found["allow"] == ["overwritten:sin"] and found["stages"] == ["joint"]
    assert ("joint", "constant_fold_uniform_value", "overwritten", "sin") in rows(found)


@pytest.mark.parametrize("stage", ["pre_grad", "joint", "post_grad"])
def test_a_function_of_the_users_is_judged_at_its_stage(stage, tmp_path, monkeypatch, program):
    program(PASSES, f"passes_{stage}.py")
    monkeypatch.syspath_prepend(tmp_path)
    named = f"passes_{stage}:sin_to_cos_of_less"
    judge = judging(stages=[stage], **{"pass": named})
    torch._dynamo.reset()
    x = torch.randn(8)
    with judge.installed(), torch.no_grad(), torch._inductor.config.patch(force_disable_caches=True):
        out = torch.compile(lambda x: torch.sin(x) + torch.zeros(8))(x)
    assert torch.allclose(out, torch.tanh(x), atol=1e-6)  # what it does to the graph stays
    found = document(judge.report.json())
    assert found["pass"] == named and {ledger["pass"] for graph in found["graphs"] for ledger in graph["passes"]} == {named}
    text = (tmp_path / f"passes_{stage}.py").read_text().splitlines()
    line = next(n for n, row in enumerate(text, 1) if row.endswith("# the line"))
    (graph,) = found["graphs"]
    ((entry,), (node,)) = graph["passes"][0]["entries"], graph["passes"][0]["fabricated"]
    assert (entry["fate"], entry["fault"], entry["loc"]) == ("lost", "lost", f"{tmp_path}/passes_{stage}.py:{line}")
    assert node["node"] == entry["heirs"][0] and node["fault"] == "fabricated"


def test_a_pass_the_program_configured_is_named_and_runs_before(tmp_path, monkeypatch, program):
    program(PASSES, "passes_two.py")
    monkeypatch.syspath_prepend(tmp_path)
    import passes_two

    judge = judging(stages=["post_grad"], **{"pass": "passes_two:sin_to_cos_of_less"})
    torch._dynamo.reset()
    order = []
    with torch.no_grad(), torch._inductor.config.patch(force_disable_caches=True, post_grad_custom_post_pass=lambda graph: order.append(len(passes_two.seen))):
        for judged in (judge, judging(stages=["post_grad"])):
            with judged.installed():
                torch._dynamo.reset()
                torch.compile(lambda x: torch.sin(x))(torch.randn(8))
    assert order == [0, 1]
    assert any(ledger["pass"] == "post_grad_custom_post_pass / <lambda>"
               for graph in document(judged.report.json())["graphs"] for ledger in graph["passes"])


def test_what_can_not_be_judged_breaks_nothing(monkeypatch):
    recipe = BY_NAME["mlp"]
    plain = run_compiled(recipe, 0)
    for name in ("judge", "__init__"):
        with monkeypatch.context() as patch:
            original = getattr(testing._Watch, name)

            def fails(watch, *arguments, original=original, name=name):
                original(watch, *arguments)
                raise KeyError(name)

            patch.setattr(testing._Watch, name, fails)
            judge = judging()
            with judge.installed():
                seen = run_compiled(recipe, 0)
        assert_same(recipe, plain, seen)
        found = document(judge.report.json())
        assert found["unjudged"] and "KeyError" in found["graphs"][0]["unjudged"][0]
        assert "not judged: " in judge.report.text()


@pytest.mark.parametrize(
    ("arguments", "text", "status", "said"),
    [
        (["--stage", "joint"], "print('hello')", 5, "compiled nothing"),
        (["--stage", "pre_grad"], NO_OP, 0, ""),
        ([], "import sys; sys.exit(1)", 3, "exited with 1"),
        ([], "import os; os._exit(0)", 3, "before the ledgers were written"),
        (["--pass", "nowhere_at_all:f"], NO_OP, 2, "can't import nowhere_at_all"),
        (["--pass", "passes:missing"], NO_OP, 2, "passes has no missing"),
        (["--pass", "passes:value"], NO_OP, 2, "is no function"),
        (["--pass", "passes"], NO_OP, 2, "module:function"),
        (["--pass", "passes:nothing"], NO_OP, 0, ""),
        (["--pass", "passes:fails"], NO_OP, 3, "exited with 1"),
        (["--stage", "middle"], NO_OP, 2, "middle"),
        (["--allow", "losst"], NO_OP, 2, "losst"),
        (["--field", "stack"], NO_OP, 2, "stack"),
        (["--stag", "joint"], NO_OP, 2, "did you mean --stage?"),
    ],
)
def test_exit_statuses(run_kerntrail, program, arguments, text, status, said):
    program(PASSES, "passes.py")
    done = run_kerntrail("debugify", *arguments, program(text))
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stderr
    if status == 0:
        assert done.stdout.splitlines()[-1].endswith("provenance is preserved")


def test_no_program(run_kerntrail, tmp_path):
    assert run_kerntrail("debugify").returncode == 2
    done = run_kerntrail("debugify", "missing.py")
    assert done.returncode == 2 and "no such file" in done.stderr
    shown = run_kerntrail("debugify", "--help")
    assert shown.returncode == 0 and "Exit status: 0 no faults; 1 faults" in shown.stdout
