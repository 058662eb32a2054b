"""Small programs that compile something, one a row: what the live tests run. None needs weights, a network or a GPU.

A recipe is a function of `compile`: called with `torch.compile` it compiles, with `eager` it doesn't, so one text
serves both sides of a comparison. It seeds, builds, runs, and returns every tensor whose value counts.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Compile = Callable[..., Any]


def eager(function: Any, **_: Any) -> Any:
    return function


@dataclass(frozen=True)
class Recipe:
    """One program, and what a capture of it must show."""

    name: str
    run: Callable[[Compile], list[Tensor]]
    exercises: str
    compiles: int = 1
    directions: frozenset[str] = frozenset({"inference"})  # of the graphs that code was made of
    paths: frozenset[str] = frozenset({""})  # of the graphs that code was made of
    notes: dict[str, int] = field(default_factory=dict)  # by code; those not named must not be there
    repeats_ids: bool = False  # torch gives one compile id to several calls of the backend
    inductor: dict[str, Any] = field(default_factory=dict)  # config
    dynamo: dict[str, Any] = field(default_factory=dict)
    functorch: dict[str, Any] = field(default_factory=dict)
    orphans: tuple[str, ...] = ()  # names of fx_aten nodes that lead nowhere, each with its reason beside it in the table
    tolerance: float = 1e-4  # between eager and compiled
    long: bool = False  # takes too long for every run: `make test-long` only
    skip: str = ""  # why it can't be run
    needs: str = ""  # a package that only `make test-long` installs


@contextlib.contextmanager
def settings(recipe: Recipe, **inductor: Any) -> Iterator[None]:
    """The recipe's configuration, with the caches of whole graphs off. That of C++ kernels (by the hash of their
    text) stays on: the second compile of the same code needs no compiler."""
    import torch._dynamo.config as dynamo_config
    import torch._functorch.config as functorch_config
    import torch._inductor.config as inductor_config

    with contextlib.ExitStack() as stack:
        off = {"fx_graph_cache": False, "fx_graph_remote_cache": False}
        stack.enter_context(inductor_config.patch({**off, **recipe.inductor, **inductor}))
        stack.enter_context(functorch_config.patch({"enable_autograd_cache": False, **recipe.functorch}))
        if recipe.dynamo:
            stack.enter_context(dynamo_config.patch(recipe.dynamo))
        yield


# ---- helpers ------------------------------------------------------------------------------------------------------


def randn(*shape: int, grad: bool = False) -> Tensor:
    return torch.randn(*shape, requires_grad=grad)



def outputs_of(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    return [leaf for part in result for leaf in outputs_of(part)] if isinstance(result, (tuple, list)) else []


def infer(compile: Compile, module: Any, *inputs: Any, **options: Any) -> list[Tensor]:
    with torch.no_grad():
        return outputs_of(compile(module, **options)(*inputs))


def train(compile: Compile, module: nn.Module, *inputs: Any, **options: Any) -> list[Tensor]:
    result = outputs_of(compile(module, **options)(*inputs))
    sum(part.float().sum() for part in result).backward()
    grads = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    return result + grads + [x.grad for x in inputs if isinstance(x, Tensor) and x.grad is not None]


# ---- R1 - R22 -----------------------------------------------------------------------------------------------------


def mlp_module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))


def mlp(compile: Compile) -> list[Tensor]:
    return infer(compile, mlp_module().eval(), randn(4, 16))


def mlp_training(compile: Compile) -> list[Tensor]:
    return train(compile, mlp_module(), randn(4, 16))


def encoder(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    return train(compile, nn.TransformerEncoder(layer, 2), randn(2, 10, 32))


def dropout(compile: Compile) -> list[Tensor]:
    """Random numbers differ between eager and compiled: only shapes and the share that is kept are returned."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5))
    result = train(compile, module, randn(64, 64))
    return [(result[0] == 0).float().mean().round(decimals=1)]


def encoder_decoder(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return infer(compile, nn.Transformer(32, 4, 1, 1, 64, batch_first=True).eval(), randn(2, 7, 32), randn(2, 5, 32))


class Decoder(nn.Module):
    """One decoder block with a cache of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.register_buffer("k", torch.zeros(1, 2, 16, 8))
        self.register_buffer("v", torch.zeros(1, 2, 16, 8))

    def forward(self, x: Tensor, pos: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, v = (part.view(1, 1, 2, 8).transpose(1, 2) for part in (q, k, v))
        self.k.index_copy_(2, pos, k)
        self.v.index_copy_(2, pos, v)
        y = F.scaled_dot_product_attention(q, self.k, self.v)
        return self.out(y.transpose(1, 2).reshape(1, 1, 16))


def decode_step(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    module = Decoder().eval()
    result = infer(compile, module, randn(1, 1, 16), torch.tensor([3]))
    return [*result, module.k, module.v]


def attention(compile: Compile) -> list[Tensor]:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.transpose(-2, -1) / math.sqrt(8)
        weights = torch.softmax(scores, -1)
        return weights @ v

    torch.manual_seed(0)
    return infer(compile, attend, randn(2, 2, 8, 8), randn(2, 2, 8, 8), randn(2, 2, 8, 8))


def cnn_module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))


def cnn_training(compile: Compile) -> list[Tensor]:
    module = cnn_module()
    return [*train(compile, module, randn(2, 3, 16, 16)), module[1].running_mean]


def cnn_frozen(compile: Compile) -> list[Tensor]:
    return infer(compile, cnn_module().eval(), randn(2, 3, 16, 16))


def lstm(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return infer(compile, nn.LSTM(8, 16, batch_first=True).eval(), randn(2, 5, 8))


class Unrolled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros(2, 8)
        for step in range(5):
            state = self.cell(x[:, step], state)
        return state


def gru_loop(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return infer(compile, Unrolled().eval(), randn(2, 5, 8))


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16, padding_idx=0)
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.norm(self.words(ids)))


def embedding(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return train(compile, Embedded(), torch.randint(0, 50, (2, 7)))


def embedding_bag(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return infer(compile, nn.EmbeddingBag(50, 16).eval(), torch.randint(0, 50, (2, 7)))


class Experts(nn.Module):
    """Two of four experts for each token, in plain operations."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(16, 4)
        self.weights = nn.Parameter(torch.randn(4, 16, 16) / 4)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, 16)
        weight, chosen = torch.softmax(self.router(tokens), -1).topk(2, -1)
        gate = (F.one_hot(chosen, 4) * weight.unsqueeze(-1)).sum(1)
        each = torch.bmm(tokens.expand(4, -1, -1), self.weights)
        return torch.einsum("te,etd->td", gate, each).reshape_as(x)


def experts(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return infer(compile, Experts().eval(), randn(2, 6, 16))


def several_outputs(compile: Compile) -> list[Tensor]:
    def split(x: Tensor) -> tuple[Any, ...]:
        a, b, c = x.chunk(3, -1)
        left, right = x.split([5, 7], -1)
        rows = x.unbind(0)
        variance, mean = torch.var_mean(x, -1)
        return a + 1, b * c, left.sum(), right, rows[0] - rows[3], variance, mean

    torch.manual_seed(0)
    return infer(compile, split, randn(4, 12))


class ClippedSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return (grad * 2 * x).clamp(-1, 1)


class Squared(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return ClippedSquare.apply(torch.tanh(x)) + 1


def own_autograd(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return train(compile, Squared(), randn(8, 8, grad=True))


@torch.library.custom_op("kerntrail_recipes::twice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x * 2


@twice.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("kerntrail_recipes::add_one_", mutates_args={"x"})
def add_one_(x: Tensor) -> None:
    x.add_(1)


def custom_ops(compile: Compile) -> list[Tensor]:
    def use(x: Tensor) -> Tensor:
        y = torch.sin(x)
        add_one_(y)
        return twice(y) + x

    torch.manual_seed(0)
    return infer(compile, use, randn(8))


def conditional(compile: Compile) -> list[Tensor]:
    def choose(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda v: torch.sin(v) + 1, lambda v: torch.cos(v) * 2, (x,)) + 1

    torch.manual_seed(0)
    return infer(compile, choose, randn(8))


def loop(compile: Compile) -> list[Tensor]:
    from torch._higher_order_ops.while_loop import while_loop

    def count(x: Tensor) -> Any:
        return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, torch.sin(v) + 1), (torch.tensor(0), x))

    torch.manual_seed(0)
    return infer(compile, count, randn(8))


def dynamic_sizes(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    module = mlp_module().eval()
    compiled = compile(module)
    out = []
    for rows in (5, 9):
        x = randn(rows, 16)
        torch._dynamo.mark_dynamic(x, 0)
        with torch.no_grad():
            out.append(compiled(x))
    return out


def recompiled(compile: Compile) -> list[Tensor]:
    """A second size makes the graph dynamic, another dtype a third compile."""
    compiled = compile(lambda x: torch.sin(x) * x.shape[0])
    torch.manual_seed(0)
    with torch.no_grad():
        return [compiled(randn(5, 4)), compiled(randn(9, 4)), compiled(randn(9, 4).double())]


def unbacked(compile: Compile) -> list[Tensor]:
    def nonzero(x: Tensor) -> Tensor:
        where = x.nonzero()
        return (where * 2).sum() + x.sum().item()

    torch.manual_seed(0)
    return infer(compile, nonzero, randn(5, 4))


class Broken(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.b = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(self.a(x))
        torch._dynamo.graph_break()
        return torch.sigmoid(self.b(y))


def graph_break(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return infer(compile, Broken().eval(), randn(8, 8))


def graph_break_training(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return train(compile, Broken(), randn(8, 8))


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16))

    def forward(self, x: Tensor) -> Tensor:
        return torch.utils.checkpoint.checkpoint(self.block, x, use_reentrant=False).sin()


def checkpointed(compile: Compile) -> list[Tensor]:
    import torch.utils.checkpoint  # noqa: F401

    torch.manual_seed(0)
    return train(compile, Checkpointed(), randn(4, 16, grad=True))


def optimizer_step(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    parameters = [nn.Parameter(randn(4, 4)) for _ in range(3)]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    compile(optimizer.step)()
    return [parameter.detach() for parameter in parameters]


def in_place(compile: Compile) -> list[Tensor]:
    buffer = torch.ones(4, 4)

    def change(x: Tensor) -> Tensor:
        buffer.add_(1)
        y = (x + buffer).relu_()
        y[:, :2] = 0
        x.mul_(2)
        return y

    torch.manual_seed(0)
    x = randn(4, 4)
    return [*infer(compile, change, x), x, buffer]


class Quantised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 127, (8, 16), dtype=torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.round(x / 0.05).clamp(-128, 127) * 0.05
        return F.linear(x, self.weight.to(torch.float32) * 0.02)


def quantised(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return infer(compile, Quantised().eval(), randn(4, 16))


def flex(compile: Compile) -> list[Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + (i - j) * 0.1)

    torch.manual_seed(0)
    return infer(compile, attend, randn(1, 2, 32, 16), randn(1, 2, 32, 16), randn(1, 2, 32, 16))


def ahead_of_time(compile: Compile) -> list[Tensor]:
    import tempfile

    module, x = mlp_module().eval(), randn(4, 16)
    if compile is eager:
        return infer(compile, module, x)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        exported = torch.export.export(module, (x,))
        package = torch._inductor.aoti_compile_and_package(exported, package_path=f"{folder}/model.pt2")
        return outputs_of(torch._inductor.aoti_load_package(package)(x))


def twins(compile: Compile) -> list[Tensor]:
    """Two functions of one body, called twice each: kernel names repeat across compiles."""

    def one(x: Tensor) -> Tensor:
        return F.gelu(F.layer_norm(x, (8,)))

    def other(x: Tensor) -> Tensor:
        return F.gelu(F.layer_norm(x, (8,)))

    torch.manual_seed(0)
    out = []
    for function in (one, other):
        compiled = compile(function)
        with torch.no_grad():
            out += [compiled(randn(8, 8)), compiled(randn(8, 8))]
    return out


# ---- kinds of compiles --------------------------------------------------------------------------------------------


@torch.compiler.nested_compile_region
def region(x: Tensor, w: Tensor) -> Tensor:
    return torch.sin(x @ w) + x


class Regions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        return region(region(x, self.w), self.w)


def nested_region(compile: Compile) -> list[Tensor]:
    torch.manual_seed(0)
    return infer(compile, Regions().eval(), randn(4, 8))


def nested_region_training(compile: Compile) -> list[Tensor]:
    """The input needs a gradient as what the first region returns does: else Dynamo inlines both."""
    torch.manual_seed(0)
    return train(compile, Regions(), randn(4, 8, grad=True))


def conditional_training(compile: Compile) -> list[Tensor]:
    class Choice(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda v: torch.sin(v) + 1, lambda v: torch.cos(v) * 2, (x,)) + 1

    torch.manual_seed(0)
    return train(compile, Choice(), randn(8, grad=True))


def dynamic_training(compile: Compile) -> list[Tensor]:
    return train(compile, mlp_module(), randn(4, 16), dynamic=True)


def several_models(compile: Compile) -> list[Tensor]:
    """Forwards first, then the backwards in the other order: each lazy backward belongs to its own forward."""
    torch.manual_seed(0)
    modules = [nn.Sequential(nn.Linear(8, width), nn.Tanh()) for width in (8, 16)]
    losses = [compile(module)(randn(4, 8)).sum() for module in modules]
    for loss in reversed(losses):
        loss.backward()
    return losses + [module[0].weight.grad for module in modules]


def compiled_autograd(compile: Compile) -> list[Tensor]:
    import torch._dynamo.compiled_autograd as compiled_autograd

    module, x = mlp_module(), randn(4, 16)
    loss = compile(module)(x).sum()
    if compile is eager:
        loss.backward()
    else:
        with compiled_autograd._enable(torch.compile):
            loss.backward()
    return [loss, *[parameter.grad for parameter in module.parameters()]]


def cpp_wrapper(compile: Compile) -> list[Tensor]:
    return infer(compile, mlp_module().eval(), randn(4, 16), options={"cpp_wrapper": True})


def subprocess_compile(compile: Compile) -> list[Tensor]:
    import torch._inductor.compile_fx as compile_fx

    before = compile_fx.fx_compile_mode
    compile_fx.fx_compile_mode = compile_fx.FxCompileMode.SUBPROCESS
    try:
        return infer(compile, mlp_module().eval(), randn(4, 16))
    finally:
        compile_fx.fx_compile_mode = before


def serialized_compile(compile: Compile) -> list[Tensor]:
    import torch._inductor.compile_fx as compile_fx

    before = compile_fx.fx_compile_mode
    compile_fx.fx_compile_mode = compile_fx.FxCompileMode.SERIALIZE
    try:
        return infer(compile, mlp_module().eval(), randn(4, 16))
    finally:
        compile_fx.fx_compile_mode = before


def other_backend(compile: Compile) -> list[Tensor]:
    return infer(compile, mlp_module().eval(), randn(4, 16), backend="aot_eager")


def empty_graph(compile: Compile) -> list[Tensor]:
    """Dynamo gives the first to nobody, the second to Inductor."""
    torch.manual_seed(0)
    return infer(compile, lambda x: x, randn(4)) + infer(compile, lambda x: (x, x.view(2, 2)), randn(4))


TRAINING = frozenset({"forward", "backward"})
NOTHING = frozenset[str]()  # no graph is lowered in this process
BRANCHES = frozenset({"", "true_graph_0", "false_graph_0"})
NO_COMPILE = {"no-compile": 1}

RECIPES = [
    Recipe("mlp", mlp, "R1: linear, gelu"),
    Recipe("mlp_training", mlp_training, "R1: lazy backward", directions=TRAINING),
    Recipe("encoder", encoder, "R2: SDPA, layer norm, repeated layers", directions=TRAINING, long=True),
    Recipe("dropout", dropout, "R2: random numbers", directions=TRAINING),
    Recipe("encoder_decoder", encoder_decoder, "R3: cross attention"),
    Recipe("decode_step", decode_step, "R4: buffers changed in place"),
    Recipe("attention", attention, "R5: a joint-graph pattern"),
    Recipe("cnn_training", cnn_training, "R6: running statistics", directions=TRAINING),
    Recipe("cnn_frozen", cnn_frozen, "R6: freezing, weight packing", inductor={"freezing": True},
           # The layout pass of freezing makes it: nothing of the model asks for it.
           orphans=("inductor_force_stride_order_default",)),
    Recipe("lstm", lstm, "R7: Dynamo leaves RNN modules to eager", compiles=0, directions=NOTHING, paths=NOTHING, notes=NO_COMPILE),
    Recipe("lstm_inside", lstm, "R7: a fallback RNN", dynamo={"allow_rnn": True}),
    Recipe("gru_loop", gru_loop, "R7: an unrolled loop"),
    Recipe("embedding", embedding, "R8: scatter in the backward", directions=TRAINING),
    Recipe("embedding_bag", embedding_bag, "R8: several results of one operator"),
    Recipe("experts", experts, "R9: mixture of experts"),
    Recipe("several_outputs", several_outputs, "R10: getitem nodes"),
    Recipe("own_autograd", own_autograd, "R11: an autograd.Function", directions=TRAINING),
    Recipe("custom_ops", custom_ops, "R12: custom ops, auto_functionalized"),
    Recipe("conditional", conditional, "R13: cond", paths=BRANCHES),
    Recipe("conditional_training", conditional_training, "R13: cond, backward", directions=TRAINING,
           paths=BRANCHES | {"true_graph_1", "false_graph_1"}),
    Recipe("loop", loop, "R13: while_loop", paths=frozenset({"", "while_loop_cond_graph_0", "while_loop_body_graph_0"})),
    Recipe("scan", mlp, "R13", skip="scan on CPU raises in plain torch.compile for small models (torch 2.13)"),
    Recipe("dynamic_sizes", dynamic_sizes, "R14: mark_dynamic"),
    Recipe("dynamic_training", dynamic_training, "R14: symbols in a backward", directions=TRAINING),
    Recipe("recompiled", recompiled, "R14: recompiles", compiles=3),
    Recipe("unbacked", unbacked, "R14: unbacked symbols",
           dynamo={"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}),
    Recipe("graph_break", graph_break, "R15: two graphs of one function", compiles=2),
    Recipe("graph_break_training", graph_break_training, "R15: two backwards", compiles=2, directions=TRAINING),
    Recipe("checkpointed", checkpointed, "R16: recomputed nodes", directions=TRAINING),
    Recipe("optimizer_step", optimizer_step, "R17: foreach kernels"),
    Recipe("in_place", in_place, "R18: functionalised in-place ops"),
    Recipe("quantised", quantised, "R19: fake-quantised linear"),
    Recipe("flex", flex, "R20: flex_attention", long=True, paths=frozenset({"", "sdpa_score0", "sdpa_mask0"})),
    Recipe("ahead_of_time", ahead_of_time, "R21: AOTInductor", long=True),
    Recipe("twins", twins, "R22: one kernel name in several compiles", compiles=2),
    Recipe("nested_region", nested_region, "invoke_subgraph", paths=frozenset({"", "repeated_subgraph0"})),
    Recipe("nested_region_training", nested_region_training, "invoke_subgraph, joint", directions=TRAINING,
           paths=frozenset({"", "partitioned_fw_subgraph_0_0", "partitioned_bw_subgraph_0_0"})),
    Recipe("several_models", several_models, "several models in one process", compiles=2, directions=TRAINING),
    Recipe("compiled_autograd", compiled_autograd, "compiled autograd: the backward is a compile of its own, without pre-grad passes",
           compiles=2, directions=frozenset({"forward", "inference"}), notes={"backward-not-observed": 1, "not-observed": 1}),
    Recipe("cpp_wrapper", cpp_wrapper, "the C++ wrapper", long=True),
    Recipe("subprocess_compile", subprocess_compile, "fx_compile_mode SUBPROCESS", long=True, directions=NOTHING, paths=NOTHING,
           notes={"not-observed": 1}),
    Recipe("serialized_compile", serialized_compile, "fx_compile_mode SERIALIZE"),
    Recipe("other_backend", other_backend, "a backend that is not Inductor", compiles=0, directions=NOTHING, paths=NOTHING,
           notes=NO_COMPILE),
    Recipe("empty_graph", empty_graph, "graphs without a computation"),
]
