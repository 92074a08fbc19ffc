"""Tests of exported PyTorch programs, in memory and in files, against torch itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import memplan
from memplan.base.errors import GraphError, MemplanError
from memplan.levers.rewrite import recompute, reorder
from memplan.programs.graph import Graph, Kind, lay_out
from memplan.programs.sources.loaded import of_graph
from memplan.programs.sources.options import Options
from memplan.runtimes.torch.operators import TABLE
from memplan.runtimes.torch.read import graph_of, load, read, training_graph
from memplan.runtimes.torch.read.training import training_program

torch = pytest.importorskip("torch")
nn = torch.nn
functional = nn.functional

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def in_file(program: Any, path: Path, **dims: int) -> Graph:
    """Return the graph that is read from a program's file."""
    torch.export.save(program, path)
    graph = read(path, Options(dims=dims)).graph
    assert graph is not None
    return graph


def assert_equal(one: Graph, other: Graph) -> None:
    """Assert that two graphs are equal but for their names, field by field for the message."""
    for field in fields(Graph):
        if field.name != "name":
            assert getattr(one, field.name) == getattr(other, field.name)


class Views(nn.Module):
    """Everything that may or may not share a storage."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.register_buffer("table", torch.arange(12.0).reshape(3, 4))

    def forward(self, x: Any, y: Any) -> Any:
        """Return views, copies, and what may be either."""
        a = (x + 1).view(2, 3, 4)
        b, c = a.transpose(1, 2).reshape(2, 12), a.reshape(6, 4)
        d, e = a.transpose(0, 1).contiguous(), a.contiguous()
        f, g = self.drop(e), a.to(torch.float32)
        h, i = a.to(torch.float64), a.flatten(1)[:, 1:]
        j = torch.cat([part * 2 for part in i.chunk(3, dim=1)], dim=1)
        k, _ = y.max(dim=0)
        p, q = torch.meshgrid(k, k, indexing="ij")
        r = torch.broadcast_tensors(k, y)[0]
        s = torch.view_as_complex((y * 2).reshape(-1, 2)).real
        z = self.table.expand(2, 3, 4).mul(a)
        z[:, 0].add_(1)
        return b, c, d, f, g, h, i.ravel(), j, p, q, r, s, z, y.squeeze().unsqueeze(0), x


class Cache(nn.Module):
    """State that is updated: in place, and by a new value."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(64, 8))
        self.register_buffer("count", torch.zeros(1))
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: Any) -> Any:
        """Return what the newest key matches."""
        self.keys[4:8] = self.norm(x)
        self.count.add_(1)
        return self.keys @ x.t()


class Control(nn.Module):
    """A branch and a loop."""

    def forward(self, x: Any) -> Any:
        """Return what either computes."""
        y = torch.cond(x.sum() > 0, lambda t: (t.sin() * 2).t(), lambda t: t.cos().t(), (x,))
        _, z = torch._higher_order_ops.while_loop(
            lambda i, t: i.sum() < 3, lambda i, t: (i + 1, (t * 2).exp()), (torch.zeros(1), y)
        )
        with torch.no_grad():
            z = z + 1
        return z, x.tanh()


class Dynamic(nn.Module):
    """Sizes that depend on those of the input, and on its elements."""

    def forward(self, x: Any) -> Any:
        """Return products, pairs, and what is not zero."""
        found = x.nonzero()
        torch._check(found.size(0) <= 50)
        return torch.cat([x, x[1:]]) @ x.t(), found * 2


class Rounds(nn.Module):
    """A loop over rows, and code under autocast and without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        """Return what three ways to run a body compute."""
        y = torch._higher_order_ops.map(lambda row, all_: (row * all_).exp(), x, x.sum())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = self.layer(y)
        with torch.no_grad():
            z = z.t() * 2
        return z + 1


class ChannelsLast(nn.Module):
    """Images whose strides are not those of their shape."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(4, 8, 3)

    def forward(self, x: Any) -> Any:
        """Return copies and views of both layouts."""
        y = x.to(memory_format=torch.channels_last)
        z = self.layer(y)
        return z.relu(), y.contiguous(), y.reshape(1, -1), y.permute(0, 2, 3, 1).flatten(1, 2)


def dynamic() -> Any:
    """Return the program of `Dynamic` for three to 32 rows."""
    rows = torch.export.Dim("rows", min=3, max=32)
    return torch.export.export(Dynamic(), (torch.ones(4, 8),), dynamic_shapes=({0: rows},))


class Tied(nn.Module):
    """Modules that share a weight and a state, and weights that are equal but apart."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 8), nn.Linear(8, 10, bias=False)
        self.head.weight = self.embed.weight
        self.first, self.second = nn.Parameter(torch.ones(8)), nn.Parameter(torch.ones(8))
        self.norm, self.other = nn.BatchNorm1d(8), nn.BatchNorm1d(8)
        self.other.running_mean = self.norm.running_mean

    def forward(self, x: Any) -> Any:
        """Return what the shared weight makes of itself."""
        return self.head(self.other(self.norm(self.embed(x) * self.first + self.second)))


def programs() -> dict[str, Callable[[], Any]]:
    """Return programs whose storages are shared in every way."""
    export = torch.export.export
    views = (torch.ones(6, 4), torch.ones(4, 4))
    cache = (torch.ones(4, 8),)
    return {
        "views": lambda: export(Views().eval(), views),
        "views, training": lambda: export(Views().train(), views),
        "views, functional": lambda: export(Views().eval(), views).run_decompositions(),
        "state": lambda: export(Cache().eval(), cache),
        "state, training": lambda: export(Cache().train(), cache),
        "state, functional": lambda: export(Cache().eval(), cache).run_decompositions(),
        "rounds": lambda: export(Rounds().eval(), (torch.ones(4, 8),)),
        "channels last": lambda: export(ChannelsLast(), (torch.ones(1, 4, 8, 8),)),
        "encoder": lambda: export(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (torch.ones(2, 4, 8),)
        ).run_decompositions(),
        "control flow": lambda: export(Control(), (torch.ones(4, 8),)),
        "dynamic": dynamic,
        "tied": lambda: export(Tied().eval(), (torch.arange(4),)),
        "tied, no elements": lambda: export(Tied().to("meta"), (torch.ones(4).long().to("meta"),)),
        "tied, training": lambda: export(Tied().train(), (torch.arange(4),)),
    }


@pytest.mark.parametrize("name", programs())
def test_file_and_memory_agree(tmp_path: Path, name: str) -> None:
    """Tests that the tables say of a file what a run with fake tensors says of the program."""
    program = programs()[name]()
    assert_equal(graph_of(program), in_file(program, tmp_path / "net.pt2"))


def test_what_modules_share_is_one_tensor() -> None:
    """Tests that a shared weight and state count once, and equal weights each by itself."""
    net = Tied()
    graph = graph_of(torch.export.export(net, (torch.arange(4),)))
    kept = [each for each in graph.tensors if each.kind in (Kind.CONSTANT, Kind.VARIABLE)]
    once = {id(each): each.nbytes for each in (*net.parameters(), *net.buffers())}
    assert sum(each.bytes for each in kept) == sum(once.values())
    assert len(kept) == len(once)
    step = training_graph(net.eval(), (torch.arange(4),), lambda out: out.sum())
    assert sum("weight" in each.name for each in step.tensors if each.kind is Kind.CONSTANT) == 3


class Nested(nn.Module):
    """A module in a module, and an operator in none."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU())

    def forward(self, x: Any) -> Any:
        """Return what the layers make of another input."""
        y = x * 2
        return self.layers(y)


def test_where_operators_come_from(tmp_path: Path) -> None:
    """Tests that modules and the user's lines are there, in memory and in the file."""
    graph = in_file(torch.export.export(Nested(), (torch.ones(4, 8),)), tmp_path / "net.pt2")
    found = {operator.type: (operator.module, operator.line) for operator in graph.operators}
    first = Nested.forward.__code__.co_firstlineno
    file = Path(__file__).name
    assert found == {
        "aten.mul": ("", f"{file}:{first + 2}"),
        "aten.linear": ("layers.0", f"{file}:{first + 3}"),
        "aten.relu": ("layers.1", f"{file}:{first + 3}"),
    }
    (label, *_) = of_graph(graph).labels
    assert (label.operator, label.line) == ("aten.mul", f"{file}:{first + 2}")


def test_saved_and_loaded_again(tmp_path: Path) -> None:
    """Tests that a program that torch loaded from a file is the one that was saved."""
    program = programs()["views"]()
    torch.export.save(program, tmp_path / "net.pt2")
    again = torch.export.load(tmp_path / "net.pt2")
    assert_equal(graph_of(again), graph_of(program))


# Aliases of other kinds of objects than dense tensors, or of no program that can be exported; and
# two of which a file does not say whether they share.
NOT_EXPORTED = frozenset(
    """
    __getitem__ _grad_sum_to_size _indices _make_dual _ncf_unsqueeze _ncf_view _nested_get_values
    _nested_view_from_buffer _nested_view_from_jagged _sparse_broadcast_to
    _test_autograd_multiple_dispatch_view _unpack_dual _unwrap_optional _values as_tensor
    ccol_indices coalesce col_indices crow_indices get indices keys local_value pop row_indices
    resolve_conj resolve_neg setdefault slice_inverse to_here values
    """.split()  # noqa: SIM905
)


def test_every_view_of_aten_is_known() -> None:
    """Tests that operators whose schemas return an argument's storage are in the tables."""
    known = {name for name, row in TABLE.items() if row.shares in ("view", "same", "reshape")}
    views = set()
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        aliases = [one.alias_info for one in schema.returns if one.alias_info is not None]
        writes = any(alias.is_write for alias in aliases)
        if schema.name.startswith("aten::") and aliases and not writes:
            views.add(name)
        if writes and name.endswith("_") and not name.endswith("__"):
            assert schema.arguments[0].alias_info.is_write
    assert len(views) > 80
    assert views - known <= NOT_EXPORTED
    assert not known & NOT_EXPORTED


def test_pointwise_operators_are_pointwise() -> None:
    """Tests that what may write over its input is tagged so by torch, or its gradient."""
    for name in (name for name, row in TABLE.items() if row.in_place == "any"):
        packet = getattr(torch.ops.aten, name)
        tags = [getattr(packet, overload).tags for overload in packet.overloads()]
        tagged = any(torch.Tag.pointwise in one for one in tags)
        assert tagged or name.endswith("_backward") or name == "hardswish"
    for name in (name for name, row in TABLE.items() if row.in_place == "first"):
        assert hasattr(torch.ops.aten, name)


def fake_run(program: Any) -> tuple[int, int]:
    """Run a program with fake tensors; return the bytes of all new storages, and at the peak.

    Every storage is freed after the last node that uses it or a view of it.
    """
    module = program.graph_module
    made: dict[Any, list[int]] = {}
    sizes: dict[int, int] = {}
    kept: list[Any] = []

    class Record(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            result = super().run_node(n)
            kept.append(result)
            leaves = torch.utils._pytree.tree_leaves(result)
            made[n] = []
            for one in leaves:
                if isinstance(one, torch.Tensor):
                    made[n].append(one.untyped_storage()._cdata)
                    sizes.setdefault(made[n][-1], one.untyped_storage().nbytes())
            return result

    inputs = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    with inputs[0].fake_mode, torch.no_grad():
        Record(module, garbage_collect_values=False).run(*inputs)
    given = {key for n in made if n.op == "placeholder" for key in made[n]}
    nodes = [node for node in module.graph.nodes if node.op != "placeholder"]
    last: dict[int, int] = {}
    for step, node in enumerate(nodes):
        for one in (node, *node.all_input_nodes):
            last |= dict.fromkeys(made[one], step)
    live = peak = 0
    seen: set[int] = set()
    for step, node in enumerate(nodes):
        new = set(made[node]) - given - seen
        seen |= new
        live += sum(sizes[key] for key in new)
        peak = max(peak, live)
        live -= sum(sizes[key] for key in seen if last[key] == step)
    return sum(sizes[key] for key in seen), peak


MODELS = ("resnet18", "resnet50", "mobilenet_v2", "unet", "bert_base", "gpt2_block")


@pytest.mark.parametrize("name", MODELS)
def test_known_networks(tmp_path: Path, name: str) -> None:
    """Tests that storages are what fake tensors allocate, and that the peak is no higher.

    The plan is optimal, and no more than PyTorch's allocator would reserve.
    """
    from memplan.runtimes.torch.measure import measure
    from memplan_lab.bench.models import MODELS as BUILD

    program = torch.export.export(*BUILD[name]())
    path = tmp_path / f"{name}.pt2"
    graph = in_file(program, path)
    assert_equal(graph_of(program), graph)
    layout = lay_out(graph, round_up=False)
    total, peak = fake_run(program)
    assert sum(layout.storages[row].bytes for row in layout.rows) == total
    plan = memplan.solve(lay_out(graph).problem)
    assert plan.status == "optimal"
    assert plan.peak is not None
    assert peak <= plan.peak <= peak + 64 * len(layout.rows)
    figure = measure(path, Options())
    assert figure is not None
    assert figure.how == "re-implemented"
    assert plan.peak <= figure.bytes
    in_place = memplan.solve(lay_out(graph, in_place=True).problem)
    assert in_place.peak is not None
    assert in_place.peak <= plan.peak


def run_in_arena(program: Any, *, in_place: bool, given: Any) -> list[Any]:
    """Run a program with all its planned tensors in one arena; return what it returns."""
    graph = graph_of(program)
    layout = lay_out(graph, in_place=in_place)
    plan = memplan.solve(layout.problem)
    assert plan.peak is not None
    assert plan.offsets is not None
    arena = torch.full((max(plan.peak, 64),), 0xFF, dtype=torch.uint8)
    offset = {}
    for row, index in enumerate(layout.rows):
        offset |= dict.fromkeys(layout.storages[index].tensors, int(plan.offsets[row]))
    at = {view.tensor: view.offset for view in graph.views}
    index = {tensor.name: i for i, tensor in enumerate(graph.tensors)}
    shared = set(at)

    class InArena(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            result = super().run_node(n)
            if n.op != "call_function" or not isinstance(result, torch.Tensor):
                return result
            tensor = index[n.name]
            if tensor not in offset:
                return result
            typed = arena[: arena.numel() // 16 * 16].view(result.dtype)
            start = (offset[tensor] + at.get(tensor, 0)) // result.itemsize
            place = torch.as_strided(typed, result.shape, result.stride(), start)
            return place if tensor in shared else place.copy_(result)

    module = program.graph_module
    state = {**program.state_dict, **program.constants}
    targets = program.graph_signature.inputs_to_parameters
    targets = {**targets, **program.graph_signature.inputs_to_buffers}
    targets |= program.graph_signature.inputs_to_lifted_tensor_constants
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    inputs = iter(given)
    bound = [state[targets[name]].clone() if name in targets else next(inputs) for name in names]
    with torch.no_grad():
        return list(InArena(module).run(*bound, enable_io_processing=False))


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", ["views", "state", "resnet18", "unet", "gpt2_block"])
def test_programs_run_in_their_arena(name: str, in_place: bool) -> None:
    """Tests that a program computes the same when its tensors are where the plan puts them."""
    from memplan_lab.bench.models import UNet, gpt2_block, resnet

    torch.manual_seed(0)
    image = torch.randn(1, 3, 32, 32)
    module, given = {
        "views": lambda: (Views(), (torch.randn(6, 4), torch.randn(4, 4))),
        "state": lambda: (Cache(), (torch.randn(4, 8),)),
        "resnet18": lambda: (resnet((2, 2, 2, 2), bottleneck=False), (image,)),
        "unet": lambda: (UNet(3, 2, width=8), (image,)),
        "gpt2_block": lambda: (gpt2_block(), (torch.randn(1, 16, 768),)),
    }[name]()
    program = torch.export.export(module.eval(), given)
    with torch.no_grad():
        expected = program.module()(*given)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    found = run_in_arena(program, in_place=in_place, given=given)
    assert len(found) == len(expected)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_state_is_updated_where_it_is(tmp_path: Path) -> None:
    """Tests that new state takes no further memory where it can be made in place of the old."""
    program = programs()["state, functional"]()
    graph = graph_of(program)
    kinds = {tensor.name: tensor.kind for tensor in graph.tensors}
    assert kinds["keys"] is kinds["count"] is Kind.VARIABLE
    assert kinds["norm.weight"] is kinds["norm.running_mean"] is Kind.CONSTANT
    by_name = [(graph.tensors[a].name, graph.tensors[b].name) for a, b in graph.aliases]
    assert [old for old, _ in by_name] == ["keys", "count"]
    assert not [op for op in graph.operators if op.type == "aten.copy_"]
    training = graph_of(programs()["state, training"]())
    kinds = {tensor.name: tensor.kind for tensor in training.tensors}
    assert kinds["norm.running_mean"] is Kind.VARIABLE
    assert kinds["norm.weight"] is Kind.CONSTANT


def test_old_state_that_is_still_read_is_kept() -> None:
    """Tests that new state is copied over the old in the end if the old is read after it."""

    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.zeros(32))

        def forward(self, x: Any) -> Any:
            old = self.state.clone()
            self.state.copy_(self.state + x)
            return old * 2

    class Caller(nn.Module):
        def forward(self, x: Any) -> Any:
            y = x * 2
            x.add_(1)
            return y

    late = graph_of(torch.export.export(Late(), (torch.ones(32),)).run_decompositions())
    names = [op.name for op in late.operators]
    aliased = {late.tensors[a].name for a, _ in late.aliases}
    assert ("update of state" in names) != ("state" in aliased)
    caller = graph_of(torch.export.export(Caller(), (torch.ones(32),)).run_decompositions())
    assert caller.operators[-1].name == "update of x"
    assert lay_out(caller).problem.ids == ("mul", "add")


def test_sizes_by_range_and_by_value(tmp_path: Path) -> None:
    """Tests that symbolic sizes are the given ones, and the largest by default."""
    program = dynamic()
    symbol = next(str(s) for s in program.range_constraints if str(s).startswith("s"))
    shapes = {t.name: t.shape for t in graph_of(program, {symbol: 8}).tensors}
    assert shapes["x"] == (8, 8)
    assert shapes["matmul"] == (15, 8)
    assert shapes["nonzero"] == (50, 2)
    assert {t.name: t.shape for t in graph_of(program).tensors}["matmul"] == (63, 32)
    loaded = load(program)
    assert sum(note.text.startswith((symbol, "u0")) for note in loaded.notes) == 2
    with pytest.raises(GraphError, match="exported for 3 to 32"):
        graph_of(program, {symbol: 33})


def test_branches_share_and_loops_keep() -> None:
    """Tests that branches hand over in one place, and that a loop's state lives through it."""
    graph = graph_of(programs()["control flow"]())
    layout = lay_out(graph)
    names = [{graph.tensors[i].name for i in layout.storages[row].tensors} for row in layout.rows]
    loop = next(op for op in graph.operators if op.loop)
    assert [len(block.operators) > 0 for block in loop.blocks] == [True, True]
    state = next(group for group in names if "while_loop.while_loop_body_graph_0/arg1_1" in group)
    assert "while_loop.while_loop_cond_graph_0/arg1_1" in state
    branches = next(op for op in graph.operators if op.type == "cond")
    assert [block.name for block in branches.blocks] == ["cond.true_graph_0", "cond.false_graph_0"]
    memplan.verify(layout.problem, memplan.solve(layout.problem))


def test_operators_of_users() -> None:
    """Tests that operators that no table knows are planned by what their fake version makes."""

    @torch.library.custom_op("memplan_test::halves", mutates_args=())
    def halves(x: torch.Tensor) -> list[torch.Tensor]:
        return [x[0].clone(), x[1].clone()]

    @halves.register_fake
    def _(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.empty_like(x[0]), torch.empty_like(x[1])]

    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            a, b = halves(x * 2)
            return a + b

    graph = graph_of(torch.export.export(Net(), (torch.ones(2, 16),)))
    operator = graph.operators[1]
    assert operator.type == "memplan_test.halves"
    assert [graph.tensors[i].bytes for i in operator.outputs] == [64, 64]
    assert not graph.views


def test_training_step(tmp_path: Path) -> None:
    """Tests that a training step is forward, loss and backward, with gradients for outputs."""
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
    args = (torch.ones(16, 32),)

    def loss(out: Any) -> Any:
        return out.square().mean()

    graph = training_graph(net, args, loss)
    outputs = [graph.tensors[i] for i in graph.outputs]
    weights = sum(p.numel() * 4 for p in net.parameters())
    assert [tensor.shape for tensor in outputs].count(()) == 1
    assert sum(tensor.bytes for tensor in outputs) == weights + 4
    constants = [t for t in graph.tensors if t.kind is Kind.CONSTANT]
    assert {t.name for t in constants} == {f"model.{name}" for name, _ in net.named_parameters()}
    problem = lay_out(graph).problem
    plan = memplan.solve(problem)
    assert plan.status == "optimal"
    forward = lay_out(graph_of(torch.export.export(net, args))).problem
    assert memplan.lower_bound(problem) > max(memplan.lower_bound(forward), weights)
    program = training_program(net, args, loss)
    assert_equal(graph, in_file(program, tmp_path / "step.pt2"))


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the absence of torch is a sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MemplanError, match=r"pip install 'memplan\[torch\]'"):
        graph_of(None)


def test_what_takes_a_program_takes_an_exported_one() -> None:
    """Tests that orders, re-runs and what they cost are asked for as `load` is."""
    program = torch.export.export(torch.nn.Linear(4, 4), (torch.ones(1, 4),))
    ordered = reorder(program)
    memplan.verify_order(program, ordered)
    again = recompute(program, ordered.peak)
    memplan.verify_recompute(program, again)
    assert memplan.tradeoff(program).points[0].arena == again.peak == ordered.peak
    with pytest.raises(MemplanError, match="not a dict"):
        recompute({}, 100)  # type: ignore[call-overload,unused-ignore]
