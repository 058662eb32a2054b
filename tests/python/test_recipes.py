"""Every recipe, live: what is compiled is the same with a capture and without, and the capture shows all of it."""

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from unittest import mock

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from capture_view import CaptureView  # noqa: E402
from model_recipes import MODELS  # noqa: E402
from recipes import RECIPES, Recipe, eager, settings  # noqa: E402
from torch._inductor.graph import GraphLowering  # noqa: E402
from witness_view import Share, uses  # noqa: E402

from kerntrail._capture import LEVELS, open_capture  # noqa: E402

PROVENANCE = (0, 1, 2)
PAIRS = [(level, provenance) for level in LEVELS for provenance in PROVENANCE]
# These are captured twice: every kind of compile, one of each.
TWICE = {"mlp_training", "cnn_frozen", "conditional_training", "graph_break_training", "custom_ops", "dynamic_sizes", "twins"}
ALL = RECIPES + MODELS
CAPTURED = [recipe for recipe in ALL if not recipe.skip]


@dataclass
class Outcome:
    outputs: list[torch.Tensor]
    code: list[str]


def normalised(code: str) -> str:
    """Without what counts up or differs from compile to compile of one process with no capture anywhere: torch's number
    of the graph, its numbers of kernels in a lazy backward, the addresses of frozen tensors in comments."""
    code = re.sub(r"AOT ID: \['\d+_", "AOT ID: ['N_", code)
    code = re.sub(r"(?m)^(_frozen_param\d+ = None  # .*) [0-9a-f]+$", r"\1 ADDRESS", code)
    numbers: dict[str, int] = {}
    return re.sub(r"(?m)^(\s*(?:#|//) \[Provenance debug handles\] .*:)(\d+)$",
                  lambda match: match[1] + str(numbers.setdefault(match[2], len(numbers))), code)


def run_compiled(recipe: Recipe, provenance: int) -> Outcome:
    torch._dynamo.reset()
    code: list[str] = []
    level = {"trace.provenance_tracking_level": provenance}
    with settings(recipe, **level), mock.patch.object(GraphLowering, "save_output_code", code.append):
        outputs = [output.detach().clone() for output in recipe.run(torch.compile)]
    torch._dynamo.reset()
    return Outcome(outputs, [normalised(text) for text in code])


def run_captured(recipe: Recipe, level: str, provenance: int, path: Path) -> Outcome:
    """The same under a capture, which must put every attribute back as it was."""
    before = hooked_attributes()
    capture = open_capture(path, level=level)
    try:
        outcome = run_compiled(recipe, provenance)
        hooks = [hook for hook in capture.hooks if hook["state"] == "installed"]
    finally:
        capture.close()
    assert {hook["attribute"] for hook in hooks} <= set(before)
    assert not [name for name, value in hooked_attributes().items() if value is not before[name]], "not put back"
    assert not [hook for hook in capture.hooks if hook["errors"]]
    return outcome


_attributes: dict[str, tuple[object, str]] = {}


def hooked_attributes() -> dict[str, object]:
    """What stands, right now, at each attribute that the hook table names."""
    return {path: owner.__dict__.get(name) for path, (owner, name) in _attributes.items()}


@pytest.fixture(scope="module", autouse=True)
def hook_table(tmp_path_factory):
    capture = open_capture(tmp_path_factory.mktemp("hooks") / "c.ndjson", level=LEVELS[-1])
    capture.close()
    for hook in capture.hooks:
        if hook["state"] == "installed":
            _attributes[hook["attribute"]] = resolve(hook["attribute"])
    assert not [path for path, value in hooked_attributes().items() if type(value).__module__.startswith("kerntrail")]
    yield
    _attributes.clear()


def resolve(path: str) -> tuple[object, str]:
    parts = path.split(".")
    for i in range(len(parts) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(parts[:i]))
        except ImportError:
            continue
        for part in parts[i:-1]:
            owner = getattr(owner, part)
        return owner, parts[-1]
    raise AssertionError(path)


def assert_same(recipe: Recipe, plain: Outcome, seen: Outcome) -> None:
    assert len(seen.code) == len(plain.code)
    for a, b in zip(seen.code, plain.code, strict=True):
        assert a == b, "\n".join(unified_diff(b.split("\n"), a.split("\n"), "without", "with", lineterm="", n=1))
    assert len(seen.outputs) == len(plain.outputs)
    for a, b in zip(seen.outputs, plain.outputs, strict=True):
        assert torch.equal(a, b)


def check_capture(recipe: Recipe, level: str, path: Path, run_kerntrail: Callable, shares: list) -> CaptureView:
    """What must hold of every capture of a recipe."""
    validated = run_kerntrail("validate", path)
    assert validated.returncode == 0 and "sound" in validated.stdout, validated.stdout + validated.stderr
    view = CaptureView(path)
    assert view.end["status"] == "complete"
    # What torch does is said, and no trouble of the capture: results that nobody reads (the statistics of an
    # attention) are in no group, and torch does not register every fallback.
    facts = {"operation-not-scheduled", "kernel-not-registered", "kernel-not-called"}
    said = (note["code"] for note in view.of("note") if note["code"] not in facts)
    assert counts(said) == recipe.notes, [note["text"] for note in view.of("note")]
    check_keys(recipe, view)
    assert not [unit for unit in view.units.values() if "outside" in unit.get("seen_only_as", "")]
    if level == "truth":
        check_witness(view)
    if level != "borders":
        leading, orphans = view.leads_back()
        shares.append((recipe.name, level, len(leading), len(leading) + len(orphans)))
        rows = {row["unit"]: row for compile_id in view.compiles for row in view.at("fx_aten", compile_id)}
        assert sorted({rows[unit]["name"] for unit in orphans}) == sorted(recipe.orphans)
    return view


def check_witness(view: CaptureView) -> None:
    """Every operation and every line has one node or one line of the compiler."""
    share = Share()
    for use in uses(view):
        share.add(use)
    assert not share.without and not share.contradictions


def counts(items) -> dict[str, int]:
    out: dict[str, int] = {}
    for item in items:
        out[item] = out.get(item, 0) + 1
    return out


def check_keys(recipe: Recipe, view: CaptureView) -> None:
    """Everything is keyed by compile (torch's id and attempt), direction and path."""
    assert len(view.compiles) == recipe.compiles
    ids = [(record.get("torch_id", ""), record.get("attempt", 0)) for record in view.compiles.values()]
    assert len(set(ids)) == len(ids) or recipe.repeats_ids
    lowered = [view.graphs[s["graph"]] for s in view.snapshots if s["stage"] in ("fx_aten", "fx_post_grad", "ir_pre_pass")]
    assert {graph["direction"] for graph in lowered} == recipe.directions
    assert {graph.get("path", "") for graph in lowered} == recipe.paths
    for compile_id in view.compiles:
        at = [s for s in view.snapshots if view.compile_of(s) == compile_id]
        lowered = {view.graphs[s["graph"]]["direction"] for s in at if s["stage"] == "fx_aten"}
        assert lowered == recipe.directions or recipe.name == "compiled_autograd"
        for direction in lowered:
            stages = {s["stage"] for s in at if view.graphs[s["graph"]]["direction"] == direction}
            assert {"fx_aten", "fx_post_grad", "ir_pre_pass"} <= stages, (compile_id, direction, stages)
    seen = [(s["stage"], s["graph"]) for s in view.snapshots]
    assert len(set(seen)) == len(seen), "a graph is shown once at a stage"
    for stage in ("fx_aten", "fx_post_grad"):
        keys = [(view.compile_of(s), view.graphs[s["graph"]]["direction"], view.graphs[s["graph"]].get("path", ""))
                for s in view.snapshots if s["stage"] == stage]
        assert len(set(keys)) == len(keys), f"two graphs of {stage} can't be told apart: {keys}"


def require_package(recipe: Recipe) -> None:
    if recipe.needs:
        pytest.importorskip(recipe.needs, reason=f"`make test-long` installs {recipe.needs}")


def parameters(recipes: list[Recipe]) -> list:
    return [pytest.param(recipe, id=recipe.name, marks=[pytest.mark.long] if recipe.long else []) for recipe in recipes]


@pytest.mark.parametrize("recipe", parameters(ALL))
def test_recipe(recipe, tmp_path, run_kerntrail, shares):
    """Once at a level and a provenance level of its own: over all recipes, every pair occurs."""
    if recipe.skip:
        pytest.skip(recipe.skip)
    require_package(recipe)
    level, provenance = PAIRS[CAPTURED.index(recipe) % len(PAIRS)]
    with settings(recipe):
        expected = recipe.run(eager)
    plain = run_compiled(recipe, provenance)
    assert len(plain.outputs) == len(expected)
    for a, b in zip(plain.outputs, expected, strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=recipe.tolerance, atol=recipe.tolerance)
    for watched in [level] if level != "borders" else [level, "passes"]:
        path = tmp_path / f"{watched}.ndjson"
        assert_same(recipe, plain, run_captured(recipe, watched, provenance, path))
        check_capture(recipe, watched, path, run_kerntrail, shares)
    if recipe.name in TWICE:
        # At other provenance levels torch numbers the kernels of a lazy backward on from compile to compile.
        for name in ("once.ndjson", "again.ndjson"):
            run_captured(recipe, watched, 0, tmp_path / name)
        assert (tmp_path / "again.ndjson").read_bytes() == (tmp_path / "once.ndjson").read_bytes()


def test_every_pair_of_levels_occurs():
    often = [recipe for recipe in CAPTURED if not recipe.long]
    assert {PAIRS[CAPTURED.index(recipe) % len(PAIRS)] for recipe in often} == set(PAIRS)
    assert TWICE <= {recipe.name for recipe in often}
    names = [recipe.name for recipe in ALL]
    assert len(set(names)) == len(names)


@pytest.mark.long
@pytest.mark.parametrize("recipe", parameters(CAPTURED))
def test_no_level_changes_the_code(recipe, tmp_path, run_kerntrail, shares):
    """The full product of levels and provenance levels."""
    require_package(recipe)
    for provenance in PROVENANCE:
        plain = run_compiled(recipe, provenance)
        for level in LEVELS:
            path = tmp_path / f"{provenance}_{level}.ndjson"
            assert_same(recipe, plain, run_captured(recipe, level, provenance, path))
            check_capture(recipe, level, path, run_kerntrail, shares)
