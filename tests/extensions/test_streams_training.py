"""Tests of captured training steps: gradients, buckets, streams, against torch's own backward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any, get_args

import pytest

from memplan.base.errors import MemplanError
from memplan.extensions.streams.training import Streams, training_step
from memplan.extensions.streams.training.step import fill_buckets
from memplan.programs.graph import Graph, Kind, lay_out, unsafe_pairs
from memplan.programs.sources.graph_json import read_graph, write_graph
from memplan.runtimes.torch.read.training import training_program

torch = pytest.importorskip("torch")
nn = torch.nn

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

STREAMS: tuple[Streams, ...] = get_args(Streams)


def net() -> Any:
    """Return a small network with weights, biases, norms and their statistics."""
    return nn.Sequential(
        *(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU()),
        *(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)),
    )


def square(result: Any) -> Any:
    """Return a loss."""
    return result.square().mean()


def step(model: Any = None, **options: Any) -> Graph:
    """Return a training step of a network that takes 32 numbers."""
    options = {"bucket_bytes": 9000, "loss": square} | options
    return training_step(model or net(), (torch.ones(16, 32),), **options)


def gradients(graph: Graph) -> dict[str, list[int]]:
    """Return by parameter the bytes of what its update reads, the parameter and state apart."""
    found = {}
    for operator in graph.operators:
        if operator.type in ("sgd", "adam"):
            parameter, *others = (graph.tensors[index] for index in operator.inputs)
            assert parameter.kind is Kind.VARIABLE
            name = parameter.name.removeprefix("model.")
            found[name] = [one.bytes for one in others if one.kind is Kind.INTERMEDIATE]
    return found


@pytest.mark.parametrize("streams", STREAMS)
def test_every_parameter_is_updated_by_its_gradient(streams: Streams) -> None:
    """Tests that gradients have the bytes of parameters, are in buckets, and die in the step."""
    model = net()
    graph = step(model, streams=streams)
    wanted = {name: [p.numel() * 4] for name, p in model.named_parameters()}
    assert gradients(graph) == wanted
    grouped = [index for group in graph.groups for index in group]
    assert len(grouped) == len(wanted)
    assert sum(graph.tensors[i].bytes for i in grouped) == sum(sum(one) for one in wanted.values())
    assert all(graph.tensors[index].kind is Kind.INTERMEDIATE for index in grouped)
    assert [graph.tensors[index].shape for index in graph.outputs] == [()]  # the loss
    statistics = {t.name for t in graph.tensors if t.kind is Kind.VARIABLE and "running" in t.name}
    assert statistics == {"model.1.running_mean", "model.1.running_var"}
    assert [len(rows) for rows in lay_out(graph).problem.groups] == [len(g) for g in graph.groups]


def test_all_reduces_read_and_write_buckets_where_they_are() -> None:
    """Tests that an all-reduce has a bucket for inputs, whose memory its results have."""
    graph = step(bucket_bytes=3000)
    base = {view.tensor: view.base for view in graph.views}
    reduces = [operator for operator in graph.operators if operator.type == "all_reduce"]
    assert tuple(operator.inputs for operator in reduces) == graph.groups
    assert tuple(tuple(base[i] for i in one.outputs) for one in reduces) == graph.groups
    assert len(reduces) > 2
    maker = {i: at for at, op in enumerate(graph.operators) for i in op.outputs if i not in base}
    made = [maker[index] for group in graph.groups for index in group]
    assert made == sorted(made)  # in the order in which the backward pass makes them
    for operator, group in zip(reduces, graph.groups, strict=True):
        assert graph.operators.index(operator) == max(maker[index] for index in group) + 1


def test_buckets_are_filled_as_ddp_does() -> None:
    """Tests that DistributedDataParallel's own rule makes the same buckets of the same tensors."""
    model = nn.Sequential(*(nn.Linear(300, 300) for _ in range(30)))
    graph = training_step(model, (torch.ones(2, 300),), loss=square, bucket_bytes=3 << 20)
    grouped = [graph.tensors[index] for group in graph.groups for index in group]
    empty = [torch.empty(one.bytes // 4) for one in grouped]
    limits = [1 << 20, 3 << 20]
    expected, _ = torch.distributed._compute_bucket_assignment_by_size(empty, limits)
    numbers = iter(range(len(grouped)))
    assert [[next(numbers) for _ in group] for group in graph.groups] == expected
    assert len(expected) > 3


def test_types_have_buckets_of_their_own() -> None:
    """Tests that a bucket has one type of elements, each with a small first one."""
    from memplan.programs.graph import Tensor

    sizes = [("float32", 2 << 20), ("float16", 10), ("float32", 10), ("float16", 20)]
    tensors = [Tensor(str(at), size, dtype=dtype) for at, (dtype, size) in enumerate(sizes)]
    assert fill_buckets(tensors, 25 << 20) == [[0], [1, 3], [2]]


class Shared(nn.Module):
    """Biases whose gradients are the same elements; the backward pass goes on with them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.ones(16, 32))
        self.second = nn.Parameter(torch.ones(512))
        self.scale = nn.Parameter(torch.ones(32))

    def forward(self, x: Any) -> Any:
        """Return a loss."""
        return ((x * self.scale + self.first + self.second.view(16, 32)) ** 2).sum()


def test_gradients_that_are_read_are_copied() -> None:
    """Tests that what others read, and what two parameters share, is copied into the bucket."""
    graph = step(Shared(), loss=None)
    copies = [op for op in graph.operators if op.name.startswith("copy of the gradient of")]
    assert len(copies) == 2
    assert gradients(graph) == {"first": [2048], "second": [2048], "scale": [128]}
    grouped = [index for group in graph.groups for index in group]
    assert {index for copy in copies for index in copy.outputs} <= set(grouped)
    read = {index for op in graph.operators if op.type != "all_reduce" for index in op.inputs}
    assert not read & set(grouped)


def test_views_are_no_operators() -> None:
    """Tests that no operator makes views alone, the all-reduces apart."""
    graph = step()
    views = {view.tensor for view in graph.views}
    idle = [op.type for op in graph.operators if op.outputs and set(op.outputs) <= views]
    assert set(idle) == {"all_reduce"}


def test_ddp_streams() -> None:
    """Tests that all-reduces alone are on a second stream, and that updates come last."""
    graph = step(streams="ddp")
    assert {op.type for op in graph.operators if op.stream == 1} == {"all_reduce"}
    assert {op.stream for op in graph.operators} == {0, 1}
    parameters = [name for name, _ in net().named_parameters()]
    assert [op.name for op in graph.operators[-len(parameters) :]] == [
        f"update of model.{name}" for name in parameters
    ]


def test_overlap() -> None:
    """Tests that updates behind their all-reduces make pairs unsafe that one stream does not."""
    graph = step(streams="overlap")
    for one, other in pairwise(op for op in graph.operators if op.stream == 1):
        assert one.type == "all_reduce" or "sgd" in (one.type, other.type)
    layout = lay_out(graph)
    conflicts = layout.problem.conflicts.pairs().tolist()
    grouped = {row for rows in layout.problem.groups for row in rows}
    assert any((a in grouped) != (b in grouped) for a, b in conflicts)  # with the compute stream
    assert len(unsafe_pairs(layout)) > len(conflicts)
    assert not lay_out(step(streams="ddp")).problem.has_conflicts  # all wait for the updates


@pytest.mark.parametrize("streams", STREAMS)
def test_nobody_reads_a_parameter_after_its_update(streams: Streams) -> None:
    """Tests that forward and backward pass read parameters only before they change."""
    graph = step(streams=streams)
    base = {view.tensor: view.base for view in graph.views}
    updated: set[int] = set()
    for operator in graph.operators:
        assert not updated & {base.get(index, index) for index in operator.inputs}
        if operator.type == "sgd":
            updated.add(operator.inputs[0])
    assert len(updated) == len(list(net().parameters()))


def test_categories() -> None:
    """Tests that a stream has one category and is full before the next one of it begins."""
    graph = step(streams="category", limit=4)
    category = {"all_reduce": "communication", "sgd": "update"}
    on: dict[int, list[str]] = {}
    for operator in graph.operators:
        on.setdefault(operator.stream, []).append(category.get(operator.type, "compute"))
    assert list(on) == list(range(len(on)))
    assert all(len(set(kinds)) == 1 and len(kinds) <= 4 for kinds in on.values())
    short = Counter(kinds[0] for kinds in on.values() if len(kinds) < 4)
    assert all(count == 1 for count in short.values())
    assert {kinds[0] for kinds in on.values()} == {"compute", "communication", "update"}


def test_adam() -> None:
    """Tests that Adam has two moments of state, and scratch of a parameter's size."""
    graph = step(optimizer="adam")
    for operator in graph.operators:
        if operator.type == "adam":
            parameter, _, *state = (graph.tensors[index] for index in operator.inputs)
            assert operator.workspace == parameter.bytes
            assert [one.bytes for one in state] == [parameter.bytes] * 2
            assert {one.kind for one in state} == {Kind.VARIABLE}
    everything = {*graph.planned, Kind.VARIABLE, Kind.CONSTANT}
    assert lay_out(graph, include=everything).problem.max_load > lay_out(graph).problem.max_load


def test_the_same_graph_each_time_and_in_a_file() -> None:
    """Tests that a step is deterministic, and that a JSON file keeps all of it."""
    graph = step(streams="overlap")
    assert graph == step(streams="overlap")
    assert read_graph(write_graph(graph), "step.json") == graph


def test_without_weights() -> None:
    """Tests that fake weights and inputs give the same graph as real ones."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake, inputs = net(), (torch.ones(16, 32),)
    assert training_step(fake, inputs, bucket_bytes=9000, loss=square) == step()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"optimizer": "lamb"}, 'there is no optimizer "lamb"; choose sgd, adam'),
        ({"streams": "two"}, 'there is no partition into streams "two"; choose ddp, overlap'),
        ({"bucket_bytes": 0}, "bucket_bytes is 0; it must be at least 1"),
        ({"limit": 0}, "limit is 0; it must be at least 1"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], sentence: str) -> None:
    """Tests that unknown names and sizes that hold nothing are refused."""
    with pytest.raises(MemplanError, match=sentence):
        step(**options)


class Words(nn.Module):
    """Words in, a score of each word out: by the same weights, with a head that nothing uses."""

    def __init__(self, shared: bool = True) -> None:
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.norm = nn.BatchNorm1d(8)
        self.scores = nn.Linear(8, 12, bias=False) if shared else None
        if self.scores is not None:
            self.scores.weight = self.words.weight
        self.spare = nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        """Return the scores."""
        y = self.norm(self.words(x))
        return y @ self.words.weight.t() if self.scores is None else self.scores(y)


class Spare(nn.Module):
    """A head that nothing uses, and one that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(32, 4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.unused = nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        """Return what the loss is made of."""
        return self.frozen(self.used(x))


WORDS = torch.arange(6)


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (Words, WORDS),
        (lambda: Words(shared=False), WORDS),
        (Spare, torch.ones(16, 32)),
        (net, torch.arange(512.0).view(16, 32).sin()),
        *(
            (lambda act=act: nn.Sequential(nn.Linear(32, 8), act()), torch.ones(16, 32).cumsum(0))
            for act in (nn.SiLU, nn.Mish)
        ),
    ],
    ids=["shared by modules", "used twice", "spare", "batch norm", "silu", "mish"],
)
def test_a_step_has_the_gradients_of_backward(make: Callable[[], Any], inputs: Any) -> None:
    """Tests all bits of loss, gradients and buffers, and that the same parameters have none."""
    torch.manual_seed(0)
    model = make()
    buffers = {name: each.clone() for name, each in model.named_buffers()}
    program = training_program(model, (inputs,), square)
    for name, each in model.named_buffers():
        assert torch.equal(each, buffers[name])  # a trace changes nothing
    state = program.state_dict
    given = [state.get(spec.target, inputs) for spec in program.graph_signature.input_specs]
    results = program.graph_module(*(each.detach() for each in given))
    loss = square(model(inputs))
    loss.backward()
    wanted = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    gradients, after = {}, {}
    names = {id(each): name for name, each in model.named_parameters()}
    for spec, result in zip(program.graph_signature.output_specs, results, strict=True):
        if spec.kind.name == "LOSS_OUTPUT":
            assert torch.equal(result, loss)
        elif spec.kind.name == "GRADIENT_TO_PARAMETER":
            gradients[names[id(state[spec.target])]] = result
        else:
            after[spec.target.removeprefix("model.")] = result
    assert gradients.keys() == wanted.keys()
    assert all(torch.equal(gradients[name], wanted[name]) for name in wanted)
    assert after.keys() == buffers.keys()
    assert all(torch.equal(after[name], each) for name, each in model.named_buffers())


def test_parameters_without_a_gradient_are_not_updated() -> None:
    """Tests that weights that modules share have one update, and what the loss lacks has none."""
    shared = gradients(training_step(Words(), (WORDS,), loss=square))
    assert shared == {"norm.weight": [32], "norm.bias": [32], "words.weight": [12 * 8 * 4]}
    assert set(gradients(step(Spare()))) == {"used.weight", "used.bias"}


def test_nothing_to_train() -> None:
    """Tests that a model of which nothing is trained is refused, also if none is in the loss."""
    with pytest.raises(MemplanError, match="no parameter of the model is trained"):
        step(net().requires_grad_(False))
    with pytest.raises(MemplanError, match="is trained: the loss depends on none"):
        step(Spare(), loss=lambda result: result.detach().sum())
    with pytest.raises(MemplanError, match="cannot trace a training step"):
        step(loss=lambda result: result)
