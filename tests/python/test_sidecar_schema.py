"""schemas/sidecar.schema.json and the reader in C++ refuse the same documents: the public ones, and changes to them."""

from __future__ import annotations

import json
import random

import pytest

jsonschema = pytest.importorskip("jsonschema")

# No whole number with a fraction (2.0): an integer to JSON Schema, none to the reader.
VALUES = [None, True, 0, -1, 1, 1.5, "", "a", "101", "x\0", [], {}, ["101"], ["a", "a"], [0], {"a": []}]


@pytest.fixture(scope="module")
def schema(repo_root):
    schema = json.loads((repo_root / "schemas" / "sidecar.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def fixtures(repo_root):
    folder = repo_root / "tests" / "data" / "spyre_provenance"
    return [json.loads((folder / name).read_text()) for name in ("valid_v1.json", "valid_cache_replay_v1.json")]


def places(value, path=()):
    """Paths of everything in a document, and one beside the members of each object."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield (*path, "zz")
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(document, choose):
    """A copy in which one thing is replaced, added or gone."""
    out = json.loads(json.dumps(document))
    path = choose.choice(list(places(out)))
    owner = out
    for key in path[:-1]:
        owner = owner[key]
    if choose.random() < 0.2 and path[-1] != "zz":
        del owner[path[-1]]
    else:
        owner[path[-1]] = choose.choice(VALUES)
    return out


def test_public_documents_fit(schema, fixtures):
    for document in fixtures:
        schema.validate(document)


def test_reader_and_schema_refuse_the_same(schema, fixtures, run_kerntrail, tmp_path):
    choose = random.Random(7)
    refused = taken = 0
    for _ in range(150):
        document = changed(choose.choice(fixtures), choose)
        fits = schema.is_valid(document)
        (tmp_path / "s.json").write_text(json.dumps(document))
        said = run_kerntrail("sidecar", tmp_path / "s.json").stderr
        by_form = "schema-validation-failure" in said or "unsupported-schema-version" in said
        assert by_form is not fits, (said, list(schema.iter_errors(document))[:1])
        refused, taken = refused + by_form, taken + fits
    assert refused > 60 and taken > 10
