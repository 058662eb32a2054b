"""Browser checks: the Mermaid of every golden report and of a fresh audit draws in headless Chromium without an error.

Skipped, with the reason, where Chromium, Node or the pinned packages are missing; with KERNTRAIL_REQUIRE_BROWSER=1
(`make browser`, .ci/run) that is a failure instead.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "browser" / "render_mermaid.mjs"
MAX_EDGES = 500  # Mermaid's own limits, which a forge does not raise
MAX_TEXT = 50_000


@pytest.fixture(scope="module")
def node() -> str:
    environment = Path(sys.prefix)
    ready = subprocess.run([ROOT / "tools/setup/browser_ready.sh", environment], cwd=ROOT, check=False)
    if ready.returncode != 0:
        reason = "browser checks: no Chromium or no node_modules; .ci/run and make browser install both"
        if os.environ.get("KERNTRAIL_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    found = subprocess.run(
        [ROOT / "tools/setup/find_node.sh", environment], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return str(Path(found.stdout.strip()) / "node")


@pytest.fixture(scope="module")
def render(node):
    def run(*arguments) -> subprocess.CompletedProcess[str]:
        command = [node, str(SCRIPT), *map(str, arguments)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)

    return run


def fenced(source: str) -> str:
    return f"# Report\n\n```python\nprint('not a diagram')\n```\n\n```mermaid\n{source}\n```\n"


def chain(edges: int) -> str:
    return "flowchart TB\n" + "\n".join(f"  n{i} --> n{i + 1}" for i in range(edges))


def with_mermaid(paths) -> list[Path]:
    return [path for path in sorted(paths) if re.search(r"^```mermaid", path.read_text(encoding="utf-8"), re.MULTILINE)]


def test_the_golden_reports_and_the_documents_draw(render):
    reports = with_mermaid((ROOT / "tests" / "golden").rglob("*.md"))
    assert reports, "no golden report holds a Mermaid block"
    documents = with_mermaid([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
    run = render(*reports, *documents)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_fresh_audit_draws(render, kerntrail_binary, tmp_path):
    pytest.importorskip("torch")
    audit = subprocess.run(
        [str(kerntrail_binary), "audit"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert audit.returncode == 0, audit.stdout + audit.stderr
    reports = with_mermaid(tmp_path.rglob("*.md"))
    assert reports, "the audit's report holds no Mermaid block"
    run = render(*reports)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_good_block_passes_with_its_labels(render, tmp_path):
    report = tmp_path / "report.md"
    report.write_text(fenced('flowchart TB\n  n0["x: #quot;a#quot; #lt;b#gt;"] --> n1["__init__ *y*"]'))
    run = render("--png", tmp_path / "png", report)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 nodes, 1 edges" in run.stdout
    assert [path.suffix for path in (tmp_path / "png").iterdir()] == [".png"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("flowchart TB\n  end --> n1", "does not render"),
        ('flowchart TB\n  n0["<built-in method mm>"] --> n1["b"]', "label not readable"),
        (chain(MAX_EDGES + 1), "does not render"),
        ("flowchart TB\n  n0 --> n1\n" + "  n0 --> n1\n" * 4 + "  n2[" + "x" * MAX_TEXT + "]", "text limit"),
        ("flowchart TB", "no node"),
    ],
    ids=["reserved id", "html label", "too many edges", "too much text", "empty"],
)
def test_a_bad_block_fails(render, tmp_path, source, expected):
    report = tmp_path / "report.md"
    report.write_text(fenced(source))
    run = render(report)
    assert run.returncode == 1, run.stdout + run.stderr
    assert expected in run.stdout


def test_a_report_without_a_block_fails(render, tmp_path):
    report = tmp_path / "report.md"
    report.write_text("# Nothing\n")
    assert render(report).returncode == 1
    assert render("--allow-none", report).returncode == 0
