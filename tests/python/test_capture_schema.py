"""The committed captures against the published schema: every record fits, damaged ones don't."""

import copy
import json
from pathlib import Path

import pytest

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "schemas" / "capture.schema.json").read_text(encoding="utf-8"))
CAPTURES = sorted((ROOT / "tests" / "data" / "captures").glob("*.ndjson"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
# One validator a kind: `oneOf` tries all of them for each record, which is slow for the mutations below.
OF_KIND = {
    entry["$ref"].rsplit("/", 1)[1]: jsonschema.Draft202012Validator({**SCHEMA, "oneOf": [entry]})
    for entry in SCHEMA["oneOf"]
}


def records_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def samples():
    """The first few records of each kind of the sample, with their line."""
    seen = {}
    for record in records_of(ROOT / "tests" / "data" / "captures" / "mlp.ndjson"):
        kept = seen.setdefault(record["record"], [])
        if len(kept) < 4:
            kept.append(record)
    return [record for kept in seen.values() for record in kept]


def test_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_kind_of_record_is_described():
    kinds = [entry["$ref"].rsplit("/", 1)[1] for entry in SCHEMA["oneOf"]]
    assert len(kinds) == len(set(kinds)) == 19
    for kind in kinds:
        definition = SCHEMA["$defs"][kind]
        assert definition["description"]
        assert definition["properties"]["record"] == {"const": kind}
        assert definition["additionalProperties"] is False
    assert {record["record"] for record in samples()} == set(kinds)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_every_line_fits(path):
    records = records_of(path)
    assert records
    for number, record in enumerate(records, 1):
        errors = [error.message for error in VALIDATOR.iter_errors(record)]
        assert not errors, f"{path.name}:{number}: {errors[0]}"


# Members that one case of a kind needs: a text is plain or JSON, a snapshot is of a stage or of a pass.
REQUIRED_BY_A_CASE = {("text", "text"), ("text", "json"), ("snapshot", "stage"), ("snapshot", "pass"), ("pass", "kind")}


@pytest.mark.parametrize("record", samples(), ids=lambda record: record["record"])
def test_damaged_records_do_not_fit(record):
    valid = OF_KIND[record["record"]].is_valid
    assert valid(record)
    required = SCHEMA["$defs"][record["record"]]["required"]
    for key in record:
        if key == "json":  # any value may stand here
            continue
        for wrong in (None, [], {}, 0.5, [[]], {"a": []}):
            damaged = copy.deepcopy(record)
            damaged[key] = wrong
            assert not valid(damaged), f"{key} = {wrong!r} in {damaged}"
        damaged = copy.deepcopy(record)
        del damaged[key]
        needed = key in required or (record["record"], key) in REQUIRED_BY_A_CASE
        if (record["record"], key) == ("pass", "graph"):
            needed = record["phase"] == "start"
        assert valid(damaged) == (not needed)
    assert not valid({**record, "novelty": 1})
    assert not VALIDATOR.is_valid({**record, "record": "verdict"})


@pytest.mark.parametrize(
    "record",
    [
        {"record": "run", "format": 2},
        {"record": "text", "id": 0},
        {"record": "text", "id": 0, "text": "", "json": 1},
        {"record": "text", "id": -1, "text": ""},
        {"record": "unit", "id": "c0.k0", "graph": "c0.g0", "kind": "fx_node"},
        {"record": "unit", "id": "c00.n0", "graph": "c0.g0", "kind": "fx_node"},
        {"record": "loc", "id": 0, "kind": "call", "file": 1},
        {"record": "loc", "id": 0, "kind": "range", "callee": 1},
        {"record": "snapshot", "id": 0, "stage": "s", "graph": "c0.g0", "digest": "00"},
        {"record": "snapshot", "id": 0, "stage": "s", "graph": "c0.g0", "digest": "0" * 16, "units": ["c0.n0", "c0.n0"]},
        {"record": "attr", "unit": "c0.n0", "attr": "a", "at": 0, "state": "gone"},
        {"record": "source", "file": "f", "lines": {"01": ""}},
        {"record": "end", "status": "done"},
        {"record": "birth"},
        {},
    ],
    ids=lambda record: json.dumps(record)[:40],
)
def test_refused(record):
    assert not VALIDATOR.is_valid(record)
