"""Plans as headers for C and C++, in the hands of the compilers that are here."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
import strategies
from compilers import can_build, list_compilers, require_compiler
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies_graph import chain

from memplan import reorder, solve
from memplan.base.errors import MemplanError, PlanError
from memplan.cli import main
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.plan import Plan
from memplan.programs.graph import Block, Graph, Operator
from memplan.programs.sources import Loaded, load, of_graph
from memplan.programs.sources.graph_json import write_graph
from memplan.runtimes.c import header
from memplan.runtimes.c import names as c_names
from memplan.runtimes.c.header import list_tensors, write_header
from memplan.runtimes.c.neighbours import find_neighbours
from memplan.runtimes.c.paths import write_paths_header
from memplan.scenarios.paths import PathPlans, plan_paths

EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE = EXAMPLES / "c_header"
FAN = EXAMPLES / "structures" / "fan.graph.json"
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LANGUAGES = [["-std=c99", "-x", "c"], ["-std=c11", "-x", "c"], ["-std=c++17", "-x", "c++"]]
COMPILERS = list_compilers("gcc", "clang", flags=["-std=c99", *STRICT])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMPILERS, reason="needs gcc or clang with C99"),
]

# With and without what only one source file asks for, and twice: headers are read again.
USE = """
#include "plan.h"
#define {0}_DEFINE_ARENA
#define {0}_DEFINE_TABLE
#include "plan.h"
#include "plan.h"
int main(void) {{ return (int)({1}_table[0].size + {1}_arena[0]) * 0; }}
"""

HOSTILE = [
    "*/ int x; /*",
    "// \\",
    "line\nbreak\r\v\u2028\u0085",
    "??/",
    "??=define int long",
    '"quoted" \\',
    "\\u0041",
    "漢字",
    "ß",
    "0",
    "1e5",
    "int",
    "class",
    "and",
    "ARENA_SIZE",
    "_",
    "a_b",
    "a b",
    "a__b",
    "a_b_2",
    "NULL",
    "__LINE__",
    "%s%n",
    "\x01\x7f\ufeff",
    "x" * 5000,
    "漢" * 3000,
]


def as_loaded(problem: Problem) -> Loaded:
    """Return a problem as a file of it is read."""
    return Loaded(problem, "csv", len(problem))


def compile_(folder: Path, header: str, *, compiler: str, language: list[str]) -> str:
    """Return what a compiler complains of in a use of the header; nothing if it is content."""
    macro = re.search(r"#define (\w+)_ARENA_SIZE", header)
    assert macro
    (folder / "plan.h").write_text(header)
    (folder / "use").write_text(USE.format(macro[1], macro[1].lower()))
    command = [compiler, *language, *STRICT, "-fsyntax-only", "use"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1)
    return run.stderr if run.returncode else ""


def everywhere(folder: Path, header: str) -> list[str]:
    """Return the complaints of every compiler in every language."""
    return [
        compile_(folder, header, compiler=compiler, language=language)
        for compiler in COMPILERS
        for language in LANGUAGES
        if can_build(compiler, *language)
    ]


def constants(header: str) -> dict[str, str]:
    """Return the macros that stand for something, without comments."""
    lines = re.findall(r"^#define (\w+) (.+?)(?: /\*.*\*/)?$", header, re.MULTILINE)
    return dict(lines)


@pytest.fixture
def network() -> tuple[Loaded, Plan]:
    """Return the example's network and a plan."""
    loaded = load(EXAMPLE / "network.graph.json")
    return loaded, solve(loaded.problem)


def run_network(folder: Path, header: str, compiler: str) -> subprocess.CompletedProcess[str]:
    """Compile the example against a header, and run it."""
    (folder / "network.h").write_text(header)
    command = [compiler, "-std=c99", "-O2", *STRICT, f"-I{folder}", str(EXAMPLE / "main.c")]
    subprocess.run([*command, "-o", str(folder / "main"), "-lm"], check=True)
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_network_runs_in_the_arena(
    tmp_path: Path, network: tuple[Loaded, Plan], compiler: str
) -> None:
    """Tests that a network computes the same bits in the arena as with memory for each tensor."""
    loaded, plan = network
    run = run_network(tmp_path, write_header(loaded, plan), compiler)
    assert run.returncode == 0, run.stdout
    assert "the same results, bit for bit" in run.stdout
    assert f"arena {plan.peak} bytes" in run.stdout


def test_network_notices_an_overlap(tmp_path: Path, network: tuple[Loaded, Plan]) -> None:
    """Tests that the comparison of the example can fail: without assertions, a bad plan shows."""
    header = write_header(*network)
    header = re.sub(r"^NETWORK_CHECK_.*\n", "", header, flags=re.MULTILINE)
    header = re.sub(r"(#define NETWORK_BUFFER_OFFSET_\w+) \d+u", r"\1 0u", header)
    run = run_network(tmp_path, header, COMPILERS[0])
    assert run.returncode == 1
    assert "DIFFERENT RESULTS" in run.stdout


def test_views_lie_within_their_base(network: tuple[Loaded, Plan]) -> None:
    """Tests that a view's offset is that of its buffer and its own together."""
    loaded, plan = network
    found = constants(write_header(loaded, plan))
    assert found["NETWORK_BUFFER_OFFSET_conv2"] == f"{plan.offset('conv2')}u"
    assert found["NETWORK_OFFSET_gate"] == "(NETWORK_BUFFER_OFFSET_conv2 + 2048u)"
    assert found["NETWORK_SIZE_gate"] == "2048u"
    assert found["NETWORK_OFFSET_flat"] == "(NETWORK_BUFFER_OFFSET_sum + 0u)"
    assert found["NETWORK_SIZE_scores"] == "40u"
    assert found["NETWORK_BUFFER_SIZE_scores"] == "48u"


def test_compiles_everywhere(tmp_path: Path, network: tuple[Loaded, Plan], five: Problem) -> None:
    """Tests that graphs and plain problems become headers that strict compilers take."""
    assert not any(everywhere(tmp_path, write_header(*network)))
    assert not any(everywhere(tmp_path, write_header(as_loaded(five), solve(five))))


def test_empty_and_huge(tmp_path: Path) -> None:
    """Tests that nothing at all, buffers of no bytes and buffers of exabytes compile."""
    empty = Problem([])
    nothing = Problem([Buffer("a", -(1 << 62), 1 << 62, 0)])
    huge = Problem([Buffer("a", 0, 1, 1 << 61), Buffer("b", 0, 1, 1 << 61), Buffer("c", 1, 2, 1)])
    for problem in (empty, nothing):
        header = write_header(as_loaded(problem), solve(problem))
        assert not any(everywhere(tmp_path, header))
    header = write_header(as_loaded(huge), solve(huge))
    # No machine has such an array; everything but the arena is still right.
    header = re.sub(r"^PLAN_ALIGNED_.*$", "", header, flags=re.MULTILINE)
    (tmp_path / "plan.h").write_text(header)
    for compiler in COMPILERS:
        command = [compiler, "-std=c99", *STRICT, "-fsyntax-only", "-x", "c", "plan.h"]
        subprocess.run(command, cwd=tmp_path, check=True)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language[0])
def test_overlap_does_not_compile(
    tmp_path: Path, five: Problem, compiler: str, language: list[str]
) -> None:
    """Tests that a header with any single offset made wrong does not compile."""
    require_compiler(compiler, flags=language)
    problem = five.with_capacity(None)
    header = write_header(as_loaded(problem), Plan.of(problem, [8, 8, 4, 4, 0]))
    assert compile_(tmp_path, header, compiler=compiler, language=language) == ""
    for id, wrong in (("b1", 5), ("b2", 0), ("b3", 1), ("b4", 0), ("b5", 3), ("b2", 9)):
        changed = re.sub(rf"(#define PLAN_OFFSET_{id}) \d+u", rf"\1 {wrong}u", header)
        assert changed != header
        complaint = compile_(tmp_path, changed, compiler=compiler, language=language)
        assert re.search("assert|negative", complaint), (id, complaint)


def test_misalignment_does_not_compile(tmp_path: Path) -> None:
    """Tests that an offset that breaks its alignment does not compile."""
    problem = Problem([Buffer("a", 0, 1, 64), Buffer("b", 0, 1, 64, alignment=64)])
    header = write_header(as_loaded(problem), Plan.of(problem, [0, 64]))
    assert not any(everywhere(tmp_path, header))
    changed = header.replace("OFFSET_b 64u", "OFFSET_b 96u").replace("SIZE 128u", "SIZE 256u")
    assert all("%" in complaint or "negative" in complaint
               for complaint in everywhere(tmp_path, changed))  # fmt: skip


def test_refuses_a_wrong_plan(five: Problem) -> None:
    """Tests that a plan with an overlap never becomes a header."""
    with pytest.raises(PlanError, match="b1"):
        write_header(as_loaded(five), Plan.of(five, [4, 8, 4, 4, 0]))


def test_windows(tmp_path: Path) -> None:
    """Tests that a buffer in the gap of another one is held apart from its window alone."""
    outer = Buffer("outer", 0, 3, 8, gaps=(Gap(1, 2, (4, 8)),))
    problem = Problem([outer, Buffer("inner", 1, 2, 4)])
    header = write_header(as_loaded(problem), Plan.of(problem, [0, 0]))
    assert not any(everywhere(tmp_path, header))
    changed = header.replace("OFFSET_inner 0u", "OFFSET_inner 2u")
    assert all(everywhere(tmp_path, changed))


def test_hostile_names(tmp_path: Path) -> None:
    """Tests that no name gets out of its comment or literal, or takes another one's place."""
    problem = Problem([Buffer(name, at, at + 2, 4) for at, name in enumerate(HOSTILE)])
    plan = solve(problem)
    for name in [*HOSTILE, ""]:
        header = write_header(as_loaded(problem), plan, name=name)
        assert not any(everywhere(tmp_path, header)[:1]), name
    assert not any(everywhere(tmp_path, header))
    offsets = [line for line in constants(header) if line.startswith("PLAN_OFFSET_")]
    assert len(set(offsets)) == len(HOSTILE)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_table_has_the_names(tmp_path: Path, compiler: str) -> None:
    """Tests that the table that a program reads has every name, byte for byte, and its place."""
    names = [name for name in HOSTILE if len(name) < 100]
    problem = Problem([Buffer(name, at, at + 2, 4 + at) for at, name in enumerate(names)])
    plan = solve(problem)
    (tmp_path / "plan.h").write_text(write_header(as_loaded(problem), plan))
    (tmp_path / "dump.c").write_text(
        '#include <stdio.h>\n#define PLAN_DEFINE_TABLE\n#include "plan.h"\n'
        "int main(void) { for (const plan_entry* e = plan_table; e->name; ++e)\n"
        'printf("%s%c%d %d %d %d%c", e->name, 0, (int)e->offset, (int)e->size,\n'
        "(int)e->first, (int)e->last, 0);\n return 0; }\n"
    )
    command = [compiler, "-std=c99", *STRICT, "dump.c", "-o", "dump"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "dump"], capture_output=True, check=True).stdout
    parts = said.decode().split("\0")[:-1]
    assert parts[::2] == names
    rows = [f"{plan.offset(name)} {4 + at} {at} {at + 1}" for at, name in enumerate(names)]
    assert parts[1::2] == rows


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_program_runs_in_the_order_of_its_header(tmp_path: Path, compiler: str) -> None:
    """Tests that `apply --order` writes the order as numbers that a program can follow."""
    header = tmp_path / "plan.h"
    assert main(["apply", str(FAN), "--order", "--c-header", str(header)]) == 0
    assert "#define FAN_ARENA_SIZE 37888u" in header.read_text()
    assert not any(everywhere(tmp_path, header.read_text()))
    (tmp_path / "dump.c").write_text(
        '#include <stdio.h>\n#define FAN_DEFINE_TABLE\n#include "plan.h"\n'
        "int main(void) { for (unsigned at = 0; at < FAN_ORDER_COUNT; ++at)\n"
        'printf("%u ", (unsigned)fan_order[at]);\n return 0; }\n'
    )
    command = [compiler, "-std=c99", *STRICT, "dump.c", "-o", "dump"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "dump"], capture_output=True, text=True, check=True).stdout
    assert tuple(map(int, said.split())) == reorder(load(FAN)).order
    assert main(["apply", str(FAN), "--c-header", str(header)]) == 0
    assert "_order[" not in header.read_text()


def test_an_order_inside_of_blocks_is_no_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a header whose order says less than the plan needs is not written."""
    inner = load(FAN).graph
    assert inner is not None
    block = Block("then", inner.operators, inner.inputs, inner.outputs)
    result = replace(inner.tensors[inner.outputs[0]], name="result")
    outputs = (len(inner.tensors),)
    outer = Operator("if", "if", inner.inputs, outputs, blocks=(block,))
    tensors = (*inner.tensors, result)
    graph = replace(inner, tensors=tensors, operators=(outer,), outputs=outputs)
    path, header = tmp_path / "if.graph.json", tmp_path / "plan.h"
    path.write_text(write_graph(graph))
    assert main(["apply", str(path), "--order", "--c-header", str(header)]) == 2
    assert "inside of branches or loops" in capsys.readouterr().err
    assert not header.exists()


def test_one_arena_in_a_program(tmp_path: Path, five: Problem) -> None:
    """Tests that files share one arena in C and C++, and that a second definition does not link."""
    (tmp_path / "plan.h").write_text(write_header(as_loaded(five), solve(five)))
    define = "#define PLAN_DEFINE_ARENA\n"
    use = '#include "plan.h"\n'
    (tmp_path / "owner.c").write_text(define + use)
    (tmp_path / "user.cpp").write_text(use + "int main() { return plan_arena[0]; }\n")
    (tmp_path / "second.c").write_text(define + use)
    compiler = require_compiler(*COMPILERS, flags=["-x", "c++"])
    for file in ("owner.c", "user.cpp", "second.c"):
        subprocess.run([compiler, *STRICT, "-c", file], cwd=tmp_path, check=True)
    link = [compiler, "owner.o", "user.o", "-o", "main"]
    subprocess.run(link, cwd=tmp_path, check=True)
    twice = subprocess.run([*link, "second.o"], cwd=tmp_path, capture_output=True, check=False)
    assert twice.returncode != 0
    assert b"plan_arena" in twice.stderr


def test_number_of_pairs_is_bounded(monkeypatch: pytest.MonkeyPatch, five: Problem) -> None:
    """Tests that a header says so where it has fewer assertions than pairs."""
    loaded, plan = as_loaded(five), solve(five)
    whole = write_header(loaded, plan)
    monkeypatch.setattr(header, "MAX_PAIRS", 2)
    cut = write_header(loaded, plan)
    every = len(list(find_neighbours(five, plan.offsets.tolist())))  # type: ignore[union-attr]
    assert whole.count("PLAN_CHECK_(") - cut.count("PLAN_CHECK_(") == every - 2 > 0
    assert "pairs only" not in whole
    assert "first 2 pairs;" in cut


@settings(max_examples=60)
@given(strategies.problems(max_buffers=7))
def test_neighbours_prove_that_nothing_overlaps(problem: Problem) -> None:
    """Tests that chains of neighbours order every pair that holds memory at one time."""
    plan = solve(problem.with_capacity(None))
    if plan.offsets is None:
        return
    offsets = plan.offsets.tolist()
    pairs = list(find_neighbours(problem, offsets))
    held = c_spans(problem)
    assert len(pairs) == len(set(pairs)) <= 3 * len(held)
    for pair in pairs:
        assert offsets[pair.below] + pair.upper <= offsets[pair.above] + pair.lower
    known = {((p.below, p.upper), (p.above, p.lower)) for p in pairs}
    for time in {start for _, start, *_ in held}:
        live = [span for span in held if span[1] <= time < span[2]]
        live.sort(key=lambda span: offsets[span[0]] + span[3])
        for low, high in combinations(live, 2):
            if live.index(high) == live.index(low) + 1:
                assert ((low[0], low[4]), (high[0], high[3])) in known


def c_spans(problem: Problem) -> list[tuple[int, int, int, int, int]]:
    """Return (buffer, start, end, lower, upper) of what each buffer holds, by its own words."""
    found = []
    for row, b in enumerate(problem.buffers):
        since = b.start
        for gap in sorted(b.gaps, key=lambda gap: gap.start):
            found.append((row, since, gap.start, 0, b.size))
            if gap.window is not None:
                found.append((row, gap.start, gap.end, *gap.window))
            since = gap.end
        found.append((row, since, b.end, 0, b.size))
    return [span for span in found if span[1] < span[2] and span[3] < span[4]]


@given(st.lists(strategies.any_text() | strategies.ids(), unique=True))
@example(["a_2", "a ", "a", "a\t", "a_3", "a_1"])
@example(["", "_", "unnamed", "unnamed_2"])
def test_identifiers(names: list[str]) -> None:
    """Tests that identifiers are distinct, of C's alphabet, and as they were if they can be."""
    found = c_names.make_identifiers(names)
    assert len(set(found)) == len(found) == len(names)
    for name, identifier in zip(names, found, strict=True):
        assert re.fullmatch(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)*", identifier)
        if re.fullmatch(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)*", name) and len(name) <= 100:
            assert identifier == name


@given(st.text())
def test_text_is_harmless(text: str) -> None:
    """Tests that prefixes, literals and comments are what they should be, whatever the text."""
    assert re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", c_names.make_prefix(text))
    comment = c_names.escape_comment(text)
    assert re.fullmatch(r"[ ->@-\[\]-~]*", comment)
    assert not re.search(r"^\*|/\*|\*/|\*$", comment)
    literal = c_names.quote_string(text)
    assert literal[0] == literal[-1] == '"'
    assert re.fullmatch(r"(?:[^\"\\?\x00-\x1f\x7f-\U0010ffff]|\\[0-3][0-7]{2})*", literal[1:-1])
    data = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), literal[1:-1])
    assert data.encode("latin-1").decode("utf-8", "surrogatepass") == text


CHOOSE = """
#include <stdio.h>
#include "plan.h"
#define NET_DEFINE_PATHS
#include "plan.h"
int main(void) {
  int runs = 1;
  for (int choice = 0; choice < NET_CHOICE_COUNT; ++choice) runs *= 3;
  for (int run = 0; run < runs; ++run) {
    int branches[NET_CHOICE_COUNT], left = run;
    for (int choice = 0; choice < NET_CHOICE_COUNT; ++choice, left /= 3) {
      branches[choice] = left % 3 - 1;
      printf("%d ", branches[choice]);
    }
    const int plan = net_choose(branches);
    printf("%lld", (long long)net_arena_sizes[plan]);
    for (int tensor = 0; tensor < NET_TENSOR_COUNT; ++tensor)
      printf(" %lld", (long long)net_offsets[plan][tensor]);
    printf("\\n");
  }
  return LAST;
}
"""


def require_paths(folder: Path, found: PathPlans, language: list[str], last: str = "0") -> None:
    """Fail if C chooses another plan than Python for any choices, or has other offsets."""
    header = write_paths_header(found, name="net")
    (folder / "plan.h").write_text(header)
    (folder / "use").write_text(CHOOSE.replace("LAST", last))
    compiler = require_compiler(*COMPILERS, flags=language)
    command = [compiler, *language, *STRICT, "use", "-o", "run"]
    subprocess.run(command, cwd=folder, check=True)
    run = subprocess.run([folder / "run"], capture_output=True, text=True, check=True)
    names = [entry.name for entry in list_tensors(found.fallback.loaded)]
    lines, count = run.stdout.splitlines(), len(found.choices)
    assert len({tuple(line.split()[:count]) for line in lines}) == len(lines) == 3**count
    for line in lines:
        numbers = list(map(int, line.split()))
        made = zip(found.choices, numbers, strict=False)
        path = found.choose({each.name: each.branches[at] for each, at in made if at >= 0})
        planned = path.planned if path else found.fallback
        assert numbers[count] == planned.plan.peak
        places = dict.fromkeys(names, -1)
        for entry in list_tensors(planned.loaded):
            id = planned.problem.ids[entry.row]
            places[entry.name] = planned.plan.offset(id) + entry.within
        assert numbers[count + 1 :] == list(places.values())
    assert f"#define NET_ARENA_SIZE {found.peak}u" in header
    assert not any(everywhere(folder, header))


@pytest.mark.parametrize("language", LANGUAGES, ids=" ".join)
def test_plans_of_paths(tmp_path: Path, language: list[str]) -> None:
    """Tests that C chooses the plans that Python does, and has the same offsets."""
    found = plan_paths(of_graph(chain(2, given=False)))
    require_paths(tmp_path, found, language, "NET_BRANCH_if1_small - 1 + NET_CHOICE_if1 - 1")


def renamed(graph: Graph, choices: list[tuple[str, str, str]], tensors: list[str]) -> Graph:
    """Return a program with other names of its choices with their branches, and of tensors."""
    names = iter(choices)

    def rename(operator: Operator) -> Operator:
        if not operator.blocks:
            return operator
        name, *branches = next(names)
        blocks = zip(operator.blocks, branches, strict=True)
        return replace(operator, name=name, blocks=tuple(replace(b, name=own) for b, own in blocks))

    made = [replace(each, name=own) for each, own in zip(graph.tensors, tensors, strict=False)]
    return replace(
        graph,
        operators=tuple(map(rename, graph.operators)),
        tensors=(*made, *graph.tensors[len(made) :]),
    )


MEETING = [("a", "b_c", "COUNT"), ("a_b", "c", "d"), ("COUNT", "COUNT", "c")]


@pytest.mark.parametrize(
    ("count", "choices", "names", "bytes_"),
    [
        (3, MEETING, ["COUNT", "ALL", "PATH1", "a b", "a_b", "a-b"], None),
        (2, [("*/", "??/", "漢字"), ("int", "", "")], HOSTILE, None),
        (1, [("x" * 5000, "0", "1e5")], ["*", " "], 1),
        (1, [("if", "then", "else")], [], 1 << 57),
        (1, [("if", "then", "else")], [], {"x": 1}),
    ],
)
def test_plans_of_paths_at_the_edges(
    tmp_path: Path,
    count: int,
    choices: list[tuple[str, str, str]],
    names: list[str],
    bytes_: int | dict[str, int] | None,
) -> None:
    """Tests names that meet each other and our own, tensors of a byte, huge ones, and one alone."""
    program = chain(count, given=False)
    if bytes_ is not None:
        sizes, usual = (bytes_, 0) if isinstance(bytes_, dict) else ({}, bytes_)
        tensors = (replace(each, bytes=sizes.get(each.name, usual)) for each in program.tensors)
        program = replace(program, tensors=tuple(tensors))
    found = plan_paths(of_graph(renamed(program, choices, names)))
    for language in (LANGUAGES[0], LANGUAGES[-1]):
        require_paths(tmp_path, found, language)


def test_paths_without_a_byte_have_no_header() -> None:
    """Tests that the sentence says why."""
    program = chain(1, given=False)
    none = replace(program, tensors=tuple(replace(each, bytes=0) for each in program.tensors))
    with pytest.raises(MemplanError, match="no tensor of the program is planned"):
        write_paths_header(plan_paths(of_graph(none)))
