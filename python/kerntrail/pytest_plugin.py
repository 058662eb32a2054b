"""pytest plugin: tests of a compiler team assert provenance, and `--kerntrail` shows what any test suite loses of it.

    def test_my_backend_keeps_lines(kerntrail):
        compiled = kerntrail.compile(Model().eval(), torch.randn(4, 8), backend="my_backend")
        compiled.assert_coverage({"fx_post_grad": {"stack_trace": 1.0}, "kernel": {"stack_trace": 1.0}})
        compiled.assert_no_drops(allow=["pass_pattern_*"])

Nothing here imports torch before a test asks for a compile, or `--kerntrail` is given.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from kerntrail._coverage import Cell, Drop

DEFAULT_FOLDER = "kerntrail_captures"
_LEVELS = ("borders", "passes", "origins", "truth")
_MAX_NAME = 200  # bytes of a file's name, before its extension
_SHOWN = 12  # rows of a list in a message


class SourceLine(NamedTuple):
    file: str
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Compiled:
    """What was compiled under one capture. Questions are answered by the kerntrail program, once each."""

    def __init__(self, path: Path, level: str) -> None:
        self.capture = path
        self.level = level
        self.output: Any = None  # what the model returned
        self._known: dict[tuple[str, ...], Any] = {}

    def _json(self, verb: str, *arguments: str) -> Any:
        key = (verb, *arguments)
        if key not in self._known:
            from kerntrail._binary import ask_json

            self._known[key] = ask_json(verb, str(self.capture), *arguments)
        return self._known[key]

    # ---- what there is

    @property
    def compiles(self) -> list[str]:
        """Ids of the compiles that were observed: "c0", ..."""
        return sorted({part["compile"] for part in self._drops()["parts"]}, key=lambda each: int(each[1:]))

    @property
    def kernels(self) -> list[str]:
        """Names of all kernels, in order; one a compile and kernel."""
        return [node["name"] for lineage in self._json("lineage", "--stages", "all")["lineages"]
                for node in lineage["nodes"] if lineage["layers"][node["layer"]]["key"] == "kernel"]

    def matrix(self) -> dict[str, dict[str, Cell]]:
        """By stage and field: `units`, `covered` (units that have the field, or lead to it), `share`, `missing`."""
        from kerntrail._coverage import cells_of

        return cells_of(self._drops())

    def drops(self) -> list[Drop]:
        """Every field of every unit that was lost, or that a pass made from nothing."""
        from kerntrail._coverage import drops_of

        return drops_of(self._drops())

    def lines_of(self, kernel: str) -> list[SourceLine]:
        """Source lines that a kernel, by name or id, comes from; by file and line."""
        found = self._json("lineage", "--stages", "all", "--kernel", kernel)
        lines = {SourceLine(node["file"], node["line"], node["name"]) for lineage in found["lineages"]
                 for node in lineage["nodes"] if node["layer"] == 0}
        return sorted(lines)

    def explain(self, what: str) -> str:
        """`kerntrail explain`: of a kernel, a unit, "file.py:LINE" or a handle."""
        from kerntrail._binary import ask

        return ask("explain", str(self.capture), what)

    # ---- assertions

    def assert_coverage(self, wanted: Mapping[str, Mapping[str, float]] | str, *, stage: str | None = None,
                        at_least: float = 1.0) -> None:
        """Each field, at each stage, is there on that share of the units, or on something that they lead to.

        `assert_coverage({"fx_post_grad": {"stack_trace": 1.0}})`, or one: `assert_coverage("origins",
        stage="ir_pre_pass")`. A stage or field that was not observed fails too.
        """
        __tracebackhide__ = True
        if isinstance(wanted, str):
            if stage is None:
                raise TypeError("assert_coverage of one field needs a stage")
            wanted = {stage: {wanted: at_least}}
        elif stage is not None:
            raise TypeError("assert_coverage of several stages names them in the first argument")
        self._assert_observed()
        matrix = self.matrix()
        failures = [text for key, fields in wanted.items() for name, share in fields.items()
                    if (text := _too_low(matrix, key, name, share))]
        self._fail_where("provenance coverage is too low", failures)

    def assert_no_drops(self, allow: Iterable[str] = (), *, fields: Iterable[str] = (), stage: str | None = None) -> None:
        """No field of any unit is lost. `allow`: "PASS", "PASS:FIELD" or "PASS:FIELD:UNIT", each part a pattern as of a
        shell; a PASS may also be the pattern that matched. `fields`: only these. Needs level passes or above."""
        __tracebackhide__ = True
        self._assert_observed()
        allowed = [allow] if isinstance(allow, str) else list(allow)
        only = {fields} if isinstance(fields, str) else set(fields)
        drops = self.drops()
        if stage is not None:
            units = {note["unit"] for part in self._drops()["parts"] for row in part["stages"] if row["stage"] == stage
                     for cell in row["fields"] for note in cell["units_to_note"]}
            drops = [drop for drop in drops if drop.unit in units]
        wrong = [str(drop) for drop in drops if (not only or drop.field in only) and not _is_allowed(drop, allowed)]
        self._fail_where("provenance was lost", wrong)

    def assert_true(self, *, precision: float = 1.0, recall: float = 0.0, of: str = "lines", stage: str = "kernel") -> None:
        """What the compiler says that its kernels come from is what they really do (`kerntrail verify`), to at least
        these shares of source lines, or of "nodes". Needs level truth."""
        __tracebackhide__ = True
        if of not in ("lines", "nodes"):
            raise ValueError(f'of: {of!r}: "lines" or "nodes"')
        self._assert_observed()
        if self.level != "truth":
            raise ValueError(f"assert_true needs level=\"truth\"; this was captured at level {self.level!r}")
        document = self._json("verify", "--stages", stage)
        rows = [row for row in document["totals"] if row["stage"] == stage and of in row]
        evidence = _best_evidence(rows)
        rows = [row for row in rows if row["evidence"] == evidence]
        claimed = sum(row[of]["claimed"] for row in rows)
        wrong = sum(row[of]["elsewhere"] + row[of]["nowhere"] for row in rows)
        missed = sum(row[of]["missed"] for row in rows)
        right = claimed - wrong
        failures = []
        if not rows:
            failures.append(f"no claim about a unit of stage {stage} was checked")
        if claimed and right / claimed < precision:
            failures.append(f"precision {right} of {claimed} {of}, wanted {precision:g}")
        if right + missed and right / (right + missed) < recall:
            failures.append(f"recall {right} of {right + missed} {of}, wanted {recall:g}")
        if failures:
            failures += list(_verdicts(document, evidence, of, bool(missed) and recall > 0))
        self._fail_where("the compiler's claims are not true", failures)

    # ---- helpers

    def _drops(self) -> Any:
        return self._json("drops")  # a kernel that is seen as its files is no stage of its own

    def _assert_observed(self) -> None:
        __tracebackhide__ = True
        if not any(part["stages"] for part in self._drops()["parts"]):
            from kerntrail._binary import ask

            pytest.fail(f"nothing was observed: no compile ran while the capture was open, or it was served from a cache\n"
                        f"{ask('info', str(self.capture))}", pytrace=False)

    def _fail_where(self, title: str, rows: list[str]) -> None:
        __tracebackhide__ = True
        if not rows:
            return
        shown = rows[:_SHOWN] + ([f"... and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else [])
        body = "\n".join("  " + row.replace("\n", "\n  ") for row in shown)
        raise AssertionError(f"{title}\n{body}\n  capture: {self.capture} (kerntrail drops, kerntrail explain)")


def _too_low(matrix: dict[str, dict[str, Cell]], stage: str, name: str, share: float) -> str:
    cells = matrix.get(stage)
    if cells is None:
        return f"{stage}: the stage was not observed; observed were {', '.join(matrix)}"
    cell = cells.get(name)
    if cell is None:
        return f"{stage}: no field {name!r} there; there are {', '.join(cells)}"
    if cell.share >= share:
        return ""
    rows = cell.missing[:_SHOWN]
    more = len(cell.missing) - len(rows)
    lines = [f"{stage}  {name}: {cell.covered} of {cell.units} units ({cell.share:.2f}), wanted {share:g}"]
    return "\n    ".join(lines + rows + ([f"... and {more} more"] if more else []))


def _is_allowed(drop: Drop, allowed: Iterable[str]) -> bool:
    for item in allowed:
        place, _, rest = item.partition(":")
        name, _, unit = rest.partition(":")
        places = [each for each in (drop.place, drop.pattern) if each] or [""]
        if (any(fnmatch.fnmatchcase(each, place) for each in places) and fnmatch.fnmatchcase(drop.field, name or "*")
                and fnmatch.fnmatchcase(drop.name, unit or "*")):
            return True
    return False


def _best_evidence(rows: list[dict[str, Any]]) -> str:
    """Claims of one kind are judged: those of the origins, which there are at every provenance level, where there are any."""
    kinds = [row["evidence"] for row in rows]
    return "origins" if "origins" in kinds else kinds[0] if kinds else ""


def _verdicts(document: dict[str, Any], evidence: str, of: str, with_missed: bool) -> Iterator[str]:
    for part in document["parts"]:
        for unit in part["units"]:
            for row in unit[of] if unit["evidence"] == evidence else ():
                what = f"{row['file']}:{row['line']}  {row['code']}" if of == "lines" else row["name"]
                if row["claimed"] and row["witness"] in ("elsewhere", "nowhere"):
                    yield f"{unit['name']} does not compute {what} ({row['witness']}){_rewrites(part, row)}"
                elif not row["claimed"] and with_missed:
                    yield f"{unit['name']} works for {what}, and nobody says so{_rewrites(part, row)}"


def _rewrites(part: dict[str, Any], row: dict[str, Any]) -> str:
    found = [part["rewrites"][each] for each in row.get("rewrites", ())]
    return "".join(f"\n  {each['name']} was {', '.join(each['was'])}, written over by {each.get('pass') or 'no pass that is known'}"
                   + (f", at {each['place']}" if each.get("place") else "") for each in found)


# ---- the fixture


class Kerntrail:
    """The fixture `kerntrail`: compiles models under a capture of their own."""

    def __init__(self, path_of: Callable[[int], Path], wrote: Callable[[Path], None]) -> None:
        self._path_of = path_of
        self._wrote = wrote
        self._count = 0

    @contextmanager
    def capture(self, *, level: str = "passes") -> Iterator[Compiled]:
        """Everything compiled inside the block; the object may be asked after it. Dynamo starts anew, Inductor's caches
        are off: a compile that comes from a cache shows nothing."""
        import torch
        import torch._dynamo
        import torch._inductor.config as inductor

        from kerntrail._capture import open_capture

        self._count += 1
        path = self._path_of(self._count)
        path.parent.mkdir(parents=True, exist_ok=True)
        compiled = Compiled(path, level)
        torch._dynamo.reset()
        with inductor.patch(force_disable_caches=True):
            opened = open_capture(path, level=level, replace=True)
            try:
                yield compiled
            finally:
                opened.close()
                torch._dynamo.reset()
        self._wrote(path)

    def compile(self, model: Any, *inputs: Any, level: str = "passes", backward: bool = False, **options: Any) -> Compiled:
        """Compiles and calls a model once, under a capture. `options` are torch.compile's (backend, mode, dynamic,
        options, ...). Without `backward` no gradients are recorded, so that the graph is one of inference; with it the
        sum of what the model returns is differentiated too."""
        import torch

        with self.capture(level=level) as compiled, torch.set_grad_enabled(backward):
            compiled.output = torch.compile(model, **options)(*inputs)
            if backward:
                sum(leaf.sum() for leaf in _tensors(compiled.output) if leaf.requires_grad).backward()
        return compiled


def _tensors(value: Any) -> list[Any]:
    import torch.utils._pytree as pytree

    return [leaf for leaf in pytree.tree_leaves(value) if hasattr(leaf, "requires_grad")]


@pytest.fixture
def kerntrail(request: pytest.FixtureRequest) -> Kerntrail:
    """`kerntrail.compile(model, *inputs)` compiles under a capture and returns what to assert about."""
    session = request.config.stash.get(_session, None)

    def path_of(count: int) -> Path:
        if session is not None:
            return session.path_of(request.node.nodeid, count)
        return Path(request.getfixturevalue("tmp_path")) / f"kerntrail-{count}.ndjson"

    return Kerntrail(path_of, lambda path: session.wrote.append(str(path)) if session is not None else None)


# ---- --kerntrail


@dataclass
class _Session:
    folder: Path
    level: str
    wrote: list[str]
    failed: list[str]

    def path_of(self, nodeid: str, count: int = 0) -> Path:
        """tests/test_a.py::TestB::test_c[d] -> tests/test_a.py/TestB.test_c[d].ndjson"""
        file, _, test = nodeid.partition("::")
        where, bracket, parameters = test.partition("[")
        test = where.replace("::", ".") + bracket + parameters
        name = re.sub(r"[^\w.\[\]=,-]", lambda found: f"%{ord(found[0]):02x}", test)
        if len(name.encode()) > _MAX_NAME:
            name = name.encode()[: _MAX_NAME - 17].decode(errors="ignore") + "-" + hashlib.sha256(nodeid.encode()).hexdigest()[:16]
        parts = [part for part in file.split("/") if part not in ("", ".", "..")]
        return self.folder.joinpath(*parts, name + (f".{count}" if count else "") + ".ndjson")


_session = pytest.StashKey[_Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kerntrail", "provenance of compiled models")
    group.addoption("--kerntrail", nargs="?", const=DEFAULT_FOLDER, default=None, metavar="DIR",
                    help=f"capture every torch.compile of every test into DIR/<test>.ndjson (default {DEFAULT_FOLDER}), and say at "
                         "the end what provenance was lost where; Inductor's caches are off")
    group.addoption("--kerntrail-level", choices=_LEVELS, default="passes", help="level of these captures (default passes)")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--kerntrail")
    if folder is None:
        return
    path = Path(folder)
    # Given without "=", an option with an optional value takes the next word, which was meant as tests.
    if "::" in folder or path.is_file() or (path.is_dir() and any(path.glob("*.py"))):
        raise pytest.UsageError(f"--kerntrail took {folder} as the folder for captures; write --kerntrail=DIR, or put --kerntrail last")
    base = Path(getattr(config, "workerinput", {}).get("kerntrail_base", config.invocation_params.dir))
    config.stash[_session] = _Session(base / path, config.getoption("--kerntrail-level"), [], [])
    os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # read by torch at import


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["kerntrail_base"] = str(node.config.invocation_params.dir)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    session = item.config.stash.get(_session, None)
    if session is None:
        return (yield)
    opened = _open(session, item)
    try:
        return (yield)
    finally:
        if opened is not None:
            _close(session, opened)


def _open(session: _Session, item: pytest.Item) -> Any:
    """A capture for the whole test, fixtures too; it gives way to one that the test opens itself."""
    try:
        import torch._inductor.config as inductor

        from kerntrail._capture import open_capture

        inductor.force_disable_caches = True
        path = session.path_of(item.nodeid)
        path.parent.mkdir(parents=True, exist_ok=True)
        return open_capture(path, level=session.level, replace=True, gives_way=True)
    except Exception as error:  # noqa: BLE001 - a test must not fail for being watched
        session.failed.append(f"{item.nodeid}: not captured: {error}")
        return None


def _close(session: _Session, opened: Any) -> None:
    try:
        opened.close()
        if opened.compile_count:
            session.wrote.append(opened.path)
        else:
            os.unlink(opened.path)
    except Exception as error:  # noqa: BLE001
        session.failed.append(f"{opened.path}: {error}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    own = session.config.stash.get(_session, None)
    if own is not None and hasattr(session.config, "workeroutput"):
        session.config.workeroutput["kerntrail"] = [own.wrote, own.failed]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    own = node.config.stash.get(_session, None)
    if own is not None:
        wrote, failed = getattr(node, "workeroutput", {}).get("kerntrail", ([], []))
        own.wrote += wrote
        own.failed += failed


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = config.stash.get(_session, None)
    if session is None or hasattr(config, "workerinput"):
        return
    terminalreporter.section("kerntrail")
    try:
        for line in _summary(session):
            terminalreporter.write_line(line)
    except Exception as error:  # noqa: BLE001 - a summary must not fail a run
        terminalreporter.write_line(f"no summary: {error}")


def _summary(session: _Session) -> Iterator[str]:
    from kerntrail._binary import ask_json
    from kerntrail._coverage import Cell, cells_of, drops_of

    total: dict[str, dict[str, Cell]] = {}
    places: Counter[str] = Counter()
    tests: dict[str, set[str]] = {}
    read = 0
    for path in sorted(set(session.wrote)):
        try:
            document = ask_json("drops", path, "--stages", "all")
        except RuntimeError as error:
            session.failed.append(str(error))
            continue
        read += 1
        for stage, cells in cells_of(document).items():
            for name, cell in cells.items():
                sum_ = total.setdefault(stage, {}).setdefault(name, Cell())
                sum_.units += cell.units
                sum_.covered += cell.covered
        for drop in drops_of(document):
            places[drop.where] += 1
            tests.setdefault(drop.where, set()).add(path)
    yield f"{read} captures in {session.folder}"
    yield from _table(total)
    for where, count in places.most_common(_SHOWN):
        yield f"  {count} fields of units lost {where} ({len(tests[where])} captures)"
    if len(places) > _SHOWN:
        yield f"  ... and at {len(places) - _SHOWN} more places"
    for failure in session.failed[:_SHOWN]:
        yield f"  {failure}"


def _table(total: dict[str, dict[str, Cell]]) -> Iterator[str]:
    """Coverage: a row a stage, a column a field that is not whole somewhere."""
    fields = list(dict.fromkeys(name for cells in total.values() for name in cells))
    if not fields:
        return
    yield "units with the field, or leading to it, by stage:"
    width = max(map(len, total))
    yield "  ".join(["  " + "stage".ljust(width), "units".rjust(6), *fields])
    for stage, cells in total.items():
        units = max((cell.units for cell in cells.values()), default=0)
        row = [_share(cells[name]) if name in cells else "-" for name in fields]
        yield "  ".join(["  " + stage.ljust(width), str(units).rjust(6), *(text.rjust(len(name)) for text, name in zip(row, fields, strict=True))])


def _share(cell: Cell) -> str:
    """100% only where it is whole."""
    return f"{100 * cell.covered // cell.units}%" if cell.units else "-"
