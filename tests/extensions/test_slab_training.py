"""Tests of training from the slab: recorded steps with their backward pass and optimizer."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from slab_models import Calls, convolutions, image, missed, require_slab  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from memplan.base.errors import MemplanError  # noqa: E402
from memplan.extensions.slab import Batches, Slab, record  # noqa: E402
from memplan.extensions.slab.extension import load  # noqa: E402
from memplan.problem import Problem  # noqa: E402
from memplan.solvers import solve  # noqa: E402
from memplan_lab.bench import models  # noqa: E402

pytestmark = pytest.mark.slow

StepFunction = Callable[..., Any]
STEPS = 4


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    require_slab()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def make_step(
    model: Any,
    optimizer: str = "SGD",
    *,
    releases: bool = False,
    loss: Callable[[Any], Any] = lambda out: out.square().mean(),
    **options: Any,
) -> StepFunction:
    """Return a training step; `releases` is whether it releases the gradients at its end."""
    updates = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01, **options)

    def step(*inputs: Any) -> Any:
        updates.zero_grad()
        value = loss(model(*inputs))
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        updates.step()
        if releases:
            updates.zero_grad()
        return value.detach()

    return step


def list_state(model: Any) -> list[Any]:
    """Return parameters, buffers and gradients of a model."""
    gradients = [parameter.grad for parameter in model.parameters()]
    return [*model.parameters(), *model.buffers(), *(g for g in gradients if g is not None)]


def are_equal(first: Any, second: Any) -> bool:
    """Whether two models have the same bits."""
    pairs = zip(list_state(first), list_state(second), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def checkpointed() -> Any:
    """Return a network that runs a part of its forward pass again in the backward pass."""
    body = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.2))

    def forward(self: Any, x: Any) -> Any:
        return self.head(checkpoint(self.body, x, use_reentrant=False))

    return Calls(forward, body=body, head=nn.Linear(64, 8))


NETWORKS = {
    "convolutions": lambda: (convolutions(), image(batch=2)),
    "resnet": lambda: (models.resnet((1, 1, 1, 1), bottleneck=True), image(32, batch=2)),
    "mobilenet_v2": lambda: (models.mobilenet_v2(), image(32, batch=2)),
    "squeezenet": lambda: (models.squeezenet(), image(48, batch=2)),
    "unet": lambda: (models.UNet(3, 2, width=8), image(32)),
    "dcgan": lambda: (models.dcgan(16), torch.randn(2, 100, 1, 1)),
    "encoder": lambda: (models.encoder(layers=2, width=64, heads=4), torch.randn(2, 24, 64)),
    "checkpointed": lambda: (checkpointed(), torch.randn(4, 64)),
}
OPTIMIZERS = [
    ("SGD", {"momentum": 0.9}),
    ("Adam", {"foreach": False}),
    ("AdamW", {"foreach": True}),
    ("RMSprop", {}),
]


def make(name: str) -> tuple[Any, Any]:
    """Return a network in training, whose lazy layers have their sizes, and its input."""
    torch.manual_seed(0)
    model, x = NETWORKS[name]()
    with torch.no_grad():
        model.eval()(x)
    return model.train(), x


def check_steps(
    model: Any, x: Any, make_step: Callable[[Any], StepFunction], solver: str = "greedy_by_size"
) -> Slab:
    """Train two equal models, eager and from a slab; require the same bits, and no miss."""
    twin = copy.deepcopy(model)
    ours, theirs = make_step(model), make_step(twin)
    torch.manual_seed(1)  # for dropout
    trace = record(ours, (x,), trains=model)  # two steps: one to warm up, one recorded
    problem = trace.problem()
    plan = solve(problem, solver, nodes=20_000 if solver == "auto" else None)
    with Slab(plan, trace) as fast:
        losses = [fast(x) for _ in range(STEPS)]
        stats = fast.stats()
    torch.manual_seed(1)
    wanted = [theirs(x) for _ in range(2 + STEPS)][2:]
    assert all(torch.equal(a, b) for a, b in zip(losses, wanted, strict=True))
    assert are_equal(model, twin)
    assert stats.calls == STEPS
    assert stats.hits == STEPS * len(trace.planned)
    assert stats.hit_bytes == STEPS * trace.size[trace.planned].sum()
    assert stats.outliving == STEPS * trace.outlives.sum()
    assert stats.other_bytes == STEPS * trace.size[trace.outlives].sum()
    assert missed(fast) == 0
    assert stats.slabs == 1
    assert stats.slab_bytes == plan.peak
    return fast


@pytest.mark.parametrize("releases", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_training_is_that_of_eager(name: str, releases: bool) -> None:
    """Tests that gradients, parameters and losses have the same bits, all of it as planned."""
    model, x = make(name)
    check_steps(model, x, lambda each: make_step(each, "SGD", momentum=0.9, releases=releases))


@pytest.mark.parametrize(("optimizer", "options"), OPTIMIZERS, ids=lambda value: str(value))
def test_optimizers_run_from_the_slab(optimizer: str, options: dict[str, Any]) -> None:
    """Tests that their state, made in the first step, is not in the slab, and all else is."""
    model, x = make("convolutions")
    check_steps(model, x, lambda each: make_step(each, optimizer, **options))


def max_load_of_whole_units(problem: Problem, unit: int) -> int:
    """Return the load if each buffer took whole units, which is what alignment may cost."""
    size = -(-problem.size // unit) * unit
    return Problem.from_arrays(problem.start, problem.end, size).max_load


def test_the_peak_is_the_load() -> None:
    """Tests that a step has no fragmentation: the slab is what lives at the worst moment."""
    model, x = make("resnet")
    step = make_step(model, "Adam", releases=True)
    trace = record(step, (x,), trains=model)
    plan = solve(trace.problem(), nodes=20_000)
    assert plan.peak == plan.lower_bound  # no plan is smaller
    assert plan.peak <= max_load_of_whole_units(trace.problem(), trace.alignment)
    with Slab(plan, trace) as fast:
        for _ in range(20):
            fast(x)
        stats = fast.stats()
    assert (stats.slabs, stats.slab_bytes) == (1, plan.peak)
    assert stats.hits == 20 * len(trace.planned)
    assert trace.outlives.sum() == 1  # the loss
    assert stats.other_bytes == 20 * 4


def test_a_recording_names_modules_and_nodes() -> None:
    """Tests that forward passes are in the scopes of modules, and backward passes in nodes."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    step = make_step(model)
    trace = record(step, (torch.randn(4, 8),), trains=model)
    assert ".0/aten::linear/aten::addmm#0" in trace.ids
    assert "ReluBackward0/aten::threshold_backward#0" in trace.ids
    assert "AddmmBackward0/aten::mm#0" in trace.ids
    assert trace.about["mode"] == "training step"
    assert set(trace.thread.tolist()) == {0}
    gradients = [at for at, late in zip(trace.ids, trace.outlives, strict=True) if late]
    assert sum("Backward0" in at for at in gradients) == 2


def test_gradients_outlive_a_step_that_keeps_them() -> None:
    """Tests that gradients are in ordinary memory, and can be read after the slab is gone."""
    model, x = make("convolutions")
    slab = check_steps(model, x, make_step)
    native = load()
    assert slab.stats().calls == STEPS
    for parameter in model.parameters():
        assert not native.is_in_slab(parameter.grad.data_ptr())
        assert bool(parameter.grad.isfinite().all())


def test_a_step_may_keep_the_gradients_that_were_released_when_recorded() -> None:
    """Tests that gradients which stay alive in a slab keep their bytes, and that slab."""
    model, x = make("convolutions")
    releases = [True]
    twin = copy.deepcopy(model)

    def step_of(trained: Any) -> StepFunction:
        def step(value: Any) -> Any:
            loss = trained(value).square().mean()
            loss.backward()
            if releases[0]:
                trained.zero_grad()
            return loss.detach()

        return step

    ours, theirs = step_of(model), step_of(twin)
    trace = record(ours, (x,), trains=model, warmup=0)
    releases[0] = False
    with Slab(solve(trace.problem(), "greedy_by_size"), trace) as fast:
        for _ in range(3):  # gradients add up
            fast(x)
    releases[0] = True
    theirs(x)
    releases[0] = False
    for _ in range(3):
        theirs(x)
    assert are_equal(model, twin)


def test_a_loss_with_its_graph_may_be_returned() -> None:
    """Tests that a loss which is not detached is ordinary memory, and holds no slab."""
    model, x = make("convolutions")

    def step(value: Any) -> Any:
        model.zero_grad()
        loss = model(value).square().mean()
        loss.backward()
        return loss

    trace = record(step, (x,), trains=model)
    with Slab(solve(trace.problem(), "greedy_by_size"), trace) as fast:
        kept = [fast(x) for _ in range(3)]
        assert fast.stats().slabs == 1
        assert missed(fast) == 0
    assert all(loss.grad_fn is not None for loss in kept)


@pytest.mark.parametrize("name", ["convolutions", "encoder", "checkpointed"])
def test_other_shapes_are_right_and_do_not_spoil_the_next_step(name: str) -> None:
    """Tests a step of another batch size: safe, counted, and hits again afterwards.

    After the first miss, keys contain operators and nodes, and all of them are found by these.
    """
    model, x = make(name)
    larger = torch.cat([x, x, x])
    twin = copy.deepcopy(model)
    ours, theirs = make_step(model), make_step(twin)
    torch.manual_seed(1)
    trace = record(ours, (x,), trains=model)
    with Slab(solve(trace.problem(), "greedy_by_size"), trace) as fast:
        fast(larger)
        stats = fast.stats()
        assert stats.resized > 0
        before = stats
        for _ in range(3):
            fast(x)
        after = fast.stats().since(before)
    assert after.hits == 3 * len(trace.planned)
    assert (after.unknown, after.resized, after.occupied) == (0, 0, 0)
    torch.manual_seed(1)
    for value in (x, x, larger, x, x, x):
        theirs(value)
    assert are_equal(model, twin)


def test_branches_may_run_in_another_order() -> None:
    """Tests that steps whose parts change places are right, and never worse than ordinary."""

    def forward(self: Any, x: Any) -> Any:
        out = {name: getattr(self, name)(x).relu() for name in self.order}
        return out["a"].sum() + out["b"].sum()

    torch.manual_seed(0)
    model = Calls(forward, a=nn.Conv2d(3, 8, 3), b=nn.Conv2d(3, 24, 3))
    model.order = "ab"
    twin = copy.deepcopy(model)
    ours, theirs = make_step(model), make_step(twin)
    x = image()
    trace = record(ours, (x,), trains=model)
    with Slab(solve(trace.problem(), "greedy_by_size"), trace) as fast:
        for order in ("ba", "ab", "ba"):
            model.order = order
            fast(x)
        assert fast.stats().slabs == 1
    for order in ("ab", "ab", "ba", "ab", "ba"):
        twin.order = order
        theirs(x)
    assert are_equal(model, twin)


def test_another_model_may_be_trained() -> None:
    """Tests `bind` with a step of another model of the same architecture."""
    model, x = make("convolutions")
    trace = record(make_step(model), (x,), trains=model)
    other, twin = copy.deepcopy(model), copy.deepcopy(model)
    with Slab(solve(trace.problem(), "greedy_by_size"), trace) as slab:
        fast = slab.bind(make_step(other), trains=other)
        for _ in range(2):
            fast(x)
        assert slab.stats().hits == 2 * len(trace.planned)
        assert missed(slab) == 0
    step = make_step(twin)
    for _ in range(2):
        step(x)
    assert are_equal(other, twin)


def test_threads_may_train_at_the_same_time() -> None:
    """Tests one slab for each thread, with the backward passes on the threads of the calls."""
    model, x = make("convolutions")
    trace = record(make_step(model), (x,), trains=model)
    pairs = [(copy.deepcopy(model), copy.deepcopy(model)) for _ in range(3)]
    with Slab(solve(trace.problem(), "greedy_by_size"), trace) as slab:
        runners = [slab.bind(make_step(ours), trains=ours) for ours, _ in pairs]
        threads = [
            threading.Thread(target=lambda run=run: [run(x) for _ in range(5)]) for run in runners
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert slab.stats().hits == 15 * len(trace.planned)
        assert missed(slab) == 0
    for ours, twin in pairs:
        step = make_step(twin)
        for _ in range(5):
            step(x)
        assert are_equal(ours, twin)


def test_two_models_are_trained_in_one_step() -> None:
    """Tests a generator and a discriminator, whose modules are given as a list."""
    torch.manual_seed(0)
    nets = nn.ModuleList([nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))])
    x = torch.randn(16, 4)

    def step_of(trained: Any) -> StepFunction:
        generator, critic = trained
        makes = torch.optim.Adam(generator.parameters(), lr=0.01)
        judges = torch.optim.Adam(critic.parameters(), lr=0.01)

        def step(noise: Any) -> Any:
            judges.zero_grad()
            made = generator(noise)
            functional.softplus(critic(made.detach())).mean().backward()
            judges.step()
            makes.zero_grad()
            loss = functional.softplus(-critic(made)).mean()
            loss.backward()
            makes.step()
            return loss.detach()

        return step

    check_steps(nets, x, step_of)


def test_gradients_may_accumulate_over_passes() -> None:
    """Tests two backward passes for one update, one with its graph kept."""
    model, x = make("convolutions")

    def step_of(trained: Any) -> StepFunction:
        updates = torch.optim.SGD(trained.parameters(), lr=0.01)

        def step(value: Any) -> Any:
            updates.zero_grad()
            for part in value.split(1):
                loss = trained(part).square().mean()
                loss.backward(retain_graph=True)
                loss.backward()
            updates.step()
            return loss.detach()

        return step

    check_steps(model.eval(), x, step_of)  # batch normalisation changes what a kept graph needs


def test_steps_in_lower_precision() -> None:
    """Tests autocast to bfloat16, whose copies of the weights live until its end."""
    model, x = make("encoder")

    def step_of(trained: Any) -> StepFunction:
        updates = torch.optim.AdamW(trained.parameters(), lr=0.01)

        def step(value: Any) -> Any:
            updates.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = trained(value).float().square().mean()
            loss.backward()
            updates.step()
            return loss.detach()

        return step

    check_steps(model, x, step_of)


def test_an_error_in_the_backward_pass_leaves_nothing_behind() -> None:
    """Tests that an exception of a hook passes through, and later steps run as planned."""
    model, x = make("convolutions")
    step = make_step(model)
    trace = record(step, (x,), trains=model)

    def fail(_: Any) -> None:
        raise ValueError("wrong gradient")

    with Slab(solve(trace.problem(), "greedy_by_size"), trace) as fast:
        hook = model[0].weight.register_hook(fail)
        with pytest.raises(ValueError, match="wrong gradient"):
            fast(x)
        hook.remove()
        before = fast.stats()
        fast(x)
        assert fast.stats().since(before).hits == len(trace.planned)
        assert fast.stats().slabs == 1


def test_batches_of_training_steps() -> None:
    """Tests that steps of other batch sizes are derived, and train as eager does."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8))
    twin = copy.deepcopy(model)
    ours, theirs = make_step(model), make_step(twin)
    inputs = {batch: torch.randn(batch, 32) for batch in (1, 2, 4, 8, 16)}
    with Batches.record(ours, lambda batch: inputs[batch], trains=model, strict=False) as fast:
        for batch in (16, 4, 16):
            fast(inputs[batch])
        stats = fast.stats()
    assert stats.hits > 0
    assert stats.hits >= 0.9 * (stats.hits + stats.unknown + stats.resized + stats.occupied)
    for batch in (1, 1, 2, 2, 4, 4, 8, 8, 16, 4, 16):
        theirs(inputs[batch])
    assert are_equal(model, twin)


def test_what_is_trained_is_a_module() -> None:
    """Tests one sentence for a list of parameters."""
    model = nn.Linear(2, 2)
    with pytest.raises(MemplanError, match="trains is a list; it must be"):
        record(model, (torch.randn(1, 2),), trains=list(model.parameters()))
