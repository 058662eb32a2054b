"""The dynamic witness of Triton kernels: each line that gives a value is disturbed in turn, in the interpreter, and the
results that change are held against those that the source line of its node reaches in an eager run.

    python -m triton_fixtures.disturb MODEL[,MODEL...] FOLDER

Writes FOLDER/MODEL.ndjson and FOLDER/disturbed.json: of each model a row a line."""

from __future__ import annotations

import copy
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
from capture_view import CaptureView  # noqa: E402
from reachability import differ, disturbed, line_of  # noqa: E402
from torch import Tensor, fx  # noqa: E402
from torch._inductor.async_compile import AsyncCompile  # noqa: E402
from torch._inductor.compile_fx import compile_fx, compile_fx_inner  # noqa: E402
from witness_view import Line, uses  # noqa: E402

from kerntrail._capture import open_capture  # noqa: E402
from triton_fixtures import driver, libdevice  # noqa: E402
from triton_fixtures.models import MODELS  # noqa: E402

VALUE = re.compile(r"(\s*)(_?tmp\d+) = ")
# The interpreter runs a kernel as Python, so that a line may ask for the type of what it disturbs.
DISTURB = "{0} = {0} == 0 if {0}.dtype.is_int1() else {0} + 1 if {0}.dtype.is_int() else {0} * 1.25 + 0.125"
# Where scale and shift cancel out later, as in a normalisation.
BEND = "{0} = {0} == 0 if {0}.dtype.is_int1() else {0} + 1 if {0}.dtype.is_int() else {0} + {0} * {0} * {0}"


class Replaceable:
    """A kernel of the wrapper: the one that was generated, or a changed one in its place."""

    def __init__(self, name: str, source: str, make: Any) -> None:
        self.name, self.source, self.make = name, source, make
        self.kernel = self.original = make(source)

    def disturb(self, line: int, how: str) -> None:
        lines = self.source.split("\n")
        indent, variable = VALUE.match(lines[line]).groups()
        lines.insert(line + 1, indent + how.format(variable))
        self.kernel = self.make("\n".join(lines))

    def restore(self) -> None:
        self.kernel = self.original

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


class Model:
    """Compiled once: its graph before the post-grad passes, its kernels, the inputs of its code."""

    def __init__(self, name: str, path: Path) -> None:
        self.kernels: dict[str, Replaceable] = {}
        self.graph: fx.GraphModule | None = None
        self.call: Any = None
        self.inputs: list[Any] = []
        torch.manual_seed(0)
        make, make_inputs = MODELS[name]
        model, inputs = make().eval(), make_inputs()
        original = AsyncCompile.triton

        def triton(compiler: Any, kernel: str, source: str, device_str: str = "cuda") -> Replaceable:
            made = Replaceable(kernel, source, lambda text: original(compiler, kernel, text, device_str))
            return self.kernels.setdefault(kernel, made)

        AsyncCompile.triton = triton
        capture = open_capture(path, level="truth", replace=True)
        try:
            with torch.no_grad():
                torch.compile(model, backend=self.backend)(*inputs)
        finally:
            capture.close()
            AsyncCompile.triton = original

    def backend(self, gm: fx.GraphModule, inputs: Any) -> Any:
        return compile_fx(gm, inputs, inner_compile=self.inner)

    def inner(self, gm: fx.GraphModule, inputs: Any, **options: Any) -> Any:
        self.graph = fx.GraphModule(gm, copy.deepcopy(gm.graph))
        self.call = compile_fx_inner(gm, inputs, **options)

        def run(args: list[Any]) -> Any:
            self.inputs = [arg.clone() if isinstance(arg, Tensor) else arg for arg in args]
            return self.call(args)

        run._boxed_call = True
        return run

    def run(self) -> list[Tensor]:
        with torch.no_grad():
            return list(self.call([arg.clone() if isinstance(arg, Tensor) else arg for arg in self.inputs]))

    def eager(self, nodes: set[str] = frozenset()) -> list[Tensor]:
        class Disturbing(fx.Interpreter):
            def run_node(self, n: fx.Node) -> Any:
                value = super().run_node(n)
                return disturbed(value) if n.name in nodes else value

        with torch.no_grad():
            return list(Disturbing(self.graph).run(*self.inputs))


def changed(before: list[Tensor], after: list[Tensor]) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if differ(a, b)]


def disturb_all(name: str, folder: Path) -> dict[str, Any]:
    torch._dynamo.reset()
    model = Model(name, folder / f"{name}.ndjson")
    view = CaptureView(folder / f"{name}.ndjson")
    line_of_node = {row["name"]: int(found[-1]) for row in view.at("fx_post_grad")
                    if (found := re.findall(r'models\.py", line (\d+)', row.get("stack_trace") or ""))}
    nodes: dict[int, set[str]] = {}
    for node in model.graph.graph.nodes:
        if node.op == "call_function" and (line := line_of(node, "models.py")) is not None:
            nodes.setdefault(line, set()).add(node.name)
    plain = model.eager()
    reach = {line: changed(plain, model.eager(names)) for line, names in nodes.items()}
    base = model.run()
    rows = []
    for use in uses(view):
        kernel = model.kernels.get(use.kernel)
        for line in use.lines if kernel is not None else ():
            if VALUE.match(line.text):
                rows.append(disturb_line(model, kernel, use.kernel, line, line_of_node, base, reach))
    return {"outputs": len(base), "same": not changed(plain, base), "reach": reach, "rows": rows}


def disturb_line(model: Model, kernel: Replaceable, name: str, line: Line, line_of_node: dict[str, int],
                 base: list[Tensor], reach: dict[int, list[int]]) -> dict[str, Any]:
    assert kernel.source.split("\n")[line.number - 1].strip() == line.text
    lines = sorted({line_of_node[node] for node in (line.node, *line.also) if node in line_of_node})
    row = {"kernel": name, "line": line.number, "text": line.text, "node": line.node, "source_lines": lines,
           "reached": sorted({i for source in lines for i in reach[source]})}
    for how in (DISTURB, BEND):
        try:
            kernel.disturb(line.number - 1, how)
            row["changed"] = changed(base, model.run())
        except Exception as error:  # the report says which
            row["error"] = repr(error)[:200]
        kernel.restore()
        row["bent"] = how == BEND
        if row.get("changed"):
            break
    return row


def main() -> None:
    names, folder = sys.argv[1].split(","), Path(sys.argv[2])
    driver.activate()
    libdevice.install()
    inductor.force_disable_caches = True
    inductor.compile_threads = 1
    inductor.cpu_backend = "triton"
    (folder / "disturbed.json").write_text(json.dumps({name: disturb_all(name, folder) for name in names}), encoding="utf-8")


if __name__ == "__main__":
    main()
