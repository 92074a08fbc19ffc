"""Tests of memplan.extensions.xla: dumps as protocol buffers and as text, good and bad."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import xla_dumps
from hypothesis import given
from hypothesis import strategies as st
from xla_dumps import ALLOC, FREE, SHARE, hlo

from memplan import solve
from memplan.base.errors import FormatError, MemplanError
from memplan.extensions.xla import matches, read
from memplan.extensions.xla.heap import Chunk
from memplan.extensions.xla.text import _merge
from memplan.problem import Buffer, Gap
from memplan.problem.plan import Plan
from memplan.programs.graph import Kind
from memplan.programs.sources.loaded import Figure, Label
from memplan.programs.sources.options import Options
from memplan.referee import verify

pytest.importorskip("google.protobuf")

pytestmark = pytest.mark.slow


def written(tmp_path: Path, message: Any, name: str = "module_1.jit_step.hlo.pb") -> Path:
    """Write a message to a file."""
    path = tmp_path / name
    path.write_bytes(message.SerializeToString())
    return path


def reports(folder: Path, assignment: str = xla_dumps.ASSIGNMENT, **more: str) -> Path:
    """Write the two reports; return the assignment."""
    path = folder / "module_1.jit_step.cpu_after_optimizations-buffer-assignment.txt"
    path.write_text(assignment)
    ranges = more.get("ranges", xla_dumps.RANGES)
    path.with_name(path.name.replace("buffer-assignment", "live-range")).write_text(ranges)
    return path


def outcome(path: Path) -> str:
    """Return the sentence with which a file is refused, or nothing."""
    try:
        read(path, Options())
    except FormatError as error:
        return str(error)
    return ""


class TestProtos:
    """Traces of the heap simulator."""

    def test_a_loop(self, tmp_path: Path) -> None:
        """Tests values that share, the gap between them, and what the trace does not have."""
        path = written(tmp_path, hlo())
        assert matches(path.read_bytes()[:4096], path)
        loaded = read(path, Options())
        assert list(loaded.problem.buffers) == [
            Buffer("s", 0, 7, 64, 64, hint=0, gaps=(Gap(2, 5),)),
            Buffer("table", 0, 8, 64, 64, hint=128),
            Buffer("c", 1, 6, 64, 64, hint=64),
            Buffer("t", 3, 4, 64, 64, hint=0),
        ]
        assert loaded.labels[0] == Label(
            ("s", "next"),
            "intermediate",
            "jit(step)/tanh (fusion)",
            ("c (fusion)", "table (fusion)"),
            "fusion",
        )
        assert (loaded.source, loaded.tensors, loaded.notes) == ("xla", 5, ())
        assert loaded.figures == (Figure("XLA", 192, "recorded"),)

    @pytest.mark.parametrize(
        ("name", "module"),
        [
            ("jit(step)/jit(main)/jvp(Net)/Dense_0/dot_general", "Net.Dense_0"),
            ("jit(step)/transpose(jvp(Net))/Dense_0/jit(relu)/max", "Net.Dense_0"),
            ("jit(<lambda>)/jvp()/while/body/closed_call/sub", ""),
            ("model/dense/MatMul", "model.dense"),
            ("sub", ""),
        ],
    )
    def test_where_it_comes_from(self, tmp_path: Path, name: str, module: str) -> None:
        """Tests that the names that JAX gives lead to modules, and lines are those of the user."""
        message = hlo()
        origin = message.hlo_module.computations[0].instructions[1].metadata
        origin.op_name, origin.source_file, origin.source_line = name, "/home/me/net.py", 41
        labels = read(written(tmp_path, message), Options()).labels
        places = {label.tensors[0]: (label.module, label.line) for label in labels}
        assert places == {
            "s": ("", ""),
            "c": (module, "net.py:41"),
            "t": ("", ""),
            "table": ("", ""),
        }

    def test_lines_in_tables(self, tmp_path: Path) -> None:
        """Tests that lines are found where XLA keeps them by number, and that others are none."""
        message = hlo()
        index, main = message.hlo_module.stack_frame_index, message.hlo_module.computations[0]
        index.file_names.extend(["/home/me/net.py", "/home/me/train.py"])
        index.file_locations.add(file_name_id=2, line=7)
        index.file_locations.add(file_name_id=1, line=41)
        index.file_locations.add(file_name_id=3, line=1)
        for location in (1, 2, 3, 9):
            index.stack_frames.add(file_location_id=location)
        for at, frame in enumerate([2, 3, 4, 0, 1]):
            main.instructions[at].metadata.stack_frame_id = frame
        labels = read(written(tmp_path, message), Options()).labels
        lines = {label.tensors[0]: label.line for label in labels}
        assert lines == {"s": "net.py:41", "c": "", "t": "", "table": "train.py:7"}

    def test_in_place(self, tmp_path: Path) -> None:
        """Tests that a result written in place leaves no gap: no other memory begins there."""
        events = [(ALLOC, 1, 0), (ALLOC, 2, 0), (FREE, 1, 0), (SHARE, 4, 1), (FREE, 2, 0)]
        events += [(FREE, 4, 0), (SHARE, 5, 4)]  # shares with what shares itself
        offsets = {1: 0, 2: 64, 4: 0, 5: 0}
        loaded = read(written(tmp_path, hlo(events, offsets=offsets)), Options())
        assert not loaded.problem.has_gaps
        assert [(b.id, b.start, b.end) for b in loaded.problem.buffers] == [
            ("s", 0, 7),  # "table" is never freed
            ("c", 1, 4),
        ]
        assert loaded.labels[0].tensors == ("s", "next", "table")

    def test_our_plan_is_no_worse(self, tmp_path: Path) -> None:
        """Tests that XLA's offsets are a plan of the problem, so that the best is no worse."""
        problem = read(written(tmp_path, hlo()), Options()).problem
        verify(problem, Plan.of(problem, problem.hint.tolist()))
        plan = solve(problem)
        assert plan.lower_bound <= 192
        assert plan.peak is not None
        assert plan.peak <= 192

    @pytest.mark.parametrize(
        ("offsets", "alignment"),
        [
            ({1: 0, 2: 64}, 64),
            ({1: 0, 2: 1024}, 256),
            ({1: 0, 2: 68}, 4),
            ({1: 0}, 256),
        ],
    )
    def test_alignment(self, tmp_path: Path, offsets: dict[int, int], alignment: int) -> None:
        """Tests that offsets keep the alignment that all of XLA's have, up to that of GPUs."""
        events = [(ALLOC, id, 0) for id in offsets]
        loaded = read(written(tmp_path, hlo(events, offsets=offsets, size=2048)), Options())
        assert set(loaded.problem.alignment.tolist()) == {alignment}

    def test_tuples(self, tmp_path: Path) -> None:
        """Tests that a part of a tuple is named by its index, and used by what takes it out."""
        message = hlo()
        message.buffer_assignment.logical_buffers[0].defined_at.shape_index.append(1)
        main = message.hlo_module.computations[0]
        for part in (0, 1):
            main.instructions.add(
                id=10 + part, name=f"part{part}", opcode="get-tuple-element",
                operand_ids=[1], tuple_index=part,
            )  # fmt: skip
            main.instructions.add(id=20 + part, name=f"use{part}", opcode="add",
                                  operand_ids=[10 + part])  # fmt: skip
        loaded = read(written(tmp_path, message), Options())
        assert loaded.labels[0].tensors == ("s{1}", "next")
        assert loaded.labels[0].used_by == ("use1 (add)", "table (fusion)")

    @pytest.mark.parametrize(
        ("events", "sentence"),
        [
            ([(FREE, 1, 0)], "frees logical buffer 1, which is not allocated"),
            ([(ALLOC, 1, 0), (ALLOC, 1, 0)], "allocates logical buffer 1 twice"),
            ([(SHARE, 2, 1)], "shares logical buffer 2 with nothing"),
            ([(ALLOC, 1, 0), (SHARE, 2, 1)], "shares logical buffer 1 with one at another offset"),
        ],
    )
    def test_traces_that_contradict_themselves(
        self, tmp_path: Path, events: list[tuple[int, int, int]], sentence: str
    ) -> None:
        """Tests that a trace must be one that a simulator could write."""
        assert sentence in outcome(written(tmp_path, hlo(events)))

    @pytest.mark.parametrize("size", [32, 128])
    def test_another_size(self, tmp_path: Path, size: int) -> None:
        """Tests that a value has the size in its allocation that it is defined with."""
        message = hlo()
        message.buffer_assignment.logical_buffers[0].size = size
        said = outcome(written(tmp_path, message))
        assert f"gives logical buffer 1 64 bytes, but defines it with {size}" in said

    @pytest.mark.parametrize("offset", [-1, 129, 1 << 62])
    def test_outside(self, tmp_path: Path, offset: int) -> None:
        """Tests that values lie in their allocation."""
        said = outcome(written(tmp_path, hlo(offsets={1: 0, 2: offset})))
        assert "has logical buffer 2 outside of its allocation" in said

    def test_nothing_to_plan(self, tmp_path: Path) -> None:
        """Tests that a module without temporary memory is a sentence."""
        message = hlo()
        del message.buffer_assignment.heap_simulator_traces[:]
        assert outcome(written(tmp_path, message)).endswith("so there is nothing to plan")

    @given(st.data())
    def test_damage(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        """Tests that a file that is cut off or damaged is read, or refused in a sentence."""
        good = hlo().SerializeToString()
        bad = bytearray(good[: data.draw(st.integers(0, len(good)))])
        for _ in range(data.draw(st.integers(0, 3)) if bad else 0):
            bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path_factory.mktemp("damage") / "x.hlo.pb"
        path.write_bytes(bytes(bad))
        matches(bytes(bad[:4096]), path)
        assert "\n" not in outcome(path)


class TestText:
    """Reports for people."""

    def test_reports(self, tmp_path: Path) -> None:
        """Tests that lifetimes come from the report next to it, both ends included."""
        path = reports(tmp_path)
        assert matches(path.read_bytes(), path)
        loaded = read(path, Options())
        # "s" has the place of the loop's state "w", so it is the same memory.
        assert [(b.id, b.start, b.end, b.size, b.hint) for b in loaded.problem.buffers] == [
            ("s", 0, 7, 64, 0),
            ("c", 1, 4, 64, 64),
            ("t", 3, 5, 64, 128),
            ("late", 4, 10, 64, 64),
        ]
        assert loaded.labels[0].tensors == ("s", "w{1}")
        assert loaded.figures == (Figure("XLA", 192, "recorded"),)
        verify(loaded.problem, Plan.of(loaded.problem, loaded.problem.hint.tolist()))

    def test_values_that_meet(self, tmp_path: Path) -> None:
        """Tests that values on common bytes at a common time are one buffer, as in XLA's plan."""
        ranges = xla_dumps.RANGES.replace("late{}:4-9", "late{}:3-9")
        loaded = read(reports(tmp_path, ranges=ranges), Options())
        assert ("c", "late") in [label.tensors for label in loaded.labels]
        verify(loaded.problem, Plan.of(loaded.problem, loaded.problem.hint.tolist()))

    def test_no_lifetimes(self, tmp_path: Path) -> None:
        """Tests that the error names the missing file."""
        path = tmp_path / "a-buffer-assignment.txt"
        path.write_text(xla_dumps.ASSIGNMENT)
        assert "has no lifetimes: put XLA's *live-range.txt into the same folder" in outcome(path)

    @pytest.mark.parametrize(
        ("old", "new", "sentence"),
        [
            ("size=64,offset=128", "size=64,offset=129", "the value t is outside of its"),
            (
                ",offset=128): f32[16]{0}",
                "",
                ":7: the report is cut off, or not in the format of XLA",
            ),
            ("allocation 1: size 192", "allocation 1: size", ":4: the report is cut off"),
            ("preallocated-temp", "constant", "so there is nothing to plan"),
            (" 0: size 64", " 0: size 9" + "9" * 30, ":2: the report is cut off"),
        ],
    )
    def test_bad_reports(self, tmp_path: Path, old: str, new: str, sentence: str) -> None:
        """Tests that what is not as XLA writes it is refused with its line."""
        path = reports(tmp_path, xla_dumps.ASSIGNMENT.replace(old, new))
        assert sentence in outcome(path)

    @given(st.data())
    def test_damage(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        """Tests that reports with lines lost, cut or changed are read, or refused in a sentence."""
        text = xla_dumps.ASSIGNMENT
        at = data.draw(st.integers(0, len(text)))
        damaged = text[:at] + data.draw(st.text(max_size=5)) + text[at + data.draw(
            st.integers(0, 40)
        ):]  # fmt: skip
        folder = tmp_path_factory.mktemp("damage")
        (folder / "a-live-range.txt").write_text(xla_dumps.RANGES)
        path = folder / "a-buffer-assignment.txt"
        path.write_bytes(damaged.encode(errors="replace"))
        assert "\n" not in outcome(path)


class TestFolders:
    """What `--xla_dump_to` makes."""

    def test_the_largest_program(self, tmp_path: Path) -> None:
        """Tests that the largest is read, others are noted, and early stages are skipped."""
        written(tmp_path, hlo(module="jit_small"), "module_1.hlo.pb")
        written(tmp_path, hlo(module="jit_big", size=256), "module_2.hlo.pb")
        (tmp_path / "module_2.before_optimizations.hlo.pb").write_bytes(b"nonsense")
        reports(tmp_path, xla_dumps.ASSIGNMENT.replace("192", "999"))
        assert matches(b"", tmp_path)
        loaded = read(tmp_path, Options())
        assert loaded.figures[0].bytes == 256
        (note,) = loaded.notes
        assert note.text.startswith("only jit_big is read, the largest of 2 temporary allocations")

    def test_an_allocation_of_several(self, tmp_path: Path) -> None:
        """Tests that one of two memories of a program can be chosen by its number."""
        more = (
            "allocation 9: size 64, color 1, preallocated-temp:\n"
            " value: <90 fast @0> (size=64,offset=0): f32[16]{0:S(1)}\n"
        )
        path = reports(tmp_path, xla_dumps.ASSIGNMENT + more)
        for where in (path, tmp_path):
            (note,) = read(where, Options()).notes
            assert "(number 1, 192 bytes)" in note.text
            assert "the same program has 9 (64 bytes): choose with --read allocation=N" in note.text
            other = read(where, Options(part=9))
            assert (other.problem.ids, other.figures[0].bytes, other.notes) == (("fast",), 64, ())
            with pytest.raises(MemplanError, match="no temporary allocation 7; there is 1 of mod"):
                read(where, Options(part=7))

    def test_an_allocation_of_one_program(self, tmp_path: Path) -> None:
        """Tests that a number that two programs have asks for the file of one."""
        first = written(tmp_path, hlo(module="jit_small"), "module_1.hlo.pb")
        written(tmp_path, hlo(module="jit_big", size=256), "module_2.hlo.pb")
        number = 7  # of the allocation that `hlo` has
        with pytest.raises(MemplanError, match="2 programs have a temporary allocation"):
            read(tmp_path, Options(part=number))
        assert read(first, Options(part=number)).problem == read(first, Options()).problem

    @pytest.mark.parametrize("name", ["m.before_optimizations.hlo.pb", "m.hlo.pb"])
    def test_no_assignment_yet(self, tmp_path: Path, name: str) -> None:
        """Tests that a program before the assignment is refused with the file that has it."""
        early = hlo()
        early.ClearField("buffer_assignment")
        sentence = outcome(written(tmp_path, early, name))
        assert "has no buffer assignment" in sentence
        assert "give the file *after_optimizations*.hlo.pb of the same dump" in sentence

    def test_text_where_there_are_no_protos(self, tmp_path: Path) -> None:
        """Tests that reports are read in place of protocol buffers that have no assignment."""
        early = hlo()
        early.ClearField("buffer_assignment")
        written(tmp_path, early)
        reports(tmp_path)
        assert len(read(tmp_path, Options()).problem) == 4

    def test_other_folders(self, tmp_path: Path) -> None:
        """Tests that other folders are none of ours."""
        assert not matches(b"", tmp_path)
        assert not matches(b"", tmp_path / "none")
        assert outcome(tmp_path).endswith("so there is nothing to plan")
        assert "cannot be read" in outcome(tmp_path / "none")

    def test_kinds(self, tmp_path: Path) -> None:
        """Tests that a user who asks for other kinds is told that there are none."""
        path = written(tmp_path, hlo())
        notes = read(path, Options(include=frozenset({Kind.INPUT, Kind.INTERMEDIATE}))).notes
        (note,) = notes
        assert (note.code, note.text) == (
            "kinds-missing",
            "an XLA dump has temporary buffers only; other kinds cannot be included",
        )


@pytest.mark.parametrize(
    "head", [b"", b"\n\n\n\n", b"\n\nid,lower,upper", b"\x0a\xff", b"\x08\x07"]
)
def test_other_files(tmp_path: Path, head: bytes) -> None:
    """Tests that text and other protocol buffers are not taken for HLO."""
    path = tmp_path / "f"
    path.write_bytes(head)
    assert not matches(head, path)


SCAN = Path(__file__).parents[1] / "data" / "xla_scan.hlo.pb"

# Programs that JAX compiles for the CPU: the gradients of a network, of convolutions, of a loop.
PROGRAMS = """
import jax, jax.numpy as np
def mlp(x, ws):
    for w in ws:
        x = np.tanh(x @ w)
    return x.sum()
def conv(x, ks):
    for k in ks:
        x = jax.nn.relu(jax.lax.conv(x, k, (1, 1), "SAME"))
    return x.sum()
def scan(c, xs):
    def body(c, x):
        c = np.tanh(c @ x)
        return c, c.sum()
    return jax.lax.scan(body, c, xs)[1].sum()
zeros = lambda *shape: np.zeros(shape, np.float32)
arguments = {
    "mlp": (zeros(32, 64), [zeros(64, 128), zeros(128, 256), zeros(256, 16)]),
    "conv": (zeros(2, 3, 32, 32), [zeros(8, 3, 3, 3), zeros(16, 8, 3, 3)]),
    "scan": (zeros(16, 16), zeros(10, 16, 16)),
}
jax.jit(jax.grad(PROGRAM, argnums=1)).lower(*arguments["PROGRAM"]).compile()
"""


def no_worse(path: Path) -> None:
    """Check a plan against XLA's own: it is legal here, and ours is proved to be no larger."""
    loaded = read(path, Options())
    peak = loaded.figures[0].bytes
    verify(loaded.problem, Plan.of(loaded.problem, loaded.problem.hint.tolist()))
    plan = solve(loaded.problem)
    assert plan.peak is not None
    assert plan.lower_bound <= plan.peak <= peak
    assert plan.status == "optimal"


def test_a_real_loop() -> None:
    """Tests the dump of the gradient of a scan by JAX 0.10, stripped to the fields that are read.

    `SCAN` is what `PROGRAMS` makes of "scan", parsed and written again without unknown fields.
    """
    loaded = read(SCAN, Options())
    assert loaded.figures == (Figure("XLA", 35076, "recorded"),)
    assert (loaded.tensors, len(loaded.problem)) == (56, 20)
    assert loaded.problem.has_gaps
    state = next(label for label in loaded.labels if "arg_tuple.1{1}" in label.tensors)
    assert state.tensors == (
        "copy.28", "arg_tuple.3{1}", "arg_tuple.1{1}", "wrapped_tanh", "while.13{1}",
    )  # fmt: skip
    no_worse(SCAN)


@pytest.mark.parametrize("program", ["mlp", "conv", "scan"])
@pytest.mark.parametrize("kind", ["proto", "text"])
def test_dumps_of_jax(tmp_path: Path, program: str, kind: str) -> None:
    """Tests what XLA dumps today, as protocol buffers and as text."""
    pytest.importorskip("jax")
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_{kind} --xla_dump_hlo_as_text"
    subprocess.run(
        [sys.executable, "-c", PROGRAMS.replace("PROGRAM", program)],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=True,
        capture_output=True,
    )
    assert matches(b"", tmp_path)
    no_worse(tmp_path)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(0, 20), st.integers(1, 6)),
        max_size=12,
    )
)
def test_chunks_that_meet_become_one(boxes: list[tuple[int, int, int, int]]) -> None:
    """Tests the sweep against looking at every pair, over and over."""
    chunks = [
        Chunk((str(at),), bytes, offset, start, start + length)
        for at, (start, length, offset, bytes) in enumerate(boxes)
    ]
    slow = [({c.values[0]}, c.start, c.end, c.offset, c.offset + c.bytes) for c in chunks]
    while pair := next((p for p in combinations(slow, 2) if _meet(*p)), None):
        one, two = pair
        ends = (min(one[1], two[1]), max(one[2], two[2]), min(one[3], two[3]), max(one[4], two[4]))
        slow = [each for each in slow if each not in pair] + [(one[0] | two[0], *ends)]
    fast = [
        (set(c.values), c.start, c.end, c.offset, c.offset + c.bytes)
        for c in _merge(Path("report"), chunks)
    ]
    assert sorted(fast, key=lambda c: min(c[0])) == sorted(slow, key=lambda c: min(c[0]))


def _meet(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return bool(a[1] < b[2] and b[1] < a[2] and a[3] < b[4] and b[3] < a[4])
