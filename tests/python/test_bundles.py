"""Bundles of real compiles, offline: every one keeps the format's rules, computes what its OpSpecs say, leads back to the
model's lines, and is written again byte for byte from what was read of it."""

import json
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
jsonschema = pytest.importorskip("jsonschema")

import torch._dynamo  # noqa: E402
from spyre_models import SPYRE_MODELS  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BY_NAME = {model.name: model for model in SPYRE_MODELS}


def fits(schema: str, text: str):
    document = json.loads(text)
    rules = json.loads((ROOT / "schemas" / f"{schema}.schema.json").read_text(encoding="utf-8"))
    errors = [f"{error.json_path}: {error.message}" for error in jsonschema.Draft202012Validator(rules).iter_errors(document)]
    assert not errors, errors[0]
    return document


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    """The bundles of one test lie in a folder of their own."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def bundles_of(model, tmp_path) -> Path:
    module, inputs = model.build()
    with torch.no_grad():
        torch.compile(module, backend="kerntrail_spyre", options=model.options)(*inputs)
    (folder,) = (tmp_path / "inductor").rglob("inductor-spyre")
    return folder


@pytest.mark.parametrize("model", SPYRE_MODELS, ids=lambda model: model.name)
def test_what_is_written_is_sound_and_computes_what_was_meant(model, tmp_path, run_kerntrail):
    folder = bundles_of(model, tmp_path)
    judged = run_kerntrail("validate", folder, "--execute")
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert len(judged.stdout.splitlines()) == len(list(folder.iterdir()))
    assert all(": executed: all " in line or "; executed: all " in line for line in judged.stdout.splitlines()), judged.stdout
    for bundle in folder.iterdir():
        copy = tmp_path / "copy" / bundle.name
        specs = tmp_path / f"{bundle.name}.json"
        assert run_kerntrail("info", bundle, "--format", "specs", "-o", specs).returncode == 0
        fits("op_specs", specs.read_text())
        assert fits("bundle-validation", run_kerntrail("validate", bundle, "--execute", "--format", "json").stdout)["sound"]
        emitted = run_kerntrail("emit", specs, "-o", copy, "--like", bundle)
        assert emitted.returncode == 0, emitted.stderr
        assert {p.name: p.read_text() for p in copy.iterdir()} == {p.name: p.read_text() for p in bundle.iterdir()}


def test_a_person_finds_the_models_lines(tmp_path, run_kerntrail):
    folder = bundles_of(BY_NAME["mlp_full"], tmp_path)
    (bundle,) = folder.iterdir()
    text = run_kerntrail("info", bundle).stdout
    lines = (Path(__file__).parent / "spyre_models.py").read_text().splitlines()
    named = {lines[int(number) - 1].strip() for number in re.findall(r"spyre_models\.py:(\d+)", text)}
    assert named == {"x = self.fc1(x)", "x = torch.relu(x)", "x = self.fc2(x)"}
    document = fits("bundle", run_kerntrail("info", bundle, "--format", "json").stdout)
    assert all(file["handle"]["id"].isdigit() for file in document["files"])
    report = run_kerntrail("report", bundle).stdout
    assert "| Spyre | `debug_handle` | ✓ |" in report and "x = self.fc1(x)" not in report, "a file has lines, not their text"
    assert len(re.findall(r"spyre_models\.py:\d+", report)) >= 5


def test_a_copied_address_is_found_by_execution(tmp_path, run_kerntrail):
    """The rules see nothing wrong: the second product reads the first one's weight."""
    folder = bundles_of(BY_NAME["mlp_seed"], tmp_path)
    (bundle,) = folder.iterdir()
    specs = tmp_path / "specs.json"
    run_kerntrail("info", bundle, "--format", "specs", "-o", specs)
    products = [path for path in sorted(bundle.iterdir()) if "batchmatmul" in path.read_text()]
    address = re.compile(r'"startAddressCoreCorelet_".*?"data_": \{\s*"\[0, 0, 0\]": "(\d+)"', re.DOTALL)
    first, second = ([int(found) for found in address.findall(path.read_text())] for path in (products[0], products[-1]))
    text = products[-1].read_text().replace(f'"{second[1]}"', f'"{first[1]}"')
    products[-1].write_text(text)
    judged = run_kerntrail("validate", bundle, "--execute", "--specs", specs)
    assert judged.returncode == 1, judged.stdout + judged.stderr
    assert products[-1].name in judged.stdout and " are wrong, first [" in judged.stdout


@pytest.mark.parametrize("name", ["swiglu_decode", "adds_then_matmul_512/0001_sdsc_fused_add_t_0", "mlp_m512"])
def test_what_is_printed_of_public_files_fits_the_schemas(name, run_kerntrail):
    bundle = ROOT / "tests" / "data" / "sdsc" / name
    fits("bundle", run_kerntrail("info", bundle, "--format", "json").stdout)
    fits("op_specs", run_kerntrail("info", bundle, "--format", "specs").stdout)
    fits("bundle-validation", run_kerntrail("validate", bundle, "--format", "json").stdout)
