"""Tests that public objects are pickled, copied and sent to processes, and stay as they were."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import strategies_graph

import memplan as mp
from memplan.base.errors import FormatError, InfeasibleError, PlanError
from memplan.levers.rewrite import recompute, reorder
from memplan.levers.rewrite.waits import plan_waits
from memplan.machine.apart import plan_apart
from memplan.machine.blocks import plan_blocks
from memplan.machine.memories import assign
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.sources import Loaded, of_graph
from memplan.runtimes.fitting import fit
from memplan.scenarios.envelope import envelope
from memplan.scenarios.together import plan_together

EXAMPLES = Path(__file__).parent.parent / "examples"
RESIDUAL = EXAMPLES / "models" / "residual.graph.json"

BUFFERS = [
    mp.Buffer("a", 0, 4, 8, alignment=4, hint=2, gaps=(mp.Gap(1, 2, (0, 2)),)),
    mp.Buffer("b", 2, 6, 8, pin=16),
    mp.Buffer("c", 3, 9, 3),
]


def make_problem() -> mp.Problem:
    """Return a problem with every constraint."""
    reserved = [mp.Reserved(40, 44)]
    return mp.Problem(
        BUFFERS, capacity=64, reserved=reserved, conflicts=[("a", "c")], groups=[["a", "c"]]
    )


def make_loaded() -> Loaded:
    """Return a model with operators."""
    return mp.load(RESIDUAL)


def make_repacker() -> mp.Repacker:
    """Return a repacker with a plan."""
    repacker = mp.Repacker(BUFFERS, capacity=64)
    assert repacker.fits()
    return repacker


def follow(what: str) -> Any:
    """Return what a solver tells while it runs."""
    told: list[Any] = []
    mp.solve(
        [mp.Buffer(f"b{i}", i % 3, 4 + i % 5, 1 + i % 7) for i in range(30)], **{what: told.append}
    )
    return told[0]


def compare() -> Any:
    """Return what has changed between two programs."""
    return mp.compare(make_problem(), make_problem())


def skip() -> Graph:
    """Return a program whose first result is read again by its last operator."""
    sizes = {"image": 16, "wide": 400, "small": 50, "deep": 600, "tiny": 20, "result": 4}
    kinds = {"image": Kind.INPUT, "result": Kind.OUTPUT}
    tensors = [
        Tensor(name, size, kinds.get(name, Kind.INTERMEDIATE)) for name, size in sizes.items()
    ]
    read = ((0,), (1,), (2,), (3,), (4, 1))
    operators = [Operator(f"step {at}", "CONV", old, (at + 1,)) for at, old in enumerate(read)]
    return Graph("skip", tuple(tensors), tuple(operators), (0,), (5,))


def run_again() -> Any:
    """Return it in memory for which an operator runs again, with the proof of what that costs."""
    found = recompute(skip(), 700, states=1000)
    assert found.repeated == 1
    assert found.certificate is not None
    return found


def grow(batch: int) -> mp.Problem:
    """Return a program at a size."""
    return mp.Problem([mp.Buffer("a", 0, 2, 8 * batch), mp.Buffer("b", 1, 3, 20)])


def put_in_memories() -> mp.Assigned:
    """Return a program in two memories."""
    return assign(RESIDUAL, [mp.Memory("sram", 1 << 15), mp.Memory("psram", read=8, write=8)])


def on_streams() -> Loaded:
    """Return a program on two streams, of which one has to wait if it gets 20 bytes."""
    tensors = tuple(Tensor(name, 10, Kind.INTERMEDIATE) for name in ("a", "b", "c"))
    operators = (
        Operator("make", "OP", (), (0,)),
        Operator("use", "OP", (0,), ()),
        Operator("other", "OP", (), (1,), stream=1),
        Operator("last", "OP", (1,), (2,), stream=1),
    )
    return of_graph(Graph("streams", tensors, operators, (), ()))


def answer() -> mp.Answer:
    """Return a program in an arena in which an operator runs again."""
    return mp.plan(of_graph(skip()), levers=["again"], capacity=700, nodes=10_000)


# By public name: how to get one. What is no object to send has none.
OBJECTS: dict[str, Callable[[], Any] | None] = {
    "Answer": answer,
    "Axis": lambda: answer().axes[0],
    "Machine": lambda: mp.Machine(capacity=64, penalties={("a", "b"): 3}),
    "Part": lambda: answer().parts[0],
    "Step": lambda: answer().steps[-1],
    "Apart": lambda: plan_apart(make_problem(), {}),
    "Arranged": lambda: fit(make_loaded(), nodes=10_000),
    "Blocks": lambda: plan_blocks(make_problem(), 64),
    "Assigned": put_in_memories,
    "Budget": lambda: mp.Budget(seconds=1.0, nodes=7),
    "Buffer": lambda: BUFFERS[0],
    "Envelope": lambda: envelope(grow, {"batch": range(1, 9)}),
    "FormatError": lambda: FormatError("x.csv", "is empty", line=3),
    "Gap": lambda: BUFFERS[0].gaps[0],
    "InfeasibleError": lambda: InfeasibleError("no"),
    "Interrupted": lambda: mp.Interrupted(mp.solve(BUFFERS)),
    "Loaded": make_loaded,
    "Memory": lambda: mp.Memory("sram", 64),
    "MemplanError": lambda: mp.MemplanError("no"),
    "MissingExtraError": lambda: mp.MissingExtraError("no"),
    "Plan": lambda: mp.solve(make_problem()),
    "NoPlanError": lambda: mp.NoPlanError("no"),
    "PlanError": lambda: PlanError("no"),
    "Planned": lambda: mp.plan_model(RESIDUAL),
    "Problem": make_problem,
    "ProblemError": lambda: mp.ProblemError("no"),
    "Progress": lambda: follow("progress"),
    "ProofError": lambda: mp.ProofError("no"),
    "Recomputed": run_again,
    "Reordered": lambda: reorder(RESIDUAL),
    "Repacker": make_repacker,
    "Reserved": lambda: make_problem().reserved[0],
    "Round": lambda: follow("trace"),
    "Selection": lambda: mp.pack_most_valuable(mp.Problem(BUFFERS), {"a": 3, "c": 2}, 32),
    "Status": lambda: mp.Status.FITS,
    "Stretch": lambda: mp.Stretch("a", "a@1", "sram", 2, 4, fetched=True, stored=False),
    "Together": lambda: plan_together([make_problem(), make_problem()], names=["a", "b"]),
    "Tradeoff": lambda: mp.tradeoff(skip(), points=2),
    "Waits": lambda: plan_waits(on_streams(), capacity=20),
    "UnsupportedError": lambda: mp.UnsupportedError("no"),
    "__version__": lambda: mp.__version__,
    "assign": None,  # assigned
    "compare": compare,
    "envelope": None,  # an envelope
    "explain": lambda: mp.explain(make_problem()),
    "fit": None,  # arranged
    "inspect": lambda: mp.inspect(make_loaded()),
    "load": make_loaded,
    "load_plan": None,  # a plan
    **dict.fromkeys(("check_answer", "load_answer", "save_answer")),  # words, an answer, nothing
    "lower_bound": lambda: mp.lower_bound(make_problem()),
    "pack_most_valuable": None,  # a selection
    "plan": None,  # an answer
    "plan_apart": None,  # apart
    "plan_model": None,  # planned
    "plan_paths": lambda: mp.plan_paths(of_graph(strategies_graph.chain(2))),
    "plan_blocks": None,  # blocks
    "plan_together": None,  # together
    "plan_waits": None,  # waits
    "recompute": None,  # recomputed
    "reorder": None,  # reordered
    "save": None,
    "solve": None,  # a plan
    "tradeoff": None,  # a tradeoff
    "verify": None,
    "verify_order": lambda: mp.verify_order(RESIDUAL, reorder(RESIDUAL)),
    "verify_recompute": lambda: mp.verify_recompute(skip(), run_again()),
}
MADE = [name for name, make in OBJECTS.items() if make is not None]


def test_no_public_name_is_forgotten() -> None:
    """Tests that the table has every public name, so that a new one is thought of."""
    assert set(OBJECTS) == set(mp.__all__)
    assert all(inspect.getdoc(getattr(mp, name)) for name in OBJECTS if not name.startswith("_"))


def iterate_parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield an object and all that it is made of."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    parts: list[Any] = []
    if isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, (tuple, list, set, frozenset)):
        parts = [*value]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, each.name) for each in dataclasses.fields(value)]
    elif type(value).__module__.startswith("memplan") and hasattr(value, "__dict__"):
        parts = [*vars(value).values()]
    for part in parts:
        yield from iterate_parts(part, seen)


def count_read_only(value: Any) -> tuple[int, int]:
    """Return how many different arrays and mappings of an object cannot be written to."""
    parts = list(iterate_parts(value, set()))
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    proxies = [part for part in parts if isinstance(part, MappingProxyType)]
    return sum(not array.flags.writeable for array in arrays), len(proxies)


def show(value: Any) -> str:
    """Return all of an object as text, to compare; addresses and caches are left out."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, Mapping):
        return repr([(show(key), show(each)) for key, each in value.items()])
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(show, value)))
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(show, value))})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [
            (each.name, show(getattr(value, each.name))) for each in dataclasses.fields(value)
        ]
        return f"{type(value).__name__}{fields}"
    if isinstance(value, mp.Repacker):
        offsets = [value.offset(buffer.id) for buffer in value.problem().buffers]
        return f"Repacker{show(value.problem()), offsets, value.moved, value.found_by}"
    return repr(value)


WAYS: dict[str, Callable[[Any], Any]] = {
    **{
        f"pickle {protocol}": lambda value, protocol=protocol: pickle.loads(  # type: ignore[misc]
            pickle.dumps(value, protocol)
        )
        for protocol in (2, pickle.HIGHEST_PROTOCOL)
    },
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", MADE)
def test_copies_and_pickles(name: str) -> None:
    """Tests that each object comes back as it was, and what was read-only is so again."""
    make = OBJECTS[name]
    assert make is not None
    value = make()
    for way, send in WAYS.items():
        other = send(value)
        assert type(other) is type(value), way
        assert show(other) == show(value), way
        assert count_read_only(other) >= count_read_only(value), way
        if dataclasses.is_dataclass(other) or isinstance(other, mp.Plan):
            for field in ("problem", "anything"):
                with pytest.raises((AttributeError, TypeError)):
                    setattr(other, field, None)


def test_processes() -> None:
    """Tests all of them in another process, there and back."""
    values = {name: make() for name in MADE if (make := OBJECTS[name]) is not None}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        back = pool.submit(copy.copy, values).result()
    for name, value in values.items():
        assert show(back[name]) == show(value), name
    plan = back["Plan"]
    mp.verify(back["Problem"], plan)
    with pytest.raises(TypeError):
        plan.stats["nodes"] = 0
    with pytest.raises(ValueError, match="read-only"):
        plan.problem.size[0] = 1


def test_a_repacker_is_copied() -> None:
    """Tests that every way to copy makes another repacker with the same plan."""
    repacker = make_repacker()
    for other in (send(repacker) for send in WAYS.values()):
        other.remove("a")
        assert (len(other), len(repacker)) == (2, 3)
    assert repacker.plan("fit").peak == 24
