"""What the witness of a capture says, by names: for tests. Shares no code with the C++ side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from capture_view import CaptureView

# Statements of a C++ kernel that are no operation: loops, declarations of what all of it works with, another name for
# a pointer (a buffer that is written in place), memory that loop nests of one kernel hand a value on in.
CPP_CONTROL = re.compile(r"[{}#)]|for ?\(|if ?\(|else|extern|return;|int (max_threads|tid)\b|std::atomic|inductor_cpu_|"
                         r"auto \w+_ptr\d+ = \w+_ptr\d+;|.*\bbuf_local_buffer_data_\d+(;| = |\.get\(\);)")
TRITON_OPERATION = re.compile(r"_?tmp\d+\w*(, tmp\d+)*,? = |tl\.(store|atomic_\w+|device_assert)\(|return tmp")


MOVES = {"load", "store", "store_reduction", "constant", "index_expr", "value_expr", "get_index", "check_bounds"}


@dataclass
class Line:
    number: int
    text: str
    does: str = "control"
    op: str = ""
    node: str = ""
    also: list[str] = field(default_factory=list)
    made: dict[str, Any] | None = None
    shared: bool = False


@dataclass
class Use:
    """One registration of a kernel: a call of it, as the compiler generated it."""

    kernel: str
    kernel_class: str
    lines: list[Line]
    bodies: dict[str, list[tuple[str, str]]]  # by operation: (op, node)
    lowered: dict[str, str]  # operation: node

    def operations(self) -> list[Line]:
        """The lines of the text that are operations, found by their form alone."""
        if self.kernel.startswith("triton"):
            return [line for line in self.lines if TRITON_OPERATION.match(line.text)]
        return [line for line in self.lines if line.text.endswith(";") and not CPP_CONTROL.match(line.text)]

    def computes(self) -> dict[str, set[str]]:
        """Node -> the operations it computes."""
        out: dict[str, set[str]] = {}
        for ops in self.bodies.values():
            for op, node in ops:
                if op not in MOVES:
                    out.setdefault(node, set()).add(op)
        return out


def uses(view: CaptureView) -> Iterator[Use]:
    names = {unit: view.value(attrs["name"]) for snapshot in view.snapshots
             for unit, attrs in snapshot["units"].items() if "name" in attrs}
    for snapshot in view.snapshots:
        if snapshot["stage"] != "kernel":
            continue
        for attrs in snapshot["units"].values():
            record = attrs["witness"]
            if record["state"] != "present":
                continue
            refs = [names.get(unit) or view.units[unit]["seen_only_as"] for unit in record.get("refs", [])]
            text = view.value(attrs["source"]).split("\n") if "source" in attrs else []
            for entry in view.value(record):
                yield read_use(entry, refs, text, view.value(attrs["name"]), class_of(view, attrs))


def class_of(view: CaptureView, attrs: dict[str, Any]) -> str:
    """Of what was never registered itself the compiler says none: a name that was stands for it and others."""
    return (view.value(attrs["class"]) or "") if "class" in attrs else "alternative"


def read_use(entry: dict[str, Any], refs: list[str], text: list[str], kernel: str, kernel_class: str) -> Use:
    def node(of: dict[str, Any]) -> str:
        return refs[of["unit"]] if "unit" in of else ""

    lines = [Line(number, line.strip()) for number, line in enumerate(text, 1)]
    for said in entry.get("lines", []):
        line = lines[said["line"] - 1]
        line.does, line.op, line.node = said["does"], said.get("op", ""), node(said)
        line.also = [refs[i] for i in said.get("also", [])]
        line.made, line.shared = said.get("made"), said.get("shared", False)
    bodies = {body["operation"]: [(op["op"], node(op) or op.get("made", {}).get("function", "")) for op in body["ops"]]
              for body in entry.get("bodies", [])}
    return Use(kernel, kernel_class, lines, bodies, {of["operation"]: node(of) for of in entry.get("lowered", [])})


# Sub-blocks are in no list of operations; what a scan or a sort is given is.
NOT_LISTED = {"masked_subblock", "set_indirect", "scan", "sort", "output"}


def contradictions(use: Use) -> list[str]:
    """Where lines and loop bodies of one kernel don't say the same: they are noted at different times."""
    if not use.bodies or not any(line.op for line in use.lines):
        return []
    listed = {(plain(op), node) for ops in use.bodies.values() for op, node in ops}
    printed = {node for line in use.lines for node in [line.node, (line.made or {}).get("function", ""), *line.also]}
    found = [f"{use.kernel}:{line.number}: {line.op} for {line.node}, which no loop body has" for line in use.lines
             if line.op and line.node and line.op not in NOT_LISTED and (line.op, line.node) not in listed]
    return found + [f"{use.kernel}: {op} for {node}, which has no line" for op, node in listed
                    if node not in printed and op not in MOVES]


def plain(op: str) -> str:
    """Without the number of a sub-block."""
    return op if op in ("log2", "exp2", "log10", "atan2") else op.rstrip("0123456789")


@dataclass
class Share:
    """How much of what is printed and computed has one source."""

    lines: Counter = field(default_factory=Counter)  # (kernel class, whether it has one)
    ops: Counter = field(default_factory=Counter)
    without: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)

    def add(self, use: Use) -> None:
        self.contradictions += contradictions(use)
        # The text of a template is the template's, but for what was fused into it.
        for line in use.operations() if use.kernel_class in ("loop", "alternative") else []:
            known = bool(line.node) != bool(line.made)
            self.lines[use.kernel_class, known] += 1
            if not known:
                self.without.append(f"{use.kernel}:{line.number}: {line.text}")
        for operation, ops in use.bodies.items():
            for op, node in ops:
                self.ops[use.kernel_class, bool(node)] += 1
                if not node:
                    self.without.append(f"{use.kernel}: {op} of {operation}")
        for operation, node in use.lowered.items():
            self.ops[use.kernel_class, bool(node)] += 1
            if not node:
                self.without.append(f"{use.kernel}: {operation}")

    def part(self, counts: Counter) -> float:
        total = sum(counts.values())
        return sum(n for (_, known), n in counts.items() if known) / total if total else 1.0

    def __str__(self) -> str:
        return f"lines {dict(self.lines)}, operations {dict(self.ops)}, without: {self.without}"
