"""Scenarios in which torch-spyre tests its own provenance, on the plugin's fixture: what a team of a back end would write."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

SPYRE = {"backend": "kerntrail_spyre"}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(128, 256)
        self.fc2 = nn.Linear(256, 128)

    def forward(self, x):
        x = self.fc1(x)
        x = torch.relu(x)
        return self.fc2(x)


class RichMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(128)
        self.fc1 = nn.Linear(128, 256)
        self.fc2 = nn.Linear(256, 128)

    def forward(self, x):
        x = self.norm(x)
        x = self.fc1(x)
        x = F.gelu(x)
        return self.fc2(x)


def half(module):
    torch.manual_seed(0)
    return module.half().eval(), torch.randn(2, 128, dtype=torch.float16)


def shares(compiled, stage, *fields):
    return {field: (compiled.matrix()[stage][field].covered, compiled.matrix()[stage][field].units) for field in fields}


def test_the_mlp_keeps_everything_down_to_the_files(kerntrail):
    compiled = kerntrail.compile(*half(Mlp()), **SPYRE)
    compiled.assert_coverage({
        "fx_pre_grad": {"stack_trace": 1.0, "source_fn_stack": 1.0},
        "fx_post_grad": {"stack_trace": 1.0, "original_aten": 1.0, "from_node": 1.0},
        "ir_pre_pass": {"origins": 1.0, "origin_node": 1.0, "get_stack_traces": 1.0},
        "ir_post_pass": {"origins": 1.0},
        "op_spec": {"debug_handle": 1.0},
        "superdsc": {"debug_handle": 1.0},
    })
    # An OpSpec has no slot for these; its handle names lines and operators.
    compiled.assert_no_drops(allow=[f"between schedule and op_spec:{field}" for field in ("nn_module_stack", "source_fn_stack", "from_node")])
    compiled.assert_no_drops(stage="fx_post_grad")


def test_the_rule_of_the_reference_loses_lines_and_says_where(kerntrail):
    """The seed: 3 of 7 nodes keep their stack trace behind post-grad."""
    compiled = kerntrail.compile(*half(Mlp()), options={"metadata": "seed"}, **SPYRE)
    assert shares(compiled, "fx_post_grad", "stack_trace", "nn_module_stack", "original_aten") == {
        "stack_trace": (3, 7), "nn_module_stack": (2, 7), "original_aten": (7, 7)}
    with pytest.raises(AssertionError, match=r"stack_trace: 3 of 7 units \(0.43\), wanted 1") as failed:
        compiled.assert_coverage({"fx_post_grad": {"stack_trace": 1.0}})
    assert "mm_default" in str(failed.value) and "kerntrail/spyre/passes.py:" in str(failed.value)
    with pytest.raises(AssertionError, match="provenance was lost"):
        compiled.assert_no_drops(fields=["stack_trace"])
    guilty = {drop.place for drop in compiled.drops()}
    compiled.assert_no_drops(allow=sorted(guilty))
    with pytest.raises(AssertionError):
        compiled.assert_no_drops(allow=[f"{place}:from_node" for place in guilty])


@pytest.mark.parametrize("options", [SPYRE, {}])
def test_the_richer_mlp(kerntrail, options):
    """Layer norm and gelu: decomposed, fused, and every kernel or file still leads to this file."""
    compiled = kerntrail.compile(*half(RichMlp()), level="truth", **options)
    compiled.assert_coverage({"fx_post_grad": {"stack_trace": 1.0}, "kernel": {"stack_trace": 1.0}})
    compiled.assert_no_drops()
    lines = {line for kernel in set(compiled.kernels) for line in compiled.lines_of(kernel)}
    assert {line.code for line in lines} >= {"x = self.norm(x)", "x = self.fc1(x)", "x = F.gelu(x)", "return self.fc2(x)"}
    assert all(line.file.endswith("test_scenarios.py") for line in lines)


def test_a_fused_kernel_has_several_lines(kerntrail):
    def chain(x):
        x = torch.sin(x)
        x = x + 1
        return torch.relu(x)

    compiled = kerntrail.compile(chain, torch.randn(8, 8), level="truth")
    (kernel,) = compiled.kernels
    assert [line.code for line in compiled.lines_of(kernel)] == ["x = torch.sin(x)", "x = x + 1", "return torch.relu(x)"]
    compiled.assert_true()
    assert "chain" not in compiled.kernels[0] and "x = torch.sin(x)" in compiled.explain(kernel)


def test_a_claim_that_is_not_true(kerntrail):
    """torch says of the second matrix product that it comes from the relu before it; the witness does not."""
    compiled = kerntrail.compile(Mlp().eval(), torch.randn(2, 128), level="truth")
    with pytest.raises(AssertionError, match="precision 3 of 4 lines, wanted 1") as failed:
        compiled.assert_true()
    assert "extern_kernels.addmm does not compute" in str(failed.value) and "x = torch.relu(x)" in str(failed.value)
    compiled.assert_true(precision=0.75, recall=1.0)


def test_claims_need_the_witness(kerntrail):
    compiled = kerntrail.compile(lambda x: x + 1, torch.randn(4))
    with pytest.raises(ValueError, match='needs level="truth"'):
        compiled.assert_true()


def test_a_graph_break_makes_two_compiles(kerntrail):
    def broken(x):
        x = torch.sin(x)
        torch._dynamo.graph_break()
        return torch.cos(x)

    compiled = kerntrail.compile(broken, torch.randn(8))
    assert compiled.compiles == ["c0", "c1"]
    compiled.assert_coverage({"fx_post_grad": {"stack_trace": 1.0}, "kernel": {"stack_trace": 1.0}})
    assert {line.code for kernel in compiled.kernels for line in compiled.lines_of(kernel)} == {
        "x = torch.sin(x)", "return torch.cos(x)"}


def test_another_shape_compiles_again(kerntrail):
    function = torch.compile(lambda x: torch.sin(x) * 2, dynamic=False)
    with kerntrail.capture() as compiled:
        function(torch.randn(4))
        function(torch.randn(8))
        function(torch.randn(8))
    assert compiled.compiles == ["c0", "c1"]
    compiled.assert_coverage("stack_trace", stage="kernel")


def test_the_backward_is_there_where_it_is_asked_for(kerntrail):
    model, x = nn.Linear(8, 4), torch.randn(2, 8)
    forward = kerntrail.compile(model, x)
    both = kerntrail.compile(model, x, backward=True)
    assert model.weight.grad is not None and both.output.requires_grad and not forward.output.requires_grad
    assert both.matrix()["fx_post_grad"]["stack_trace"].units > forward.matrix()["fx_post_grad"]["stack_trace"].units
    assert both.capture != forward.capture


def test_what_was_not_observed_fails(kerntrail):
    eager = kerntrail.compile(lambda x: x + 1, torch.randn(4), backend="eager")
    with pytest.raises(BaseException, match="nothing was observed"):
        eager.assert_no_drops()
    compiled = kerntrail.compile(lambda x: x + 1, torch.randn(4))
    with pytest.raises(AssertionError, match="the stage was not observed; observed were fx_pre_grad"):
        compiled.assert_coverage("debug_handle", stage="op_spec")
    with pytest.raises(AssertionError, match="no field 'stack_trase' there; there are stack_trace"):
        compiled.assert_coverage("stack_trase", stage="fx_aten")
    with pytest.raises(TypeError, match="needs a stage"):
        compiled.assert_coverage("stack_trace")
