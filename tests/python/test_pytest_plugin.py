"""The pytest plugin from outside: what it costs where it is not used, `--kerntrail` over suites that know nothing of it,
also under pytest-xdist, and the worked example of docs/pytest.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from kerntrail.pytest_plugin import _Session  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "pytest.md").read_text(encoding="utf-8")

SUITE = """
import torch, pytest

def double(x):
    return torch.sin(x) * 2

@pytest.fixture(scope="module")
def compiled():
    function = torch.compile(double)
    function(torch.randn(4))
    return function

def test_in_a_fixture(compiled):
    assert compiled(torch.ones(4)).shape == (4,)

@pytest.mark.parametrize("name", [1, 2], ids=["a/b::c", "x" * 300])
def test_named(name):
    torch._dynamo.reset()
    torch.compile(double)(torch.randn(8))

def test_compiles_nothing():
    assert torch.ones(2).sum() == 2

def test_with_a_capture_of_its_own(tmp_path):
    import kerntrail
    torch._dynamo.reset()
    with kerntrail.capture(tmp_path / "own.ndjson") as own:
        torch.compile(double)(torch.randn(16))
    assert own.compile_count == 1

def test_fails():
    torch._dynamo.reset()
    torch.compile(double)(torch.randn(32))
    raise ValueError("on purpose")
"""


def run_pytest(folder, *arguments):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:logging", *arguments],
                          cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("parallel", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_suite_is_captured_unchanged(tmp_path, parallel, run_kerntrail):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_suite.py").write_text(SUITE)
    done = run_pytest(tmp_path, "tests", "--kerntrail=caps", *parallel)
    assert "1 failed, 5 passed" in done.stdout, done.stdout + done.stderr
    assert "on purpose" in done.stdout
    captures = {path.name for path in (tmp_path / "caps" / "tests" / "test_suite.py").iterdir()}
    long = next(name for name in captures if "xxx" in name)
    assert len(long) < 255 and long.endswith(".ndjson")
    expected = {"test_named[a%2fb%3a%3ac].ndjson", long, "test_fails.ndjson"}
    # The module's fixture compiles in whichever test is first to need it.
    assert captures == expected | {"test_in_a_fixture.ndjson"}
    for name in captures:
        assert run_kerntrail("validate", tmp_path / "caps" / "tests" / "test_suite.py" / name).returncode == 0
    assert f"4 captures in {tmp_path / 'caps'}" in done.stdout
    (row,) = re.findall(r"^  fx_post_grad .*$", done.stdout, re.MULTILINE)
    assert row.split()[1:3] == ["8", "100%"], row  # two nodes in each of four captures


def test_nothing_is_imported_where_nothing_is_asked(tmp_path):
    (tmp_path / "test_plain.py").write_text("import sys\ndef test_plain():\n    assert 'torch' not in sys.modules\n"
                                            "def test_there(request):\n    assert request.config.pluginmanager.has_plugin('kerntrail')\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 0 and not re.search(r"(?m)^=* ?kerntrail", done.stdout), done.stdout + done.stderr


def test_an_option_that_swallowed_the_tests_says_so(tmp_path):
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    for swallowed in ("test_plain.py", "."):
        done = run_pytest(tmp_path, "--kerntrail", swallowed)
        assert done.returncode == 4
        assert f"--kerntrail took {swallowed} as the folder for captures; write --kerntrail=DIR" in done.stderr
    assert run_pytest(tmp_path, "--kerntrail-level", "all").returncode == 4


def test_a_capture_that_cannot_be_written_fails_no_test(tmp_path):
    (tmp_path / "test_suite.py").write_text("import torch\ndef test_it():\n    torch.compile(lambda x: x + 1)(torch.ones(2))\n")
    (tmp_path / "caps").write_text("in the way")
    done = run_pytest(tmp_path, "test_suite.py", f"--kerntrail={tmp_path / 'caps' / 'deep'}")
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
    assert "test_suite.py::test_it: not captured:" in done.stdout


def test_names_stay_below_the_folder(tmp_path):
    session = _Session(tmp_path, "passes", [], [])
    assert session.path_of("../../etc/test_a.py::T::test_b[..]") == tmp_path / "etc" / "test_a.py" / "T.test_b[..].ndjson"
    assert session.path_of("test_a.py::test_b", 2) == tmp_path / "test_a.py" / "test_b.2.ndjson"
    long = [session.path_of(f"t.py::test[{'é' * 150}{end}]") for end in "ab"]
    assert long[0] != long[1] and all(len(path.name.encode()) < 255 for path in long)


def test_the_worked_example(tmp_path):
    """Every python block of the document is one file of tests; the text block is what it prints."""
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    (tmp_path / "test_mine.py").write_text("\n\n".join(blocks))
    done = run_pytest(tmp_path, "test_mine.py")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    printed = [line[2:] for line in done.stdout.splitlines() if line.startswith("E ")]
    (shown,) = re.findall(r"```text\n(AssertionError.*?)```", DOCUMENT, re.DOTALL)
    for line in shown.splitlines():
        assert any(line.strip() == each.strip() for each in printed), (line, printed)
    (allow,) = re.findall(r"`compiled\.assert_no_drops\((allow=.*?)\)`", DOCUMENT)
    accepted = blocks[-1].replace('compiled.assert_coverage("stack_trace", stage="fx_post_grad")',
                                  f'compiled.assert_no_drops({allow}, fields=["stack_trace"])')
    (tmp_path / "test_mine.py").write_text("\n\n".join([*blocks[:-1], accepted]))
    done = run_pytest(tmp_path, "test_mine.py", "-k", "the_pass")
    assert "1 passed" in done.stdout, done.stdout
