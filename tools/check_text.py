"""Checks the text of every file of the repository: nothing of one machine in it, nothing left unfinished.

 - no absolute path of one machine (a home folder, a work folder, an interpreter's own prefix);
 - no address or option of a package registry: which registry is used is the machine's business;
 - no mark of unfinished work, no merge conflict;
 - UTF-8 without a carriage return or a trailing blank, with a line feed at the end (recorded data is left as it is).

Prints one line a finding and exits 1. Usage: check_text.py [ROOT]
"""

import re
import subprocess
import sys
from pathlib import Path

# Patterns are put together from pieces, so that this file passes its own check.
MACHINE_PATHS = re.compile(
    r"(?<![\w.$}~*-])/(?:"
    + "|".join(
        (
            "wo" + r"rk/",
            "ro" + r"ot/",
            "op" + r"t/(?!python/)",
            "mn" + r"t/",
            # Homes of nobody in particular, and a Python under /opt, are fine in examples and tests.
            "ho" + r"me/(?!(?:user|u|me|dev|alice|bob|runner)\b)\w",
            "Use" + r"rs/(?!(?:user|u|me|dev|alice|bob)\b)\w",
            "tm" + r"p/kt\b",
        )
    )
    + ")"
)
REGISTRIES = re.compile(
    "|".join(
        (
            r"py" + r"pi\.org",
            r"pythonhosted" + r"\.org",
            r"download\.pytorch" + r"\.org",
            r"npm" + r"js\.(?:org|com)",
            r"--(?:extra-)?index" + r"-url",
            r"--find" + r"-links",
            r"deb\.debian" + r"\.org",
            r'"reso' + r'lved"\s*:',
        )
    )
)
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|^(?:<{7}|>{7}) ", re.MULTILINE)

# Recorded files are data: their blanks stay. Text of others keeps its own form.
RECORDED = re.compile(r"^(?:tests/(?:golden|data|inputs)/|examples/.*\.(?:json|ndjson|md)$|fuzz/corpus/|LICENSE$|package-lock\.json$)")
BINARY_SUFFIXES = {".png", ".gz", ".zst", ".ico", ".woff2"}
RULES = (
    (MACHINE_PATHS, "path of one machine"),
    (REGISTRIES, "package registry"),
    (UNFINISHED, "mark of unfinished work"),
)


def repository_files(root: Path) -> list[str]:
    """Tracked files, and those that would be: neither ignored nor deleted."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    ).stdout
    return sorted({name for name in listing.decode().split("\0") if name and (root / name).is_file()})


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def check_form(path: str, text: str) -> list[str]:
    problems = []
    if "\r" in text:
        problems.append(f"{path}:{line_of(text, text.index(chr(13)))}: carriage return")
    trailing = re.search(r"[ \t]+$", text, re.MULTILINE)
    if trailing and not path.endswith(".md"):  # two blanks end a line in Markdown
        problems.append(f"{path}:{line_of(text, trailing.start())}: trailing blank")
    if text and not text.endswith("\n"):
        problems.append(f"{path}:{line_of(text, len(text))}: no line feed at the end")
    return problems


def check_text(path: str, data: bytes) -> list[str]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return [] if RECORDED.match(path) else [f"{path}: not UTF-8 at byte {error.start}"]
    problems = []
    for pattern, meaning in RULES:
        for match in pattern.finditer(text):
            if meaning == "mark of unfinished work" and RECORDED.match(path):
                continue
            problems.append(f"{path}:{line_of(text, match.start())}: {meaning}: {match.group().strip()}")
    return problems if RECORDED.match(path) else problems + check_form(path, text)


def check_tree(root: Path) -> tuple[list[str], int]:
    """All findings of the repository at `root`, and the number of files looked at."""
    files = [name for name in repository_files(root) if Path(name).suffix not in BINARY_SUFFIXES]
    problems = [problem for name in files for problem in check_text(name, (root / name).read_bytes())]
    return problems, len(files)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    problems, files = check_tree(root)
    for problem in problems:
        print(problem)
    print(f"text: {files} files, {len(problems)} findings")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
