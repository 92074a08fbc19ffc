"""Tests of memplan.problem.formats.minimalloc_csv: dialects, round trips, plans, and bad files."""

from __future__ import annotations

import csv
import io
import os
from hashlib import sha256
from pathlib import Path

import pytest
import strategies
from hypothesis import assume, given
from hypothesis import strategies as st

from memplan.base.errors import FormatError, MemplanError, PlanError, ProblemError
from memplan.problem import Buffer, Gap, Problem
from memplan.problem.formats import load, load_plan, save
from memplan.problem.formats._records import cell, records
from memplan.problem.formats.minimalloc_csv import (
    DIALECTS,
    Dialect,
    read_plan,
    read_problem,
    write_claims,
    write_plan,
    write_problem,
)
from memplan.problem.plan import Plan, Status
from memplan.referee import verify

FIVE = """\
id,lower,upper,size
b1,0,3,4
b2,3,9,4
b3,0,9,4
b4,9,21,4
b5,0,21,4
"""

CSV_FEATURES = strategies.FEATURES - {"reserved"}
dialects = st.sampled_from(DIALECTS)


def problem_of(text: str) -> Problem:
    """Read a problem from text."""
    return read_problem(text, "p.csv")


def refusal(text: str) -> str:
    """Return the sentence with which a text is refused as a problem."""
    with pytest.raises(FormatError) as caught:
        problem_of(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestDialects:
    """What columns and fields mean."""

    def test_worked_example(self, five: Problem) -> None:
        """Tests the file in section A.3.4 of MiniMalloc, there and back, byte by byte."""
        assert problem_of(FIVE).with_capacity(12) == five
        assert write_problem(five) == FIVE

    @pytest.mark.parametrize(
        ("header", "end"),
        [
            ("id,lower,upper,size", 10),
            ("buffer,lower,upper,size", 10),
            ("buffer_id,start,end,size", 9),
            ("id,begin,end,size", 9),
            ("id,lower,end,size", 9),
            ("id,begin,upper,size", 10),
        ],
    )
    def test_names_of_columns(self, header: str, end: int) -> None:
        """Tests that `end` is inclusive and `upper` is not, whatever other columns there are."""
        assert list(problem_of(f"{header}\na,4,{end},8\n").buffers) == [Buffer("a", 4, 10, 8)]

    def test_order_of_columns(self) -> None:
        """Tests that columns are found by name, in any order."""
        assert list(problem_of("size,upper,id,lower\n8,10,a,4\n").buffers) == [
            Buffer("a", 4, 10, 8)
        ]

    def test_optional_columns(self) -> None:
        """Tests alignment, hint, gaps and pin, and both ways to say that there is none."""
        text = (
            "id,lower,upper,size,alignment,hint,gaps,offset\n"
            "a,-9,9,8,4,16,-5--2 0-3@0:4,8\n"
            "b,0,9,8,1,-1,,-1\n"
            "c,0,9,8,1,,,\n"
        )
        assert list(problem_of(text).buffers) == [
            Buffer("a", -9, 9, 8, 4, pin=8, hint=16, gaps=(Gap(-5, -2), Gap(0, 3, (0, 4)))),
            Buffer("b", 0, 9, 8),
            Buffer("c", 0, 9, 8),
        ]

    def test_gaps_are_inclusive_with_end(self) -> None:
        """Tests that gaps end as the lifetimes of the same file do, and windows never."""
        row = problem_of("id,start,end,size,gaps\na,0,9,8,3-7@0:2 8-8\n").buffer("a")
        assert row.gaps == (Gap(3, 8, (0, 2)), Gap(8, 9))
        row = problem_of("id,lower,upper,size,gaps\na,0,9,8,3-7@0:2 8-9\n").buffer("a")
        assert row.gaps == (Gap(3, 7, (0, 2)), Gap(8, 9))

    def test_gaps_are_cut_to_the_lifetime(self) -> None:
        """Tests gaps outside a lifetime, which MiniMalloc's own reader accepts."""
        row = problem_of("id,lower,upper,size,gaps\na,5,10,15,9-11 12-14@2:13\n").buffer("a")
        assert row.gaps == (Gap(9, 10),)
        row = problem_of("id,start,end,size,gaps\na,5,9,15,9-10 12-13\n").buffer("a")
        assert row.gaps == (Gap(9, 10),)
        row = problem_of("id,lower,upper,size,gaps\na,5,10,15,0-5 1-7@2:13 10-12\n").buffer("a")
        assert row.gaps == (Gap(5, 7, (2, 13)),)
        row = problem_of("id,lower,upper,size,gaps\na,5,10,15,0-99\n").buffer("a")
        assert row.gaps == (Gap(5, 10),)

    @given(
        st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 9)), max_size=4),
        st.integers(-9, 9),
        st.integers(1, 9),
    )
    def test_cut_gaps_are_held_at_the_same_times(
        self, gaps: list[tuple[int, int]], start: int, length: int
    ) -> None:
        """Tests, time by time, that a gap means the same with its part outside and without."""
        lifetime = range(start, start + length)
        free = [time for since, wide in gaps for time in range(since, since + wide)]
        inside = sorted(time for time in free if time in lifetime)
        assume(len(inside) == len(set(inside)))  # gaps that overlap in the lifetime are errors
        cell = " ".join(f"{since}-{since + wide}" for since, wide in gaps)
        text = f"id,lower,upper,size,gaps\na,{start},{start + length},8,{cell}\n"
        row = problem_of(text).buffer("a")
        assert [time for gap in row.gaps for time in range(gap.start, gap.end)] == inside

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_ordinary_mess(self, newline: str, five: Problem, tmp_path: Path) -> None:
        """Tests that line ends, byte order marks, blank lines, spaces and comments are ordinary."""
        text = "# made by hand\n\n" + FIVE.replace(",", " ,\t").replace("b3", "\n \t\n# b2\nb3")
        path = tmp_path / "five.csv"
        path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", newline).encode() + b"\n \n")
        assert load(path, capacity=12) == five

    def test_no_line_end_at_the_end(self, five: Problem) -> None:
        """Tests that the last line needs no line end."""
        assert problem_of(FIVE.rstrip()).with_capacity(12) == five

    def test_quoted_fields(self) -> None:
        """Tests that quotes keep separators, spaces, line ends and a leading #, and vanish."""
        text = 'id,lower,upper,size\n"#a, ""b""\n ", "0" ,"1",2\n " c " ,0,1,2\n'
        assert problem_of(text).ids == ('#a, "b"\n ', " c ")

    def test_header_only(self) -> None:
        """Tests that a file with a header and no rows is a problem with no buffers."""
        problem = problem_of("id,lower,upper,size\n")
        assert len(problem) == 0
        assert problem_of(write_problem(problem)) == problem


class TestRoundTrip:
    """What is written is read back."""

    @given(strategies.problems(features=CSV_FEATURES, names=strategies.ids()), dialects)
    def test_problems(self, problem: Problem, dialect: Dialect) -> None:
        """Tests that a problem survives every dialect, whatever its ids, but for its capacity."""
        text = write_problem(problem, dialect)
        assert read_problem(text, "p", capacity=problem.capacity) == problem

    @given(st.data(), dialects)
    def test_plans(self, data: st.DataObject, dialect: Dialect) -> None:
        """Tests that a plan survives every dialect, but for its stats and conflict."""
        problem = data.draw(strategies.problems(names=strategies.ids()))
        plan = data.draw(strategies.plans(problem, with_offsets=True))
        table = write_plan(problem, plan, dialect)
        again = read_plan(table, "p", write_claims(plan, table))
        kept = ("status", "peak", "lower_bound", "capacity", "solver", "ids", "fingerprint")
        assert {n: getattr(again, n) for n in kept} == {n: getattr(plan, n) for n in kept}
        assert again.offsets is not None
        assert plan.offsets is not None
        assert again.offsets.tolist() == plan.offsets.tolist()
        assert again.size.tolist() == problem.size.tolist()
        assert read_plan(write_plan(None, again, dialect), "p") == read_plan(table, "p")

    @given(st.lists(st.lists(strategies.any_text(), min_size=1), min_size=1))
    def test_reads_what_the_csv_module_writes(self, rows: list[list[str]]) -> None:
        """Tests quoted fields against Python's own writer, every field in quotes."""
        file = io.StringIO()
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
        assert [fields for _, fields in records(file.getvalue(), "p", [])] == rows

    @given(st.lists(st.lists(strategies.ids(), min_size=2), min_size=1))
    def test_the_csv_module_reads_what_we_write(self, rows: list[list[str]]) -> None:
        """Tests that other programs see the same fields, and that we do."""
        text = "".join(",".join(map(cell, row)) + "\n" for row in rows)
        assert list(csv.reader(io.StringIO(text, newline=""))) == rows
        assert [fields for _, fields in records(text, "p", [])] == rows

    @pytest.mark.parametrize("separator", [";", "\t"])
    def test_other_separators(self, five: Problem, separator: str) -> None:
        """Tests what spreadsheets write in place of commas, with and without quotes."""
        text = write_problem(five)
        assert problem_of(text.replace(",", separator)) == problem_of(text)
        head, _, rows = text.partition("\n")
        quoted = rows.replace("b1", f'"b{separator}1"').replace(",", separator)
        head = head.replace(",", separator)
        assert problem_of(f"{head}\n{quoted}").ids[0] == f"b{separator}1"

    def test_largest_numbers(self) -> None:
        """Tests sizes, times and pins at the limits of the model in every dialect."""
        big = 1 << 62
        problem = Problem([Buffer("a", -big, big, big), Buffer("b", 0, 1, 0, 2**61, big, big)])
        for dialect in DIALECTS:
            assert problem_of(write_problem(problem, dialect)) == problem

    def test_what_csv_cannot_carry(self, five: Problem) -> None:
        """Tests that nothing is dropped in silence."""
        with pytest.raises(MemplanError, match=r"cannot store reserved ranges; write this .* JSON"):
            write_problem(five.with_reserved([(50, 60)]))
        with pytest.raises(MemplanError, match="NUL"):
            write_problem(Problem([Buffer("\0", 0, 1, 2)]))
        with pytest.raises(MemplanError, match="unknown dialect"):
            write_problem(five, "upper-lower")  # type: ignore[arg-type]
        with pytest.raises(MemplanError, match=r"without offsets \(unknown\)"):
            write_plan(five, Plan.of(five, None, status=Status.UNKNOWN))


class TestPlans:
    """Plans of ours and of MiniMalloc."""

    def test_text(self, five: Problem, five_offsets: list[int], tmp_path: Path) -> None:
        """Tests the plain table, which any reader of CSV reads, and the claims beside it."""
        plan = Plan.of(five, five_offsets, status=Status.OPTIMAL, lower_bound=12, solver="exact")
        save(plan, tmp_path / "p.csv")
        text = (tmp_path / "p.csv").read_text()
        lines = text.splitlines()
        assert lines[:2] == ["id,lower,upper,size,offset", "b1,0,3,4,8"]
        assert [int(row["offset"]) for row in csv.DictReader(io.StringIO(text))] == five_offsets
        assert [list(map(int, line.split(",")[1:]))[-1] for line in lines[1:]] == five_offsets
        claims, _, named = (tmp_path / "p.csv.memplan").read_text().rpartition(" ")
        assert claims == (
            "# memplan plan 1 status=optimal peak=12 lower_bound=12 capacity=12 solver=exact "
            f"problem={five.fingerprint}"
        )
        assert named == f"table=sha256:{sha256(text.encode()).hexdigest()}\n"
        again = load_plan(tmp_path / "p.csv")
        assert (again.status, again.fingerprint) == (Status.OPTIMAL, five.fingerprint)
        (tmp_path / "p.csv").write_bytes(text.replace("\n", "\r\n").encode())
        assert load_plan(tmp_path / "p.csv").status == Status.OPTIMAL

    def test_of_earlier_versions(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that claims behind a table and a blank line are read as those beside it."""
        plan = Plan.of(five, five_offsets, status=Status.OPTIMAL, lower_bound=12, solver="exact")
        table = write_plan(five, plan)
        line = write_claims(plan, table).rpartition(" ")[0]
        again = read_plan(f"{table}\n{line}\n", "p")
        assert again == read_plan(table, "p", write_claims(plan, table))
        assert (again.lower_bound, again.fingerprint) == (12, five.fingerprint)

    def test_claims_of_another_table(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that a file of claims counts for the table that it names alone."""
        plan = Plan.of(five, five_offsets, status=Status.OPTIMAL, lower_bound=12)
        table = write_plan(five, plan)
        claims = write_claims(plan, table)
        changed = read_plan(table.replace("b5,0,21,4,0", "b5,0,21,4,12"), "p", claims)
        assert (changed.status, changed.peak, changed.fingerprint) == (Status.FEASIBLE, 16, None)
        for other in ("", "# memplan plan 1", "nothing of ours\n"):
            assert read_plan(table, "p", other).status == Status.FEASIBLE
        with pytest.raises(FormatError, match=r"^p.memplan:1: the plan has \"prize=4\""):
            read_plan(table, "p", claims.replace("status", "prize=4 status"))
        with pytest.raises(FormatError, match=r"^p.memplan:1: this is no file with the claims"):
            read_plan(table, "p", claims.replace("# memplan plan", "# plan"))

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
    def test_to_a_pipe(self, five: Problem, five_offsets: list[int], tmp_path: Path) -> None:
        """Tests that nothing is written beside a pipe."""
        os.mkfifo(tmp_path / "pipe")
        end = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        save(Plan.of(five, five_offsets), tmp_path / "pipe")
        assert os.read(end, 1 << 16).startswith(b"id,lower,upper,size,offset\nb1")
        os.close(end)
        assert os.listdir(tmp_path) == ["pipe"]

    def test_of_minimalloc(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that a plan without our last line is read, and held against its problem."""
        rows = zip(FIVE.splitlines(), ["offset", *map(str, five_offsets)], strict=True)
        text = "".join(f"{row},{offset}\n" for row, offset in rows)
        plan = read_plan(text, "m.csv")
        assert (plan.status, plan.peak, plan.lower_bound) == (Status.FEASIBLE, 12, 0)
        assert plan.fingerprint is None
        verify(five.shuffled(1), plan)
        with pytest.raises(PlanError, match='buffer "b2": end is 9 in the plan but 10'):
            verify(problem_of(FIVE.replace("b2,3,9", "b2,3,10")), plan)

    def test_for_another_order_of_rows(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that a plan is written in the order of the problem, offsets with their buffers."""
        shuffled = five.shuffled(3)
        plan = Plan.of(five, five_offsets)
        again = read_plan(write_plan(shuffled, plan), "p")
        assert again.ids == shuffled.ids
        verify(five, again)

    def test_for_another_problem(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that a plan is not written under the buffers of another problem."""
        with pytest.raises(PlanError, match="made for another problem"):
            write_plan(problem_of(FIVE.replace("b2,3,9", "b2,3,10")), Plan.of(five, five_offsets))

    def test_lifetimes_are_needed(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that a plan that knows no lifetimes asks for its problem."""
        plan = Plan(ids=five.ids, size=five.size, offsets=five_offsets)
        with pytest.raises(MemplanError, match="give the problem too"):
            write_plan(None, plan)

    @pytest.mark.parametrize(
        ("trailer", "sentence"),
        [
            ("# memplan plan 2 status=optimal", 'p.csv:4: the plan has version "2"'),
            ("# memplan plan 1 status=good", 'p.csv:4: the status of the plan is "good"'),
            ("# memplan plan 1 peak=1_0", 'p.csv:4: the peak of the plan is "1_0"'),
            ("# memplan plan 1 peak=4 peak=4", 'p.csv:4: the plan has "peak=4"'),
            ("# memplan plan 1 prize=4", 'p.csv:4: the plan has "prize=4"'),
            (
                "# memplan plan 1 peak=4\n# memplan plan 1 peak=4",
                "p.csv:5: the file ends a plan twice",
            ),
        ],
    )
    def test_bad_claims(self, trailer: str, sentence: str) -> None:
        """Tests that claims that cannot be understood are refused with their line."""
        with pytest.raises(FormatError) as caught:
            read_plan(f"id,lower,upper,size,offset\na,0,1,4,0\n\n{trailer}\n", "p.csv")
        assert sentence in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            (FIVE, "p.csv: column offset is missing"),
            ("id,lower,upper,size,offset\na,0,1,4,\n", 'p.csv:2: buffer "a": offset is -1'),
            ("id,lower,upper,size,offset\na,0,1,4,-1\n", 'p.csv:2: buffer "a": offset is -1'),
            ("id,lower,upper,size,offset\na,0,1,4,x\n", 'p.csv:2: buffer "a": offset is "x"'),
            ("id,lower,upper,size,offset\na,0,1,4,1\na,0,1,4,1\n", "p.csv:3: "),
        ],
    )
    def test_bad_plans(self, text: str, sentence: str) -> None:
        """Tests that every buffer of a plan has an offset."""
        with pytest.raises(FormatError) as caught:
            read_plan(text, "p.csv")
        assert str(caught.value).startswith(sentence)


HEADER = "id,lower,upper,size,alignment,hint,gaps,offset\n"


class TestBadFiles:
    """One sentence each, with file, line and field."""

    @pytest.mark.parametrize(
        ("header", "sentence"),
        [
            ("id,lower,upper", "p.csv:1: column size is missing"),
            ("lower,upper,size", "p.csv:1: column id or buffer or buffer_id is missing"),
            ("id,lower,size", "p.csv:1: column upper or end is missing"),
            ("id,upper,size", "p.csv:1: column lower or start or begin is missing"),
            ("id,lower,upper,end,size", 'p.csv:1: columns "upper" and "end" mean the same'),
            ("id,lower,upper,size,size", 'p.csv:1: column "size" occurs twice'),
            ("id,lower,upper,size,color", 'p.csv:1: unknown column "color"; known are id, '),
            ("id,lower,upper,Size", 'p.csv:1: unknown column "Size"'),
            ("b1,0,3,4", 'p.csv:1: this is no table of buffers, but begins with "b1,0,3,4"; give'),
            ("ID,Start,End", "p.csv:1: this is no table of buffers"),
            ("[00:01] ready", "p.csv:1: this is no table of buffers"),
            ('the "head" of a log', "p.csv:1: this is no table of buffers"),
            ('a "quote', "p.csv:1: this is no table of buffers"),
            ("id;lower;upper;Size", 'p.csv:1: unknown column "Size"'),
        ],
    )
    def test_headers(self, header: str, sentence: str) -> None:
        """Tests that a header that cannot be understood is refused by the column."""
        assert refusal(header + "\n").startswith(sentence)
        assert refusal("\n# a\n" + header + "\n").startswith(sentence.replace(":1:", ":3:"))

    @pytest.mark.parametrize(
        ("row", "sentence"),
        [
            ("b,0,9,-4,1,,,", 'buffer "b": size is -4; it must be between 0 and 2^62'),
            ("b,0,9,1.5,1,,,", 'buffer "b": size is "1.5"; it must be a whole number'),
            (
                "b,0,9,0x10,1,,,",
                'buffer "b": size is "0x10"; it must be a whole number in decimal, as '
                "MiniMalloc's reader has it: write 16",
            ),
            ("b,0,9,1_000,1,,,", 'buffer "b": size is "1_000"; it must be a whole number'),
            ("b,0,9,+4,1,,,", 'buffer "b": size is "+4"; it must be a whole number'),
            ("b,0,9,4-,1,,,", 'buffer "b": size is "4-"; it must be a whole number'),
            ("b,0,9,--4,1,,,", 'buffer "b": size is "--4"; it must be a whole number'),
            ("b,0,9,-,1,,,", 'buffer "b": size is "-"; it must be a whole number'),
            ("b,0,9,１,1,,,", 'buffer "b": size is "１"; it must be a whole number'),
            ("b,0,9,1 0,1,,,", 'buffer "b": size is "1 0"; it must be a whole number'),
            ('b,0,9,"1\n0",1,,,', 'buffer "b": size is "1\\n0"; it must be a whole number'),
            ("b,0,9,NaN,1,,,", 'buffer "b": size is "NaN"; it must be a whole number'),
            ("b,0,9,,1,,,", 'buffer "b": size is ""; it must be a whole number'),
            ("b,,9,4,1,,,", 'buffer "b": lower is ""; it must be a whole number'),
            ("b,0,9,4,,,,", 'buffer "b": alignment is ""; it must be a whole number'),
            ("b,0,9,4611686018427387905,1,,,", "it must be between -2^62 and 2^62"),
            ("b,0,9," + "9" * 5000 + ",1,,,", "it must be between -2^62 and 2^62"),
            ("b,9,9,4,1,,,", 'buffer "b": upper is 9; it must be more than lower (9)'),
            ("b,9,0,4,1,,,", 'buffer "b": upper is 0; it must be more than lower (9)'),
            ("b,0,9,4,0,,,", 'buffer "b": alignment is 0; it must be between 1 and 2^62'),
            ("b,0,9,4,1,-2,,", 'buffer "b": hint is -2'),
            ("b,0,9,4,1,,3-7@0,", 'buffer "b": gaps has "3-7@0"; a gap is'),
            ("b,0,9,4,1,,3+7,", 'buffer "b": gaps has "3+7"; a gap is'),
            ("b,0,9,4,1,,3-10 9-9,", 'buffer "b": gap [9, 9) is empty'),
            ("b,0,9,4,1,,3-10 8-12,", 'buffer "b": gap [8, 9) overlaps the gap [3, 9)'),
            ("b,0,9,4,1,,3-6 5-7,", 'buffer "b": gap [5, 7) overlaps the gap [3, 6)'),
            ("b,0,9,4,1,,3-7@0:5,", 'buffer "b": gap [3, 7) has the window [0, 5)'),
            ("b,0,9,4,1,,3-99999999999999999999,", 'buffer "b": gap end is 9999999999999999999'),
            ("b,0,9,4,8,,,4", 'buffer "b": pin is 4, not a multiple of the alignment (8)'),
            ("b,0,9,4,1,,,9", 'buffer "b": its pin and that of buffer "a" put both on bytes'),
            ("a,0,9,4,1,,,", 'buffer "a": the id occurs twice'),
            (",0,9,4,1,,,", "the id of buffer number 1 is empty"),
            ("b,0,9,4", "has 4 of 8 fields; alignment is missing"),
            ("b", "has 1 of 8 fields; lower is missing"),
            ("b,0,9,4,1,,,,", "has 9 fields, but the header has 8 columns"),
            ('b",0,9,4,1,,,"', "field 1 has text before or after its quotes"),
            ('"b" c,0,9,4,1,,,', "field 1 has text before or after its quotes"),
            ('"b,0,9,4,1,,,', "a quoted field is not closed"),
        ],
    )
    def test_rows(self, row: str, sentence: str) -> None:
        """Tests that a bad row is refused with its line, the buffer and the field."""
        good = "a,0,9,8,1,,,8\n"
        tail = "z,0,1,1,1,,,\n" if row != '"b,0,9,4,1,,,' else ""
        with pytest.raises(FormatError) as caught:
            read_problem(f"# comment\n{HEADER}{good}\n{row}\n{tail}", "p.csv", capacity=100)
        assert str(caught.value).startswith("p.csv:5: ")
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 250

    def test_inclusive_lifetimes(self) -> None:
        """Tests that an error about an inclusive end says it as the file does."""
        assert problem_of("id,start,end,size\na,3,3,4\n").end.tolist() == [4]
        assert refusal("id,start,end,size\na,3,2,4\n") == (
            'p.csv:2: buffer "a": end is 2; it must be at least start (3)'
        )

    def test_a_plan_is_no_problem(self, five: Problem, five_offsets: list[int]) -> None:
        """Tests that the offsets of a plan are not taken for pins."""
        plan = Plan.of(five, five_offsets)
        table = write_plan(five, plan)
        claims = write_claims(plan, table)
        said = f"{table}\n{claims.rpartition(' ')[0]}\n"
        assert refusal(said) == (
            "p.csv:8: this is a plan, as its last line says, not a problem; give the problem or "
            "the model of which it is"
        )
        with pytest.raises(FormatError, match=r"^p.csv: this is a plan, as p.csv.memplan says"):
            read_problem(table, "p.csv", beside=claims)

    @pytest.mark.parametrize(
        ("data", "sentence"),
        [
            (b"", "is empty"),
            (b"\xef\xbb\xbf\r\n \n", "is empty"),
            (b"# nothing\n", "the file has no header and no rows"),
            (b"\x7fELF\x02\x01\x01\x00\x00", "is a binary file"),
            (FIVE.encode("utf-16"), "is a binary file"),
            (b"id,lower,upper,size\nb\xe9,0,1,2\n", "is not UTF-8 text; save it as UTF-8"),
        ],
    )
    def test_not_text(self, data: bytes, sentence: str, tmp_path: Path) -> None:
        """Tests that files that are no text, and no problem, are refused as what they are."""
        path = tmp_path / "p.csv"
        path.write_bytes(data)
        for read in (load, load_plan):
            with pytest.raises(FormatError) as caught:
                read(path)
            assert str(caught.value).startswith(str(path))
            assert sentence in str(caught.value)

    def test_not_there(self, tmp_path: Path) -> None:
        """Tests that a missing file and a folder are refused in one sentence."""
        with pytest.raises(FormatError, match="cannot be read: no such file or directory"):
            load(tmp_path / "none.csv")
        with pytest.raises(FormatError, match="cannot be read: is a directory"):
            load(tmp_path)
        with pytest.raises(FormatError, match="cannot be read: embedded null byte"):
            load("a\0b")

    def test_capacity_of_the_caller(self, tmp_path: Path) -> None:
        """Tests that a bad capacity is not blamed on the file, and one below a pin is none."""
        path = tmp_path / "p.csv"
        path.write_text("id,lower,upper,size,offset\na,0,1,4,8\n")
        with pytest.raises(ProblemError, match=r"^capacity is 0; it must be"):
            load(path, capacity=0)
        assert load(path, capacity=11).capacity == 11
