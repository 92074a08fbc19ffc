"""Tests of best known peaks: the file, the referee over it, and the command that improves it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from sweep_folder import RESULT, write_sweep

from memplan.base.errors import FormatError, PlanError
from memplan.cli import output
from memplan.problem import Problem
from memplan.problem.plan import Plan
from memplan.solvers import solve
from memplan_lab.bench import best_known, generators, record_table, records
from memplan_lab.bench.best_known import Best
from memplan_lab.bench.best_update import Claim, check, stock_plan, update
from memplan_lab.bench.records import Corpus, Record
from memplan_lab.cli import main

pytest.importorskip("pyarrow")

pytestmark = pytest.mark.slow


def problem(seed: int) -> Problem:
    """Return a problem whose least peak is above what one pass of greedy finds at once."""
    made = generators.synthetic(20, seed).with_capacity(None)
    return made.without_names()


def record(name: str, seed: int, peak: int, *, proved: bool = False) -> Record:
    """Return a record that says this of the least peak."""
    features = dict.fromkeys(record_table.FEATURES, 0) | {record_table.PROFILE: ()}
    return Record(name, "made", problem(seed), {}, features, peak, proved)


def corpus(folder: Path, *made: Record) -> Corpus:
    """Return a corpus of these records, by way of its file."""
    records.write(made, folder / "corpus.parquet", {"version": "test"})
    return records.corpus(folder / "corpus.parquet")


PLAN = solve(problem(1), "auto", "min_peak", threads=1)
assert PLAN.peak is not None
LEAST = PLAN.peak
LINE = Best(
    problem(1).fingerprint, "one", LEAST, LEAST, "auto", 0, 1000, "0", best_known.pack_offsets(PLAN)
)


def claim(**other: object) -> Claim:
    """Return the claim that `auto` proves the least peak of problem `one`."""
    fields = asdict(Claim("one", LINE.fingerprint, LEAST, True, "auto", 0, 1.0))
    return Claim(**{**fields, **other})


def wrong(corpus: Corpus, *lines: Best) -> dict[str, str]:
    """Return what a check finds, by problem."""
    found = check(corpus, {line.fingerprint: line for line in lines})
    return {each.name: each.wrong for each in found}


# The file --------------------------------------------------------------------------------------


def test_lines_come_back_sorted(tmp_path: Path) -> None:
    """Tests that a file holds what was written, by fingerprint whatever the order was."""
    other = replace(LINE, fingerprint="sha256:0", name="two")
    file = tmp_path / "best.jsonl"
    best_known.write({LINE.fingerprint: LINE, other.fingerprint: other}, file)
    assert list(best_known.read(file).values()) == [other, LINE]
    assert best_known.text(best_known.read(file)) == file.read_text()


def test_what_is_shipped_can_be_read() -> None:
    """Tests that the file in the package is in the form that the command writes."""
    assert best_known.text(best_known.read()) == Path(best_known.path()).read_text()


def line(**other: object) -> str:
    """Return a line of a file with some fields changed; those that become None are left out."""
    fields = asdict(LINE) | other
    return json.dumps({name: value for name, value in fields.items() if value is not None})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{"], ":2: is no best known peak"),
        (["[]"], "fields must be fingerprint, name"),
        ([line(peak=None)], "fields must be fingerprint, name"),
        ([line(more=1)], "fields must be fingerprint, name"),
        ([line(peak="7")], 'peak is "7"'),
        ([line(peak=True)], "peak is True"),
        ([line(nodes=-1)], "nodes is -1"),
        ([line(), line()], ":3: one is in it twice"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, lines: Sequence[str], message: str) -> None:
    """Tests that what a hand could break is refused with the line and the field."""
    file = tmp_path / "best.jsonl"
    best_known.write({}, file)
    file.write_text(file.read_text() + "\n".join(lines))
    with pytest.raises(FormatError) as caught:
        best_known.read(file)
    assert message in str(caught.value)


def test_another_format_is_refused(tmp_path: Path) -> None:
    """Tests that a file of another release, or of something else, is not read as this one."""
    file = tmp_path / "best.jsonl"
    file.write_text('{"memplan": "best known peaks", "format": 2}\n')
    with pytest.raises(FormatError, match="no file of best known peaks"):
        best_known.read(file)


def test_a_line_gives_its_plan() -> None:
    """Tests that offsets come back as they were, and pass the referee."""
    plan = LINE.plan(problem(1))
    assert plan.offsets is not None
    assert PLAN.offsets is not None
    assert plan.offsets.tolist() == PLAN.offsets.tolist()
    assert plan.peak == LEAST


def pack(offsets: Sequence[int]) -> str:
    """Return offsets of problem `one` as a line has them."""
    return best_known.pack_offsets(Plan.of(problem(1), offsets))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"peak": LEAST - 1, "lower_bound": 0}, f"reach {LEAST} and not {LEAST - 1}"),
        ({"peak": LEAST + 1}, f"reach {LEAST} and not {LEAST + 1}"),
        ({"offsets": "AAAA"}, "damaged"),
        ({"offsets": "no base64!"}, "damaged"),
        ({"fingerprint": "sha256:0"}, "another problem"),
        (
            {"offsets": pack([0] * 20), "peak": int(problem(1).size.max()), "lower_bound": 0},
            "overlap",
        ),
    ],
)
def test_a_forged_line_is_refused(changed: dict[str, object], message: str) -> None:
    """Tests that a line is believed only as far as its plan goes."""
    with pytest.raises(PlanError, match=message):
        replace(LINE, **changed).plan(problem(1))


# The referee over all of it ----------------------------------------------------------------------


def test_a_sound_corpus_holds(tmp_path: Path) -> None:
    """Tests that what the stock search finds, and what a line shows, is found again."""
    stock = stock_plan(problem(2))
    assert stock.peak is not None
    made = corpus(
        tmp_path,
        record("one", 1, LEAST, proved=True),
        record("two", 2, stock.peak, proved=stock.lower_bound == stock.peak),
    )
    assert wrong(made) == {"one": "", "two": ""}
    assert wrong(made, LINE) == {"one": "", "two": ""}


def test_a_peak_that_no_solver_reaches_is_found(tmp_path: Path) -> None:
    """Tests that a corpus that says too little is named."""
    made = corpus(tmp_path, record("one", 1, LEAST - 1))
    assert f"reaches {LEAST}, and the corpus has {LEAST - 1}" in wrong(made)["one"]


def test_a_proof_that_is_none_is_found(tmp_path: Path) -> None:
    """Tests that a peak above the least is not taken for proved, in the corpus or in a line."""
    stacked = solve(problem(1), "bump")
    assert stacked.peak is not None
    made = corpus(tmp_path, record("one", 1, stacked.peak, proved=True))
    assert "does not prove" in wrong(made)["one"]
    loose = replace(
        LINE, peak=stacked.peak, lower_bound=stacked.peak, offsets=best_known.pack_offsets(stacked)
    )
    assert "does not prove" in wrong(made, loose)["one"]


def test_a_line_that_the_corpus_beats_is_found(tmp_path: Path) -> None:
    """Tests that a line must be the best known peak, not some peak."""
    stacked = solve(problem(1), "bump")
    assert stacked.peak is not None
    loose = replace(
        LINE, peak=stacked.peak, lower_bound=0, offsets=best_known.pack_offsets(stacked)
    )
    made = corpus(tmp_path, record("one", 1, LEAST, proved=True))
    assert "is not the best known peak" in wrong(made, loose)["one"]


# Improving it ------------------------------------------------------------------------------------


def test_a_smaller_peak_is_taken_over(tmp_path: Path) -> None:
    """Tests that a claim that holds becomes a line, whose plan holds; and that once is enough."""
    made = corpus(tmp_path, record("one", 1, LEAST + 1))
    first = update(made, {}, [claim()])
    assert [best.peak for best in first.improved] == [LEAST]
    assert first.improved[0].proved
    assert first.refused == ()
    assert wrong(made, *first.improved) == {"one": ""}
    assert update(made, first.bests, [claim()]).improved == ()


def test_a_proof_is_taken_over(tmp_path: Path) -> None:
    """Tests that a peak that was only known becomes a proved one, and a claim of it alone not."""
    made = corpus(tmp_path, record("one", 1, LEAST))
    assert update(made, {}, [claim(proved=False)]).improved == ()
    assert [best.proved for best in update(made, {}, [claim()]).improved] == [True]


@pytest.mark.parametrize(
    ("false", "message"),
    [
        ({"peak": 1}, "no plan is below"),
        ({"name": "other"}, 'no problem "other"'),
        ({"fingerprint": "sha256:0"}, "another problem"),
        ({"solver": "bump"}, "it reaches"),
        ({"solver": "oracle"}, 'no solver "oracle"'),
        ({"solver": "auto:magic=on"}, 'no option "magic"'),
    ],
)
def test_a_forged_claim_is_refused_by_name(
    tmp_path: Path, false: dict[str, object], message: str
) -> None:
    """Tests that nothing is taken over that cannot be done again here."""
    made = update(corpus(tmp_path, record("one", 1, LEAST + 1)), {}, [claim(**false)])
    assert made.improved == ()
    assert made.bests == {}
    ((name, sentence),) = [(each.name, each.wrong) for each in made.refused]
    assert name == false.get("name", "one")
    assert message in sentence


def test_a_claimed_proof_must_be_done_again(tmp_path: Path) -> None:
    """Tests that a claim of the known peak is refused if its proof cannot be repeated."""
    stacked = solve(problem(1), "bump")
    assert stacked.peak is not None
    made = corpus(tmp_path, record("one", 1, stacked.peak))
    refused = update(made, {}, [claim(solver="bump", peak=stacked.peak)]).refused
    assert [each.wrong.split(": ")[1] for each in refused] == ["it is not proved here"]


def test_a_corpus_is_opened_with_what_is_kept_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that records say the better of the corpus and the lines, and that other ones stay."""
    file = tmp_path / "best.jsonl"
    best_known.write({LINE.fingerprint: LINE}, file)
    monkeypatch.setattr(best_known, "path", lambda: str(file))
    opened = corpus(tmp_path, record("one", 1, LEAST + 1), record("two", 2, 9))
    assert [(each.best_peak, each.best_proved) for each in opened] == [(LEAST, True), (9, False)]


# The commands ------------------------------------------------------------------------------------


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests an update from a sweep's results, what it refuses, and a check before and behind."""
    corpus(tmp_path, record("one", 1, LEAST + 1), record("two", 2, 2**30))
    best_known.write({}, tmp_path / "best.jsonl")
    true = replace(
        RESULT, instance="one", fingerprint=LINE.fingerprint, peak=LEAST, lower_bound=LEAST
    )
    forged = replace(true, instance="two", fingerprint=problem(2).fingerprint, peak=1)
    elsewhere = replace(true, suite="synthetic")
    write_sweep(tmp_path / "results", true, forged, elsewhere)
    files = [
        *("--corpus", str(tmp_path / "corpus.parquet")),
        *("--known", str(tmp_path / "best.jsonl")),
    ]
    update = ["corpus", "best", "update", str(tmp_path / "results"), *files]
    assert main(update) == output.INFEASIBLE
    captured = capsys.readouterr()
    assert f"one: {LEAST:,} bytes, proved\n1 improved, 1 rejected" in captured.out
    assert "two is rejected: auto claims 1: no plan is below" in captured.err
    assert [best.name for best in best_known.read(tmp_path / "best.jsonl").values()] == ["one"]

    assert main(["corpus", "best", "check", *files]) == output.OK
    assert capsys.readouterr().out == "2 of 2 best known peaks are confirmed\n"
    lines = (tmp_path / "best.jsonl").read_text()
    (tmp_path / "best.jsonl").write_text(lines.replace(f'"peak": {LEAST}', '"peak": 7'))
    assert main(["corpus", "best", "check", *files]) == output.INFEASIBLE
    assert f"one: the offsets reach {LEAST} and not 7" in capsys.readouterr().out
