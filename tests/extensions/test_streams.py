"""Tests of programs on parallel streams in one slab: equal bits, wrong plans, and errors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
import torch
from simulated_streams import NotingStream, SimulatedQueues
from torch import nn

import memplan
from memplan.base.errors import GraphError, MemplanError, PlanError, UnsupportedError
from memplan.extensions.streams import (
    Program,
    StreamRunner,
    capture_inference,
    capture_training,
    runner,
)
from memplan.extensions.streams.schedule import CudaQueues, launch
from memplan.problem.plan import Plan
from memplan.programs.graph import beyond_lifetimes

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

needs_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

SEEDS = range(10)


class Branches(nn.Module):
    """Three branches of convolutions, which meet at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(3, 8, kernel, padding=kernel // 2),
                nn.ReLU(),
                nn.Conv2d(8, 8, 3, padding=1),
                nn.Tanh(),
                nn.Conv2d(8, 8, 1),
            )
            for kernel in (1, 3, 5)
        )
        self.norm = nn.BatchNorm2d(24)
        self.head = nn.Linear(24, 4)

    def forward(self, x: Any) -> dict[str, Any]:
        """Return scores, and a number."""
        joined = torch.cat([branch(x) for branch in self.branches], dim=1)
        return {"scores": self.head(self.norm(joined).mean((2, 3))), "classes": 4}


class Block(nn.Module):
    """Attention and two dense layers, with sums around both."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(32, 96)
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(2))
        self.dense = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.scale = nn.Parameter(torch.ones(32))

    def forward(self, x: Any) -> Any:
        """Return a tensor of the same shape, (batch, tokens, 32)."""
        query, key, value = self.project(self.norms[0](x)).chunk(3, dim=-1)
        x = x + nn.functional.scaled_dot_product_attention(query, key, value)
        return self.scale * (x + self.dense(self.norms[1](x)))


class Counting(nn.Module):
    """Reads a buffer on one branch, and counts it up on another."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1000))

    def forward(self, x: Any) -> Any:
        """Return the sum of x and the old count."""
        result = (x.sin() + self.count).cos()
        self.count += 1
        return result


def classifier() -> Any:
    """Return a network with weights, biases, norms and their statistics."""
    return nn.Sequential(
        *(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU()),
        *(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)),
    )


def two_blocks() -> Any:
    """Return two blocks of a transformer."""
    return nn.Sequential(Block(), Block())


def square(result: Any) -> Any:
    """Return a loss."""
    return result.square().mean()


@cache
def branches() -> tuple[Any, Any, Program]:
    """Return a model with branches, its input, and both captured."""
    torch.manual_seed(0)
    model, x = Branches().eval(), torch.randn(2, 3, 16, 16)
    return model, x, capture_inference(model, (x,), streams=3)


def plan_of(program: Program) -> Plan:
    """Return a plan of a program."""
    return memplan.solve(program.problem, nodes=2000)


def in_order(program: Program) -> Plan:
    """Return a plan that is right if the operators run one after the other, for the same rows."""
    alone = program.on_streams([0] * len(program.graph.operators))
    plan = plan_of(alone)
    ids = program.problem.ids
    assert ids == alone.problem.ids
    return Plan(ids=ids, size=program.problem.size, offsets=[plan.offset(name) for name in ids])


def same_bits(first: Any, second: Any) -> bool:
    """Whether two tensors have the same shape and bytes."""
    one, other = (t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (first, second))
    return first.shape == second.shape and torch.equal(one, other)


def test_inference_is_bit_equal_under_delays_and_poison() -> None:
    """Tests that branches on streams give the bits of the eager run, in less memory."""
    model, x, program = branches()
    plan = plan_of(program)
    fast = StreamRunner(plan, program)
    assert {operator.stream for operator in program.graph.operators} == {0, 1, 2}
    assert fast.slab_bytes == plan.peak < program.problem.size.sum()
    for seed in SEEDS:
        x = torch.randn_like(x)
        with torch.no_grad():
            wanted = model(x)
        for result in (fast(x), fast.rehearse(x, seed=seed)):
            assert result["classes"] == 4
            assert same_bits(result["scores"], wanted["scores"])


def test_results_do_not_lie_in_the_slab() -> None:
    """Tests that the next call does not change an earlier result."""
    _, x, program = branches()
    fast = StreamRunner(plan_of(program), program)
    first = fast(x)["scores"]
    kept = first.clone()
    fast(x + 1)
    assert same_bits(first, kept)


@pytest.mark.parametrize(
    ("streams", "optimizer", "make"),
    [
        ("one", "sgd", classifier),
        ("ddp", "adam", classifier),
        ("category", "sgd", classifier),
        ("overlap", "adam", two_blocks),
    ],
)
def test_training_is_bit_equal(streams: Any, optimizer: Any, make: Callable[[], Any]) -> None:
    """Tests losses, parameters and buffers of steps against torch's own optimizers."""
    torch.manual_seed(0)
    model = make()
    eager = copy.deepcopy(model)
    shape = (16, 32) if make is classifier else (2, 16, 32)
    program = capture_training(
        model,
        (torch.randn(shape),),
        loss=square,
        optimizer=optimizer,
        lr=0.01,
        bucket_bytes=9000,
        streams=streams,
        limit=20,
    )
    fast = StreamRunner(plan_of(program), program, reduce=lambda bucket: bucket.mul_(0.5))
    torch_has: Any = torch.optim
    updates = (
        torch_has.SGD(eager.parameters(), lr=0.01, momentum=0.9, foreach=False)
        if optimizer == "sgd"
        else torch_has.Adam(eager.parameters(), lr=0.01, foreach=False)
    )
    assert len(program.graph.groups) > 1
    for number in range(4):
        x = torch.randn(shape)
        loss = fast.rehearse(x, seed=number) if number else fast(x)
        updates.zero_grad()
        wanted = square(eager(x))
        wanted.backward()
        for parameter in eager.parameters():
            parameter.grad.mul_(0.5)  # as the all-reduce does
        updates.step()
        assert same_bits(loss, wanted)
        mine, its = model.state_dict(), eager.state_dict()
        assert [name for name in its if not same_bits(mine[name], its[name])] == []


@pytest.mark.parametrize(
    ("first", "training"),
    [
        (nn.BatchNorm2d(3), True),
        (nn.BatchNorm2d(3), False),
        (nn.GroupNorm(3, 3), True),
        (nn.LayerNorm(6), True),
        (nn.ConvTranspose2d(3, 3, 3, padding=1), True),
    ],
)
def test_a_first_layer_makes_no_gradient_of_its_input(
    first: Any, training: bool, tmp_path: Path
) -> None:
    """Tests layers whose backward operator leaves out a result, which has no memory either."""
    torch.manual_seed(0)
    model = nn.Sequential(first, nn.Conv2d(3, 4, 3)).train(training)
    eager = copy.deepcopy(model)
    x = torch.randn(2, 3, 6, 6)
    program = capture_training(model, (x,), loss=square, lr=0.01)
    torch.export.save(program.origin.exported, tmp_path / "step.pt2")
    loaded = memplan.load(tmp_path / "step.pt2").graph
    assert loaded is not None
    for graph in (program.graph, loaded):
        assert not [tensor.name for tensor in graph.tensors if "unused_0" in tensor.name]
    fast = StreamRunner(plan_of(program), program)
    updates = torch.optim.SGD(eager.parameters(), lr=0.01, momentum=0.9, foreach=False)
    for number in range(3):
        loss = fast.rehearse(x, seed=number)
        updates.zero_grad()
        wanted = square(eager(x))
        wanted.backward()
        updates.step()
        assert same_bits(loss, wanted)
        mine, its = model.state_dict(), eager.state_dict()
        assert [name for name in its if not same_bits(mine[name], its[name])] == []


def test_a_shared_weight_is_updated_by_its_gradient() -> None:
    """Tests a step of layers that share a weight, before one of the same size that has another."""
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Linear(6, 6))
    first, second = model[0], model[2]
    second.weight = first.weight
    eager = copy.deepcopy(model)
    x = torch.randn(4, 6)
    program = capture_training(model, (x,), loss=square, lr=0.01)
    fast = StreamRunner(plan_of(program), program)
    updates = torch.optim.SGD(eager.parameters(), lr=0.01, momentum=0.9, foreach=False)
    for number in range(3):
        loss = fast.rehearse(x, seed=number)
        updates.zero_grad()
        wanted = square(eager(x))
        wanted.backward()
        updates.step()
        assert same_bits(loss, wanted)
    mine, its = model.state_dict(), eager.state_dict()
    assert [name for name in its if not same_bits(mine[name], its[name])] == []


def test_a_bucket_is_reduced_at_once() -> None:
    """Tests that the function for all-reduces gets each bucket as one tensor, in its order."""
    program = capture_training(classifier(), (torch.randn(16, 32),), loss=square, bucket_bytes=9000)
    sizes: list[int] = []
    fast = StreamRunner(plan_of(program), program, reduce=lambda one: sizes.append(one.nbytes))
    fast(torch.randn(16, 32))
    tensors = program.graph.tensors
    padded = [
        sum(-(-tensors[index].bytes // 512) * 512 for index in group)
        for group in program.graph.groups
    ]
    assert sorted(sizes) == sorted(padded)


def test_a_plan_for_one_order_is_refused() -> None:
    """Tests that the referee names two tensors of a plan that parallel streams make wrong."""
    _, _, program = branches()
    with pytest.raises(PlanError, match="conflict"):
        StreamRunner(in_order(program), program)


def test_a_plan_for_one_order_gives_wrong_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the same plan without the referee: right in its order, wrong with delays."""
    model, x, program = branches()
    plan = in_order(program)
    monkeypatch.setattr(runner, "verify", lambda *_: None)
    with torch.no_grad():
        wanted = model(x)["scores"]
    alone = program.on_streams([0] * len(program.graph.operators))
    assert same_bits(StreamRunner(plan, alone).rehearse(x)["scores"], wanted)
    wrong = StreamRunner(plan, program)
    right = StreamRunner(plan_of(program), program)
    found = sum(not same_bits(wrong.rehearse(x, seed=s)["scores"], wanted) for s in range(20))
    assert found > 0
    assert all(same_bits(right.rehearse(x, seed=s)["scores"], wanted) for s in range(20))


def test_each_unsafe_pair_is_refused() -> None:
    """Tests plans that are right but for one pair, beyond all lifetimes, that shares memory."""
    _, _, program = branches()
    problem = program.problem
    row_begin, other = beyond_lifetimes(program.layout)
    good = plan_of(program)
    offsets = [good.offset(name) for name in problem.ids]
    top = int(sum(problem.size))
    pairs = 0
    for row in range(len(problem)):
        for second in other[row_begin[row] : row_begin[row + 1]].tolist():
            moved = list(offsets)
            moved[row] = moved[second] = top
            plan = Plan(ids=problem.ids, size=problem.size, offsets=moved)
            with pytest.raises(PlanError, match="conflict"):
                StreamRunner(plan, program)
            pairs += 1
    assert pairs > 10


def test_a_write_waits_for_readers_of_the_old_value() -> None:
    """Tests that a buffer is not counted up before the branch that reads it has done so."""
    model = Counting()
    eager = copy.deepcopy(model)
    x = torch.randn(1000)
    program = capture_inference(model, (x,), streams=2)
    reads, writes = (
        next(one for one in program.graph.operators if name in one.name)
        for name in ("add", "add_1")
    )
    assert reads.stream != writes.stream
    fast = StreamRunner(plan_of(program), program)
    for seed in SEEDS:
        assert same_bits(fast.rehearse(x, seed=seed), eager(x))
        assert same_bits(model.count, eager.count)


def run_simulated(fast: StreamRunner, x: Any, seed: int, *, heed: bool) -> Any:
    """Run a program on a simulated device, in the order of a seed."""
    queues = SimulatedQueues(heed=heed)
    fast._memory.slab.fill_(0xFF)
    fast._take((x,), {})
    launch(
        fast._steps,
        fast._run_late_on_device([0.0] * len(fast._steps), sleep=lambda _: None),
        queues,
    )
    queues.drain(seed)
    return fast._give()["scores"]


def test_a_device_runs_what_its_events_allow() -> None:
    """Tests the queues and events of a device on a simulated one; without events it goes wrong."""
    model, x, program = branches()
    fast = StreamRunner(plan_of(program), program)
    with torch.no_grad():
        wanted = model(x)["scores"]
    assert all(same_bits(run_simulated(fast, x, s, heed=True), wanted) for s in range(50))
    assert not all(same_bits(run_simulated(fast, x, s, heed=False), wanted) for s in range(50))


def test_calls_on_different_streams_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a call comes after the one before it, and memory is kept for both streams."""
    here, there = NotingStream(), NotingStream()
    kept: list[NotingStream] = []
    memory: Any = [type("Block", (), {"record_stream": staticmethod(kept.append)})]
    monkeypatch.setattr(torch.cuda, "Stream", NotingStream)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: here)
    here.do("setup")
    queues = CudaQueues(torch.device("cuda"), {0, 1})
    for number, current in enumerate((here, there, here)):
        monkeypatch.setattr(torch.cuda, "current_stream", lambda _, current=current: current)
        with queues.take_turn(memory):
            current.do(f"inputs {number}")
            with queues:
                for stream, queue in queues._streams.items():
                    earlier = {f"operator {stream} of {n}" for n in range(number)}
                    assert {"setup", f"inputs {number}", *earlier} <= queue.before
                    queue.do(f"operator {stream} of {number}")
            assert {f"operator 0 of {number}", f"operator 1 of {number}"} <= current.before
            current.do(f"results {number}")
        if number:
            assert f"results {number - 1}" in current.before
    assert kept == [there]


@needs_device
def test_inference_on_cuda_streams() -> None:
    """Tests branches on the streams of a device, with delays and poison."""
    torch.manual_seed(0)
    model, x = Branches().eval().cuda(), torch.randn(2, 3, 16, 16, device="cuda")
    program = capture_inference(model, (x,), streams=3)
    fast = StreamRunner(plan_of(program), program)
    for seed in SEEDS:
        with torch.no_grad():
            wanted = model(x)["scores"]
        assert same_bits(fast(x)["scores"], wanted)
        assert same_bits(fast.rehearse(x, seed=seed)["scores"], wanted)


@needs_device
def test_calls_on_two_cuda_streams() -> None:
    """Tests calls whose caller changes the current stream and waits for nothing."""
    torch.manual_seed(0)
    model = Branches().eval().cuda()
    inputs = [torch.randn(2, 3, 16, 16, device="cuda") for _ in range(2)]
    program = capture_inference(model, (inputs[0],), streams=3)
    fast = StreamRunner(plan_of(program), program)
    wanted = [fast(x)["scores"] for x in inputs]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(2)]
    results = []
    for number in range(40):
        with torch.cuda.stream(streams[number % 2]):
            results.append(fast(inputs[number % 2])["scores"])
    torch.cuda.synchronize()
    assert [n for n, one in enumerate(results) if not same_bits(one, wanted[n % 2])] == []


@needs_device
def test_a_graph_of_cuda_streams_replays() -> None:
    """Tests that a call on several streams can be captured into one CUDA graph."""
    torch.manual_seed(0)
    model = Branches().eval().cuda()
    x = torch.randn(2, 3, 16, 16, device="cuda")
    program = capture_inference(model, (x,), streams=3)
    fast = StreamRunner(plan_of(program), program)
    fast(x)  # libraries make their workspaces
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = fast(x)["scores"]
    for _ in range(20):
        x.copy_(torch.randn_like(x))
        graph.replay()
        assert same_bits(result, fast(x)["scores"])


@needs_device
def test_training_on_cuda_streams() -> None:
    """Tests that a step on the streams of a device updates parameters as on one stream."""
    torch.manual_seed(0)
    model = classifier().cuda()
    x = torch.randn(16, 32, device="cuda")
    other = copy.deepcopy(model)
    options: dict[str, Any] = {"loss": square, "bucket_bytes": 9000, "lr": 0.01}
    for one, streams in ((model, "category"), (other, "one")):
        program = capture_training(one, (x,), streams=streams, limit=20, **options)
        fast = StreamRunner(plan_of(program), program)
        for seed in range(3):
            fast.rehearse(x, seed=seed)
    mine, its = model.state_dict(), other.state_dict()
    assert [name for name in its if not same_bits(mine[name], its[name])] == []


def test_errors_of_a_call() -> None:
    """Tests sentences on inputs that are not those that were captured."""
    _, x, program = branches()
    fast = StreamRunner(plan_of(program), program)
    with pytest.raises(MemplanError, match=r"input 0 \(x\) is a float32 tensor of shape \(1, 3"):
        fast(x[:1])
    with pytest.raises(MemplanError, match=r"input 0 .* is a float64 tensor"):
        fast(x.double())
    with pytest.raises(MemplanError, match=r"input 0 .* is a int"):
        fast(3)
    with pytest.raises(MemplanError, match="another structure"):
        fast(x, x)


def test_errors_of_a_plan() -> None:
    """Tests that a plan of another program is refused."""
    _, _, program = branches()
    other = capture_inference(classifier().eval(), (torch.randn(4, 32),))
    with pytest.raises(PlanError, match="is in the problem but not in the plan"):
        StreamRunner(plan_of(other), program)
    with pytest.raises(GraphError, match="each needs a stream"):
        program.on_streams([0])


class Draws(nn.Module):
    """Draws random numbers on two branches."""

    def forward(self, x: Any) -> Any:
        """Return sums of x and random numbers."""
        return torch.rand_like(x) + x.sin() * torch.rand_like(x)


class Attends(nn.Module):
    """Attention on two branches."""

    def forward(self, x: Any) -> Any:
        """Return the sum of two attentions."""
        attention = nn.functional.scaled_dot_product_attention
        return attention(x, x, x) + attention(x.sin(), x.cos(), x)


def test_attention_without_dropout_draws_nothing() -> None:
    """Tests that attention runs on two streams, although the operator can draw random numbers."""
    x = torch.randn(2, 2, 8, 16)
    program = capture_inference(Attends(), (x,), streams=2)
    attentions = [one for one in program.graph.operators if "attention" in one.name]
    assert {one.stream for one in attentions} == {0, 1}
    fast = StreamRunner(plan_of(program), program)
    assert all(same_bits(fast.rehearse(x, seed=seed), Attends()(x)) for seed in range(3))


class Chooses(nn.Module):
    """Runs one of two sub-graphs."""

    def forward(self, x: Any) -> Any:
        """Return the sine or the cosine of x."""
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


class Overwrites(nn.Module):
    """Writes over its input."""

    def forward(self, x: Any) -> Any:
        """Return the sine of x, which becomes zeros."""
        result = x.sin()
        x.zero_()
        return result


def test_errors_of_operators() -> None:
    """Tests sentences on operators that cannot run on streams."""
    x = torch.randn(100)
    program = capture_inference(Draws(), (x,)).on_streams([0, 0, 1, 1, 0])
    with pytest.raises(UnsupportedError, match="draw random numbers on streams 0 and 1"):
        StreamRunner(plan_of(program), program)
    alone = program.on_streams([0] * len(program.graph.operators))
    fast = StreamRunner(plan_of(alone), alone)
    torch.manual_seed(1)
    result = fast(x)
    torch.manual_seed(1)
    assert same_bits(result, Draws()(x))
    program = capture_inference(Chooses(), (x,))
    with pytest.raises(UnsupportedError, match="runs sub-graphs"):
        StreamRunner(plan_of(program), program)
    with pytest.raises(UnsupportedError, match="writes over its input x"):
        capture_inference(Overwrites(), (x,))


def test_errors_of_models() -> None:
    """Tests sentences on models that cannot be captured."""
    x = torch.randn(4, 32)
    with torch.device("meta"):
        empty = classifier()
    with pytest.raises(MemplanError, match="no values"):
        capture_inference(empty, (torch.randn(4, 32, device="meta"),))
    with pytest.raises(MemplanError, match="streams is 0"):
        capture_inference(classifier(), (x,), streams=0)
    with pytest.raises(MemplanError, match="torch cannot export the model"):
        capture_inference(classifier(), (torch.randn(4, 31),))


def test_an_error_of_an_operator_ends_all_streams() -> None:
    """Tests that an operator that fails ends the call, and the next call works."""
    model, x, program = branches()
    failing = [True]

    def fail() -> None:
        if failing.pop():
            raise RuntimeError("out of order")

    fast = StreamRunner(plan_of(program), program)
    action = fast._actions[1]
    fast._actions[1] = lambda: (fail() if failing else None, action())
    with pytest.raises(RuntimeError, match="out of order"):
        fast(x)
    with torch.no_grad():
        assert same_bits(fast(x)["scores"], model(x)["scores"])
