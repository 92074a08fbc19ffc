"""Tests of memplan in the place of tinygrad's planner: of a stand-in, and of each release."""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from compilers import can_build

from memplan.base.errors import MemplanError
from memplan.base.extras import is_installed
from memplan.base.notes import Code
from memplan.extensions.tinygrad import planning

STEPS = Path(__file__).parents[1] / "helpers" / "tinygrad_steps.py"
SUITE = STEPS.with_name("tinygrad_suite.py")
RELEASES = Path(sys.prefix) / "tinygrad"
BLOCK = 256
# What its device for the CPU gives Clang.
TARGET = f"--target={platform.machine()}-none-unknown-elf"
CLANG_FLAGS = ("-c", "-fPIC", "-ffreestanding", "-nostdlib", TARGET)


class FirstFit:
    """An allocator with the methods of tinygrad's, which fills the lowest hole."""

    def __init__(self, size: int, base: int = 0, block_size: int = 16, lv2_cnt: int = 16) -> None:
        self.block_size = block_size
        self.live: dict[int, int] = {}

    def alloc(self, size: int) -> int:
        """Return the lowest offset with room."""
        size, offset = max(size, self.block_size), 0
        for begin, length in sorted(self.live.items()):
            if begin - offset >= size:
                break
            offset = begin + length
        self.live[offset] = size
        return offset

    def free(self, offset: int) -> None:
        """Give an offset back."""
        del self.live[offset]


TLSFAllocator = FirstFit
UOp = SimpleNamespace(new_buffer=lambda _: None)
Rows = list[tuple[str, int, int, int]]  # lane, first step, last step, bytes


def stand_in(rows: Rows, align: bool = False) -> tuple[dict[str, int], list[int]]:
    """Plan rows as tinygrad does: bytes of each lane's arena, and an offset for each row."""
    lanes: dict[str, Any] = defaultdict(lambda: TLSFAllocator(0, block_size=BLOCK))
    events = [(row[1], True, at) for at, row in enumerate(rows)]
    events += [(row[2] + 1, False, at) for at, row in enumerate(rows)]
    arenas: dict[str, int] = defaultdict(int)
    offsets = [0] * len(rows)
    for _, begins, at in sorted(events):
        lane, _, _, size = rows[at]
        size = -(-size // BLOCK) * BLOCK
        if begins:
            offsets[at] = lanes[lane].alloc(size, *([BLOCK] if align else []))
            arenas[lane] = max(arenas[lane], offsets[at] + size)
        else:
            lanes[lane].free(offsets[at])
    UOp.new_buffer(arenas)
    return dict(arenas), offsets


@pytest.fixture
def tinygrad(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rows], Any]:
    """Return a way to call the planner of a stand-in for tinygrad, as its modules do."""
    for name in ("tinygrad", "tinygrad.schedule", "tinygrad.schedule.memory", "tinygrad.jit"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    memory: Any = sys.modules["tinygrad.schedule.memory"]
    user: Any = sys.modules["tinygrad.jit"]
    user.memory_plan_rewrite = memory.memory_plan_rewrite = stand_in
    return lambda *given: user.memory_plan_rewrite(*given)


def draw(rng: random.Random) -> Rows:
    """Return some buffers on two lanes, some of them empty."""
    rows = []
    for _ in range(rng.randrange(25)):
        first = rng.randrange(12)
        size = rng.choice((0, 1, BLOCK, rng.randrange(5000)))
        rows.append((rng.choice("ab"), first, first + rng.randrange(6), size))
    return rows


@pytest.mark.parametrize("nodes", [1, 2_000])
def test_drawn_schedules(tinygrad: Callable[[Rows], Any], nodes: int) -> None:
    """Tests that no two live buffers of a lane overlap, and that no arena grows."""
    rng = random.Random(nodes)
    smaller = 0
    for _ in range(150):
        rows = draw(rng)
        theirs, _ = tinygrad(rows)
        with planning(nodes=nodes) as planned:
            arenas, offsets = tinygrad(rows)
        assert arenas.keys() == theirs.keys()
        assert all(arenas[lane] <= theirs[lane] for lane in arenas)
        (call,) = planned.calls or [()]
        assert sorted(each.bytes for each in call) == sorted(arenas.values())
        assert sorted(each.host_bytes for each in call) == sorted(theirs.values())
        smaller += sum(theirs.values()) > sum(arenas.values())
        for at, (lane, first, last, size) in enumerate(rows):
            assert offsets[at] % BLOCK == 0
            for other in range(at):
                name, begin, end, length = rows[other]
                if name == lane and first <= end and begin <= last and size and length:
                    apart = offsets[at] + size <= offsets[other]
                    assert apart or offsets[other] + length <= offsets[at]
    assert smaller > 10


def test_the_same_schedule_is_planned_once(tinygrad: Callable[[Rows], Any]) -> None:
    """Tests that equal schedules share an arena."""
    rows = [("a", 0, 1, 300), ("a", 1, 2, 700)]
    with planning() as planned:
        assert tinygrad(rows) == tinygrad(rows)
    assert planned.calls[0] == planned.calls[1]
    assert planned.notes == []


def test_what_is_restored(tinygrad: Callable[[Rows], Any]) -> None:
    """Tests that an error of the planner or of the caller ends the context as usual."""
    with pytest.raises(IndexError), planning() as planned:
        tinygrad([("a", 0)])  # type: ignore[list-item]
    assert [note.code for note in planned.notes] == [Code.HOST_PLANS]
    module: Any = sys.modules["tinygrad.jit"]
    assert module.memory_plan_rewrite is stand_in


def test_contexts_in_each_other(tinygrad: Callable[[Rows], Any]) -> None:
    """Tests that the inner context leaves plans to the outer one, and restores nothing."""
    rows = [("a", 0, 1, 300), ("a", 1, 2, 700)]
    with planning() as outer, planning() as inner:
        arenas, _ = tinygrad(rows)
    assert arenas == {"a": 512 + 768}
    assert inner is outer
    assert len(outer.calls) == 1
    assert outer.notes == []
    module: Any = sys.modules["tinygrad.jit"]
    assert module.memory_plan_rewrite is stand_in


def test_threads(tinygrad: Callable[[Rows], Any]) -> None:
    """Tests that threads that plan at once get what one gets, also beside stock's own planner."""
    rows = [draw(random.Random(seed)) for seed in range(12)]
    with planning() as planned:
        alone = [tinygrad(each) for each in rows]
    made = len(planned.calls)
    arenas = {id(arena) for call in planned.calls for arena in call}
    stock = [stand_in(each) for each in rows]
    failures: list[str] = []
    begin = threading.Barrier(4)

    def work(plan: Callable[[Rows], Any], expected: list[Any]) -> None:
        begin.wait()
        for each, answer in zip(rows * 5, expected * 5, strict=True):
            try:
                failures.extend(["another answer"] * (plan(each) != answer))
            except BaseException as error:
                failures.append(repr(error))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with planning() as planned:
            jobs = [(tinygrad, alone)] * 3 + [(stand_in, stock)]
            threads = [threading.Thread(target=work, args=job) for job in jobs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []
    assert planned.notes == []
    assert len(planned.calls) == 3 * 5 * made
    assert len({id(arena) for call in planned.calls for arena in call}) == len(arenas)
    assert tinygrad(rows[0]) == stock[0]


def test_contexts_that_overlap(tinygrad: Callable[[Rows], Any]) -> None:
    """Tests that a context plans until its end, though the one that began first has ended."""
    rows = [("a", 0, 1, 300), ("a", 1, 2, 700)]
    first, second = planning(), planning()
    with first as planned:
        second.__enter__()
    tinygrad(rows)
    assert len(planned.calls) == 1
    module: Any = sys.modules["tinygrad.jit"]
    kept = module.memory_plan_rewrite
    second.__exit__(None, None, None)
    assert module.memory_plan_rewrite is stand_in
    assert kept(rows) == stand_in(rows)
    assert len(planned.calls) == 1


def test_buffers_too_large_for_a_plan(tinygrad: Callable[[Rows], Any]) -> None:
    """Tests that tinygrad plans buffers above 2^62 bytes itself, and that a note says so."""
    for size in (2**62 + 1, 2**64, 2**128):
        rows = [("a", 0, 1, 300), ("a", 1, 2, size)]
        with planning() as planned:
            assert tinygrad(rows) == stand_in(rows)
        assert [note.code for note in planned.notes] == [Code.HOST_PLANS]
        assert "size is " in str(planned.notes[0])
        assert planned.calls == []


def test_arenas_are_made_once(
    tinygrad: Callable[[Rows], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that the pass that records ends before the planner makes arenas, or prints."""
    made: list[dict[str, int]] = []
    monkeypatch.setattr(UOp, "new_buffer", made.append)
    with planning():
        tinygrad([("a", 0, 1, 300), ("b", 1, 2, 700)])
    assert made == [{"a": 512, "b": 768}]


def test_a_planner_of_another_kind_keeps_its_plans(
    tinygrad: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests a planner that asks for more than a size, and releases without a known planner."""
    rows = [("a", 0, 1, 300), ("a", 1, 2, 700)]
    monkeypatch.setattr(
        FirstFit, "alloc", lambda self, size, align=1, alloc=FirstFit.alloc: alloc(self, size)
    )
    with planning() as planned:
        assert tinygrad(rows, True) == stand_in(rows, True)
        assert tinygrad(rows, True) == stand_in(rows, True)
    assert [note.code for note in planned.notes] == [Code.HOST_PLANS]
    assert "its planner is not as expected" in str(planned.notes[0])
    assert planned.calls == []
    module: Any = sys.modules["tinygrad.schedule.memory"]
    for other in (lambda rows: stand_in(rows), None):
        module.memory_plan_rewrite = other
        with planning() as planned:
            assert module.memory_plan_rewrite is other
        assert "does not know the planner of this release" in str(planned.notes[0])


def test_what_it_refuses(tinygrad: Callable[[Rows], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests a wrong budget, and that tinygrad is missing."""
    with pytest.raises(MemplanError, match="nodes"), planning(nodes=-1):
        pass
    monkeypatch.setitem(sys.modules, "tinygrad", None)
    with pytest.raises(MemplanError, match=r"memplan\[tinygrad\]"), planning():
        pass


def run_child(
    script: Path, *arguments: str, release: Path | None, folder: Path | None = None
) -> dict[str, Any]:
    """Return what a child prints last; tinygrad is on the CPU if there is a Clang."""
    device = "CPU" if can_build("clang", *CLANG_FLAGS) else "PYTHON"
    environment = {**os.environ, "DEV": device, device: "1", "CACHELEVEL": "0"}
    if release is not None:
        environment["PYTHONPATH"] = str(release)
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.slow
def test_the_installed_release() -> None:
    """Tests outputs and bytes of steps that run with either planner, and what is restored."""
    if not is_installed("tinygrad"):
        pytest.skip("tinygrad is not installed")
    answer = run_child(STEPS, release=None)
    arenas = [arena for call in answer["calls"] for arena in call]
    assert answer["equal"]
    assert answer["restored"]
    assert answer["errors"] == []
    assert answer["in_threads"] > 0
    assert answer["in_threads"] % 80 == 0
    assert answer["notes"] == []
    assert all(ours <= theirs for ours, theirs in arenas)
    assert any(ours < 0.7 * theirs for ours, theirs in arenas)
    assert answer["blocks"] == [256]


@pytest.mark.deep
@pytest.mark.parametrize("release", ["0.10.2", "0.10.3", "0.11.0", "0.12.0", "0.13.0"])
def test_an_older_release(release: str) -> None:
    """Tests each release of the package index that has a planner; the oldest here keeps its own."""
    if not (RELEASES / release).is_dir():
        pytest.skip(f"tinygrad {release} is not in {RELEASES}")
    if not can_build("clang", *CLANG_FLAGS):
        pytest.skip("there is no Clang, and the device in Python of this release has no views")
    answer = run_child(STEPS, release=RELEASES / release)
    arenas = [arena for call in answer["calls"] for arena in call]
    assert answer["equal"]
    assert answer["errors"] == []
    assert all(ours <= theirs for ours, theirs in arenas)
    if release == "0.10.2":
        assert answer["notes"] == ["host-plans"]
        assert not arenas
    else:
        assert answer["restored"]
        assert answer["in_threads"] > 0
        assert answer["in_threads"] % 80 == 0
        assert answer["notes"] == []
        assert any(ours < 0.7 * theirs for ours, theirs in arenas)
        assert answer["blocks"] == [256 if release == "0.13.0" else 4096]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("release", "files", "passed", "arenas"),
    [
        ("0.10.3", "memory_planner tiny assign subbuffer", 50, 7),
        ("0.11.0", "memory_planner tiny assign jit_cases", 50, 7),
        ("0.12.0", "memory_planner tiny assign jit_cases edgecases", 60, 7),
        ("0.14.0", "tiny", 10, 3),
    ],
)
def test_its_own_tests(release: str, files: str, passed: int, arenas: int) -> None:
    """Tests that tests of each release end as with its planner, where its archive holds them.

    The one file in the archive of 0.13.0 imports another that is not there.
    """
    folder = RELEASES / "sources" / f"tinygrad-{release}"
    if not folder.is_dir():
        pytest.skip(f"tinygrad {release} is not in {folder.parent}")
    if not can_build("clang", *CLANG_FLAGS):
        pytest.skip("there is no Clang")
    names = [f"test/test_{name}.py" for name in files.split()]
    stock, ours = (
        run_child(SUITE, who, *names, folder=folder, release=folder) for who in ("stock", "memplan")
    )
    assert sum(outcome == "passed" for outcome in stock["outcomes"].values()) >= passed
    assert ours["outcomes"] == stock["outcomes"]
    assert ours["arenas"] >= arenas
    assert all("size is " in note for note in ours["notes"])
