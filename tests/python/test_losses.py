"""What stock Inductor really loses: `drops` names pass, pattern and the function of the line, for models known from
watching. Lines themselves are not pinned: a patch release moves them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import loss_models
import pytest

S, M, F, A, N = "stack_trace", "nn_module_stack", "source_fn_stack", "original_aten", "from_node"
FX = {S, M, F, A, N}


@dataclass(frozen=True)
class Lost:
    passes: str  # the path of passes, outermost first
    pattern: str  # "" where no pattern matched
    file: str
    function: str
    fields: frozenset[str]
    units: int
    direction: str = ""


def lost(passes, pattern, file, function, fields, units, direction=""):
    return Lost(passes, pattern, f"torch/_inductor/fx_passes/{file}", function, frozenset(fields), units, direction)


EXPECTED = {
    "attention": {
        lost("pass_pattern_0 / pattern_matcher", "_sfdp_pattern_1_inference", "fuse_attention.py", "_sfdp_replacement_1", {S, F, N}, 1)},
    "classifier": {
        lost("pass_pattern_1 / pattern_matcher", "mul_softmax_pattern", "joint_graph.py", "mul_softmax_pattern", {S, F, N}, 14, "forward"),
        lost("fuse_seed_creation_pass", "", "replace_random.py", "fuse_seed_creation_pass", {S, F, A, N}, 1, "forward"),
        lost("pass_pattern_0 / pattern_matcher", "scatter_upon_const_tensor", "joint_graph.py", "scatter_upon_const_tensor", {S}, 6,
             "backward")},
    "heads_pre": {lost("group_batch_fusion_passes / group_batch_fusion_0", "", "group_batch_fusion.py", "fuse", {S, M, F}, 7)},
    "heads_post": {
        # upstream's own name for the pass around it misleads
        lost("post_grad_custom_pre_pass / group_batch_fusion_0", "", "group_batch_fusion.py", "decompose_stack", FX, 12),
        lost("post_grad_custom_pre_pass / group_batch_fusion_0", "", "group_batch_fusion.py", "fuse", FX, 6)},
    "frozen": {
        lost("pattern_matcher", "binary_folding_init.<locals>.folded_op", "binary_folding.py", "folded_op", FX, 1),
        lost("pattern_matcher", "_register_weight_pack_pass.<locals>.convolution", "mkldnn_fusion.py", "convolution", FX, 2),
        lost("pass_pattern_1 / pattern_matcher", "_register_unary_fusion_lowering.<locals>.fn", "mkldnn_fusion.py", "fn",
             {M}, 1)},
    "in_place": {lost("reinplace_inplaceable_ops", "", "reinplace.py", "graph_call_function", {S, F, A, N}, 1)},
    "adds_zeros": set(),
    "clean": set(),
    "clean_training": set(),
}
PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+) \((?P<function>.+)\)")


def drops_of(run_kerntrail, tmp_path, name, level="passes"):
    loss_models.run(name, str(tmp_path / "c.ndjson"), level)
    done = run_kerntrail("drops", tmp_path / "c.ndjson", "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["parts"]


def losses_of(parts):
    """FX fields lost, added up by pass, pattern and function."""
    units: dict[tuple, dict[str, set[str]]] = {}
    for part in parts:
        for loss in part["losses"]:
            if loss["field"] not in FX:
                continue
            site = part["sites"][loss["site"]]
            place = PLACE.fullmatch(site.get("place", "")) or {"file": "?", "function": "?"}
            key = (site["title"], site.get("pattern", ""), place["file"], place["function"], part.get("direction", ""))
            units.setdefault(key, {}).setdefault(loss["field"], set()).add(loss["unit"])
    return {Lost(passes, pattern, file, function, frozenset(fields), len(set().union(*fields.values())), direction)
            for (passes, pattern, file, function, direction), fields in units.items()}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_stock_inductor_loses(tmp_path, run_kerntrail, name):
    parts = drops_of(run_kerntrail, tmp_path, name)
    assert losses_of(parts) == EXPECTED[name]
    for part in parts:  # everything adds up
        for stage in part["stages"]:
            for field in stage["fields"]:
                assert field["present"] + field["absent"] + field["unreadable"] == field["units"] == stage["units"]
                assert sum(field["qualities"].values()) == field["present"] and sum(field["reasons"].values()) == field["absent"]
        for one in part["passes"]:
            assert sum(one["fates"].values()) == one["left"]


@pytest.mark.parametrize("level", ["passes", "origins"])
def test_a_removed_addition_of_zeros_overwrites_what_stays(tmp_path, run_kerntrail, level):
    """The sine gets the metadata of the addition that was removed: every field present, and wrong."""
    (part,) = drops_of(run_kerntrail, tmp_path, "adds_zeros", level)
    marks = [mark for mark in part["marks"] if mark["quality"] == "overwritten"]
    wrong = {(part["sites"][mark["site"]]["title"], mark["field"], mark["name"]) for mark in marks}
    assert wrong == {("constant_fold_uniform_value", field, "sin") for field in (S, F, A, N)}
    (aten,) = [mark for mark in marks if mark["field"] == A]
    assert (aten["was"], aten["now"], aten["evidence"]) == ("aten.sin.default", "aten.add.Tensor", "identity")
    (stack,) = [mark for mark in marks if mark["field"] == S]
    lines = [int(stack[key].rpartition(":")[2]) for key in ("was", "now")]
    source = Path(loss_models.__file__).read_text().splitlines()
    assert [source[line - 1].strip() for line in lines] == ["a = torch.sin(x)", "return torch.exp(a + torch.zeros(4, 8))"]
