"""Losses planted on purpose: whatever is dropped, emptied, swapped, overwritten or forgotten, in whichever pass, `drops`
must name that pass, that field and those units, and nothing else. Precision and recall are printed and must be 1."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
from torch import nn
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.pattern_matcher import CallFunction, KeywordArg, PatternMatcherPass, register_graph_pattern
from torch.fx import Graph, Node

import kerntrail

FX_FIELDS = ("stack_trace", "nn_module_stack", "source_fn_stack", "original_aten", "from_node")
PRE_GRAD_FIELDS = FX_FIELDS[:3]
KINDS = ("drop", "drop the value", "swap", "neighbour", "forget on create")
EMPTY = {"stack_trace": "", "nn_module_stack": {}, "source_fn_stack": [], "original_aten": None, "from_node": []}

Finding = tuple[str, str, str]  # pass, field, unit


class Step(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class Chain(nn.Module):
    """Five steps, each on a line and in a module of its own, so that no two nodes share any provenance value."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = Step(torch.sin), Step(torch.cos), Step(torch.tanh)
        self.d, self.e = Step(torch.exp), Step(torch.sigmoid)

    def forward(self, x):
        x = self.a(x)
        x = self.b(x)
        x = self.c(x)
        x = self.d(x)
        x = self.e(x)
        return x


def name_of(node: Node) -> str:
    return str(node.target).rsplit(".", 2)[-2] if str(node.target).startswith("aten.") else str(node.target).split()[2]


def steps_of(graph: Graph) -> dict[str, Node]:
    """sin, cos, ... -> its node; in training, the forward's (the backward of sin is a cosine too)."""
    return {name_of(node): node for node in reversed(graph.nodes) if node.op == "call_function"}


def replaced_by_new(graph: Graph, node: Node, field: str) -> Node:
    """A node like `node` in its place, whose maker forgot one field."""
    with graph.inserting_before(node):
        new = graph.call_function(node.target, node.args, node.kwargs)
    new.meta = {key: value for key, value in node.meta.items() if key != field}
    node.replace_all_uses_with(new)
    graph.erase_node(node)
    return new


def plant(graph: Graph, kind: str, field: str) -> set[str]:
    """Damages the graph; names of the nodes that are wrong now."""
    steps = steps_of(graph)
    node, other = steps["tanh"], steps["cos"]
    if kind == "forget on create":
        return {replaced_by_new(graph, node, field).name}
    if kind == "drop":
        del node.meta[field]
    elif kind == "drop the value":
        node.meta[field] = EMPTY[field]
    elif kind == "neighbour":
        node.meta[field] = other.meta[field]
    else:
        node.meta[field], other.meta[field] = other.meta[field], node.meta[field]
        return {node.name, other.name}
    return {node.name}


class Planting(CustomGraphPass):
    """A user's pass that does one thing wrong."""

    def __init__(self, kind: str, field: str) -> None:
        self.kind, self.field = kind, field
        self.damaged: set[str] = set()

    def __call__(self, graph: Graph) -> None:
        self.damaged |= plant(graph, self.kind, self.field)

    def uuid(self) -> str:
        return f"planted {self.kind} {self.field}"


class PlantingPattern(Planting):
    """The same through the pattern matcher: tanh of cos is written anew as two nodes, the damage is in what is new."""

    def __call__(self, graph: Graph) -> None:
        steps = steps_of(graph)
        outside = steps["sigmoid"]
        passes = PatternMatcherPass(pass_name="planted_pattern")

        @register_graph_pattern(
            CallFunction(torch.ops.aten.tanh.default, CallFunction(torch.ops.aten.cos.default, KeywordArg("x"))), pass_dict=passes)
        def rewrite(match, x):
            inner, outer = match.nodes[0], match.nodes[-1]
            with graph.inserting_before(outer):
                new_inner = graph.call_function(torch.ops.aten.cos.default, (x,))
                new_outer = graph.call_function(torch.ops.aten.tanh.default, (new_inner,))
            new_inner.meta, new_outer.meta = dict(inner.meta), dict(outer.meta)
            if self.kind in ("drop", "forget on create"):
                del new_outer.meta[self.field]
            elif self.kind == "drop the value":
                new_outer.meta[self.field] = EMPTY[self.field]
            else:
                new_outer.meta[self.field] = outside.meta[self.field]
                if self.kind == "swap":
                    outside.meta[self.field] = outer.meta[self.field]
                    self.damaged.add(outside.name)
            self.damaged.add(new_outer.name)
            outer.replace_all_uses_with(new_outer)
            match.erase_nodes()

        assert passes.apply(graph) == 1


def reported(run_kerntrail: Any, capture: Path) -> set[Finding]:
    """All that `drops` complains of: lost fields, wrong values, broken rules."""
    done = run_kerntrail("drops", capture, "--format", "json")
    assert done.returncode == 0, done.stderr
    out: set[Finding] = set()
    for part in json.loads(done.stdout)["parts"]:
        sites = part["sites"]
        out |= {(sites[loss["site"]]["title"], loss["field"], loss["name"]) for loss in part["losses"]}
        out |= {(sites[mark["site"]]["title"], mark["field"], mark["name"]) for mark in part["marks"] if mark["quality"] == "overwritten"}
    return out


class Score:
    """Adds up over the cases of a test; prints what a person wants to see."""

    def __init__(self) -> None:
        self.right = self.wrong = self.missed = 0
        self.complaints: list[str] = []

    def add(self, case: str, expected: set[Finding], got: set[Finding]) -> None:
        self.right += len(expected & got)
        self.wrong += len(got - expected)
        self.missed += len(expected - got)
        if got != expected:
            self.complaints.append(f"{case}: missed {sorted(expected - got)}, wrong {sorted(got - expected)}")

    def check(self, title: str) -> None:
        precision = self.right / max(1, self.right + self.wrong)
        recall = self.right / max(1, self.right + self.missed)
        print(f"\nplanted in {title}: {self.right + self.missed} losses, precision {precision:.3f}, recall {recall:.3f}")
        assert not self.complaints, "\n".join(self.complaints)
        assert self.right > 0 and precision == recall == 1


@pytest.fixture(scope="module", autouse=True)
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every compile is a real one, but equal C++ kernels are built once."""
    kept = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path_factory.mktemp("inductor"))
    with inductor_config.patch(fx_graph_cache=False, force_disable_caches=False), functorch_config.patch(enable_autograd_cache=False):
        yield
    os.environ.pop("TORCHINDUCTOR_CACHE_DIR")
    if kept is not None:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = kept


def compiled(path: Path, patches: dict[str, Any], **options: Any) -> None:
    torch._dynamo.reset()
    with inductor_config.patch(patches), kerntrail.capture(path, replace=True), torch.no_grad():
        torch.compile(Chain().eval(), **options)(torch.linspace(-1, 1, 8))


def test_an_honest_compile_has_no_losses(tmp_path, run_kerntrail):
    compiled(tmp_path / "c.ndjson", {})
    assert reported(run_kerntrail, tmp_path / "c.ndjson") == set()


@pytest.mark.parametrize(("slot", "fields", "planting", "title"), [
    ("pre_grad_custom_pass", PRE_GRAD_FIELDS, Planting, "pre_grad_custom_pass / Planting"),
    ("post_grad_custom_pre_pass", FX_FIELDS, Planting, "post_grad_custom_pre_pass / Planting"),
    ("post_grad_custom_post_pass", FX_FIELDS, Planting, "post_grad_custom_post_pass / Planting"),
    ("post_grad_custom_post_pass", FX_FIELDS, PlantingPattern, "post_grad_custom_post_pass / PlantingPattern / planted_pattern"),
])
def test_planted_in_fx_passes(tmp_path, run_kerntrail, slot, fields, planting, title):
    score = Score()
    for field in fields:
        for kind in KINDS:
            damage = planting(kind, field)
            compiled(tmp_path / "c.ndjson", {slot: damage})
            assert damage.damaged, f"nothing was planted: {kind} {field}"
            score.add(f"{kind}, {field}", {(title, field, name) for name in damage.damaged}, reported(run_kerntrail, tmp_path / "c.ndjson"))
    score.check(title)


# -- in training: a joint graph, cut and copied into a forward and a backward graph -----------------------------------

# Fields that a backward node has of its own; what belongs to its forward node it has under other names.
OWN_OF_BACKWARD = ("stack_trace", "original_aten")
JOINT_FIELDS = ("stack_trace", "nn_module_stack", "original_aten", "from_node")


class PlantingOnce(Planting):
    """Post-grad passes run on the forward and on the backward graph: the damage is in the one that is asked for."""

    def __init__(self, kind: str, field: str, backward: bool = False) -> None:
        super().__init__(kind, field)
        self.backward = backward

    def __call__(self, graph: Graph) -> None:
        if any("autograd_backward" in node.meta for node in graph.nodes) == self.backward:
            super().__call__(graph)


def trained(path: Path, patches: dict[str, Any]) -> None:
    torch._dynamo.reset()
    with inductor_config.patch(patches), kerntrail.capture(path, replace=True):
        torch.compile(Chain().train())(torch.linspace(-1, 1, 8, requires_grad=True)).sum().backward()


def spoilt_in_stages(parts: list[dict[str, Any]], stages: tuple[str, ...]) -> set[tuple[str, str, str, str]]:
    """(stage, direction, field, name of the unit whose mark or loss it is) of every unit noted as wrong or without it."""
    out = set()
    for part in parts:
        for stage in part["stages"]:
            for field in stage["fields"]:
                for unit in field["units_to_note"]:
                    root = part["marks"][unit["mark"]] if "mark" in unit else part["losses"][unit["loss"]] if "loss" in unit else None
                    if stage["stage"] in stages and root is not None and unit.get("quality", "overwritten") == "overwritten":
                        out.add((stage["stage"], part.get("direction", ""), field["field"], root["name"]))
    return out


def test_an_honest_training_compile_has_no_losses(tmp_path, run_kerntrail):
    trained(tmp_path / "c.ndjson", {})
    assert reported(run_kerntrail, tmp_path / "c.ndjson") == set()


@pytest.mark.parametrize("slot", ["joint_custom_pre_pass", "joint_custom_post_pass"])
def test_planted_in_joint_passes(tmp_path, run_kerntrail, slot):
    """What is wrong in the joint graph is wrong in the copies of it, in both directions, and is one finding."""
    score = Score()
    for field in JOINT_FIELDS:
        for kind in KINDS:
            damage = Planting(kind, field)
            trained(tmp_path / "c.ndjson", {slot: damage})
            assert damage.damaged, f"nothing was planted: {kind} {field}"
            case = f"{kind}, {field}"
            score.add(case, {(f"{slot} / Planting", field, name) for name in damage.damaged}, reported(run_kerntrail, tmp_path / "c.ndjson"))
            parts = json.loads(run_kerntrail("drops", tmp_path / "c.ndjson", "--format", "json").stdout)["parts"]
            stages = ("fx_aten", "fx_post_grad")
            # tanh, cos and their like are needed by both directions
            expected = {(stage, direction, field, name)
                        for stage in stages for direction in ("forward", "backward") for name in damage.damaged}
            score.add(f"{case}, copies", expected, spoilt_in_stages(parts, stages))
    score.check(slot)


@pytest.mark.parametrize(("slot", "backward", "fields"), [
    ("post_grad_custom_pre_pass", False, JOINT_FIELDS), ("post_grad_custom_post_pass", True, OWN_OF_BACKWARD)])
def test_planted_in_post_grad_passes_of_training(tmp_path, run_kerntrail, slot, backward, fields):
    score = Score()
    for field in fields:
        for kind in KINDS:
            damage = PlantingOnce(kind, field, backward)
            trained(tmp_path / "c.ndjson", {slot: damage})
            assert damage.damaged, f"nothing was planted: {kind} {field}"
            score.add(f"{kind}, {field}", {(f"{slot} / PlantingOnce", field, name) for name in damage.damaged}, reported(run_kerntrail, tmp_path / "c.ndjson"))
    score.check(f"{slot}, {'backward' if backward else 'forward'}")


# -- our back end: passes over its operations, and what writes its files -------------------------------------------------

IR_FIELDS = ("origins", "origin_node", "history")


def rebuilt(graph: Any, old: Any, forgotten: str) -> None:
    """A new buffer under the old one's name, whose maker forgot one field."""
    from torch._inductor import ir

    from kerntrail.spyre import ir_passes, provenance

    new = ir.ComputedBuffer(name=old.get_name(), layout=old.layout, data=old.data)
    if forgotten != "origins":
        new.origins.update(old.origins)
    if forgotten != "origin_node":
        object.__setattr__(new, "origin_node", old.origin_node)
    history = getattr(old, provenance.HISTORY_ATTRIBUTE, ())
    if history and forgotten != "history":
        setattr(new, provenance.HISTORY_ATTRIBUTE, history)
    ir_passes._take_place(graph, old, new)


def plant_in_operations(graph: Any, kind: str, field: str) -> set[str]:
    from kerntrail.spyre import provenance

    products = [op for op in graph.operations if getattr(op.data, "reduction_type", None) == "batchmatmul"]
    operation, other = products
    attribute = provenance.HISTORY_ATTRIBUTE if field == "history" else field
    mine, its = getattr(operation, attribute), getattr(other, attribute)

    def give(op: Any, value: Any) -> None:
        object.__setattr__(op, attribute, value)

    name = operation.get_operation_name()
    if kind == "forget on create":
        rebuilt(graph, operation, field)
    elif kind == "swap":
        give(operation, its)
        give(other, mine)
        return {name, other.get_operation_name()}
    elif kind == "neighbour":
        give(operation, its)
    elif kind == "drop" and field == "history":
        delattr(operation, attribute)
    elif kind == "drop" and field == "origins":
        mine.clear()
    else:
        give(operation, {"origins": type(operation.origins)(), "origin_node": None, "history": ()}[field])
    return {name}


RULES = {"a": "origins", "b": "origin_node", "c": "history", "d": "origins", "e": "origins"}


# Handles are made from these after the passes: where one is gone, the OpSpec can't carry one field more.
LOST_WITH = {"origins": "origin_node", "origin_node": "original_aten"}


def reported_by_rules(run_kerntrail: Any, capture: Path, planted_pass: str) -> set[Finding]:
    """Broken rules, wrong values and losses, each where it is charged. What is only read through `origins` (stacks, the
    fields of its nodes) goes with them: on an operation whose origins are found wrong it is one finding with that."""
    done = run_kerntrail("drops", capture, "--format", "json")
    assert done.returncode == 0, done.stderr
    (part,) = json.loads(done.stdout)["parts"]
    out = {(found["pass"]["name"], RULES[found["rule"]], found["name"]) for found in part["findings"] if "intent" not in found}
    out |= {(part["sites"][m["site"]]["title"], m["field"], m["name"]) for m in part["marks"] if m["quality"] == "overwritten"}
    for loss in part["losses"]:
        site, field, name = part["sites"][loss["site"]]["title"], loss["field"], loss["name"]
        with_origins = field not in IR_FIELDS and site in (planted_pass, "between ir_pre_pass and ir_post_pass")
        if not (with_origins and (planted_pass, "origins", name) in out):
            out.add((site, field, name))
    return out


def on_operations(path: Path, plant: Callable[[Any], None]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).eval()
    torch._dynamo.reset()
    with kerntrail.capture(path, replace=True), torch.no_grad():
        torch.compile(model, backend="kerntrail_spyre", options={"restickify": True, "pre_scheduling_passes": [plant]})(torch.randn(2, 64))


def test_planted_in_a_pre_scheduling_pass(tmp_path, run_kerntrail):
    score = Score()
    on_operations(tmp_path / "honest.ndjson", lambda graph: None)
    # What the format does not carry is lost in every compile, after the passes.
    always = reported_by_rules(run_kerntrail, tmp_path / "honest.ndjson", "planted_in_operations")
    assert {site for site, _, _ in always} == {"between schedule and op_spec"}
    for field in IR_FIELDS:
        for kind in KINDS:
            damaged: set[str] = set()

            def planted_in_operations(graph, kind=kind, field=field, damaged=damaged):
                damaged |= plant_in_operations(graph, kind, field)

            on_operations(tmp_path / "c.ndjson", planted_in_operations)
            assert damaged, f"nothing was planted: {kind} {field}"
            expected = {("planted_in_operations", field, name) for name in damaged}
            if field in LOST_WITH and kind not in ("swap", "neighbour"):
                expected |= {("between schedule and op_spec", LOST_WITH[field], name) for name in damaged}
            got = reported_by_rules(run_kerntrail, tmp_path / "c.ndjson", "planted_in_operations")
            score.add(f"{kind}, {field}", expected, got - always)
    score.check("planted_in_operations")


def damage_files(folder: Path, kind: str) -> set[str]:
    """What a serialiser may do wrong with the handles of a bundle of three or more files."""
    files = [folder / f"sdsc_{i}.json" for i in (1, 2)]
    contents = [json.loads(file.read_text()) for file in files]
    (mine,), (its,) = (list(content.values()) for content in contents)
    assert mine["debug_handle_"]["id"] != its["debug_handle_"]["id"]
    damaged = {files[0].name}
    if kind in ("drop", "forget on create"):
        del mine["debug_handle_"]
    elif kind == "drop the value":
        mine["debug_handle_"] = None
    elif kind == "neighbour":
        mine["debug_handle_"] = its["debug_handle_"]
    else:
        mine["debug_handle_"], its["debug_handle_"] = its["debug_handle_"], mine["debug_handle_"]
        damaged.add(files[1].name)
    for file, content in zip(files, contents, strict=True):
        file.write_text(json.dumps(content, indent=2))
    return damaged


class DamagingNative:
    """Stands in for the extension in the module that executes a generated wrapper: writes the bundle, then damages it."""

    def __init__(self, native: Any, kind: str) -> None:
        self.native, self.kind = native, kind
        self.damaged: set[str] = set()
        self.spyre = self

    def read_op_specs(self, op_specs: str) -> Any:
        return self.native.spyre.read_op_specs(op_specs)

    def build_kernel(self, op_specs: str, output_dir: str) -> Any:
        kernel = self.native.spyre.build_kernel(op_specs, output_dir)
        self.damaged |= damage_files(Path(output_dir), self.kind)
        return kernel


def test_planted_in_the_serialiser(tmp_path, run_kerntrail, monkeypatch):
    from kerntrail.spyre import async_compile

    score = Score()
    native = async_compile._native
    for kind in KINDS:
        damaging = DamagingNative(native, kind)
        monkeypatch.setattr(async_compile, "_native", damaging)
        on_operations(tmp_path / "c.ndjson", lambda graph: None)
        done = run_kerntrail("drops", tmp_path / "c.ndjson", "--format", "json")
        (part,) = json.loads(done.stdout)["parts"]
        got = {(part["sites"][loss["site"]]["title"], loss["field"], loss["name"]) for loss in part["losses"]
               if part["sites"][loss["site"]].get("to") == "superdsc"}
        got |= {("between op_spec and superdsc", mark["field"], mark["name"]) for mark in part["marks"]
                if mark["quality"] == "conflict" and mark["field"] == "debug_handle"}
        expected = {("between op_spec and superdsc", "debug_handle", name) for name in damaging.damaged}
        assert expected, f"nothing was planted: {kind}"
        # Without its handle a file carries none of what is read through one; that is one finding with the handle.
        got = {(site, "debug_handle" if (site, "debug_handle", name) in got else field, name) for site, field, name in got}
        score.add(kind, expected, got)
    score.check("the serialiser")
