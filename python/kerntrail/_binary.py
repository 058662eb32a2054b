"""Where the `kerntrail` program is, and what it says of a capture: analyses are C++, this only asks for them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any


def find_binary() -> str | None:
    """KERNTRAIL_BINARY, else the one installed beside this interpreter, else the one on PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "kerntrail")
    named = os.environ.get("KERNTRAIL_BINARY")
    return named or (beside if os.path.exists(beside) else shutil.which("kerntrail"))


def ask(verb: str, capture: str, *arguments: str) -> str:
    """Standard output of a verb. RuntimeError with what it said where it refuses."""
    binary = find_binary()
    if not binary:
        raise RuntimeError("the kerntrail program is neither beside this interpreter nor on PATH; KERNTRAIL_BINARY may name it")
    done = subprocess.run([binary, verb, capture, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"kerntrail {verb} exited with {done.returncode}")
    return done.stdout


def ask_json(verb: str, capture: str, *arguments: str) -> Any:
    return json.loads(ask(verb, capture, "--format", "json", *arguments))
