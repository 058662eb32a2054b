"""The reference report, cell by cell: what `kerntrail audit` measures for the reference model against the published
numbers, which live here as data. Stated exceptions: addresses inside target texts, handles that hash a path, the date,
`mutation_region_id` before grad and `stream_idx` (both differ by torch version)."""

import json
import re
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("torch")

TICK, HALF, CROSS, DASH, NONE = "✓", "◐", "✗", "–", "—"
COLUMNS = ["FX Graph (pre-grad)", "FX Graph (post-grad)", "LoopLevelIR (pre-pass)", "LoopLevelIR (post-pass)", "OpSpec", "SuperDSC JSON"]
MATRIX = {
    ("FX", "stack_trace"): [TICK, f"{HALF} 3/7", DASH, DASH, DASH, DASH],
    ("FX", "nn_module_stack"): [f"{HALF} 2/3", f"{HALF} 2/7", DASH, DASH, CROSS, CROSS],
    ("FX", "source_fn_stack"): [TICK, f"{HALF} 3/7", DASH, DASH, CROSS, CROSS],
    ("FX", "original_aten"): [DASH, TICK, DASH, DASH, DASH, DASH],
    ("FX", "from_node"): [DASH, f"{HALF} 3/7", DASH, DASH, CROSS, CROSS],
    ("IR", "origins"): [DASH, DASH, TICK, TICK, DASH, DASH],
    ("IR", "origin_node"): [DASH, DASH, TICK, TICK, DASH, DASH],
    ("IR", "traceback"): [DASH, DASH, CROSS, CROSS, CROSS, CROSS],
    ("IR", "get_stack_traces"): [DASH, DASH, f"{HALF} 3/5", f"{HALF} 3/5", DASH, DASH],
    ("Spyre", "debug_handle"): [DASH, DASH, DASH, DASH, TICK, TICK],
}
FULL_POST_GRAD = {"stack_trace": TICK, "nn_module_stack": f"{HALF} 6/7", "source_fn_stack": TICK, "original_aten": TICK, "from_node": TICK}

FC1, RELU, FC2 = "x = self.fc1(x)", "x = torch.relu(x)", "x = self.fc2(x)"
PRE_GRAD = [
    ["x", "<built-in function linear>", "str", "dict", "list", CROSS, CROSS, FC1],
    ["x_1", "<built-in method relu of type object>", "str", CROSS, "list", CROSS, CROSS, RELU],
    ["x_2", "<built-in function linear>", "str", "dict", "list", CROSS, CROSS, FC2],
]
SOURCELESS = [CROSS, CROSS, CROSS, "OpOverload", CROSS, NONE]
POST_GRAD = [
    ["permute", "aten.permute.default", "str", "dict", "list", "OpOverload", "list", FC1],
    ["mm_default_1", "aten.mm.default", *SOURCELESS],
    ["add_tensor_1", "aten.add.Tensor", *SOURCELESS],
    ["relu", "aten.relu.default", "str", CROSS, "list", "OpOverload", "list", RELU],
    ["permute_1", "aten.permute.default", "str", "dict", "list", "OpOverload", "list", FC2],
    ["mm_default", "aten.mm.default", *SOURCELESS],
    ["add_tensor", "aten.add.Tensor", *SOURCELESS],
]
OPERATIONS = [
    ["op0", "mm_default_1, permute", "mm_default_1", CROSS, TICK],
    ["op1", "add_tensor_1", "add_tensor_1", CROSS, CROSS],
    ["op2", "relu", "relu", CROSS, TICK],
    ["op3", "mm_default, permute_1", "mm_default", CROSS, TICK],
    ["op4", "add_tensor", "add_tensor", CROSS, CROSS],
]
# A handle with a source hashes an absolute path: its id is compared only where there is none.
HASHES_A_PATH = object()
LINES = {25: "reference_mlp.py:25", 26: "reference_mlp.py:26", 27: "reference_mlp.py:27"}
OP_SPECS = [
    ["batchmatmul", "op0", "mm_default_1, permute", "mm_default_1", HASHES_A_PATH, LINES[25]],
    ["add", "op1", "add_tensor_1", "add_tensor_1", "605170506422197115", NONE],
    ["relufwd", "op2", "relu", "relu", HASHES_A_PATH, LINES[26]],
    ["batchmatmul", "op3", "mm_default, permute_1", "mm_default", HASHES_A_PATH, LINES[27]],
    ["add", "op4", "add_tensor", "add_tensor", "6208522288796453179", NONE],
]
KERNEL = "sdsc_fused_addmm_linear_relu_0"
FUSED = "aten.addmm.default, aten.linear.default"
FILES = [
    [KERNEL, "sdsc_0.json", "0_batchmatmul", "aten.addmm.default", LINES[25], FUSED, HASHES_A_PATH],
    [KERNEL, "sdsc_1.json", "1_add", "aten.addmm.default", NONE, NONE, "605170506422197115"],
    [KERNEL, "sdsc_2.json", "2_relufwd", "aten.relu.default", LINES[26], NONE, HASHES_A_PATH],
    [KERNEL, "sdsc_3.json", "3_batchmatmul", "aten.addmm.default", LINES[27], FUSED, HASHES_A_PATH],
    [KERNEL, "sdsc_4.json", "4_add", "aten.addmm.default", NONE, NONE, "6208522288796453179"],
]
LAYERS = ["Source", "FX pre-grad", "FX post-grad", "LoopLevelIR pre-pass", "LoopLevelIR post-pass", "OpSpec", "SuperDSC"]
EDGES = {
    ("Source", FC1, "FX pre-grad", "x · linear"), ("Source", RELU, "FX pre-grad", "x_1 · relu"),
    ("Source", FC2, "FX pre-grad", "x_2 · linear"),
    *((LAYERS[1], "x · linear", LAYERS[2], name) for name in ("permute", "mm_default_1", "add_tensor_1")),
    (LAYERS[1], "x_1 · relu", LAYERS[2], "relu"),
    *((LAYERS[1], "x_2 · linear", LAYERS[2], name) for name in ("permute_1", "mm_default", "add_tensor")),
    *((LAYERS[2], origin, LAYERS[3], row[0]) for row in OPERATIONS for origin in row[1].split(", ")),
    *((LAYERS[3], f"op{i}", LAYERS[4], f"op{i}") for i in range(5)),
    *((LAYERS[4], row[1], LAYERS[5], f"{row[1]} · {row[0]}") for row in OP_SPECS),
    *((LAYERS[5], f"{row[1]} · {row[0]}", LAYERS[6], KERNEL) for row in OP_SPECS),
}
COMMENT = "# Topologically Sorted Source Nodes: [x, x_1, x_2], Original ATen: [aten.linear, aten.addmm, aten.relu]"


class Report:
    def __init__(self, folder: Path, stdout: str) -> None:
        self.folder, self.stdout = folder, stdout
        self.text = (folder / "provenance_audit.md").read_text(encoding="utf-8")
        self.raw = json.loads((folder / "provenance_capture_raw.json").read_text(encoding="utf-8"))

    def section(self, title: str) -> str:
        start = self.text.index(f"## {title}")
        end = self.text.find("\n## ", start + 1)
        return self.text[start : end if end > 0 else len(self.text)]

    def table(self, section: str, first: str) -> list[list[str]]:
        """Rows of the table whose first header cell is `first`, code marks taken off."""
        rows = [line for line in self.section(section).splitlines() if line.startswith("|")]
        cells = [[cell.strip().replace("`", "") for cell in row.strip("|").split(" | ")] for row in rows]
        start = next(i for i, row in enumerate(cells) if row[0].strip() == first)
        out = []
        for row in cells[start + 2 :]:
            if len(row) != len(cells[start]) or rows[cells.index(row)].startswith("| ---"):
                break
            out.append([cell.strip() for cell in row])
        return out

    def lineage(self) -> tuple[dict[str, tuple[str, str]], set[tuple[str, str, str, str]]]:
        block = re.search(r"```mermaid\n(.*?)```", self.section("Source → Kernel Lineage"), re.S).group(1)
        nodes, layer = {}, ""
        for line in block.splitlines():
            if match := re.match(r'\s*subgraph \w+\["(.*)"\]', line):
                layer = match.group(1)
            elif match := re.match(r'\s*(n\d+)\["(.*)"\]', line):
                nodes[match.group(1)] = (layer, match.group(2))
        edges = set()
        for source, target in re.findall(r"(n\d+) -\.?-> (n\d+)", block):
            edges.add((*nodes[source], *nodes[target]))
        return nodes, edges


def audit(binary: Path, folder: Path, *options: str) -> Report:
    done = subprocess.run([str(binary), "audit", *options], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return Report(folder, done.stdout)


@pytest.fixture(scope="module")
def seed(kerntrail_binary, tmp_path_factory) -> Report:
    return audit(kerntrail_binary, tmp_path_factory.mktemp("seed"))


@pytest.fixture(scope="module")
def full(kerntrail_binary, tmp_path_factory) -> Report:
    return audit(kerntrail_binary, tmp_path_factory.mktemp("full"), "--metadata", "full")


def same(rows: list[list[str]], expected: list[list]) -> None:
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        assert len(row) == len(wanted), (row, wanted)
        for cell, want in zip(row, wanted, strict=True):
            assert (cell.isdigit() and len(cell) > 15) if want is HASHES_A_PATH else cell == want, (row, wanted)


def test_sections_in_order(seed):
    titles = re.findall(r"^##+ (.*)$", seed.text, re.M)
    wanted = ["Source → Kernel Lineage", "Stage × Field Matrix", "Stage 2a — FX Graph (pre-grad): 3 compute nodes",
              "Stage 2b — FX Graph (post-grad): 7 compute nodes", "Stage 3 — LoopLevelIR (pre-pass): 5 operations",
              "Stage 4 — LoopLevelIR (post-pass): 5 operations", "Stage 5 — OpSpec: 5 ops",
              "Stage 6 — SuperDSC: 5 `sdsc_*.json` files (1 kernel)", f"`{KERNEL}`"]
    assert [title for title in titles if title in wanted] == wanted
    assert seed.text.startswith("# Example Audit: `SimpleMLP` — Source-to-Kernel Provenance")
    assert "Generated" not in seed.text


@pytest.mark.parametrize(("layer", "field"), MATRIX)
@pytest.mark.parametrize("column", range(len(COLUMNS)))
def test_matrix_cell(seed, layer, field, column):
    rows = {(row[0], row[1]): row[2:] for row in seed.table("Stage × Field Matrix", "Layer")}
    assert list(rows) == list(MATRIX)
    assert rows[(layer, field)][column] == MATRIX[(layer, field)][column]


def test_matrix_columns(seed):
    header = next(line for line in seed.section("Stage × Field Matrix").splitlines() if line.startswith("| Layer"))
    assert [cell.strip() for cell in header.strip("|").split("|")] == ["Layer", "Field", *COLUMNS]


def test_stage_tables(seed):
    same(seed.table("Stage 2a", "Node"), PRE_GRAD)
    same(seed.table("Stage 2b", "Node"), POST_GRAD)
    same(seed.table("Stage 3", "Op"), OPERATIONS)
    same(seed.table("Stage 4", "Op"), OPERATIONS)
    same(seed.table("Stage 5", "Spyre op"), OP_SPECS)
    same(seed.table("Stage 6", "Kernel"), FILES)


def test_inventories(seed):
    def listed(section: str, before: str) -> list[str]:
        return re.findall(r"'(\w+)'", seed.section(section).split(before)[1].split("\n")[0])

    assert listed("Stage 2a", "All observed node.meta keys") == ["example_value", "nn_module_stack", "source_fn_stack", "stack_trace"]
    assert listed("Stage 2b", "All observed node.meta keys") == [
        "from_node", "mutation_region_id", "nn_module_stack", "original_aten", "seq_nr", "source_fn_stack", "stack_trace", "tensor_meta", "val"]
    pre = ["annotations", "data", "layout", "name", "operation_name", "origin_node", "origins", "stream_idx", "traceback"]
    assert listed("Stage 3", "All observed ComputedBuffer attributes") == pre
    assert listed("Stage 4", "All observed ComputedBuffer attributes") == sorted([*pre, "dim_hints", "op_it_space_splits"])
    assert listed("Stage 5", "OpSpec declared fields") == [
        "op", "is_reduction", "iteration_space", "args", "op_info", "tiled_symbols", "symbolic_dim_bounds", "debug_handle"]
    assert "present in 5/5 files, non-null in 5/5" in seed.section("Stage 6")
    assert listed("Stage 6", "All observed `debug_handle` keys") == ["aten_op", "fused_from", "fusion_context", "id", "ir_chain", "source"]


def test_lineage_edges(seed):
    nodes, edges = seed.lineage()
    assert edges == EDGES
    assert list(dict.fromkeys(layer for layer, _ in nodes.values())) == LAYERS


def test_kernel_block(seed):
    block = seed.text[seed.text.index(f"### `{KERNEL}`") :]
    assert "buffers (5): op0, op1, op2, op3, op4" in block
    assert "fx origins: add_tensor, add_tensor_1, mm_default, mm_default_1, permute, permute_1, relu" in block
    assert COMMENT in block
    assert re.search(r"files: 5.*5/5", block)


def test_raw_capture(seed):
    raw = seed.raw
    assert {"stage2_pre_grad", "stage2_post_grad", "stage3_looplevel_prepass", "stage4_looplevel_postpass", "stage5_opspec",
            "stage6_kernels", "_hooks"} <= set(raw)
    labels = ["stage2_pre_grad", "stage2_post_grad", "stage3_looplevel_prepass", "stage5_opspec", "stage6_define_kernel", "stage6_output_dir"]
    assert list(raw["_hooks"])[:6] == labels and all(raw["_hooks"][label] == "installed" for label in raw["_hooks"])
    assert all(raw[key]["fired"] for key in raw if key.startswith("stage"))
    node = raw["stage2_post_grad"]["nodes"][0]
    assert node["name"] == "permute" and node["fields"]["stack_trace"]["source_line"] == FC1
    assert node["fields"]["original_aten"]["type"] == "OpOverload" and node["input_nodes"]
    operation = raw["stage3_looplevel_prepass"]["operations"][0]
    assert operation["attr_exists"] == {"origins": True, "origin_node": True, "traceback": True, "get_stack_traces": True}
    assert {origin["name"] for origin in operation["fields"]["origins"]} == {"mm_default_1", "permute"}
    spec = raw["stage5_opspec"]["ops"][0]
    assert spec["debug_handle"]["source_line"] == LINES[25] and spec["opspec_present"]["debug_handle"]
    assert raw["stage6_kernels"]["kernels"][0]["kernel_metadata"]["metadata"] == COMMENT
    assert set(raw["stage6_kernels"]["output_dirs"]) == {KERNEL}


def test_printed_summary(seed):
    lines = seed.stdout.splitlines()
    assert "=" * 72 in lines
    for key, counts in [("stage2_pre_grad", "nodes=3"), ("stage2_post_grad", "nodes=7"), ("stage3_looplevel_prepass", "ops=5"),
                        ("stage4_looplevel_postpass", "ops=5"), ("stage5_opspec", "ops=5"), ("stage6_kernels", "kernels=1, dirs=1")]:
        assert any(line.strip().startswith(f"{key:<25} True {counts}") for line in lines), key
    assert "SuperDSC: 1 kernels, 5 sdsc_*.json, provenance_present=True" in lines
    for name in ("provenance_capture_raw.json", "provenance_audit.md", "provenance_capture.ndjson"):
        assert any(name in line for line in lines[-4:])


def test_full_metadata_rule(seed, full):
    rows = {row[1]: row[2:] for row in full.table("Stage × Field Matrix", "Layer")}
    assert {field: rows[field][1] for field in FULL_POST_GRAD} == FULL_POST_GRAD
    assert rows["get_stack_traces"][2:4] == [TICK, TICK]
    assert [row[0] for row in full.table("Stage 2b", "Node")] == [row[0] for row in POST_GRAD]
    assert [row[-1] for row in full.table("Stage 5", "Spyre op")] == [LINES[25], LINES[25], LINES[26], LINES[27], LINES[27]]
    assert f"### `{KERNEL}`" in full.text
    assert "Metadata rule in force: `seed`" in seed.text and "Metadata rule in force: `full`" in full.text


def test_stamp_adds_the_date(kerntrail_binary, tmp_path):
    report = audit(kerntrail_binary, tmp_path, "--stamp")
    assert re.search(r"Generated: \d{4}-\d\d-\d\d \d\d:\d\d", report.text)


def test_the_same_audit_twice_gives_the_same_report(seed, kerntrail_binary, tmp_path):
    again = audit(kerntrail_binary, tmp_path)
    assert again.text == seed.text
    first = (seed.folder / "provenance_capture.ndjson").read_text().splitlines()
    second = (tmp_path / "provenance_capture.ndjson").read_text().splitlines()
    assert [line for line in first if '"record":"volatile"' not in line] == [line for line in second if '"record":"volatile"' not in line]


def test_readme_shows_what_is_printed(seed, run_kerntrail, repo_root):
    """The outputs that README quotes are the program's own, line by line (paths depend on where the program ran)."""
    readme = (repo_root / "README.md").read_text(encoding="utf-8").splitlines()

    def quoted(command: str) -> list[str]:
        start = next(i for i, line in enumerate(readme) if line.startswith(f"$ {command}"))
        return readme[start + 1 : readme.index("```", start)]

    matrix = [line for line in readme if line.startswith(("| Layer |", "| FX |", "| IR |", "| Spyre |"))]
    assert matrix == [line for line in seed.text.splitlines() if line.startswith(("| Layer |", "| FX |", "| IR |", "| Spyre |"))]
    printed = seed.stdout.splitlines()
    assert all(line in printed for line in quoted("make audit") if line != "...")
    done = run_kerntrail("lineage", seed.folder / "provenance_capture.ndjson", "--line", "reference_mlp.py:26")
    shown = re.sub(r"\((/.*)?examples/", "(examples/", done.stdout).splitlines()
    assert shown == quoted(".venv/bin/kerntrail lineage")
