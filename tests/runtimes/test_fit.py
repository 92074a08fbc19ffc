"""Tests of `fit`: what is done to make programs fit, what that costs, and what is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small_programs import chain, training_step

import memplan as mp
from memplan.base.errors import MemplanError
from memplan.base.sizes import parse_size, require_unit, write_size
from memplan.cli import main
from memplan.levers import Aim
from memplan.levers.pipeline import Comparison, Plain, Variant, Written, arrange
from memplan.levers.pipeline.run import Run
from memplan.levers.rewrite import find_floor
from memplan.programs.graph import Graph, Kind, Operator, Tensor
from memplan.programs.graph.pictures import Each, Read
from memplan.programs.sources import of_graph
from memplan.programs.sources.graph_json import write_graph
from memplan.runtimes import fitting
from memplan.runtimes.c.writer import CHeader
from memplan.runtimes.fitting import fit
from memplan.solvers import planning
from memplan.solvers.planning import Planned

MOBILE = Path("examples/models/mobile.tflite")


def branches() -> Graph:
    """Return two branches, of which one is large until it is summed up: the order matters."""
    sizes = {"x": 8, "a": 64, "b": 64, "c": 1, "d": 1, "y": 1}
    kinds = {"x": Kind.INPUT, "y": Kind.OUTPUT}
    tensors = tuple(Tensor(n, s, kinds.get(n, Kind.INTERMEDIATE)) for n, s in sizes.items())
    arcs = (("a", (0,), 1), ("b", (0,), 2), ("c", (1,), 3), ("d", (2,), 4), ("y", (3, 4), 5))
    operators = tuple(Operator(name, "Add", inputs, (made,)) for name, inputs, made in arcs)
    return Graph("fan", tensors, operators, (0,), (5,))


def step(found: mp.Arranged, lever: str) -> int:
    """Return what is needed after a lever."""
    return next(each.arena for each in found.steps if each.lever == lever)


def test_a_plan_in_the_best_order() -> None:
    """Tests that the order of one lever is the one that a fit takes, and what no order can do."""
    loaded = of_graph(branches())
    found, whole = mp.plan(loaded, levers=["order"]), fit(loaded)
    assert found.steps[0].change.peak == found.peak == step(whole, "order")
    least = int(found.axes[0].bound)
    assert least == whole.bound_of_orders
    refused = mp.plan(loaded, levers=["order"], capacity=least - 1)
    assert str(refused.status) == "infeasible"


def test_levers_that_cost_nothing_come_first() -> None:
    """Tests that each lever is tried only where those before it do not fit."""
    loaded = of_graph(branches())
    whole = fit(loaded)
    assert [each.lever for each in whole.steps] == ["offsets", "in place", "order", "bands"]
    assert step(whole, "offsets") == 8 + 64 + 64
    assert step(whole, "order") < step(whole, "offsets")
    assert whole.extra == 0
    enough = fit(loaded, step(whole, "offsets"))
    assert enough.fits
    assert [each.lever for each in enough.steps] == ["offsets"]
    ordered = fit(loaded, step(whole, "order"))
    assert ordered.fits
    assert ordered.is_reordered
    assert ordered.bound_of_orders == ordered.order.bound if ordered.order else False


def test_bands_have_the_least_work_that_fits() -> None:
    """Tests that more memory means no more work, and that what fits is a verified plan."""
    loaded = of_graph(chain(2, 16, 16, 2))
    least = fit(loaded)
    assert least.point is not None
    assert step(least, "bands") < step(least, "order")
    extra = float("inf")
    for size in range(least.arena, step(least, "order"), 256):
        found = fit(loaded, size)
        assert found.fits
        assert found.arena <= size
        assert found.extra <= extra
        assert found.best.extra == min(each.extra for each in found.drafts if each.arena <= size)
        extra = found.extra
        mp.verify(found.planned.problem, found.plan)
        assert found.comparison is None


def test_a_smaller_arena_at_the_price_of_more_work_is_not_taken() -> None:
    """Tests the choice between drafts that fit, one that does not apart."""
    writer = Plain(of_graph(chain(2, 16, 16, 2)))
    whole = arrange(writer).best
    run = Run(writer, whole.arena, Aim())
    small = replace(whole, written=replace(whole.written, arena=whole.arena - 1), extra=0.5)
    run.drafts = [small, whole, replace(small, extra=0.7)]
    assert run.finish(whole).best is whole
    run.drafts = [replace(small, extra=0.7), small]
    assert run.finish(whole).best is small


def test_re_runs_add_no_more_work_than_allowed() -> None:
    """Tests that a program whose re-runs take more is not taken, and that the step says so."""
    writer, asked = Plain(of_graph(training_step())), {"capacity": 1040, "again": True}
    allowed = arrange(writer, max_extra=0.06, **asked)
    assert allowed.fits
    assert 0 < allowed.extra <= 0.06
    refused = arrange(writer, max_extra=0.01, **asked)
    assert not refused.fits
    assert refused.extra == 0
    assert refused.steps[-1].words == "none with at most 1% more work"


class Slow(Plain):
    """Programs that need 1,041 bytes, and take ten seconds to write and measure."""

    def write(self, given: Variant, planned: Planned) -> Written:
        """Let ten seconds pass."""
        Clock.now += 10
        return replace(super().write(given, planned), arena=1041)


class Clock:
    """A clock that runs only where a program is written."""

    now = 0.0

    @staticmethod
    def perf_counter() -> float:
        """Return the seconds."""
        return Clock.now


@pytest.mark.parametrize(("timeout", "tried"), [(15.0, 1), (1000.0, 3)])
def test_no_more_re_runs_are_measured_after_the_time(
    monkeypatch: pytest.MonkeyPatch, timeout: float, tried: int
) -> None:
    """Tests that re-runs are written once where no time is left, and tried again where there is."""
    monkeypatch.setattr(planning, "time", Clock)
    writer, asked = Slow(of_graph(training_step())), {"capacity": 1040, "again": True}
    found = arrange(writer, timeout=timeout, max_extra=9.0, order=False, bands=False, **asked)
    assert sum(each.variant.again is not None for each in found.drafts) == tried


@pytest.mark.parametrize(("timeout", "tried"), [(15.0, 1), (1000.0, 3)])
def test_no_more_bands_are_measured_after_the_time(
    monkeypatch: pytest.MonkeyPatch, timeout: float, tried: int
) -> None:
    """Tests that the most promising bands are written, and others only while there is time."""
    monkeypatch.setattr(planning, "time", Clock)
    writer = Slow(of_graph(chain(2, 16, 16, 2)), trials=3)
    found = arrange(writer, timeout=timeout, order=False, bands=True, max_extra=9.0)
    assert sum(each.point is not None for each in found.drafts) == tried


def test_bands_in_a_header_are_for_kernels_of_the_user(tmp_path: Path) -> None:
    """Tests that nothing is compared, and that the steps are written."""
    loaded, out = of_graph(chain(2, 16, 16, 2)), tmp_path / "net.h"
    found = fit(loaded, fit(loaded, out=out).arena, out=out)
    assert found.fits
    assert found.point is not None
    assert "_steps[" in out.read_text()


@pytest.mark.parametrize("whole", [frozenset({1}), frozenset({0, 2}), frozenset()])
def test_no_program_goes_below_the_floor(whole: frozenset[int]) -> None:
    """Tests the floor against what all levers reach, and that it names what holds it up."""
    graph = chain(2, 16, 16, 2, whole=whole)
    floor, why = find_floor(graph)
    found = arrange(Plain(of_graph(graph)), in_place=True, order=True, bands=True, max_extra=1e9)
    assert floor <= found.arena
    assert floor >= graph.tensors[0].bytes
    if 1 in whole:
        assert floor == found.arena == graph.tensors[1].bytes + graph.tensors[2].bytes
        assert "conv1" in why
        assert "it mixes all rows" in why


def test_writes_in_place_and_scratch_count_in_the_floor() -> None:
    """Tests an operator that may write over its input, with a workspace."""
    graph = chain(2, 16, 16, 2, whole=frozenset({1}))
    first, middle, last = graph.operators
    middle = replace(middle, in_place=((1, 2),), workspace=100)
    floor, _ = find_floor(replace(graph, operators=(first, middle, last)))
    assert floor == graph.tensors[1].bytes + 100


def test_a_problem_without_operators_has_only_offsets() -> None:
    """Tests a problem of a file, whose order cannot be changed."""
    problem = mp.load("examples/five.csv")
    found = fit(problem, 12)
    assert found.fits
    assert [each.lever for each in found.steps] == ["offsets"]
    assert found.find_floor()[0] == found.bound
    assert not fit(problem, 11).fits


def test_the_whole_arena_of_tflm_has_to_fit(tmp_path: Path) -> None:
    """Tests a file: the plan fits, but not what TFLM keeps beside it; nothing is written then."""
    pytest.importorskip("tflite_micro")
    out = tmp_path / "out.tflite"
    assert not fit(MOBILE, "40KiB", out=out).fits
    assert not out.exists()
    found = fit(MOBILE, "45000", out=out)
    assert found.fits
    assert found.arena > (found.plan.peak or 0)
    assert out.read_bytes() == found.data
    assert fit(MOBILE, "40KiB", head_only=True).fits


def test_the_command_says_what_each_lever_brings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests the words, the exit codes, the files and the facts for scripts."""
    path, out = tmp_path / "net.graph.json", tmp_path / "net.h"
    path.write_text(write_graph(branches()))
    least = fit(of_graph(branches())).arena
    assert main(["fit", str(path), str(least), "-o", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "It fits into" in shown
    assert "order" in shown
    assert "_order[" in out.read_text()
    assert main(["fit", str(path), "20", "-o", str(tmp_path / "no.h"), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["fits"] is False
    assert facts["floor"]["bytes"] <= facts["arena"]
    assert not (tmp_path / "no.h").exists()
    assert main(["fit", str(path)]) == 0
    assert "The least that these levers need" in capsys.readouterr().out


def give_outputs(monkeypatch: pytest.MonkeyPatch, *differences: float | None) -> None:
    """Give headers a runtime whose outputs for bands differ so; the last difference repeats."""
    left = list(differences)

    def compare(*_: object) -> Comparison | None:
        difference = left.pop(0) if len(left) > 1 else left[0]
        return None if difference is None else Comparison(difference)

    def choose(model: Path, *_: object, **__: object) -> CHeader:
        return CHeader(mp.load(model), has_runtime=True)

    monkeypatch.setattr(CHeader, "compare", compare)
    monkeypatch.setattr(fitting, "choose_writer", choose)


@pytest.mark.parametrize(("difference", "code"), [(0.5, 1), (None, 2)])
def test_outputs_that_differ_are_not_written(
    difference: float | None,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests bands with other outputs, or with none: by the command and in Python, until allowed."""
    path, out = tmp_path / "net.graph.json", tmp_path / "net.h"
    path.write_text(write_graph(chain(2, 16, 16, 2)))
    size = str(fit(path, nodes=10_000).arena)
    give_outputs(monkeypatch, difference)
    command = ["fit", str(path), size, "-o", str(out)]
    assert main(command) == code
    assert "--accept inexact writes" in " ".join("".join(capsys.readouterr()).split())
    assert not out.exists()
    assert main([*command, "--allow-inexact"]) == 0
    assert out.exists()


def test_other_bands_are_tried_where_outputs_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a fit takes the next bands if the ones with the least work differ in a bit."""
    path = tmp_path / "net.graph.json"
    path.write_text(write_graph(chain(2, 16, 16, 2)))
    whole = fit(path, nodes=10_000)
    size = whole.arena + 200
    first = fit(path, size, out=tmp_path / "a.h", nodes=10_000)
    give_outputs(monkeypatch, 1e-7, 0)
    second = fit(path, size, out=tmp_path / "b.h", nodes=10_000)
    assert second.fits
    assert second.comparison == Comparison(0)
    assert first.point is not None
    assert second.point is not None
    assert second.point.work > first.point.work


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["-o", "a.h"], "give a SIZE: only what fits is written"),
        (["40KiB", "-o", "a.onnx"], "what is written is a tflite model"),
        (["forty"], "is not a size"),
        (["0"], "is not a size"),
    ],
)
def test_what_is_refused(
    asked: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests options that do not fit together: one sentence, and nothing is written."""
    assert main(["fit", str(MOBILE), *asked]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert not Path("a.h").exists()


@pytest.mark.parametrize(
    ("text", "size"), [("1KiB", 1024), ("1KB", 1000), ("0x10", 16), ("1.5k", 1536), (7, 7)]
)
def test_sizes_as_people_write_them(text: str | int, size: int) -> None:
    """Tests units and numbers."""
    assert parse_size(text) == size
    with pytest.raises(MemplanError, match="not a whole number"):
        parse_size("1.0001KB" if size != 7 else "0.3KiB")


@pytest.mark.parametrize("text", ["4EiB", "4611686018427387904", "0x4000000000000000", 1 << 62])
def test_a_size_is_at_most_the_largest_address(text: str | int) -> None:
    """Tests the largest size, and that larger ones are refused, however they are written."""
    assert parse_size(text) == 1 << 62
    for more in ("5EiB", "4611686018427387905", "0x4000000000000001", "9" * 40, (1 << 62) + 1):
        with pytest.raises(MemplanError, match=f"{more} is too large; a size is at most 2.62"):
            parse_size(more)


@pytest.mark.parametrize(
    "words",
    [
        "fit {m} S",
        "recompute {m} -c S",
        "apply {m} --c-header a.h -c S",
        "plan {m} --memory a=S --memory b=1M",
        "plan {m} -c S",
        "plan {m} --reserve 0:S",
        "inspect {m} -c S",
    ],
)
def test_every_command_refuses_a_size_above_the_largest_address(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that one check serves all options that take a size."""
    size = str((1 << 62) + 1)
    assert main([each.format(m=MOBILE).replace("S", size) for each in words.split()]) == 2
    assert f"{size} is too large; a size is at most 2^62 bytes" in capsys.readouterr().err
    assert not Path("a.h").exists()


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1, "1B"),
        (1000, "1000B"),
        (1024, "1KiB"),
        (96 << 10, "96KiB"),
        (3 << 51, "6PiB"),
        (1 << 61, "2EiB"),
    ],
)
def test_a_size_is_written_with_its_unit(size: int, text: str) -> None:
    """Tests that what a sentence suggests is read exactly, and is not asked about."""
    assert write_size(size) == text
    assert parse_size(text) == size
    require_unit(parse_size(text), 1 << 62)


def test_rows_of_element_wise_operators_are_each_their_own() -> None:
    """Tests that maps are values, so that graphs with them compare."""
    assert Each() == Each()
    assert Read(0, Each(), Each()) != Read(1, Each(), Each())


def test_results_are_their_own_reports() -> None:
    """Tests that what Python prints, also in a notebook, is the report of the command."""
    loaded = of_graph(branches())
    for found, word in (
        (fit(loaded), "The least that these levers need"),
        (mp.inspect(loaded), "bytes"),
        (mp.compare(loaded, loaded), "peak"),
    ):
        assert word in str(found)
        assert word in found._repr_html_()  # type: ignore[attr-defined]


def test_a_number_without_a_unit_is_asked_about_where_it_is_absurd() -> None:
    """Tests the one rule: a small number, and one thing that is much larger."""
    for text, least, asked in (
        ("320", 200_000, True),
        ("320B", 200_000, False),
        ("320", 64 * 320, True),
        ("320", 64 * 320 - 1, False),
        ("1", 4095, False),
        ("1", 4096, True),
        ("262144", 1 << 40, False),
        ("16383", 1 << 40, True),
        ("0x10", 1 << 40, False),
    ):
        size = parse_size(text)
        if asked:
            with pytest.raises(MemplanError, match=f"{text} has no unit.* write {text}KiB or "):
                require_unit(size, least)
        else:
            require_unit(size, least)
    require_unit(1, 1 << 40)  # a number from Python is exact
    require_unit(None, 1 << 40)
