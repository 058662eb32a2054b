"""`kerntrail.testing`: what passes of each kind do to provenance, with the line that does it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
fx = torch.fx

from torch.fx.traceback import NodeSource, NodeSourceAction  # noqa: E402

from kerntrail.testing import FATES, FIELDS, assert_preserves_provenance, debugify  # noqa: E402


class Model(torch.nn.Module):
    def forward(self, x, y):
        a = x + 0
        b = torch.relu(a)
        c = torch.sin(y)
        d = torch.sin(y)
        return b * c, d


def traced() -> fx.GraphModule:
    """Nodes x, y, add, relu, sin, sin_1, mul; each has all fields, but for the placeholders."""
    module = fx.symbolic_trace(Model())
    for line, node in enumerate(module.graph.nodes, 1):
        if node.op == "call_function":
            node.meta["stack_trace"] = f'  File "model.py", line {line}, in forward\n    {node.name}\n'
            node.meta["nn_module_stack"] = {"": ("", Model)}
            node.meta["fwd_nn_module_stack"] = {"": ("", Model)}
            node.meta["source_fn_stack"] = [(node.name, node.target)]
            node.meta["original_aten"] = torch.ops.aten.relu.default
            node.meta["from_node"] = [NodeSource(node, "trace", NodeSourceAction.CREATE)]
    return module


def named(module: fx.GraphModule, name: str) -> fx.Node:
    return next(node for node in module.graph.nodes if node.name == name)


def line_of(mark: str) -> int:
    """The line of this file that ends with `# mark`."""
    (line,) = (n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text.endswith(f"# {mark}"))
    return line


def good(module):
    relu = named(module, "relu")
    with module.graph.inserting_before(relu):
        new = module.graph.call_function(torch.clamp_min, relu.args + (0,))  # good
    new.meta = relu.meta.copy()
    relu.replace_all_uses_with(new)
    module.graph.erase_node(relu)
    module.recompile()


def drops_on_create(module):
    relu = named(module, "relu")
    with module.graph.inserting_before(relu):
        new = module.graph.call_function(torch.clamp_min, relu.args + (0,))  # drops
    relu.replace_all_uses_with(new)
    module.graph.erase_node(relu)


def keeps_only_the_stack(module):
    relu = named(module, "relu")
    with module.graph.inserting_before(relu):
        new = module.graph.call_function(torch.clamp_min, relu.args + (0,))  # stack only
    new.stack_trace = relu.stack_trace
    relu.replace_all_uses_with(new)
    module.graph.erase_node(relu)


def overwrites_a_neighbour(module):
    named(module, "relu").meta.update(named(module, "mul").meta)  # overwrites


def assigns_a_neighbours(module):
    named(module, "relu").meta = named(module, "mul").meta  # assigns


def swaps(module):
    one, other = named(module, "sin").meta, named(module, "relu").meta
    kept = one["stack_trace"]
    one["stack_trace"] = other["stack_trace"]  # first of swap
    other["stack_trace"] = kept  # second of swap


def merges_into_existing(module):
    sin, other = named(module, "sin"), named(module, "sin_1")
    other.replace_all_uses_with(sin)  # merges
    module.graph.erase_node(other)


def merges_into_new(module):
    sin, other = named(module, "sin"), named(module, "sin_1")
    with module.graph.inserting_before(sin):
        new = module.graph.call_function(torch.sin, sin.args)  # merges into new
    new.meta = sin.meta.copy()
    new.stack_trace = sin.stack_trace + other.stack_trace
    for node in (sin, other):
        node.replace_all_uses_with(new)
        module.graph.erase_node(node)


def duplicates(module):
    sin = named(module, "sin")
    with module.graph.inserting_after(sin):
        new = module.graph.node_copy(sin, lambda node: node)  # duplicates
    sin.replace_all_uses_with(new, delete_user_cb=lambda user: user.name == "mul")


def elides(module):
    add = named(module, "add")
    add.replace_all_uses_with(add.args[0])  # elides
    module.graph.erase_node(add)


def elides_and_overwrites(module):
    add = named(module, "add")
    add.args[0].meta.update(add.meta)  # elides, overwrites
    add.replace_all_uses_with(add.args[0])  # elides, replaces
    module.graph.erase_node(add)


def erases(module):
    """A computation that something used: the output gets another value."""
    mul = named(module, "mul")
    output = next(node for node in module.graph.nodes if node.op == "output")
    output.args = ((named(module, "sin_1"), named(module, "sin_1")),)
    module.graph.erase_node(mul)  # erases


def takes_away(module):
    del named(module, "mul").meta["from_node"]
    named(module, "mul").meta.pop("stack_trace")  # takes away


def names_a_stranger(module):
    named(module, "mul").stack_trace = '  File "other.py", line 3, in f\n    f()\n'  # stranger


# Each pass with what differs from "survived", the lines, the nodes fabricated, and what the assertion objects to.
PASSES: list[tuple[Callable, dict[str, tuple[str, str]], dict[str, str], set[str]]] = [
    (good, {"relu": ("carried", "good")}, {}, set()),
    (drops_on_create, {"relu": ("lost", "drops")}, {"clamp_min": "drops"}, {"lost", "fabricated"}),
    (keeps_only_the_stack, {"relu": ("carried", "stack only")}, {}, {"incomplete"}),
    (overwrites_a_neighbour, {"relu": ("overwritten", "overwrites")}, {}, {"overwritten"}),
    (assigns_a_neighbours, {"relu": ("overwritten", "assigns")}, {}, {"overwritten"}),
    (
        swaps,
        {"sin": ("overwritten", "first of swap"), "relu": ("overwritten", "second of swap")},
        {},
        {"overwritten"},
    ),
    (merges_into_existing, {"sin_1": ("merged", "merges")}, {}, {"merged"}),
    # Its from_node names only one of the two.
    (
        merges_into_new,
        {"sin": ("merged", "merges into new"), "sin_1": ("merged", "merges into new")},
        {},
        {"incomplete"},
    ),
    (duplicates, {"sin": ("duplicated", "duplicates")}, {}, set()),
    (elides, {"add": ("elided", "elides")}, {}, set()),
    (
        elides_and_overwrites,
        {"add": ("elided", "elides, replaces"), "x": ("overwritten", "elides, overwrites")},
        {},
        {"overwritten"},
    ),
    (erases, {"mul": ("lost", "erases")}, {}, {"lost"}),
    (takes_away, {"mul": ("lost", "takes away")}, {}, {"lost"}),
    (names_a_stranger, {"mul": ("overwritten", "stranger")}, {}, {"overwritten"}),
]


@pytest.mark.parametrize(("function", "fates", "fabricated", "faults"), PASSES, ids=[row[0].__name__ for row in PASSES])
def test_each_kind_of_pass(function, fates, fabricated, faults):
    ledger = debugify(traced(), function).ledger
    names = ["x", "y", "add", "relu", "sin", "sin_1", "mul"]
    expected = [(name, *(fates.get(name, ("survived", "")))) for name in names]
    at = {mark: f"{__file__}:{line_of(mark)}" for *_, mark in expected if mark}
    assert [(e.node, e.fate, e.loc) for e in ledger.entries] == [(n, f, at.get(m, "")) for n, f, m in expected]
    assert {n.node: n.loc for n in ledger.fabricated} == {n: f"{__file__}:{line_of(m)}" for n, m in fabricated.items()}
    assert {e.pass_name for e in ledger.entries} == {function.__name__}
    assert sum(ledger.counts.values()) == 7 and set(ledger.counts) == set(FATES)

    if not faults:
        assert_preserves_provenance(function, traced())
        return
    with pytest.raises(AssertionError, match=function.__name__):
        assert_preserves_provenance(function, traced())
    assert_preserves_provenance(function, traced(), allow=faults)
    for fault in faults:
        with pytest.raises(AssertionError):
            assert_preserves_provenance(function, traced(), allow=faults - {fault})


def test_fields_that_a_new_node_lacks_are_named():
    ledger = debugify(traced(), keeps_only_the_stack).ledger
    assert ledger.entries[3].without == [field for field in FIELDS if field != "stack_trace"]
    assert_preserves_provenance(keeps_only_the_stack, traced(), fields=["stack_trace"])


def test_other_fields_are_judged_by_value():
    def writes_its_own(module):
        good(module)
        new = named(module, "clamp_min")
        new.meta["source_fn_stack"] = [("clamp", torch.clamp_min)]
        new.meta["nn_module_stack"] = dict(new.meta["nn_module_stack"])  # equal is as good
        named(module, "sin").meta["original_aten"] = torch.ops.aten.sin.default

    entries = {entry.node: entry for entry in debugify(traced(), writes_its_own).ledger.entries}
    assert (entries["relu"].altered, entries["relu"].without) == (["source_fn_stack"], [])
    assert (entries["sin"].fate, entries["sin"].altered) == ("survived", ["original_aten"])
    with pytest.raises(AssertionError, match="with another source_fn_stack"):
        assert_preserves_provenance(writes_its_own, traced(), allow="altered:sin")
    assert_preserves_provenance(writes_its_own, traced(), allow="altered")
    assert_preserves_provenance(writes_its_own, traced(), fields=["stack_trace"])


def test_graphs_in_a_graph_are_followed():
    outer = fx.Graph()
    outer.output(outer.call_module("inner", (outer.placeholder("x"),)))
    module = fx.GraphModule({"inner": traced()}, outer)

    def in_the_inner(module):
        drops_on_create(module.inner)

    ledger = debugify(module, in_the_inner).ledger
    assert len(ledger.entries) == 2 + 7
    assert [(entry.node, entry.fate) for entry in ledger.entries if entry.fate != "survived"] == [("inner.relu", "lost")]
    assert [node.node for node in ledger.fabricated] == ["inner.clamp_min"]
    assert "kerntrail" not in str([node.meta for node in module.inner.graph.nodes])


def test_allow_by_name_of_the_node():
    assert_preserves_provenance(erases, traced(), allow=["lost:mu*"])
    with pytest.raises(AssertionError):
        assert_preserves_provenance(erases, traced(), allow=["lost:add*"])
    with pytest.raises(ValueError, match="losst"):
        assert_preserves_provenance(erases, traced(), allow=["losst"])
    with pytest.raises(ValueError, match="stack"):
        assert_preserves_provenance(erases, traced(), fields=["stack"])


def test_each_pass_of_a_list_is_judged_alone():
    found = debugify(traced(), [("first", overwrites_a_neighbour), ("second", duplicates)])
    assert [ledger.pass_name for ledger in found.ledgers] == ["first", "second"]
    assert [ledger.counts["overwritten"] for ledger in found.ledgers] == [1, 0]
    assert len(found.ledgers[1].entries) == 7


def test_a_pass_may_return_another_module_or_be_given_a_graph():
    module = traced()
    found = debugify(module, lambda module: fx.Transformer(module).transform())
    assert found.result is not module
    # Transformer forwards the metadata of all but the placeholders.
    lost = [entry for entry in found.ledger.entries if entry.fate == "lost"]
    assert [entry.node for entry in lost] == [node.node for node in found.ledger.fabricated] == ["x", "y"]
    assert found.ledger.counts["carried"] == 5 and lost[0].why.startswith("not in the graph")
    graph = traced().graph
    assert debugify(graph, lambda graph: graph.eliminate_dead_code()).ledger.counts["survived"] == 7


def test_dead_code_is_elided():
    module = traced()
    with module.graph.inserting_before(named(module, "mul")):
        first = module.graph.call_function(torch.cos, (named(module, "x"),))
        module.graph.call_function(torch.cos, (first,))
    ledger = assert_preserves_provenance(lambda module: module.graph.eliminate_dead_code(), module).ledger
    assert ledger.counts["elided"] == 2


def test_originals_come_back_and_new_nodes_get_those_they_name():
    module = traced()
    kept = {node.name: (node, node.meta, dict(node.meta)) for node in module.graph.nodes}
    debugify(module, [swaps, takes_away, overwrites_a_neighbour_of_two, good])
    for node in module.graph.nodes:
        if node.name in kept:
            assert node is kept[node.name][0] and node.meta is kept[node.name][1]
            assert node.meta == kept[node.name][2] and type(node.meta) is dict
    new, old = named(module, "clamp_min").meta, kept["relu"][2]
    assert new == old and new["from_node"] is old["from_node"]


def test_nodes_that_a_pass_made_share_one_dict_are_told_apart_again():
    module = traced()
    stacks = {node.name: node.stack_trace for node in module.graph.nodes}
    assert debugify(module, assigns_a_neighbours).ledger.counts["overwritten"] == 1
    assert {node.name: node.stack_trace for node in module.graph.nodes} == stacks


def test_a_node_that_kept_users_was_not_replaced():
    def hands_over_in_part(module):
        relu, mul = named(module, "relu"), named(module, "mul")
        relu.replace_all_uses_with(relu.args[0], delete_user_cb=lambda user: False)
        mul.args = (named(module, "sin"), named(module, "sin"))
        module.graph.erase_node(relu)  # in part

    (entry,) = (entry for entry in debugify(traced(), hands_over_in_part).ledger.entries if entry.fate != "survived")
    assert (entry.node, entry.fate, entry.loc) == ("relu", "lost", f"{__file__}:{line_of('in part')}")


def overwrites_a_neighbour_of_two(module):
    for field in ("stack_trace", "from_node"):
        named(module, "sin").meta[field] = named(module, "mul").meta[field]


def test_chains_and_joined_stacks_get_the_originals_inside():
    module = traced()
    stacks = {node.name: node.stack_trace for node in module.graph.nodes}
    chain = named(module, "relu").meta["from_node"]

    def joins(module):
        relu = named(module, "relu")
        with module.graph.inserting_before(relu):
            new = module.graph.call_function(torch.clamp_min, relu.args + (0,))
        new.stack_trace = relu.stack_trace + named(module, "add").stack_trace
        new.meta["from_node"] = [NodeSource(relu, "joins", NodeSourceAction.REPLACE)]
        repr(new.meta["from_node"][0].to_dict())
        relu.replace_all_uses_with(new)
        module.graph.erase_node(relu)

    assert debugify(module, joins).ledger.counts["merged"] == 1
    new = named(module, "clamp_min")
    assert new.stack_trace == stacks["relu"] + stacks["add"]
    (source,) = new.meta["from_node"]
    assert source.pass_name == "joins" and source.from_node == chain
    assert "kerntrail" not in str(source.to_dict())


def test_an_exception_goes_through_and_leaves_nothing():
    module, methods = traced(), dict(fx.Graph.__dict__)
    before = [dict(node.meta) for node in module.graph.nodes]

    def fails(module):
        drops_on_create(module)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        debugify(module, fails)
    assert dict(fx.Graph.__dict__) == methods
    names = ["x", "y", "add", "sin", "sin_1", "mul", "output"]
    assert [named(module, name).meta for name in names] == [before[i] for i in (0, 1, 2, 4, 5, 6, 7)]


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["make", "copy", "steal", "swap", "drop", "elide", "merge", "erase"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=12,
)


def random_pass(actions: list[tuple[str, int, int]]) -> Callable:
    def run(module):
        graph = module.graph
        for action, first, second in actions:
            nodes = [node for node in graph.nodes if node.op == "call_function"]
            if not nodes:
                return
            i = first % len(nodes)
            node, other = nodes[i], nodes[second % len(nodes)]
            earlier = nodes[second % i] if i else node.args[0]
            if action in ("make", "copy"):
                with graph.inserting_after(node):
                    new = graph.node_copy(node) if action == "copy" else graph.call_function(torch.neg, node.args[:1])
                node.replace_all_uses_with(new)
            elif action == "steal":
                node.meta.update(other.meta)
            elif action == "swap":
                node.meta, other.meta = other.meta, node.meta
            elif action == "drop":
                node.meta = {}
            elif action in ("elide", "merge"):
                target = node.args[0] if action == "elide" else earlier
                node.replace_all_uses_with(target)
                graph.erase_node(node)
            elif not node.users:
                graph.erase_node(node)
        module.recompile()

    return run


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(ACTIONS)
def test_any_pass_leaves_a_ledger_that_sums_and_a_graph_as_without_it(actions):
    module, plain = traced(), traced()
    own = {node: dict(node.meta) for node in module.graph.nodes}
    ledger = debugify(module, random_pass(actions)).ledger
    random_pass(actions)(plain)
    assert [entry.id for entry in ledger.entries] == list(range(1, 8))
    assert sum(ledger.counts.values()) == 7
    after = [node for node in module.graph.nodes if node.op != "output"]
    assert ledger.kept + ledger.inheriting + len(ledger.fabricated) == len(after)
    assert str(module.graph) == str(plain.graph)
    inputs = torch.arange(3.0), torch.arange(3.0) + 1
    assert all(map(torch.equal, module(*inputs), plain(*inputs)))
    for node in module.graph.nodes:
        assert type(node.meta) is dict
        assert "kerntrail" not in str(node.meta)
        if node in own:
            assert all(node.meta.get(field) == own[node].get(field) for field in ("stack_trace", "from_node"))


def test_torchs_removal_of_no_ops_overwrites_what_stays():
    """`a + zeros`: the node of `a` ends up with the line of the addition, on stock torch 2.13."""
    from torch._inductor.fx_passes.joint_graph import constant_fold_uniform_value
    from torch.fx.experimental.proxy_tensor import make_fx

    module = make_fx(lambda x: (x.sin() + torch.full((8,), 0.0)) * 2, tracing_mode="fake")(torch.randn(8))
    ledger = debugify(module, constant_fold_uniform_value).ledger
    fates = {entry.node: (entry.fate, entry.heirs) for entry in ledger.entries}
    assert fates["sin"] == ("overwritten", []) and fates["add"] == ("elided", ["sin"])
    (entry,) = (entry for entry in ledger.entries if entry.fate == "overwritten")
    assert entry.why == "the node now names add"
    path, line = entry.loc.rsplit(":", 1)
    assert "meta.update(" in Path(path).read_text().splitlines()[int(line) - 1]


def test_a_line_of_torchs_rewriter_is_the_line_that_calls_it():
    def rewrites(module):
        fx.subgraph_rewriter.replace_pattern(module, lambda x: torch.relu(x), lambda x: x.clamp_min(0))  # rewriter

    ledger = debugify(traced(), rewrites).ledger
    assert [node.loc for node in ledger.fabricated] == [f"{__file__}:{line_of('rewriter')}"]


def test_inside_a_compile_results_are_right_and_lines_are_the_models():
    found, stacks = [], []

    def relu_to_maximum(graph):
        for node in graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default):
            with graph.inserting_before(node):
                new = graph.call_function(torch.ops.aten.clamp_min.default, (node.args[0], 0))
            new.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(new)
            graph.erase_node(node)

    def judged(graph):
        found.append(debugify(graph, relu_to_maximum).ledger)
        stacks.extend(node.stack_trace for node in graph.nodes if node.op == "call_function")

    x = torch.randn(4, 8)
    with torch._inductor.config.patch(post_grad_custom_post_pass=judged, force_disable_caches=True), torch.no_grad():
        torch._dynamo.reset()
        out = torch.compile(lambda x: torch.relu(x.sin() * 2).cos())(x)
    assert torch.allclose(out, torch.relu(x.sin() * 2).cos())
    (ledger,) = found
    assert ledger.counts["lost"] == 1 and [node.node for node in ledger.fabricated] == ["clamp_min_default"]
    assert [stack is not None and __file__ in stack for stack in stacks] == [True, True, False, True]


def test_the_worked_example(repo_root, capsys):
    text = (repo_root / "docs" / "debugify.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "python", "text", "python", "python", "text", "text"]
    scope: dict = {"__name__": "worked"}
    code = [block for kind, block in blocks if kind == "python"]
    source = code[0] + code[1]
    exec(compile(source, "pass.py", "exec"), scope)
    assert capsys.readouterr().out == next(block for kind, block in blocks if kind == "text")
    exec(compile(code[2] + code[3], "pass.py", "exec"), scope)
    with pytest.raises(AssertionError, match="pass.py:14"):
        scope["assert_preserves_provenance"](scope["relu_to_clamp"], fx.symbolic_trace(scope["Model"]()))
