"""The package as it is installed: one version, entry points that resolve, and no need of torch to import it."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def declared_version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(kerntrail VERSION ([0-9.]+)", text).group(1)


def test_one_version_everywhere(run_kerntrail):
    assert importlib.metadata.version("kerntrail") == declared_version()
    run = run_kerntrail("--version")
    assert run.returncode == 0, run.stderr
    assert declared_version() in run.stdout


def test_the_binary_is_a_program_of_its_own(kerntrail_binary):
    assert kerntrail_binary.read_bytes()[:4] == b"\x7fELF"
    libraries = subprocess.run(["ldd", kerntrail_binary], capture_output=True, text=True, check=True).stdout
    assert "libpython" not in libraries
    assert "libtorch" not in libraries


def test_the_binary_tells_its_verbs(run_kerntrail):
    run = run_kerntrail("--help")
    assert run.returncode == 0, run.stderr
    for verb in ("record", "audit", "report", "matrix", "lineage", "info", "validate"):
        assert re.search(rf"^\s+{verb}\b", run.stdout, re.MULTILINE), f"{verb} is not in the help"


def test_the_package_imports_where_there_is_no_torch():
    script = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, NoTorch())
import kerntrail, kerntrail._native
assert "torch" not in sys.modules
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(("group", "name"), [("torch.backends", "kerntrail"), ("torch_dynamo_backends", "kerntrail_spyre")])
def test_the_entry_points_resolve(group, name):
    pytest.importorskip("torch")
    (entry,) = importlib.metadata.entry_points(group=group, name=name)
    assert callable(entry.load())


def test_the_autoload_hook_does_nothing_where_nothing_is_asked():
    script = "import sys; from kerntrail._autoload import autoload; assert autoload() is None; assert 'torch' not in sys.modules"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
