"""The dynamic witness: links that are claimed or witnessed must be links of the data flow. Disturbing what a source line
produces changes the result of each OpSpec that is said to come from it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch._inductor.config as inductor  # noqa: E402
from capture_view import CaptureView  # noqa: E402
from reachability import Reachability, reachability, record  # noqa: E402
from spyre_models import SPYRE_MODELS, SpyreModel  # noqa: E402
from test_witness_spyre import Compared, compare, swap  # noqa: E402

from kerntrail._capture import open_capture  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_torch(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
    torch._dynamo.reset()
    with inductor.patch({"force_disable_caches": True}):
        yield
    torch._dynamo.reset()


def observed(model: SpyreModel, path, **options: Any) -> tuple[Reachability, list[Compared]]:
    function, inputs = model.build()

    def run() -> None:
        with torch.no_grad():
            torch.compile(function, backend="kerntrail_spyre", options={**model.options, **options})(*inputs)

    capture = open_capture(path, level="truth", replace=True)
    try:
        recorded = record(run)
    finally:
        capture.close()
    rows, _ = compare(CaptureView(path))
    specs = [row for row in rows if row.stage == "op_spec"]
    assert len(specs) == len(recorded.specs)
    return reachability(recorded, "spyre_models.py"), specs


def links(found: Reachability, names: list[set[str]]) -> set[tuple[int, int]]:
    """(OpSpec, line) that the nodes of each OpSpec have."""
    return {(i, found.line_of_node[name]) for i, nodes in enumerate(names) for name in nodes if name in found.line_of_node}


def unreached(found: Reachability, pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(spec, line) for spec, line in pairs if not found.reaches(line, spec)}


# Under rule "seed" most nodes have no line.
@pytest.mark.parametrize("model", [model for model in SPYRE_MODELS if model.name != "mlp_seed"], ids=lambda model: model.name)
def test_every_link_is_one_of_the_data_flow(model, tmp_path):
    found, specs = observed(model, tmp_path / "c.ndjson", metadata="full")
    claimed, witnessed = links(found, [row.claimed for row in specs]), links(found, [row.witnessed for row in specs])
    reached = {(spec, line) for spec in range(len(specs)) for line in found.lines if found.reaches(line, spec)}
    print(f"{model.name}: {len(specs)} OpSpecs, {len(found.lines)} lines disturbed; {len(reached)} of "
          f"{len(specs) * len(found.lines)} pairs reached ({sum(len(r.by_executor) for r in found.lines.values())} by the executor), "
          f"{len(claimed)} claimed, {len(witnessed)} witnessed, outside: {unreached(found, claimed | witnessed)}")
    assert found.lines and claimed and witnessed
    assert unreached(found, claimed) == unreached(found, witnessed) == set()
    # It can fail: not every line reaches every OpSpec.
    assert len(reached) < len(specs) * len(found.lines)
    # What computes a node's value is reached by its line, and each line reaches something.
    assert all(reached_by.all() for reached_by in found.lines.values())


def test_a_line_reaches_what_reads_it_through_the_executor(tmp_path):
    found, specs = observed(SPYRE_MODELS[1], tmp_path / "c.ndjson", metadata="full")
    first, second, third = sorted(found.lines)
    assert found.lines[first].all() == {0, 1, 2, 3, 4}
    assert found.lines[second].all() == {2, 3, 4} and found.lines[second].by_executor == {3, 4}
    assert found.lines[third].all() == {3, 4}


@pytest.mark.parametrize("name", ["mlp_full", "gated"])
def test_exchanged_claims_leave_the_data_flow(name, tmp_path):
    """Of two operations that claim each other's nodes, the earlier claims a line that it does not depend on."""
    (model,) = [model for model in SPYRE_MODELS if model.name == name]

    def exchange(graph: Any) -> None:
        """The first operation of one origin, and the last."""
        first, *_, last = [op for op in graph.operations if len(op.origins) == 1]
        first.origins, last.origins = last.origins, first.origins
        first.origin_node, last.origin_node = last.origin_node, first.origin_node

    found, specs = observed(model, tmp_path / "c.ndjson", metadata="full", pre_scheduling_passes=[exchange])
    wrong = unreached(found, links(found, [row.claimed for row in specs]))
    assert len(wrong) == 1
    assert unreached(found, links(found, [row.witnessed for row in specs])) == set()


def test_neighbours_can_be_exchanged_within_the_data_flow(tmp_path):
    """What it can't see: a claim of something that the operation does depend on. The tags see it."""
    found, specs = observed(SPYRE_MODELS[1], tmp_path / "c.ndjson", metadata="full", pre_scheduling_passes=[swap])
    claims = links(found, [row.claimed for row in specs])
    assert any(row.claimed != row.witnessed for row in specs) and len(claims) > len(unreached(found, claims))
