"""Small programs for which stock Inductor claims of a kernel what it does not compute. One a row; docs/contradictions.md
says of each which line of torch makes the claim, and what a repair could look like.

A claim is of one of two kinds. `extra`: nodes in the origins of the kernel that the witness does not have there.
`line`: the node is right, and its source line is that of another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Line:
    """The text of the user's line that a node has, and of the one that it is from."""

    node: str
    claimed: str
    true: str


@dataclass(frozen=True)
class Contradiction:
    name: str
    fault: str  # class of fault, a heading of docs/contradictions.md
    build: Callable[[], tuple[Any, tuple[Tensor, ...]]]  # model and inputs
    kernel: str  # begins its name
    computes: frozenset[str]  # nodes that the witness has in it
    extra: dict[str, str] = field(default_factory=dict)  # claimed node -> what `verify` says: elsewhere, nowhere, index
    line: Line | None = None
    inductor: dict[str, Any] = field(default_factory=dict)  # config
    needs_template: bool = False  # this processor may have none


def _randn(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    return tuple(torch.randn(*shape) for shape in shapes)


# ---- survivor: the node that stays takes the metadata of the one that goes ----------------------------------------


def add_zeros(x):
    a = torch.sin(x)
    b = a + torch.zeros(8)
    return b


def times_ones(x):
    a = torch.sin(x)
    b = a * torch.ones(8)
    return b


def matmul_add_zeros(x, w):
    a = torch.mm(x, w)
    b = a + torch.zeros(8)
    return torch.relu(b)


def _add_one_(x: Tensor) -> None:
    x.add_(1)


_library = torch.library.Library("kerntrail_contradictions", "FRAGMENT")
_library.define("add_one_(Tensor(a!) x) -> ()")
_library.impl("add_one_", _add_one_, "CPU")
_library.impl("add_one_", lambda x: None, "Meta")


def changed_in_place(x):
    a = torch.sin(x)
    torch.ops.kerntrail_contradictions.add_one_(a)
    return a


# ---- argument: an operation that needs its inputs in memory claims what is lowered into them -----------------------


def matmul_of_sine(x, w):
    a = torch.sin(x)
    return torch.mm(a, w)


def attention_of_sine(x):
    a = torch.sin(x)
    return F.scaled_dot_product_attention(a, a, a)


def topk_of_mask(x):
    m = torch.tril(torch.ones(8, 8, dtype=torch.bool))
    b = torch.where(m, 0.0, -1.0)
    return torch.topk(b + x, 2)[0]


def convolution_of_sine(x, w):
    a = torch.sin(x)
    return F.conv2d(a, w)


class SineLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        a = torch.sin(x)
        return self.linear(a)


# ---- sub-graph: kernels of a nested graph claim the operator around it ---------------------------------------------


def branches(x):
    p = x.sum() > 0
    return torch.cond(p, lambda v: torch.sin(v), lambda v: torch.cos(v), (x,))


def iterations(x):
    def body(i, v):
        return i + 1, torch.sin(v)

    return torch._higher_order_ops.while_loop(lambda i, v: i < 3, body, (torch.zeros((), dtype=torch.int64), x))[1]


@torch.compiler.nested_compile_region
def _region(v):
    return torch.sin(v)


def nested_region(x):
    return _region(_region(x))


# ---- view: who reads through a view claims the view, and with it the line of its producer ---------------------------


def view_of_matmul(x, w):
    a = torch.mm(x, w).view(8, 2, 4)
    return torch.neg(a)


def transposed_weight(x, w):
    return torch.mm(x, w.t())


CPP_TEMPLATE = {"freezing": True, "max_autotune": True, "max_autotune_gemm_backends": "CPP"}

CONTRADICTIONS = [
    Contradiction("add_zeros", "survivor", lambda: (add_zeros, _randn((8,))), "cpp_fused_add_0", frozenset({"sin"}),
                  line=Line("sin", "b = a + torch.zeros(8)", "a = torch.sin(x)")),
    Contradiction("times_ones", "survivor", lambda: (times_ones, _randn((8,))), "cpp_fused_mul_0", frozenset({"sin"}),
                  line=Line("sin", "b = a * torch.ones(8)", "a = torch.sin(x)")),
    Contradiction("matmul_add_zeros", "survivor", lambda: (matmul_add_zeros, _randn((4, 8), (8, 8))), "extern_kernels.mm",
                  frozenset({"mm"}), line=Line("mm", "b = a + torch.zeros(8)", "a = torch.mm(x, w)")),
    Contradiction("changed_in_place", "survivor", lambda: (changed_in_place, _randn((8,))), "cpp_fused_sin_0",
                  frozenset({"sin"}),
                  line=Line("sin", "torch.ops.kerntrail_contradictions.add_one_(a)", "a = torch.sin(x)")),
    Contradiction("matmul_of_sine", "argument", lambda: (matmul_of_sine, _randn((4, 8), (8, 8))), "extern_kernels.mm",
                  frozenset({"mm"}), {"sin": "elsewhere"}),
    Contradiction("attention_of_sine", "argument", lambda: (attention_of_sine, _randn((1, 2, 8, 4))), "torch.ops.aten._scaled_dot",
                  frozenset({"_scaled_dot_product_flash_attention_for_cpu"}), {"sin": "elsewhere"}),
    Contradiction("topk_of_mask", "argument", lambda: (topk_of_mask, _randn((8, 8))), "torch.ops.aten.topk.default", frozenset({"topk"}),
                  dict.fromkeys(["add", "where", "logical_and", "le", "sub", "full_default", "full_default_1", "full_default_2"],
                                "elsewhere") | dict.fromkeys(["unsqueeze", "unsqueeze_1", "iota", "iota_1"], "nowhere")),
    Contradiction("convolution_of_sine", "argument", lambda: (convolution_of_sine, _randn((1, 3, 8, 8), (4, 3, 3, 3))),
                  "cpp_fused_convolution_sin_1", frozenset({"convolution"}), {"sin": "elsewhere"}),
    Contradiction("template_after_sine", "argument", lambda: (SineLinear().eval(), _randn((32, 64))), "cpp_fused_addmm_sin_1",
                  frozenset({"_mkl_linear"}), {"sin": "elsewhere"}, inductor=CPP_TEMPLATE, needs_template=True),
    Contradiction("branch_true", "sub-graph", lambda: (branches, _randn((8,))), "cpp_fused_gt_sin_1", frozenset({"sin"}),
                  {"gt": "elsewhere", "cond": "encloses", "true_graph_0": "encloses", "false_graph_0": "elsewhere"}),
    Contradiction("branch_false", "sub-graph", lambda: (branches, _randn((8,))), "cpp_fused_cos_gt_2", frozenset({"cos"}),
                  {"gt": "elsewhere", "cond": "encloses", "true_graph_0": "elsewhere", "false_graph_0": "encloses"}),
    Contradiction("loop_body", "sub-graph", lambda: (iterations, _randn((8,))), "cpp_fused_add_", frozenset({"add", "sin"}),
                  {"full_default": "elsewhere", "while_loop": "encloses", "while_loop_body_graph_0": "encloses",
                   "while_loop_cond_graph_0": "elsewhere"}),
    Contradiction("nested_region", "sub-graph", lambda: (nested_region, _randn((8,))), "cpp_fused_sin_0", frozenset({"sin"}),
                  {"invoke_subgraph": "encloses", "repeated_subgraph0": "encloses"}),
    Contradiction("view_of_matmul", "view", lambda: (view_of_matmul, _randn((8, 8), (8, 8))), "cpp_fused_neg_view_0", frozenset({"neg"}),
                  {"view": "index"}, Line("view", "a = torch.mm(x, w).view(8, 2, 4)", "a = torch.mm(x, w).view(8, 2, 4)")),
    Contradiction("transposed_weight", "view", lambda: (transposed_weight, _randn((4, 8), (8, 8))), "extern_kernels.mm",
                  frozenset({"mm"}), {"permute": "index"}),
]


# ---- gone: what earlier releases said wrong, and this one says right ------------------------------------------------


def positions(m):
    """pytorch #100096: the kernel before a cumsum was named after it."""
    mask = m.ne(1).int()
    return (torch.cumsum(mask, 1) * mask).long() + 1


def relu_of_matmul(x, w):
    """pytorch #95022: the kernel after a matrix product had it among its origins."""
    return torch.relu(torch.mm(x, w)) + 1


GONE: dict[str, Callable[[], tuple[Any, tuple[Tensor, ...]]]] = {
    "positions": lambda: (positions, (torch.arange(32).reshape(4, 8) % 3,)),
    "relu_of_matmul": lambda: (relu_of_matmul, _randn((4, 8), (8, 8))),
}
