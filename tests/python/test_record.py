"""`kerntrail record` and the other ways to start a capture: exit statuses, files, messages, determinism."""

import gzip
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from capture_view import CaptureView
from witness_view import uses

pytest.importorskip("torch")

MODEL = """
import sys, torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)

    def forward(self, x):
        y = self.a(x)
        return torch.relu(y)

model = Model().eval()
with torch.no_grad():
    torch.compile(model)(torch.randn(2, 8))
"""


@pytest.fixture
def program(tmp_path):
    """Writes a program whose model is compiled first; `tail` is what it does then."""

    def write(tail: str = "", head: str = MODEL) -> Path:
        path = tmp_path / "program.py"
        path.write_text(head + textwrap.dedent(tail))
        return path

    return write


def test_record_writes_a_capture_and_returns_zero(run_kerntrail, program, tmp_path):
    done = run_kerntrail("record", program("print('done', sys.argv[1:])"), "--flag", "x")
    assert done.returncode == 0, done.stderr
    assert "done ['--flag', 'x']" in done.stdout  # what follows the program is the program's
    view = CaptureView(tmp_path / "provenance_capture.ndjson")
    assert view.end["status"] == "complete" and list(view.compiles) == ["c0"]
    settings = view.of("run")[0]["settings"]
    assert settings["program"] == "program.py" and settings["force_disable_caches"] == "True"


def test_record_at_level_truth(run_kerntrail, program, tmp_path):
    done = run_kerntrail("record", "--level", "truth", "-o", "c.ndjson", program())
    assert done.returncode == 0, done.stderr
    assert run_kerntrail("validate", "c.ndjson").returncode == 0
    view = CaptureView(tmp_path / "c.ndjson")
    assert view.of("run")[0]["settings"]["level"] == "truth"
    (computed,) = [use.computes() for use in uses(view) if use.kernel_class == "loop"]
    assert computed == {"relu": {"relu"}}


@pytest.mark.parametrize(("tail", "status"), [("sys.exit(7)", 7), ("sys.exit('bye')", 1), ("raise ValueError('boom')", 1), ("sys.exit()", 0)])
def test_the_programs_own_exit_status_is_returned(run_kerntrail, program, tmp_path, tail, status):
    done = run_kerntrail("record", program(tail))
    assert done.returncode == status
    assert CaptureView(tmp_path / "provenance_capture.ndjson").end is not None
    if "boom" in tail:
        assert "ValueError: boom" in done.stderr and "_record.py" not in done.stderr


def test_a_capture_without_its_end_gives_five(run_kerntrail, program, tmp_path):
    done = run_kerntrail("record", program("import os; os._exit(0)"))
    assert done.returncode == 5 and "without finishing its capture" in done.stderr
    checked = run_kerntrail("validate", "provenance_capture.ndjson")
    assert checked.returncode == 3 and "torn" in checked.stdout + checked.stderr
    shown = run_kerntrail("matrix", "provenance_capture.ndjson")  # still readable up to its last stage
    assert shown.returncode == 0 and "stack_trace" in shown.stdout


def test_a_partial_capture_gives_five(run_kerntrail, program):
    done = run_kerntrail("record", program(), env={**os.environ, "KERNTRAIL_TEST_FAIL": "torch._inductor.compile_fx._recursive_post_grad_passes:before"})
    assert done.returncode == 5 and "partial" in done.stderr and "made to fail" in done.stderr


def test_a_killed_program_leaves_a_readable_capture(run_kerntrail, program, tmp_path):
    done = run_kerntrail("record", program("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert done.returncode == 128 + signal.SIGKILL
    shown = run_kerntrail("lineage", "provenance_capture.ndjson")
    assert shown.returncode == 0 and "torch.relu(y)" in shown.stdout


def test_a_program_that_compiles_nothing_is_told(run_kerntrail, program, tmp_path):
    done = run_kerntrail("record", program(head="print('hello')\n"))
    assert done.returncode == 0 and "hello" in done.stdout
    assert "compiled nothing" in done.stderr


def test_a_module_runs_as_main(run_kerntrail, program, tmp_path):
    program("print(__name__, sys.argv[1:])")
    done = run_kerntrail("record", "-o", "m.ndjson", "-m", "program", "one")
    assert done.returncode == 0 and "__main__ ['one']" in done.stdout


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_compressed_captures_read_back(run_kerntrail, program, tmp_path, ending):
    done = run_kerntrail("record", "-o", f"c.ndjson.{ending}", program())
    assert done.returncode == 0, done.stderr
    content = (tmp_path / f"c.ndjson.{ending}").read_bytes()
    assert content[:2] == (b"\x1f\x8b" if ending == "gz" else b"\x28\xb5")
    if ending == "gz":
        assert gzip.decompress(content).startswith(b'{"record":"run"')
    assert run_kerntrail("validate", f"c.ndjson.{ending}").returncode == 0


def test_the_same_program_gives_the_same_bytes(run_kerntrail, program, tmp_path):
    path = program()
    for name in ("a.ndjson", "b.ndjson"):
        assert run_kerntrail("record", "-o", name, path).returncode == 0
    assert (tmp_path / "a.ndjson").read_bytes() == (tmp_path / "b.ndjson").read_bytes()


def test_a_backend_for_compiles_that_name_none(run_kerntrail, program, tmp_path):
    done = run_kerntrail("record", "--backend", "kerntrail_spyre", "--metadata", "seed", program())
    assert done.returncode == 0, done.stderr
    view = CaptureView(tmp_path / "provenance_capture.ndjson")
    assert view.compiles["c0"]["backend"] == "kerntrail_spyre" and "superdsc" in view.stages()
    post = {row["name"]: row for row in view.at("fx_post_grad")}
    assert "stack_trace" not in post["mm_default"]["states"]  # rule seed: the split copies three keys


def test_keep_caches_leaves_the_setting_alone(run_kerntrail, program, tmp_path):
    assert run_kerntrail("record", "--keep-caches", program()).returncode == 0
    assert CaptureView(tmp_path / "provenance_capture.ndjson").of("run")[0]["settings"]["force_disable_caches"] == "False"


def test_timing_is_recorded_only_when_asked(run_kerntrail, program, tmp_path):
    assert run_kerntrail("record", "--timing", program()).returncode == 0
    volatile = CaptureView(tmp_path / "provenance_capture.ndjson").of("volatile")
    assert any(record["key"] == "observer_ns" for record in volatile)


@pytest.mark.parametrize(("arguments", "message"), [
    (["--level", "everything", "x.py"], "borders"),
    (["--source", "all", "x.py"], "source"),
    (["--bogus", "x.py"], "--bogus"),
    ([], "name the program"),
    (["missing.py"], "missing.py"),
    (["--backend", "nonsense", "program.py"], "unknown backend"),
    (["--python", "/nonexistent/python", "program.py"], "no such program"),
])
def test_usage_errors_are_explained(run_kerntrail, program, arguments, message):
    program()
    done = run_kerntrail("record", *arguments)
    assert done.returncode == 2 and message in done.stderr


def test_an_interpreter_without_the_package_is_explained(run_kerntrail, program, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f"#!/bin/sh\nexec {sys.executable} -S -I \"$@\"\n")
    bare.chmod(0o755)
    done = run_kerntrail("record", "--python", bare, program())
    assert done.returncode == 2 and "has no kerntrail package" in done.stderr


def run_with_environment(path: Path, tmp_path: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", **extra}
    return subprocess.run([sys.executable, str(path)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_kerntrail_in_the_environment(program, tmp_path):
    done = run_with_environment(program(), tmp_path, KERNTRAIL="env.ndjson")
    assert done.returncode == 0, done.stderr
    view = CaptureView(tmp_path / "env.ndjson")
    assert view.end["status"] == "complete" and "kernel" in view.stages()


def test_a_bad_path_in_the_environment_never_breaks_the_program(program, tmp_path):
    done = run_with_environment(program("print('fine')"), tmp_path, KERNTRAIL=str(tmp_path / "program.py" / "x.ndjson"))
    assert done.returncode == 0 and "fine" in done.stdout and "kerntrail: no capture" in done.stderr


def test_children_of_a_captured_program_do_not_write_over_it(program, tmp_path):
    child = "import subprocess; subprocess.run([sys.executable, '-c', 'import torch'], check=True)"
    done = run_with_environment(program(child), tmp_path, KERNTRAIL="env.ndjson")
    assert done.returncode == 0, done.stderr
    assert list(CaptureView(tmp_path / "env.ndjson").compiles) == ["c0"]


def test_python_m_kerntrail_is_the_same(program, tmp_path):
    done = subprocess.run([sys.executable, "-m", "kerntrail", "record", "-o", "m.ndjson", str(program())], cwd=tmp_path,
                          capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run([sys.executable, "-m", "kerntrail", "info", "m.ndjson"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert shown.returncode == 0 and "fx_post_grad" in shown.stdout


def test_interrupt_goes_to_the_program(kerntrail_binary, program, tmp_path):
    path = program("import time; print('ready', flush=True); time.sleep(60)")
    process = subprocess.Popen([str(kerntrail_binary), "record", str(path)], cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline().strip() == "ready"
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert CaptureView(tmp_path / "provenance_capture.ndjson").end is not None


def test_the_metadata_rule_holds_in_threads_too(run_kerntrail, program, tmp_path):
    tail = """
    import threading
    torch._dynamo.reset()
    def work():
        with torch.no_grad():
            torch.compile(model, backend="kerntrail_spyre")(torch.randn(2, 8))
    thread = threading.Thread(target=work)
    thread.start()
    """
    done = run_kerntrail("record", "--metadata", "seed", program(tail))
    assert done.returncode == 0, done.stderr
    view = CaptureView(tmp_path / "provenance_capture.ndjson")
    (compile_id,) = [c for c, record in view.compiles.items() if record["backend"] == "kerntrail_spyre"]
    post = {row["name"]: row for row in view.at("fx_post_grad", compile_id=compile_id)}
    assert "stack_trace" not in post["mm_default"]["states"]


def test_a_device_is_never_replaced_by_a_file(run_kerntrail, program, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run_kerntrail("record", "-o", pipe, "--level", "borders", "missing.py")
    assert pipe.is_fifo()


def test_a_refused_run_leaves_every_file_as_it_was(run_kerntrail, program, tmp_path):
    path = program()
    good = tmp_path / "provenance_capture.ndjson"
    good.write_text("a capture of an hour's work")
    assert run_kerntrail("record", "typo.py").returncode == 2
    assert run_kerntrail("audit", "typo.py").returncode == 2
    done = run_kerntrail("record", "-o", "program.py", "program.py")
    assert done.returncode == 2 and "is the program itself" in done.stderr
    done = run_kerntrail("audit", "-o", "x", "--output", "x", "program.py")
    assert done.returncode == 2 and "need different files" in done.stderr
    assert good.read_text() == "a capture of an hour's work" and path.read_text().startswith(MODEL[:20])


def test_a_result_never_replaces_the_capture_it_came_from(run_kerntrail, repo_root, tmp_path):
    sample = (repo_root / "tests" / "data" / "captures" / "mlp.ndjson").read_bytes()
    (tmp_path / "c.ndjson").write_bytes(sample)
    done = run_kerntrail("matrix", "c.ndjson", "-o", "c.ndjson")
    assert done.returncode != 0 and "the capture itself" in done.stderr
    assert (tmp_path / "c.ndjson").read_bytes() == sample
