"""Each hook on passes, patterns and nodes made to fail: the compile is as if it had never been there."""

import functools
import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

from capture_view import CaptureView  # noqa: E402
from recipes import RECIPES  # noqa: E402
from test_recipes import assert_same, run_compiled  # noqa: E402

from kerntrail._capture import open_capture  # noqa: E402

OBSERVER = "torch.fx.passes.graph_transform_observer.GraphTransformObserver."
PATTERNS = "torch._inductor.pattern_matcher."
# Hook -> the recipe in which it fires.
HOOKS = {
    "torch._inductor.compile_fx._recursive_joint_graph_passes": "attention",
    "torch._inductor.compile_fx.partition_fn": "own_autograd",
    OBSERVER + "__enter__": "attention",
    OBSERVER + "__exit__": "attention",
    OBSERVER + "apply_gm_pass": "attention",
    OBSERVER + "apply_graph_pass": "attention",
    "torch._inductor.compile_fx.view_to_reshape": "attention",
    "torch._inductor.compile_fx.fake_tensor_prop": "attention",
    "torch._inductor.fx_passes.joint_graph.canonicalize_aten_ir_passes": "attention",
    "torch._inductor.freezing.freeze": "cnn_frozen",
    "torch._inductor.freezing.freezing_passes": "cnn_frozen",
    "torch._inductor.freezing.constant_fold": "cnn_frozen",
    "torch.fx.Graph.create_node": "attention",
    "torch.fx.Graph.node_copy": "own_autograd",
    "torch.fx.Interpreter.run_node": "own_autograd",
    "torch.fx.Node.replace_all_uses_with": "attention",
    PATTERNS + "LoweringPatternEntry.apply": "cnn_frozen",
    PATTERNS + "GraphPatternEntry.apply": "attention",
    PATTERNS + "ReplacementPatternEntry.apply": "attention",
}
# These fire under our own back end only, and are made to fail in test_probe.py and test_spyre_passes.py.
ELSEWHERE = {"torch._inductor.ir.Buffer.__post_init__", "pre_scheduling_pass_begin", "pre_scheduling_pass_end", "provenance_forwarded",
             "op_specs_executed", "op_specs_read"}
BY_NAME = {recipe.name: recipe for recipe in RECIPES}


@pytest.fixture(scope="module")
def plain():
    return {name: run_compiled(BY_NAME[name], 1) for name in sorted(set(HOOKS.values()))}


def test_every_hook_above_borders_is_in_the_table(tmp_path):
    def labels(level):
        capture = open_capture(tmp_path / f"{level}.ndjson", level=level)
        capture.close()
        return {hook["label"] for hook in capture.hooks}

    borders = labels("borders")
    assert labels("passes") - borders == set(HOOKS) - borders | ELSEWHERE


@pytest.mark.parametrize("label", HOOKS)
def test_a_failing_hook_changes_nothing(tmp_path, run_kerntrail, plain, label):
    recipe = BY_NAME[HOOKS[label]]
    for when in ("before", "after"):
        path = tmp_path / f"{when}.ndjson"
        capture = open_capture(path, fail=[(label, when)])
        try:
            seen = run_compiled(recipe, 1)
        finally:
            capture.close()
        assert_same(recipe, plain[recipe.name], seen)
        view = CaptureView(path)
        hook = view.hook(label)
        assert hook["fired"] >= 1 and hook["errors"] >= 1 and "by a test" in hook["last_error"]
        assert view.end["status"] == "partial" and capture.is_partial
        checked = run_kerntrail("validate", path)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert "fx_post_grad" in view.stages() and "kernel" in view.stages()


def test_what_sits_in_a_slot_is_named_and_not_kept(tmp_path):
    from torch._inductor import config
    from torch._inductor.custom_graph_pass import CustomGraphPass, CustomInferenceAwareGraphPass

    class Inherited(CustomGraphPass):
        def __call__(self, graph):
            graph.lint()

        def uuid(self):
            return None

    class Mine(Inherited):
        pass

    class Aware(CustomInferenceAwareGraphPass, Inherited):
        def __call__(self, graph, is_inference):
            graph.lint()

    def function(graph, often):
        graph.lint()

    mine = Mine()
    gone = weakref.ref(mine)
    capture = open_capture(tmp_path / "c.ndjson")
    with config.patch(force_disable_caches=True, post_grad_custom_pre_pass=Aware(),
                      post_grad_custom_post_pass=[mine, functools.partial(function, often=1)]):
        torch.compile(lambda x: x.sin())(torch.ones(3))
    del mine
    torch._dynamo.reset()
    gc.collect()
    assert gone() is None
    capture.close()
    passes = {row["name"]: row for row in CaptureView(tmp_path / "c.ndjson").of("pass") if "custom" in row.get("name", "")}
    # The slot in which torch runs passes of its own too bears their name alone.
    assert set(passes) == {"post_grad_custom_pre_pass / Aware", "post_grad_custom_pre_pass", "post_grad_custom_post_pass / Mine",
                           "post_grad_custom_post_pass / function"}
    assert all("loc" in passes[name] for name in passes)
