"""OpSpecs on their way from object to text, to object again, and to file: a loss planted at each seam is named."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch._inductor.config as inductor  # noqa: E402
from spyre_models import SPYRE_MODELS  # noqa: E402

from kerntrail import _native  # noqa: E402
from kerntrail._capture import open_capture  # noqa: E402
from kerntrail.spyre import async_compile, scheduling, spyre_kernel  # noqa: E402
from kerntrail.spyre.op_spec import OpSpec  # noqa: E402

MODELS = {model.name: model for model in SPYRE_MODELS}


@pytest.fixture(autouse=True)
def fresh_torch(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
    torch._dynamo.reset()
    with inductor.patch({"force_disable_caches": True}):
        yield
    torch._dynamo.reset()


@pytest.fixture
def followed(tmp_path, run_kerntrail):
    """Compiles under a capture; what `kerntrail drops` says of the OpSpecs' way: (JSON, Markdown)."""

    def run(name: str = "mlp_full", level: str = "passes", **options: Any) -> tuple[dict[str, Any], str]:
        function, inputs = MODELS[name].build()
        capture = open_capture(tmp_path / "c.ndjson", level=level)
        try:
            with torch.no_grad():
                torch.compile(function, backend="kerntrail_spyre", options={**MODELS[name].options, **options})(*inputs)
        finally:
            capture.close()
        assert not [hook for hook in capture.hooks if hook["errors"]]
        assert run_kerntrail("validate", tmp_path / "c.ndjson").returncode == 0
        told = run_kerntrail("drops", tmp_path / "c.ndjson", "--format", "json")
        assert told.returncode == 0, told.stderr
        (trip,) = json.loads(told.stdout)["round_trips"]
        schema = json.loads((Path(__file__).parents[2] / "schemas" / "drops.schema.json").read_text(encoding="utf-8"))
        pytest.importorskip("jsonschema").validate(json.loads(told.stdout), schema)
        return trip, run_kerntrail("drops", tmp_path / "c.ndjson").stdout

    return run


@pytest.mark.parametrize("name", sorted(MODELS))
def test_nothing_is_lost(name, followed):
    trip, text = followed(name, generation="july-transform")
    assert trip["losses"] == [] and trip["breaks"] == []
    assert trip["op_specs"] == trip["printed"] == trip["reread"] == trip["written"] > 0
    assert "Nothing is lost or changed." in text


def damaged(function: Callable[..., Any], damage: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: damage(function(*args, **kwargs))


def edit_text(edit: Callable[[dict[str, Any]], None]) -> Callable[[str], str]:
    """Of the second OpSpec in a kernel's text."""

    def damage(text: str) -> str:
        specs = json.loads(text)
        edit(specs[1])
        return json.dumps(specs)

    return damage


def found(trip: dict[str, Any]) -> list[tuple[Any, ...]]:
    assert trip["breaks"] == []
    return [(loss["seam"], loss["field"], loss["changed"], loss["name"]) for loss in trip["losses"]]


@pytest.mark.parametrize("level", ["borders", "passes"])
def test_a_field_that_is_not_printed(level, followed, monkeypatch):
    forget = edit_text(lambda spec: spec["debug_handle"].update(source=None))
    monkeypatch.setattr(spyre_kernel.SpyreKernel, "codegen_kernel", damaged(spyre_kernel.SpyreKernel.codegen_kernel, forget))
    trip, text = followed(level=level)
    assert found(trip) == [("printing", "debug_handle.source", False, "op1")]
    assert "printing: object to text" in text and "debug_handle.source" in text
    if level == "passes":  # the line that hands the text to the wrapper
        assert "torch/_inductor/" in trip["losses"][0]["place"]


def test_a_handle_that_is_printed_for_another_operation(followed, monkeypatch):
    def exchange(text: str) -> str:
        specs = json.loads(text)
        specs[0]["debug_handle"], specs[1]["debug_handle"] = specs[1]["debug_handle"], specs[0]["debug_handle"]
        return json.dumps(specs)

    monkeypatch.setattr(spyre_kernel.SpyreKernel, "codegen_kernel", damaged(spyre_kernel.SpyreKernel.codegen_kernel, exchange))
    trip, _ = followed()
    assert {(seam, unit) for seam, _, _, unit in found(trip)} == {("printing", "op0"), ("printing", "op1")}
    assert ("printing", "debug_handle.id", True, "op0") in found(trip)


def without_handle(specs: Any) -> list[OpSpec]:
    read = [specs[i] for i in range(len(specs))]
    read[2].debug_handle = None
    return read


def test_a_field_that_is_not_read(followed, monkeypatch):
    monkeypatch.setattr(async_compile, "read_op_specs", damaged(async_compile.read_op_specs, without_handle))
    trip, _ = followed()
    assert found(trip) == [("reading", "debug_handle", False, "op2")]
    assert trip["losses"][0]["place"].startswith("kerntrail/spyre/async_compile.py:") and "sdsc" in trip["losses"][0]["place"]


def test_without_the_objects_two_seams_are_one(followed, monkeypatch):
    monkeypatch.setattr(async_compile, "read_op_specs", damaged(async_compile.read_op_specs, without_handle))
    trip, text = followed(level="borders")
    assert found(trip) == [("after_printing", "debug_handle", False, "op2")] and trip["reread"] == 0
    assert "not recorded" in text


def test_a_field_that_is_not_written(followed, monkeypatch):
    def build(specs: Any, directory: str) -> Any:
        kernel = original(specs, directory)
        path = Path(directory) / "sdsc_0.json"
        body = json.loads(path.read_text(encoding="utf-8"))
        next(iter(body.values()))["debug_handle_"]["aten_op"] = None
        path.write_text(json.dumps(body, indent=2), encoding="utf-8")
        return kernel

    original = _native.spyre.build_kernel
    monkeypatch.setattr(_native.spyre, "build_kernel", build)
    trip, _ = followed()
    assert found(trip) == [("writing", "debug_handle.aten_op", False, "op0")]
    assert trip["losses"][0]["file"] == "sdsc_0.json" and "async_compile.py" in trip["losses"][0]["place"]


def test_another_back_ends_constructor_calls(followed, monkeypatch):
    """A wrapper that embeds objects by their repr(), and forgets one field of one of them."""

    def as_calls(text: str) -> str:
        specs = [dataclasses.replace(spec, args=[]) for spec in _native.spyre.parse_op_specs(text)]
        return repr(specs).replace("aten_op='aten.relu.default'", "aten_op=None")

    texts: list[str] = []
    codegen = spyre_kernel.SpyreKernel.codegen_kernel

    def keep(kernel: Any) -> str:
        texts.append(codegen(kernel))
        return texts[-1]

    def define(self: Any, source: str, nodes: Any, kernel: Any) -> str:
        from torch._inductor.virtualized import V

        V.graph.wrapper_code.define_kernel("calls_0", f"async_compile.sdsc('calls_0', {as_calls(source)})", "", gpu=False)
        return "calls_0"

    def sdsc(self: Any, kernel_name: str, op_specs: Any) -> Any:
        directory = async_compile.get_output_dir(kernel_name)
        specs = without_handle(_native.spyre.parse_op_specs(texts[-1]))
        return async_compile.SpyreSDSCKernelRunner(kernel_name, _native.spyre.build_kernel(specs, directory), directory)

    monkeypatch.setattr(spyre_kernel.SpyreKernel, "codegen_kernel", keep)
    monkeypatch.setattr(scheduling.SuperDSCScheduling, "define_kernel", define)
    monkeypatch.setattr(async_compile.SpyreAsyncCompile, "sdsc", sdsc)
    monkeypatch.setattr("kerntrail.spyre.wrapper.SpyrePythonWrapperCodegen.write_header", calls_header)
    trip, _ = followed()
    assert found(trip) == [("printing", "debug_handle.aten_op", False, "op2"), ("writing", "debug_handle", False, "op2")]
    assert trip["reread"] == 3 + 2


def calls_header(self: Any) -> None:
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    PythonWrapperCodegen.write_header(self)
    self.header.splice(
        """
        from kerntrail.spyre.async_compile import SpyreAsyncCompile, spyre_constant_tensor
        from kerntrail.spyre.op_spec import DebugHandle, OpSpec, SourceLoc
        async_compile = SpyreAsyncCompile()
        """,
        strip=True,
    )
