"""Tests of memplan.extensions.slab.slab: what runs from a slab, and that it is right."""

from __future__ import annotations

import copy
import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from slab_models import (  # noqa: E402
    Access,
    Accesses,
    Calls,
    convolutions,
    image,
    missed,
    slab_of,
)
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from memplan.base.errors import MemplanError, PlanError  # noqa: E402
from memplan.extensions.slab import Slab, record  # noqa: E402
from memplan.machine.memories import Memory, assign  # noqa: E402
from memplan.problem.formats.trace_json import read_trace, write_trace  # noqa: E402
from memplan.problem.plan import Plan  # noqa: E402
from memplan.referee.plans import verify  # noqa: E402
from memplan.solvers import solve  # noqa: E402
from memplan_lab.bench import models  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("native", "without_gradients")]


NETWORKS = {
    "resnet": lambda: (models.resnet((1, 1, 1, 1), bottleneck=True), image(32)),
    "mobilenet_v2": lambda: (models.mobilenet_v2(), image(32)),
    "squeezenet": lambda: (models.squeezenet(), image(48, batch=2)),
    "unet": lambda: (models.UNet(3, 2, width=8), image(32)),
    "dcgan": lambda: (models.dcgan(), torch.randn(1, 100, 1, 1)),
    "encoder": lambda: (models.encoder(layers=2, width=64, heads=4), torch.randn(2, 24, 64)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_are_those_of_eager(name: str) -> None:
    """Tests that a network gives the same bits, with all that is planned from the slab."""
    torch.manual_seed(0)
    model, x = NETWORKS[name]()
    model.eval()
    want = model(x)
    trace = record(model, (x,))
    with Slab(solve(trace.problem(), "greedy_by_size"), trace) as fast:
        for _ in range(3):
            assert torch.equal(fast(x), want)
        stats = fast.stats()
    assert stats.calls == 3
    assert stats.hits == 3 * len(trace.planned)
    assert stats.outliving == 3 * (len(trace) - len(trace.planned))
    assert missed(fast) == 0
    assert stats.slabs == 1


def test_two_memories_are_two_blocks() -> None:
    """Tests the bits, and that each planned tensor is in the block and at the place planned."""
    torch.manual_seed(0)
    model, x = NETWORKS["resnet"]()
    model.eval()
    want = model(x)
    trace = record(model, (x,))
    problem = trace.problem()
    fast = Memory("fast", solve(problem).peak // 2 // 64 * 64)
    found = assign(problem, [fast, Memory("slow", read=10, write=10)])
    peaks = [plan.peak for plan in found.plans]
    assert all(peaks)
    seen: set[int] = set()
    for layer in model.modules():
        layer.register_forward_hook(lambda *given: seen.add(given[2].data_ptr()))
    with Slab(found, trace) as slab:
        for _ in range(2):
            assert torch.equal(slab(x), want)
        stats = slab.stats()
    assert stats.hits == 2 * len(trace.planned)
    assert missed(slab) == 0
    assert stats.slab_bytes == sum(peaks)
    offsets = {(at, plan.offset(id)) for at, plan in enumerate(found.plans) for id in plan.ids}
    assert len(offsets) > 4
    unit = 1 << 21  # each block begins at a multiple of it
    blocks = {at // unit for at in seen}
    used = [{at % unit for at in seen if at // unit == block} for block in blocks]
    planned = [{offset for at, offset in offsets if at == memory} for memory in (0, 1)]
    for memory in planned:  # of both memories, one block holds only what was planned there
        assert any(places and places <= memory for places in used)
    with pytest.raises(PlanError, match="fast"):
        Slab(replace(found, plans=found.plans[::-1]), trace)


def watch(slab: Slab, x: Any) -> list[Access]:
    """Return what the operators of a run read and write."""
    with slab, Accesses() as run:
        slab(x)
        assert missed(slab) == 0
    return run.seen


@pytest.mark.parametrize("name", ["resnet", "mobilenet_v2"])
def test_operators_move_the_planned_bytes_in_each_block(name: str) -> None:
    """Tests the bytes of a run, by the addresses of its tensors, against what was planned.

    Where each tensor has its own addresses, they say which buffer it is; so the accesses are known
    with which the choice of memories is made. What kernels take for themselves is in no operator.
    """
    torch.manual_seed(0)
    model, x = NETWORKS[name]()
    trace = record(model.eval(), (x,))
    problem = trace.problem()
    starts = np.cumsum([0, *(-(-problem.size // 64) * 64)])
    id_of = dict(zip(starts.tolist(), problem.ids, strict=False))
    first = watch(Slab(Plan.of(problem, starts[:-1]), trace), x)
    made = [each.address for each in first if each.is_written]
    bases = [made[0] - start for start in id_of]
    base = max(bases, key=lambda base: sum(address - base in id_of for address in made))
    ids = [id_of.get(each.address - base) for each in first]
    counted = dict.fromkeys(problem.ids, (0, 0))
    for id, each in zip(ids, first, strict=True):
        if id is not None:
            reads, writes = counted[id]
            counted[id] = reads + (not each.is_written), writes + each.is_written

    fast = Memory("fast", solve(problem).peak // 2 // 64 * 64)
    found = assign(problem, [fast, Memory("slow", read=10, write=10)], counted)
    offsets = {id: (at, plan.offset(id)) for at, plan in enumerate(found.plans) for id in plan.ids}
    second = watch(Slab(found, trace), x)
    moved, blocks = [[0, 0], [0, 0]], [set[int](), set[int]()]
    for id, each in zip(ids, second, strict=True):
        if id is not None:
            at, offset = offsets[id]
            blocks[at].add(each.address - offset)
            moved[at][each.is_written] += each.bytes
    assert [len(begins) for begins in blocks] == [1, 1]
    assert [tuple(each) for each in moved] == found.count_bytes()
    assert sum(moved[0]) + 10 * sum(moved[1]) == found.traffic
    assert min(moved[1]) > 0


def two_branches() -> Any:
    """Return a network of two branches of different widths, and the order that they run in."""

    def forward(self: Any, x: Any) -> Any:
        out = {}
        for name in self.order:
            convolution, norm = (getattr(self, name + part) for part in ("_conv", "_norm"))
            out[name] = norm(convolution(x))
        return out["a"].sum() + out["b"].sum()

    torch.manual_seed(0)
    model = Calls(
        forward,
        a_conv=nn.Conv2d(3, 8, 3),
        a_norm=nn.BatchNorm2d(8),
        b_conv=nn.Conv2d(3, 24, 3),
        b_norm=nn.BatchNorm2d(24),
    )
    model.order = "ab"
    return model.eval()


def test_branches_may_run_in_another_order() -> None:
    """Tests Figures 3.1 and 3.2 of MemoMalloc: what is matched by order collides, by scope not."""
    model, x = two_branches(), image()
    trace = record(model, (x,))
    # As in the figures: what a convolution makes is gone after the normalisation, so that the two
    # share addresses, from 0 on; everything else has its own.
    unit = 64 * 1024
    offsets, ends = [], {"a_conv": 0, "b_conv": 0, "": 20 * unit}
    for row in trace.planned:
        inner = trace.scopes[row][1][0].removeprefix(".") if len(trace.scopes[row]) > 1 else ""
        name = inner if inner in ends else ""
        offsets.append(ends[name])
        ends[name] += -(-int(trace.size[row]) // 64) * 64
    assert max(ends["a_conv"], ends["b_conv"]) <= 20 * unit
    plan = Plan.of(trace.problem(), offsets)
    verify(trace.problem(), plan)

    model.order = "ba"
    swapped = record(model, (x,)).problem()
    assert sorted(swapped.ids) == sorted(trace.problem().ids)
    assert swapped.ids != trace.problem().ids
    with pytest.raises(PlanError, match="both hold"):
        verify(swapped, Plan.of(swapped, offsets))  # the first gets what the first got, ...
    by_scope = [plan.offset(name) for name in swapped.ids]
    verify(swapped, Plan.of(swapped, by_scope))

    with Slab(plan, trace) as fast:
        for order in ("ab", "ba", "ba", "ab"):
            model.order = order
            assert torch.equal(fast(x), model(x))
        assert fast.stats().hits == 4 * len(trace.planned)
        assert missed(fast) == 0


def test_operators_may_run_in_another_order() -> None:
    """Tests that functions in another order are told apart too, once it has happened."""

    def forward(x: Any, order: str = "ab") -> Any:
        steps = [lambda: torch.sin(x), lambda: torch.cos(torch.cat([x, x]))]
        out = [step() for step in (steps if order == "ab" else reversed(steps))]
        return sum(part.sum() for part in out)

    x = torch.randn(5000)
    trace = record(forward, (x,))
    offsets = [row * 64 * 1024 for row in range(len(trace.planned))]
    with Slab(Plan.of(trace.problem(), offsets), trace) as fast:
        fast(x)
        assert missed(fast) == 0
        assert torch.equal(fast(x, "ba"), forward(x, "ba"))
        seen = fast.stats()
        assert missed(fast) > 0
        for order in ("ba", "ab", "ba"):
            assert torch.equal(fast(x, order), forward(x, order))
        after = fast.stats().since(seen)
        # The names of sums are the same in either order; what comes first is the first.
        assert after.unknown == after.resized == 0
        assert after.hits == 3 * len(trace.planned)


def test_other_sizes_fall_back() -> None:
    """Tests that what is larger than recorded takes ordinary memory, counted, and is right."""
    model = convolutions().__getitem__(slice(0, -2))
    trace = record(model, (image(16),))
    with Slab(solve(trace.problem()), trace) as fast:
        assert torch.equal(fast(image(32)), model(image(32)))
        stats = fast.stats()
        assert stats.resized > 0
        assert stats.other_bytes > 0
        assert stats.hits + stats.outliving + stats.resized + stats.unknown >= len(trace)
        # Back at the recorded size everything has its place again.
        assert torch.equal(fast(image(16)), model(image(16)))
        assert fast.stats().since(stats).hits == len(trace.planned)


def test_an_allocation_more_falls_back() -> None:
    """Tests that what was not recorded takes ordinary memory, and disturbs nothing but once."""

    def forward(self: Any, x: Any) -> Any:
        if self.more:
            x = x + torch.ones(1000).mean()
        return self.chain(x)

    model = Calls(forward, chain=convolutions())
    model.more = False
    x = image()
    model(x)
    trace = record(model, (x,))
    with Slab(solve(trace.problem()), trace) as fast:
        model.more = True
        assert torch.equal(fast(x), model(x))
        first = fast.stats()
        assert first.unknown >= 3
        assert torch.equal(fast(x), model(x))
        second = fast.stats().since(first)
        assert second.hits == len(trace.planned)
        assert second.unknown == first.unknown
        assert second.occupied == second.resized == 0


@dataclass
class Answer:
    """What some models return."""

    logits: Any
    more: dict[str, Any]


def test_what_is_returned_is_never_in_the_slab(native: Any) -> None:
    """Tests other control flow than recorded: results are moved out, with all that views them."""

    def forward(self: Any, x: Any) -> Any:
        hidden = self.conv(x)
        if self.early:
            flat = hidden.view(-1)
            more = {"views": [flat[10:], (hidden.transpose(1, 2),)], "number": 3}
            more["itself"] = more
            return Answer(hidden, more)
        return functional.relu(hidden).sum()

    model = Calls(forward, conv=nn.Conv2d(3, 8, 3))
    model.early = False
    x = image()
    want = model.conv(x)
    with slab_of(model, x) as fast:
        model.early = True
        for _ in range(2):
            answer = fast(x)
            flat, (turned,) = answer.more["views"]
            for tensor in (answer.logits, flat, turned):
                assert not native.is_in_slab(tensor.data_ptr())
            assert torch.equal(answer.logits, want)
            assert torch.equal(turned, want.transpose(1, 2))
            flat.zero_()
            left = want.reshape(-1).clone()
            left[10:] = 0
            assert torch.equal(turned.transpose(1, 2).reshape(-1), left)  # it is one memory still
        assert missed(fast) == 0
        assert fast.stats().slabs == 1


def test_a_model_may_return_its_input() -> None:
    """Tests that what was not made in the call stays where it is."""
    x = image()
    with slab_of(Calls(lambda self, x: (x, x[0])), x) as fast:
        same, view = fast(x)
        assert same is x
        assert view.data_ptr() == x.data_ptr()


def test_other_models_can_be_bound() -> None:
    """Tests that a plan serves all models of the architecture, and keeps them apart."""
    x = image()
    first = convolutions()
    with slab_of(first, x) as fast:
        second = copy.deepcopy(first)
        second[0].weight.mul_(2)
        bound = fast(second)
        assert fast(second) is bound
        for _ in range(2):
            assert torch.equal(bound(x), second(x))
            assert torch.equal(fast(x), first(x))
        assert fast.stats().calls == 4
        assert missed(fast) == 0


def test_a_trace_from_a_file_has_no_model() -> None:
    """Tests that a trace that was written down serves as well, when a model is bound."""
    model, x = convolutions(), image()
    model(x)
    trace = read_trace(write_trace(record(model, (x,))), "trace.json")
    plan = solve(trace.problem())
    with Slab(plan, trace) as fast:
        with pytest.raises(MemplanError, match=r"bind one first: slab\(model\)"):
            fast(x)
        assert torch.equal(fast(model)(x), model(x))
    with Slab(plan, trace, model) as fast:
        assert torch.equal(fast(x), model(x))
        assert missed(fast) == 0


def test_a_model_is_as_before() -> None:
    """Tests that frames go when slabs close, in any order, and forwards that were there stay."""
    model, x = convolutions(), image()
    model(x)
    mine = model[1].forward

    def forward(value: Any) -> Any:
        return mine(value)

    model[1].forward = forward
    one, two, three = (slab_of(model, x) for _ in range(3))
    runs = [slab.bind(model) for slab in (one, two, three)]
    for slab, run in zip((two, one, three), (runs[1], runs[0], runs[2]), strict=True):
        want = model(x)
        assert torch.equal(run(x), want)
        assert missed(slab) == 0
        slab.close()
    assert "forward" not in model.__dict__
    assert "forward" not in model[0].__dict__
    assert model[1].__dict__["forward"] is forward


def test_a_bound_model_can_be_copied() -> None:
    """Tests that copies and pickles of a bound model are models of their own."""
    model, x = convolutions(), image()
    with slab_of(model, x) as fast:
        want = fast(x)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for copied in (copy.deepcopy(model), torch.load(file, weights_only=False)):
            model[0].weight.data.neg_()
            assert torch.equal(copied(x), want)
            model[0].weight.data.neg_()
            assert fast(copied)(x).equal(want)
        model[2].forward = functional.relu  # it has no `__self__`
        with slab_of(model, x) as other:
            other(x)
            assert copy.deepcopy(model)[2].forward is functional.relu


def test_the_profiler_sees_allocations() -> None:
    """Tests that memory profiles count what is in the slab, as they do without."""
    model, x = convolutions(), image()

    def memory(run: Any) -> list[int]:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            run(x)
        return sorted(
            event.nbytes() for event in profiler.profiler.kineto_results.events() if event.nbytes()
        )

    with slab_of(model, x) as fast:
        fast(x)
        hits = fast.stats().hits
        assert memory(fast) == memory(model)
        assert fast.stats().hits == 2 * hits


def test_refusals() -> None:
    """Tests the sentences on plans of other traces, closed slabs and limits."""
    model, x = convolutions(), image()
    model(x)
    trace = record(model, (x,))
    plan = solve(trace.problem())
    larger = record(model[:-2], (image(24),))
    with pytest.raises(PlanError, match=r"in the plan but|is in the problem but"):
        Slab(plan, larger)
    with pytest.raises(PlanError, match="no offsets"):
        Slab(Plan.of(trace.problem(), None), trace)
    with pytest.raises(MemplanError, match="slabs is 0"):
        Slab(plan, trace, slabs=0)
    fast = Slab(plan, trace)
    run = fast.bind(model)
    run(x)
    fast.close()
    fast.close()
    assert fast.stats().calls == 1
    for use in (fast, run):
        with pytest.raises(MemplanError, match="this slab is closed"):
            use(x)
    with pytest.raises(MemplanError, match="this slab is closed"):
        fast.open()
