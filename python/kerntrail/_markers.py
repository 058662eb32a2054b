"""A second witness, to check the first: constants that can be read in the text of kernels.

Before the pre-grad passes each float node of a graph is multiplied by a constant of its own, and its stack trace is
replaced by a line of its own. Whatever the compiler does, a kernel whose text holds the constant does work for that node:
a search of the text tells. A capture at level truth of the same compile says the same by another way, and both are
compared, kernel by kernel and line by line. It is a test of the witness and not of programs: the marked program is not the
program (more operations, attention that is not fused, other kernels).
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

FILE = "kerntrail-marker"  # of the stack traces
_CALLS = ("call_function", "call_method", "call_module")
_NO_WORK = {"load", "store", "move", "index", "control"}  # what a line does without calculating anything


@dataclass(frozen=True)
class Marker:
    number: int
    node: str  # that was marked
    place: str  # the last line of its stack trace that is in a file

    @property
    def constant(self) -> float:
        return 1.0 + (64 * self.number + 1) * 2.0**-20  # exact in float32, and no decimal text begins another's

    def __str__(self) -> str:
        return f"{self.node} ({self.place})" if self.place else self.node


@dataclass
class Difference:
    kernel: str
    text: str
    reason: str = ""  # empty: nobody knows why


@dataclass
class Result:
    """What one program gave. Kernels without a line for a marked node, or without a text, are not compared."""

    name: str
    markers: int = 0
    kernels: int = 0
    agreed: int = 0
    lines: int = 0  # lines of kernels that hold a constant
    lines_agreed: int = 0
    unread: int = 0  # kernels without a text: extern operations
    nowhere: list[str] = field(default_factory=list)  # marked nodes whose constant is in no kernel
    differences: list[Difference] = field(default_factory=list)

    @property
    def unexplained(self) -> list[Difference]:
        return [difference for difference in self.differences if not difference.reason]


# ---- marking ------------------------------------------------------------------------------------------------------


@contextmanager
def marked(markers: list[Marker]) -> Iterator[None]:
    """While it lasts, every graph is marked before its pre-grad passes, sub-graphs too. Fills `markers`."""
    import torch._inductor.compile_fx as compile_fx

    passes = compile_fx._recursive_pre_grad_passes

    def mark_first(graph: Any, example_inputs: Any) -> Any:
        mark(graph, markers)
        return passes(graph, example_inputs)

    compile_fx._recursive_pre_grad_passes = mark_first
    try:
        yield
    finally:
        compile_fx._recursive_pre_grad_passes = passes


def mark(module: Any, markers: list[Marker]) -> None:
    import torch

    constants = {marker.constant for marker in markers}
    if any(constants.intersection(arg for arg in node.args if isinstance(arg, float)) for node in module.graph.nodes):
        return  # a graph that is called twice
    for node in list(module.graph.nodes):
        value = node.meta.get("example_value", node.meta.get("val"))
        if node.op not in _CALLS or not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
            continue
        if not node.users:  # in place, and read through what it changed: nothing would read the product
            continue
        marker = Marker(len(markers), node.name, _place(node.meta.get("stack_trace")))
        markers.append(marker)
        node.meta["stack_trace"] = f'  File "{FILE}", line {marker.number + 1}, in marked\n'
        with module.graph.inserting_after(node):
            product = module.graph.call_function(torch.mul, (node, marker.constant))
        product.meta = dict(node.meta)
        node.replace_all_uses_with(product, delete_user_cb=lambda user, product=product: user is not product)
    module.recompile()


def _place(stack_trace: str | None) -> str:
    frames = re.findall(r'File "([^"]+)", line (\d+)', stack_trace or "")
    return f"{os.path.basename(frames[-1][0])}:{frames[-1][1]}" if frames else ""


# ---- comparing ----------------------------------------------------------------------------------------------------


class _Captured:
    """The few records of a capture that are needed, as they were last."""

    def __init__(self, path: str) -> None:
        self.texts: list[Any] = []
        self.attrs: dict[str, dict[str, Any]] = {}
        self._constants: dict[str, set[float]] = {}
        self._locs: dict[int, dict[str, Any]] = {}
        self.users: dict[str, set[str]] = {}
        self.lowered: set[str] = set()  # nodes of the graphs that code is made of
        with open(path, encoding="utf-8") as file:
            for line in file:
                self._add(json.loads(line))
        for unit in self.attrs:
            for source in self.refs(unit, "inputs"):
                self.users.setdefault(source, set()).add(unit)

    def _add(self, record: dict[str, Any]) -> None:
        kind = record["record"]
        if kind == "text":
            self.texts.append(record["json"] if "json" in record else record.get("text", ""))
        elif kind == "loc":
            self._locs[record["id"]] = record
        elif kind == "snapshot" and record.get("stage") == "fx_post_grad":
            self.lowered.update(record.get("units", ()))
        elif kind == "attr" and record["state"] == "present":
            self.attrs.setdefault(record["unit"], {})[record["attr"]] = record

    def value(self, unit: str, attr: str) -> Any:
        record = self.attrs.get(unit, {}).get(attr, {})
        return self.texts[record["text"]] if "text" in record else None

    def refs(self, unit: str, attr: str) -> list[str]:
        return self.attrs.get(unit, {}).get(attr, {}).get("refs", [])

    def marker_of(self, unit: str) -> int | None:
        """The number of the marked node whose stack trace a unit carries."""
        loc = self.attrs.get(unit, {}).get("stack_trace", {}).get("loc")
        while loc is not None and self._locs[loc]["kind"] == "call":
            loc = self._locs[loc]["callee"]
        if loc is None or self.texts[self._locs[loc]["file"]] != FILE:
            return None
        return self._locs[loc]["line"] - 1

    def constants_of(self, unit: str) -> set[float]:
        if unit in self._constants:
            return self._constants[unit]
        found: set[float] = set()

        def walk(value: Any) -> None:
            if isinstance(value, float):
                found.add(value)
            for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
                walk(part)

        walk(self.value(unit, "args"))
        self._constants[unit] = found
        return found


def compare(name: str, path: str, markers: list[Marker]) -> Result:
    """Reads the capture of a compile that was marked. Nothing of the witness is used to search, nothing of the search to
    read the witness."""
    captured, result = _Captured(path), Result(name, markers=len(markers))
    numbers = {repr(marker.constant): marker.number for marker in markers}
    pattern = re.compile(r"(?<![\d.])(" + "|".join(map(re.escape, numbers)) + r")(?!\d)") if markers else re.compile(r"(?!)")
    kernels: dict[str, list[set[int]]] = {}  # the markers on each line
    for unit, attrs in captured.attrs.items():
        if "seen" not in attrs:
            continue
        text = captured.value(unit, "source")
        if isinstance(text, str):
            kernels[unit] = [{numbers[hit] for hit in pattern.findall(line)} for line in text.split("\n")]
        else:
            result.unread += 1
    seen = {number for lines in kernels.values() for line in lines for number in line}
    for unit, lines in kernels.items():
        _Kernel(captured, markers, result, seen, unit).compare(lines)
    result.nowhere = [str(marker) for marker in markers if marker.number not in seen]
    return result


class _Kernel:
    def __init__(self, captured: _Captured, markers: list[Marker], result: Result, seen: set[int], unit: str) -> None:
        self.captured, self.markers, self.result, self.seen = captured, markers, result, seen
        self.name = str(captured.value(unit, "name"))
        refs = captured.refs(unit, "witness")
        self.by_line: dict[int, set[str]] = {}  # nodes that each line is for
        self.workers: dict[int, set[str]] = {}  # marked node -> those of its nodes that calculate something here
        for entry in captured.value(unit, "witness") or []:
            for said in entry.get("lines", []):
                units = {refs[i] for i in [said.get("unit"), *said.get("also", [])] if i is not None}
                self.by_line.setdefault(said["line"], set()).update(units)
                for one in units if said["does"] not in _NO_WORK else ():
                    for number in self.markers_of(one):
                        self.workers.setdefault(number, set()).add(one)

    def markers_of(self, unit: str) -> set[int]:
        """By the line it carries, and as a multiplication by the constant: passes that put new nodes in lose lines."""
        constants = self.captured.constants_of(unit)
        by_constant = {marker.number for marker in self.markers if marker.constant in constants} if constants else set()
        line = self.captured.marker_of(unit)
        return by_constant if line is None else by_constant | {line}

    def compare(self, lines: list[set[int]]) -> None:
        found = set().union(*lines)
        if not found and not self.workers:
            return
        before = len(self.result.differences)
        for at, numbers in enumerate(lines, 1):
            for number in numbers:
                self.compare_line(at, number)
        for number in found - set(self.workers):
            self.differ(number, "its constant is in the text, the witness has no work for it here", "")
        for number in set(self.workers) - found:
            self.differ(number, "the witness has work for it here, its constant is not in the text",
                        self.handed_on(number))
        self.result.kernels += 1
        self.result.agreed += len(self.result.differences) == before

    def compare_line(self, at: int, number: int) -> None:
        """A line with the constant is for a node that was given it, or for one that carries the marked node's line."""
        self.result.lines += 1
        units = self.by_line.get(at, set())
        if any(number in self.markers_of(unit) for unit in units):
            self.result.lines_agreed += 1
        else:
            said = ", ".join(str(self.captured.value(unit, "name")) for unit in units) or "nobody"
            self.differ(number, f"line {at} holds its constant, and is for {said}", "")

    def handed_on(self, number: int) -> str:
        """Why a node may work here without its constant: what it makes here leads to the multiplication (or, in a
        backward, comes from it) through nodes of the same line, and another kernel has the constant."""
        constant = self.markers[number].constant
        if not any(constant in self.captured.constants_of(unit) for unit in self.captured.lowered):
            return "a pass has removed its multiplication"
        for start in self.workers[number]:
            if constant in self.captured.constants_of(start):
                return ""  # the multiplication itself, without its constant
            if not self.leads(start, number):
                return ""
        return "multiplied in another kernel" if number in self.seen else ""

    def leads(self, start: str, number: int) -> bool:
        constant, reached, open_ = self.markers[number].constant, {start}, [start]
        while open_:
            here = open_.pop()
            for unit in [*self.captured.users.get(here, ()), *self.captured.refs(here, "inputs")]:
                if constant in self.captured.constants_of(unit):
                    return True
                if unit not in reached and self.captured.marker_of(unit) == number:
                    reached.add(unit)
                    open_.append(unit)
        return False

    def differ(self, number: int, text: str, reason: str) -> None:
        self.result.differences.append(Difference(self.name, f"{self.markers[number]}: {text}", reason))


# ---- running ------------------------------------------------------------------------------------------------------


def check(name: str, run: Callable[[], Any]) -> Result:
    """Runs `run` with its compiles marked and captured at level truth."""
    from kerntrail._capture import open_capture

    markers: list[Marker] = []
    with tempfile.TemporaryDirectory(prefix="kerntrail_markers_") as folder:
        capture = open_capture(os.path.join(folder, "c.ndjson"), level="truth")
        try:
            with marked(markers):
                run()
        finally:
            capture.close()
        return compare(name, capture.path, markers)


def check_models() -> Iterator[Result]:
    """The built-in models, one after the other."""
    import torch

    from kerntrail._marker_models import MODELS

    for name, run in MODELS.items():
        torch._dynamo.reset()
        torch.manual_seed(0)
        yield check(name, run)


def table(results: list[Result]) -> str:
    head = ("model", "markers", "kernels", "agreed", "explained", "unexplained", "lines", "agreed", "in no kernel", "without text")
    rows = [(r.name, r.markers, r.kernels, r.agreed, len(r.differences) - len(r.unexplained), len(r.unexplained), r.lines,
             r.lines_agreed, len(r.nowhere), r.unread) for r in results]
    columns = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    out = ["  ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                     for i, (cell, width) in enumerate(zip(row, columns, strict=True))) for row in [head, *rows]]
    for result in results:
        out += [f"{result.name}: {d.kernel}: {d.text}" + (f" [{d.reason}]" if d.reason else " [UNEXPLAINED]") for d in result.differences]
    return "\n".join(out)
