"""`kerntrail export`: torch's own provenance documents from any capture, and flat tables that other programs read."""

import contextlib
import copy
import csv
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import duckdb
import pandas
import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
import torch._inductor.debug as torch_debug  # noqa: E402
from recipes import RECIPES, settings  # noqa: E402

import kerntrail  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = ROOT / "tests" / "data" / "captures" / "hostile.ndjson"
BY_NAME = {recipe.name: recipe for recipe in RECIPES}
MAPPINGS = "inductor_provenance_tracking_node_mappings.json"
STACKS = "inductor_provenance_tracking_kernel_stack_traces.json"
COMPARED = ["mlp_training", "attention", "cnn_training", "custom_ops", "graph_break", "twins", "experts", "conditional", "dropout", "embedding", "several_models", "graph_break_training", "conditional_training", "nested_region_training", "loop", "checkpointed", "decode_step", "quantised"]


@contextlib.contextmanager
def watched():
    """What torch writes: (node mappings, kernel stack traces) of each graph that it lowers, in order."""
    written = []
    original = torch_debug.dump_inductor_provenance_info

    def dump():
        document = original()
        stacks = copy.deepcopy(torch_debug._inductor_kernel_stack_trace)
        written.append((json.loads(json.dumps(document)), json.loads(json.dumps(stacks))))
        return document

    with mock.patch.object(torch_debug, "dump_inductor_provenance_info", dump):
        yield written


def run(recipe, path, provenance, level="passes"):
    torch._dynamo.reset()
    with settings(recipe, **{"trace.provenance_tracking_level": provenance}), watched() as written:
        with kerntrail.capture(path, level=level):
            recipe.run(torch.compile)
    torch._dynamo.reset()
    return written


def exported(run_kerntrail, path, file, folder, *arguments):
    """Documents by compile and direction, in the order in which the compiles were made."""
    form = "node-mappings" if file == MAPPINGS else "kernel-stack-traces"
    done = run_kerntrail("export", path, "--format", form, "-o", folder, *arguments)
    assert done.returncode == 0, done.stderr
    return {found.parent.name: json.loads(found.read_text()) for found in sorted(folder.rglob(file))}, done.stderr


def as_sets(table):
    return {key: set(values) for key, values in table.items()}


@pytest.mark.parametrize("name", COMPARED)
def test_claims_are_what_torch_wrote_itself(tmp_path, run_kerntrail, name):
    path = tmp_path / "c.ndjson"
    written = run(BY_NAME[name], path, provenance=1)
    mappings, said = exported(run_kerntrail, path, MAPPINGS, tmp_path / "out", "--from", "claims")
    stacks, _ = exported(run_kerntrail, path, STACKS, tmp_path / "out", "--from", "claims")
    # Graphs whose code is made at once are in the order of their compiles; lazy backwards come last, in the order in
    # which they run, and are told by their calls, which torch numbers once in a process.
    assert len(written) == len(mappings), (len(written), list(mappings))
    places = sorted(mappings, key=lambda place: ("backward" in place, place))
    compared = 0
    for place in places:
        at = next(i for i, (_, theirs) in enumerate(written) if "backward" not in place or stacks[place].keys() <= theirs.keys())
        theirs, their_stacks = written.pop(at)
        ours = mappings[place]
        assert list(ours) == ["preToPost", "postToPre", "cppCodeToPost", "postToCppCode", "version"]
        assert ours["version"] == theirs["version"] == 2.0
        is_backward = "backward" in place
        if is_backward:  # torch lists the kernels of every lazy backward before, of whatever model, beside its own
            their_stacks = {key: their_stacks[key] for key in stacks[place]}
        assert as_sets(stacks[place]) == as_sets(their_stacks), place
        if "cppCodeToPost" not in theirs:
            assert is_backward, "torch writes nothing but the version for a lazy backward"
            assert ours["cppCodeToPost"] and all(ours["cppCodeToPost"].values())
            continue
        for key in ("cppCodeToPost", "postToCppCode", "postToPre", "preToPost"):
            assert as_sets(ours[key]) == as_sets(theirs[key]), (place, key)
        assert list(ours["cppCodeToPost"]) == sorted(theirs["cppCodeToPost"], key=lambda each: int(each.rpartition(":")[2]))
        compared += sum(map(len, ours["cppCodeToPost"].values())) + len(ours["postToPre"])
    assert compared > 0, "nothing was there to compare"
    assert "from the compiler's claims" in said


@pytest.mark.parametrize("name", ["mlp_training", "twins"])
def test_level_0_says_the_same_but_for_handles(tmp_path, run_kerntrail, name):
    """torch writes nothing then; nodes of each call are the same."""
    by_level = []
    for provenance in (0, 1):
        path = tmp_path / f"{provenance}.ndjson"
        written = run(BY_NAME[name], path, provenance)
        assert bool(written) == bool(provenance)
        found, said = exported(run_kerntrail, path, MAPPINGS, tmp_path / str(provenance), "--from", "claims")
        assert ("torch numbered no calls" in said) == (provenance == 0)
        by_level.append({place: sorted((key.rpartition(":")[0], sorted(nodes)) for key, nodes in one["cppCodeToPost"].items())
                         for place, one in found.items()})
        for one in found.values():
            for forth, back in (("preToPost", "postToPre"), ("cppCodeToPost", "postToCppCode")):
                pairs = {(key, each) for key, values in one[forth].items() for each in values}
                assert pairs == {(each, key) for key, values in one[back].items() for each in values}
    assert by_level[0] == by_level[1]


def adds_zeros(x, w):
    a = torch.sin(x)
    b = a + torch.zeros(8)
    return torch.relu(b @ w).view(64).neg()


def test_the_witness_names_what_kernels_really_compute(tmp_path, run_kerntrail):
    path = tmp_path / "c.ndjson"
    torch._dynamo.reset()
    with kerntrail.capture(path, level="truth"), torch._inductor.config.patch(force_disable_caches=True):
        torch.compile(adds_zeros)(torch.randn(8, 8), torch.randn(8, 8))
    claims, _ = exported(run_kerntrail, path, MAPPINGS, tmp_path / "claims", "--from", "claims")
    seen, said = exported(run_kerntrail, path, MAPPINGS, tmp_path / "seen")
    assert "c0: from the witness" in said
    (mm,) = [key for key in seen["c0"]["cppCodeToPost"] if "mm" in key]
    assert seen["c0"]["cppCodeToPost"][mm] == ["mm"] and seen["c0"]["postToPre"]["mm"] == ["matmul"]
    assert claims["c0"]["cppCodeToPost"].keys() == seen["c0"]["cppCodeToPost"].keys()
    stacks, _ = exported(run_kerntrail, path, STACKS, tmp_path / "seen")
    loop = next(key for key in stacks["c0"] if "add" in key or "sin" in key)
    assert any("a = torch.sin(x)" in stack for stack in stacks["c0"][loop])


def test_the_spyre_back_end_has_them_too(tmp_path, run_kerntrail):
    path = tmp_path / "c.ndjson"
    module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).half().eval()
    torch._dynamo.reset()
    with kerntrail.capture(path, level="truth"), torch.no_grad():
        torch.compile(module, backend="kerntrail_spyre")(torch.randn(2, 64, dtype=torch.float16))
    for source in ("claims", "witness"):
        found, _ = exported(run_kerntrail, path, MAPPINGS, tmp_path / source, "--from", source)
        ((kernel, nodes),) = found["c0"]["cppCodeToPost"].items()
        assert kernel.startswith("sdsc_fused_") and {"mm_default", "add_tensor", "relu"} <= set(nodes), (source, nodes)
        pre = {each for node in nodes for each in found["c0"]["postToPre"].get(node, [])}
        assert len(pre) == 2, pre  # the linear and the relu


def test_several_documents_need_a_folder_or_a_choice(tmp_path, run_kerntrail):
    capture = ROOT / "tests" / "golden" / "stock_training" / "capture.ndjson"
    refused = run_kerntrail("export", capture, "--format", "node-mappings")
    assert refused.returncode == 2 and "name a folder with -o, or choose one with --compile and --direction" in refused.stderr
    chosen = run_kerntrail("export", capture, "--format", "node-mappings", "--compile", "c1", "--direction", "forward")
    assert chosen.returncode == 0 and json.loads(chosen.stdout)["version"] == 2.0
    assert run_kerntrail("export", capture, "--format", "csv").returncode == 2
    assert run_kerntrail("export", capture, "--table", "units").returncode == 2
    assert run_kerntrail("export", capture, "--format", "csv", "--from", "claims").returncode == 2
    without = run_kerntrail("export", capture, "--format", "node-mappings", "--from", "witness", "--compile", "c1")
    assert without.returncode == 3 and "--level truth" in without.stderr


def test_tlparse_reads_them(tmp_path, run_kerntrail):
    """Its provenance page of a trace log in which torch's document is ours."""
    tlparse = Path(sys.executable).parent / "tlparse"
    (tmp_path / "model.py").write_text("import torch\ndef f(x, w):\n    x = torch.sin(x)\n    x = x @ w\n    return torch.relu(x)\n"
                                       "torch.compile(f)(torch.randn(8, 8), torch.randn(8, 8))\n")
    environment = {**os.environ, "TORCH_TRACE": str(tmp_path / "trace"), "INDUCTOR_PROVENANCE": "1"}
    done = subprocess.run([sys.executable, "-m", "kerntrail", "record", "--level", "truth", "-o", "c.ndjson", "model.py"],
                          cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ours = run_kerntrail("export", tmp_path / "c.ndjson", "--format", "node-mappings").stdout.strip()
    (log,) = (tmp_path / "trace").iterdir()
    replaced = replace_artifact(log.read_text(), "inductor_provenance_tracking_node_mappings", ours)
    log.write_text(replaced)
    done = subprocess.run([tlparse, str(log), "-o", str(tmp_path / "out"), "-i", "--no-browser"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = [page.read_text() for page in (tmp_path / "out").glob("provenance_tracking*.html")]
    kernels = json.loads(ours)["cppCodeToPost"]
    assert kernels and any(all(key in page for key in kernels) for page in pages), "no page has our kernels"


def replace_artifact(log, name, payload):
    """One record's payload, in the log's form: tab-indented lines behind a header with the payload's MD5."""
    out, skipping, found = [], False, 0
    for line in log.splitlines():
        if not line.startswith("\t"):
            skipping = f'"name": "{name}"' in line
            if skipping:
                found += 1
                head, brace, tail = line.partition("{")
                record = json.loads(brace + tail)
                record["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
                out += [head + json.dumps(record), *("\t" + each for each in payload.splitlines())]
                continue
        elif skipping:
            continue
        out.append(line)
    assert found == 1
    return "\n".join(out) + "\n"


TABLES = {"units": 11, "attrs": 13, "edges": 8}


def test_tables_read_as_they_are(tmp_path, run_kerntrail):
    """By the standard library, pandas and DuckDB: hostile texts, rows as many as there are."""
    for capture in (HOSTILE, ROOT / "tests" / "golden" / "lossy_passes" / "capture.ndjson"):
        folder = tmp_path / capture.parent.name
        done = run_kerntrail("export", capture, "--format", "csv", "-o", folder)
        assert done.returncode == 0, done.stderr
        assert sorted(path.stem for path in folder.iterdir()) == sorted(TABLES)
        for name, width in TABLES.items():
            with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
                rows = list(csv.reader(file))
            assert {len(row) for row in rows} == {width} and len(rows) > 1
            assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and cell]
            check_with_other_readers(folder / f"{name}.csv", rows)
            one = run_kerntrail("export", capture, "--format", "csv", "--table", name)
            # Both read with line ends made one: carriage returns inside cells are compared above.
            assert one.stdout == (folder / f"{name}.csv").read_text(encoding="utf-8")


def check_with_other_readers(path, rows):
    frame = pandas.read_csv(path, dtype=str, keep_default_na=False)
    assert list(frame.columns) == rows[0]
    assert [list(row) for row in frame.itertuples(index=False)] == rows[1:]
    found = duckdb.sql(f"select * from read_csv('{path}', all_varchar=true, header=true)")
    assert found.columns == rows[0]
    assert sorted([cell or "" for cell in row] for row in found.fetchall()) == sorted(rows[1:])
