"""The back end's passes over the lowered graph: forwarding of provenance, the pipeline, and what the probe sees of it."""

from __future__ import annotations

import json
import os
import pathlib
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from capture_view import CaptureView  # noqa: E402
from test_probe import check_failing_hook, generated_code  # noqa: E402
from test_spyre_backend import EXAMPLE, close, load_module  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor import config as inductor_config  # noqa: E402
from torch._inductor import ir  # noqa: E402

import kerntrail  # noqa: E402
from kerntrail.spyre import async_compile, ir_passes, passes, provenance  # noqa: E402
from kerntrail.spyre.op_spec import ProvenanceTransform  # noqa: E402

HERE = "test_spyre_passes.py"


@pytest.fixture(autouse=True)
def fresh_torch(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
    torch._dynamo.reset()
    with inductor_config.patch(force_disable_caches=True):
        yield
    torch._dynamo.reset()


# -- forwarding functions ---------------------------------------------------------------------------------------------


def buffer(origins=(), origin_node=None, history=()):
    out = SimpleNamespace(origins=set(origins), origin_node=origin_node)
    if history:
        setattr(out, provenance.HISTORY_ATTRIBUTE, tuple(history))
    return out


def step(kind, reason=None, name="p"):
    return ProvenanceTransform(kind, name, reason)


history_of = provenance.transform_history_of


def test_preserve_hands_on_everything():
    old, new = buffer({"a", "b"}, "a", [step("rewrite", "1")]), buffer()
    container = new.origins
    provenance.preserve_provenance(old, new, "p", "2")
    assert new.origins is container and new.origins == {"a", "b"} and new.origins is not old.origins
    assert new.origin_node == "a"
    assert history_of(new) == (step("rewrite", "1"), step("rewrite", "2"))
    assert history_of(old) == (step("rewrite", "1"),)


def test_preserve_keeps_what_the_pass_set():
    new = buffer({"c"}, "c", [step("clone")])
    provenance.preserve_provenance(buffer({"a"}, "a", [step("fusion")]), new, "p")
    assert new.origins == {"a", "c"} and new.origin_node == "c"
    assert history_of(new) == (step("fusion"), step("clone"), step("rewrite"))  # old, then new, then this


def test_merge_unites_and_has_no_primary():
    a, b = buffer({"a"}, "a", [step("rewrite", "a")]), buffer({"b"}, "b", [step("rewrite", "b")])
    new = buffer(origin_node="stale")
    provenance.merge_provenance([a, b], new, "p", "why")
    assert new.origins == {"a", "b"} and new.origin_node is None
    assert history_of(new) == (step("rewrite", "a"), step("rewrite", "b"), step("fusion", "why"))
    assert a.origin_node == "a" and a.origins == {"a"}


def test_merge_into_one_of_the_merged():
    kept, other = buffer({"a"}, "a", [step("rewrite", "kept")]), buffer({"b"}, "b")
    provenance.merge_provenance([other], kept, "p", "duplicate")
    assert kept.origins == {"a", "b"} and kept.origin_node is None
    assert history_of(kept) == (step("rewrite", "kept"), step("fusion", "duplicate"))


def test_decompose_gives_each_child_its_own():
    old, one, two = buffer({"a", "b"}, "a", [step("rewrite")]), buffer(), buffer({"c"}, "c")
    provenance.decompose_provenance(old, [one, two], "p", "split")
    assert one.origins == {"a", "b"} and two.origins == {"a", "b", "c"}
    one.origins.add("later")
    assert "later" not in two.origins and "later" not in old.origins
    assert one.origin_node == "a" and two.origin_node == "c"
    assert history_of(one) == history_of(two) == (step("rewrite"), step("decomposition", "split"))


def test_decompose_without_origins_hands_on_history_only():
    child = buffer({"own"}, "own")
    provenance.decompose_provenance(buffer({"a"}, "a", [step("rewrite")]), [child], "p", inherit_origins=False)
    assert child.origins == {"own"} and child.origin_node == "own"
    assert history_of(child) == (step("rewrite"), step("decomposition"))


def test_histories_share_their_beginning_once_and_nothing_else():
    common = [step("rewrite", "1"), step("fusion", "2")]
    a, b = buffer({"a"}, history=[*common, step("rewrite", "a")]), buffer({"b"}, history=[*common, step("rewrite", "b")])
    new = buffer(history=common)
    provenance.merge_provenance([a, b], new, "p")
    assert history_of(new) == (*common, step("rewrite", "a"), step("rewrite", "b"), step("fusion"))
    repeated = buffer(history=[step("rewrite")] * 3)  # equal records of one history are all real
    provenance.preserve_provenance(repeated, again := buffer(), "p")
    assert history_of(again) == (step("rewrite"),) * 4
    long = buffer(history=[step("rewrite", str(i)) for i in range(100)])
    provenance.preserve_provenance(long, new := buffer(), "p")
    assert len(history_of(new)) == 101


def test_forwarding_works_on_frozen_buffers_and_without_origins():
    class Frozen(SimpleNamespace):
        def __setattr__(self, name, value):
            raise AttributeError("frozen")

    new = Frozen(origins=set(), origin_node=None)
    provenance.preserve_provenance(SimpleNamespace(), new, "p")
    assert history_of(new) == (step("rewrite"),) and new.origins == set() and new.origin_node is None


# -- the pipeline -----------------------------------------------------------------------------------------------------


def reference(**options):
    torch.manual_seed(0)
    model = load_module(EXAMPLE).SimpleMLP(128, 256, 128).half().eval()
    return model, torch.randn(2, 128, dtype=torch.float16), options


def run(path, function, *inputs, **options):
    """A capture of one compile, and its result."""
    with torch.no_grad(), kerntrail.capture(path, replace=True):
        result = torch.compile(function, backend="kerntrail_spyre", options=options)(*inputs)
    return CaptureView(path), result


def test_restickify_is_the_variant_of_seven_operations(tmp_path, monkeypatch):
    directories = []
    original = async_compile.get_output_dir
    monkeypatch.setattr(async_compile, "get_output_dir", lambda name: directories.append(original(name)) or directories[-1])
    model, x, _ = reference()
    view, result = run(tmp_path / "c.ndjson", model, x, metadata="seed", restickify=True, generation="july-transform")
    with torch.no_grad():
        close(result, model(x), steps=7)
    before, after = view.at("ir_pre_pass"), view.at("ir_post_pass")
    assert len(before) == 5 and len(after) == 7
    assert [bool(row["origins"]) for row in after] == [False, True, True, True, False, True, True]
    assert sum(row["origin_node"] is not None for row in after) == 5
    assert [row["name"] for row in view.at("op_spec")] == [row["name"] for row in after]
    assert [row["op_keys"][0] for row in view.at("superdsc")] == [
        "0_ReStickifyOpHBM", "1_batchmatmul", "2_add", "3_relufwd", "4_ReStickifyOpHBM", "5_batchmatmul", "6_add"]
    files = [json.loads((pathlib.Path(directories[0]) / f"sdsc_{i}.json").read_text()) for i in range(7)]
    handles = [next(iter(file.values()))["debug_handle_"] for file in files]
    assert [handle is None for handle in handles] == [True, False, False, False, True, False, False]
    assert handles[1]["transform_history"] == [
        {"kind": "rewrite", "pass_name": "insert_restickify", "reason": "reads arg0_1 through buf5"}]
    assert handles[2]["transform_history"] == [] and "fusion_context" not in handles[2]
    assert all(child["transform_history"] == [] for child in handles[1]["fused_from"])
    # The operation's layouts: k inside the stick of what it reads, n inside the stick of what it writes.
    dsc = files[0]["0_ReStickifyOpHBM"]
    assert dsc["numCoresUsed_"] > 1 and dsc["debug_handle_"] is None


def test_restickify_pads_like_everything_else(tmp_path):
    model = nn.Sequential(nn.Linear(10, 33), nn.ReLU(), nn.Linear(33, 7)).eval()
    x = torch.randn(3, 10)
    view, result = run(tmp_path / "c.ndjson", model, x, restickify=True)
    with torch.no_grad():
        close(result, model(x), steps=7)
    assert [row["op_keys"][0].split("_")[1] for row in view.at("superdsc")].count("ReStickifyOpHBM") == 2


def test_july_files_have_no_history(tmp_path):
    model, x, _ = reference()
    view, _ = run(tmp_path / "c.ndjson", model, x, restickify=True)
    handles = [row["debug_handle"] for row in view.at("superdsc") if row["debug_handle"]]
    assert handles and all(h["fusion_context"] is None and "transform_history" not in h for h in handles)
    assert any(row.get("history") for row in view.at("ir_post_pass"))


def test_the_audit_of_seven_operations(tmp_path, run_kerntrail):
    done = run_kerntrail("audit", "--restickify")
    assert done.returncode == 0, done.stderr
    view = CaptureView(tmp_path / "provenance_capture.ndjson")
    assert view.of("run")[0]["settings"]["restickify"] == "True"
    rows = [row for row in (tmp_path / "provenance_audit.md").read_text().splitlines() if row.startswith("| IR |")]
    cells = {row.split("|")[2].strip(" `"): [cell.strip() for cell in row.strip("|").split("|")[2:]] for row in rows}
    # Five of seven, as the first audit measured with two restickify buffers inserted.
    assert cells["origins"][2:4] == ["✓", "◐ 5/7"] and cells["origin_node"][2:4] == ["✓", "◐ 5/7"]
    assert cells["get_stack_traces"][2:4] == ["◐ 3/5", "◐ 3/7"]
    assert "7 `sdsc_*.json` files" in (tmp_path / "provenance_audit.md").read_text()
    assert run_kerntrail("validate", tmp_path / "provenance_capture.ndjson").returncode == 0


def several(x, y):
    """Bodies of two operations, with a product that all three share."""
    return torch.add(x, y, alpha=3), torch.sub(x, y, alpha=3), torch.relu(torch.add(x, y, alpha=3) * 2)


def test_split_and_dedup(tmp_path):
    x, y = torch.randn(5, 70), torch.randn(5, 70)
    view, results = run(tmp_path / "c.ndjson", several, x, y)
    for actual, expected in zip(results, several(x, y), strict=True):
        close(actual, expected, steps=3)
    split, dedup = view.passes(name="split_multi_ops")[0], view.passes(name="dedup_buffers")[0]
    before = view.at("ir_pre_pass")
    multi = [row["unit"] for row in before if row["unit"] in split["erased"]]
    assert len(multi) >= 2 and len(split["created"]) == 2 * len(multi)
    births = view.births(**{"pass": split["id"]})
    assert [birth["evidence"] for birth in births] == ["decomposition"] * len(split["created"])
    assert {birth["unit"] for birth in births} == set(split["created"])
    assert all(len(birth["sources"]) == 1 and birth["sources"][0] in multi for birth in births)
    # The last child of each took over the name.
    assert split["replaced"] == multi and set(split["by"]) < set(split["created"])
    origins = {row["unit"]: row["origins"] for row in before}
    look = view.looks[split["id"]]
    for birth in births:
        child = look["units"][birth["unit"]]
        assert view.value(child["origins"]) == origins[birth["sources"][0]] and child["origin_node"]["state"] == "present"
        assert view.value(child["history"])[-1]["kind"] == "decomposition"
    # The product is computed once, and says from how many it comes.
    assert len(dedup["changed"]) == 1 and dedup["erased"]
    (kept,) = dedup["changed"]
    fusions = view.births(unit=kept, evidence="fusion")
    assert fusions and all(birth["sources"][0] in dedup["erased"] for birth in fusions)
    seen = view.looks[dedup["id"]]["units"][kept]
    assert seen["origin_node"]["state"] == "empty" and len(view.value(seen["origins"])) == 1 + len(fusions)
    # A product that reads the kept one is a rebuilt buffer of the same name.
    rewritten = [birth for birth in view.births(evidence="rewrite") if birth["pass"] == dedup["id"]]
    assert rewritten and all(birth["unit"] in dedup["created"] for birth in rewritten)
    assert len({row["unit"] for row in view.at("ir_post_pass")} & set(dedup["erased"])) == 0


def test_dead_operations_go(tmp_path):
    def plant(graph):
        """An operation that nobody reads."""
        ir_passes._insert_before(graph, graph.operations[0], ir_passes._restickified(graph, "arg0_1"))

    def again(graph):
        count = len(graph.operations)
        ir_passes.deadcode_elimination(graph)
        assert len(graph.operations) == count - 1

    view, _ = run(tmp_path / "c.ndjson", several, torch.randn(4, 64), torch.randn(4, 64), pre_scheduling_passes=[plant, again])
    made, gone = view.passes(name="plant")[0], view.passes(name="again")[0]
    assert made["created"] == gone["erased"] and len(made["created"]) == 1 and gone["replaced"] == []


# -- what the probe sees ----------------------------------------------------------------------------------------------

DEFAULT = ["deadcode_elimination", "split_multi_ops", "dedup_buffers", "assign_dim_hints", "_distribute_work"]


def test_passes_are_observed_in_order(tmp_path):
    model, x, _ = reference()
    view, _ = run(tmp_path / "c.ndjson", model, x)
    seen = view.passes(subsystem="pre_scheduling")
    assert [p["name"] for p in seen] == DEFAULT and all(p["kind"] == "pass" and p["ended"] for p in seen)
    assert not any(p["created"] or p["erased"] or p["changed"] for p in seen) and view.births(subsystem="pre_scheduling") == []
    assert all(view.frames(p["loc"])[0]["function"] == "__call__" for p in seen)
    order = [(r.get("stage"), r.get("name")) for r in view.records
             if r["record"] == "snapshot" and r.get("stage", "").startswith("ir_") or r["record"] == "pass" and r["phase"] == "start"
             and r.get("subsystem") == "pre_scheduling"]
    assert order == [("ir_pre_pass", None), *((None, name) for name in DEFAULT), ("ir_post_pass", None)]


def test_what_insert_restickify_did(tmp_path):
    model, x, _ = reference()
    view, _ = run(tmp_path / "c.ndjson", model, x, restickify=True)
    (done,) = view.passes(name="insert_restickify")
    assert len(done["created"]) == 4 and len(done["erased"]) == 2
    created = [birth for birth in view.births(evidence="created") if birth["pass"] == done["id"]]
    rewritten = [birth for birth in view.births(evidence="rewrite") if birth["pass"] == done["id"]]
    assert len(created) == len(rewritten) == 2
    assert [birth["sources"] for birth in rewritten] == [[unit] for unit in done["erased"]]
    assert dict(zip(done["replaced"], done["by"])) == {birth["sources"][0]: birth["unit"] for birth in rewritten}
    units = view.looks[done["id"]]["units"]
    assert set(units) == set(done["created"])
    for birth in created:
        assert units[birth["unit"]]["origins"]["state"] == "empty" and "history" not in units[birth["unit"]]
        frames = view.frames(birth["loc"])
        assert [frame["function"] for frame in frames] == ["_insert_before", "insert_restickify"]
        assert all(frame["file"].endswith("kerntrail/spyre/ir_passes.py") and frame["class"] != "user" for frame in frames)


def planted(tmp_path, function, *inputs, plant, **options):
    """A capture with one more pass, its record and its look; what it says about results and validity holds for all."""
    with torch.no_grad():
        torch._dynamo.reset()
        expected = torch.compile(function, backend="kerntrail_spyre", options={**options, "pre_scheduling_passes": [plant]})(*inputs)
        torch._dynamo.reset()
    view, result = run(tmp_path / "c.ndjson", function, *inputs, pre_scheduling_passes=[plant], **options)
    assert torch.equal(result, expected)
    (done,) = view.passes(name=plant.__name__)
    return view, done, view.looks.get(done["id"])


def first_product(graph):
    return next(op for op in graph.operations if getattr(op.data, "reduction_type", None) == "batchmatmul")


def test_a_dropped_origin_is_seen(tmp_path):
    def drops_one_origin(graph):
        operation = first_product(graph)
        operation.origins.discard(next(node for node in operation.origins if "permute" in node.name))

    model, x, _ = reference()
    view, done, look = planted(tmp_path, model, x, plant=drops_one_origin)
    (unit,) = done["changed"]
    before, after = view.value(look["before"][unit]["origins"]), view.value(look["units"][unit]["origins"])
    assert len(before) == 2 and len(after) == 1 and set(after) < set(before)
    assert done["created"] == done["erased"] == done["replaced"] == []
    assert [p["name"] for p in view.passes(kind="gap")] == []


def test_a_cleared_origin_node_is_seen(tmp_path):
    def clears_origin_node(graph):
        object.__setattr__(first_product(graph), "origin_node", None)

    model, x, _ = reference()
    view, done, look = planted(tmp_path, model, x, plant=clears_origin_node)
    (unit,) = done["changed"]
    assert look["before"][unit]["origin_node"]["state"] == "present"
    assert look["units"][unit]["origin_node"]["state"] == "empty" and look["units"][unit]["origins"]["state"] == "present"
    assert not [birth for birth in view.births(unit=unit) if birth["pass"] == done["id"]]


def test_a_cut_history_is_seen(tmp_path):
    def cuts_history(graph):
        setattr(first_product(graph), provenance.HISTORY_ATTRIBUTE, ())

    model, x, _ = reference()
    view, done, look = planted(tmp_path, model, x, plant=cuts_history, restickify=True)
    (unit,) = done["changed"]
    assert [r["kind"] for r in view.value(look["before"][unit]["history"])] == ["rewrite"]
    assert look["units"][unit]["history"]["state"] == "empty"


def test_a_buffer_from_nowhere_is_seen_with_its_line(tmp_path):
    def makes_from_nothing(graph):
        place = first_product(graph)
        ir_passes._insert_before(graph, place, ir_passes._restickified(graph, "arg0_1"))

    model, x, _ = reference()
    view, done, look = planted(tmp_path, model, x, plant=makes_from_nothing)
    (unit,) = done["created"]
    (birth,) = view.births(unit=unit)
    assert birth["evidence"] == "created" and "sources" not in birth
    assert look["units"][unit]["origins"]["state"] == "empty" and look["units"][unit]["origin_node"]["state"] == "empty"
    mine = view.frames(birth["loc"])[-1]
    assert mine["file"].endswith(HERE) and mine["function"] == "makes_from_nothing"
    assert "_insert_before" in pathlib.Path(__file__).read_text().splitlines()[mine["line"] - 1]


def twice(x):
    return torch.relu(torch.relu(x)) + 1


def test_a_removed_buffer_is_seen(tmp_path):
    def removes_without_forwarding(graph):
        _, second, *_ = graph.operations
        ir_passes._remove(graph, second)
        ir_passes._redirect(graph, second.get_name(), graph.operations[0].get_name(), "removes_without_forwarding")

    view, done, look = planted(tmp_path, twice, torch.randn(4, 64), plant=removes_without_forwarding)
    before = {row["buffer"]: row["unit"] for row in view.at("ir_pre_pass")}
    gone = view.at("ir_pre_pass")[1]
    assert set(done["erased"]) == {gone["unit"], view.at("ir_pre_pass")[2]["unit"]}
    assert gone["unit"] not in done["replaced"]  # nobody took it over
    survivors = {origin for row in view.at("ir_post_pass") for origin in row["origins"]}
    assert not set(gone["origins"]) & survivors and len(before) == 3


def test_a_rebuilt_buffer_without_forwarding_is_seen(tmp_path):
    def rebuilds_bare(graph):
        old = first_product(graph)
        ir_passes._take_place(graph, old, ir.ComputedBuffer(name=old.get_name(), layout=old.layout, data=old.data))

    model, x, _ = reference()
    view, done, look = planted(tmp_path, model, x, plant=rebuilds_bare)
    (old,), (new,) = done["erased"], done["created"]
    assert (done["replaced"], done["by"]) == ([old], [new])
    (birth,) = view.births(unit=new)
    assert birth["evidence"] == "replacement" and birth["sources"] == [old]
    assert look["before"][old]["origins"]["state"] == "present" and look["units"][new]["origins"]["state"] == "empty"
    assert view.value(look["units"][new]["buffer"]) == view.value(look["before"][old]["buffer"])


def test_sources_that_did_not_live_until_the_end_are_shown(tmp_path):
    def rewrites_twice(graph):
        operation = first_product(graph)
        for turn in ("once", "again"):
            operation = ir_passes.replace_body(graph, operation, operation.data, "rewrites_twice", turn)

    model, x, _ = reference()
    view, done, look = planted(tmp_path, model, x, plant=rewrites_twice)
    (old,), (new,) = done["erased"], done["created"]
    first, second = [birth for birth in view.births(evidence="rewrite") if birth["pass"] == done["id"]]
    assert (first["sources"], second["sources"]) == ([old], [first["unit"]]) and second["unit"] == new
    assert set(look["units"]) == {new, first["unit"]}
    assert [r["reason"] for r in view.value(look["units"][new]["history"])] == ["once", "again"]


def test_changes_between_passes_are_a_gap(tmp_path, monkeypatch):
    def leaky(self, graph):
        for fn in self.passes:
            with provenance.SpyreGraphTransformObserver(graph, fn.__name__, kind="graphlowering"):
                fn(graph)
            if fn.__name__ in ("split_multi_ops", "_distribute_work"):
                graph.operations[0 if fn.__name__ == "split_multi_ops" else 1].origins.clear()

    monkeypatch.setattr(passes.CustomPreSchedulingPasses, "__call__", leaky)
    model, x, _ = reference()
    view, _ = run(tmp_path / "c.ndjson", model, x)
    gaps = view.passes(kind="gap", subsystem="pre_scheduling")
    assert [gap["name"] for gap in gaps] == ["between split_multi_ops and dedup_buffers", "between _distribute_work and ir_post_pass"]
    assert [len(gap["changed"]) for gap in gaps] == [1, 1]
    for gap in gaps:
        assert view.looks[gap["id"]]["units"][gap["changed"][0]]["origins"]["state"] == "empty"
    named = [p for p in view.passes(subsystem="pre_scheduling") if p["kind"] == "pass"]
    assert not any(p["changed"] for p in named)


def test_nested_passes_charge_the_inner_one(tmp_path):
    def inner(graph):
        first_product(graph).origins.clear()

    def outer(graph):
        with provenance.SpyreGraphTransformObserver(graph, "inner", kind="graphlowering"):
            inner(graph)

    model, x, _ = reference()
    view, _ = run(tmp_path / "c.ndjson", model, x, pre_scheduling_passes=[outer])
    (within,), (around,) = view.passes(name="inner"), view.passes(name="outer")
    assert within["parent"] == around["id"] and len(within["changed"]) == 1 and around["changed"] == []


def test_a_pass_that_raises_has_no_end_and_hooks_go(tmp_path):
    def fails(graph):
        raise ValueError("planted")

    original = provenance.SpyreGraphTransformObserver.__dict__["__enter__"]
    model, x, _ = reference()
    with pytest.raises(Exception, match="planted"):
        run(tmp_path / "c.ndjson", model, x, pre_scheduling_passes=[fails])
    assert provenance.SpyreGraphTransformObserver.__dict__["__enter__"] is original
    view = CaptureView(tmp_path / "c.ndjson")
    assert [p["ended"] for p in view.passes(subsystem="pre_scheduling")] == [True, True, True, False]
    torch._dynamo.reset()
    again, _ = run(tmp_path / "d.ndjson", model, x)  # nothing of it is left
    assert [p["name"] for p in again.passes(subsystem="pre_scheduling")] == DEFAULT


class Shared(nn.Module):
    """Multi-operation bodies with a shared part: every kind of forwarding happens."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)

    def forward(self, x):
        y = self.a(x)
        z = torch.relu(y)
        return torch.add(y, z, alpha=3), torch.sub(y, z, alpha=3)


@pytest.mark.parametrize("options", [{}, {"restickify": True, "generation": "july-transform"}], ids=["default", "restickify"])
def test_code_and_results_are_the_same_with_and_without(tmp_path, options):
    model, x = Shared().eval(), torch.randn(3, 8)
    before, expected = generated_code(model, x, backend="kerntrail_spyre", options=options)
    with kerntrail.capture(tmp_path / "c.ndjson") as capture:
        during, result = generated_code(model, x, backend="kerntrail_spyre", options=options)
    assert before == during and not capture.is_partial
    assert all(torch.equal(a, b) for a, b in zip(result, expected, strict=True))
    assert CaptureView(tmp_path / "c.ndjson").births(evidence="fusion")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("label", ["pre_scheduling_pass_begin", "pre_scheduling_pass_end", "provenance_forwarded",
                                   "torch._inductor.ir.Buffer.__post_init__"])
def test_a_failing_hook_changes_nothing(tmp_path, run_kerntrail, label, when):
    class First(Shared):
        def forward(self, x):
            return sum(super().forward(x))

    view = check_failing_hook(tmp_path, run_kerntrail, label, when, First().eval(), torch.randn(3, 8), "kerntrail_spyre")
    stages = view.stages("c0")
    assert "ir_pre_pass" in stages and "ir_post_pass" in stages and "superdsc" in stages
    if label.startswith("pre_scheduling_pass") and (label.endswith("begin"), when) in ((True, "before"), (False, "after")):
        # A change that no pass could be charged with is still there, as a gap.
        assert any(p["created"] for p in view.passes(kind="gap"))
    if label in ("provenance_forwarded", "torch._inductor.ir.Buffer.__post_init__"):
        assert [p["name"] for p in view.passes(subsystem="pre_scheduling")][: len(DEFAULT)] == DEFAULT
    if label == "provenance_forwarded":  # the history still tells how, though not from what
        split = view.passes(name="split_multi_ops")[0]
        assert {b["evidence"] for b in view.births(**{"pass": split["id"]})} == {"decomposition"}


# -- the FX pass of the addmm split -----------------------------------------------------------------------------------


def test_the_addmm_split_is_a_named_pass_whose_line_makes_the_nodes(monkeypatch):
    import traceback

    from torch.fx.passes.graph_transform_observer import GraphTransformObserver

    running, made = [], []
    enter, leave, create = GraphTransformObserver.__enter__, GraphTransformObserver.__exit__, torch.fx.Graph.create_node

    def on_enter(self):
        running.append((self.passname, self.subsystem))
        return enter(self)

    def on_exit(self, *exception):
        running.pop()
        return leave(self, *exception)

    def on_create(self, op, target, *args, **kwargs):
        if running and running[-1][0] == "decompose_addmm":
            outside = [f for f in traceback.extract_stack()[:-1] if "/torch/" not in f.filename]
            made.append((str(target), [name for name, _ in running], running[-1][1], outside[-1]))
        return create(self, op, target, *args, **kwargs)

    monkeypatch.setattr(GraphTransformObserver, "__enter__", on_enter)
    monkeypatch.setattr(GraphTransformObserver, "__exit__", on_exit)
    monkeypatch.setattr(torch.fx.Graph, "create_node", on_create)
    model, x, _ = reference()
    with torch.no_grad():
        torch.compile(model, backend="kerntrail_spyre", options={"metadata": "seed"})(x)
    assert [target for target, *_ in made] == ["aten.mm.default", "aten.add.Tensor"] * 2
    for target, names, subsystem, frame in made:
        assert names[-2:] == ["post_grad_custom_pre_pass", "decompose_addmm"] and subsystem == "kerntrail_spyre"
        assert frame.filename.endswith("kerntrail/spyre/passes.py") and frame.name == "decompose_addmm"
        assert f"graph.call_function({target}" in frame.line


# -- the same hooks on another back end's modules ---------------------------------------------------------------------

OUTSIDER = '''
class SpyreGraphTransformObserver:
    def __init__(self, target, pass_name, kind):
        self.target, self.pass_name, self.kind = target, pass_name, kind
    def __enter__(self):
        return self
    def __exit__(self, *exception):
        return None

class Record:
    def __init__(self, kind, pass_name, reason):
        self.kind, self.pass_name, self.reason = kind, pass_name, reason

def _append_transform(carriers, new, transform):
    object.__setattr__(new, "_spyre_prov_history", (*getattr(new, "_spyre_prov_history", ()), transform))

def merge_provenance(sources, new, pass_name, reason=None):
    for source in sources:
        new.origins.update(source.origins)
    object.__setattr__(new, "origin_node", None)
    _append_transform(sources, new, Record("fusion", pass_name, reason))
'''
OUTSIDER_PASSES = '''
from .provenance import SpyreGraphTransformObserver, merge_provenance  # by name, as its passes do

class CustomPreGradPasses:
    def __call__(self, graph): pass
class CustomPostPasses:
    def __call__(self, graph): pass

def unite(graph):
    first, second, *_ = graph.operations
    merge_provenance([second], first, "unite", "said so")

class CustomPreSchedulingPasses:
    def __init__(self):
        self.passes = [unite]
    def __call__(self, graph):
        for fn in self.passes:
            with SpyreGraphTransformObserver(graph, fn.__name__, kind="graphlowering"):
                fn(graph)
            with SpyreGraphTransformObserver([], "of scheduler nodes", kind="node"):
                pass
'''


def test_modules_of_torch_spyre_are_watched_instead_where_they_are(tmp_path):
    """In a process of its own: a package with the reference's module and class names, run by stock Inductor."""
    import subprocess
    import sys

    package = tmp_path / "torch_spyre" / "_inductor"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "provenance.py").write_text(OUTSIDER)
    (package / "passes.py").write_text(OUTSIDER_PASSES)
    (tmp_path / "program.py").write_text('''
import torch, kerntrail
from torch._inductor.graph import GraphLowering
from torch_spyre._inductor.passes import CustomPreSchedulingPasses
pipeline, original = CustomPreSchedulingPasses(), GraphLowering._update_scheduler

def update(self):
    pipeline(self)
    original(self)

GraphLowering._update_scheduler = update
with torch.no_grad(), kerntrail.capture("c.ndjson"):
    torch.compile(lambda x: (x.sum(0), x.sum(1)))(torch.randn(8, 8))
''')
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"})
    assert done.returncode == 0, done.stderr
    view = CaptureView(tmp_path / "c.ndjson")
    assert view.hook("provenance_forwarded")["attribute"] == "torch_spyre._inductor.provenance._append_transform"
    (seen,) = view.passes(subsystem="pre_scheduling")
    (birth,) = view.births(evidence="fusion")
    assert seen["name"] == "unite" and seen["changed"] == [birth["unit"]] and birth["pass"] == seen["id"]
    before, look = view.at("ir_pre_pass"), view.looks[seen["id"]]["units"][birth["unit"]]
    assert birth["sources"] == [before[1]["unit"]] and len(view.value(look["origins"])) == 2
    assert view.value(look["history"]) == [{"kind": "fusion", "pass_name": "unite", "reason": "said so"}]
