"""For authors of FX passes: does a pass keep the provenance of what it rewrites, and which line of it does not?

    from kerntrail.testing import assert_preserves_provenance

    def test_my_pass():
        assert_preserves_provenance(my_pass, traced_model)

Every node gets synthetic provenance that names it alone, the pass runs, and what became of each id is judged in C++
(`kerntrail._native.ledger`): this file puts the ids in, watches, takes them out, and prints.
"""

from __future__ import annotations

import copy
import fnmatch
import functools
import itertools
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch.fx as fx
from torch.fx.traceback import NodeSource, NodeSourceAction

from kerntrail._native import ledger as _ledger

FIELDS = ("stack_trace", "nn_module_stack", "source_fn_stack", "original_aten", "from_node")
FATES: tuple[str, ...] = tuple(_ledger.fates)
# What `allow` may name: what is wrong with a pass.
FAULTS = ("lost", "overwritten", "merged", "fabricated", "incomplete")

# Those that are made synthetic. Passes and lowering read the others, so of these only the presence is judged.
_SYNTHETIC = ("stack_trace", "from_node")
_runs = itertools.count(1)
_lock = threading.RLock()  # one pass at a time is watched in a process

Pass = Callable[[Any], Any]


@dataclass(frozen=True)
class Entry:
    """What became of one id in one pass."""

    pass_name: str
    id: int
    node: str
    fate: str
    heirs: list[str]  # nodes that name the id, else the one that has its place
    is_named: bool
    without: list[str]  # fields that an heir lacks, though the node had them
    loc: str  # "file:line" of the pass's own code; empty where nothing happened or no line is known
    why: str


@dataclass(frozen=True)
class Fabricated:
    """A node that the pass made and that names no source, or one that nobody gave."""

    pass_name: str
    node: str
    loc: str
    why: str


@dataclass(frozen=True)
class Ledger:
    """One pass: an entry for each id, and the nodes that come from none."""

    pass_name: str
    entries: list[Entry]
    fabricated: list[Fabricated]
    kept: int  # nodes that were there before
    inheriting: int  # new nodes that name an id

    @property
    def counts(self) -> dict[str, int]:
        """Ids by fate, all fates; they sum to the ids."""
        counted = Counter(entry.fate for entry in self.entries)
        return {fate: counted[fate] for fate in FATES}

    def __str__(self) -> str:
        total = len(self.entries)
        parts = [f"{count} {fate}" for fate, count in self.counts.items() if count]
        head = f"{self.pass_name}: {total} ids = {' + '.join(parts) or '0'}; {len(self.fabricated)} nodes fabricated"
        rows = [_entry_row(entry) for entry in self.entries if entry.fate != "survived" or entry.without]
        rows += [_row("fabricated", node.node, node.why, node.loc) for node in self.fabricated]
        return "\n".join([head, *rows])


@dataclass(frozen=True)
class Debugified:
    """What `debugify` found: a ledger a pass, and what the last pass left."""

    ledgers: list[Ledger]
    result: fx.GraphModule | fx.Graph

    @property
    def ledger(self) -> Ledger:
        """The ledger, where there was one pass."""
        (only,) = self.ledgers
        return only

    def __str__(self) -> str:
        return "\n".join(map(str, self.ledgers))


def debugify(graph_module: fx.GraphModule | fx.Graph, passes: Any) -> Debugified:
    """Runs passes over a graph in which each node carries an id of its own, and accounts for every id.

    `passes`: a function, or a list or a dict of functions, or a list of pairs (name, function). Each gets what was
    handed in, a graph module or a graph; a graph module that a pass returns goes to the next one. Each pass is judged
    alone, with fresh ids. An exception of a pass goes through; the graph's provenance is its own again by then.
    """
    target = graph_module
    ledgers = []
    for name, function in _named(passes):
        target, ledger = _run(name, function, target)
        ledgers.append(ledger)
    return Debugified(ledgers, target)


def assert_preserves_provenance(
    pass_or_passes: Any,
    graph_module: fx.GraphModule | fx.Graph,
    *,
    allow: Iterable[str] = (),
    fields: Iterable[str] = FIELDS,
) -> Debugified:
    """Raises AssertionError, with the lines of the pass, unless every id is still named or was rightly dropped.

    Wrong are: `lost`; `overwritten`; `merged`, where no node names the id any more; `fabricated`; `incomplete`, a node
    that names an id without one of `fields`. `allow` lists what is accepted: "lost", or "lost:mm*" for some nodes.
    """
    allowed = [allow] if isinstance(allow, str) else list(allow)
    for item in allowed:
        if item.partition(":")[0] not in FAULTS:
            known = ", ".join(FAULTS)
            raise ValueError(f"allow: {item!r} is none of {known} (alone, or with a colon and the name of a node)")
    wanted = set(fields)
    if unknown := wanted - set(FIELDS):
        raise ValueError(f"fields: {', '.join(sorted(unknown))}: none of {', '.join(FIELDS)}")
    found = debugify(graph_module, pass_or_passes)
    faults = [
        f"  {ledger.pass_name}:\n  {row}"
        for ledger in found.ledgers
        for fault, node, row in _faults(ledger, wanted)
        if not any(_is_allowed(item, fault, node) for item in allowed)
    ]
    if faults:
        raise AssertionError("provenance is not preserved\n" + "\n".join([*faults, str(found)]))
    return found


def _faults(ledger: Ledger, fields: set[str]) -> Iterator[tuple[str, str, str]]:
    for entry in ledger.entries:
        if entry.fate in ("lost", "overwritten") or (entry.fate == "merged" and not entry.is_named):
            yield entry.fate, entry.node, _entry_row(entry)
        elif fields & set(entry.without):
            yield "incomplete", entry.node, _entry_row(entry)
    for node in ledger.fabricated:
        yield "fabricated", node.node, _row("fabricated", node.node, node.why, node.loc)


def _is_allowed(item: str, fault: str, node: str) -> bool:
    kind, _, pattern = item.partition(":")
    return kind == fault and fnmatch.fnmatchcase(node, pattern or "*")


def _entry_row(entry: Entry) -> str:
    text = entry.why or "a new node names it"
    if entry.heirs:
        text += f" ({', '.join(entry.heirs)})"
    if entry.without:
        text += f", without {', '.join(entry.without)}"
    return _row(entry.fate, entry.node, text, entry.loc)


def _row(fate: str, node: str, text: str, loc: str) -> str:
    return f"  {fate:<11} {node}: {text}" + (f", at {loc}" if loc else "")


def _named(passes: Any) -> list[tuple[str, Pass]]:
    if callable(passes):
        passes = [passes]
    pairs = passes.items() if isinstance(passes, Mapping) else passes
    return [each if isinstance(each, tuple) else (_name_of(each), each) for each in pairs]


def _name_of(function: Pass) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def _graph_of(target: Any) -> fx.Graph:
    return target if isinstance(target, fx.Graph) else target.graph


def _run(name: str, function: Pass, target: Any) -> tuple[Any, Ledger]:
    with _lock:
        watch = _Watch(_graph_of(target))
        try:
            with watch.patched():
                result = watch.call(function, target)
            left = _left_by(result, target)
            judged = watch.judge(name, _graph_of(left))
        finally:
            watch.restore()
    ledger = Ledger(
        name,
        [Entry(name, **entry) for entry in judged["entries"]],
        [Fabricated(name, **node) for node in judged["fabricated"]],
        judged["kept"],
        judged["inheriting"],
    )
    nodes = sum(node.op != "output" for node in _graph_of(left).nodes)
    if sum(ledger.counts.values()) != len(watch.given) or [e.id for e in ledger.entries] != list(watch.given.values()):
        raise RuntimeError(f"the ledger of {name} does not sum to its ids")
    if ledger.kept + ledger.inheriting + len(ledger.fabricated) != nodes:
        raise RuntimeError(f"the ledger of {name} does not sum to the nodes of the graph")
    return left, ledger


def _left_by(result: Any, target: Any) -> Any:
    """What a pass left: what it returned, where that is a graph (a PassResult holds one), else what it was given."""
    for each in (result, getattr(result, "graph_module", None)):
        if isinstance(each, (fx.GraphModule, fx.Graph)):
            return each
    return target


class _Meta(dict):  # type: ignore[type-arg]
    """A node's meta that tells of writes to provenance. Copies of it are plain."""

    __slots__ = ("note", "plain")

    def __init__(self, plain: dict[str, Any], note: Callable[[], None]) -> None:
        super().__init__(plain)
        self.plain = plain
        self.note = note

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self._tell(key)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._tell(key)

    def __ior__(self, other: Any) -> _Meta:  # type: ignore[override,misc]
        self.update(other)
        return self

    def update(self, *others: Any, **values: Any) -> None:
        new = dict(*others, **values)
        super().update(new)
        self._tell(*new)

    def pop(self, key: str, *default: Any) -> Any:
        self._tell(key)
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        item = super().popitem()
        self._tell(item[0])
        return item

    def clear(self) -> None:
        super().clear()
        self._tell(*FIELDS)

    def _tell(self, *keys: str) -> None:
        if any(key in FIELDS for key in keys):
            self.note()


class _Watch:
    """One pass: puts the ids in, notes what the pass does, has it judged, puts the originals back."""

    def __init__(self, graph: fx.Graph) -> None:
        self.tag = f"{os.getpid()}-{next(_runs)}"
        nodes = [node for node in graph.nodes if node.op != "output"]  # an output computes nothing
        self.given = {node: id for id, node in enumerate(nodes, 1)}
        self.keys = dict(self.given)
        self.made: list[tuple[str, str]] = []
        self.made_nodes: list[fx.Node] = []
        self.replaced: list[tuple[int, int, str]] = []
        self.erased: list[tuple[int, str]] = []
        self.written: list[tuple[int, str]] = []
        self.thread = threading.get_ident()
        self.originals = [{field: node.meta[field] for field in _SYNTHETIC if field in node.meta} for node in nodes]
        self.stack_ids = {_ledger.synthetic_stack(self.tag, id, node.name): id for node, id in self.given.items()}
        self.metas: list[_Meta] = []
        for node, (stack, id) in zip(nodes, self.stack_ids.items(), strict=True):
            self._inject(node, id, stack)
        self.rows = []
        for node in nodes:
            inputs = [self.given.get(other, 0) for other in node.all_input_nodes]
            users = [self.given.get(other, 0) for other in node.users]
            self.rows.append((node.name, inputs, users, _is_pure(node), _held(node)))

    def _inject(self, node: fx.Node, id: int, stack: str) -> None:
        meta = _Meta(node.meta, lambda: self._note(self.written, id))
        source = NodeSource(None, _ledger.synthetic_source(self.tag, id), NodeSourceAction.CREATE)
        dict.update(meta, {"stack_trace": stack, "from_node": [source]})
        node.meta = meta
        self.metas.append(meta)

    def call(self, function: Pass, target: Any) -> Any:
        """Its frame is where the pass's own frames end."""
        return function(target)

    def _line(self) -> str:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code is not _Watch.call.__code__:
            path = frame.f_code.co_filename
            if path != __file__ and not _ledger.is_generic_file(path):
                return f"{path}:{frame.f_lineno}"
            frame = frame.f_back  # type: ignore[assignment]
        return ""

    def _note(self, events: list[Any], *keys: int) -> None:
        if threading.get_ident() == self.thread:
            events.append((*keys, self._line()))

    def _key(self, node: fx.Node) -> int:
        """The key of a node; one that came to be unseen gets its key here."""
        if node not in self.keys:
            self._note_made(node, "")
        return self.keys[node]

    def _note_made(self, node: fx.Node, loc: str) -> None:
        self.made.append((node.name, loc))
        self.made_nodes.append(node)
        self.keys[node] = len(self.given) + len(self.made)

    def _note_replaced(self, old: Any, new: Any) -> None:
        # What keeps users was replaced only in part.
        if old in self.keys and new in self.keys and old is not new and not old.users:
            self._note(self.replaced, self.keys[old], self.keys[new])

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Torch's own methods tell what the pass does; what was there before comes back, whatever happens."""

        def made(node: fx.Node, *_: Any, **__: Any) -> None:
            if threading.get_ident() == self.thread and node not in self.keys:
                self._note_made(node, self._line())

        def erased(_: Any, graph: fx.Graph, to_erase: fx.Node) -> None:
            if to_erase in self.keys and to_erase._erased:
                self._note(self.erased, self.keys[to_erase])

        def replaced(_: Any, old: fx.Node, replace_with: fx.Node, *__: Any, **___: Any) -> None:
            self._note_replaced(old, replace_with)

        def handed_over(_: Any, user: fx.Node, old_input: fx.Node, new_input: fx.Node) -> None:
            self._note_replaced(old_input, new_input)

        def assigned(_: Any, node: fx.Node, name: str, value: Any) -> None:
            if name == "meta" and node in self.given:
                self._note(self.written, self.given[node])

        sites: list[tuple[type, str, Callable[..., None]]] = [
            (fx.Graph, "create_node", made),
            (fx.Graph, "erase_node", erased),
            (fx.Node, "replace_all_uses_with", replaced),
            (fx.Node, "replace_input_with", handed_over),
            (fx.Node, "__setattr__", assigned),
        ]
        before = [(owner, attribute, owner.__dict__[attribute]) for owner, attribute, _ in sites]
        try:
            for owner, attribute, observer in sites:
                setattr(owner, attribute, _observed(owner.__dict__[attribute], observer))
            yield
        finally:
            for owner, attribute, original in reversed(before):
                setattr(owner, attribute, original)

    def judge(self, name: str, graph: fx.Graph) -> dict[str, Any]:
        after = []
        for node in graph.nodes:
            if node.op == "output":
                continue
            sources = [source.pass_name for source in _chain(node.meta.get("from_node"))]
            after.append((self._key(node), node.meta.get("stack_trace"), sources, _held(node)))
        return _ledger.judge(name, self.tag, self.rows, self.made, after, self.replaced, self.erased, self.written)

    def restore(self) -> None:
        """Kept nodes get their own values back, new ones those of the nodes that they name."""
        for meta in self.metas:
            meta.plain.clear()
            meta.plain.update(meta)
        for node in self.made_nodes:
            if isinstance(node.meta, _Meta):  # the pass let two nodes share one dict: so they do afterwards
                node.meta = node.meta.plain
            self._restore_made(node.meta)
        for node, id in self.given.items():
            meta = node.meta
            if isinstance(meta, _Meta):
                # Sharing a dict with another kept node would make both name one source.
                meta = meta.plain if meta is self.metas[id - 1] else dict(meta)
            for field in _SYNTHETIC:
                meta.pop(field, None)
            meta.update(self.originals[id - 1])
            node.meta = meta

    def _restore_made(self, meta: dict[str, Any]) -> None:
        stack = meta.get("stack_trace")
        if stack in self.stack_ids:
            _set(meta, "stack_trace", self.originals[self.stack_ids[stack] - 1].get("stack_trace"))
        elif stack and self.tag in stack:
            texts = [original.get("stack_trace") or "" for original in self.originals]
            _set(meta, "stack_trace", _ledger.restored_stack(stack, self.tag, texts))
        if sources := meta.get("from_node"):
            _set(meta, "from_node", self._restored_sources(sources))

    def _restored_sources(self, sources: list[NodeSource]) -> list[NodeSource]:
        ids = [_ledger.id_of_source(source.pass_name, self.tag) for source in sources]
        if len(ids) == 1 and ids[0] is not None:
            return self.originals[ids[0] - 1].get("from_node") or []
        out: list[NodeSource] = []
        for source, id in zip(sources, ids, strict=True):
            if id is not None:
                out.extend(self.originals[id - 1].get("from_node") or [])
                continue
            source.from_node = self._restored_sources(source.from_node)
            source._dict = None  # what it was printed as, while it named an id
            out.append(source)
        return out


def _set(meta: dict[str, Any], field: str, value: Any) -> None:
    if value:
        meta[field] = value
    else:
        meta.pop(field, None)


def _observed(original: Any, observer: Callable[..., None]) -> Any:
    """`original`, after which `observer` is told its result and arguments."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        out = original(*args, **kwargs)
        observer(out, *args, **kwargs)
        return out

    return call


def _chain(sources: Any) -> Iterator[NodeSource]:
    for source in sources or ():
        yield source
        yield from _chain(source.from_node)


def _held(node: fx.Node) -> list[str]:
    return [field for field in FIELDS if node.meta.get(field)]


def _is_pure(node: fx.Node) -> bool:
    try:
        return not node.is_impure()
    except Exception:  # a call_module of a graph without a module can't be asked
        return False
