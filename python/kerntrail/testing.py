"""For authors of FX passes: does a pass keep the provenance of what it rewrites, and which line of it does not?

    from kerntrail.testing import assert_preserves_provenance

    def test_my_pass():
        assert_preserves_provenance(my_pass, traced_model)

Every node gets synthetic provenance that names it alone, the pass runs, and what became of each id is judged in C++
(`kerntrail._native.ledger`): this file puts the ids in, watches, takes them out, and prints.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch.fx as fx
from torch.fx.traceback import NodeSource, NodeSourceAction

from kerntrail._native import ledger as _ledger

FIELDS = ("stack_trace", "nn_module_stack", "fwd_nn_module_stack", "source_fn_stack", "original_aten", "from_node")
FATES: tuple[str, ...] = tuple(_ledger.fates)
# What `allow` may name: what is wrong with a pass.
FAULTS: tuple[str, ...] = tuple(_ledger.faults)

# Those that are made synthetic. Passes and lowering read the others: they stay as they are, and are judged by whether
# a node has the value of a node that it names.
_SYNTHETIC = ("stack_trace", "from_node")
_runs = itertools.count(1)
_lock = threading.RLock()  # one pass at a time is watched in a process
_OWN_FILES = {__file__}  # whose frames are no pass's

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
    altered: list[str]  # fields that an heir holds with the value of no node that it names
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
    judged: Any = field(repr=False, compare=False)  # the same in C++

    @property
    def counts(self) -> dict[str, int]:
        """Ids by fate, all fates; they sum to the ids."""
        counted = Counter(entry.fate for entry in self.entries)
        return {fate: counted[fate] for fate in FATES}

    def __str__(self) -> str:
        total = len(self.entries)
        parts = [f"{count} {fate}" for fate, count in self.counts.items() if count]
        head = f"{self.pass_name}: {total} ids = {' + '.join(parts) or '0'}; {len(self.fabricated)} nodes fabricated"
        return "\n".join([head, *self.judged.rows])


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
    handed in, a graph module or a graph; a graph module that a pass returns goes to the next one. Graphs nested in it
    (branches of cond) are judged with it, their nodes named "true_graph_0.sin". Each pass is judged alone, with fresh ids. An exception of a pass goes through; the graph's provenance is its own again by then.
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
    that names an id without one of `fields`; `altered`, a node that has the value of another in one of them. `allow` lists what is accepted: "lost", or "lost:mm*" for some nodes.
    """
    allowed = [allow] if isinstance(allow, str) else list(allow)
    for item in allowed:
        if wrong := _ledger.allow_error(item):
            raise ValueError(wrong)
    wanted = set(fields)
    if unknown := wanted - set(FIELDS):
        raise ValueError(f"fields: {', '.join(sorted(unknown))}: none of {', '.join(FIELDS)}")
    found = debugify(graph_module, pass_or_passes)
    faults = [
        f"  {ledger.pass_name}:\n  {row}"
        for ledger in found.ledgers
        for _, _, row in ledger.judged.faults(sorted(wanted), allowed)
    ]
    if faults:
        raise AssertionError("provenance is not preserved\n" + "\n".join([*faults, str(found)]))
    return found


def _named(passes: Any) -> list[tuple[str, Pass]]:
    if callable(passes):
        passes = [passes]
    pairs = passes.items() if isinstance(passes, Mapping) else passes
    return [each if isinstance(each, tuple) else (_name_of(each), each) for each in pairs]


def _name_of(function: Pass) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def _graphs_of(target: Any) -> dict[str, fx.Graph]:
    """The graph of a graph module, or a graph, and those nested in it by their path; that of `target` itself is ""."""
    module = target.owning_module if isinstance(target, fx.Graph) else target
    graphs = {"": target if isinstance(target, fx.Graph) else target.graph}
    for path, nested in module.named_modules() if module is not None else ():
        if path and isinstance(nested, fx.GraphModule) and nested.graph not in graphs.values():
            graphs[path] = nested.graph
    return graphs


def _nodes_of(target: Any) -> list[tuple[str, fx.Node]]:
    """The nodes of all graphs, with names that tell them apart. An output computes nothing."""
    return [
        (f"{path}.{node.name}" if path else node.name, node)
        for path, graph in _graphs_of(target).items()
        for node in graph.nodes
        if node.op != "output"
    ]


def _run(name: str, function: Pass, target: Any) -> tuple[Any, Ledger]:
    with _lock:
        watch = _Watch(target)
        try:
            with _observing(lambda: watch):
                result = _call_watched(function, target)
            left = _left_by(result, target)
            judged = watch.judge(name, left)
        finally:
            watch.restore()
    ledger = Ledger(
        name,
        [Entry(name, **entry) for entry in judged.entries],
        [Fabricated(name, **node) for node in judged.fabricated],
        judged.kept,
        judged.inheriting,
        judged,
    )
    if sum(ledger.counts.values()) != len(watch.given):
        raise RuntimeError(f"the ledger of {name} does not sum to its ids")
    return left, ledger


def _call_watched(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Its frame is where a pass's own frames end."""
    return function(*args, **kwargs)


def _pass_line() -> str:
    """Where the pass is that is running: its innermost frame that is in no generic file of torch's."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not _call_watched.__code__:
        path = frame.f_code.co_filename
        if path not in _OWN_FILES and not _ledger.is_generic_file(path):
            return f"{path}:{frame.f_lineno}"
        if frame.f_code.co_name == "apply" and path.endswith("_inductor/pattern_matcher.py"):
            if place := _pattern_place(frame.f_locals.get("self")):
                return place
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def _pattern_place(entry: Any) -> str:
    """Where the function is that says what a pattern is replaced with: it does not run while nodes are made of it."""
    function = getattr(entry, "handler", None) if type(entry).__name__ == "LoweringPatternEntry" else None
    if type(entry).__name__ == "ReplacementPatternEntry":
        check = getattr(entry, "extra_check", None)
        names = getattr(getattr(check, "__code__", None), "co_freevars", ())
        cells = dict(zip(names, getattr(check, "__closure__", None) or (), strict=False))
        function = cells["replace_fn"].cell_contents if "replace_fn" in cells else None
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


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

    def __init__(self, target: Any) -> None:
        self.tag = f"{os.getpid()}-{next(_runs)}"
        named = _nodes_of(target)
        nodes = [node for _, node in named]
        self.given = {node: id for id, node in enumerate(nodes, 1)}
        self.values: dict[tuple[str, Any], int] = {}
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
        for name, node in named:
            inputs = [self.given.get(other, 0) for other in node.all_input_nodes]
            users = [self.given.get(other, 0) for other in node.users]
            self.rows.append((name, inputs, users, _is_pure(node), self._held(node)))

    def _inject(self, node: fx.Node, id: int, stack: str) -> None:
        meta = _Meta(node.meta, lambda: self._note(self.written, id))
        # Copies that read as the originals do: torch's observer compares sources by name, pass and action.
        originals = node.meta.get("from_node") or [None]
        dict.update(meta, {"stack_trace": stack, "from_node": [self._marked(source, id) for source in originals]})
        node.meta = meta
        self.metas.append(meta)

    def _marked(self, original: NodeSource | None, id: int) -> NodeSource:
        name = _ledger.synthetic_source(self.tag, id)
        out = copy.copy(original) if original is not None else NodeSource(None, name, NodeSourceAction.CREATE)
        out._mark = _Mark(self.tag, id, name, original)  # type: ignore[attr-defined]
        return out

    def _held(self, node: fx.Node) -> list[tuple[str, int]]:
        """Provenance fields with a number for their value: of one field, equal numbers are equal values."""
        out = []
        for name in FIELDS:
            if value := node.meta.get(name):
                number = 0 if name in _SYNTHETIC else self.values.setdefault((name, _frozen(value)), len(self.values) + 1)
                out.append((name, number))
        return out

    def _note(self, events: list[Any], *keys: int) -> None:
        if threading.get_ident() == self.thread:
            events.append((*keys, _pass_line()))

    def _key(self, node: fx.Node) -> int:
        """The key of a node; one that came to be unseen gets its key here."""
        if node not in self.keys:
            self._note_made(node, "")
        return self.keys[node]

    def _note_made(self, node: fx.Node, loc: str) -> None:
        self.made.append((node.name, loc))
        self.made_nodes.append(node)
        self.keys[node] = len(self.given) + len(self.made)

    def saw_replaced(self, old: Any, new: Any) -> None:
        # What keeps users was replaced only in part.
        if old in self.keys and new in self.keys and old is not new and not old.users:
            self._note(self.replaced, self.keys[old], self.keys[new])

    def saw_made(self, node: fx.Node) -> None:
        if threading.get_ident() == self.thread and node not in self.keys:
            self._note_made(node, _pass_line())

    def saw_erased(self, node: fx.Node) -> None:
        if node in self.keys and node._erased:
            self._note(self.erased, self.keys[node])

    def saw_assigned(self, node: fx.Node) -> None:
        if node in self.given:
            self._note(self.written, self.given[node])

    def judge(self, name: str, target: Any) -> Any:
        """Of the graphs that the pass left. Raises where not every node is accounted for."""
        after = []
        for node_name, node in _nodes_of(target):
            if (made := self._key(node) - len(self.given)) > 0:
                self.made[made - 1] = (node_name, self.made[made - 1][1])  # with the path of its graph
            sources = list(_names(node.meta.get("from_node")))
            after.append((self._key(node), node.meta.get("stack_trace"), sources, self._held(node)))
        judged = _ledger.judge(name, self.tag, self.rows, self.made, after, self.replaced, self.erased, self.written)
        if judged.kept + judged.inheriting + len(judged.fabricated) != len(after):
            raise RuntimeError(f"the ledger of {name} does not sum to the nodes of the graph")
        return judged

    def names_any(self, graph: fx.Graph) -> bool:
        """Whether a graph is a copy of what is watched."""
        return any(self.tag in (node.meta.get("stack_trace") or "") for node in graph.nodes)

    def restore(self, *, as_left: bool = False) -> None:
        """Nodes get real values in place of the synthetic ones: those of the nodes that they name.

        Kept nodes get their own, whatever the pass did, unless `as_left`: then they have what they would have without
        the watch.
        """
        for meta in self.metas:
            meta.plain.clear()
            meta.plain.update(meta)
        for node in self.made_nodes:
            if isinstance(node.meta, _Meta):  # the pass let two nodes share one dict: so they do afterwards
                node.meta = node.meta.plain
            self._restore_values(node.meta)
        if as_left:
            self._restore_kept_as_left()
        else:
            self._restore_kept()

    def _restore_kept_as_left(self) -> None:
        for node in self.given:
            if isinstance(node.meta, _Meta):
                node.meta = node.meta.plain
            self._restore_values(node.meta)

    def _restore_kept(self) -> None:
        for node, id in self.given.items():
            meta = node.meta
            if isinstance(meta, _Meta):
                # Sharing a dict with another kept node would make both name one source.
                meta = meta.plain if meta is self.metas[id - 1] else dict(meta)
            for field in _SYNTHETIC:
                meta.pop(field, None)
            meta.update(self.originals[id - 1])
            node.meta = meta

    def _restore_values(self, meta: dict[str, Any]) -> None:
        stack = meta.get("stack_trace")
        if stack in self.stack_ids:
            _set_as(meta, "stack_trace", self.originals[self.stack_ids[stack] - 1])
        elif stack and self.tag in stack:
            texts = [original.get("stack_trace") or "" for original in self.originals]
            meta["stack_trace"] = _ledger.restored_stack(stack, self.tag, texts)
        sources = meta.get("from_node")
        if not sources:
            return
        id = self._whole(sources)
        if id is None:
            meta["from_node"] = self._restored_sources(sources)
        else:
            _set_as(meta, "from_node", self.originals[id - 1])

    def _whole(self, sources: list[NodeSource]) -> int | None:
        """The id whose sources these are, all and no other."""
        marks = [_mark_of(source) for source in sources]
        if not marks or marks[0] is None or marks[0].tag != self.tag:
            return None
        id = marks[0].id
        originals = self.originals[id - 1].get("from_node") or [None]
        is_whole = len(marks) == len(originals) and all(
            mark is not None and mark.id == id and mark.original is original
            for mark, original in zip(marks, originals, strict=True)
        )
        return id if is_whole else None

    def _restored_sources(self, sources: list[NodeSource]) -> list[NodeSource]:
        out: list[NodeSource] = []
        for source in sources:
            mark = _mark_of(source)
            if mark is not None:
                out.extend([] if mark.original is None else [mark.original])
                continue
            source.from_node = self._restored_sources(source.from_node)
            source._dict = None  # what it was printed as, while it named an id
            out.append(source)
        return out


@dataclass(frozen=True)
class _Mark:
    """Whose source a source is. Goes along where a source is copied."""

    tag: str
    id: int
    name: str
    original: NodeSource | None

    def __deepcopy__(self, memo: dict[int, Any]) -> _Mark:
        return self


def _mark_of(source: NodeSource) -> _Mark | None:
    return getattr(source, "_mark", None)


@contextmanager
def _observing(current: Callable[[], _Watch | None]) -> Iterator[None]:
    """Torch's own methods tell the current watch what a pass does; what was there before comes back, whatever happens."""

    def made(watch: _Watch, node: fx.Node, *_: Any, **__: Any) -> None:
        watch.saw_made(node)

    def erased(watch: _Watch, _: Any, graph: fx.Graph, to_erase: fx.Node) -> None:
        watch.saw_erased(to_erase)

    def replaced(watch: _Watch, _: Any, old: fx.Node, replace_with: fx.Node, *__: Any, **___: Any) -> None:
        watch.saw_replaced(old, replace_with)

    def handed_over(watch: _Watch, _: Any, user: fx.Node, old_input: fx.Node, new_input: fx.Node) -> None:
        watch.saw_replaced(old_input, new_input)

    def assigned(watch: _Watch, _: Any, node: fx.Node, name: str, value: Any) -> None:
        if name == "meta":
            watch.saw_assigned(node)

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
            setattr(owner, attribute, _observed(owner.__dict__[attribute], observer, current))
        yield
    finally:
        for owner, attribute, original in reversed(before):
            setattr(owner, attribute, original)


def _set_as(meta: dict[str, Any], field: str, original: dict[str, Any]) -> None:
    if field in original:
        meta[field] = original[field]
    else:
        meta.pop(field, None)


def _observed(original: Any, observer: Callable[..., None], current: Callable[[], _Watch | None]) -> Any:
    """`original`, after which `observer` is told its result and arguments."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        out = original(*args, **kwargs)
        if (watch := current()) is not None:
            observer(watch, out, *args, **kwargs)
        return out

    return call


def _names(sources: Any) -> Iterator[str]:
    """What a chain names: ids, and passes of torch."""
    for source in sources or ():
        if (mark := _mark_of(source)) is not None:
            yield mark.name
            continue
        yield source.pass_name
        yield from _names(source.from_node)


def _frozen(value: Any) -> Any:
    """Equal for equal values of a field, and hashable; an object that can't be hashed is itself alone."""
    if isinstance(value, Mapping):
        return tuple((_frozen(key), _frozen(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    try:
        hash(value)
    except Exception:
        return ("id", id(value))
    return value


def _is_pure(node: fx.Node) -> bool:
    try:
        return not node.is_impure()
    except Exception:  # a call_module of a graph without a module can't be asked
        return False
