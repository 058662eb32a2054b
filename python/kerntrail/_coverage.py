"""What `kerntrail drops` says of a capture, summed up for people: shares of units that keep a field, and who lost it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Cell:
    """One field at one stage, over all compiles of a capture."""

    units: int = 0
    covered: int = 0  # have it, or something of theirs leads to it
    missing: list[str] = field(default_factory=list)  # a sentence a unit

    @property
    def share(self) -> float:
        return self.covered / self.units if self.units else 1.0


@dataclass(frozen=True)
class Drop:
    """A field of a unit that one of its sources had, or that a pass made from nothing."""

    compile: str
    unit: str
    name: str
    field: str
    kind: str  # "lost", "orphan"
    place: str  # pass, or border between two stages
    pattern: str
    line: str  # of the compiler; empty where it is not known

    def __str__(self) -> str:
        how = "lost" if self.kind == "lost" else "made from nothing that is known"
        return f"{self.field} of {self.name} ({self.unit}): {how} {self.where}"

    @property
    def where(self) -> str:
        between = self.place.startswith("between ")
        text = self.place if between else f"in pass {self.place}" if self.place else "in no pass that is known"
        text += f" / {self.pattern}" if self.pattern else ""
        return text + (f", at {self.line}" if self.line else "")


def direction_of(part: dict[str, Any]) -> str:
    return part["compile"] + (f" {part['direction']}" if part.get("direction") else "")


def drops_of(document: dict[str, Any]) -> list[Drop]:
    out = []
    for part in document["parts"]:
        for loss in part["losses"]:
            out.append(_drop(part, loss, loss["field"], "lost"))
        for orphan in part["orphans"]:
            out += [_drop(part, orphan, name, "orphan") for name in orphan["fields"]]
    return out


def _drop(part: dict[str, Any], row: dict[str, Any], name: str, kind: str) -> Drop:
    site = part["sites"][row["site"]] if "site" in row else {}
    return Drop(direction_of(part), row["unit"], row.get("name") or row["unit"], name, kind, site.get("title", ""),
                site.get("pattern", ""), site.get("place", ""))


def cells_of(document: dict[str, Any]) -> dict[str, dict[str, Cell]]:
    """By stage and field, in the pipeline's order. Fields that do not exist yet at a stage are left out."""
    out: dict[str, dict[str, Cell]] = {}
    for part in document["parts"]:
        names = _names(part)
        drops = {(drop.unit, drop.field): drop for drop in drops_of({"parts": [part]})}
        for stage in part["stages"]:
            cells = out.setdefault(stage["stage"], {})
            for row in stage["fields"]:
                if not row["created"]:
                    continue
                cell = cells.setdefault(row["field"], Cell())
                cell.units += row["units"]
                cell.covered += row["present"] + row["reasons"]["carried_by"]
                cell.missing += _missing(part, row, names, drops)
    return out


def _missing(part: dict[str, Any], row: dict[str, Any], names: dict[str, str], drops: dict[tuple[str, str], Drop]) -> Iterator[str]:
    for note in row["units_to_note"]:
        reason = note.get("reason")
        if note.get("state") == "present" or reason in (None, "carried_by"):
            continue
        name = names.get(note["unit"])
        text = f"{name} ({note['unit']})" if name else note["unit"]
        if "loss" in note:
            loss = part["losses"][note["loss"]]
            yield f"{text}: lost {_drop(part, loss, row['field'], 'lost').where}"
        elif drop := drops.get((note["unit"], row["field"])):
            yield f"{text}: made from nothing that is known {drop.where}"
        else:
            yield f"{text}: {reason.replace('_', ' ')}" + (f" ({note['root'].replace('_', ' ')})" if "root" in note else "")


def _names(part: dict[str, Any]) -> dict[str, str]:
    rows = [row for key in ("losses", "marks", "orphans", "declared", "findings") for row in part.get(key, ())]
    return {row["unit"]: row["name"] for row in rows if row.get("name")}
