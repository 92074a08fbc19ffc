"""Tests of plans for every batch size: derived as recorded, run bit for bit as without."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")
import torch
from torch import nn

import memplan
from memplan.base.errors import FamilyError, MemplanError
from memplan.extensions.slab import Batches, Slab, record
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.problem.trace import Trace

pytestmark = pytest.mark.slow

Inputs = Callable[[int], Any]

needs_compiler = pytest.mark.usefixtures("native")


class Scores(nn.Module):
    """Compares all samples of a batch with one another, as no network that is served should."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(16, 16)
        self.mix = Mix()

    def forward(self, x: Any) -> Any:
        """Return every sample, mixed with those that are like it."""
        return self.mix(torch.relu(self.project(x)))


class Mix(nn.Module):
    """Attention over the batch."""

    def forward(self, x: Any) -> Any:
        """Return the same, mixed."""
        return torch.softmax(x @ x.T, -1) @ x


class Encoder(nn.Module):
    """Two layers of a transformer, called with time first and by name."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, *, tokens: Any, scale: Any) -> Any:
        """Return what is said of every token."""
        return self.layers(tokens) * scale


def convnet() -> tuple[Any, Inputs]:
    """Return a network of convolutions, normalization and pooling, and its inputs."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    ).eval()
    return model, lambda batch: torch.randn(batch, 3, 48, 48)


def encoder() -> tuple[Any, Inputs]:
    """Return a transformer whose batch is the second dimension of an argument by name."""
    torch.manual_seed(0)
    return Encoder().eval(), lambda batch: {
        "scale": torch.ones(1),
        "tokens": torch.randn(9, batch, 32),
    }


def decoder() -> tuple[Any, Inputs]:
    """Return transposed convolutions, as in generators of pictures."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.ConvTranspose2d(20, 32, 4),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 3, 4, 2, 1),
        nn.Tanh(),
    ).eval()
    return model, lambda batch: (torch.randn(batch, 20, 1, 1),)


NETWORKS = [convnet, encoder, decoder]
Network = Callable[[], tuple[Any, Inputs]]


@functools.cache
def recorded(network: Network) -> tuple[Any, Inputs, Batches]:
    """Return a network, its inputs, and its plans: all of them, for tests to share."""
    model, make_inputs = network()
    return model, make_inputs, Batches.record(model, make_inputs, plans=8)


def called(model: Any, inputs: Any) -> Any:
    """Return what a model makes of inputs as `make_inputs` gives them."""
    with torch.no_grad():
        if isinstance(inputs, dict):
            return model(**inputs)
        return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def columns(trace: Trace) -> list[list[Any]]:
    """Return all of a trace that a plan and a run depend on."""
    arrays = (trace.start, trace.end, trace.size, trace.outlives, trace.ordinal, trace.thread)
    return [list(trace.scopes), *(array.tolist() for array in arrays)]


@pytest.mark.parametrize("network", NETWORKS)
def test_derived_is_as_recorded(network: Network) -> None:
    """Tests, at batch sizes that no plan knows, that all of a trace is as if it were recorded."""
    model, make_inputs, batches = recorded(network)
    assert batches.family.misfits == ()
    assert batches.family.at(2).size.sum() > batches.family.at(1).size.sum()
    for batch in (3, 11):
        assert columns(batches.family.at(batch)) == columns(record(model, make_inputs(batch)))


def test_recorded_batch_sizes_have_their_recordings() -> None:
    """Tests that a bucket is planned by what was recorded, and others by what was derived."""
    model, make_inputs, batches = recorded(convnet)
    for bucket in (1, 4):
        assert columns(batches.at(bucket)) == columns(record(model, make_inputs(bucket)))
        assert batches.at(bucket).about["inputs"].startswith(f"{bucket}x3")
    assert batches.at(16).about["batch"] == "16"


def test_what_grows_otherwise_is_named() -> None:
    """Tests that the sentence has the module, the operator, and the sizes that were seen."""
    with pytest.raises(FamilyError) as error:
        Batches.record(Scores().eval(), lambda batch: torch.randn(batch, 16))
    sentence = str(error.value)
    assert ".mix/aten::matmul/aten::mm#0 does not grow as base + slope * batch" in sentence
    assert "(bytes at batch size: 16 at 2, 64 at 4, 256 at 8)" in sentence
    assert "strict=False" in sentence


@needs_compiler
def test_what_grows_otherwise_may_have_ordinary_memory() -> None:
    """Tests results and counts of a network of which one part is as it should not be."""
    model = Scores().eval()
    with Batches.record(model, lambda n: torch.randn(n, 16), strict=False) as fast:
        misfits = [misfit.id for misfit in fast.family.misfits]
        assert [name.split("/")[0] for name in misfits] == [".mix"] * len(misfits)
        for batch, unknown in ((16, len(misfits)), (4, 0)):
            x = torch.randn(batch, 16)
            called(fast, x)  # may find out that modules alone do not tell allocations apart
            before = fast.stats()
            assert torch.equal(called(fast, x), called(model, x))
            assert fast.stats().since(before).unknown == unknown


@needs_compiler
@pytest.mark.parametrize("network", NETWORKS)
def test_outputs_are_those_without(network: Network) -> None:
    """Tests bits, buckets and counts at batch sizes that are recorded, smaller, and derived."""
    model, make_inputs, fast = recorded(network)
    with fast:
        for batch in (1, 2, 3, 5, 8, 9, 16, 24):
            inputs = make_inputs(batch)
            expected = called(model, inputs)
            for _ in range(2):
                assert torch.equal(called(fast, inputs), expected)
        assert fast.buckets == (1, 2, 4, 8, 16, 32)
        stats = fast.stats()
        assert stats.calls == 16
        assert stats.hits > 0
        assert (stats.unknown, stats.resized, stats.occupied) == (0, 0, 0)
    assert called(model, inputs).equal(expected)


@needs_compiler
def test_the_bucket_used_longest_ago_goes() -> None:
    """Tests what is kept, what is planned again, and that counts outlive their bucket."""
    model, make_inputs = convnet()
    planned: list[int] = []

    def planner(problem: Problem) -> Plan:
        planned.append(int(problem.size.sum()))
        return memplan.solve(problem, "greedy")

    with Batches.record(model, make_inputs, plans=2, planner=planner) as fast:
        assert (fast.buckets, planned) == ((), [])
        for batch, kept in [(1, (1,)), (2, (1, 2)), (1, (2, 1)), (4, (1, 4)), (3, (1, 4))]:
            called(fast, make_inputs(batch))
            assert fast.buckets == kept
        assert len(planned) == 3
        called(fast, make_inputs(2))
        assert fast.buckets == (4, 2)
        assert planned[3] == planned[1]
        assert fast.stats().calls == 6
    assert fast.buckets == ()
    assert fast.stats().calls == 6


@needs_compiler
def test_threads_may_ask_for_many_batch_sizes_at_once() -> None:
    """Tests results while buckets come and go, and that no bucket is planned twice at a time."""
    model, make_inputs = convnet()
    inputs = {batch: make_inputs(batch) for batch in (1, 2, 3, 5)}
    expected = {batch: called(model, x) for batch, x in inputs.items()}
    wrong: list[object] = []

    def work(turn: int) -> None:
        try:
            for at in range(12):
                batch = (1, 2, 3, 5)[(turn + at) % 4]
                if not torch.equal(called(fast, inputs[batch]), expected[batch]):
                    wrong.append(batch)
        except Exception as error:  # would be lost with its thread
            wrong.append(error)

    with Batches.record(model, make_inputs, plans=1) as fast:
        threads = [threading.Thread(target=work, args=(turn,)) for turn in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert fast.stats().calls == 48
        assert len(fast.buckets) == 1
    assert all("forward" not in module.__dict__ for module in model.modules())


@needs_compiler
@pytest.mark.parametrize("moment", ["planning", "calling"])
def test_closing_during_a_call(moment: str) -> None:
    """Tests that the call ends as ever, is counted, and leaves nothing of ours on the model."""
    model, make_inputs = convnet()
    x = make_inputs(2)
    expected = called(model, x)

    def planner(problem: Problem) -> Plan:
        if moment == "planning":
            fast.close()
        return memplan.solve(problem, "greedy")

    fast = Batches.record(model, make_inputs, planner=planner)
    if moment == "calling":
        model.register_forward_pre_hook(lambda *_: fast.close())
    assert torch.equal(called(fast, x), expected)
    assert fast.buckets == ()
    assert fast.stats().calls == 1
    assert fast.stats().hits > 0
    assert all("forward" not in module.__dict__ for module in model.modules())


@needs_compiler
def test_a_planner_that_fails_is_asked_again() -> None:
    """Tests that its error comes out, and that the next call finds everything in order."""
    model, make_inputs = convnet()
    answers: list[Callable[[Problem], Plan]] = [memplan.solve]

    def planner(problem: Problem) -> Plan:
        if not answers:
            answers.append(memplan.solve)
            raise RuntimeError("not today")
        return answers.pop()(problem)

    answers.clear()
    with Batches.record(model, make_inputs, planner=planner) as fast:
        with pytest.raises(RuntimeError, match="not today"):
            called(fast, make_inputs(2))
        called(fast, make_inputs(2))
        assert fast.stats().calls == 1


@needs_compiler
def test_a_smaller_batch_has_the_ranges_of_a_larger() -> None:
    """Tests that the profiler sees as many bytes come as go, and those that were asked for."""
    model, make_inputs = convnet()
    trace = record(model, make_inputs(4))
    small = make_inputs(2)
    plain = record(model, small)
    with Slab(memplan.solve(trace.problem()), trace) as fast:
        called(fast, small)
        assert fast.stats().hits == len(plain.planned)
        seen = record(lambda x: fast(x), small)
        assert sorted(seen.size.tolist()) == sorted(plain.size.tolist())
        assert seen.outlives.sum() == plain.outlives.sum()


class Attention(nn.Module):
    """Attention over tokens, whose scores grow with their square."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, x: Any) -> Any:
        """Return each token, mixed with those that it attends to."""
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 16).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = (q @ k.transpose(-2, -1)).softmax(-1) @ v
        return x + self.out(mixed.transpose(1, 2).reshape(x.shape))


def tokens_of(batch: int, tokens: int) -> Any:
    """Return so many rows of so many tokens."""
    return torch.randn(batch, tokens, 32)


@needs_compiler
def test_attention_over_tokens_has_plans_for_every_size() -> None:
    """Tests bits, traces and buckets of two dimensions, in one of which bytes grow as squares."""
    torch.manual_seed(0)
    model = nn.Sequential(Attention(), nn.ReLU(), Attention()).eval()
    sizes = {"batch": (2, 4), "tokens": (8, 16, 24)}
    with Batches.record(model, tokens_of, sizes, {"batch": 8, "tokens": 40}, plans=8) as fast:
        assert fast.family.misfits == ()
        for size in ((3, 40), (7, 33)):
            assert columns(fast.family.at(size)) == columns(record(model, tokens_of(*size)))
        for size in ((2, 8), (3, 16), (5, 33), (2, 100), (4, 64), (3, 50)):
            x = tokens_of(*size)
            expected = called(model, x)
            for _ in range(2):
                assert torch.equal(called(fast, x), expected)
        assert fast.buckets == ((2, 8), (4, 16), (8, 64), (2, 128), (4, 64))
        stats = fast.stats()
        assert stats.hits > 0
        assert (stats.unknown, stats.resized, stats.occupied) == (0, 0, 0)


def test_squares_that_are_recorded_at_two_sizes_are_named() -> None:
    """Tests the sentence about tokens whose square is not asked for."""
    model = Attention().eval()
    with pytest.raises(FamilyError) as error:
        Batches.record(
            model, tokens_of, {"batch": (2, 4), "tokens": (8, 16)}, {"batch": 8, "tokens": 40}
        )
    sentence = str(error.value)
    assert "does not grow as a polynomial of degree 1 in batch, 1 in tokens" in sentence
    assert "bytes at batch, tokens: 1024 at (2, 8)" in sentence


@pytest.mark.parametrize(
    ("sizes", "check", "words"),
    [
        ({"batch": (2, 4)}, 8, 'value of each dimension: "batch"'),
        ((2, 4), {"batch": 8}, "check names dimensions"),
        ({"batch": (2, 4), "tokens": (8, 16)}, {"batch": 8}, '"batch", "tokens"'),
        ({"batch": (2,), "tokens": (8, 16)}, {"batch": 8, "tokens": 9}, 'sizes (2,) of "batch"'),
        ({"batch": (2, 4), "tokens": (8, 9)}, {"batch": 8, "tokens": 9}, "another one to check"),
        ({}, {}, "value of each dimension"),
    ],
)
def test_dimensions_that_check_nothing_are_refused(sizes: Any, check: Any, words: str) -> None:
    """Tests dimensions without enough values, or without one to check."""
    with pytest.raises(FamilyError, match=re.escape(words)):
        Batches.record(Attention().eval(), tokens_of, sizes, check)


def test_a_dimension_that_no_input_has_is_refused() -> None:
    """Tests a name whose value is the size of nothing."""
    with pytest.raises(FamilyError, match=r"no tensor that make_inputs makes has .* the tokens"):
        Batches.record(
            Attention().eval(),
            lambda batch, tokens: tokens_of(batch, 5),
            {"batch": (2, 4), "tokens": (8, 16)},
            {"batch": 3, "tokens": 9},
        )


@pytest.mark.parametrize("make_inputs", [lambda _: torch.randn(3, 16), lambda _: ()])
def test_inputs_without_a_batch_are_refused(make_inputs: Inputs) -> None:
    """Tests inputs that do not grow, and none at all."""
    with pytest.raises(FamilyError, match="no tensor that make_inputs makes"):
        Batches.record(nn.Linear(16, 16), make_inputs)


def test_inputs_of_another_structure_are_refused() -> None:
    """Tests a call without the tensor that says the batch size, and one of too few dimensions."""
    _, _, fast = recorded(encoder)
    for inputs in ({"scale": torch.ones(1)}, {"scale": torch.ones(1), "tokens": torch.ones(9)}):
        with pytest.raises(FamilyError, match="no dimension 1 of tensor 1"):
            fast(**inputs)


@pytest.mark.parametrize("sizes", [(2, 2, 8), (2, 4, 4), (0, 2, 4)])
def test_batch_sizes_that_check_nothing_are_refused(sizes: tuple[int, int, int]) -> None:
    """Tests sizes that are the same, and none."""
    with pytest.raises(FamilyError, match="three different ones"):
        Batches.record(nn.Linear(2, 2), lambda n: torch.ones(n, 2), sizes[:2], sizes[2])


def test_a_cache_of_nothing_is_refused() -> None:
    """Tests `plans=0`."""
    with pytest.raises(MemplanError, match="plans is 0"):
        Batches.record(nn.Linear(2, 2), lambda n: torch.ones(n, 2), plans=0)
