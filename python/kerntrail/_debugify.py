"""`kerntrail debugify`: a program under which each FX pass of Inductor is judged (see `testing`).

Within a stage (pre-grad, joint or post-grad passes of one graph) the time is cut at each border that torch's pass
observer shows. Every piece has a watch of its own: ids go in, the pass runs, its ledger is taken, and the nodes get
what they would have without us before the next piece begins. What is changed between two passes is a piece too.

Nothing here may break or change a compile: what can't be judged is said in the report.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kerntrail import _record
from kerntrail._native import ledger as _ledger
from kerntrail._native import parse_debugify

EXIT_FAULTS = 1
EXIT_FAILED = 3  # the program's end is not its own
EXIT_UNJUDGED = 5

# By stage: the function of torch._inductor.compile_fx that runs its passes, and the setting for a pass of the user's.
STAGES = {
    "pre_grad": ("pre_grad_passes", "pre_grad_custom_pass"),
    "joint": ("joint_graph_passes", "joint_custom_post_pass"),
    "post_grad": ("post_grad_passes", "post_grad_custom_post_pass"),
}


def main(arguments: list[str]) -> int:
    options = parse_debugify(arguments)
    if "exit" in options:
        print(options["text"], end="", file=sys.stderr if options["exit"] else sys.stdout)
        return int(options["exit"])
    return debugify_program(options)


def debugify_program(options: dict[str, Any]) -> int:
    """Runs the program of `options` and writes the ledgers of its passes."""
    os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # a cache hit runs no pass
    os.environ["KERNTRAIL_OWNER"] = str(os.getpid())
    program = options["program"]
    try:
        if not options["is_module"] and not os.path.isfile(program):
            return _record._fail(f"can't open the program {program!r}: no such file")
        sys.path[0] = os.getcwd() if options["is_module"] else os.path.dirname(os.path.abspath(program))
        restore = _record._prepare_torch(
            {"keep_caches": False, "backend": options["backend"], "metadata": "", "restickify": False}
        )
        judging = Judging(options)
    except ImportError as error:
        return _record._fail(f"{error}; kerntrail debugify needs torch in the interpreter that runs the program")
    except (OSError, RuntimeError, ValueError, AttributeError) as error:
        return _record._fail(str(error))
    owner = os.getpid()
    try:
        with judging.installed():
            status = _record._run(options["is_module"], program, options["arguments"])
            if os.getpid() != owner:
                return status
            _record._wait_for_threads()
    finally:
        if os.getpid() == owner:
            restore()
    try:
        _write(judging.report, options)
    except OSError as error:
        _record._say(f"can't write {options['output']}: {error.strerror}")
        return EXIT_FAILED
    return _status(judging.report, options, status)


def _write(report: Any, options: dict[str, Any]) -> None:
    text = report.json() if options["format"] == "json" else report.text()
    if not options["output"]:
        print(text, end="")
        return
    with open(options["output"], "w", encoding="utf-8") as file:
        file.write(text)
    _record._say(f"{report.graphs} {'graph' if report.graphs == 1 else 'graphs'} judged; the ledgers are in {options['output']}")


def _status(report: Any, options: dict[str, Any], program_status: int) -> int:
    if program_status:
        _record._say(f"the program exited with {program_status}; the ledgers are of what it compiled until then")
        return EXIT_FAILED
    if report.graphs == 0:
        stages = ", ".join(options["stages"])
        _record._say(f"the program compiled nothing that has passes of {stages}: there is no ledger")
        return EXIT_UNJUDGED
    if report.faults:
        return EXIT_FAULTS
    return EXIT_UNJUDGED if report.unjudged else 0


def _prefixes() -> list[str]:
    """What is taken off the paths of lines: directories differ from machine to machine."""
    paths = [os.getcwd(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    paths += [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    return sorted({os.path.join(os.path.abspath(path), "") for path in paths if path}, key=len, reverse=True)


def load_function(named: str) -> Callable[..., Any]:
    """`module:function`; ValueError where there is none."""
    module_name, _, path = named.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(f"--pass {named}: can't import {module_name}: {error}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ValueError(f"--pass {named}: {module_name} has no {path}")
        found = getattr(found, part)
    if not callable(found):
        raise ValueError(f"--pass {named}: {path} is no function")
    return found


class Judging:
    """All stages of a program's compiles, and what is found in them."""

    def __init__(self, options: dict[str, Any]) -> None:
        from kerntrail import testing

        testing._OWN_FILES.add(__file__)
        self.testing = testing
        self.stages: list[str] = options["stages"]
        for item in options["allow"]:
            if wrong := _ledger.allow_error(item):
                raise ValueError(wrong)
        fields = options["fields"] or list(testing.FIELDS)
        if unknown := set(fields) - set(testing.FIELDS):
            raise ValueError(f"--field {', '.join(sorted(unknown))}: none of {', '.join(testing.FIELDS)}")
        self.function = load_function(options["pass"]) if options["pass"] else None
        self.function_name = options["pass"]
        self.report = _ledger.Report(
            stages=self.stages, pass_name=options["pass"], fields=fields, allow=options["allow"], prefixes=_prefixes()
        )
        self.current: _Stage | None = None
        self.modules: list[tuple[Any, str]] = []  # graph modules whose passes run, outermost first, with their paths
        self.direction = ""
        self.applied: Any = None  # what a pass observer is about to apply

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Torch's own functions, wrapped; put back in reverse order."""
        import torch._inductor.compile_fx as compile_fx
        from torch.fx.passes.graph_transform_observer import GraphTransformObserver

        sites: list[tuple[Any, str, Callable[[Any], Any]]] = [
            (compile_fx._InProcessFxCompile, "codegen_and_compile", self._with_direction),
            (GraphTransformObserver, "apply_gm_pass", self._applying),
            (GraphTransformObserver, "apply_graph_pass", self._applying),
            (GraphTransformObserver, "__enter__", self._entering),
            (GraphTransformObserver, "__exit__", self._leaving),
        ]
        for stage in self.stages:
            function, _ = STAGES[stage]
            sites += [
                (compile_fx, f"_recursive_{function}", self._nested),
                (compile_fx, function, functools.partial(self._judged_stage, stage)),
            ]
        before = []
        try:
            for owner, name, wrap in sites:
                original = owner.__dict__[name]
                before.append((owner, name, original))
                setattr(owner, name, functools.wraps(original)(wrap(original)))
            with self.testing._observing(lambda: self.current.watch if self.current else None):
                yield
        finally:
            for owner, name, original in reversed(before):
                setattr(owner, name, original)

    def _with_direction(self, original: Any) -> Any:
        def codegen_and_compile(*args: Any, **kwargs: Any) -> Any:
            given = args[4] if len(args) > 4 else kwargs.get("graph_kwargs")
            before = self.direction
            if isinstance(given, dict):
                is_inference, is_backward = given.get("is_inference"), given.get("is_backward")
                self.direction = "inference" if is_inference else "backward" if is_backward else "forward"
            try:
                return original(*args, **kwargs)
            finally:
                self.direction = before

        return codegen_and_compile

    def _nested(self, original: Any) -> Any:
        """Knows the path of a nested graph by who called for whom."""

        def recursive_passes(gm: Any, *args: Any, **kwargs: Any) -> Any:
            path = ""
            if self.modules:
                around, above = self.modules[-1]
                names = [name for name, child in around.named_children() if child is gm]
                path = ".".join(filter(None, [above, names[0] if names else "?"]))
            self.modules.append((gm, path))
            try:
                return original(gm, *args, **kwargs)
            finally:
                self.modules.pop()

        return recursive_passes

    def _judged_stage(self, stage: str, original: Any) -> Any:
        slot = STAGES[stage][1]

        def stage_passes(gm: Any, *args: Any, **kwargs: Any) -> Any:
            with self.testing._lock, ExitStack() as stack:
                before, self.current = self.current, _Stage(self, stage, gm)
                if self.function is not None:
                    stack.enter_context(self._function_in(slot))
                result = gm
                try:
                    result = self.testing._call_watched(original, gm, *args, **kwargs)
                    return result
                finally:
                    self.current.end(gm if result is None else result)
                    self.current = before

        return stage_passes

    @contextmanager
    def _function_in(self, slot: str) -> Iterator[None]:
        """The function of --pass after what the program has configured there."""
        import torch._inductor.config as config

        before = getattr(config, slot)
        others = list(before) if isinstance(before, (list, tuple)) else [before] if before is not None else []
        with config.patch({slot: [*others, _Judged(self.function)]}):
            yield

    def _applying(self, original: Any) -> Any:
        def apply(observer: Any, pass_fn: Any, *args: Any, **kwargs: Any) -> Any:
            self.applied = pass_fn
            return original(observer, pass_fn, *args, **kwargs)

        return apply

    def _entering(self, original: Any) -> Any:
        def enter(observer: Any) -> Any:
            applied, self.applied = self.applied, None
            result = original(observer)
            if self.current is not None:
                self.current.enter(observer, applied)
            return result

        return enter

    def _leaving(self, original: Any) -> Any:
        def leave(observer: Any, *args: Any) -> Any:
            result = original(observer, *args)
            if self.current is not None:
                self.current.leave(observer)
            return result

        return leave


class _Judged:
    """The function of --pass, told from what else is in its slot."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, graph: Any) -> Any:
        return self.function(graph)


class _Stage:
    """One call of a stage's function: a ledger for each pass in it, and for what is changed between two."""

    def __init__(self, judging: Judging, stage: str, module: Any) -> None:
        self.judging = judging
        self.stage = stage
        self.target = module
        self.open: list[tuple[Any, str]] = []  # observers whose passes run, outermost first
        self.last = "the beginning"
        self.watch: Any = None
        self.graph = judging.report.add_graph(_compile_id(), stage, self._direction(module), self._path(module))
        self._begin()

    def _direction(self, module: Any) -> str:
        if self.stage != "joint":
            return self.judging.direction if self.stage == "post_grad" else ""
        return "joint" if any("tangents" in node.name for node in module.graph.nodes) else ""

    def _path(self, module: Any) -> str:
        modules = self.judging.modules
        return modules[-1][1] if modules and modules[-1][0] is module else ""

    def enter(self, observer: Any, applied: Any) -> None:
        if not self._is_watched(observer.gm):
            return
        name = self._name(observer, applied)
        self._border(name, observer.gm, is_end=False)
        self.open.append((observer, name))

    def leave(self, observer: Any) -> None:
        if not any(entered is observer for entered, _ in self.open):
            return
        self._border("", observer.gm, is_end=True)
        while self.open:
            entered, self.last = self.open.pop()
            if entered is observer:
                return

    def end(self, left: Any) -> None:
        self._close(self._between("the end"), left, is_end=False)

    def _is_watched(self, module: Any) -> bool:
        """Graphs of the stage, and a copy that takes their place. Others are temporary, or have a stage of their own."""
        graph = getattr(module, "graph", None)
        return graph is not None and (self._is_part(graph) or (self.watch is not None and self.watch.names_any(graph)))

    def _is_part(self, graph: Any) -> bool:
        return any(graph is part for part in self.judging.testing._graphs_of(self.target).values())

    def _name(self, observer: Any, applied: Any) -> str:
        """ "post_grad_custom_post_pass / ReluToClamp": what sits in a slot for passes of the user's is named too."""
        if isinstance(applied, _Judged):
            return self.judging.function_name
        name = str(observer.passname)
        if "custom" in name and applied is not None:
            own = self.judging.testing._name_of(applied)
            name = name if own in ("", name) else f"{name} / {own}"
        around = self.open[-1][1] if self.open else name
        return name if around == name else f"{around} / {name}"

    def _between(self, following: str) -> str:
        return f"between {self.last} and {following}"

    def _border(self, entered: str, module: Any, is_end: bool) -> None:
        """Ends what ran until now. What an outer pass does beside its inner ones is its own."""
        name = self.open[-1][1] if self.open else self._between(entered)
        if self._is_part(module.graph):
            module = self.target
        self._close(name, module, is_end)
        self.target = module
        self._begin()

    def _begin(self) -> None:
        try:
            self.watch = self.judging.testing._Watch(self.target)
        except Exception as error:
            self.watch = None
            self._unjudged("what follows", error)

    def _close(self, name: str, left: Any, is_end: bool) -> None:
        """A pass that did nothing is in the report once, at its end."""
        watch, self.watch = self.watch, None
        if watch is None:
            return
        is_asked = self.judging.function is None or name == self.judging.function_name
        try:
            judged = watch.judge(name, left) if is_asked else None
            if judged is not None and (judged.is_touched or is_end):
                self.judging.report.add_pass(self.graph, judged)
        except Exception as error:
            self._unjudged(name, error)
        finally:
            watch.restore(as_left=True)

    def _unjudged(self, name: str, error: Exception) -> None:
        self.judging.report.add_unjudged(self.graph, f"{name}: {type(error).__name__}: {error}")


def _compile_id() -> str:
    from torch._guards import CompileContext

    found = CompileContext.current_compile_id()
    return "" if found is None else str(found)
