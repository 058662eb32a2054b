"""Level truth on the Spyre-format back end: which node each OpSpec and each bundle file is for, found by tags, against the
debug handle that each carries, which is the compiler's claim."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch._inductor.config as inductor  # noqa: E402
from capture_view import CaptureView  # noqa: E402
from spyre_models import SPYRE_MODELS, SpyreModel  # noqa: E402
from witness_view import read_use  # noqa: E402

from kerntrail._capture import open_capture  # noqa: E402
from kerntrail.spyre import ir_passes  # noqa: E402

STAGES = ("op_spec", "superdsc")
VIEWS = {"aten.permute.default"}
BY_NAME = {model.name: model for model in SPYRE_MODELS}


@pytest.fixture(autouse=True)
def fresh_torch(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
    torch._dynamo.reset()
    with inductor.patch({"force_disable_caches": True}):
        yield
    torch._dynamo.reset()


@dataclass
class Compared:
    """One OpSpec or file: what its handle says and what the tags say, by names of nodes."""

    stage: str
    name: str
    claimed: set[str] = field(default_factory=set)
    witnessed: set[str] = field(default_factory=set)
    bodies: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    made: list[dict[str, Any]] = field(default_factory=list)
    sourceless: int = 0  # operations that have neither a node nor a line of the compiler
    lines: tuple[set[int], set[int]] = (set(), set())  # of the handle; of the nodes that the tags name

    def reasons(self, targets: dict[str, str]) -> list[str]:
        """Why the two differ, where they do; "?" where nothing explains it."""
        out = []
        for node in sorted(self.claimed - self.witnessed):
            out.append("a view is a way of indexing" if targets[node] in VIEWS else f"? {node} is only claimed")
        out += [f"? {node} is not claimed" for node in sorted(self.witnessed - self.claimed)]
        if self.lines[0] and self.lines[1] and not self.lines[0] <= self.lines[1]:
            out.append(f"? line {self.lines[0]} is claimed, {self.lines[1]} witnessed")
        return out


def line_of(stack: str | None) -> set[int]:
    return set(map(int, re.findall(r'File ".*", line (\d+)', stack or "")[-1:]))


def compare(view: CaptureView) -> tuple[list[Compared], dict[str, str]]:
    nodes = {row["name"]: row for row in view.at("fx_post_grad")}
    names = {unit: view.value(attrs["name"]) for snapshot in view.snapshots
             for unit, attrs in snapshot["units"].items() if "name" in attrs}
    out = []
    for snapshot in view.snapshots:
        for unit, attrs in snapshot["units"].items() if snapshot["stage"] in STAGES else ():
            one, handle, record = Compared(snapshot["stage"], names[unit]), view.value(attrs["debug_handle"]), attrs["witness"]
            if handle:
                one.claimed = set(handle["ir_chain"][:-1])
                one.lines = ({handle["source"]["start_line"]} if handle["source"] else set(), set())
            refs = [names[ref] for ref in record.get("refs", [])]
            one.witnessed = set(refs)
            for entry in view.value(record) or ():
                one.bodies.update(read_use(entry, refs, [], "", "").bodies)
                ops = [op for body in entry["bodies"] for op in body["ops"]]
                one.made += [op["made"] for op in ops if "made" in op]
                one.sourceless += len([op for op in ops if "made" not in op and "unit" not in op])
            for name in refs:
                one.lines[1].update(line_of(nodes[name].get("stack_trace")))
            out.append(one)
    return out, {name: row["target"] for name, row in nodes.items()}


def captured(model: SpyreModel, path: Path, **options: Any) -> CaptureView:
    function, inputs = model.build()
    capture = open_capture(path, level="truth", replace=True)
    try:
        with torch.no_grad():
            result = torch.compile(function, backend="kerntrail_spyre", options={**model.options, **options})(*inputs)
    finally:
        capture.close()
    assert not [hook for hook in capture.hooks if hook["errors"]]
    with torch.no_grad():
        torch.testing.assert_close(result, function(*inputs), rtol=2e-2, atol=2e-2)
    view = CaptureView(path)
    assert view.at("op_spec") and not view.notes("fallback-stock")
    return view


@pytest.mark.parametrize("model", SPYRE_MODELS, ids=lambda model: model.name)
def test_handles_say_what_the_tags_say(model, tmp_path, run_kerntrail):
    view = captured(model, tmp_path / "c.ndjson")
    assert run_kerntrail("validate", tmp_path / "c.ndjson").returncode == 0
    rows, targets = compare(view)
    reasons = [reason for row in rows for reason in row.reasons(targets)]
    print(f"{model.name}: {len(rows)} OpSpecs and files, {sum(not row.reasons(targets) for row in rows)} say the same;",
          {reason: reasons.count(reason) for reason in set(reasons)})
    assert len(rows) == len(view.at("op_spec")) + len(view.at("superdsc")) and len(view.at("op_spec")) == len(view.at("superdsc"))
    assert not [reason for reason in reasons if reason.startswith("?")]
    for row in rows:
        assert row.bodies and row.sourceless == 0, row
        # What has no handle is the compiler's, and a line of a pass of it is named.
        assert row.claimed or (row.made and not row.witnessed), row
        assert all(made["file"].startswith("kerntrail/spyre/") and made["function"] for made in row.made)
    # A file has the witness of the OpSpec that it is written for.
    specs, files = ([row for row in rows if row.stage == stage] for stage in STAGES)
    assert [(row.witnessed, row.bodies) for row in specs] == [(row.witnessed, row.bodies) for row in files]


def test_operations_are_told_one_by_one(tmp_path):
    rows, _ = compare(captured(BY_NAME["gated"], tmp_path / "c.ndjson"))
    said = [ops for row in rows if row.stage == "op_spec" for ops in row.bodies.values()]
    # A device operation that stands for a formula of several; a product, whose body is its two loads.
    silu = next(ops for ops in said if ("sigmoid", "silu") in ops)
    assert set(silu) == {(op, "silu") for op in ("load", "sigmoid", "mul", "store")}
    products = [ops for ops in said if any(op == "reduction" for op, _ in ops)]
    assert len(products) == 3
    assert all([op for op, _ in ops] == ["load", "load", "reduction", "store_reduction"] and len({n for _, n in ops}) == 1
               for ops in products)


def test_parts_of_a_split_body_keep_their_node(tmp_path):
    view = captured(BY_NAME["shared"], tmp_path / "c.ndjson")
    rows, _ = compare(view)
    assert [p for p in view.passes(name="split_multi_ops") if p["created"]], "nothing was split"
    parts = [ops for row in rows if row.stage == "op_spec" for ops in row.bodies.values() if any(node == "add" for _, node in ops)]
    assert len(parts) == 2
    # The first scales into a buffer that only the split knows; the second reads that and adds.
    assert {op for op, node in parts[0] if node == "add"} == {"load", "constant", "mul"}
    assert parts[0][-1] == ("store", "_split")
    assert {op for op, node in parts[1] if node == "add"} == {"load", "add", "store"}


def test_what_serves_several_nodes_says_so(tmp_path):
    view = captured(BY_NAME["shared"], tmp_path / "c.ndjson")
    rows, _ = compare(view)
    assert [p for p in view.passes(name="dedup_buffers") if p["erased"]], "nothing was merged"
    (row,) = [row for row in rows if row.stage == "op_spec" and len(row.witnessed) > 1]
    assert row.witnessed == row.claimed
    for snapshot in view.snapshots:
        for attrs in snapshot["units"].values() if snapshot["stage"] == "op_spec" else ():
            ops = [op for entry in view.value(attrs["witness"]) for body in entry["bodies"] for op in body["ops"]]
            several = len(attrs["witness"]["refs"]) > 1
            assert all(bool(op.get("also")) == several for op in ops if "unit" in op)


def swap(graph: Any) -> None:
    """A pass with a fault: it gives two operations each other's origins."""
    first, second = [op for op in graph.operations if len(op.origins) == 1][:2]
    first.origins, second.origins = second.origins, first.origins
    first.origin_node, second.origin_node = second.origin_node, first.origin_node


@pytest.mark.parametrize("name", ["mlp_full", "gated", "choices"])
def test_exchanged_origins_show(name, tmp_path):
    view = captured(BY_NAME[name], tmp_path / "c.ndjson", pre_scheduling_passes=[swap])
    rows, targets = compare(view)
    for stage in STAGES:
        wrong = [row for row in rows if row.stage == stage and any(reason.startswith("?") for reason in row.reasons(targets))]
        assert len(wrong) == 2 and wrong[0].claimed == wrong[1].witnessed and wrong[1].claimed == wrong[0].witnessed


def test_forgotten_and_borrowed_origins_show(tmp_path):
    def forget(graph: Any) -> None:
        graph.operations[1].origins.clear()
        graph.operations[1].origin_node = None

    def borrow(graph: Any) -> None:
        graph.operations[2].origins.update(graph.operations[0].origins)

    view = captured(BY_NAME["mlp_full"], tmp_path / "c.ndjson", pre_scheduling_passes=[forget, borrow])
    rows, targets = compare(view)
    wrong = [(row.name, *row.reasons(targets)) for row in rows if row.stage == "op_spec" and row.reasons(targets)]
    assert ("op1", "? add_tensor_1 is not claimed") in wrong
    assert [row for row in wrong if row[0] == "op2" and "? mm_default_1 is only claimed" in row]


def test_bodies_that_a_pass_rebuilds_keep_their_tags(tmp_path):
    """A user's pass puts a new closure around the body of each operation."""
    rebuilt = []

    def rebuild(graph: Any) -> None:
        for operation in list(graph.operations):
            rebuilt.append(ir_passes.replace_body(graph, operation, ir_passes._renamed(operation.data, {}), "rebuild", None))

    rows, targets = compare(captured(BY_NAME["gated"], tmp_path / "c.ndjson", pre_scheduling_passes=[rebuild]))
    assert len(rebuilt) * 2 == len(rows)
    assert not [reason for row in rows for reason in row.reasons(targets) if reason.startswith("?")]
    assert not any(row.sourceless for row in rows)


@pytest.mark.parametrize("when", ["before", "after"])
def test_hooks_that_throw_change_nothing(when, tmp_path, run_kerntrail):
    labels = [f"kerntrail.spyre.{path}" for path in (
        "spyre_kernel.OpsRecorder.load", "spyre_kernel.OpsRecorder.constant", "spyre_kernel.OpsRecorder._default",
        "ir_passes._again", "ir_passes._with_body", "ir_passes._insert_before", "ir_passes._redirect")]
    function, inputs = BY_NAME["shared"].build()
    capture = open_capture(tmp_path / "c.ndjson", level="truth", fail=[(label, when) for label in labels])
    try:
        with torch.no_grad():
            result = torch.compile(function, backend="kerntrail_spyre")(*inputs)
    finally:
        capture.close()
    torch.testing.assert_close(result, function(*inputs), rtol=1e-5, atol=1e-5)
    hooks = {hook["label"]: hook for hook in capture.hooks if hook["label"] in labels}
    assert set(hooks) == set(labels) and all(hook["restored"] for hook in hooks.values())
    assert all(hook["errors"] for hook in hooks.values() if hook["fired"]) and sum(hook["fired"] for hook in hooks.values()) >= 6
    assert run_kerntrail("validate", tmp_path / "c.ndjson").returncode == 0


def test_verify_judges_both_stages(tmp_path, run_kerntrail):
    """`kerntrail verify` reads the witness of OpSpecs and files as it reads that of kernels."""

    def contradicted(**options: Any) -> dict[str, int]:
        captured(BY_NAME["mlp_full"], tmp_path / "c.ndjson", **options)
        told = run_kerntrail("verify", tmp_path / "c.ndjson", "--format", "json")
        assert told.stdout, told.stderr
        units = [unit for part in json.loads(told.stdout)["parts"] for unit in part["units"] if unit["stage"] in STAGES]
        assert {unit["stage"] for unit in units} == set(STAGES)
        return {stage: sum(any(line["claimed"] and line["witness"] in ("elsewhere", "nowhere") for line in unit["lines"])
                           for unit in units if unit["stage"] == stage and unit["evidence"] == "debug_handle") for stage in STAGES}

    assert contradicted() == {stage: 0 for stage in STAGES}
    assert contradicted(pre_scheduling_passes=[swap]) == {stage: 2 for stage in STAGES}
