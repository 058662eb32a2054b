"""Running a program under a capture. Options are parsed by C++ (one parser for `kerntrail record` and this module)."""

from __future__ import annotations

import builtins
import os
import runpy
import sys
import threading
import types
import warnings
from typing import Any

from kerntrail._binary import find_binary

EXIT_USAGE = 2
EXIT_PARTIAL = 5  # the program was fine, its capture is missing or partial
_HERE = os.path.dirname(os.path.abspath(__file__))


def main(argv: list[str]) -> int:
    """`record`, `debugify` and `selftest markers` run here; every other verb is the binary's."""
    if argv[:2] == ["selftest", "markers"] and not {"-h", "--help"} & set(argv[2:3]):
        return selftest(argv[2:])
    from kerntrail import _native

    if argv and argv[0] == "debugify":
        from kerntrail import _debugify

        return _debugify.main(argv[1:])
    if not argv or argv[0] != "record":
        return _run_binary(argv)
    options = _native.parse_record(argv[1:])
    if "exit" in options:
        print(options["text"], end="", file=sys.stderr if options["exit"] else sys.stdout)
        return int(options["exit"])
    return record(options)


def _run_binary(argv: list[str]) -> int:
    binary = find_binary()
    if not binary:
        return _fail("the kerntrail program is neither beside this interpreter nor on PATH; only `record` and `debugify` work without it")
    os.execv(binary, ["kerntrail", *argv])


def record(options: dict[str, Any]) -> int:
    """Runs the program of `options` with every compile watched. Returns the program's exit status, or EXIT_PARTIAL."""
    if not options["keep_caches"]:
        # Read by torch at import; a cache hit shows none of the stages.
        os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
    if options["reference_model"]:
        os.environ.setdefault("TORCH_SPYRE_PROVENANCE_PATH", "")  # nobody asked for a sidecar of our own model
    os.environ["KERNTRAIL_OWNER"] = str(os.getpid())  # children of the program don't capture
    try:
        program = reference_model() if options["reference_model"] else options["program"]
        if not options["is_module"] and not os.path.isfile(program):
            return _fail(f"can't open the program {program!r}: no such file")
        restore = _prepare_torch(options)
        opened = _open(options, program)
    except ImportError as error:
        return _fail(f"{error}; kerntrail record needs torch in the interpreter that runs the program ({sys.executable})")
    except (OSError, RuntimeError, ValueError) as error:
        return _fail(str(error))
    owner = os.getpid()
    try:
        status = _run(options["is_module"], program, options["arguments"])
        if os.getpid() != owner:  # a forked child that fell off the program's end: the capture is the parent's
            return status
        _wait_for_threads()
    finally:
        if os.getpid() == owner:
            opened.close()
            restore()
    return _finish(opened, status)


def selftest(argv: list[str]) -> int:
    """The built-in models, or one program with its arguments. See `_markers`."""
    if argv and not os.path.isfile(argv[0]):
        return _fail(f"can't open the program {argv[0]!r}: no such file")
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    os.environ.setdefault("TORCH_SPYRE_PROVENANCE_PATH", "")  # a check leaves no sidecar behind
    os.environ["KERNTRAIL_OWNER"] = str(os.getpid())
    try:
        import torch._inductor.config as inductor

        from kerntrail import _markers
    except ImportError as error:
        return _fail(f"{error}; kerntrail selftest needs torch in the interpreter that runs it ({sys.executable})")
    inductor.force_disable_caches = True
    warnings.filterwarnings("ignore", message=".*force disabled by")  # torch says so for each compile
    status = 0

    def run() -> None:
        nonlocal status
        status = _run(False, argv[0], argv[1:])
        _wait_for_threads()

    results = [_markers.check(os.path.basename(argv[0]), run)] if argv else list(_markers.check_models())
    print(_markers.table(results))
    if status:
        return status
    if not sum(result.kernels for result in results):
        _say("nothing was compared: no kernel with a text was compiled")
        return 1
    return 1 if any(result.unexplained for result in results) else 0


def _wait_for_threads() -> None:
    """Python ends a program only after its non-daemon threads; what they compile belongs to the capture.

    Workers of executor pools (torch has some) idle until the interpreter itself ends them: they are not waited for.
    """
    pools = sys.modules.get("concurrent.futures.thread")
    idle = set(getattr(pools, "_threads_queues", ()))
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon and thread not in idle:
            thread.join()


def reference_model() -> str:
    """The model that `kerntrail audit` examines when no program is named."""
    for root in (os.path.join(_HERE, "..", "..", "examples"), os.path.join(_HERE, "examples")):
        path = os.path.normpath(os.path.join(root, "reference_mlp.py"))
        if os.path.exists(path):
            return path
    raise OSError("the reference model (examples/reference_mlp.py) is not installed")


def _prepare_torch(options: dict[str, Any]) -> Any:
    """Settings that must hold before the program's first compile; returns what takes them back."""
    import torch
    import torch._inductor.config as inductor

    undo = []
    if not options["keep_caches"]:
        before = inductor.force_disable_caches
        inductor.force_disable_caches = True
        undo.append(lambda: setattr(inductor, "force_disable_caches", before))
    if options["backend"]:
        from torch._dynamo.backends import registry

        _check_backend(options["backend"])
        chosen = registry.get_default_backend()
        registry.set_default_backend(options["backend"])  # for compiles that name none
        undo.append(lambda: registry.set_default_backend(chosen))
    if options["metadata"]:
        from kerntrail.spyre import backend

        chosen_rule = backend.process_metadata
        backend.process_metadata = options["metadata"]
        undo.append(lambda: setattr(backend, "process_metadata", chosen_rule))

    if options["restickify"]:
        from kerntrail.spyre import backend

        chosen_restickify = backend.process_restickify
        backend.process_restickify = True
        undo.append(lambda: setattr(backend, "process_restickify", chosen_restickify))

    def restore() -> None:
        for step in reversed(undo):
            step()

    return restore


def _check_backend(name: str) -> None:
    import torch

    known = torch._dynamo.list_backends(exclude_tags=())
    if name not in known:
        raise ValueError(f"unknown backend {name!r}: torch knows {', '.join(sorted(known))}")


def _open(options: dict[str, Any], program: str) -> Any:
    from kerntrail._capture import open_capture

    shown = os.path.relpath(program) if os.path.exists(program) else program
    # Outside the working directory only the name is recorded: directories differ from machine to machine.
    settings = {"program": os.path.basename(program) if shown.startswith("..") else shown, "started_by": "record"}
    for key in ("backend", "metadata"):
        if options[key]:
            settings[key] = options[key]
    if options["restickify"]:
        settings["restickify"] = "True"
    fail = [tuple(entry.rsplit(":", 1)) for entry in filter(None, os.environ.get("KERNTRAIL_TEST_FAIL", "").split(","))]
    return open_capture(options["output"], level=options["level"], replace=True, source=options["source"],
                        timing=options["timing"], settings=settings, fail=fail)


def _run(is_module: bool, program: str, arguments: list[str]) -> int:
    """Runs the program as `__main__`; its exceptions are shown without our frames."""
    sys.argv = [program, *arguments]
    try:
        if is_module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            _run_script(program)
    except SystemExit as exit_:
        return _exit_status(exit_.code)
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # noqa: BLE001 - shown as Python itself would show it
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith((_HERE, "<frozen")):
            trace = trace.tb_next
        error.__traceback__ = trace  # the hook prints what the exception holds
        sys.excepthook(type(error), error, trace)
        return 1
    return 0


def _run_script(path: str) -> None:
    with open(path, "rb") as file:
        code = compile(file.read(), os.path.abspath(path), "exec", dont_inherit=True)
    main_module = types.ModuleType("__main__")
    main_module.__file__ = os.path.abspath(path)
    main_module.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = main_module
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    exec(code, main_module.__dict__)  # noqa: S102 - running the user's program is the purpose


def _exit_status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _finish(opened: Any, status: int) -> int:
    if opened.compile_count == 0:
        _say(f"the program compiled nothing: no torch.compile of its ran with a backend that Inductor serves; {opened.path} holds no compile")
    for hook in opened.hooks:
        if hook["errors"]:
            _say(f"hook {hook['label']} failed {hook['errors']} time(s): {hook['last_error']}")
    if opened.is_partial:
        _say(f"{opened.path} is partial (kerntrail info {opened.path} says what is missing)")
    if status == 0 and opened.is_partial:
        return EXIT_PARTIAL
    return status


def _fail(text: str) -> int:
    _say(text)
    return EXIT_USAGE


def _say(text: str) -> None:
    print(f"kerntrail: {text}", file=sys.stderr)
