"""Level truth: which node each operation and each line of each kernel is for, found without reading `origins`."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
from capture_view import CaptureView  # noqa: E402
from recipes import RECIPES  # noqa: E402
from test_probe import TRUTH_HOOKS  # noqa: E402
from test_recipes import assert_same, hook_table, run_captured, run_compiled  # noqa: E402, F401
from torch import nn  # noqa: E402
from witness_shapes import SHAPES, generated, inputs_of  # noqa: E402
from witness_view import Line, Share, Use, uses  # noqa: E402

from kerntrail._capture import open_capture  # noqa: E402

HERE = Path(__file__).parent
WANTED = 0.995  # share of lines and operations that have exactly one source
BY_NAME = {recipe.name: recipe for recipe in RECIPES}
# Fused loops, reductions, random numbers, masks and indirect indices, scatter, fallbacks with several results,
# sub-graphs, a while loop, in-place buffers, foreach kernels.
COVERING = ["mlp_training", "dropout", "cnn_training", "embedding", "experts", "several_outputs", "custom_ops",
            "conditional_training", "loop", "decode_step"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_hooks_that_throw_change_nothing(tmp_path, run_kerntrail, when):
    """Each of the level's own, all at once."""
    recipe, path = BY_NAME["several_outputs"], tmp_path / "c.ndjson"
    plain = run_compiled(recipe, 1)
    labels = [path.replace(":", ".") for path in TRUTH_HOOKS]
    capture = open_capture(path, level="truth", fail=[(label, when) for label in labels])
    try:
        seen = run_compiled(recipe, 1)
    finally:
        capture.close()
    assert_same(recipe, plain, seen)
    fired = {hook["label"]: hook for hook in capture.hooks if hook["label"] in labels and hook["fired"]}
    assert {"torch._inductor.utils.IndentedBuffer.splice", "torch._inductor.ir.IRNode.__post_init__"} <= set(fired)
    assert all(hook["errors"] and hook["restored"] for hook in fired.values()) and capture.is_partial
    assert run_kerntrail("validate", path).returncode == 0


def check_share(view: CaptureView, what: str) -> Share:
    share = Share()
    for use in uses(view):
        share.add(use)
    print(f"{what}: {share}")
    assert share.part(share.lines) >= WANTED and share.part(share.ops) >= WANTED, str(share)
    assert not share.contradictions
    return share


@pytest.mark.parametrize("name", COVERING)
def test_every_operation_has_one_node_and_the_code_is_the_same(name, tmp_path, run_kerntrail):
    recipe, path = BY_NAME[name], tmp_path / "truth.ndjson"
    plain = run_compiled(recipe, 1)
    assert_same(recipe, plain, run_captured(recipe, "truth", 1, path))
    validated = run_kerntrail("validate", path)
    assert validated.returncode == 0, validated.stdout + validated.stderr
    view = CaptureView(path)
    assert view.end["status"] == "complete"
    share = check_share(view, name)
    assert share.ops
    # The compiler's claims never lack what the witness has seen; the other way round they may say too much.
    claimed = {claim["kernel"]: set(claim["units"]) for claim in view.of("claim") if claim["evidence"] == "origins"}
    for snapshot in view.snapshots:
        for unit, attrs in snapshot["units"].items() if snapshot["stage"] == "kernel" else ():
            if attrs["witness"]["state"] == "present" and unit in claimed:  # not so what torch did not register
                assert set(attrs["witness"].get("refs", [])) <= claimed[unit]


def witnessed(tmp_path: Path, function, *inputs, **config) -> list[Use]:
    torch._dynamo.reset()
    path = tmp_path / "c.ndjson"
    with torch.no_grad(), inductor.patch({"force_disable_caches": True, **config}):
        capture = open_capture(path, level="truth", replace=True)
        try:
            torch.compile(function)(*inputs)
        finally:
            capture.close()
    assert not [hook for hook in capture.hooks if hook["errors"]]
    return list(uses(CaptureView(path)))


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_cpp_code(name, tmp_path, run_kerntrail):
    function, config = SHAPES[name]
    share = check_share(generated(tmp_path / "c.ndjson", function, *inputs_of(function), **config), name)
    assert share.ops and (share.lines or name == "cpp_wrapper")
    assert run_kerntrail("validate", tmp_path / "c.ndjson").returncode == 0


def said(lines: list[Line], does: str) -> list[tuple[str, str]]:
    """(op, node) of the lines that do this, without repetition, in order."""
    return list(dict.fromkeys((line.op, line.node) for line in lines if line.does == does))


def test_each_line_names_the_node_that_asked_for_it(tmp_path):
    (use,) = witnessed(tmp_path, lambda x, y: (torch.sin(x) + y * 2).sum(-1), torch.randn(8, 16), torch.randn(8, 16))
    assert said(use.lines, "load") == [("load", "sin"), ("load", "mul")]
    assert said(use.lines, "constant") == [("constant", "mul")]
    assert said(use.lines, "compute") == [("reduction", "sum_1"), ("sin", "sin"), ("mul", "mul"), ("add", "add")]
    assert said(use.lines, "store") == [("store_reduction", "sum_1")]
    assert use.computes() == {"sin": {"sin"}, "mul": {"mul"}, "add": {"add"}, "sum_1": {"reduction"}}


def test_what_was_removed_is_not_there(tmp_path):
    """The compiler names the kernel after the addition of zeros and claims both nodes; only sin is in it."""
    (use,) = witnessed(tmp_path, lambda x: torch.sin(x) + torch.zeros(16), torch.randn(16))
    assert use.computes() == {"sin": {"sin"}}
    assert {line.node for line in use.operations()} == {"sin"}


def test_one_text_in_two_nests_is_told_apart(tmp_path):
    """Numbers of variables begin anew in each loop nest, so that lines of different nodes read alike."""
    (use,) = witnessed(tmp_path, lambda x, y: (x * x, y * y), torch.randn(16), torch.randn(40))
    alike = [line for line in use.lines if line.does == "compute" and line.text == "auto tmp1 = tmp0 * tmp0;"]
    assert {line.node for line in alike} == {"mul", "mul_1"}


def test_a_copy_moves_and_its_source_computes(tmp_path):
    (use,) = witnessed(tmp_path, lambda x: torch.sin(x).t().contiguous(), torch.randn(4, 8))
    assert use.computes() == {"sin": {"sin"}}
    assert said(use.lines, "store") == [("store", "clone")]


def test_masked_blocks_and_indices(tmp_path):
    (use,) = witnessed(tmp_path, lambda x: torch.nn.functional.pad(torch.cos(x), (1, 2), value=3.0), torch.randn(4, 8))
    computed = use.computes()
    assert computed["cos"] == {"cos"} and set(computed) == {"cos", "constant_pad_nd"}
    assert {line.node for line in use.lines if line.op == "cos"} == {"cos"}


def test_casts_of_the_code_generator_are_the_compilers(tmp_path):
    """bfloat16 is computed in float: no lowering asked for the conversions."""
    x = torch.randn(8, 64).bfloat16()
    (use,) = witnessed(tmp_path, lambda x: torch.relu(x + x), x)
    made = [line for line in use.lines if line.does == "compiler_made"]
    assert made and {line.op for line in made} == {"to_dtype"} and not any(line.node for line in made)
    assert {line.made["file"] for line in made} == {"torch/_inductor/codegen/cpp.py"}
    assert all(line.made["line"] > 0 and line.made["function"] for line in made)
    assert said(use.lines, "compute") == [("add", "add"), ("relu", "relu")]


def test_templates_are_known_by_what_they_were_lowered_from(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU()).eval()
    found = witnessed(tmp_path, model, torch.randn(64, 64), freezing=True, max_autotune=True, max_autotune_gemm_backends="CPP")
    templates = [use for use in found if use.kernel_class == "template"]
    if not templates:
        pytest.skip("no template fits this processor")
    for use in templates:
        assert set(use.lowered.values()) == {"_mkl_linear"}
    assert any("erf" in computed for use in found for computed in use.computes().values())


def test_several_results_of_one_fallback_have_one_node(tmp_path):
    found = witnessed(tmp_path, lambda x: torch.topk(torch.sin(x), 2), torch.randn(4, 8))
    (fallback,) = [use for use in found if use.kernel_class == "fallback"]
    assert set(fallback.lowered.values()) == {"topk"}


def test_branches_are_told_apart(tmp_path):
    def choose(x):
        return torch.cond(x.sum() > 0, lambda v: torch.sin(v), lambda v: torch.cos(v), (x,))

    computed = [use.computes() for use in witnessed(tmp_path, choose, torch.randn(8))]
    assert {"sin": {"sin"}} in computed and {"cos": {"cos"}} in computed


@pytest.mark.parametrize("case", [("cpu", "scans", "inference"), ("cuda", "mlp", "training"), ("cuda", "softmax", "inference")],
                         ids="-".join)
def test_triton(case, tmp_path, run_kerntrail):
    if find_spec("triton") is None:
        pytest.skip("triton is not installed (requirements/test.txt has it)")
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run([sys.executable, "-m", "triton_fixtures.run", *case, "0", str(tmp_path), "truth"], cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert result["before"] == result["during"] == result["after"]
    assert run_kerntrail("validate", tmp_path / "capture.ndjson").returncode == 0
    view = CaptureView(tmp_path / "capture.ndjson")
    check_share(view, "-".join(case))
    loops = [use for use in uses(view) if use.kernel_class == "loop"]
    shared = [line for use in loops for line in use.lines if line.shared]
    assert shared and all(line.does == "index" and not line.node for line in shared)
    if case[1] == "scans":
        ops = {(op, node) for use in loops for body in use.bodies.values() for op, node in body}
        assert {("sort", "sort"), ("mul", "mul"), ("reduction", "sum_1"), ("sin", "sin")} <= ops
        by_text = {line.text.partition(" = ")[2]: line.node for use in loops for line in use.lines if line.node}
        assert {node for text, node in by_text.items() if text.startswith("triton_helpers.sort_with_index")} == {"sort"}
        assert {node for text, node in by_text.items() if text.startswith("tl.associative_scan")} == {"cumsum"}
        assert by_text["arg0_0 + arg1_0"] == "cumsum"  # in a function of its own, above the kernel


@pytest.fixture(scope="module")
def triton_shapes(tmp_path_factory) -> Path:
    if find_spec("triton") is None:
        pytest.skip("triton is not installed (requirements/test.txt has it)")
    folder = tmp_path_factory.mktemp("shapes")
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run([sys.executable, "-m", "triton_fixtures.shapes", str(folder)], cwd=folder,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


TRITON_SHAPES = ["combo", "combo_blocks", "alternatives", "dependent_launches", "cooperative", "block_pointers", "template",
                 "chosen", "chosen_extern", "split_product", "flex"]


@pytest.mark.parametrize("name", TRITON_SHAPES)
def test_shapes_of_triton_code(name, triton_shapes, run_kerntrail):
    path = triton_shapes / f"{name}.ndjson"
    assert run_kerntrail("validate", path).returncode == 0
    view = CaptureView(path)
    assert check_share(view, name).ops
    found = list(uses(view))
    computed = [{line.node for line in use.lines if line.does == "compute"} for use in found]
    if name.startswith("combo"):
        # All parts are registered for each of the kernels; each has its own.
        assert len(found) > 1 and all(use.lines for use in found)
        assert not set.intersection(*(set(use.bodies) for use in found))
    if name == "alternatives":
        one, other, chooser = found if found[0].kernel_class == "alternative" else found[1:] + found[:1]
        assert one.kernel_class == other.kernel_class == "alternative" and not chooser.lines
        assert set(one.bodies) == set(other.bodies) == set(chooser.bodies)
        assert {line.node for line in one.lines if line.node} == {line.node for line in other.lines if line.node}
    if name in ("template", "chosen"):
        (use,) = [use for use in found if use.kernel_class == "template"]
        assert set(use.lowered.values()) == {"mm"}
        assert {"relu", "relu_1", "mul", "add"} == {line.node for line in use.lines if line.does == "compute"} | {
            line.node for line in use.lines if line.op == "constant"}
    if name == "chosen_extern":
        assert {"mm"} in [set(use.lowered.values()) for use in found]
    if name == "flex":
        assert {"ge", "mul", "where", "tanh", "add"} <= set.union(*computed)
