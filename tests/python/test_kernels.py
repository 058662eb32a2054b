"""Stages `schedule` and `kernel` on stock torch, device cpu: what each kernel is, which lines call it, what became of
each operation, and which calls torch's own provenance does not know."""

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
from capture_view import CaptureView  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor.utils import run_and_get_code  # noqa: E402

import kerntrail  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_torch():
    torch._dynamo.reset()
    with inductor.patch(force_disable_caches=True):
        yield
    torch._dynamo.reset()


def captured(path, model, *inputs, level=0, grad=False, **config) -> tuple[CaptureView, list[str]]:
    """The capture of one compile, and the wrappers that torch generated while it was open."""

    def call():
        with torch.set_grad_enabled(grad):
            result = torch.compile(model)(*inputs)
            if grad:
                result.sum().backward()

    with inductor.patch({"trace.provenance_tracking_level": level, **config}), kerntrail.capture(path):
        _, codes = run_and_get_code(call)
    return CaptureView(path), codes


def calls_of(kernels) -> list[tuple[dict, dict]]:
    """(call, kernel) in program order."""
    return sorted(((call, row) for row in kernels for call in row["calls"]), key=lambda entry: entry[0]["order"])


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.b = nn.Linear(16, 4)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


class Many(nn.Module):
    """Extern, fallback and loop kernels, sub-graphs, and a fallback that torch does not register."""

    def forward(self, x):
        square = x.mm(x.t()) * 2
        branch = torch.cond(x.sum() > 0, lambda t: t.sin().mm(t), lambda t: t.cos().mm(t), (square,))
        values, _ = torch.sort(x, dim=-1, stable=True)
        scattered = torch.zeros(3, 8).scatter_reduce(0, (x.abs() > 0).long(), x, "prod")
        return branch, values, scattered


def check_calls(kernels, code: str) -> None:
    lines = code.splitlines()
    calls = calls_of(kernels)
    assert [call["order"] for call, _ in calls] == list(range(len(calls)))
    for call, kernel in calls:
        assert lines[call["line"] - 1].strip() == call["text"]
        assert kernel["name"] + "(" in call["text"]


def test_kernels_of_inference(tmp_path):
    view, (code,) = captured(tmp_path / "c.ndjson", Mlp().eval(), torch.randn(3, 8))
    kernels = view.at("kernel")
    assert [(row["class"], row["name"]) for row in kernels] == [
        ("extern", "extern_kernels.addmm"), ("loop", "cpp_fused_relu_0"), ("extern", "extern_kernels.addmm")]
    check_calls(kernels, code)
    loop = kernels[1]
    assert loop["source"].startswith("async_compile.cpp_pybinding(") and "kernel(float* in_out_ptr0)" in loop["source"]
    assert loop["seen"] == {"defined": 1, "called": 1, "registered": 1}
    assert "comment" not in loop["states"]  # torch prints none for C++
    assert kernels[0]["comment"].endswith("Original ATen: [aten.t, aten.addmm]")
    assert kernels[0]["seen"] == {"defined": 0, "called": 1, "registered": 1}
    assert {row["states"]["handles"] for row in kernels} == {"empty"}  # registered, but not numbered at level 0
    assert {row["ir_classes"][0] for row in kernels} == {"ExternKernelOut", "ComputedBuffer"}
    calls = [link for link in view.of("link") if link["kind"] == "call_kernel"]
    assert [link["from"][0] for link in calls] == [row["unit"] for row in kernels]
    assert all("call" in view.units[link["to"][0]]["seen_only_as"] for link in calls)
    assert not view.notes("seen-only"), "calls are in no snapshot by definition"


def test_handles_are_torchs_own_and_its_mapping_is_a_claim_of_its_own(tmp_path):
    view, (code,) = captured(tmp_path / "c.ndjson", Mlp().eval(), torch.randn(3, 8), level=1)
    kernels = view.at("kernel")
    check_calls(kernels, code)
    for call, kernel in calls_of(kernels):
        assert kernel["handles"] == [call["handle"]]
        assert f"[Provenance debug handles] {call['handle']}\n" in code
        assert any("self.b(torch.relu(self.a(x)))" in stack for stack in kernel["stacks"])
    claims = {(claim["kernel"], claim["evidence"]): set(claim["units"]) for claim in view.of("claim")}
    for row in kernels:
        assert claims[row["unit"], "mapping"] <= claims[row["unit"], "origins"]
    names = {row["unit"]: row["name"] for row in view.at("fx_post_grad")}
    # Of an extern kernel torch maps only the node that its IR node stands for.
    assert {names[unit] for unit in claims[kernels[2]["unit"], "mapping"]} == {"addmm_1"}
    assert {"relu", "addmm_1"} <= {names.get(unit) for unit in claims[kernels[2]["unit"], "origins"]}


def test_training_keeps_forward_and_backward_apart(tmp_path):
    view, codes = captured(tmp_path / "c.ndjson", Mlp(), torch.randn(3, 8), grad=True)
    forward, backward = view.at("kernel", direction="forward"), view.at("kernel", direction="backward")
    check_calls(forward, codes[0])
    check_calls(backward, codes[1])
    shared = {row["name"] for row in forward} & {row["name"] for row in backward}
    assert all(row["seen"]["called"] == len(row["calls"]) for row in forward + backward)
    assert not {row["unit"] for row in forward} & {row["unit"] for row in backward}
    assert shared or backward
    assert view.at("schedule", direction="forward") and view.at("schedule", direction="backward")


def test_every_class_of_kernel_and_what_torch_does_not_register(tmp_path, run_kerntrail):
    path = tmp_path / "c.ndjson"
    view, (code,) = captured(path, Many().eval(), torch.randn(3, 8), level=1)
    kernels = view.at("kernel")
    check_calls(kernels, code)
    classes = {row["name"]: row["class"] for row in kernels}
    assert classes["extern_kernels.mm"] == "extern" and classes["torch.ops.aten.sort.stable"] == "fallback"
    products = [row for row in kernels if row["name"] == "extern_kernels.mm"]
    functions = {row["calls"][0]["function"] for row in products}
    assert len(products) == 3 and len(functions) == 3  # one name, three kernels: the root's and one of each branch
    for row in products:
        (claim,) = [c for c in view.of("claim") if c["kernel"] == row["unit"] and c["evidence"] == "origins"]
        assert claim["units"]
    (scatter,) = [row for row in kernels if row["name"].startswith("aten.scatter_reduce")]
    assert scatter["class"] == "fallback" and scatter["ir_classes"] == ["ScatterFallback"]
    assert scatter["seen"] == {"defined": 0, "called": 1, "registered": 0}
    assert "handles" not in scatter["states"]
    assert not [claim for claim in view.of("claim") if claim["kernel"] == scatter["unit"]]
    made_of = [link for link in view.of("link") if link["kind"] == "define_kernel" and scatter["unit"] in link["to"]]
    assert len(made_of) == 1  # its operation is known all the same
    (note,) = view.notes("kernel-not-registered")
    assert scatter["name"] in note["text"] and note["severity"] == "warning"
    info = run_kerntrail("info", path)
    assert "kernel-not-registered" in info.stdout and "kernels" in info.stdout
    assert "3 extern, 2 fallback" in info.stdout
    report = run_kerntrail("report", path, "--stages", "ir_pre_pass,schedule,kernel")
    assert report.returncode == 0, report.stderr
    assert "kernel-not-registered" in report.stdout and "| Group | class |" in report.stdout


def test_a_kernel_that_nothing_calls_is_a_finding(tmp_path, monkeypatch):
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen

    original = PythonWrapperCodegen.generate_kernel_call

    def forgetful(self, kernel_name, *args, **options):
        original(self, kernel_name, *args, **options)
        self.lines.pop()

    monkeypatch.setattr(PythonWrapperCodegen, "generate_kernel_call", forgetful)
    view, _ = captured(tmp_path / "c.ndjson", Mlp().eval(), torch.randn(3, 8))
    (note,) = view.notes("kernel-not-called")
    assert "cpp_fused_relu_0" in note["text"]
    (loop,) = [row for row in view.at("kernel") if row["class"] == "loop"]
    assert loop["seen"] == {"defined": 1, "called": 0, "registered": 1} and loop["states"]["calls"] == "empty"


def test_schedule_says_what_became_of_each_operation(tmp_path):
    class Normal(nn.Module):
        def forward(self, x):
            y = torch.softmax(x * 2.0, -1)
            values, _ = torch.sort(y, dim=-1, stable=True)
            return torch.cat([values, y], -1)

    view, _ = captured(tmp_path / "c.ndjson", Normal().eval(), torch.randn(4, 8))
    groups = view.at("schedule")
    operations = {row["unit"]: row["name"] for row in view.at("ir_pre_pass")}
    outcomes = {o["operation"]: o for group in groups for o in group["outcomes"]}
    assert set(outcomes) <= set(operations.values())
    for group in groups:
        assert [operations[unit] for unit in group["operations"]] == [o["operation"] for o in group["outcomes"]]
        fused = {o["outcome"] for o in group["outcomes"]}
        if len(group["operations"]) > 1:
            assert fused == {"fused"} and group["group_class"].endswith("FusedSchedulerNode")
        else:
            assert fused <= {"alone", "nop"}
            assert (fused == {"nop"}) == (group["group_class"] == "NopKernelSchedulerNode")
    assert {"fused", "alone", "nop"} == {o["outcome"] for o in outcomes.values()}
    dead = set(operations.values()) - set(outcomes)  # the indices of sort: nothing reads them
    (note,) = view.notes("operation-not-scheduled")
    assert note["text"].endswith(", ".join(sorted(dead))) and dead
    fuse = {tuple(link["from"]): link["to"] for link in view.of("link") if link["kind"] == "fuse"}
    assert fuse == {tuple(group["operations"]): [group["unit"]] for group in groups}
    emitted = [link for link in view.of("link") if link["kind"] == "emit_kernel"]
    kernels = {row["unit"]: row for row in view.at("kernel")}
    assert {link["to"][0] for link in emitted} == set(kernels)


def test_a_fused_buffer_that_needs_no_memory_is_removed(tmp_path):
    class Softmax(nn.Module):
        def forward(self, x):
            return torch.softmax(x * 2.0, -1)

    view, (code,) = captured(tmp_path / "c.ndjson", Softmax().eval(), torch.randn(4, 8))
    outcomes = [outcome for group in view.at("schedule") for outcome in group["outcomes"]]
    removed = {buffer for outcome in outcomes if outcome["removed"] for buffer in outcome["buffers"]}
    allocated = {line.split(" = ")[0].strip() for line in code.splitlines() if " = empty_strided" in line}
    assert removed and allocated and not removed & allocated


def test_a_compiled_optimizer(tmp_path):
    parameters = [nn.Parameter(torch.randn(5, 5)) for _ in range(3)]
    for parameter in parameters:
        parameter.grad = torch.randn(5, 5)
    step = torch.optim.Adam(parameters).step
    view, (code,) = captured(tmp_path / "c.ndjson", step)
    (kernel,) = view.at("kernel")
    check_calls([kernel], code)
    assert kernel["class"] == "loop" and len(kernel["calls"][0]["operations"]) > 3
    groups = view.at("schedule")
    assert len(groups) > 1  # one C++ kernel holds several loop nests
    (link,) = [link for link in view.of("link") if link["kind"] == "emit_kernel"]
    assert link["from"] == [group["unit"] for group in groups] and link["to"] == [kernel["unit"]]


def test_a_template_kernel_is_known_as_one(tmp_path):
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU()).eval()
    config = {"freezing": True, "max_autotune": True, "max_autotune_gemm_backends": "CPP"}
    view, (code,) = captured(tmp_path / "c.ndjson", model, torch.randn(16, 32), **config)
    (kernel,) = view.at("kernel")
    check_calls([kernel], code)
    assert kernel["class"] == "template" and "CppTemplateBuffer" in kernel["ir_classes"]
    assert kernel["calls"][0]["operations"] == ["op0", "op1"]  # the relu is its epilogue


def test_cpp_wrapper_is_read_too(tmp_path):
    view, (code,) = captured(tmp_path / "c.ndjson", Mlp().eval(), torch.randn(3, 8), cpp_wrapper=True)
    kernels = view.at("kernel")
    check_calls(kernels, code)
    assert [row["name"] for row in kernels] == ["aoti_torch_cpu_addmm_out", "cpp_fused_relu_0", "aoti_torch_cpu_addmm_out"]
    assert not view.notes("kernel-not-registered") and not view.notes("kernel-not-called")


def test_the_capture_is_the_same_twice(tmp_path):
    texts = []
    for name in ("a.ndjson", "b.ndjson"):
        torch._dynamo.reset()
        torch.manual_seed(0)
        captured(tmp_path / name, Many().eval(), torch.randn(3, 8))
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
