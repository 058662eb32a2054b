"""Checks that every include of the C++ tree keeps the order of the layers.

    base <- model <- spyre <- {read, analyse} <- render <- cli;  the Python extension may use all, nothing may use it

Also: a third-party header only where the table below allows it, a Python header only in python/src, no header of torch
anywhere, and the same order in the DEPENDS of each layer's CMakeLists.txt. Prints one line a violation and exits 1.

Usage: check_layers.py [ROOT]
"""

import fnmatch
import re
import sys
from dataclasses import dataclass
from pathlib import Path

# Each layer with those it may use beside itself.
LAYERS = {
    "base": set(),
    "model": {"base"},
    "spyre": {"base", "model"},
    "read": {"base", "model", "spyre"},
    "analyse": {"base", "model", "spyre"},
    "render": {"base", "model", "spyre", "read", "analyse"},
    "cli": {"base", "model", "spyre", "read", "analyse", "render"},
    "python": {"base", "model", "spyre", "read", "analyse", "render", "cli"},
}

# The layer each public header (include/kerntrail/) belongs to; one that is not here is an error, so that adding one is
# a decision.
PUBLIC_HEADERS = {
    "expected.h": "base",
    "version.h": "base",
    "handle.h": "model",
    "capture.h": "model",
    "drops.h": "analyse",
    "gate.h": "analyse",
    "lineage.h": "analyse",
    "matrix.h": "analyse",
    "report.h": "analyse",
    "round_trip.h": "analyse",
    "options.h": "analyse",
    "verify.h": "analyse",
    "explain.h": "analyse",
    "analysis.h": "analyse",
    "diff.h": "analyse",
}

# Layers that the tests of a layer may use beyond what the layer itself may: round trips need both ends.
TESTS_MAY_ALSO_USE = {
    "model": {"read"},
    "spyre": {"read"},
    "analyse": {"read"},
}


@dataclass(frozen=True)
class ThirdParty:
    """Headers (a pattern over the include text) and the files that may include them (patterns over the path)."""

    header: str
    files: tuple[str, ...]


THIRD_PARTY = (
    ThirdParty("simdjson.h", ("src/base/*.cpp", "src/read/*.cpp")),
    ThirdParty("fmt/*", ("src/*.cpp", "python/src/*.cpp", "bench/*.cpp", "fuzz/*.cpp", "tests/*.cpp")),
    ThirdParty("tl/expected.hpp", ("include/kerntrail/expected.h",)),
    ThirdParty("CLI/*", ("src/cli/*",)),
    ThirdParty("toml++/toml.h", ("src/cli/gate_config.cpp",)),
    ThirdParty("openssl/*", ("src/base/*.cpp",)),
    ThirdParty("xxhash.h", ("src/base/*.cpp",)),
    ThirdParty("zlib.h", ("src/model/*.cpp", "src/read/*.cpp", "src/read/test_*.h")),
    ThirdParty("zstd.h", ("src/model/*.cpp", "src/read/*.cpp", "src/read/test_*.h")),
    ThirdParty("gtest/*", ("*_test.cpp", "*/test_*.h", "tests/*")),
    ThirdParty("gmock/*", ("*_test.cpp", "*/test_*.h", "tests/*")),
    ThirdParty("rapidcheck*", ("*_test.cpp", "*/test_*.h", "tests/*")),
    ThirdParty("nanobind/*", ("python/src/*",)),
    ThirdParty("Python.h", ("python/src/*",)),
    ThirdParty("structmember.h", ("python/src/*",)),
    # A test fixture that torch itself compiles when it is needed.
    ThirdParty("c10/*", ("tests/python/triton_fixtures/*",)),
    ThirdParty("frameobject.h", ("python/src/*",)),
)

# Headers of the operating system, for files, processes and time. Kept apart from C++'s own so that `model` and
# `analyse`, which do neither, are held to that.
SYSTEM = ThirdParty(
    "*.h",
    ("src/base/*.cpp", "src/model/*.cpp", "src/read/*.cpp", "src/cli/*", "python/src/*", "tests/*", "bench/*", "*_test.cpp"),
)
SYSTEM_HEADERS = {
    "dirent.h", "dlfcn.h", "fcntl.h", "poll.h", "pthread.h", "signal.h", "spawn.h", "unistd.h",
    "sys/file.h", "sys/mman.h", "sys/resource.h", "sys/stat.h", "sys/time.h", "sys/types.h", "sys/wait.h",
}  # fmt: skip

INCLUDE = re.compile(r'^[ \t]*#[ \t]*(?:include|import)[ \t]*(<[^>\n]+>|"[^"\n]+")', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CMAKE_LAYER = re.compile(r"kerntrail_layer\(\s*(\w+)(.*?)\)", re.DOTALL)
CMAKE_KEYWORDS = {"SOURCES", "DEPENDS", "PRIVATE", "TESTS", "TEST_DEPENDS"}
SOURCE_SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cxx", ".inc"}
FOLDERS = ("include", "src", "python/src", "tests", "bench", "fuzz")


def layer_of(path: str) -> str | None:
    """The layer a file of the tree belongs to; None for programs beside the layers (tests, bench, fuzz)."""
    parts = path.split("/")
    if parts[:2] == ["include", "kerntrail"]:
        return PUBLIC_HEADERS.get("/".join(parts[2:]))
    if parts[:2] == ["python", "src"]:
        return "python"
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return None


def is_test(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return path.startswith("tests/") or name.startswith("test_") or name.endswith("_test.cpp")


def allowed_layers(path: str, layer: str) -> set[str]:
    allowed = LAYERS[layer] | {layer}
    if is_test(path):
        allowed |= TESTS_MAY_ALSO_USE.get(layer, set())
    return allowed


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def own_target(root: Path, path: str, name: str) -> str | None:
    """The file of the tree that an include names, or None where it names none of ours."""
    bases = [root / "include", root / "src", (root / path).parent]
    if is_test(path):
        bases += [root / "tests", *sorted((root / "tests").glob("*/"))]
    for base in bases:
        target = base / name
        if target.is_file():
            return target.resolve().relative_to(root).as_posix()
    return None


def check_third_party(path: str, name: str) -> str | None:
    for row in THIRD_PARTY:
        if fnmatch.fnmatchcase(name, row.header):
            return None if matches(path, row.files) else f"<{name}> is not allowed here (tools/check_layers.py, THIRD_PARTY)"
    if name in SYSTEM_HEADERS:
        return None if matches(path, SYSTEM.files) else f"<{name}>: this layer does not talk to the operating system"
    if "/" in name or "." in name:
        return f"<{name}> is no header the project uses"
    return None  # C++'s own: no suffix, no folder


def check_own(path: str, layer: str | None, target: str) -> str | None:
    target_layer = layer_of(target)
    if target_layer == "python":
        return None if layer == "python" else f"{target}: nothing may use the Python extension"
    if layer is None or target_layer is None:
        return None
    if target_layer not in allowed_layers(path, layer):
        return f"{target}: {layer} may not use {target_layer}"
    if path.startswith("include/") and not target.startswith("include/"):
        return f"{target}: a public header may include public headers only"
    return None


def check_include(root: Path, path: str, layer: str | None, spelled: str) -> str | None:
    name = spelled[1:-1]
    target = own_target(root, path, name)
    if target is not None:
        if spelled.startswith("<"):
            return f"{spelled}: the tree's own headers are included with quotes"
        return check_own(path, layer, target)
    if spelled.startswith('"'):
        return f"{spelled} names no file of the tree"
    return check_third_party(path, name)


def check_file(root: Path, path: str) -> list[str]:
    layer = layer_of(path)
    if path.startswith("include/") and layer is None:
        return [f"{path}: public header without a layer (tools/check_layers.py, PUBLIC_HEADERS)"]
    if path.startswith("src/") and (layer is None or layer not in LAYERS):
        return [f"{path}: no such layer"]
    text = (root / path).read_text(encoding="utf-8")
    text = COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    problems = []
    for match in INCLUDE.finditer(text):
        problem = check_include(root, path, layer, match.group(1))
        if problem:
            problems.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {problem}")
    return problems


def cmake_lists(body: str) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    keyword = ""
    for word in body.split():
        if word in CMAKE_KEYWORDS:
            keyword = word
        else:
            lists.setdefault(keyword, []).append(word)
    return lists


def check_cmake(root: Path, path: Path) -> list[str]:
    problems = []
    text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
    for name, body in CMAKE_LAYER.findall(text):
        for depended in cmake_lists(body).get("DEPENDS", []):
            if depended not in LAYERS.get(name, set()):
                problems.append(f"{path.relative_to(root)}: {name} may not depend on {depended}")
    return problems


def tree_files(root: Path) -> list[str]:
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in SOURCE_SUFFIXES and "node_modules" not in path.parts:
                found.append(path.relative_to(root).as_posix())
    return found


def check_tree(root: Path) -> tuple[list[str], int]:
    """All violations of the tree under `root`, and the number of files looked at."""
    root = root.resolve()
    files = tree_files(root)
    problems = [problem for path in files for problem in check_file(root, path)]
    for path in sorted((root / "src").glob("*/CMakeLists.txt")):
        problems += check_cmake(root, path)
    return problems, len(files)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    problems, files = check_tree(root)
    if files == 0:
        print(f"layers: no source files under {root}")
        return 1
    for problem in problems:
        print(problem)
    print(f"layers: {files} files, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
