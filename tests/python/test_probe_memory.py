"""Nothing of a compile outlives it, and a capture of many compiles stays small."""

import ctypes
import gc
import sys
import weakref
from statistics import median

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
from recipes import RECIPES, settings  # noqa: E402

from kerntrail._capture import LEVELS, open_capture  # noqa: E402

BY_NAME = {recipe.name: recipe for recipe in RECIPES}


class Watch:
    """Weak references to what a compile works on, taken where torch lets users in."""

    def __init__(self) -> None:
        self.refs: list[tuple[str, weakref.ref]] = []

    def see(self, kind: str, value: object) -> None:
        self.refs.append((kind, weakref.ref(value)))

    def graph(self, graph: torch.fx.Graph) -> None:
        self.see("graph", graph)
        if graph.owning_module is not None:
            self.see("module", graph.owning_module)
        for node in graph.nodes:
            self.see("node", node)

    def scheduled(self, nodes: list) -> list:
        from torch._inductor.virtualized import V

        self.see("lowering", V.graph)
        for node in nodes:
            self.see("scheduler node", node)
            if node.node is not None:
                self.see("buffer", node.node)
        return nodes

    def config(self):
        return inductor.patch(pre_grad_custom_pass=self.graph, joint_custom_pre_pass=self.graph,
                              joint_custom_post_pass=self.graph, post_grad_custom_pre_pass=self.graph,
                              post_grad_custom_post_pass=self.graph, _pre_fusion_custom_pass=self.scheduled)

    def living(self) -> list[str]:
        gc.collect()
        return sorted(kind for kind, ref in self.refs if ref() is not None)


@pytest.mark.parametrize("level", [None, *LEVELS])
@pytest.mark.parametrize("name", ["mlp_training", "conditional"])
def test_nothing_of_a_compile_outlives_it(tmp_path, name, level):
    """With the capture still open. Level None, no capture, shows that torch itself lets go of them."""
    watch = Watch()
    capture = open_capture(tmp_path / "c.ndjson", level=level) if level else None
    try:
        torch._dynamo.reset()
        with settings(BY_NAME[name]), watch.config():
            BY_NAME[name].run(torch.compile)
        torch._dynamo.reset()
        living = watch.living()
    finally:
        if capture:
            capture.close()
    assert {"graph", "module", "node", "lowering", "scheduler node", "buffer"} <= {kind for kind, _ in watch.refs}
    assert not living


class Counters:
    """What is in use right now: bytes of malloc (C++ and large Python objects), blocks of Python's own allocator."""

    def __init__(self) -> None:
        names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
        self._info = type("mallinfo2", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in names]})
        try:
            self._read = ctypes.CDLL(None).mallinfo2
        except AttributeError:
            pytest.skip("this C library has no mallinfo2")
        self._read.restype = self._info

    def now(self) -> tuple[int, int]:
        gc.collect()
        info = self._read()
        return info.uordblks + info.hblkhd, sys.getallocatedblocks()


def compile_tiny(number: int) -> None:
    """A whole compile, from a traced graph to code that was run once, of six small nodes."""
    from torch._inductor.compile_fx import compile_fx

    class Tiny(torch.nn.Module):
        def forward(self, x, y):
            return (torch.relu(x + y) * (number % 3 + 1), torch.sin(x) - y)

    x, y = torch.ones(4), torch.ones(4)
    with torch.no_grad():
        compile_fx(torch.fx.symbolic_trace(Tiny()), [x, y])(x, y)


def growth(compiles: int, warm: int) -> tuple[float, float]:
    """Bytes and blocks a compile, over `compiles` after `warm` that fill every cache: the median of five stretches,
    as tables of torch's own that double their size now and then do so in one of them."""
    counters = Counters()
    for number in range(warm):
        compile_tiny(number)
    size = compiles // 5
    stretches = []
    for _ in range(5):
        before = counters.now()
        for number in range(size):
            compile_tiny(number)
        after = counters.now()
        stretches.append(((after[0] - before[0]) / size, (after[1] - before[1]) / size))
    return median(of[0] for of in stretches), median(of[1] for of in stretches)


@pytest.mark.parametrize("compiles", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_memory_of_many_compiles_is_flat(tmp_path, compiles):
    with settings(BY_NAME["mlp"]):
        without = growth(compiles, warm=12)
        capture = open_capture(tmp_path / "c.ndjson")
        try:
            seen = growth(compiles, warm=6)
            count = capture.compile_count
        finally:
            capture.close()
    assert count == compiles + 6 and not capture.is_partial
    print(f"a compile: {without[0]:.0f} bytes and {without[1]:.1f} blocks without, {seen[0]:.0f} and {seen[1]:.1f} with a capture")
    # A kept graph of six nodes would be some 100 KB and 1,000 blocks. What may stay are ids and interned texts.
    assert seen[0] - without[0] < 16_000
    assert seen[1] - without[1] < 100
