"""The golden outputs of `kerntrail diff` against their schema; damaged ones don't fit."""

import copy
import json
from pathlib import Path

import pytest

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
DIFF = jsonschema.Draft202012Validator(json.loads((ROOT / "schemas" / "diff.schema.json").read_text(encoding="utf-8")))
GOLDEN = sorted((ROOT / "tests" / "golden" / "diff").glob("*.json"))
LISTS = ("stages", "sites", "fields", "drops", "links")


def document(name: str) -> dict:
    return json.loads((ROOT / "tests" / "golden" / "diff" / f"{name}.json").read_text(encoding="utf-8"))


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(DIFF.schema)


def test_there_are_golden_outputs():
    assert {path.stem for path in GOLDEN} >= {"reference_repaired", "reference_broken", "unlike", "hostile"}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_output_fits(path):
    errors = [f"{error.json_path}: {error.message}" for error in DIFF.iter_errors(json.loads(path.read_text(encoding="utf-8")))]
    assert not errors, errors[0]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_sums_add_up(path):
    for part in json.loads(path.read_text(encoding="utf-8"))["parts"]:
        for stage in part["stages"]:
            for side in ("old", "new"):
                grouped = sum(len(group[side]) for group in stage["groups"])
                assert len(stage["pairs"]) + grouped + len(stage[f"only_{side}"]) == stage[f"{side}_units"]


def test_unlike_captures_say_so():
    assert document("unlike")["comparable"] is False and document("unlike")["unlike"]
    assert document("reference_repaired")["comparable"] is True


def test_the_repaired_nodes_are_four():
    part = document("reference_repaired")["parts"][0]
    assert [field["new_unit"]["name"] for field in part["fields"]] == ["mm_default_1", "add_tensor_1", "mm_default", "add_tensor"]


@pytest.mark.parametrize("key", LISTS)
def test_what_is_missing_or_too_much_does_not_fit(key):
    good = document("reference_repaired")
    assert good["parts"][0][key], key
    extra = copy.deepcopy(good)
    extra["parts"][0][key][0]["surprise"] = 1
    assert not DIFF.is_valid(extra)
    del good["parts"][0][key]
    assert not DIFF.is_valid(good)
