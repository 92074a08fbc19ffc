"""Tests that programs in one arena compute what they compute apart, whatever runs in between."""

from __future__ import annotations

import json
import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from compilers import require_compiler
from rounds import rounds
from tflite_models import model_named

import memplan as mp
from memplan.base.errors import PlanError
from memplan.cli import main
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.graph.states import State, find_states
from memplan.programs.sources import Loaded, of_graph
from memplan.programs.sources.graph_json import write_graph
from memplan.runtimes.c.header import write_header
from memplan.scenarios.together import Together, plan_together
from memplan.solvers.planning import layout_of, place_states

COMPILERS = {"c": ("gcc", "clang"), "c++": ("g++", "clang++")}
WAKE_WORDS = ("okay_nabu", "hey_jarvis", "alexa")


def streaming(name: str, *, gap: bool = True, size: int = 64) -> Loaded:
    """Return a program that reads a state, works, and assigns the state."""
    tensors = (
        Tensor("x", 16, Kind.INPUT),
        Tensor("handle", 4, Kind.VARIABLE),
        Tensor("old", size),
        Tensor("work", 2 * size),
        Tensor("new", size),
        Tensor("y", 16, Kind.OUTPUT),
    )
    operators = [
        Operator("read", "READ_VARIABLE", (1,), (2,)),
        Operator("mix", "CONCATENATION", (0, 2), (3,)),
        Operator("next", "CONV_2D", (3,), (4,)),
        Operator("answer", "CONV_2D", (3,), (5,)),
    ]
    assign = Operator("assign", "ASSIGN_VARIABLE", (1, 4))
    operators.insert(4 if gap else 3, assign)
    if not gap:
        operators.append(Operator("again", "READ_VARIABLE", (1,), (2,)))
        tensors = (*tensors, Tensor("late", size))
        operators[-1] = Operator("again", "READ_VARIABLE", (1,), (6,))
    planned = frozenset({Kind.INPUT, Kind.OUTPUT, Kind.INTERMEDIATE})
    graph = Graph(name, tensors, tuple(operators), (0,), (5,), planned=planned)
    return of_graph(graph)


def states_of(loaded: Loaded) -> tuple[State, ...]:
    """Return the states of a program."""
    assert loaded.layout is not None
    return find_states(loaded.layout)


def test_a_state_is_dead_between_its_last_reader_and_its_first_writer() -> None:
    """Tests the value, its size, and the gap; and that a later reader leaves none."""
    assert states_of(streaming("s")) == (State("handle", 64, (1, 4)),)
    assert states_of(streaming("s", gap=False)) == (State("handle", 64, None),)
    assert states_of(of_graph(mp.load("examples/models/residual.graph.json").graph)) == ()  # type: ignore[arg-type]


def test_states_that_are_dead_in_their_own_run_save_memory() -> None:
    """Tests the arena of two streaming programs against what people do by hand."""
    programs = [streaming("one"), streaming("two")]
    found = plan_together(programs, names=["one", "two"], keep=["states"])
    # A run needs `work` and one of the others; its own state may lie there while it is dead.
    assert (found.peak, found.by_hand) == (272, 336)
    assert found.kept == (("handle",), ("handle",))
    assert found.verify() == found.peak


class Machine:
    """Runs programs in one piece of memory: each operator mixes all that it reads."""

    def __init__(self, found: Together) -> None:
        self.memory = bytearray(found.peak)
        self._found = found
        self._at = [
            {
                tensor: found.offset(found.names[number], storage.name) + inside
                for storage in (each.loaded.layout.storages[row] for row in each.loaded.layout.rows)
                for tensor, inside in zip(storage.tensors, storage.offsets, strict=True)
            }
            for number, each in enumerate(found.programs)
            if each.loaded.layout is not None
        ]

    def start(self, first: bytes) -> None:
        """Give all states their first values."""
        for number, name in enumerate(self._found.names):
            for id in self._found.kept[number]:
                if id not in self._found.programs[number].problem.ids:
                    self._write(self._found.offset(name, id), self._size(number, id), first)

    def run(self, number: int, given: bytes) -> bytes:
        """Run a program; return its outputs."""
        loaded = self._found.programs[number].loaded
        graph = loaded.graph
        assert graph is not None
        for each in graph.inputs:
            self._write(self._at[number][each], graph.tensors[each].bytes, given)
        for at, operator in enumerate(graph.operators):
            read = bytes([at]) + b"".join(self._read(number, each) for each in operator.inputs)
            if operator.type == "READ_VARIABLE":
                read = self._read(number, operator.inputs[0])
            if operator.type == "ASSIGN_VARIABLE":
                handle, value = operator.inputs
                name = graph.tensors[handle].name
                place = self._found.offset(self._found.names[number], name)
                self._write(place, self._size(number, name), self._read(number, value))
            for each in operator.outputs:
                if each in self._at[number]:
                    self._write(self._at[number][each], graph.tensors[each].bytes, read)
        return self.outputs(number)

    def outputs(self, number: int) -> bytes:
        """Return what a program has left in its outputs."""
        graph = self._found.programs[number].loaded.graph
        assert graph is not None
        return b"".join(self._read(number, each) for each in graph.outputs)

    def _size(self, number: int, id: str) -> int:
        problem = self._found.problems[number]
        return int(problem.size[problem.index(id)])

    def _read(self, number: int, tensor: int) -> bytes:
        graph = self._found.programs[number].loaded.graph
        assert graph is not None
        place, size = self._at[number].get(tensor), graph.tensors[tensor].bytes
        name = graph.tensors[tensor].name
        if place is None and name in self._found.kept[number]:
            place = self._found.offset(self._found.names[number], name)
            size = self._size(number, name)
        return b"" if place is None else bytes(self.memory[place : place + size])

    def _write(self, place: int, size: int, read: bytes) -> None:
        """Write bytes that depend on all that was read."""
        source = random.Random(read)
        self.memory[place : place + size] = source.randbytes(size)


def run_interleaved(found: Together, apart: list[Together], runs: int) -> None:
    """Run programs in an order of chance, together and apart, and compare all outputs."""
    source = random.Random(1)
    shared, alone = Machine(found), [Machine(each) for each in apart]
    for machine in (shared, *alone):
        machine.start(b"first")
    last: dict[int, bytes] = {}
    for _ in range(runs):
        number = source.randrange(len(apart))
        given = source.randbytes(8)
        last[number] = alone[number].run(0, given)
        assert shared.run(number, given) == last[number]
        for each, outputs in last.items():  # what was kept is there, whatever ran since
            assert shared.outputs(each) == outputs


def share(programs: list[Loaded | Path], names: tuple[str, ...]) -> tuple[Together, list[Together]]:
    """Plan programs in one arena, and each with itself only."""
    idle = mp.Problem([])
    found = plan_together(programs, names=names, keep=["outputs", "states"])
    apart = [
        plan_together([each, idle], names=[name, "idle"], keep=["outputs", "states"])
        for name, each in zip(names, programs, strict=True)
    ]
    return found, apart


def test_interleaved_runs_compute_what_separate_ones_do() -> None:
    """Tests streaming programs, and that a state which is written over is noticed."""
    programs = [streaming("one"), streaming("two", gap=False, size=80)]
    found, apart = share([*programs], ("one", "two"))
    run_interleaved(found, apart, rounds(100, 1000))
    kept = plan_together(programs, names=["one", "two"], keep=["states"])
    assert kept.peak < found.peak
    with pytest.raises(AssertionError):
        run_interleaved(kept, apart, 100)  # outputs are not kept there


def test_plans_and_headers_hold_every_place_that_is_kept(tmp_path: Path) -> None:
    """Tests files of plans, and headers in C of them: buffers, states, and the whole arena."""
    programs = [streaming("one"), streaming("two", gap=False, size=80)]
    found = plan_together(programs, names=["one", "two"], keep=["outputs", "states"])
    assert found.peak > min(each.plan.peak or 0 for each in found.programs)
    for name, each, problem in zip(found.names, found.programs, found.problems, strict=True):
        path = tmp_path / f"{name}.plan.json"
        mp.save(each.plan, path)
        read = mp.load_plan(path)
        loaded = layout_of(each.loaded, read, in_place=True)
        whole, placed = place_states(loaded, read)
        assert whole.ids == problem.ids
        assert [placed.offset(id) for id in problem.ids] == [
            found.offset(name, id) for id in problem.ids
        ]
        text = write_header(loaded, read, name=name)
        upper = name.upper()
        assert f"#define {upper}_ARENA_SIZE {found.peak}u\n" in text
        places = dict(re.findall(rf"{upper}_BUFFER_OFFSET_(\w+) (\d+)u", text))
        assert places == {id: str(found.offset(name, id)) for id in problem.ids}
        assert f"#define {upper}_SIZE_handle {64 if name == 'one' else 80}u" in text
        assert re.search(r"\[\d+, \d+\) keeps handle\.", text)


@pytest.mark.parametrize("standard", ["c99", "c11", "c++17"])
def test_headers_of_one_arena_compile_together(tmp_path: Path, standard: str) -> None:
    """Tests both headers in one program: their assertions hold, and no place is common to both."""
    language = "c++" if "+" in standard else "c"
    compiler = require_compiler(*COMPILERS[language], flags=[f"-std={standard}"])
    programs = [streaming("one"), streaming("two")]
    found = plan_together(programs, names=["one", "two"], keep=["states"])
    for name, each in zip(found.names, found.programs, strict=True):
        text = write_header(each.loaded, each.plan, name=name)
        (tmp_path / f"{name}.h").write_text(text)
    program = tmp_path / ("main.c" if language == "c" else "main.cpp")
    program.write_text(TWO_HEADERS)
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([compiler, *flags, program, "-o", tmp_path / "main"], check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@pytest.mark.parametrize("given", [("one", "two"), ("one",), ("two",)])
def test_the_command_finds_what_is_written_over_a_state(
    given: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests `memplan verify` on a folder of programs, one of whose states is moved."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        graph = streaming(name).graph
        assert graph is not None
        Path(f"{name}.graph.json").write_text(write_graph(graph))
    inputs = [f"{name}.graph.json" for name in ("one", "two")]
    assert main(["plan", *inputs, "--keep", "states", "-o", "plans", "-q"]) == 0
    asked = ["verify", *(f"{name}.graph.json" for name in given), "plans"]
    assert main(asked) == 0
    assert "2 buffers kept, 128 bytes" in capsys.readouterr().out
    path = Path("plans/one.plan.json")
    plan = json.loads(path.read_text())
    [state] = plan["stats"]["shared"]["kept"]
    other = mp.load_plan("plans/two.plan.json")
    state["offset"] = other.offset("work")
    path.write_text(json.dumps(plan))
    assert main(asked) == 1
    assert '"handle"' in capsys.readouterr().err


def test_states_of_another_program_are_refused() -> None:
    """Tests that a plan which keeps other states than the program has is no plan of it."""
    programs = [streaming("one"), streaming("two")]
    found = plan_together(programs, names=["one", "two"], keep=["states"])
    plan = found.programs[0].plan
    shared = plan.shared
    assert shared is not None
    state = shared.kept[0]
    for kept, sentence in (
        (replace(state, id="other"), 'keeps 64 bytes as "other"; no state is that'),
        (replace(state, size=32), 'keeps 32 bytes as "handle"; no state is that'),
        (replace(state, offset=plan.offset("old")), "handle"),
    ):
        stats = {"shared": replace(shared, kept=(kept,)).describe()}
        wrong = mp.Plan.of(found.programs[0].problem, plan.offsets, stats=stats)
        with pytest.raises(PlanError, match=sentence):
            layout_of(found.programs[0].loaded, wrong, in_place=False)


TWO_HEADERS = """
#define ONE_DEFINE_ARENA
#include "one.h"
#include "two.h"
#define APART(a, as, b, bs) ((a) + (as) <= (b) || (b) + (bs) <= (a))
int main(void) {
  if (ONE_ARENA_SIZE != TWO_ARENA_SIZE) return 1;
  if (!APART(ONE_OFFSET_handle, ONE_SIZE_handle, TWO_OFFSET_work, TWO_SIZE_work)) return 2;
  if (!APART(ONE_OFFSET_handle, ONE_SIZE_handle, TWO_OFFSET_handle, TWO_SIZE_handle)) return 3;
  if (!APART(TWO_OFFSET_handle, TWO_SIZE_handle, ONE_OFFSET_work, ONE_SIZE_work)) return 4;
  one_arena[ONE_OFFSET_handle] = 1;
  return sizeof one_arena == ONE_ARENA_SIZE ? 0 : 5;
}
"""


def test_wake_words_in_one_arena() -> None:
    """Tests models that people run together: their states and outputs survive."""
    models: list[Loaded | Path] = [
        model_named(f"pymicro_wakeword/{name}.tflite") for name in WAKE_WORDS
    ]
    found, apart = share(models, WAKE_WORDS)
    assert str(found.plan.status) == "optimal"
    assert found.peak < found.by_hand < found.separate
    run_interleaved(found, apart, rounds(20, 1000))
