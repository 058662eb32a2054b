"""The golden outputs of `kerntrail drops` against their schema, damaged ones don't fit; and the schema of intents."""

import copy
import json
from pathlib import Path

import pytest

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
DROPS = jsonschema.Draft202012Validator(json.loads((ROOT / "schemas" / "drops.schema.json").read_text(encoding="utf-8")))
INTENTS = jsonschema.Draft202012Validator(json.loads((ROOT / "schemas" / "intents.schema.json").read_text(encoding="utf-8")))
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*/drops.json"))
SOUND = {"pass": "mine*", "kind": "remaps", "reason": "by design", "fields": ["stack_trace"]}


@pytest.mark.parametrize("schema", [DROPS, INTENTS], ids=["drops", "intents"])
def test_schemas_are_schemas(schema):
    jsonschema.Draft202012Validator.check_schema(schema.schema)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_output_fits(path):
    errors = [f"{error.json_path}: {error.message}" for error in DROPS.iter_errors(json.loads(path.read_text(encoding="utf-8")))]
    assert not errors, errors[0]


def test_every_list_occurs_in_the_golden_case():
    part = json.loads((ROOT / "tests" / "golden" / "lossy_passes" / "drops.json").read_text(encoding="utf-8"))["parts"][0]
    for key in ("stages", "sites", "losses", "marks", "declared", "findings", "passes", "intervals"):
        assert part[key], key
    for stage in part["stages"]:
        for field in stage["fields"]:
            assert field["present"] + field["absent"] + field["unreadable"] == stage["units"]
            assert sum(field["qualities"].values()) == field["present"] and sum(field["reasons"].values()) == field["absent"]


@pytest.mark.parametrize("key", ["stages", "sites", "losses", "marks", "declared", "findings", "passes", "intervals"])
def test_what_is_missing_or_too_much_does_not_fit(key):
    document = json.loads((ROOT / "tests" / "golden" / "lossy_passes" / "drops.json").read_text(encoding="utf-8"))
    extra = copy.deepcopy(document)
    extra["parts"][0][key][0]["surprise"] = 1
    assert not DROPS.is_valid(extra)
    del document["parts"][0][key]
    assert not DROPS.is_valid(document)


def test_intents():
    assert INTENTS.is_valid({"version": 1, "intents": [SOUND]})
    for damage in ({"kind": "hides"}, {"pass": ""}, {"kind": "removes"}, {"more": 1}, {"fields": "stack_trace"}):
        assert not INTENTS.is_valid({"intents": [{**SOUND, **damage}]}), damage
    assert not INTENTS.is_valid({"intents": [{"pass": "mine", "kind": "removes"}]})
