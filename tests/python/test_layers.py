"""The layer check and the text check: the repository passes them, and each catches what is planted."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402
import check_text  # noqa: E402


def plant(root: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return check_layers.check_tree(root)[0]


# A small tree that keeps every rule; each case below adds one file to it.
CLEAN = {
    "include/kerntrail/expected.h": "#include <tl/expected.hpp>\n",
    "include/kerntrail/capture.h": '#include <vector>\n#include "kerntrail/expected.h"\n',
    "src/base/json.h": '#include "kerntrail/expected.h"\n',
    "src/base/json.cpp": '#include "base/json.h"\n#include <simdjson.h>\n#include <fmt/format.h>\n',
    "src/model/replay.h": '#include "kerntrail/capture.h"\n#include "base/json.h"\n',
    "src/spyre/handle.h": '#include "model/replay.h"\n',
    "src/read/reader.h": '#include "model/replay.h"\n',
    "src/analyse/matrix.h": '#include "spyre/handle.h"\n',
    "src/analyse/matrix_test.cpp": '#include "analyse/matrix.h"\n#include "read/reader.h"\n#include <gtest/gtest.h>\n',
    "src/render/markdown.h": '#include "analyse/matrix.h"\n#include "read/reader.h"\n',
    "src/cli/main.cpp": '#include "render/markdown.h"\n#include <CLI/CLI.hpp>\n#include <unistd.h>\n',
    "python/src/probe.h": '#include <nanobind/nanobind.h>\n#include "spyre/handle.h"\n',
    "src/model/CMakeLists.txt": "kerntrail_layer(model\n  SOURCES replay.cpp\n  DEPENDS base)\n",
}

VIOLATIONS = [
    ("src/base/x.h", '#include "model/replay.h"', "base may not use model"),
    ("src/base/x.h", '#include "../model/replay.h"', "base may not use model"),
    ("src/base/x.h", '#include "kerntrail/capture.h"', "base may not use model"),
    ("src/model/x.h", '#include "spyre/handle.h"', "model may not use spyre"),
    ("src/model/x_test.cpp", '#include "render/markdown.h"', "model may not use render"),
    ("src/read/x.h", '#include "analyse/matrix.h"', "read may not use analyse"),
    ("src/analyse/x.cpp", '#include "read/reader.h"', "analyse may not use read"),
    ("src/render/x.cpp", "  #  include <CLI/CLI.hpp>", "not allowed here"),
    ("src/cli/x.cpp", '#include "../../python/src/probe.h"', "nothing may use the Python extension"),
    ("src/cli/x.cpp", "#include <Python.h>", "not allowed here"),
    ("src/analyse/x.cpp", "#include <nanobind/nanobind.h>", "not allowed here"),
    ("src/analyse/x.cpp", "#include <unistd.h>", "operating system"),
    ("src/model/x.cpp", "#include <torch/torch.h>", "no header the project uses"),
    ("python/src/x.cpp", "#include <torch/torch.h>", "no header the project uses"),
    ("src/read/x.h", "#include <simdjson.h>", "not allowed here"),
    ("src/model/x.h", "#include <fmt/format.h>", "not allowed here"),
    ("src/model/x.cpp", "#include <openssl/evp.h>", "not allowed here"),
    ("src/model/x.cpp", '#include "model/absent.h"', "names no file"),
    ("src/model/x.cpp", "#include <model/replay.h>", "included with quotes"),
    ("include/kerntrail/unheard_of.h", "#include <vector>", "public header without a layer"),
    ("include/kerntrail/handle.h", '#include "model/replay.h"', "public headers only"),
    ("src/plugins/x.cpp", "#include <vector>", "no such layer"),
    ("src/read/CMakeLists.txt", "kerntrail_layer(read\n  SOURCES a.cpp\n  DEPENDS model analyse)", "may not depend on analyse"),
]


def test_the_repository_keeps_its_layers():
    problems, files = check_layers.check_tree(ROOT)
    assert problems == []
    assert files > 50


def test_a_clean_tree_passes(tmp_path):
    assert plant(tmp_path, CLEAN) == []


@pytest.mark.parametrize(("path", "text", "expected"), VIOLATIONS)
def test_a_planted_violation_is_named(tmp_path, path, text, expected):
    problems = plant(tmp_path, {**CLEAN, path: text + "\n"})
    assert len(problems) == 1
    assert problems[0].startswith(path)
    assert expected in problems[0]


def test_an_include_in_a_block_comment_is_none(tmp_path):
    assert plant(tmp_path, {**CLEAN, "src/base/x.h": '/*\n#include "cli/main.cpp"\n*/\n'}) == []


def test_the_line_of_a_violation_is_right(tmp_path):
    problems = plant(tmp_path, {**CLEAN, "src/base/x.h": '/* a\n b */\n\n#include "model/replay.h"\n'})
    assert problems[0].startswith("src/base/x.h:4:")


def test_the_script_exits_1_on_a_violation(tmp_path):
    plant(tmp_path, {**CLEAN, "src/base/x.h": '#include "model/replay.h"\n'})
    script = ROOT / "tools" / "check_layers.py"
    run = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "base may not use model" in run.stdout
    empty = tmp_path / "empty"
    empty.mkdir()
    assert subprocess.run([sys.executable, script, empty], capture_output=True, check=False).returncode == 1


def test_the_text_of_the_repository_passes():
    problems, files = check_text.check_tree(ROOT)
    assert problems == []
    assert files > 50


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see /ro" + "ot/.cache/x\n", "path of one machine"),
        ("include /ho" + "me/jane/x.h\n", "path of one machine"),
        ("pip install --index" + "-url x\n", "package registry"),
        ("https://registry.npm" + "js.org/mermaid\n", "package registry"),
        ("// TO" + "DO: later\n", "mark of unfinished work"),
        ("<" * 7 + " HEAD\n", "mark of unfinished work"),
        ("a \n", "trailing blank"),
        ("a\r\nb\n", "carriage return"),
        ("a", "no line feed"),
    ],
)
def test_planted_text_is_found(text, expected):
    problems = check_text.check_text("src/model/x.cpp", text.encode())
    assert len(problems) == 1
    assert expected in problems[0]


@pytest.mark.parametrize("text", ["/usr/bin/python3\n", "/tmp/x\n", "src/work/a.h\n", "/home/user/model.py\n", "a placeholder node\n"])
def test_harmless_text_passes(text):
    assert check_text.check_text("docs/x.md", text.encode()) == []
