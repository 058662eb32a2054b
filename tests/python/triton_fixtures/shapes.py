"""Shapes of Triton code for a device that does not exist: a capture at level truth of each, in one process.

    python -m triton_fixtures.shapes FOLDER [NAME ...]

Writes FOLDER/NAME.ndjson. No benchmark is run: the first candidate is the fastest."""

import os
import sys
import types
import warnings
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch._inductor.codegen.triton as code_generator  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
import torch._inductor.scheduler as scheduler  # noqa: E402
import torch._inductor.select_algorithm as select_algorithm  # noqa: E402
from torch.nn.attention.flex_attention import flex_attention  # noqa: E402

import kerntrail  # noqa: E402
from triton_fixtures import fake_cuda  # noqa: E402
from triton_fixtures.run import prepare  # noqa: E402


class NeverLoaded:
    @classmethod
    def load(cls, *_, **__):
        return types.ModuleType("never_run")

    write = load


def no_benchmarks() -> None:
    search = select_algorithm.AlgorithmSelectorCache
    for name in ("benchmark_choices", "benchmark_in_current_process", "benchmark_in_sub_process"):
        if name in search.__dict__:
            is_method = isinstance(search.__dict__[name], classmethod)

            def rank(*arguments, _first=int(is_method), **_):
                return {choice: float(place + 1) for place, choice in enumerate(arguments[_first])}

            setattr(search, name, classmethod(rank) if is_method else staticmethod(rank))
    scheduler.Scheduler.compile_kernel = lambda self, *_, **__: (None, NeverLoaded.load())
    for owner in (scheduler.Scheduler, code_generator.TritonScheduling):
        owner.benchmark_codegened_module = lambda self, *_, **__: (1.0, "")
    code_generator.PyCodeCache = NeverLoaded


def lists(a, b, c):
    return a.sin(), b.softmax(-1), c.cos() * 2, b.sum(-1), a.t().contiguous()


def reductions(x):
    return x.softmax(-1), x.sum(-1)


def product(x, y):
    return (x.relu() @ y).relu() * 2 + x


def long_product(x, y):
    return (x @ y).relu() + 1


def attention(q):
    def score(value, batch, head, i, j):
        return torch.where(i >= j, value * 0.5, -float("inf")).tanh()

    return flex_attention(q.sin(), q, q, score_mod=score) + 1


GEMM = {"max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON"}
SHAPES = {
    "combo": (lists, [(4, 8), (5, 900), (7,)], {"combo_kernels": True}),
    "combo_blocks": (lists, [(4, 8), (5, 900), (7,)], {"combo_kernels": True, "combo_kernel_per_subkernel_blocks": True}),
    "alternatives": (reductions, [(64, 3000)], {"triton.multi_kernel": 2}),
    "dependent_launches": (reductions, [(64, 64)], {"triton.enable_pdl": True}),
    "cooperative": (reductions, [(64, 3000)], {"triton.force_cooperative_reductions": True}),
    "block_pointers": (reductions, [(8, 33)], {"triton.use_block_ptr": True}),
    "template": (product, [(64, 64), (64, 64)], {**GEMM, "test_configs.max_mm_configs": 1}),
    "chosen": (product, [(64, 64), (64, 64)], {**GEMM, "benchmark_epilogue_fusion": True}),
    "chosen_extern": (product, [(64, 64), (64, 64)], {**GEMM, "max_autotune_gemm_backends": "ATEN,TRITON", "benchmark_epilogue_fusion": True}),
    "split_product": (long_product, [(32, 100000), (100000, 32)], GEMM),
    "flex": (attention, [(1, 2, 128, 32)], {}),
}


def main() -> None:
    folder, *names = sys.argv[1:]
    prepare("cuda", 0, Path(folder))
    no_benchmarks()
    for name in names or SHAPES:
        function, sizes, config = SHAPES[name]
        torch._dynamo.reset()
        with torch.no_grad(), inductor.patch(config), kerntrail.capture(Path(folder) / f"{name}.ndjson", level="truth"):
            torch.compile(function, backend=fake_cuda.backend)(*map(torch.zeros, sizes))


if __name__ == "__main__":
    main()
