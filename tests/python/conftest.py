"""Fixtures of all Python tests. Nothing here imports torch: tests that need it say so with `pytest.importorskip`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Inductor reads these when torch is imported. A folder of this run alone: no test sees a cache another run left.
_inductor_cache = tempfile.TemporaryDirectory(prefix="kerntrail_inductor_")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = _inductor_cache.name
os.environ["HF_HUB_OFFLINE"] = "1"  # models of other packages are built from configurations
# The back end writes its sidecar below the current folder unless it is told where; tests that want one say so.
os.environ["TORCH_SPYRE_PROVENANCE_PATH"] = ""
# The probe is started by the tests themselves, never by the environment they run in.
for _name in ("KERNTRAIL", "KERNTRAIL_OWNER", "KERNTRAIL_TEST_FAIL"):
    os.environ.pop(_name, None)


@pytest.fixture(scope="session")
def repo_root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def kerntrail_binary() -> Path:
    """The C++ binary that was installed beside this interpreter."""
    binary = Path(os.environ.get("KERNTRAIL_BINARY") or Path(sys.executable).parent / "kerntrail")
    if not binary.exists():
        pytest.fail(f"no {binary}: run `make setup`")
    return binary


@pytest.fixture
def run_kerntrail(kerntrail_binary: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the binary with the given arguments, in a temporary folder unless `cwd` says otherwise."""

    def run(*arguments: str | Path, **options) -> subprocess.CompletedProcess[str]:
        options.setdefault("cwd", tmp_path)
        options.setdefault("timeout", 300)
        return subprocess.run(
            [str(kerntrail_binary), *map(str, arguments)], capture_output=True, text=True, check=False, **options
        )

    return run


# What a worker of pytest-xdist found is shown by the process that started it.
_shares = pytest.StashKey[list[tuple[str, str, int, int]]]()


@pytest.fixture
def shares(request: pytest.FixtureRequest) -> list[tuple[str, str, int, int]]:
    """(recipe, level, nodes that lead back to an earlier graph, all nodes); shown at the end of the run."""
    return request.config.stash.setdefault(_shares, [])


def pytest_sessionfinish(session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["shares"] = session.config.stash.get(_shares, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    rows = getattr(node, "workeroutput", {}).get("shares", [])
    node.config.stash.setdefault(_shares, []).extend(map(tuple, rows))


def pytest_terminal_summary(terminalreporter, config) -> None:
    rows = config.stash.get(_shares, [])
    if not rows:
        return
    lead, total = sum(row[2] for row in rows), sum(row[3] for row in rows)
    terminalreporter.section("births over the recipes")
    terminalreporter.write_line(f"{lead} of {total} nodes before the post-grad passes lead to a node of an earlier graph; those of")
    for recipe, level, leading, of in sorted({row for row in rows if row[2] != row[3]}):
        terminalreporter.write_line(f"  {recipe} at level {level}: {leading} of {of}")
