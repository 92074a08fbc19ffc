"""Headers in C of programs at the edges, and of models that others made, in a machine of bytes."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import onnx_models
import pytest
from compilers import require_compiler
from tflite_models import for_each_model

import memplan as mp
from memplan.machine.memories import Memory, assign
from memplan.problem import Buffer, Problem, Reserved
from memplan.problem.plan import Plan
from memplan.programs.sources import Loaded, load
from memplan.runtimes.c.header import list_tensors, write_header

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[2] / "native" / "table.c"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
LARGEST_MODEL = 64 << 20  # bytes of an array here; a larger one is only compiled

# Words of C and C++, marks of comments and of texts, and what no keyboard has.
NAMES = (
    "int",
    "class",
    "NULL",
    "plan_arena",
    "*/",
    "??/",
    '"\\',
    "%s",
    "漢字",
    "\u202e",
    "a\nb",
    " ",
)
# As a command takes them, where they would be one name in C, a keyword, or that of another macro.
MEMORIES = ("int", "SIZE_b0", "a.b", "a-b", "a_b", "plan")

EDGES = {
    "nothing": Problem([]),
    "one": Problem([Buffer("a", 0, 1, 1)]),
    "no bytes": Problem([Buffer("a", 0, 2, 0), Buffer("b", 1, 3, 0)]),
    "bytes beside none": Problem(
        [Buffer("a", 0, 2, 0), Buffer("b", 0, 3, 5), Buffer("c", 2, 3, 0)]
    ),
    "far times": Problem([Buffer("a", -(1 << 62), 1 << 62, 3), Buffer("b", 0, 1, 5)]),
    "alignments": Problem(
        [Buffer("a", 0, 2, 5, 3), Buffer("b", 0, 2, 7, 4096), Buffer("c", 1, 3, 9, 12)]
    ),
    "held addresses": Problem(
        [Buffer("a", 0, 2, 5, pin=64), Buffer("b", 0, 2, 7)], reserved=[Reserved(0, 16)]
    ),
    "names": Problem([Buffer(name, at, at + 2, 8 + at) for at, name in enumerate(NAMES)]),
    "more than a byte has numbers": Problem(
        [Buffer(f"b{at}", at % 7, at % 7 + 1 + at % 5, 1 + at % 3) for at in range(900)]
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(tmp_path: Path, name: str) -> None:
    """Tests that no buffer of a problem at an edge loses a byte, and that the table has each."""
    problem = EDGES[name]
    loaded = Loaded(problem, "csv", len(problem))
    require_whole(tmp_path, loaded, mp.solve(problem))


@pytest.mark.parametrize("standard", ["c99", "c++17"])
def test_edges_in_memories(tmp_path: Path, standard: str) -> None:
    """Tests memories without a byte, alignments, and names that are one name in C."""
    random = Random(1)
    lives = [random.randrange(20) for _ in range(40)]
    buffers = [
        Buffer(f"b{at}", start, start + random.randint(1, 5), random.choice((0, 1, 16, 100)), 4)
        for at, start in enumerate(lives)
    ]
    problem = Problem(buffers)
    memories = [
        *(
            Memory(name, 100 * at or 1, read=1 + at, write=1 + at)
            for at, name in enumerate(MEMORIES)
        ),
        Memory("0", read=90, write=90, alignment=64),
        Memory("unused", read=99, write=99),
    ]
    found = assign(problem, memories)
    assert not found.plans[-1].peak
    assert sum(bool(plan.peak) for plan in found.plans) > 3
    header = write_header(Loaded(problem, "csv", len(problem)), found, name="plan")
    require_whole(tmp_path, Loaded(problem, "csv", len(problem)), found, standard)
    for array in ("int", "SIZE_b0", "a_b", "a_b_2", "a_b_3", "plan", "0", "unused"):
        assert f"unsigned char plan_memory_{array}[" in header


def test_a_lost_byte_is_seen(tmp_path: Path, five: Problem) -> None:
    """Tests that the machine notices two buffers that share one byte at one time."""
    problem = five.with_capacity(None)
    plan = mp.solve(problem)
    header = write_header(Loaded(problem, "csv", 5), plan, name="plan")
    lines = [line for line in header.splitlines() if not line.startswith("PLAN_CHECK_(")]
    one = next(line for line in lines if "OFFSET_b4 " in line)
    assert run_table(tmp_path, "\n".join(lines)) is not None
    lines[lines.index(one)] = f"#define PLAN_OFFSET_b4 {plan.offset('b5') + 1}u"
    with pytest.raises(AssertionError, match="b5 has lost a byte"):
        run_table(tmp_path, "\n".join(lines))


@for_each_model()
def test_tflite_models(tmp_path: Path, path: Path | None) -> None:
    """Tests models of wheels: their buffers in one arena and in two memories, and their tensors."""
    if path is None:
        pytest.skip("no wheel with TFLite models is installed")
    require_model(tmp_path, load(path))


@pytest.mark.parametrize(
    ("package", "file", "dims"),
    [
        pytest.param(*each, id=each[1], marks=[] if number == 4 else [pytest.mark.deep])
        for number, each in enumerate(onnx_models.WHEELS)
    ],
)
def test_onnx_models(tmp_path: Path, package: str, file: str, dims: Mapping[str, int]) -> None:
    """Tests the same of ONNX models, whose tensors have long names with slashes and colons."""
    require_model(tmp_path, load(onnx_models.in_wheel(package, file), dims=dims))


def require_model(folder: Path, loaded: Loaded) -> None:
    """Fail if a header of a model loses a byte, or does not have a tensor where the plan has it."""
    problem = loaded.problem
    plan = mp.solve(problem, timeout=10)
    require_whole(folder, Loaded(problem, "csv", len(problem)), plan)
    assert plan.peak is not None
    fast = Memory("fast", plan.peak // 2)
    found = assign(problem, [fast, Memory("slow", read=10, write=10)], nodes=200)
    require_whole(folder, Loaded(problem, "csv", len(problem)), found)
    header = write_header(loaded, plan, name="plan")
    table = run_table(folder, header, "-DONLY_LIST")
    assert table == [
        (each.name, plan.offset(problem.ids[each.row]) + each.within, each.size)
        for each in list_tensors(loaded)
    ]


def require_whole(
    folder: Path, loaded: Loaded, plan: Plan | mp.Assigned, standard: str = "c99"
) -> None:
    """Fail if a buffer loses a byte in the arrays of a header, or is not where the plan has it."""
    several = isinstance(plan, mp.Assigned)
    header = write_header(loaded, plan, name="plan")
    flags = ["-DMEMORY(e)=(e)->memory"] if several else []
    plans: Sequence[Plan] = plan.plans if isinstance(plan, mp.Assigned) else [plan]
    if sum(each.peak or 0 for each in plans) > LARGEST_MODEL:
        flags.append("-DONLY_LIST")
    table = run_table(folder, header, *flags, standard=standard)
    of = {id: each for each in plans for id in each.ids}
    problem = loaded.problem
    sizes = problem.size.tolist()
    assert table == [
        (id, of[id].offset(id), size) for id, size in zip(problem.ids, sizes, strict=True)
    ]


def run_table(
    folder: Path, header: str, *flags: str, standard: str = "c99"
) -> list[tuple[str, int, int]]:
    """Compile the machine with a header and run it: name, offset and size by row of the table."""
    (folder / "plan.h").write_text(header)
    language = ["-x", "c++" if "++" in standard else "c", f"-std={standard}"]
    command = [require_compiler("gcc", "clang", flags=language), "-O1", *language, *STRICT, *flags]
    program = folder / "machine"
    subprocess.run([*command, f"-I{folder}", str(SOURCE), "-o", str(program)], check=True)
    run = subprocess.run([program], capture_output=True, check=False)
    said = run.stdout.decode()
    assert run.returncode == 0, said
    parts = said.split("\0")[:-1]
    places = [tuple(map(int, part.split())) for part in parts[1::2]]
    return [(name, *place) for name, place in zip(parts[::2], places, strict=True)]
