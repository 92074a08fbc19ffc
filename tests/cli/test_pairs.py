"""Tests every pair of options of `memplan plan` that mean something: it works, or says why not."""

from __future__ import annotations

import json
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from asked import PARALLEL
from command_line import assert_refused, memplan
from tflite_models import Writer, floats

from memplan.ask.supports import explain_pair
from memplan.problem import formats
from memplan.programs.sources.graph_json import write_graph
from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph

MEMORIES = ("--memory a=600B", "--memory b")
# By name, what is given; words in capitals depend on the programs. MORE is another program.
OPTIONS: dict[str, tuple[str, ...]] = {
    "order": ("--levers order",),
    "again": ("--levers again", "-c CAPACITY"),
    "bands": ("--levers bands",),
    "waits": ("--levers waits", "-c CAPACITY"),
    "in place": ("--in-place",),
    "memories": MEMORIES,
    "in turn": ("MORE",),
    "blocks": ("--block-limit 600B",),
    "penalties": ("--penalties PAIRS", "-c CAPACITY"),
    "sizes": ("--dim batch=1:3",),
    "--capacity": ("-c CAPACITY",),
    "--minimize": ("--minimize",),
    "--alignment": ("--alignment 32",),
    "--reserve": ("--reserve 0:16",),
    "--pin": ("--pin FIRST=64",),
    "--board": ("--board esp32",),
    "--solver": ("--solver exact",),
    "--exclude": ("--exclude outputs",),
    "--keep": ("MORE", "--keep one:LAST"),
    "--overlap": ("MORE", "--overlap one,more"),
    "--often": ("MORE", *MEMORIES, "--often one=2"),
    "--spill": ("--levers again", "-c CAPACITY", "--spill 1GB/s"),
    "--pure": ("--levers order", "--pure TYPE"),
    "--residency": (*MEMORIES, "--residency"),
    "--reads": (*MEMORIES, "--reads TYPE=2"),
    "--allow": (*MEMORIES, "--allow FIRST=b"),
    "--where": ("--dim batch=1:3", "--where batch<=2"),
    "--program": ("--levers order", "--program left.json"),
    "--proof": ("--proof one.proof",),
    "--trace": ("--trace rounds",),
}
IN_TURN = ("in turn", "--keep", "--overlap", "--often")
SIZES = ("sizes", "--where")
IN_MEMORIES = ("memories", "--residency", "--reads", "--allow", "--often")
ORDER, AGAIN = ("order", "--pure", "--program"), ("again", "--spill")
PLAIN = ("--capacity", "--minimize", "--alignment", "--reserve", "--pin", "--solver", "--exclude")
# What is refused: each of the first with each of the second, and why.
REFUSED: list[tuple[tuple[str, ...], tuple[str, ...], str]] = [
    (ORDER, ("waits",), explain_pair("order", "waits")),
    (AGAIN, ("waits",), explain_pair("again", "waits")),
    (("bands",), ("waits",), explain_pair("bands", "waits")),
    (("in place",), ("waits",), explain_pair("in place", "waits")),
    (("bands",), SIZES, explain_pair("bands", "sizes")),
    (("waits",), SIZES, explain_pair("waits", "sizes")),
    (("blocks",), ("penalties",), explain_pair("blocks", "penalties")),
    (IN_MEMORIES, ("blocks",), "the largest block is of one arena; give it to a memory instead"),
    (IN_MEMORIES, ("--capacity",), "it is of one arena; give each --memory a size"),
    ((*IN_MEMORIES, "blocks", "penalties"), ("--solver",), "are of plans in one arena"),
    ((*IN_TURN, *SIZES), ("--pin",), "it is of one program, at one size"),
    (IN_TURN, ("--program",), "it writes what --levers made of one program"),
    (("--often",), ("--residency",), "are counted once, so they do not combine with how often"),
    (("waits",), ("--board",), "only TFLM's kernels need a board"),
    (("waits",), ("--proof",), "a proof cannot express conflicts"),
    (("in place",), ("--proof",), "a proof is of one layout; leave out --in-place"),
    (
        (*IN_TURN, *SIZES, *IN_MEMORIES, "blocks", "penalties"),
        ("--proof",),
        "it is of one program as it is, of one size, in one arena",
    ),
    (
        tuple(OPTIONS.keys() - {"in place", "--board", "--proof", "--trace", *PLAIN}),
        ("--trace",),
        "it is of one program as it is, of one size, in one arena",
    ),
]
WHY = {
    frozenset(pair): why
    for one, other, why in REFUSED
    for pair in product(one, other)
    if pair[0] != pair[1]
}
PAIRS = [*combinations(OPTIONS, 2)]


def write_network(name: str) -> bytes:
    """Return a TFLite model with two branches, of any batch."""
    tensors = tuple(floats(f"{name}{at}", 1, 65, open_axes=(0,)) for at in range(6))
    steps = [("RELU", (0,)), ("TANH", (0,)), ("TANH", (1,)), ("ADD", (2, 3)), ("RELU", (4,))]
    operators = tuple(
        OperatorInfo(type, inputs, (at + 1,)) for at, (type, inputs) in enumerate(steps)
    )
    return Writer().write(Model("net", (SubGraph("", tensors, operators, (0,), (5,)),)))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two models, and two programs on two streams."""
    folder = tmp_path_factory.mktemp("programs")
    for name, begin, sketch in (("one", "t", PARALLEL[0]), ("more", "u", PARALLEL[1])):
        (folder / f"{name}.tflite").write_bytes(write_network(begin))
        graph = sketch.at().graph
        assert graph is not None
        (folder / f"{name}.json").write_text(write_graph(graph))
    return folder


def make_words(pair: tuple[str, str], programs: Path) -> list[str]:
    """Return the command line of a pair, and write the penalties that it needs."""
    groups = dict.fromkeys([*OPTIONS[pair[0]], *OPTIONS[pair[1]]])
    in_turn, in_memories = "MORE" in groups, MEMORIES[0] in groups
    if in_memories and "--capacity" not in pair:  # the sizes of memories are the capacity
        groups.pop("-c CAPACITY", None)
    is_streamed = "waits" in pair
    suffix, first, last, type = (
        ("json", "x", "y", "CONV") if is_streamed else ("tflite", "t0", "t4", "RELU")
    )
    of = "one/" * in_turn
    Path("pairs.csv").write_text(f"first,second,cost\n{of}{first},{of}{last},5\n")
    is_folder = in_turn or in_memories or "blocks" in pair
    words = {
        "CAPACITY": "200B" if is_streamed else "4KiB",
        "PAIRS": "pairs.csv",
        "FIRST": f"{of}{first}",
        "LAST": last,
        "TYPE": type,
        "MORE": str(programs / f"more.{suffix}"),
    }
    line = (
        f"plan {programs}/one.{suffix} {' '.join(groups)} -o {'plans' if is_folder else 'p.json'}"
    )
    for name, given in words.items():
        line = line.replace(name, given)
    return [*line.split(), "--no-runtime", "--json"]


def make_check(pair: tuple[str, str], programs: Path) -> list[str]:
    """Return the command line that verifies what a pair wrote, with the same options."""
    groups = dict.fromkeys([*OPTIONS[pair[0]], *OPTIONS[pair[1]]])
    in_turn = "MORE" in groups
    words = [f"{programs}/{name}.tflite" for name in ("one", "more")[: 1 + in_turn]]
    words.append("p.json" if Path("p.json").is_file() else "plans")
    for group in groups:
        option = group.partition(" ")[0]
        # What is reserved beside several programs is no matter of one of them.
        if option in ("--alignment", "--pin", "--board", "--in-place", "--exclude") or (
            option == "--reserve" and not in_turn
        ):
            words += group.replace("FIRST", "t0").split()
        elif option == "--dim":
            words += ["--dim", "batch=2" if "--where" in pair else "batch=3"]
    return ["verify", *words]


@pytest.mark.parametrize("pair", PAIRS, ids=" x ".join)
def test_a_pair_works_or_is_refused_with_its_reason(pair: tuple[str, str], programs: Path) -> None:
    """Tests the answer, and that what was asked for is kept by the plans that are written."""
    done = memplan(*make_words(pair, programs))
    why = WHY.get(frozenset(pair))
    if why is not None:
        assert_refused(done, why)
        return
    assert done.returncode == 0, done.stderr
    check(pair, json.loads(done.stdout))
    if "waits" not in pair:  # a plan of the program with waits, which --program writes
        checked = memplan(*make_check(pair, programs))
        assert checked.returncode == 0, checked.stderr


def check(pair: tuple[str, str], found: dict[str, Any]) -> None:
    """Check that options have an effect: nothing that was asked for is left out in silence."""
    paths = [Path("p.json")] if Path("p.json").is_file() else [*Path("plans").glob("*.plan.json")]
    plans = [formats.load_plan(each) for each in paths]
    placed = {id: plan.offset(id) for plan in plans for id in plan.ids}
    sizes = [size for plan in plans for size in plan.size.tolist()]
    assert placed
    kept = {
        "--alignment": all(offset % 32 == 0 for offset in placed.values()),
        "--reserve": min(placed.values()) >= 16,
        "--pin": 64 in (placed.get("t0"), placed.get("x")),
        "--exclude": not {"t5", "u5", "y"} & placed.keys(),
        "blocks": max(plan.peak or 0 for plan in plans) <= max(600, *sizes),
        "--program": Path("left.json").is_file(),
        "--trace": Path("rounds").is_file(),
        "--proof": Path("one.proof").is_file() or "--capacity" in pair or {*pair} & {*AGAIN},
        "in turn": {part["program"] for part in found.get("parts", ())} == {"one", "more"},
        "in place": "in place" in {step["lever"] for step in found.get("steps", ())}
        or found.get("in_place") is not None,
        "memories": {part["place"] for part in found.get("parts", ())} <= {"a", "b"},
        **{
            lever: lever in {step["lever"] for step in found.get("steps", ())}
            for lever in ("order", "again", "bands", "waits")
        },
    }
    for option in pair:
        assert kept.get(option, True), option


def test_most_pairs_work() -> None:
    """Tests that each reason is of a pair that is tried, and how many there are."""
    pairs = set(map(frozenset, PAIRS))
    assert pairs >= WHY.keys()
    assert len(pairs - WHY.keys()) > 4 * len(pairs) / 5
