"""`KERNTRAIL=out.ndjson python program.py`: a capture for programs that can't be edited.

Called by torch itself at the end of `import torch` (entry point group `torch.backends`). Without KERNTRAIL it returns at
once; with it, it never raises: a program must not fail because of its observer.
"""

import os


def autoload() -> None:
    path = os.environ.get("KERNTRAIL")
    if not path or os.environ.get("KERNTRAIL_OWNER"):
        return
    # Children inherit both variables: only the first process of a tree writes.
    os.environ["KERNTRAIL_OWNER"] = str(os.getpid())
    try:
        _start(path)
    except Exception as error:  # noqa: BLE001 - whatever it is, the program goes on
        _say(f"no capture: {type(error).__name__}: {error}")


def _start(path: str) -> None:
    import atexit

    from kerntrail._capture import open_capture

    opened = open_capture(path, replace=True, source=os.environ.get("KERNTRAIL_SOURCE", "lines"), settings={"started_by": "KERNTRAIL"})
    owner = os.getpid()

    def finish() -> None:
        if os.getpid() != owner:
            return
        opened.close()
        if opened.compile_count == 0:
            _say(f"the program compiled nothing; {path} holds no compile")
        elif opened.is_partial:
            _say(f"{path} is partial: some hooks failed (kerntrail info {path})")

    atexit.register(finish)


def _say(text: str) -> None:
    import sys

    print(f"kerntrail: {text}", file=sys.stderr)
