"""Tests of memplan.runtimes.torch.record: what a real forward pass allocates, and where."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._C._profiler import _EventType  # noqa: E402
from torch.nn import functional  # noqa: E402

from memplan.base.errors import MemplanError  # noqa: E402
from memplan.problem.trace import Scope  # noqa: E402
from memplan.runtimes.torch.record import Recording, record  # noqa: E402
from memplan.runtimes.torch.record.recorder import _Log  # noqa: E402
from memplan.runtimes.torch.record.scopes import replace_forwards, walk_modules  # noqa: E402
from memplan.solvers import solve  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")]


class Calls(nn.Module):  # type: ignore[misc]
    """A module that is a function of its own."""

    def __init__(self, function: Any, **children: Any) -> None:
        super().__init__()
        self.function = function
        for name, child in children.items():
            self.add_module(name, child)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function says of the module and its arguments."""
        return self.function(self, *args, **kwargs)


def network() -> Any:
    """Return a small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
    ).eval()


IMAGE = torch.ones(1, 3, 18, 18)


def rows(trace: Recording) -> list[tuple[int, int, int, bool]]:
    """Return (start, end, size, outlives) of all allocations."""
    columns = (trace.start, trace.end, trace.size, trace.outlives)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def heads(trace: Recording) -> list[Scope]:
    """Return of every scope the modules and the outermost operator."""
    found = []
    for scope in trace.scopes:
        operators = [at for at, (name, _) in enumerate(scope) if not name.startswith(".")]
        found.append(scope[: operators[0] + 1] if operators else scope)
    return found


class TestLifetimes:
    """When what is allocated, and released."""

    def test_what_no_graph_shows(self) -> None:
        """Tests that the indices of a pooling are seen: 8 bytes for every 4 of the result."""
        trace = record(network(), IMAGE)
        pool = [k for k, scope in enumerate(heads(trace)) if ("aten::max_pool2d", 0) in scope]
        result, indices = (int(trace.size[k]) for k in pool)
        assert (result, indices) == (8 * 8 * 8 * 4, 8 * 8 * 8 * 8)
        assert trace.outlives[pool].tolist() == [True, False]

    def test_by_the_event(self) -> None:
        """Tests starts and ends of three allocations; the second takes the first's place."""

        def function(x: Any) -> Any:
            a = x.neg()
            del a
            b = x.neg()
            c = b.neg()
            del b
            return c

        trace = record(function, torch.zeros(1000))
        assert rows(trace) == [
            (0, 1, 4000, False),
            (2, 4, 4000, False),
            (3, 5, 4000, True),
        ]

    def test_one_address_many_times(self) -> None:
        """Tests that an address that is used again is another allocation each time."""

        def function(x: Any) -> None:
            for _ in range(20):
                x.neg().sum()

        trace = record(function, torch.zeros(1000))
        assert trace.address is not None
        big = [k for k in range(len(trace)) if trace.size[k] == 4000]
        assert len(big) == 20
        assert len(set(trace.address[big].tolist())) < 20
        assert len({(trace.scopes[k], int(trace.ordinal[k])) for k in big}) == 20
        assert max(trace.end[k] - trace.start[k] for k in big) <= 4
        problem = trace.problem()
        assert problem.max_load < 2 * 4000

    @settings(max_examples=10, deadline=None)
    @given(st.lists(st.integers(1, 3000) | st.integers(-6, -1), max_size=30))
    def test_any_program(self, program: list[int]) -> None:
        """Tests any order of allocations (a number of bytes) and releases (an age) by hand."""
        expected: list[tuple[int, int, int, bool]] = []

        def function() -> Any:
            alive: list[tuple[int, Any]] = []
            now = 0
            expected.clear()
            for step in program:
                if step > 0:
                    alive.append((len(expected), torch.empty(step, dtype=torch.uint8)))
                    expected.append((now, -1, step, True))
                elif -step <= len(alive):
                    row, _ = alive.pop(step)
                    expected[row] = (expected[row][0], now, expected[row][2], False)
                    del _
                else:
                    continue
                now += 1
            for row, _ in alive:
                expected[row] = (expected[row][0], now, *expected[row][2:])
            return alive

        assert rows(record(function, warmup=0)) == expected

    def test_views_are_no_allocations(self) -> None:
        """Tests that a tensor which shares a storage keeps it alive, and allocates nothing."""

        def function(x: Any) -> Any:
            a = x.neg()
            view = a.view(10, 100).t()[3:]
            del a
            b = x.neg()
            return view.sum() + b.sum()

        trace = record(function, torch.zeros(1000))
        big = [row for row in rows(trace) if row[2] == 4000]
        assert len(big) == 2
        assert big[0][1] > big[1][0], "the view still needs it when the next is made"

    def test_what_was_there_before(self) -> None:
        """Tests that releases of what was made before the call are no events."""
        held = [torch.zeros(1000)]

        def function(x: Any) -> Any:
            held.clear()
            return x.neg()

        trace = record(function, torch.zeros(10), warmup=0)
        assert not held
        assert rows(trace) == [(0, 1, 40, True)]

    def test_what_stays(self) -> None:
        """Tests that a cache that the model keeps outlives the run, as its results do."""
        cache: list[Any] = []

        def function(x: Any) -> Any:
            cache.append(x.neg())
            return cache[-1] + x.neg()

        trace = record(function, torch.zeros(10), warmup=0)
        assert trace.outlives.tolist() == [True, False, True]
        assert trace.planned.tolist() == [1]

    def test_cycles_wait_for_the_collector(self) -> None:
        """Tests that what is in a reference cycle outlives the run, whenever the collector runs."""

        def function(x: Any) -> Any:
            cycle: list[Any] = [x.neg()]
            cycle.append(cycle)
            for _ in range(10_000):
                _ = [[]]  # would start a collection, were it on
            return x.neg()

        trace = record(function, torch.zeros(10))
        assert trace.outlives.tolist() == [True, True]
        assert gc.isenabled()

    def test_sizes_add_up(self) -> None:
        """Tests the sizes against what the profiler counts by itself, operator by operator."""
        from torch.profiler import ProfilerActivity, profile

        model = network()
        trace = record(model, IMAGE)
        with (
            torch.no_grad(),
            profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler,
        ):
            result = model(IMAGE)
        kept = sum(event.self_cpu_memory_usage for event in profiler.events())
        assert kept == sum(trace.size[trace.outlives].tolist()) == result.nbytes
        asked = sum(
            event.extra_fields.alloc_size
            for event in _every(profiler.profiler.kineto_results.experimental_event_tree())
            if event.tag == _EventType.Allocation and event.extra_fields.alloc_size > 0
        )
        assert asked == sum(trace.size.tolist())

    def test_a_plan_of_it(self) -> None:
        """Tests that a plan is as good as can be: what is live at once, and no more."""
        problem = record(network(), IMAGE).problem()
        plan = solve(problem)
        assert plan.peak == problem.max_load > 0


def _every(events: list[Any]) -> list[Any]:
    found = list(events)
    for event in found:
        found += event.children
    return found


class TestScopes:
    """Which modules and operators are around an allocation."""

    def test_paths(self) -> None:
        """Tests that modules have their dotted names, outermost first."""
        inner = nn.Sequential(nn.ReLU())
        trace = record(nn.Sequential(nn.Linear(4, 5), inner), torch.zeros(2, 4))
        assert heads(trace) == [
            ((".", 0), (".0", 0), ("aten::linear", 0)),
            ((".", 0), (".1", 0), (".1.0", 0), ("aten::relu", 0)),
        ]
        assert trace.ids[1] == ".1.0/aten::relu/aten::clamp_min#0"

    def test_a_module_that_is_called_twice(self) -> None:
        """Tests that its calls and the operators in them are numbered where they are."""

        def forward(self: Any, x: Any) -> Any:
            return self.relu(self.relu(x)) + self.other(torch.relu(torch.relu(x)))

        relu = nn.ReLU()
        model = Calls(forward, relu=relu, other=nn.Sequential(relu))
        trace = record(model, torch.zeros(4))
        root = (".", 0)
        assert heads(trace) == [
            (root, (".relu", 0), ("aten::relu", 0)),
            (root, (".relu", 1), ("aten::relu", 0)),
            (root, ("aten::relu", 0)),
            (root, ("aten::relu", 1)),
            (root, (".other", 0), (".relu", 0), ("aten::relu", 0)),
            (root, ("aten::add", 0)),
        ]
        assert len(set(trace.ids)) == len(trace)

    def test_two_allocations_of_one_operator(self) -> None:
        """Tests that they are numbered in their operator."""
        trace = record(lambda x: functional.max_pool2d(x, 2), IMAGE)
        assert trace.ordinal.tolist() == [0, 1]
        assert trace.scopes[0] == trace.scopes[1]

    def test_scopes_of_the_users(self) -> None:
        """Tests that a user's own profiling scopes are no operators."""

        def function(x: Any) -> Any:
            with torch.profiler.record_function("mine"):
                return x.neg()

        assert heads(record(function, torch.zeros(4))) == [(("aten::neg", 0),)]

    def test_the_same_every_time(self) -> None:
        """Tests that two recordings differ in nothing but addresses."""
        model = network()
        one, two = record(model, IMAGE), record(model, IMAGE)
        assert one.ids == two.ids
        assert rows(one) == rows(two)

    def test_a_deep_model(self) -> None:
        """Tests that nesting has no limit of ours."""
        model = nn.ReLU()
        for _ in range(60):
            model = nn.Sequential(model)
        assert len(record(model, torch.zeros(4)).scopes[0]) == 61 + 2

    def test_other_threads(self) -> None:
        """Tests that tasks of PyTorch's own pool are in a scope of their thread."""

        @torch.jit.script  # type: ignore[misc]
        def task(x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x)

        @torch.jit.script  # type: ignore[misc]
        def function(x: torch.Tensor) -> torch.Tensor:
            other = torch.jit.fork(task, x)
            mine = torch.sigmoid(x)
            return torch.jit.wait(other) + mine

        trace = record(function, torch.zeros(100), warmup=3)
        # The pool decides which thread runs the task, and what comes after it.
        assert sorted(trace.size.tolist()) == [400] * 3
        assert ("aten::sigmoid", 0) in {scope[0] for scope in trace.scopes}
        for scope, thread in zip(trace.scopes, trace.thread.tolist(), strict=True):
            assert (scope[0] == ("thread", thread)) == (thread > 0)

    def test_threads_of_the_model(self) -> None:
        """Tests that a thread that the model starts is not seen, and disturbs nothing."""
        import threading

        def function(x: Any) -> Any:
            thread = threading.Thread(target=lambda: torch.zeros(50).neg())
            thread.start()
            thread.join()
            return x.neg()

        assert rows(record(function, torch.zeros(10))) == [(0, 1, 40, True)]


class TestCompiled:
    """Modules without a Python forward."""

    def test_left_alone(self) -> None:
        """Tests that scripted and compiled modules are parts of the module around them."""
        compiled = torch.compile(nn.Sequential(nn.ReLU()), backend="eager")
        in_place = nn.Sequential(nn.ReLU())
        in_place.compile(backend="eager")
        scripted = torch.jit.script(nn.Sequential(nn.ReLU()))
        traced = torch.jit.trace(nn.Sequential(nn.ReLU()), torch.zeros(1))
        model = nn.Sequential(compiled, in_place, scripted, traced, nn.ReLU())
        assert [name for name, _ in walk_modules(model)] == [".", ".4"]

    def test_scripted(self) -> None:
        """Tests that a scripted module is recorded, operator by operator."""
        model = nn.Sequential(torch.jit.script(nn.ReLU()), nn.ReLU())
        trace = record(model, torch.zeros(4), warmup=3)
        assert heads(trace) == [
            ((".", 0), ("aten::relu", 0)),
            ((".", 0), (".1", 0), ("aten::relu", 0)),
        ]


class TestCalls:
    """How the model is called, and left."""

    @pytest.mark.parametrize(
        ("inputs", "kwargs"),
        [
            ((torch.zeros(4), torch.zeros(4)), None),
            ([torch.zeros(4), torch.zeros(4)], {}),
            ({"x": torch.zeros(4), "y": torch.zeros(4)}, None),
            (torch.zeros(4), {"y": torch.zeros(4)}),
            ({"x": torch.zeros(4)}, {"y": torch.zeros(4)}),
        ],
    )
    def test_arguments(self, inputs: Any, kwargs: Any) -> None:
        """Tests tuples, lists, mappings, one tensor, and arguments by name."""
        trace = record(Calls(lambda self, x, y: x + y), inputs, kwargs)
        assert rows(trace) == [(0, 1, 16, True)]

    def test_no_arguments(self) -> None:
        """Tests a function of nothing."""
        assert rows(record(lambda: torch.zeros(4).neg())) == [(0, 2, 16, False), (1, 3, 16, True)]

    @pytest.mark.parametrize("mode", ["train", "eval"])
    def test_modes(self, mode: str) -> None:
        """Tests that the model runs in the mode that it is in, without gradients."""
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        model.train(mode == "train")
        trace = record(model, torch.zeros(2, 4))
        assert trace.about["mode"] == mode
        assert any(("aten::dropout", 0) in scope for scope in trace.scopes) == (mode == "train")
        assert model.training == (mode == "train")
        assert trace.outlives.sum() == 1
        assert torch.is_grad_enabled()

    @pytest.mark.parametrize("warmup", [0, 1, 3])
    def test_warmup(self, warmup: int) -> None:
        """Tests that the model runs so often and once more."""
        calls = []
        record(lambda: calls.append(1), warmup=warmup)
        assert len(calls) == warmup + 1

    def test_what_warms_up(self) -> None:
        """Tests that what the first run makes to last is none of the second's."""
        cache: dict[str, Any] = {}

        def function(x: Any) -> Any:
            if "a" not in cache:
                cache["a"] = x.neg()
            return cache["a"] + x

        assert len(record(function, torch.zeros(4))) == 1
        cache.clear()
        assert len(record(function, torch.zeros(4), warmup=0)) == 2

    def test_everything_is_as_it_was(self) -> None:
        """Tests that forwards, gradients, the collector and the environment come back."""
        model = network()
        patched = model[0].forward
        model[0].forward = patched
        before = [dict(module.__dict__) for module in model.modules()]
        variables = dict(os.environ)
        gc.disable()
        try:
            record(model, IMAGE)
            assert not gc.isenabled()
        finally:
            gc.enable()
        after = [dict(module.__dict__) for module in model.modules()]
        assert [vars.keys() for vars in after] == [vars.keys() for vars in before]
        assert model[0].__dict__["forward"] is patched
        assert dict(os.environ) == variables

    @pytest.mark.parametrize("warmup", [0, 1])
    def test_a_model_that_raises(self, warmup: int) -> None:
        """Tests that its error passes through, and everything is as it was."""

        def forward(self: Any, x: Any) -> Any:
            raise KeyError(float(self.inner(x)[0]))

        model = Calls(forward, inner=nn.ReLU())
        for _ in range(2):
            with pytest.raises(KeyError):
                record(model, torch.zeros(4), warmup=warmup)
        assert all("forward" not in module.__dict__ for module in model.modules())
        assert gc.isenabled()
        assert not torch.autograd._profiler_enabled()
        assert len(record(nn.ReLU(), torch.zeros(4))) == 1

    def test_about(self) -> None:
        """Tests what is said of the run."""
        model = Calls(lambda self, x, flag: x.neg())
        trace = record(model, torch.zeros(2, 4, dtype=torch.int64), {"flag": None})
        assert trace.model is model
        assert trace.about["allocator"]
        assert dict(trace.about) == {
            "model": "Calls",
            "inputs": "2x4 int64, flag=NoneType",
            "mode": "train",
            "torch": torch.__version__,
            "threads": str(torch.get_num_threads()),
            "allocator": trace.about["allocator"],
        }

    def test_refusals(self) -> None:
        """Tests that a negative count and a running profiler are refused in a sentence."""
        with pytest.raises(MemplanError, match="warmup is -1"):
            record(nn.ReLU(), torch.zeros(4), warmup=-1)
        with (
            torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
            pytest.raises(MemplanError, match="a profiler is running"),
        ):
            record(nn.ReLU(), torch.zeros(4))

    def test_nothing_is_printed(self) -> None:
        """Tests that neither the recorder nor the profiler's library says a word."""
        program = (
            "import torch; from memplan.runtimes.torch.record import record;"
            "record(torch.nn.ReLU(), torch.zeros(4))"
        )
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


class TestForwards:
    """Forwards that are replaced for a while."""

    def test_shared_modules(self) -> None:
        """Tests that a module with two names has the first, and is replaced once."""
        relu = nn.ReLU()
        model = nn.Sequential(relu, nn.Sequential(relu))
        assert [name for name, _ in walk_modules(model)] == [".", ".0", ".1"]
        seen: list[str] = []

        def wrap(name: str, forward: Any) -> Any:
            return lambda *args: (seen.append(name), forward(*args))[1]

        restore = replace_forwards(model, wrap)
        model(torch.zeros(1))
        restore()
        restore()
        model(torch.zeros(1))
        assert seen == [".", ".0", ".1", ".0"]

    def test_no_module(self) -> None:
        """Tests that a function has no modules."""
        assert list(walk_modules(torch.relu)) == []


class TestLog:
    """Event trees that no run gives on demand."""

    def test_a_release_that_came_late(self) -> None:
        """Tests that an address that is taken again ends what was there, in spite of clocks."""
        allocations = [(1, 64, 100), (2, 64, 50), (3, 64, -100), (4, 128, 8)]
        call = _Node("memplan call", 0, 10, [_Node("[memory]", *row) for row in allocations])
        trace = _Log([call]).recording({})
        assert rows(trace) == [(0, 1, 100, False), (1, 2, 50, False), (3, 4, 8, True)]

    def test_a_thread_inside_the_call(self) -> None:
        """Tests a node of the backward pass of a device, which is in the call on another thread."""
        there = _Node("[memory]", 3, 128, 8)
        there.start_tid = 9
        node = _Node("autograd::engine::evaluate_function: ReluBackward0", 2, 5, [there])
        call = _Node("memplan call", 0, 10, [_Node("[memory]", 1, 64, 100), node])
        trace = _Log([call]).recording({})
        assert rows(trace) == [(0, 2, 100, True), (1, 2, 8, True)]
        assert trace.thread.tolist() == [0, 1]


class _Node:
    """An event as the profiler's tree has them."""

    def __init__(self, name: str, start: int, *rest: Any) -> None:
        self.name = name
        self.start_time_ns = start
        self.start_tid = 7
        self.children: list[Any] = []
        self.extra_fields = self
        if name == "[memory]":
            self.tag = _EventType.Allocation
            self.ptr, self.alloc_size = rest
            self.device = torch.device("cpu")
        else:
            self.tag = _EventType.TorchOp
            self.end_time_ns, self.children = rest
            self.scope = None
