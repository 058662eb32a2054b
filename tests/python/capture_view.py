"""A small independent reader of captures for tests: replays differences in Python, shares no code with the C++ reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class CaptureView:
    def __init__(self, path: str | Path) -> None:
        self.records = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
        self.texts: list[Any] = []
        self.units: dict[str, dict[str, Any]] = {}
        self.graphs: dict[str, dict[str, Any]] = {}
        self.snapshots: list[dict[str, Any]] = []  # {stage, graph, units: {id: {attr: record}}}
        self.looks: dict[int, dict[str, Any]] = {}  # by pass: {units: as in snapshots, before: state until then}
        self.compiles: dict[str, dict[str, Any]] = {}
        self.end: dict[str, Any] | None = None
        pending: list[dict[str, Any]] = []
        state: dict[str, dict[str, Any]] = {}
        for record in self.records:
            kind = record["record"]
            if kind == "text":
                self.texts.append(record["json"] if "json" in record else record.get("text", ""))
            elif kind in ("unit", "graph", "compile"):
                {"unit": self.units, "graph": self.graphs, "compile": self.compiles}[kind][record["id"]] = record
            elif kind == "attr":
                pending.append(record)
            elif kind == "snapshot":
                before = {unit: dict(attrs) for unit, attrs in state.items()} if "pass" in record else {}
                for change in pending:
                    state.setdefault(change["unit"], {})[change["attr"]] = change
                pending = []
                seen = {unit: dict(state.get(unit, {})) for unit in record.get("units", [])}
                if "stage" not in record:  # a look at the end of a pass: its changes count from here on
                    self.looks[record["pass"]] = {"units": seen, "before": before}
                    continue
                self.snapshots.append({"stage": record["stage"], "graph": record["graph"], "units": seen})
            elif kind == "end":
                self.end = record

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["record"] == kind]

    def notes(self, code: str) -> list[dict[str, Any]]:
        return [note for note in self.of("note") if note["code"] == code]

    def compile_of(self, snapshot: dict[str, Any]) -> str:
        return self.graphs[snapshot["graph"]].get("compile", snapshot["graph"].split(".")[0])

    def stages(self, compile_id: str = "c0") -> list[str]:
        return [s["stage"] for s in self.snapshots if self.compile_of(s) == compile_id]

    def at(self, stage: str, compile_id: str = "c0", direction: str | None = None) -> list[dict[str, Any]]:
        """Counted units of a stage: one dict of plain values each, over all its graphs, in order."""
        out = []
        for snapshot in self.snapshots:
            graph = self.graphs[snapshot["graph"]]
            if snapshot["stage"] != stage or self.compile_of(snapshot) != compile_id:
                continue
            if direction is not None and graph.get("direction") != direction:
                continue
            for unit, attrs in snapshot["units"].items():
                row = {"unit": unit, **{name: self.value(record) for name, record in attrs.items()}}
                row["states"] = {name: record["state"] for name, record in attrs.items()}
                if row.get("op") not in ("placeholder", "output"):
                    out.append(row)
        return out

    def passes(self, **where: Any) -> list[dict[str, Any]]:
        """Passes in the order they began, start and end in one; `ended` says whether there was an end."""
        out: dict[int, dict[str, Any]] = {}
        for record in self.of("pass"):
            begun = out.setdefault(record["id"], {"created": [], "erased": [], "changed": [], "replaced": [], "by": [], "ended": False})
            begun.update(record, ended=record["phase"] == "end")
        return [p for p in out.values() if all(p.get(key) == value for key, value in where.items())]

    def births(self, **where: Any) -> list[dict[str, Any]]:
        return [birth for birth in self.of("birth") if all(birth.get(key) == value for key, value in where.items())]

    def frames(self, loc: int) -> list[dict[str, Any]]:
        """The ranges of a call chain, innermost first."""
        out: list[dict[str, Any]] = []
        locs = {record["id"]: record for record in self.of("loc")}
        while loc is not None:
            record = locs[loc]
            if record["kind"] == "call":
                out += self.frames(record["callee"])
                loc = record["caller"]
            else:
                file, function = self.texts[record["file"]], record.get("function")
                out.append({**record, "file": file, "function": self.texts[function] if function is not None else ""})
                return out
        return out

    def value(self, record: dict[str, Any]) -> Any:
        if record["state"] != "present":
            return None
        if "refs" in record and "text" not in record:
            return record["refs"]
        return self.texts[record["text"]] if "text" in record else record.get("refs")

    def hook(self, label: str) -> dict[str, Any]:
        return [record for record in self.of("hook") if record["label"] == label][-1]

    def names(self, stage: str, **where: Any) -> list[str]:
        return [row["name"] for row in self.at(stage, **where)]

    def leads_back(self, stage: str = "fx_aten", to: tuple[str, ...] = ("fx_pre_grad", "fx_joint")) -> tuple[list[str], list[str]]:
        """Units of a stage's compute nodes: (those that lead to a unit of one of the stages `to`, those that don't).

        A unit leads where it is one itself, and where what its births and its from_node name does.
        """
        ends = {unit for snapshot in self.snapshots if snapshot["stage"] in to for unit in snapshot["units"]}
        sources: dict[str, set[str]] = {}
        for record in self.of("birth"):
            sources.setdefault(record["unit"], set()).update(record.get("sources", []))
        for record in self.of("attr"):
            if record["attr"] == "from_node":
                sources.setdefault(record["unit"], set()).update(record.get("refs", []))

        def leads(unit: str) -> bool:
            seen, open_ = {unit}, [unit]
            while open_:
                here = open_.pop()
                if here in ends:
                    return True
                new = sources.get(here, set()) - seen
                seen |= new
                open_ += new
            return False

        units = [row["unit"] for compile_id in self.compiles for row in self.at(stage, compile_id)]
        return [unit for unit in units if leads(unit)], [unit for unit in units if not leads(unit)]
