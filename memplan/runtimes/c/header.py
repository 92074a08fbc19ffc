"""Writes a plan as a header for C99 and C++17: constants, an arena, and assertions on them.

    #define NET_ARENA_SIZE 16384u              how much memory, and how it has to be aligned
    #define NET_BUFFER_OFFSET_conv 4096u       for each buffer of the plan
    #define NET_OFFSET_head (... + 32u)        for each tensor, also for a view of another one
    NET_CHECK_(7, ...)                         no two that are live together share a byte
    extern unsigned char net_arena[];          defined where NET_DEFINE_ARENA is
    extern const net_entry net_table[];        the same for tools, where NET_DEFINE_TABLE is
    extern const uint32_t net_order[];         the operators as they have to run, if memplan moved
                                               some; also where NET_DEFINE_TABLE is
    extern const net_step net_steps[];         the same of a program in bands, for which rows each
                                               operator runs; also where NET_DEFINE_TABLE is

With several memories there is an array for each, in a section of its own (`arrays.py`), and
NET_AT_conv is where a tensor lies. For a tensor that moves it is NET_AT_conv(step), and
net_move(step) makes the copies (`copies.py`).

The assertions prove that the plan is legal: if an offset is changed by hand or by a merge so that
two buffers overlap, the header does not compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from memplan.levers.rewrite.bands import Cut
from memplan.machine.memories import Assigned
from memplan.problem import Problem
from memplan.problem.plan import Plan, Shared
from memplan.programs.graph import Layout
from memplan.programs.sources import Loaded
from memplan.runtimes.c import names as c
from memplan.runtimes.c.arrays import Array, Arrays
from memplan.runtimes.c.copies import Copies
from memplan.runtimes.c.neighbours import Below
from memplan.runtimes.c.schedule import Schedule
from memplan.solvers.planning import place_states

__all__ = ["MAX_PAIRS", "guard_linkage", "list_tensors", "write_header"]

# Each assertion checks a pair of buffers. This limit is enough for all necessary pairs of about a
# thousand buffers, and compilers take a fraction of a second for it.
MAX_PAIRS = 4096


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tensor, a workspace, or a buffer of a problem without a graph."""

    name: str
    row: int  # of its buffer
    within: int  # where it begins in the buffer
    size: int
    first: int
    last: int
    piece: str = ""  # if it moves: which of its pieces this is, such as "@3"


def write_header(
    loaded: Loaded,
    plan: Plan | Assigned,
    *,
    name: str | None = None,
    order: Sequence[int] | None = None,
    bands: Cut | None = None,
) -> str:
    """Return a plan as the text of a header.

    Parameters
    ----------
    loaded
        What was planned, from any source. If it has a graph, every tensor in the arena gets a
        constant; otherwise every buffer does.
    plan
        Offsets in bytes from the beginning of the arena; or plans in several memories, as
        `memplan.machine.memories.assign` makes them of `loaded`.
    name
        The prefix of all names in the header: `NET_` and `net_` for "net". Characters that C does
        not allow are replaced. By default it is the name of the graph, or "plan".
    order
        If the operators of `loaded` are in another order than those of the user's program: by
        place, their number in that program (`memplan.Reordered.order`).
    bands
        If `loaded` is a program in bands: the cut that it is the graph of, which is that of
        a graph of `memplan.levers.rewrite.bands.tell_rows`.

    Raises
    ------
    PlanError
        If the plan is not a legal plan of the problem.
    """
    return "\n".join(_Header(loaded, plan, name, order, bands).lines()) + "\n"


class _Header:
    """One header, line by line."""

    def __init__(
        self,
        loaded: Loaded,
        plan: Plan | Assigned,
        name: str | None,
        order: Sequence[int] | None,
        bands: Cut | None,
    ) -> None:
        graph_name = loaded.graph.name if loaded.graph is not None else ""
        self._title = name or graph_name or "plan"
        self._upper = c.make_prefix(self._title)
        self._lower = self._upper.lower()
        self._shared = plan.shared if isinstance(plan, Plan) else None
        if isinstance(plan, Plan):
            self._given, plan = place_states(loaded, plan)
        else:
            self._given = loaded.problem
        self._arrays = arrays = Arrays.of(self._given, plan, self._upper)
        self._problem = problem = arrays.problem
        self._offsets = arrays.offsets
        self._copies = Copies(arrays, self._upper)
        self._copies.require_steps(loaded)
        pairs = list(islice(arrays.find_neighbours(), MAX_PAIRS + 1))
        self._pairs, self._has_more = pairs[:MAX_PAIRS], len(pairs) > MAX_PAIRS
        moved = None if bands is not None else order
        operators = () if loaded.graph is None or moved is None else loaded.graph.operators
        self._order = [
            (number, operator.name or operator.type)
            for number, operator in zip(moved or (), operators, strict=True)
        ]
        self._schedule = None
        if bands is not None and loaded.layout is not None:
            self._schedule = Schedule(bands, _find_offsets(loaded.layout, self._offsets), order)
        self._buffers = c.make_identifiers(problem.ids)
        self._has_tensors = loaded.layout is not None
        first = len(loaded.problem) if self._has_tensors else 0
        entries = list(list_tensors(loaded)) if self._has_tensors else []
        entries += _list_buffers(self._given, first)
        self._entries = entries + list(_list_pieces(entries, arrays, len(self._given)))
        self._names = c.make_identifiers(entry.name + entry.piece for entry in self._entries)
        self._pieces_of = self._find_pieces()
        # Without tensors, a buffer is an entry itself and its constant needs no prefix of its own.
        self._family = "BUFFER_" if self._has_tensors else ""

    def _find_pieces(self) -> dict[tuple[int, int, str], list[tuple[int, int, str]]]:
        """Return by home, place and name of a tensor its pieces: first step, last step, name."""
        found: dict[tuple[int, int, str], list[tuple[int, int, str]]] = {}
        stretches, count = self._arrays.stretches, len(self._given)
        for entry, name in zip(self._entries, self._names, strict=True):
            if entry.piece:
                home = self._problem.index(stretches[entry.row - count].buffer)
                pieces = found.setdefault((home, entry.within, entry.name), [])
                pieces.append((entry.first, entry.last, name))
        return found

    def lines(self) -> Iterator[str]:
        guard = f"{self._upper}_PLAN_H_"
        yield from self._introduction()
        yield from (f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", "")
        yield from self._array_constants()
        if self._has_tensors:
            yield from self._buffer_constants()
        yield from self._entry_constants()
        yield from self._checks()
        yield from self._declarations()
        yield f"#endif /* {guard} */"
        yield from self._definitions()

    def _introduction(self) -> Iterator[str]:
        upper, arrays = self._upper, self._arrays
        yield f"/* The memory of {c.escape_comment(self._title)}, planned by memplan; do not edit."
        yield " *"
        yield f" * {len(self._given)} buffers in {arrays.words}."
        yield f" * Fingerprint of the problem: {self._given.fingerprint}"
        if self._shared is not None:
            yield from _introduce_shared(self._shared)
        if self._has_more:
            yield f" * The assertions cover the first {MAX_PAIRS} pairs; memplan has checked all."
        if self._order:
            yield " *"
            yield " * The plan is only right if the operators run in the order at the end."
        if self._schedule:
            yield " *"
            yield " * The plan is only right if the operators run as the steps at the end say, for"
            yield " * these rows and columns."
        yield " *"
        what = "the arrays" if arrays.are_several else "the arena"
        yield f" * Define {upper}_DEFINE_ARENA in one source file before including this header to"
        yield f" * define {what} there, and {upper}_DEFINE_TABLE for a table of the contents."
        yield " * A second definition is a linker error."
        if not arrays.are_several:
            yield " * Your own memory works as well:"
            yield f" * {upper}_ARENA_SIZE bytes, aligned to {upper}_ARENA_ALIGNMENT."
        yield from self._copies.introduce()
        yield " */"

    def _array_constants(self) -> Iterator[str]:
        upper = self._upper
        for array in self._arrays.arrays:
            yield f"#define {array.macro('SIZE')} {array.size}u"
            yield f"#define {array.macro('ALIGNMENT')} {array.alignment}u"
        yield f"#define {upper}_TABLE_COUNT {len(self._entries)}u"
        if self._order:
            yield f"#define {upper}_ORDER_COUNT {len(self._order)}u"
        yield ""

    def _buffer_constants(self) -> Iterator[str]:
        yield "/* The buffers of the plan. */"
        for row, id in enumerate(self._problem.ids):
            yield f"#define {self._offset(row)} {self._offsets[row]}u /* {c.escape_comment(id)} */"
            yield f"#define {self._size(row)} {self._problem.size[row]}u"
        yield ""

    def _entry_constants(self) -> Iterator[str]:
        what = "tensor" if self._has_tensors else "buffer"
        yield f"/* Each {what}: its offset, its size, and the first and last step that need it. */"
        for entry, name in zip(self._entries, self._names, strict=True):
            offset = f"{self._offsets[entry.row]}u"
            if self._has_tensors:
                offset = f"({self._offset(entry.row)} + {entry.within}u)"
            steps = f"{c.escape_comment(entry.name)}, {entry.first} to {entry.last}"
            constant = f"{self._upper}_OFFSET_{name}"
            yield f"#define {constant} {offset} /* {steps} */"
            yield f"#define {self._upper}_SIZE_{name} {entry.size}u"
            if self._arrays.are_several:
                yield self._define_address(entry, name)
        yield ""

    def _define_address(self, entry: _Entry, name: str) -> str:
        """Return the macro for where a tensor lies, which depends on the step if it moves."""
        upper, array = self._upper, self._arrays.array_of(entry.row)
        place = f"{array.name} + {upper}_OFFSET_{name}"
        pieces = self._pieces_of.get((entry.row, entry.within, entry.name))
        if not pieces:
            return f"#define {upper}_AT_{name} ({place})"
        chosen = "".join(
            f"(int64_t)(step) >= {first} && (int64_t)(step) <= {last} ? {upper}_AT_{piece} : "
            for first, last, piece in pieces
        )
        return f"#define {upper}_AT_{name}(step) ({chosen}{place})"

    def _checks(self) -> Iterator[str]:
        check = f"{self._upper}_CHECK_"
        yield from (
            "#if defined(__cplusplus)",
            f"#define {check}(id, what) static_assert(what, #what)",
            "#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L",
            f"#define {check}(id, what) _Static_assert(what, #what)",
            "#else",
            f"#define {check}(id, what) typedef char {self._lower}_check_##id[(what) ? 1 : -1]",
            "#endif",
            "",
        )
        for number, what in enumerate(self._assertions()):
            yield f"{check}({number}, {what});"
        yield f"#undef {check}"
        yield ""

    def _assertions(self) -> Iterator[str]:
        """Yield the assertions; sums begin with 0ull so that none of them wraps around."""
        for row, alignment in enumerate(self._problem.alignment):
            if alignment > 1:
                yield f"{self._offset(row)} % {alignment}u == 0"
            size = self._arrays.array_of(row).macro("SIZE")
            yield f"0ull + {self._offset(row)} + {self._size(row)} <= {size}"
        yield from map(self._compare_addresses, self._pairs)

    def _compare_addresses(self, pair: Below) -> str:
        whole = pair.upper == self._problem.size[pair.below]
        upper = self._size(pair.below) if whole else f"{pair.upper}u"
        above = f"0ull + {self._offset(pair.above)} + {pair.lower}u"
        if pair.lower == 0:
            above = self._offset(pair.above)
        return f"0ull + {self._offset(pair.below)} + {upper} <= {above}"

    def _declarations(self) -> Iterator[str]:
        entry = f"{self._lower}_entry"
        yield from (
            f"typedef struct {entry} {{",
            "  const char* name; /* in UTF-8, as in the program */",
            *(["  unsigned char* memory;"] if self._arrays.are_several else []),
            "  uint64_t offset;",
            "  uint64_t size;",
            "  int64_t first; /* the steps at which it is needed, both included */",
            "  int64_t last;",
            f"}} {entry};",
            "",
        )
        tables: tuple[str, ...] = ()
        if self._schedule:
            yield from self._schedule.declare(self._lower)
            tables = self._schedule.names(self._lower)
        yield from self._copies.define_type()
        yield from guard_linkage(
            *(f"{self._align(array)} extern {array.declare()};" for array in self._arrays.arrays),
            f"extern const {entry} {self._table()};",
            *([f"extern const {self._runs()};"] if self._order else []),
            *(f"extern const {table};" for table in tables),
            *self._copies.declare(),
            before=(*self._alignment_macro(), *self._arrays.define_sections()),
        )
        yield ""

    def _definitions(self) -> Iterator[str]:
        """Yield the definitions, outside of the guard: a second include may request them."""
        upper = self._upper
        arrays = [*map(self._define_array, self._arrays.arrays), *self._copies.define()]
        table = [*self._define_table(), *self._define_order()]
        for what, lines, before in (
            ("ARENA", arrays, tuple(self._copies.define_hooks())),
            ("TABLE", table, ()),
        ):
            yield from (
                "",
                f"#if defined({upper}_DEFINE_{what}) && !defined({upper}_{what}_DEFINED_)",
                f"#define {upper}_{what}_DEFINED_",
                *guard_linkage(*lines, before=before),
                "#endif",
            )

    def _define_table(self) -> Iterator[str]:
        yield f"const {self._lower}_entry {self._table()} = {{"
        for entry, name in zip(self._entries, self._names, strict=True):
            place = f"{self._upper}_OFFSET_{name}, {self._upper}_SIZE_{name}"
            if self._arrays.are_several:
                place = f"{self._arrays.array_of(entry.row).name}, {place}"
            text = c.quote_string(entry.name)
            yield f"    {{{text}, {place}, {entry.first}, {entry.last}}},"
        zeros = ", ".join("0" * (6 if self._arrays.are_several else 5))
        yield f"    {{{zeros}}}, /* the end */"
        yield "};"

    def _define_order(self) -> Iterator[str]:
        if self._order:
            yield f"const {self._runs()} = {{"
            for number, operator in self._order:
                yield f"    {number}u, /* {c.escape_comment(operator)} */"
            yield "};"
        if self._schedule:
            yield from self._schedule.define(self._lower)

    def _alignment_macro(self) -> tuple[str, ...]:
        macro = f"{self._upper}_ALIGNED_(bytes)"
        return (
            "#if defined(__cplusplus)",
            f"#define {macro} alignas(bytes)",
            "#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L",
            f"#define {macro} _Alignas(bytes)",
            "#elif defined(_MSC_VER)",
            f"#define {macro} __declspec(align(bytes))",
            "#else",
            f"#define {macro} __attribute__((aligned(bytes)))",
            "#endif",
            "",
        )

    def _offset(self, row: int) -> str:
        return f"{self._upper}_{self._family}OFFSET_{self._buffers[row]}"

    def _size(self, row: int) -> str:
        return f"{self._upper}_{self._family}SIZE_{self._buffers[row]}"

    def _align(self, array: Array) -> str:
        return f"{self._upper}_ALIGNED_({array.macro('ALIGNMENT')})"

    def _define_array(self, array: Array) -> str:
        section = self._arrays.name_section(array)
        return f"{self._align(array)} {section}{array.declare()};"

    def _table(self) -> str:
        return f"{self._lower}_table[{self._upper}_TABLE_COUNT + 1]"

    def _runs(self) -> str:
        return f"uint32_t {self._lower}_order[{self._upper}_ORDER_COUNT]"


def guard_linkage(*lines: str, before: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield declarations that C and C++ share."""
    yield from before
    yield from ("#ifdef __cplusplus", 'extern "C" {', "#endif")
    yield from lines
    yield from ("#ifdef __cplusplus", "}", "#endif")


def _find_offsets(layout: Layout, offsets: Sequence[int]) -> dict[int, int]:
    """Return by tensor its offset in the arena."""
    found = {}
    for row, index in enumerate(layout.rows):
        storage = layout.storages[index]
        for tensor, within in zip(storage.tensors, storage.offsets, strict=True):
            found[tensor] = offsets[row] + within
    return found


def _introduce_shared(shared: Shared) -> Iterator[str]:
    """Yield who has the arena, and what of it no other program writes over."""
    others = ", ".join(name for name in shared.programs if name != shared.program)
    yield " *"
    yield f" * {c.escape_comment(others)} and it have one arena: give all of them the same memory."
    for each in shared.kept:
        place = f"[{each.offset}, {each.offset + each.size})"
        yield f" * Until this program runs again, {place} keeps {c.escape_comment(each.id)}."


def _list_buffers(problem: Problem, first: int) -> Iterator[_Entry]:
    """Yield buffers without tensors, from a row on."""
    for row, id in enumerate(problem.ids[first:], first):
        last = int(problem.end[row]) - 1
        yield _Entry(id, row, 0, int(problem.size[row]), int(problem.start[row]), last)


def _list_pieces(entries: Sequence[_Entry], arrays: Arrays, count: int) -> Iterator[_Entry]:
    """Yield what of each tensor is in a faster memory than its buffer's, and at which steps."""
    by_row: dict[int, list[_Entry]] = {}
    for entry in entries:
        by_row.setdefault(entry.row, []).append(entry)
    for row, stretch in enumerate(arrays.stretches, count):
        for entry in by_row.get(arrays.problem.index(stretch.buffer), ()):
            first, last = max(entry.first, stretch.start), min(entry.last, stretch.end - 1)
            if first <= last:
                piece = stretch.copy.removeprefix(stretch.buffer)
                yield replace(entry, row=row, first=first, last=last, piece=piece)


def list_tensors(loaded: Loaded) -> Iterator[_Entry]:
    """Yield the tensors and workspaces of a program that are in the arena."""
    layout = loaded.layout
    assert layout is not None
    lives = layout.lives
    for row, index in enumerate(layout.rows):
        storage = layout.storages[index]
        if not storage.tensors:
            yield _Entry(storage.name, row, 0, storage.bytes, storage.start, storage.end - 1)
        for tensor, within in zip(storage.tensors, storage.offsets, strict=True):
            made = layout.graph.tensors[tensor]
            start, end = int(lives.start[tensor]), int(lives.end[tensor])
            yield _Entry(made.name, row, within, made.bytes, start, max(start, end - 1))
