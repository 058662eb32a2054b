"""`kerntrail gate`: exit codes, the ratchet, and each output against its own standard. The golden captures are the input:
only the commands of docs/ci.md need torch."""

import copy
import json
import os
import re
import shlex
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
LOSSY = ROOT / "tests" / "golden" / "lossy_passes" / "capture.ndjson"
WITNESSED = ROOT / "tests" / "golden" / "witnessed" / "capture.ndjson"
HOSTILE = ROOT / "tests" / "data" / "captures" / "hostile.ndjson"
TODAY = ("--today", "2026-12-01")
# Names that break naive writers; those that TOML can't hold are in the C++ tests.
NAMES = ['"quoted"', "back\\slash\\", "line\nline\r\nline", "tab\tbell\aescape\x1b[31m", "</script><!-- & -->", '{"record":"end"}',
         "café ✓ 😀", "|||`*_#[]()", "x" * 5000, "\x7f", "\u2028\u2029", "::error::injected", "]]>", "%0A::error::x", "a,b:c", "﻿"]


def schema(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    document = json.loads(text)
    return jsonschema.validators.validator_for(document)(document)


GATE, BASELINE = schema("schemas/gate.schema.json"), schema("schemas/gate-baseline.schema.json")
SARIF = schema("tests/data/sarif/sarif-2.1.0-rtm.5.json")


def fits(validator, document):
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
    assert not errors, errors[0][:500]


def toml_text(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's


DROPS = '[[drops]]\nclasses = ["dropped"]\n'
COVERAGE = '[[coverage]]\nstages = "fx_post_grad"\nfields = "stack_trace"\nmin = {}\n'
VERIFIED = '[[verified]]\nstages = "kernel"\nmin_precision = {}\n'


@pytest.fixture
def gate(run_kerntrail, tmp_path):
    """Writes the configuration and runs the gate; what is printed and the exit code."""

    def run(config, *arguments, capture=LOSSY):
        (tmp_path / "kerntrail.toml").write_text(config, encoding="utf-8")
        return run_kerntrail("gate", capture, *(() if "--today" in arguments else TODAY), *arguments)

    return run


def test_schemas_are_schemas():
    for validator in (GATE, BASELINE):
        jsonschema.Draft202012Validator.check_schema(validator.schema)


# ---- exit codes ----


def test_0_passed_and_1_failed(gate):
    done = gate(COVERAGE.format(0.5))
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("gate passed: 4 checks, all passed\n")
    done = gate(COVERAGE.format(1.0))
    assert done.returncode == 1 and "3 of 5 compute nodes at fx_post_grad have stack_trace (60.0 %" in done.stdout


def test_2_usage(gate, tmp_path):
    assert gate(DROPS, "--update").returncode == 2
    assert gate(DROPS, "--force").returncode == 2
    assert gate(DROPS, "--today", "tomorrow").returncode == 2
    assert gate(DROPS, "--format", "xml").returncode == 2
    assert gate(DROPS, "--compile", "c9").returncode == 2
    done = gate(DROPS, "--basline", "x")
    assert done.returncode == 2 and "did you mean --baseline?" in done.stderr
    shutil.copy(LOSSY, tmp_path / "run.ndjson")
    for target in ("kerntrail.toml", "run.ndjson"):
        before = (tmp_path / "run.ndjson").read_bytes()
        done = gate(DROPS, "--baseline", target, "--update", "--force", capture=tmp_path / "run.ndjson")
        assert done.returncode == 2, done.stderr
        assert (tmp_path / "run.ndjson").read_bytes() == before and (tmp_path / "kerntrail.toml").read_text() == DROPS


def test_3_unreadable_or_too_new(gate, run_kerntrail, tmp_path):
    assert gate(DROPS, capture=tmp_path / "none.ndjson").returncode == 3
    (tmp_path / "empty.ndjson").write_text("")
    assert gate(DROPS, capture=tmp_path / "empty.ndjson").returncode == 3
    (tmp_path / "new.ndjson").write_text(LOSSY.read_text().replace('"format":1', '"format":99', 1))
    assert gate(DROPS, capture=tmp_path / "new.ndjson").returncode == 3
    (tmp_path / "damaged.ndjson").write_text(LOSSY.read_text().replace('"record":"unit"', '"record":"unit', 1))
    assert gate(DROPS, capture=tmp_path / "damaged.ndjson").returncode == 3
    done = gate(DROPS, "--baseline", "none.json")
    assert done.returncode == 3 and "none.json" in done.stderr and not done.stdout
    (tmp_path / "bad.json").write_text('{"format": "kerntrail-gate-baseline", "version": 7}')
    done = gate(DROPS, "--baseline", "bad.json")
    assert done.returncode == 3 and "bad.json:1:" in done.stderr and "too-new" in done.stderr
    done = gate("[[drops]]\nclases = 1\n")
    assert done.returncode == 3 and 'kerntrail.toml:2:1: [[drops]] has no member "clases"; did you mean classes?' in done.stderr
    assert gate("[hooks]\n").returncode == 3, "a gate that asks for nothing"
    assert gate(DROPS, "--sarif", "/dev/null/x.sarif").returncode == 3
    assert gate('[gate]\nintents = "none.json"\n' + DROPS).returncode == 3
    (tmp_path / "kerntrail.toml").unlink()
    assert run_kerntrail("gate", LOSSY).returncode == 3, "no configuration"


def test_4_not_comparable(gate):
    assert gate(COVERAGE.format(0), "--baseline", "b.json", "--update").returncode == 0
    done = gate(COVERAGE.format(0), "--baseline", "b.json", capture=WITNESSED)
    assert done.returncode == 4 and 'level is "origins" there, "truth" here' in done.stderr and not done.stdout
    done = gate('[gate]\nname = "other"\n' + COVERAGE.format(0), "--baseline", "b.json")
    assert done.returncode == 4 and 'model is "model.py" there, "other" here' in done.stderr
    assert gate(COVERAGE.format(0), "--baseline", "b.json", "--update", capture=WITNESSED).returncode == 4, "an update compares too"
    assert gate(COVERAGE.format(0), "--baseline", "b.json", "--update", "--force", capture=WITNESSED).returncode == 0


# ---- fails closed ----


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9, 0.999])
def test_a_torn_capture_never_passes(gate, tmp_path, cut):
    text = LOSSY.read_text()
    (tmp_path / "torn.ndjson").write_text(text[: int(len(text) * cut)])
    done = gate(COVERAGE.format(0), capture=tmp_path / "torn.ndjson")
    assert done.returncode == 1 and "gate/torn-capture" in done.stdout
    done = gate(COVERAGE.format(0), "--baseline", "b.json", "--update", "--force", capture=tmp_path / "torn.ndjson")
    assert done.returncode == 1 and "left as it is" in done.stderr and not (tmp_path / "b.json").exists()


def test_partial_empty_and_cached_never_pass(gate):
    golden = ROOT / "tests" / "golden"
    done = gate(COVERAGE.format(0), capture=golden / "stock_training" / "capture.ndjson")
    assert done.returncode == 1 and "gate/partial-capture" in done.stdout
    assert "compile c2 was not observed: served from the FX graph cache" in done.stdout
    done = gate(COVERAGE.format(0), capture=golden / "empty_run" / "capture.ndjson")
    assert done.returncode == 1 and "gate/no-compile" in done.stdout


def test_what_a_rule_names_must_be_there(gate):
    for config, rule in (
        (COVERAGE.format(0).replace("fx_post_grad", "fx_post"), "gate/missing-stage"),
        (COVERAGE.format(0).replace("stack_trace", "stack"), "gate/missing-field"),
        (COVERAGE.format(0) + 'backend = "kerntrail_spyre"\n', "gate/no-compile"),
        (DROPS + 'stages = "kernel"\n', "gate/missing-stage"),
        (VERIFIED.format(0), "gate/no-witness"),
        ('[[coverage]]\nstages = "*"\nfields = "debug_handle"\nmin = 0.0\n', "gate/missing-field"),
        ('[[coverage]]\nstages = "*"\nfields = ["stack_trace", "orgins"]\nmin = 0.0\n', "gate/missing-field"),
        ('[[coverage]]\nstages = "fx_aten"\nfields = "origins"\nmin = 0.0\n', "gate/missing-field"),
        (COVERAGE.format(0) + '[hooks]\nrequired = "kernel"\n', "gate/hook-absent"),
    ):
        done = gate(config)
        assert done.returncode == 1 and rule in done.stdout, done.stdout
        allowed = config + f'[[allow]]\nrule = "{rule.split("/")[1][:-1]}*"\nreason = "r"\nowner = "o"\nexpires = 2099-01-01\n'
        assert gate(allowed).returncode == 1, "can't be allowed"


# ---- the ratchet ----


def test_a_baseline_accepts_then_only_tightens(gate, tmp_path):
    path = tmp_path / "b.json"
    assert gate(DROPS).returncode == 1
    done = gate(DROPS, "--baseline", "b.json", "--update")
    assert done.returncode == 0 and "wrote b.json" in done.stderr
    kept = json.loads(path.read_text())
    fits(BASELINE, kept)
    done = gate(DROPS, "--baseline", "b.json")
    assert done.returncode == 0 and "In the baseline, and no worse:" in done.stdout

    def with_change(change):
        document = copy.deepcopy(kept)
        change(document)
        path.write_text(json.dumps(document))

    # Worse than the baseline: fails, an update refuses, force takes it.
    with_change(lambda d: d["losses"].pop())
    done = gate("", "--baseline", "b.json")
    assert done.returncode == 1 and "the baseline does not have it" in done.stdout
    before = path.read_bytes()
    done = gate("", "--baseline", "b.json", "--update")
    assert done.returncode == 1 and "--force accepts that" in done.stderr and path.read_bytes() == before
    assert gate("", "--baseline", "b.json", "--update", "--force").returncode == 0
    assert json.loads(path.read_text()) == kept

    # Better than the baseline: passes and says so, an update keeps it.
    def worse_before(document):
        document["losses"].append({"fingerprint": "0" * 16, "rule": "reason/dropped", "direction": "", "field": "origins", "site": "pass gone", "share": 0.5})
        for row in document["coverage"]:
            row["ratio"] = min(row["ratio"], 0.5)

    with_change(worse_before)
    done = gate("", "--baseline", "b.json")
    assert done.returncode == 0 and "Better than the baseline (--update keeps it so):" in done.stdout and "pass gone" in done.stdout
    assert gate("", "--baseline", "b.json", "--update").returncode == 0
    assert json.loads(path.read_text()) == kept
    assert "Better" not in gate("", "--baseline", "b.json").stdout


def test_a_torn_baseline_is_refused(gate, tmp_path):
    gate(DROPS, "--baseline", "b.json", "--update")
    text = (tmp_path / "b.json").read_text()
    (tmp_path / "b.json").write_text(text[: len(text) // 2])
    assert gate(DROPS, "--baseline", "b.json").returncode == 3
    (tmp_path / "b.json").write_text("")
    assert gate(DROPS, "--baseline", "b.json").returncode == 3
    assert gate(DROPS, "--baseline", "b.json", "--update").returncode == 3, "not taken for a first one"


def test_allow_entries_expire(gate):
    entry = '[[allow]]\nrule = "dropped"\nreason = "reported"\nowner = "jo"\nexpires = 2026-12-01\n'
    done = gate(DROPS + entry)
    assert done.returncode == 0 and "allowed by jo until 2026-12-01: reported" in done.stdout
    done = gate(DROPS + entry, "--today", "2026-12-02")
    assert done.returncode == 1 and "it was allowed by jo until 2026-12-01: expired" in done.stdout


def test_the_day_may_come_from_the_environment(run_kerntrail, tmp_path):
    (tmp_path / "kerntrail.toml").write_text(DROPS + '[[allow]]\nrule = "dropped"\nreason = "r"\nowner = "jo"\nexpires = 2001-01-01\n')
    old = {**os.environ, "SOURCE_DATE_EPOCH": "946684800"}  # 2000-01-01
    assert run_kerntrail("gate", LOSSY, env=old).returncode == 0
    assert run_kerntrail("gate", LOSSY).returncode == 1


def test_claims_against_the_witness(gate):
    assert gate(VERIFIED.format(0.5), capture=WITNESSED).returncode == 0
    done = gate(VERIFIED.format(0.9), capture=WITNESSED)
    assert done.returncode == 1 and "precision of lines of kernel (origins, loop): 62.5 %, asked for 90.0 %" in done.stdout
    done = gate(VERIFIED.format(0.9) + 'classes = "loop"\nevidence = "mapping"\nof = "nodes"\n', capture=WITNESSED)
    assert done.stdout.count("gate/precision") == 1 and "nodes of kernel (mapping, loop)" in done.stdout
    allowed = VERIFIED.format(0.9) + '[[allow]]\nrule = "precision"\nreason = "r"\nowner = "o"\nexpires = 2099-01-01\n'
    assert gate(allowed, capture=WITNESSED).returncode == 0


# ---- outputs ----

EVERYTHING = (
    '[[coverage]]\nstages = "*"\nfields = "*"\nmin = 1.0\n'
    '[[drops]]\nclasses = ["dropped", "orphan", "overwritten", "collapsed", "compiler_made", "never_made", "a", "b", "e"]\n'
    '[[allow]]\npass = "pass_pattern_*"\nreason = "reported"\nowner = "jo"\nexpires = 2026-12-05\n'
    '[[allow]]\npass = "nothing"\nreason = "idle"\nowner = "jo"\nexpires = 2027-12-05\n'
)


def outputs(gate, tmp_path, config, *arguments, capture=LOSSY):
    """All forms of one run, parsed and held against their standards."""
    done = gate(config, "--json", "g.json", "--sarif", "g.sarif", "--junit", "g.xml", "--md", "g.md", "--format", "github", *arguments, capture=capture)
    assert done.returncode in (0, 1), done.stderr
    document = json.loads((tmp_path / "g.json").read_text(encoding="utf-8"))
    fits(GATE, document)
    sarif = json.loads((tmp_path / "g.sarif").read_text(encoding="utf-8"))
    fits(SARIF, sarif)
    junit = ElementTree.fromstring((tmp_path / "g.xml").read_bytes())
    markdown = (tmp_path / "g.md").read_text(encoding="utf-8")
    assert len(markdown) <= 65_536
    assert document["passed"] == (done.returncode == 0)
    assert (int(junit.get("failures")) == 0) == document["passed"]
    cases = junit.findall("testsuite/testcase")
    assert len(cases) == int(junit.get("tests")) == len(document["checks"]) + sum(f["outcome"] == "allowed" for f in document["findings"])
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
    (run,) = sarif["runs"]
    assert len(run["results"]) == len(document["findings"])
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for location in [*result["locations"], *result.get("relatedLocations", [])]:
            assert not location["physicalLocation"]["artifactLocation"]["uri"].startswith(("/", "file:"))
    for line in done.stdout.splitlines():
        assert re.match(r"::(error|warning|notice) file=[^,:]+,line=[1-9]\d*,title=[^,:]+::|gate (passed|failed): ", line), line
    return document, run, junit, markdown, done.stdout


def test_every_output_says_the_same(gate, tmp_path):
    document, run, junit, markdown, github = outputs(gate, tmp_path, EVERYTHING)
    failed = [f for f in document["findings"] if f["outcome"] == "failed"]
    assert len(failed) > 10
    assert sum(r["level"] == "error" for r in run["results"]) == len(failed)
    assert "more are not shown, as a step shows 10" in github and github.count("::error ") == 10
    allowed = [r for r in run["results"] if r["suppressions"]]
    assert allowed and allowed[0]["suppressions"][0]["justification"] == "reported (jo, until 2026-12-05)"
    assert junit.findall("testsuite[@name='allowed']/testcase/skipped")
    assert "covers nothing" in markdown and "ends on 2026-12-05" in markdown


def test_contradicted_claims_in_every_output(gate, tmp_path):
    document, *_ = outputs(gate, tmp_path, VERIFIED.format(0.99) + "min_recall = 0.99\n", capture=WITNESSED)
    assert {f["rule"] for f in document["findings"]} == {"gate/precision", "gate/recall"}
    assert all(f["units"] for f in document["findings"])


def test_sarif_flows_from_the_line_through_the_stages(gate, tmp_path):
    _, run, *_ = outputs(gate, tmp_path, DROPS)
    (loss,) = [r for r in run["results"] if r["properties"].get("pass") == "pass_pattern_0" and r["properties"]["field"] == "stack_trace"]
    steps = [step["location"]["message"]["text"] for step in loss["codeFlows"][0]["threadFlows"][0]["locations"]]
    assert [text for text in steps if "has stack_trace" in text] and "lost in pass pass_pattern_0" in steps
    assert steps.index("lost in pass pass_pattern_0") < steps.index("FX Graph (post-grad): sdpa is without stack_trace")
    assert loss["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "model.py"
    (place,) = [r for r in loss["relatedLocations"] if r["message"]["text"].startswith("the compiler's")]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "torch/_inductor/fx_passes/fuse_attention.py"


def test_baseline_states_and_stable_fingerprints(gate, tmp_path):
    gate(DROPS, "--baseline", "b.json", "--update")
    _, first, *_ = outputs(gate, tmp_path, DROPS, "--baseline", "b.json")
    assert {r["baselineState"] for r in first["results"]} == {"unchanged"}
    document = json.loads((tmp_path / "b.json").read_text())
    gone = document["losses"].pop(0)
    (tmp_path / "b.json").write_text(json.dumps(document))
    _, second, *_ = outputs(gate, tmp_path, DROPS, "--baseline", "b.json")
    (new,) = [r for r in second["results"] if r["baselineState"] == "new"]
    assert new["partialFingerprints"]["kerntrail/v1"] == gone["fingerprint"]
    prints = [{r["partialFingerprints"]["kerntrail/v1"] for r in run["results"]} for run in (first, second)]
    assert prints[0] == prints[1]


def test_hostile_names_in_every_output(gate, tmp_path):
    for names in (NAMES[:8], NAMES[8:]):
        listed = "[" + ", ".join(map(toml_text, names)) + "]"
        config = (
            f"[[coverage]]\nstages = {listed}\nfields = {listed}\nmin = 1.0\n"
            f'[[coverage]]\nstages = "fx_aten"\nfields = {listed}\nmin = 1.0\n'
            f'[[drops]]\nclasses = "dropped"\nfields = {listed}\n[hooks]\nrequired = {listed}\n'
        ) + "".join(f"[[allow]]\nunit = {toml_text(n)}\nreason = {toml_text(n)}\nowner = {toml_text(n)}\nexpires = 2026-01-01\n" for n in names)
        document, *_ = outputs(gate, tmp_path, config)
        assert sum(f["rule"] == "gate/missing-stage" for f in document["findings"]) == len(names)


@pytest.mark.parametrize("capture", [HOSTILE, *sorted((ROOT / "tests" / "golden").glob("*/capture.ndjson"))], ids=lambda path: path.parent.name)
def test_every_capture_gives_sound_outputs(gate, tmp_path, capture):
    outputs(gate, tmp_path, EVERYTHING, capture=capture)


def test_the_same_input_gives_the_same_bytes(gate):
    for format in ("text", "json", "md", "sarif", "junit", "github"):
        assert gate(EVERYTHING, "--format", format).stdout == gate(EVERYTHING, "--format", format).stdout


def test_damaged_documents_do_not_fit(gate, tmp_path):
    document, *_ = outputs(gate, tmp_path, EVERYTHING)
    for key in ("checks", "findings"):
        extra = copy.deepcopy(document)
        extra[key][0]["surprise"] = 1
        assert not GATE.is_valid(extra)
        del extra[key]
        assert not GATE.is_valid(extra)


def test_files_are_named_from_the_root(gate, tmp_path):
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "k.toml").write_text(VERIFIED.format(0))
    done = gate(DROPS, "--config", tmp_path / "ci" / "k.toml", "--format", "github")
    assert done.stdout.startswith("::error file=ci/k.toml,line=1,")
    done = gate(DROPS, "--config", tmp_path / "ci" / "k.toml", "--format", "github", "--root", tmp_path / "ci")
    assert done.stdout.startswith("::error file=k.toml,line=1,")


# ---- the documentation ----


def blocks(language):
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_document_work(run_kerntrail, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "kerntrail.toml").write_text(blocks("toml")[0], encoding="utf-8")
    (tmp_path / "train.py").write_text(
        "import torch\n\n\ndef model(x, w):\n    return torch.relu(x @ w).sum()\n\n\n"
        "w = torch.randn(8, 8, requires_grad=True)\ntorch.compile(model)(torch.randn(8, 8), w).backward()\n"
    )
    (workflow,) = blocks("yaml")
    commands = [line for line in blocks("sh")[0].splitlines() if line]
    commands += re.findall(r"run: (kerntrail .*)", workflow)
    assert len(commands) == 6
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "kerntrail"
        done = run_kerntrail(*words[1:])
        assert done.returncode == 0, command + "\n" + done.stdout + done.stderr
    for name in ("gate.md", "gate.xml", "gate.sarif", "gate.json", "kerntrail-baseline.json"):
        assert (tmp_path / name).stat().st_size > 0


def test_the_document_knows_every_section_and_word(run_kerntrail):
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    source = (ROOT / "src" / "cli" / "gate_config.cpp").read_text(encoding="utf-8")
    for known in re.findall(r"kKnown\{([^}]*)\}", source):
        for word in re.findall(r'"(\w+)"', known):
            assert re.search(rf"\b{word}\b", text), word
    rules = json.loads(run_kerntrail("rules", "--format", "json").stdout)["rules"]
    assert {rule["id"] for rule in rules if rule["axis"] == "gate"} >= set(re.findall(r'gate_finding\("([a-z-]+)"', "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "src" / "analyse").glob("gate*.cpp"))))
