"""The live probe on stock torch: what it sees, that it changes nothing, and that it is gone afterwards."""

import re
import threading

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
from capture_view import CaptureView  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor.utils import run_and_get_code  # noqa: E402

import kerntrail  # noqa: E402
from kerntrail._capture import open_capture  # noqa: E402


class Mlp(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.a = nn.Linear(8, width)
        self.b = nn.Linear(width, 4)

    def forward(self, x):
        y = self.a(x)
        y = torch.relu(y)
        return self.b(y)


class Broken(nn.Module):
    """A graph break between two halves."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 3)

    def forward(self, x):
        y = torch.tanh(self.a(x))
        torch._dynamo.graph_break()
        return torch.sigmoid(self.b(y))


@pytest.fixture(autouse=True)
def fresh_torch():
    """No test sees another's compiled code or caches; every test leaves no capture open."""
    torch._dynamo.reset()
    with inductor.patch(force_disable_caches=True):
        yield
    torch._dynamo.reset()


def compile_and_run(model, *inputs, grad: bool = False, **options):
    torch.manual_seed(0)
    compiled = torch.compile(model, **options)
    if grad:
        loss = compiled(*inputs).sum()
        loss.backward()
        return loss
    with torch.no_grad():
        return compiled(*inputs)


def generated_code(model, *inputs, **options) -> tuple[list[str], torch.Tensor]:
    torch._dynamo.reset()
    with torch.no_grad():
        result, code = run_and_get_code(torch.compile(model, **options), *inputs)
    # The one thing that counts up with each compile of a process: torch's own number of the graph.
    return [re.sub(r"AOT ID: \['\d+_", "AOT ID: ['N_", text) for text in code], result


def test_stages_of_a_stock_compile(tmp_path):
    with kerntrail.capture(tmp_path / "c.ndjson") as capture:
        compile_and_run(Mlp().eval(), torch.randn(3, 8))
    view = CaptureView(tmp_path / "c.ndjson")
    assert view.stages() == ["fx_pre_grad", "fx_joint", "fx_aten", "fx_post_grad", "ir_pre_pass", "schedule", "kernel"]
    assert [row["target"] for row in view.at("fx_pre_grad")] == [
        "<built-in function linear>", "<built-in method relu of type object>", "<built-in function linear>"]
    post = {row["name"]: row for row in view.at("fx_post_grad")}
    assert post["addmm"]["original_aten"] == "aten.addmm.default"
    assert "y = self.a(x)" in post["addmm"]["stack_trace"]
    assert post["addmm"]["type"]["shape"] == [3, 16]
    # from_node leads to a unit of the pre-grad graph, not to a name alone.
    resolved = post["relu"]["from_node"][0]["unit"]
    assert resolved in {row["unit"] for row in view.at("fx_pre_grad")}
    operations = view.at("ir_pre_pass")
    assert all(row["states"]["origins"] == "present" for row in operations)
    assert all(row["states"]["traceback"] == "empty" for row in operations)  # the slot is there, nothing is in it
    assert any(name.startswith("extern_kernels") for name in view.names("kernel"))
    assert all(claim["claimant"] == "compiler" for claim in view.of("claim"))
    assert view.end["status"] == "complete" and not capture.is_partial


def test_graph_breaks_do_not_mix(tmp_path):
    with kerntrail.capture(tmp_path / "c.ndjson"):
        compile_and_run(Broken().eval(), torch.randn(2, 8))
    view = CaptureView(tmp_path / "c.ndjson")
    assert list(view.compiles) == ["c0", "c1"]
    assert "tanh" in view.names("fx_post_grad", compile_id="c0") and "sigmoid" not in view.names("fx_post_grad", compile_id="c0")
    assert "sigmoid" in view.names("fx_post_grad", compile_id="c1") and "tanh" not in view.names("fx_post_grad", compile_id="c1")


def test_a_lazy_backward_belongs_to_its_forward(tmp_path):
    with kerntrail.capture(tmp_path / "c.ndjson"):
        compile_and_run(Mlp(), torch.randn(3, 8), grad=True)
    view = CaptureView(tmp_path / "c.ndjson")
    assert list(view.compiles) == ["c0"]
    assert view.at("fx_post_grad", direction="forward") and view.at("fx_post_grad", direction="backward")
    assert view.at("kernel", direction="forward") and view.at("kernel", direction="backward")
    assert not view.notes("backward-not-observed")


def test_a_backward_after_the_block_is_said_to_be_missing(tmp_path):
    with kerntrail.capture(tmp_path / "c.ndjson"):
        loss = torch.compile(Mlp())(torch.randn(3, 8)).sum()
    loss.backward()
    view = CaptureView(tmp_path / "c.ndjson")
    assert len(view.notes("backward-not-observed")) == 1
    assert not view.at("fx_post_grad", direction="backward")


def test_two_models_with_a_reset_between(tmp_path):
    with kerntrail.capture(tmp_path / "c.ndjson"):
        compile_and_run(Mlp().eval(), torch.randn(3, 8))
        torch._dynamo.reset()
        compile_and_run(Broken().eval(), torch.randn(2, 8))
    view = CaptureView(tmp_path / "c.ndjson")
    assert [compile_["torch_id"] for compile_ in view.compiles.values()] == ["0/0", "0/0", "1/0"]  # torch's ids repeat, ours don't
    assert len(view.at("fx_pre_grad", compile_id="c0")) == 3
    assert "tanh" in view.names("fx_post_grad", compile_id="c1")


def test_a_cache_hit_is_not_observed_and_said_so(tmp_path):
    with inductor.patch(force_disable_caches=False, fx_graph_cache=True):
        model, x = Mlp(width=24).eval(), torch.randn(3, 8)
        with kerntrail.capture(tmp_path / "c.ndjson"):
            compile_and_run(model, x)
            torch._dynamo.reset()
            compile_and_run(model, x)
    view = CaptureView(tmp_path / "c.ndjson")
    assert view.stages("c0")[0] == "fx_pre_grad" and "kernel" in view.stages("c0")
    assert "kernel" not in view.stages("c1")
    (note,) = view.notes("not-observed")
    assert note["compile"] == "c1" and "cache hit" in note["text"]


@pytest.mark.parametrize("level", [0, 1])
def test_generated_code_is_the_same_with_and_without(tmp_path, level):
    with inductor.patch({"trace.provenance_tracking_level": level}):
        model, x = Mlp().eval(), torch.randn(3, 8)
        before, expected = generated_code(model, x)
        with kerntrail.capture(tmp_path / "c.ndjson"):
            during, result = generated_code(model, x)
        after, _ = generated_code(model, x)
    assert before == during == after
    assert torch.equal(result, expected)
    assert CaptureView(tmp_path / "c.ndjson").of("run")[0]["settings"]["provenance_level"] == str(level)


def patched_attributes(paths):
    """Every attribute of `paths`, as the raw object in its owner's dict."""
    import importlib

    found = {}
    for path in paths:
        module, _, rest = path.partition(":")
        owner = importlib.import_module(module)
        *holders, name = rest.split(".")
        for holder in holders:
            owner = getattr(owner, holder)
        found[path] = owner.__dict__[name]
    return found


HOOKED = [
    "torch._inductor.compile_fx:compile_fx",
    "torch._inductor.compile_fx:_recursive_pre_grad_passes",
    "torch._inductor.compile_fx:_InProcessFxCompile.codegen_and_compile",
    "torch._inductor.compile_fx:_recursive_joint_graph_passes",
    "torch._inductor.compile_fx:partition_fn",
    "torch._inductor.compile_fx:_recursive_post_grad_passes",
    "torch._inductor.graph:GraphLowering._update_scheduler",
    "torch._inductor.debug:log_ir_post_fusion",
    "torch._inductor.debug:set_kernel_post_grad_provenance_tracing",
    "torch._inductor.codegen.cpp:set_kernel_post_grad_provenance_tracing",
    "torch._inductor.codegen.triton:set_kernel_post_grad_provenance_tracing",
    "torch._inductor.ir:get_kernel_metadata",
    "torch._inductor.codegen.triton:get_kernel_metadata",
    "torch._inductor.codegen.wrapper:PythonWrapperCodegen.define_kernel",
    "torch._inductor.scheduler:Scheduler.codegen_extern_call",
    "torch._inductor.graph:GraphLowering._compile_to_module_lines",
    "kerntrail.spyre.passes:CustomPreGradPasses.__call__",
    "kerntrail.spyre.passes:CustomPostPasses.__call__",
    "kerntrail.spyre.passes:CustomPreSchedulingPasses.__call__",
    "kerntrail.spyre.spyre_kernel:SpyreKernel.create_op_spec",
    "kerntrail.spyre.scheduling:SuperDSCScheduling.define_kernel",
    "kerntrail.spyre.async_compile:get_output_dir",
    "kerntrail.spyre.backend:fall_back",
]
# Also at the levels above borders.
PASS_HOOKED = [
    "kerntrail.spyre.provenance:SpyreGraphTransformObserver.__enter__",
    "kerntrail.spyre.provenance:SpyreGraphTransformObserver.__exit__",
    "kerntrail.spyre.provenance:_append_transform",
    "torch._inductor.ir:Buffer.__post_init__",
    "torch.fx.passes.graph_transform_observer:GraphTransformObserver.__enter__",
    "torch.fx.passes.graph_transform_observer:GraphTransformObserver.__exit__",
    "torch.fx.passes.graph_transform_observer:GraphTransformObserver.apply_gm_pass",
    "torch.fx.passes.graph_transform_observer:GraphTransformObserver.apply_graph_pass",
    "torch._inductor.compile_fx:view_to_reshape",
    "torch._inductor.compile_fx:fake_tensor_prop",
    "torch._inductor.fx_passes.joint_graph:canonicalize_aten_ir_passes",
    "torch._inductor.freezing:freeze",
    "torch._inductor.freezing:freezing_passes",
    "torch._inductor.freezing:constant_fold",
    "torch.fx:Graph.create_node",
    "torch.fx:Graph.node_copy",
    "torch.fx:Interpreter.run_node",
    "torch.fx:Node.replace_all_uses_with",
    "torch._inductor.pattern_matcher:LoweringPatternEntry.apply",
    "torch._inductor.pattern_matcher:GraphPatternEntry.apply",
    "torch._inductor.pattern_matcher:ReplacementPatternEntry.apply",
    "kerntrail.spyre.async_compile:read_op_specs",
    "kerntrail.spyre.async_compile:SpyreAsyncCompile.sdsc",
]


# At level truth only.
TRUTH_HOOKS = [
    "torch._inductor.graph:GraphLowering.run_node",
    "torch._inductor.ir:IRNode.__post_init__",
    "torch._inductor.ir:Pointwise.store_output",
    "torch._inductor.ir:Scatter.store_output",
    "torch._inductor.ir:Reduction.store_reduction",
    "torch._inductor.ir:MultiOutputReduction.store_reduction",
    "torch._inductor.ir:Scan.store_reduction",
    "torch._inductor.ir:Sort.store_reduction",
    "torch._inductor.index_propagation:IndexPropVar.__post_init__",
    "torch._inductor.index_propagation:IndexPropagation.unwrap",
    "torch._inductor.utils:IndentedBuffer.writeline",
    "torch._inductor.utils:IndentedBuffer.splice",
    "torch._inductor.utils:IndentedBuffer.__add__",
    "torch._inductor.utils:IndentedBuffer.getvaluewithlinemap",
    "torch._inductor.codegen.common:CSE.generate",
    "torch._inductor.codegen.cpp:move_code_under_inner_loop",
    "torch._inductor.utils:IndentedBuffer.map",
    "torch._inductor.codegen.triton_combo_kernel:ComboKernel.uniquify_block_sizes",
    "torch._inductor.codegen.simd:SIMDScheduling.codegen_combo_kernel",
    "torch._inductor.codegen.triton:TritonKernel._filter_pdl",
    "torch._inductor.codegen.cpp:CppKernel._gen_reduction_prefix",
    "torch._inductor.codegen.cpp:CppKernel.finalize_reduction_prefix",
    "torch._inductor.codegen.triton:TritonKernel.codegen_iteration_ranges_entry",
    "kerntrail.spyre.spyre_kernel:OpsRecorder.load",
    "kerntrail.spyre.spyre_kernel:OpsRecorder.constant",
    "kerntrail.spyre.spyre_kernel:OpsRecorder._default",
    "kerntrail.spyre.ir_passes:_again",
    "kerntrail.spyre.ir_passes:_with_body",
    "kerntrail.spyre.ir_passes:_insert_before",
    "kerntrail.spyre.ir_passes:_redirect",
]


@pytest.mark.parametrize("level", ["borders", "passes", "origins", "truth"])
def test_everything_is_put_back_by_identity_also_after_a_raise(tmp_path, level):
    hooked = HOOKED if level == "borders" else HOOKED + PASS_HOOKED + (TRUTH_HOOKS if level == "truth" else [])
    originals = patched_attributes(HOOKED + PASS_HOOKED + TRUTH_HOOKS)
    with pytest.raises(RuntimeError, match="on purpose"):
        with kerntrail.capture(tmp_path / "c.ndjson", level=level) as capture:
            now = patched_attributes(HOOKED + PASS_HOOKED + TRUTH_HOOKS)
            assert {path for path, original in originals.items() if now[path] is not original} == set(hooked)
            assert sorted(hook["attribute"] for hook in capture.hooks) == sorted(path.replace(":", ".") for path in hooked)

            def refuse(gm):
                raise RuntimeError("on purpose")

            with inductor.patch(post_grad_custom_post_pass=refuse):
                compile_and_run(Mlp().eval(), torch.randn(3, 8))
    assert all(value is originals[path] for path, value in patched_attributes(HOOKED + PASS_HOOKED + TRUTH_HOOKS).items())
    view = CaptureView(tmp_path / "c.ndjson")
    assert "on purpose" in view.notes("compile-raised")[0]["text"]
    assert all(hook.get("restored", True) for hook in view.of("hook"))


def test_hooks_look_like_the_originals(tmp_path):
    import functools
    import inspect

    import torch._inductor.compile_fx as compile_fx

    original = inspect.signature(compile_fx.compile_fx)
    with kerntrail.capture(tmp_path / "c.ndjson"):
        assert inspect.signature(compile_fx.compile_fx) == original
        assert compile_fx.compile_fx.__name__ == "compile_fx"

        @functools.wraps(compile_fx.compile_fx)
        def wrapped(*args, **kwargs):
            return compile_fx.compile_fx(*args, **kwargs)

        assert wrapped.__qualname__ == "compile_fx"


LABELS = [
    "torch._inductor.compile_fx.compile_fx",
    "torch._inductor.compile_fx._recursive_pre_grad_passes",
    "torch._inductor.compile_fx._InProcessFxCompile.codegen_and_compile",
    "torch._inductor.compile_fx._recursive_post_grad_passes",
    "torch._inductor.graph.GraphLowering._update_scheduler",
    "torch._inductor.debug.log_ir_post_fusion",
    "torch._inductor.debug.set_kernel_post_grad_provenance_tracing",
    "torch._inductor.codegen.cpp.set_kernel_post_grad_provenance_tracing",
    "torch._inductor.ir.Buffer.__post_init__",
    "torch._inductor.ir.get_kernel_metadata",
    "torch._inductor.codegen.wrapper.PythonWrapperCodegen.define_kernel",
    "torch._inductor.scheduler.Scheduler.codegen_extern_call",
    "torch._inductor.graph.GraphLowering._compile_to_module_lines",
]
SPYRE_LABELS = ["stage2_pre_grad", "stage2_post_grad", "stage3_looplevel_prepass", "pre_scheduling_pass_begin", "pre_scheduling_pass_end",
                "stage5_opspec", "stage6_define_kernel", "stage6_output_dir"]


def check_failing_hook(tmp_path, run_kerntrail, label, when, model, x, backend):
    expected_code, expected = generated_code(model, x, backend=backend)
    torch._dynamo.reset()
    path = tmp_path / "c.ndjson"
    capture = open_capture(path, fail=[(label, when)])
    try:
        code, result = generated_code(model, x, backend=backend)
        torch._dynamo.reset()
        compile_and_run(Broken().eval(), torch.randn(2, 8))  # what comes later is still right
    finally:
        capture.close()
    assert code == expected_code and torch.equal(result, expected)
    view = CaptureView(path)
    hook = view.hook(label)
    assert hook["fired"] >= 1 and hook["errors"] >= 1 and "by a test" in hook["last_error"]
    assert view.end["status"] == "partial" and capture.is_partial
    checked = run_kerntrail("validate", path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return view


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("label", LABELS)
def test_a_failing_hook_changes_nothing(tmp_path, run_kerntrail, label, when):
    view = check_failing_hook(tmp_path, run_kerntrail, label, when, Mlp().eval(), torch.randn(3, 8), "inductor")
    last = list(view.compiles)[-1]
    assert view.compiles, "a compile begins at its first stage even where the entry hook failed"
    if "pre_grad" not in label and "post_grad_passes" not in label and not label.endswith("compile_fx.compile_fx"):
        assert "sigmoid" in view.names("fx_post_grad", compile_id=last)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("label", SPYRE_LABELS)
def test_a_failing_hook_on_our_back_end_changes_nothing(tmp_path, run_kerntrail, label, when):
    view = check_failing_hook(tmp_path, run_kerntrail, label, when, Mlp().eval(), torch.randn(3, 8), "kerntrail_spyre")
    names = view.names("fx_post_grad", compile_id="c0")
    assert {"mm_default", "add_tensor", "relu"} <= set(names)


def test_captures_do_not_nest(tmp_path):
    with kerntrail.capture(tmp_path / "a.ndjson"):
        with pytest.raises(RuntimeError, match=r"already open, writing .*a\.ndjson"):
            with kerntrail.capture(tmp_path / "b.ndjson"):
                pass
    assert not (tmp_path / "b.ndjson").exists()
    with kerntrail.capture(tmp_path / "b.ndjson"):  # after the first one it works again
        pass


def test_an_existing_file_is_not_overwritten_unasked(tmp_path):
    path = tmp_path / "c.ndjson"
    path.write_text("precious")
    with pytest.raises(OSError, match="c.ndjson"):
        with kerntrail.capture(path):
            pass
    assert path.read_text() == "precious"
    with kerntrail.capture(path, replace=True):
        pass
    assert CaptureView(path).end is not None


@pytest.mark.parametrize(("options", "message"), [({"level": "everything"}, "borders"), ({"source": "all"}, "files")])
def test_unknown_options_are_named(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        with kerntrail.capture(tmp_path / "c.ndjson", **options):
            pass


def test_a_block_that_compiles_nothing_says_so(tmp_path):
    with kerntrail.capture(tmp_path / "c.ndjson"):
        torch.ones(3).sum()
    view = CaptureView(tmp_path / "c.ndjson")
    assert len(view.notes("no-compile")) == 1 and view.end["status"] == "complete"


def test_compiles_in_threads_are_kept_apart(tmp_path):
    # Widths of this test alone: a config patch of the fixture holds in its own thread only, caches are on in others.
    models = [Mlp(width=width).eval() for width in (11, 13, 17)]
    with kerntrail.capture(tmp_path / "c.ndjson"):
        threads = [threading.Thread(target=compile_and_run, args=(model, torch.randn(3, 8))) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    view = CaptureView(tmp_path / "c.ndjson")
    widths = set()
    for compile_id in view.compiles:
        post = view.at("fx_post_grad", compile_id=compile_id)
        shapes = {row["type"]["shape"][1] for row in post if row["name"] == "addmm"}
        assert len(shapes) == 1
        widths |= shapes
    assert widths == {11, 13, 17}


def test_forked_children_do_not_write(tmp_path):
    import os

    path = tmp_path / "c.ndjson"
    with kerntrail.capture(path):
        child = os.fork()
        if child == 0:
            import kerntrail._capture as state

            os._exit(0 if state._open is None else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        compile_and_run(Mlp().eval(), torch.randn(3, 8))
    assert CaptureView(path).end["status"] == "complete"


def test_user_source_lines_are_embedded_and_library_files_are_not(tmp_path):
    for mode, wanted in (("none", 0), ("lines", 1), ("files", 1)):
        torch._dynamo.reset()
        path = tmp_path / f"{mode}.ndjson"
        with kerntrail.capture(path, source=mode):
            compile_and_run(Mlp().eval(), torch.randn(3, 8))
        sources = CaptureView(path).of("source")
        assert len(sources) == wanted
        for source in sources:
            assert source["file"].endswith("test_probe.py") and len(source["sha256"]) == 64
            assert any("y = self.a(x)" in line for line in source["lines"].values())
            assert ("1" in source["lines"]) == (mode == "files")


def test_no_object_id_is_written(tmp_path):
    """Dynamo keys module stacks by id(), with "@n" behind it from a module's second call on."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            return self.layer(torch.relu(self.layer(x)))

    with kerntrail.capture(tmp_path / "c.ndjson"):
        compile_and_run(Twice().eval(), torch.randn(2, 8))
    text = (tmp_path / "c.ndjson").read_text()
    assert not re.search(r"\d{12,}", re.sub(r'"(sha256|digest)":"[^"]*"', "", text))
    keys = {entry["key"] for row in CaptureView(tmp_path / "c.ndjson").at("fx_pre_grad") for entry in row.get("nn_module_stack") or []}
    assert {"id0", "id0@1"} <= keys


def test_a_compile_in_flight_at_the_end_is_said_to_be_unfinished(tmp_path):
    started, release = threading.Event(), threading.Event()

    def slow(graph):
        started.set()
        release.wait(60)

    def work():
        with inductor.patch(force_disable_caches=True, post_grad_custom_post_pass=slow):
            compile_and_run(Mlp(width=19).eval(), torch.randn(3, 8))

    thread = threading.Thread(target=work)
    with kerntrail.capture(tmp_path / "c.ndjson") as capture:
        thread.start()
        assert started.wait(120)
    release.set()
    thread.join()  # the hooked calls return after their session was closed
    view = CaptureView(tmp_path / "c.ndjson")
    assert len(view.notes("compile-not-finished")) == 1 and view.end["status"] == "partial" and capture.is_partial
    with kerntrail.capture(tmp_path / "d.ndjson"):  # nothing of it is left for the next capture
        compile_and_run(Mlp().eval(), torch.randn(3, 8))
    assert list(CaptureView(tmp_path / "d.ndjson").compiles) == ["c0"]


def test_a_compile_fx_imported_before_the_capture_is_captured_all_the_same(tmp_path):
    from torch._inductor.compile_fx import compile_fx  # bound before the hook: the entry is not seen

    def backend(gm, inputs):
        return compile_fx(gm, inputs)

    with kerntrail.capture(tmp_path / "c.ndjson"):
        first = torch.compile(Mlp(), backend=backend)(torch.randn(3, 8)).sum()
        torch._dynamo.reset()
        second = torch.compile(Mlp(width=24), backend=backend)(torch.randn(3, 8)).sum()
        first.backward()
        second.backward()
    view = CaptureView(tmp_path / "c.ndjson")
    assert list(view.compiles) == ["c0", "c1"]
    for compile_id, width in (("c0", 16), ("c1", 24)):  # each lazy backward is with its own forward
        assert view.at("fx_post_grad", compile_id=compile_id, direction="forward")
        shapes = [row["type"]["shape"] for row in view.at("fx_post_grad", compile_id=compile_id, direction="backward") if row.get("type")]
        assert any(width in shape for shape in shapes), (compile_id, shapes)


def test_hostile_metadata_costs_its_own_attr_only(tmp_path):
    class Raising(list):
        def __iter__(self):
            raise RuntimeError("hostile")

    def poison(graph):
        for node in graph.nodes:
            if node.op == "call_function":
                node.meta["source_fn_stack"] = Raising([1])
                node.meta["nn_module_stack"] = {"k": "\ud800"}

    with kerntrail.capture(tmp_path / "c.ndjson"), inductor.patch(post_grad_custom_post_pass=poison):
        compile_and_run(Mlp().eval(), torch.randn(3, 8))
    view = CaptureView(tmp_path / "c.ndjson")
    rows = view.at("fx_post_grad")
    assert rows and all(row["states"]["stack_trace"] == "present" for row in rows)
    assert view.end["status"] == "complete"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failing_hook_on_the_way_to_stock_changes_nothing(tmp_path, run_kerntrail, when):
    class Soft(nn.Module):  # softmax has no OpSpec: the graph goes to stock Inductor
        def forward(self, x):
            return torch.softmax(x, -1)

    check_failing_hook(tmp_path, run_kerntrail, "kerntrail.spyre.backend.fall_back", when, Soft().eval(), torch.randn(3, 8), "kerntrail_spyre")
