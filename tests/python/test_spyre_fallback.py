"""Graphs that can't be carried: they go to stock Inductor whole and untouched, with a reason for each offending node."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch._inductor import config as inductor_config
from torch._inductor.utils import run_and_get_code
from torch.nn import functional as F

from kerntrail.spyre import async_compile, backend
from kerntrail.spyre.backend import Reason


@pytest.fixture(autouse=True)
def private_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def recorded(monkeypatch):
    """The reasons of each graph that falls back, as an outsider sees them; compiling is left out."""
    calls = []

    def fall_back(reasons, gm, example_inputs):
        calls.append(reasons)
        return gm.forward

    monkeypatch.setattr(backend, "fall_back", fall_back)
    return calls


def codes(reasons):
    return sorted({reason.code for reason in reasons})


class Mutates(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


def enable_grad_inside(x):
    with torch.enable_grad():
        return x * 2


REFUSED = {
    "softmax": (lambda x: torch.softmax(x, -1), ["no_device_op"]),
    "sum": (lambda x: x.sum(-1), ["no_device_op"]),
    "layer_norm": (lambda x: F.layer_norm(x, (8,)), ["no_device_op"]),
    "view": (lambda x: torch.relu(x.view(8, 4)), ["no_device_op"]),
    "slice": (lambda x: x[:, 2:] + 1, ["no_device_op"]),
    "cat": (lambda x: torch.cat([x, x]), ["no_device_op"]),
    "transposed operand": (lambda x: torch.relu(x.t()), ["operand"]),
    "transposed output": (lambda x: (x + 1).t(), ["operand", "output"]),
    "transposed left side": (lambda x: x.t() @ x, ["layout_conflict", "operand"]),
    "one tensor in two layouts": (lambda x: (x @ x.t()) + 1, ["layout_conflict"]),
    "column broadcast": (lambda x: x + x @ torch.ones(8, 1), ["operand"]),
    "power": (lambda x: x**3, ["operand"]),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), ["operand"]),
    "erf": (lambda x: torch.erf(x), ["no_device_op"]),
    "double": (lambda x: torch.relu(x.double()), ["operand"]),
    "integer": (lambda x: x.int() + 1, ["operand"]),
    "truth value as output": (lambda x: x > 0, ["operand", "output"]),
    "truth value as number": (lambda x: (x > 0).to(x.dtype) * x, ["operand"]),
    "mixed types": (lambda x: x.half() + x, ["operand"]),
    "mutated input": (Mutates(), ["no_device_op"]),
    "random": (lambda x: F.dropout(x, 0.5, training=True), ["no_device_op"]),
    "constant output": (lambda x: x.new_zeros(4), ["output"]),
    "fused product with factors": (lambda x: torch.addmm(torch.ones(8), x, torch.ones(8, 8), alpha=2), ["operand"]),
    "batched product": (lambda x: torch.bmm(x.view(1, 4, 8), torch.ones(1, 8, 2)), ["no_device_op"]),
    "rank five": (lambda x: torch.relu(torch.zeros(1, 1, 1, 2, 2) + 1), ["operand"]),
    "gradients switched inside": (enable_grad_inside, ["grad_mode"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_each_kind_is_refused_with_its_reason(recorded, name):
    fn, expected = REFUSED[name]
    x = torch.randn(4, 8)
    with torch.no_grad():
        torch.compile(fn, backend="kerntrail_spyre")(x)
    assert len(recorded) == 1
    assert set(codes(recorded[0])) & set(expected), recorded[0]
    assert all(isinstance(r, Reason) and r.message and "\n" not in r.message for r in recorded[0])


def test_every_offending_node_has_its_reason_by_the_name_the_caller_knows(recorded):
    def f(x):
        first = torch.erf(x)
        second = torch.relu(first)
        return torch.cumsum(second, 0)

    with torch.no_grad():
        torch.compile(f, backend="kerntrail_spyre")(torch.randn(4, 8))
    (reasons,) = recorded
    assert [(r.code, r.node) for r in reasons] == [("no_device_op", "first"), ("no_device_op", "cumsum")]
    assert "aten.erf.default" in reasons[0].message


def test_inputs_that_are_not_carried(recorded):
    cases = [
        (torch.randn(4, 8, dtype=torch.float64), "input"),
        (torch.randn(4, 8, dtype=torch.bfloat16), "input"),
        (torch.ones(4, 8, dtype=torch.int64), "input"),
        (torch.randn(8, 4).t(), "input"),
        (torch.randn(0, 8), "input"),
        (torch.randn(4, 8, requires_grad=True), "needs_gradient"),
    ]
    for x, code in cases:
        torch._dynamo.reset()
        torch.compile(lambda x: x * 2, backend="kerntrail_spyre", dynamic=False)(x)
        assert code in codes(recorded.pop()), x


def test_training_falls_back_and_no_grad_does_not(recorded):
    model = nn.Linear(4, 4)
    torch.compile(model, backend="kerntrail_spyre")(torch.ones(2, 4))
    (reasons,) = recorded
    assert codes(reasons) == ["needs_gradient"]
    assert len(reasons) == 2  # weight and bias
    recorded.clear()
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend="kerntrail_spyre")(torch.ones(2, 4))
    assert recorded == []


def test_settings_we_do_not_run_under(recorded):
    for setting in ({"freezing": True}, {"cpp_wrapper": True}, {"post_grad_custom_post_pass": lambda graph: None}):
        torch._dynamo.reset()
        with inductor_config.patch(setting), torch.no_grad():
            torch.compile(torch.relu, backend="kerntrail_spyre")(torch.ones(2, 4))
        assert codes(recorded.pop()) == ["setting"]
    torch._dynamo.reset()
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        torch.compile(nn.Linear(4, 4), backend="kerntrail_spyre")(torch.ones(2, 4))
    assert "autocast" in codes(recorded.pop())


def test_conditional_graphs_are_refused(recorded):
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    with torch.no_grad():
        torch.compile(f, backend="kerntrail_spyre")(torch.ones(4, 8))
    assert "sub_graph" in codes(recorded[-1])


def test_a_second_batch_size_makes_shapes_symbolic_and_falls_back(recorded, monkeypatch):
    kernels = []
    original = async_compile.get_output_dir
    monkeypatch.setattr(async_compile, "get_output_dir", lambda name: kernels.append(name) or original(name))
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    compiled = torch.compile(model, backend="kerntrail_spyre")
    with torch.no_grad():
        for rows in (3, 5, 6):
            x = torch.randn(rows, 8)
            torch.testing.assert_close(compiled(x), model(x))
    assert len(kernels) == 1
    (reasons,) = recorded
    assert codes(reasons) == ["symbolic_dimension"]


# -- what stock Inductor then does is what it does without us ---------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(16, 24), nn.LayerNorm(24)

    def forward(self, x):
        return torch.softmax(self.norm(torch.relu(self.first(x))), -1)


def code_of(monkeypatch, name, inputs, train):
    torch._dynamo.reset()
    torch.manual_seed(0)
    monkeypatch.setattr(torch._functorch.aot_autograd, "AOT_COUNTER", itertools.count())
    model = Net().train(train)
    compiled = torch.compile(model, backend=name)
    results, text = [], []
    for x in inputs:
        def call(x=x):
            out = compiled(x)
            if train:
                out.square().sum().backward()
            return out

        with torch.set_grad_enabled(train):
            out, code = run_and_get_code(call)
        results.append(out.detach())
        text.extend(code)
    return results, text


@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
def test_the_generated_code_equals_stock_byte_for_byte(monkeypatch, train):
    inputs = [torch.ones(3, 16), torch.ones(5, 16)] if not train else [torch.ones(3, 16)]  # the second is dynamic
    with inductor_config.patch(force_disable_caches=True):
        stock, stock_code = code_of(monkeypatch, "inductor", inputs, train)
        ours, our_code = code_of(monkeypatch, "kerntrail_spyre", inputs, train)
    assert stock_code == our_code
    assert len(stock_code) == 2  # two batch sizes; forward and backward
    for a, b in zip(stock, ours, strict=True):
        assert torch.equal(a, b)


def test_deciding_changes_neither_the_graph_nor_what_is_registered(monkeypatch):
    from torch._inductor import lowering
    from torch._inductor.codegen import common

    common.init_backend_registration()
    seen = {}

    def fall_back(reasons, gm, example_inputs):
        seen["after"] = (str(gm.graph), [sorted(map(str, n.meta)) for n in gm.graph.nodes], dict(lowering.user_lowerings),
                         dict(common.device_codegens))
        return gm.forward

    original = backend.carry.reasons_against

    def reasons_against(gm, example_inputs):
        seen["before"] = (str(gm.graph), [sorted(map(str, n.meta)) for n in gm.graph.nodes], dict(lowering.user_lowerings),
                          dict(common.device_codegens))
        state = torch.random.get_rng_state()
        reasons = original(gm, example_inputs)
        assert torch.equal(state, torch.random.get_rng_state())
        return reasons

    monkeypatch.setattr(backend, "fall_back", fall_back)
    monkeypatch.setattr(backend.carry, "reasons_against", reasons_against)
    with torch.no_grad():
        torch.compile(lambda x: torch.softmax(F.dropout(x), -1), backend="kerntrail_spyre")(torch.ones(4, 8))
    assert seen["before"] == seen["after"]


def test_errors_of_stock_inductor_still_raise(monkeypatch):
    def broken(*args, **kwargs):
        raise NotImplementedError("planted in stock lowering")

    from torch._inductor import lowering

    monkeypatch.setitem(lowering.lowerings, torch.ops.aten.cumsum.default, broken)
    for name in ("inductor", "kerntrail_spyre"):
        torch._dynamo.reset()
        with pytest.raises(Exception, match="planted in stock lowering"), torch.no_grad():
            torch.compile(lambda x: torch.cumsum(x, 0), backend=name)(torch.ones(4, 8))


def test_an_error_of_ours_after_the_decision_is_shown_not_hidden(recorded, monkeypatch):
    monkeypatch.setattr(async_compile, "get_output_dir", lambda name: "/dev/null/nowhere")
    with pytest.raises(Exception, match="kerntrail_spyre|nowhere"), torch.no_grad():
        torch.compile(torch.relu, backend="kerntrail_spyre")(torch.ones(4, 8))
    assert recorded == []
