"""The least that memories, moves, blocks and penalties cost, by trying all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product

from memplan_lab.claims.placing import Case, Item, find_least, fits

__all__ = ["Place", "least_apart", "least_moved", "least_traffic", "list_blocks"]

Touch = tuple[int, int, int]  # an access: when, and how many bytes it reads and writes


@dataclass(frozen=True)
class Place:
    """A memory: its bytes, what a byte costs in whole numbers, and its alignment."""

    capacity: int
    read: int
    write: int
    alignment: int = 1


def least_traffic(
    case: Case,
    places: Sequence[Place],
    costs: Sequence[Sequence[int | None]],
    apart: Sequence[tuple[int, int]] = (),
) -> int | None:
    """Return the least cost of all assignments that fit, or `None`.

    `costs` has for each buffer what it costs in each memory, and `None` where it may not lie.
    """
    may = [[at for at, cost in enumerate(row) if cost is not None] for row in costs]
    ways = []
    for where in product(*may):
        is_kept = all(len({where[row] for row, _ in group}) == 1 for group in case.groups)
        if is_kept and all(where[one] != where[other] for one, other in apart):
            ways.append((sum(costs[row][at] or 0 for row, at in enumerate(where)), where))

    @cache
    def is_fitting(number: int, rows: tuple[int, ...]) -> bool:
        return fits(case.subset(rows), places[number].capacity, places[number].alignment)

    for cost, where in sorted(ways):
        rows = [[row for row, at in enumerate(where) if at == n] for n in range(len(places))]
        if all(is_fitting(number, tuple(there)) for number, there in enumerate(rows)):
            return cost
    return None


def least_moved(
    case: Case,
    places: Sequence[Place],
    may: Sequence[Sequence[int]],
    touches: Sequence[Sequence[Touch]],
) -> int | None:
    """Return the least cost if buffers may move between accesses; see `memplan.assign`.

    The home of a buffer that moves is a memory with room for all that may lie there, each of which
    is below its end alone.
    """
    may = [
        [number for number in there if _top(each) <= places[number].capacity]
        for each, there in zip(case.items, may, strict=True)
    ]
    homes = [
        number
        for number, place in enumerate(places)
        if fits(
            case.subset(row for row, there in enumerate(may) if number in there), place.capacity
        )
    ]
    ways = [
        _list_ways(each, places, may[row], homes, touches[row])
        for row, each in enumerate(case.items)
    ]
    rest = [0]
    for row in reversed(ways):
        if not row:
            return None
        rest.append(rest[-1] + row[0][0])
    rest.reverse()

    @cache
    def is_fitting(number: int, pieces: tuple[tuple[int, int, int], ...]) -> bool:
        items = [replace(case.items[row], start=a, end=b, gaps=()) for row, a, b in pieces]
        return fits(Case(tuple(items), reserved=case.reserved), places[number].capacity)

    def is_placed(held: Sequence[tuple[int, int, int, int]]) -> bool:
        return all(
            is_fitting(number, tuple(sorted(each[1:] for each in held if each[0] == number)))
            for number in {each[0] for each in held}
        )

    best: int | None = None

    def choose(row: int, cost: int, held: tuple[tuple[int, int, int, int], ...]) -> None:
        nonlocal best
        if row == len(ways):
            if (best is None or cost < best) and is_placed(held):
                best = cost
            return
        for more, spans in ways[row]:
            if best is not None and cost + more + rest[row + 1] >= best:
                return
            choose(row + 1, cost + more, (*held, *((m, row, a, b) for m, a, b in spans)))

    choose(0, 0, ())
    return best


def _top(item: Item) -> int:
    """Return the least address above a buffer that lies as low as it may."""
    return item.size + (item.pin or 0)


Spans = tuple[tuple[int, int, int], ...]  # memory, start, end


def _list_ways(
    item: Item,
    places: Sequence[Place],
    may: Sequence[int],
    homes: Sequence[int],
    touches: Sequence[Touch],
) -> list[tuple[int, Spans]]:
    """Return (cost, what is held in memories with too little room) of each way to keep a buffer."""
    found: dict[Spans, int] = {}

    def note(cost: int, spans: Sequence[tuple[int, int, int]]) -> None:
        key = tuple(sorted(each for each in spans if each[0] not in homes))
        found[key] = min(cost, found.get(key, cost))

    for number in may:
        place = places[number]
        cost = sum(read * place.read + written * place.write for _, read, written in touches)
        note(cost, [(number, item.start, item.end)])
    for home in (each for each in may if each in homes):
        for where in product(may, repeat=len(touches)):
            for pieces in _list_pieces(where, home):
                cost_of = _run_pieces(item, places, home, touches, pieces)
                if cost_of is not None:
                    note(
                        cost_of,
                        [(m, touches[a][0], touches[b][0] + 1) for m, a, b in pieces],
                    )
    return sorted((cost, spans) for spans, cost in found.items())


def _list_pieces(where: Sequence[int], home: int) -> list[list[tuple[int, int, int]]]:
    """Return each way to cut the accesses in other memories into pieces: memory, first, last."""
    away = [at for at, number in enumerate(where) if number != home]
    joins = [at for at in away if at and where[at] == where[at - 1]]
    found = []
    for count in range(len(joins) + 1):
        for cut in combinations(joins, count):
            pieces: list[tuple[int, int, int]] = []
            for at in away:
                if at in joins and at not in cut:
                    pieces[-1] = (where[at], pieces[-1][1], at)
                else:
                    pieces.append((where[at], at, at))
            if pieces:
                found.append(pieces)
    return found


def _run_pieces(
    item: Item,
    places: Sequence[Place],
    home: int,
    touches: Sequence[Touch],
    pieces: Sequence[tuple[int, int, int]],
) -> int | None:
    """Return the least cost of all choices of copies with which accesses find their bytes.

    A state is (does the home have the newest bytes, does the piece); each has its least cost.
    """
    is_new = touches[0][0] == item.start and touches[0][2] > 0
    states = {(not is_new, False): 0}
    inside = {at: piece for piece in pieces for at in range(piece[1], piece[2] + 1)}
    for at, (_, read, written) in enumerate(touches):
        number, first, last = inside.get(at, (home, at, at))
        place = places[number]
        if number != home and first == at:
            copy = item.size * (places[home].read + place.write)
            fetched = [((True, True), cost + copy) for (h, _), cost in states.items() if h]
            left = [((h, False), cost) for (h, _), cost in states.items()]
            states = _keep_least([*left, *fetched])
        is_first = at == 0 and is_new
        cost = read * place.read + written * place.write
        after = []
        for (at_home, in_piece), before in states.items():
            there = at_home if number == home else in_piece
            if read and not (there or is_first):
                continue
            newest = there or is_first or written >= item.size
            if not written:
                after.append(((at_home, in_piece), before + cost))
            elif number == home:
                after.append(((newest, False), before + cost))
            else:
                after.append(((False, newest), before + cost))
        states = _keep_least(after)
        if number != home and last == at:
            copy = item.size * (place.read + places[home].write)
            stored = [((True, True), c + copy) for (_, there), c in states.items() if there]
            states = _keep_least([*states.items(), *stored])
    if touches[-1][0] + 1 < item.end:
        states = {state: cost for state, cost in states.items() if state[0]}
    return min(states.values(), default=None)


def _keep_least(
    given: Sequence[tuple[tuple[bool, bool], int]],
) -> dict[tuple[bool, bool], int]:
    found: dict[tuple[bool, bool], int] = {}
    for state, cost in given:
        found[state] = min(cost, found.get(state, cost))
    return found


def list_blocks(case: Case, limit: int) -> dict[int, int]:
    """Return the least bytes in all, by the number of blocks; nothing if there is no plan.

    An item above the limit, a buffer or a group, has a block with at most its own bytes.
    """
    items = [tuple(row for row, _ in piece) for piece in case.list_pieces()]
    extents = [sum(case.items[row].size for row in item) for item in items]

    @cache
    def height(mask: int) -> int | None:
        some = [at for at in range(len(items)) if mask >> at & 1]
        part = case.subset(row for at in some for row in items[at])
        return find_least(part, max(limit, *(extents[at] for at in some)))

    @cache
    def split(rest: int) -> dict[int, int]:
        if not rest:
            return {0: 0}
        found: dict[int, int] = {}
        some = rest
        while some:
            top = height(some) if some & rest & -rest else None  # its block has the first item
            if top is not None:
                for count, bytes in split(rest & ~some).items():
                    found[count + 1] = min(top + bytes, found.get(count + 1, top + bytes))
            some = (some - 1) & rest
        return found

    return split((1 << len(items)) - 1)


def least_apart(
    case: Case, capacity: int, penalties: Mapping[tuple[int, int], int]
) -> tuple[int, int] | None:
    """Return the least that shared addresses cost, and the least peak at that cost, or `None`.

    A pair may share, and then has its penalty, or is a conflict.
    """
    best: tuple[int, int] | None = None
    pairs = sorted(penalties)
    ways = sorted(
        (sum(penalties[pair] for pair in some), some)
        for count in range(len(pairs) + 1)
        for some in combinations(pairs, count)
    )
    for cost, some in ways:
        if best is not None and cost > best[0]:
            break
        apart = replace(case, conflicts=case.conflicts | {p for p in pairs if p not in some})
        peak = find_least(apart, capacity if best is None else min(capacity, best[1] - 1))
        if peak is not None:
            best = cost, peak
    return best
