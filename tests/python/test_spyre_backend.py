"""The Spyre-format back end: the reference model, numerics against eager, seams, and that stock compiles stay untouched."""

from __future__ import annotations

import importlib.util
import itertools
import json
import pathlib
import threading

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from torch import nn
from torch._inductor import config as inductor_config
from torch._inductor.utils import run_and_get_code
from torch.nn import functional as F

from kerntrail import _native
from kerntrail.spyre import async_compile, backend, passes, scheduling, spyre_kernel
from kerntrail.spyre.op_spec import OpSpec

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "reference_mlp.py"
SEED_POST_GRAD = ["permute", "mm_default_1", "add_tensor_1", "relu", "permute_1", "mm_default", "add_tensor"]
FX_FIELDS = ("stack_trace", "nn_module_stack", "source_fn_stack", "original_aten", "from_node")


@pytest.fixture(autouse=True)
def private_cache(tmp_path_factory, monkeypatch):
    """Every test compiles from scratch, below a directory of its own."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def load_module(path: pathlib.Path):
    spec = importlib.util.spec_from_file_location("loaded_for_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Watcher:
    """Wraps the seams as an outsider does and keeps plain copies of what passed."""

    def __init__(self, monkeypatch):
        self.pre_grad, self.before_post, self.after_post, self.ops_before, self.ops_after = [], [], [], [], []
        self.specs, self.kernels, self.directories, self.fall_backs = [], [], {}, []
        self._wrap(monkeypatch, passes.CustomPreGradPasses, "__call__",
                   before=lambda _, graph: self.pre_grad.extend(self.nodes(graph)))
        self._wrap(monkeypatch, passes.CustomPostPasses, "__call__",
                   before=lambda _, graph: self.before_post.extend(self.nodes(graph)),
                   after=lambda _r, _, graph: self.after_post.extend(self.nodes(graph)))
        self._wrap(monkeypatch, passes.CustomPreSchedulingPasses, "__call__",
                   before=lambda _, graph: self.ops_before.extend(self.operations(graph)),
                   after=lambda _r, _, graph: self.ops_after.extend(self.operations(graph)))
        self._wrap(monkeypatch, spyre_kernel.SpyreKernel, "create_op_spec",
                   after=lambda spec, kernel, *_: self.specs.append((kernel.current_node.node.get_operation_name(), spec)))
        self._wrap(monkeypatch, scheduling.SuperDSCScheduling, "define_kernel",
                   after=lambda name, _, source, nodes, kernel: self.kernels.append((name, source, len(nodes))))
        self._wrap(monkeypatch, async_compile, "get_output_dir",
                   after=lambda directory, name: self.directories.__setitem__(name, directory))
        self._wrap(monkeypatch, backend, "fall_back", before=lambda reasons, *_: self.fall_backs.append(reasons))

    @staticmethod
    def _wrap(monkeypatch, owner, name, before=None, after=None):
        original = getattr(owner, name)

        def hook(*args, **kwargs):
            if before:
                before(*args)
            result = original(*args, **kwargs)
            if after:
                after(result, *args)
            return result

        monkeypatch.setattr(owner, name, hook)

    @staticmethod
    def nodes(graph):
        return [(n.name, str(n.target), dict(n.meta)) for n in graph.nodes if n.op not in ("placeholder", "output")]

    @staticmethod
    def operations(graph):
        return [
            {
                "name": op.get_operation_name(),
                "origins": sorted(n.name for n in op.origins),
                "origin_node": op.origin_node.name if op.origin_node else None,
                "traceback": op.traceback,
                "has_traces": bool(op.get_stack_traces()),
                "attributes": sorted(k for k in vars(op) if not k.startswith("_")),
            }
            for op in graph.operations
        ]

    def counts(self):
        return [sum(bool(meta.get(field)) for _, _, meta in self.after_post) for field in FX_FIELDS]


@pytest.fixture
def watcher(monkeypatch):
    return Watcher(monkeypatch)


def run_reference(rule):
    torch.manual_seed(0)
    model = load_module(EXAMPLE).SimpleMLP(128, 256, 128).half().eval()
    x = torch.randn(2, 128, dtype=torch.float16)
    compiled = torch.compile(model, backend="kerntrail_spyre", options={"metadata": rule, "generation": "july"})
    with torch.no_grad():
        result, code = run_and_get_code(compiled, x)
        return model(x), result, code


def close(actual, expected, steps):
    """Both sides round after every operation, so each step may differ by a few units in the last place of the largest
    value; matrix products differ in the order of summation only."""
    unit = torch.finfo(expected.dtype).eps
    scale = max(1.0, expected.abs().max().item())
    error = (actual.double() - expected.double()).abs().max().item()
    assert error <= 4 * unit * steps * scale, (error, unit * scale)


# -- the reference model ----------------------------------------------------------------------------------------------


def test_reference_model_under_rule_seed(watcher):
    expected, result, code = run_reference("seed")
    close(result, expected, steps=5)
    assert watcher.fall_backs == []
    assert [name for name, _, _ in watcher.pre_grad] == ["x", "x_1", "x_2"]
    assert [name for name, _, _ in watcher.before_post] == SEED_POST_GRAD
    assert [name for name, _, _ in watcher.after_post] == SEED_POST_GRAD
    assert watcher.counts() == [3, 2, 3, 7, 3]
    assert sorted({key for _, _, meta in watcher.after_post for key in meta} - {"mutation_region_id"}) == [
        "from_node", "nn_module_stack", "original_aten", "seq_nr", "source_fn_stack", "stack_trace", "tensor_meta", "val"]
    assert [op["origins"] for op in watcher.ops_before] == [
        ["mm_default_1", "permute"], ["add_tensor_1"], ["relu"], ["mm_default", "permute_1"], ["add_tensor"]]
    assert [op["origin_node"] for op in watcher.ops_before] == ["mm_default_1", "add_tensor_1", "relu", "mm_default", "add_tensor"]
    assert [op["has_traces"] for op in watcher.ops_after] == [True, False, True, True, False]
    plain = {"annotations", "data", "layout", "name", "operation_name", "origin_node", "origins", "traceback"}
    assert all(set(op["attributes"]) - {"stream_idx"} == plain for op in watcher.ops_before)
    assert all(set(op["attributes"]) - {"stream_idx"} == plain | {"dim_hints", "op_it_space_splits"} for op in watcher.ops_after)
    assert [(name, spec.op) for name, spec in watcher.specs] == [
        ("op0", "batchmatmul"), ("op1", "add"), ("op2", "relufwd"), ("op3", "batchmatmul"), ("op4", "add")]


def test_reference_model_handles_and_kernel(watcher):
    _, _, code = run_reference("seed")
    handles = [spec.debug_handle for _, spec in watcher.specs]
    assert (handles[1].id, handles[4].id) == (605170506422197115, 6208522288796453179)
    assert (handles[1].source, handles[4].source) == (None, None)
    assert [h.source and h.source.start_line for h in handles] == [25, None, 26, 27, None]
    first = handles[0]
    assert first.aten_op == "aten.addmm.default"
    assert [(c.aten_op, c.source and c.source.start_line) for c in first.fused_from] == [
        ("aten.addmm.default", None), ("aten.linear.default", 25)]
    assert first.ir_chain == ("mm_default_1", "permute", "buf0")
    (name, source, nodes), = watcher.kernels
    assert (name, nodes) == ("sdsc_fused_addmm_linear_relu_0", 5)
    assert ("# Topologically Sorted Source Nodes: [x, x_1, x_2], "
            "Original ATen: [aten.linear, aten.addmm, aten.relu]\n") in code[0]
    directory = pathlib.Path(watcher.directories[name])
    assert directory.parent.name == "inductor-spyre"
    assert len(directory.name) == len(name) + 9 and directory.name.startswith(name + "_")
    files = sorted(p.name for p in directory.iterdir())
    assert files == ["bundle.mlir", *(f"sdsc_{i}.json" for i in range(5))]
    for i, (_, spec) in enumerate(watcher.specs):
        (key, body), = json.loads((directory / f"sdsc_{i}.json").read_text()).items()
        assert key == f"{i}_{spec.op}"
        assert next(iter(body)) == "debug_handle_"
        assert body["debug_handle_"] == spec.debug_handle.to_dict()


def test_reference_model_under_rule_full(watcher):
    expected, result, _ = run_reference("full")
    close(result, expected, steps=5)
    assert [name for name, _, _ in watcher.after_post] == SEED_POST_GRAD
    assert watcher.counts() == [7, 6, 7, 7, 7]
    assert all(op["has_traces"] for op in watcher.ops_after)
    assert [spec.debug_handle.source.start_line for _, spec in watcher.specs] == [25, 25, 26, 27, 27]


def test_default_rule_is_full_and_can_be_set_by_the_caller(watcher):
    model = load_module(EXAMPLE).SimpleMLP(4, 4, 4).eval()
    with torch.no_grad():
        torch.compile(model, backend="kerntrail_spyre")(torch.ones(2, 4))
    assert all(spec.debug_handle.source for _, spec in watcher.specs)
    watcher.specs.clear()
    torch._dynamo.reset()
    token = backend.default_metadata.set("seed")
    try:
        with torch.no_grad():
            torch.compile(model, backend="kerntrail_spyre")(torch.ones(2, 4))
    finally:
        backend.default_metadata.reset(token)
    assert [spec.debug_handle.source is None for _, spec in watcher.specs] == [False, True, False, False, True]


def test_op_spec_declares_exactly_these_fields():
    assert list(OpSpec.__dataclass_fields__) == [
        "op", "is_reduction", "iteration_space", "args", "op_info", "tiled_symbols", "symbolic_dim_bounds", "debug_handle"]


@pytest.mark.parametrize("options, message", [
    ({"metadta": "seed"}, "Unexpected optimization option metadta, known options are"),
    ({"metadata": "most"}, "Unexpected value 'most' of option metadata, known values are"),
    ({"generation": "june"}, "Unexpected value 'june' of option generation"),
    ({"restickify": "yes"}, "Unexpected value 'yes' of option restickify"),
    ({"pre_scheduling_passes": ["dedup"]}, "option pre_scheduling_passes is a list of functions"),
])
def test_unknown_options_are_errors(options, message):
    with pytest.raises(Exception, match=message), torch.no_grad():
        torch.compile(nn.Linear(4, 4), backend="kerntrail_spyre", options=options)(torch.ones(2, 4))


def test_unknown_mode_is_an_error():
    with pytest.raises(Exception, match="no mode 'max-autotune'"), torch.no_grad():
        torch.compile(nn.Linear(4, 4), backend="kerntrail_spyre", mode="max-autotune")(torch.ones(2, 4))


# -- seams ------------------------------------------------------------------------------------------------------------


def test_what_an_outsider_changes_in_an_op_spec_reaches_the_files(monkeypatch, watcher):
    original = spyre_kernel.SpyreKernel.create_op_spec

    def without_handle(*args, **kwargs):
        spec = original(*args, **kwargs)
        spec.debug_handle = None
        return spec

    monkeypatch.setattr(spyre_kernel.SpyreKernel, "create_op_spec", without_handle)
    run_reference("full")
    (directory,) = watcher.directories.values()
    for path in pathlib.Path(directory).glob("sdsc_*.json"):
        (body,) = json.loads(path.read_text()).values()
        assert body["debug_handle_"] is None


def test_the_text_survives_any_path(watcher, tmp_path):
    # A double quote would end the path in the traceback text itself, which is all that torch keeps.
    path = tmp_path / "o'dd n\u00e4me \\n '''x''' {y} %s.py"
    path.write_text(EXAMPLE.read_text())
    model = load_module(path).SimpleMLP(8, 8, 8).eval()
    x = torch.randn(3, 8)
    with torch.no_grad():
        close(torch.compile(model, backend="kerntrail_spyre")(x), model(x), steps=5)
    assert all(spec.debug_handle.source.file == str(path) for _, spec in watcher.specs)
    (directory,) = watcher.directories.values()
    (body,) = json.loads((pathlib.Path(directory) / "sdsc_0.json").read_text()).values()
    assert body["debug_handle_"]["source"]["file"] == str(path)
    (_, source, _), = watcher.kernels
    specs = _native.spyre.parse_op_specs(source)
    assert specs[0].debug_handle == watcher.specs[0][1].debug_handle
    assert _native.spyre.print_op_specs(specs) == source


def test_damaged_text_is_an_error_not_a_crash(tmp_path):
    for text in ("", "[", "[{}]", '[{"op":"add"}]', "{}"):
        with pytest.raises(RuntimeError, match="kerntrail_spyre"):
            _native.spyre.build_kernel(text, str(tmp_path))


def test_a_kernel_checks_its_tensors(watcher, tmp_path):
    with torch.no_grad():
        torch.compile(nn.ReLU(), backend="kerntrail_spyre")(torch.randn(4, 64))
    kernel = _native.spyre.build_kernel(watcher.kernels[0][1], str(tmp_path))
    good = torch.full((4, 64), -1.0)
    out = torch.empty(4, 64)
    kernel.run((good, out))
    assert out.eq(0).all()
    for bad in ((good,), (good, out.half()), (good[:2].clone(), out), (good, out.flatten()[1:])):
        with pytest.raises(RuntimeError, match="kerntrail_spyre"):
            kernel.run(bad)


# -- numerics ---------------------------------------------------------------------------------------------------------

ACTIVATIONS = {
    "relu": torch.relu,
    "relu_in_place": lambda x: F.relu(x.clone(), inplace=True),
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "abs": torch.abs,
    "neg": torch.neg,
    "square": torch.square,
    "scale": lambda x: x * 0.75 + 0.25,
    "flip_sign": lambda x: 1 - x,
    "divide": lambda x: x / 3,
    "leaky": lambda x: torch.where(x > 0, x, x * 0.1),
    "between": lambda x: torch.clamp(x, -1.0, 1.0),
    "larger": lambda x: torch.maximum(x, -x),
    "smaller": lambda x: torch.minimum(x, x * 0.5),
    "up_and_down": lambda x: torch.tanh(x.float()).to(x.dtype),
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
}


class Program(nn.Module):
    """Linears of the given widths; after each, the named functions, and a residual where widths allow it."""

    def __init__(self, widths, steps, bias, residual):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=bias) for a, b in zip(widths, widths[1:]))
        self.steps, self.residual = steps, residual

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            y = layer(x)
            for name in self.steps[i % len(self.steps)] if self.steps else ():
                y = ACTIVATIONS[name](y)
            x = x + y if self.residual and x.shape == y.shape else y
        return x


widths = st.lists(st.integers(2, 150), min_size=2, max_size=4)
steps = st.lists(st.lists(st.sampled_from(sorted(ACTIVATIONS)), max_size=4), min_size=1, max_size=2)


@settings(max_examples=12, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(widths=widths, steps=steps, batch=st.sampled_from([1, 2, 3, 17, 64]), half=st.booleans(), bias=st.booleans(),
       residual=st.booleans())
def test_generated_programs_agree_with_eager(monkeypatch_fall_back, widths, steps, batch, half, bias, residual):
    torch._dynamo.reset()
    torch.manual_seed(1)
    dtype = torch.float16 if half else torch.float32
    model = Program(widths, steps, bias, residual).to(dtype).eval()
    x = torch.randn(batch, widths[0], dtype=dtype)
    with torch.no_grad():
        expected = model(x)
        actual = torch.compile(model, backend="kerntrail_spyre")(x)
    assert monkeypatch_fall_back == []
    close(actual, expected, steps=2 + len(widths) + sum(map(len, steps)) * len(widths))


@pytest.fixture
def monkeypatch_fall_back(monkeypatch):
    reasons = []
    monkeypatch.setattr(backend, "fall_back", lambda why, gm, inputs: reasons.extend(why) or gm.forward)
    return reasons


class PointwiseTable(nn.Module):
    def forward(self, x, positive, y):
        results = [
            torch.abs(x), torch.exp(x), torch.log(positive), torch.neg(x), torch.sqrt(positive), torch.rsqrt(positive),
            torch.tanh(x), torch.sigmoid(x), torch.floor(x), torch.reciprocal(positive), x + y, x - y, x * y, x / positive,
            torch.maximum(x, y), torch.minimum(x, y), torch.relu(x), F.gelu(x), F.silu(x), torch.add(x, y, alpha=3),
            torch.sub(x, y, alpha=0.5), x + 1, 2 - x, x * 1.5, 3 / positive, x**2, x.clone(), x.clamp(min=-0.5),
            x.clamp(max=0.5), torch.where(x == y, x, positive), torch.where(x != y, x, 0.0), torch.where(x > y, 1.0, x),
            torch.where(x >= 0.5, x, y), torch.where(x < y, x, y), torch.where(x <= y, x, -y), x.masked_fill(x < 0, 2.0),
            torch.zeros_like(x) + x, torch.full_like(x, 2.0) * 1.5, x + torch.full((), 2.0, dtype=x.dtype),
        ]
        results.append(x.float().mul(2).to(x.dtype) if x.dtype is torch.float16 else x.half().mul(2).float())
        return results


@pytest.mark.parametrize("shape", [(7,), (1, 1), (5, 130), (2, 3, 65), (2, 1, 3, 64)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_every_pointwise_operation_agrees_with_eager(watcher, dtype, shape):
    torch.manual_seed(2)
    x, y = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
    positive = torch.rand(shape, dtype=dtype) + 0.25
    x.view(-1)[0] = y.view(-1)[0]  # one equal pair
    with torch.no_grad():
        expected = PointwiseTable()(x, positive, y)
        actual = torch.compile(PointwiseTable(), backend="kerntrail_spyre")(x, positive, y)
    assert watcher.fall_backs == []
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype is e.dtype and a.shape == e.shape and a.stride() == e.stride()
        close(a, e, steps=2)


def test_special_values_agree_with_eager():
    values = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 65504.0, 1e-7, -1e-7])

    def f(x, y):
        return torch.relu(x), torch.maximum(x, y), torch.minimum(x, y), x + y, x * y, torch.where(x > y, x, y), torch.sigmoid(x)

    for dtype in (torch.float16, torch.float32):
        x, y = values.to(dtype), values.to(dtype).flip(0)
        torch._dynamo.reset()
        with torch.no_grad():
            for a, e in zip(torch.compile(f, backend="kerntrail_spyre")(x, y), f(x, y), strict=True):
                torch.testing.assert_close(a, e, equal_nan=True)


@pytest.mark.parametrize("shape", [(1, 1, 2), (1, 33, 1), (5, 64, 1), (3, 129, 65), (64, 2, 63)], ids=str)
def test_matmul_without_a_linear(watcher, shape):
    m, k, n = shape
    x, w = torch.randn(m, k), torch.randn(k, n)
    with torch.no_grad():
        actual = torch.compile(lambda a, b: a @ b, backend="kerntrail_spyre")(x, w)
    close(actual, x @ w, steps=1 + k ** 0.5)


def test_several_outputs_repeated_calls_and_inference_mode(watcher):
    lin = nn.Linear(16, 16).eval()
    compiled = torch.compile(lambda x: (lin(x), torch.relu(lin(x)), x + 1), backend="kerntrail_spyre")
    with torch.inference_mode():
        for seed in range(3):
            torch.manual_seed(seed)
            x = torch.randn(4, 16)
            for a, e in zip(compiled(x), (lin(x), torch.relu(lin(x)), x + 1), strict=True):
                close(a, e, steps=3)
    assert len(watcher.kernels) == 1


def test_graph_break_makes_a_kernel_for_each_graph(watcher):
    a, b = nn.Linear(8, 8).eval(), nn.Linear(8, 8).eval()

    def f(x):
        x = torch.relu(a(x))
        torch._dynamo.graph_break()
        return torch.tanh(b(x))

    x = torch.randn(2, 8)
    with torch.no_grad():
        close(torch.compile(f, backend="kerntrail_spyre")(x), f(x), steps=6)
    assert [name for name, _, _ in watcher.kernels] == ["sdsc_fused_addmm_linear_relu_0", "sdsc_fused_addmm_linear_tanh_0"]


def test_concurrent_calls_of_one_kernel():
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 32)).eval()
    compiled = torch.compile(model, backend="kerntrail_spyre")
    inputs = [torch.randn(8, 64) for _ in range(8)]
    with torch.no_grad():
        compiled(inputs[0])
        expected = [model(x) for x in inputs]
    results = [None] * len(inputs)

    def work(i):
        with torch.no_grad():
            for _ in range(20):
                results[i] = compiled(inputs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for actual, e in zip(results, expected, strict=True):
        close(actual, e, steps=6)


# -- stock compiles stay untouched ------------------------------------------------------------------------------------


def stock_code(monkeypatch):
    torch._dynamo.reset()
    # The running number of the graph is part of the text.
    monkeypatch.setattr(torch._functorch.aot_autograd, "AOT_COUNTER", itertools.count())
    model = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.LayerNorm(48)).eval()
    with torch.no_grad():
        _, code = run_and_get_code(torch.compile(model), torch.ones(3, 32))
    return code


def test_stock_compiles_before_between_and_after_give_the_same_code(monkeypatch):
    with inductor_config.patch(force_disable_caches=True):
        before = stock_code(monkeypatch)
        run_reference("seed")
        between = stock_code(monkeypatch)
        run_reference("full")

        def fail(*_):
            raise ValueError("planted")

        monkeypatch.setattr(scheduling.SuperDSCScheduling, "define_kernel", fail)
        torch._dynamo.reset()
        with pytest.raises(Exception, match="planted"):
            run_reference("full")
        after = stock_code(monkeypatch)
    assert before == between == after
    assert "inductor-spyre" not in before[0] and "sdsc" not in before[0]


def test_tables_are_put_back_also_after_an_error():
    from torch._inductor import lowering
    from torch._inductor.codegen import common

    common.init_backend_registration()
    tables = (common.device_codegens, common.custom_backend_passes, common.custom_backend_codegen_configs,
              lowering.user_lowerings)
    before = [dict(t) for t in tables]
    with pytest.raises(ValueError, match="planted"), backend.registered():
        assert common.device_codegens["cpu"].scheduling is scheduling.SuperDSCScheduling
        lowering.user_lowerings[torch.ops.aten.mm.default] = None
        raise ValueError("planted")
    assert [dict(t) for t in tables] == before


def test_interleaved_with_caches_on_never_hits_the_others_entry(watcher):
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU()).eval()
    x = torch.randn(2, 16)
    with torch.no_grad(), inductor_config.patch(fx_graph_cache=True, force_disable_caches=False):
        expected = model(x)
        for round_ in range(3):
            torch._dynamo.reset()
            close(torch.compile(model)(x), expected, steps=3)
            assert len(watcher.kernels) == round_
            torch._dynamo.reset()
            close(torch.compile(model, backend="kerntrail_spyre")(x), expected, steps=3)
            assert len(watcher.kernels) == round_ + 1


def test_compiles_in_two_threads_do_not_mix(watcher):
    ours, theirs = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), nn.Sequential(nn.Linear(9, 9), nn.Softmax(-1)).eval()
    errors = []

    def work(model, width, name):
        try:
            with torch.no_grad():
                for rows in (2, 3, 4):
                    x = torch.randn(rows, width)
                    close(torch.compile(model, backend=name, dynamic=False)(x), model(x), steps=4)
        except Exception as error:  # reported by the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=args) for args in ((ours, 8, "kerntrail_spyre"), (theirs, 9, "inductor"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    assert [name for name, _, _ in watcher.kernels] == ["sdsc_fused_addmm_linear_relu_0"] * 3


def test_no_table_of_inductor_is_left_changed(monkeypatch):
    """Kept-whole operations must not make Inductor register fallbacks; with CI set it even refuses to."""
    from torch._inductor import lowering

    monkeypatch.setenv("CI", "true")

    def tables():
        return (dict(lowering.lowerings), set(lowering.fallbacks), set(lowering.needs_realized_inputs), dict(lowering.user_lowerings))

    before = tables()
    x = torch.randn(2, 64)
    with torch.no_grad():
        for function in (F.gelu, F.silu):
            torch._dynamo.reset()
            torch.testing.assert_close(torch.compile(function, backend="kerntrail_spyre")(x), function(x), atol=1e-5, rtol=1e-5)
    assert tables() == before
