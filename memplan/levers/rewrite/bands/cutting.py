"""Cuts a part of a program into bands, each computed by the operators of the whole on fewer rows.

    whole        a ──► conv ──► b ──► conv ──► c          b is the large one

    two bands    slice a ──► conv ──► conv ──► c[0:4] ─┐
                 slice a ──► conv ──► conv ──► c[4:8] ─┴─► join ──► c

Rows of `b` that both bands need are computed twice, or the first band keeps them for the second one
(patch-based inference: MCUNetV2, arXiv 2110.15352, section 3; with kept rows it is the streaming of
line buffers). A slice of rows is a view of its picture, and a band lies at its place in the picture
that it is joined to, where rows are apart in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from memplan.levers.rewrite.bands.cuts import Action, Cut, Do, Region
from memplan.levers.rewrite.bands.uncut import Box, Part, Uncut, area, hull
from memplan.programs.graph.pictures import Span

__all__ = ["Divided", "cut", "cut_region", "divide"]


class Task(NamedTuple):
    """What an operator does in a band, and which part of what it makes is right."""

    at: int
    right: Box
    part: Part


@dataclass(frozen=True, slots=True)
class Divided:
    """What is to be done for a region in bands, before pieces of pictures are taken and joined."""

    region: Region  # what is cut
    crossing: tuple[int, ...]  # the pictures that it makes and later operators read, or the caller
    bands: list[dict[int, Box]]  # by band: the part of each of them that it makes
    tasks: list[list[Task]]  # by band: what its operators do, in the order in which they run


def divide(uncut: Uncut, region: Region) -> Divided:
    """Find what the operators of a region do in each band; refuse what `cut` refuses."""
    inside = uncut.operators[region.first : region.last]
    for operator in inside:
        if operator.why_whole:
            raise ValueError(operator.why_whole)
    made = (tensor for operator in inside for tensor in operator.outputs)
    crossing = tuple(t for t in made if uncut.last_readers.get(t, -1) >= region.last)
    if not crossing:
        raise ValueError("nothing that it makes is read outside of it")
    bands = _find_bands(uncut, crossing, region)
    return Divided(region, crossing, bands, _find_tasks(uncut, region, bands))


def _find_bands(uncut: Uncut, crossing: Sequence[int], region: Region) -> list[dict[int, Box]]:
    """Return the part of each crossing picture that a band makes."""
    sizes = [uncut.size(tensor) for tensor in crossing]
    fewest = [min(size[axis] for size in sizes) for axis in (0, 1)]
    if fewest[0] < region.bands[0] or fewest[1] < region.bands[1]:
        raise ValueError("there are more bands than rows or columns")
    rows, columns = (
        [_share(size[axis], region.bands[axis], fewest[axis]) for size in sizes] for axis in (0, 1)
    )
    return [
        {t: (down[i], across[j]) for t, down, across in zip(crossing, rows, columns, strict=True)}
        for i in range(region.bands[0])
        for j in range(region.bands[1])
    ]


def _find_tasks(uncut: Uncut, region: Region, bands: Sequence[dict[int, Box]]) -> list[list[Task]]:
    """Return what each operator of the region does, found from the last one to the first."""
    done, pads = dict.fromkeys(region.kept, 0), region.pads
    reads, makes = uncut.reads, uncut.made
    found = []
    for number, band in enumerate(bands):
        is_last = number == len(bands) - 1
        wanted = dict(band)
        tasks = []
        for at in range(region.last - 1, region.first - 1, -1):
            result = makes[at]
            if result not in wanted:
                continue
            right = wanted[result]
            if result in done:  # rows are kept in their whole width
                (_, rows), columns = uncut.wholes[result]
                end = max(right[0][1], done[result])
                if is_last and result in band:
                    end = rows
                right = ((done[result], end), columns)
                done[result] = end
                if right[0][0] == end:
                    continue
            part = uncut.find_part(at, right, pads=pads)
            tasks.append(Task(at, right, part))
            for tensor, fed, is_fed in zip(reads[at], part.feeds, part.is_fed, strict=True):
                if is_fed:
                    before = wanted.get(tensor, fed)
                    wanted[tensor] = fed if fed == before else hull((before, fed))
        found.append(tasks[::-1])
    return found


def cut(uncut: Uncut, regions: Sequence[Region]) -> Cut:
    """Cut regions, of which no two share an operator, into bands.

    A `ValueError` says that an operator of a region can only be done as a whole, that nothing that
    a region makes is read outside of it, or that a picture has fewer rows or columns than there are
    bands.
    """
    draft = _Draft(uncut)
    at = 0
    for region in sorted(regions, key=lambda region: region.first):
        draft.take(range(at, region.first))
        draft.cut(divide(uncut, region))
        at = region.last
    draft.take(range(at, len(uncut.operators)))
    return draft.make_cut(tuple(regions))


def cut_region(uncut: Uncut, found: Divided) -> Cut:
    """Cut one region into bands, as `cut` does, without the operators around it, to measure it."""
    draft = _Draft(uncut)
    draft.cut(found)
    return draft.make_cut((found.region,))


class _Draft:
    """Collects the actions of a program in bands.

    There are many of them for each region that is tried, so what is done for each is done in place.
    """

    def __init__(self, uncut: Uncut) -> None:
        self._uncut = uncut
        self._known = len(uncut.graph.tensors)
        self._rows_are_apart = uncut.rows_are_apart
        # By tensor: the picture that it is a part of, and which part.
        self._origins = list(range(self._known))
        self._boxes: list[Box] = list(uncut.wholes)
        self.actions: list[Action] = []
        self.views: dict[int, tuple[int, int]] = {}
        self.macs = 0
        self.copied = 0
        self._kept: set[int] = set()  # pieces that live from one band to the next

    def make_cut(self, regions: tuple[Region, ...]) -> Cut:
        """Return what was added."""
        parts = zip(self._origins[self._known :], self._boxes[self._known :], strict=True)
        actions = tuple(self.actions)
        return Cut(self._uncut, regions, tuple(parts), actions, self.views, self.macs, self.copied)

    def take(self, operators: Iterable[int]) -> None:
        """Add operators as they are."""
        for at in operators:
            operator = self._uncut.operators[at]
            self.actions.append(Action(Do.WHOLE, (), operator.makes, at))
            self.macs += operator.macs

    def cut(self, found: Divided) -> None:
        """Add the bands of a region."""
        region = found.region
        joined: dict[int, list[int]] = {tensor: [] for tensor in found.crossing}
        if region.kept:
            self._cut_and_keep(found, joined)
        else:
            for band, tasks in zip(found.bands, found.tasks, strict=True):
                pieces = _Pieces(self, {})
                for task in tasks:
                    self._compute(task, pieces)
                for tensor, box in band.items():
                    joined[tensor].append(self.place(pieces.get(tensor, box, copy=True)))
        for tensor in found.crossing:
            self._join_picture(tensor, joined[tensor], region.bands[1])

    def _cut_and_keep(self, divided: Divided, joined: dict[int, list[int]]) -> None:
        """Add the bands of a region that keep rows for the next one."""
        region, makes = divided.region, self._uncut.made
        lowest = self._find_lowest(divided.tasks)
        kept: dict[int, int] = {}
        for number, tasks in enumerate(divided.tasks):
            pieces = _Pieces(self, dict(kept))
            done = {}
            for task in tasks:
                tensor, right = makes[task.at], task.right
                self._compute(task, pieces)
                if tensor in region.kept:
                    new = pieces.get(tensor, right, copy=tensor in joined)
                    if tensor in joined:
                        joined[tensor].append(self.place(new))
                    if tensor in kept:
                        pieces.made[tensor] = self._join_pieces([kept[tensor], new], 0)
                    done[tensor] = right[0][1]
            for tensor, piece in pieces.made.items():
                if tensor not in region.kept:
                    continue
                top, bottom = self._boxes[piece][0]
                end = done.get(tensor, bottom)
                begin = max(lowest[number].get(tensor, end), top)
                kept.pop(tensor, None)
                if begin < end:
                    columns = self._uncut.wholes[tensor][1]
                    kept[tensor] = self.slice(piece, ((begin, end), columns), copy=True)
                    self._kept.add(kept[tensor])

    def _find_lowest(self, tasks: Sequence[Sequence[Task]]) -> list[dict[int, int]]:
        """Return by band the first row of each picture that a later band reads."""
        reads, found = self._uncut.reads, [dict[int, int]()]
        for later in reversed(tasks[1:]):
            lowest = dict(found[-1])
            for at, _, part in later:
                for tensor, fed, is_fed in zip(reads[at], part.feeds, part.is_fed, strict=True):
                    if is_fed and fed[0][0] < lowest.get(tensor, fed[0][1]):
                        lowest[tensor] = fed[0][0]
            found.append(lowest)
        return found[::-1]

    def _compute(self, task: Task, pieces: _Pieces) -> None:
        """Add an operator for a part of its result."""
        at, _, part = task
        tensor, reads, boxes = self._uncut.made[at], self._uncut.reads[at], self._boxes
        inputs = []
        for read, fed, is_fed in zip(reads, part.feeds, part.is_fed, strict=True):
            piece = pieces.made.get(read, read) if is_fed else -1
            if is_fed and boxes[piece] != fed:
                piece = pieces.get(read, fed)
            inputs.append(piece)
        if part.padded is not None and part.padded != part.feeds[0]:
            inputs = [self._copy(Do.PAD, inputs[0], part.padded)]
        output = len(boxes)
        self._origins.append(tensor)
        boxes.append(part.made)
        padded, scratch = part.padded is not None, part.scratch
        self.actions.append(
            Action(Do.PART, tuple(inputs), output, at, part.feeds, (0, 0), 0, padded, scratch)
        )
        self.macs += part.macs
        pieces.made[tensor] = output

    def _copy(self, do: Do, piece: int, box: Box, begin: tuple[int, int] = (0, 0)) -> int:
        """Return a new tensor that has what a piece has in a part of its picture."""
        tensor = self._origins[piece]
        output = len(self._boxes)
        self._origins.append(tensor)
        self._boxes.append(box)
        self.actions.append(Action(do, (piece,), output, -1, (), begin))
        (top, bottom), (left, right) = box
        self.copied += self._uncut.depths[tensor] * (bottom - top) * (right - left)
        return output

    def slice(self, piece: int, box: Box, *, copy: bool = False) -> int:
        """Return a part of a piece, which is a view of it unless it is to be a copy."""
        all_ = self._boxes[piece]
        if box == all_:
            return piece
        begin = (box[0][0] - all_[0][0], box[1][0] - all_[1][0])
        output = self._copy(Do.SLICE, piece, box, begin)
        if not copy and piece not in self._uncut.fixed:
            self._lay(output, piece)
        return output

    def join(self, inputs: Sequence[int], output: int, axis: int) -> None:
        """Join pieces to a tensor; those that nothing else holds lie at their place in it."""
        inputs, fan_in = list(inputs), self._uncut.fan_in
        while len(inputs) > fan_in:  # an operator joins so many: join groups first
            groups = [inputs[at : at + fan_in] for at in range(0, len(inputs), fan_in)]
            inputs = []
            for group in groups:
                inputs += [self._join_pieces(group, axis)] if len(group) > 1 else group
        self.actions.append(Action(Do.JOIN, tuple(inputs), output, axis=axis))
        origin, box = self._origins[output], self._boxes[output]
        self.copied += self._uncut.depths[origin] * area(box)
        for piece in inputs:
            if piece >= self._known and piece not in self.views and piece not in self._kept:
                self._lay(piece, output)

    def place(self, piece: int) -> int:
        """Return a piece of a picture that is joined later; it lies at its place there."""
        if piece not in self.views:
            self._lay(piece, self._origins[piece])
        return piece

    def _join_pieces(self, pieces: Sequence[int], axis: int) -> int:
        """Return a new tensor of pieces that lie side by side."""
        output = len(self._boxes)
        self._origins.append(self._origins[pieces[0]])
        self._boxes.append(hull([self._boxes[piece] for piece in pieces]))
        self.join(pieces, output, axis)
        return output

    def _join_picture(self, tensor: int, pieces: Sequence[int], columns: int) -> None:
        """Join the parts of a picture: columns to bands of rows, and these to the picture."""
        if len(pieces) < 2:
            raise ValueError("one band makes all rows")
        if columns > 1:
            rows = [pieces[at : at + columns] for at in range(0, len(pieces), columns)]
            pieces = [self.place(self._join_pieces(row, 1)) for row in rows]
        self.join(pieces, tensor, 0)

    def _lay(self, piece: int, other: int) -> None:
        """Let a piece lie at its place in another one, if it is one run of the memory of that."""
        (rows, columns), (others, across) = self._boxes[piece], self._boxes[other]
        is_inside = columns == across and others[0] <= rows[0] and rows[1] <= others[1]
        if self._rows_are_apart and is_inside:
            row = self._uncut.bytes_of_points[self._origins[piece]] * (columns[1] - columns[0])
            self.views[piece] = (other, row * (rows[0] - others[0]))


class _Pieces:
    """The pieces of pictures that there are in a band."""

    def __init__(self, draft: _Draft, made: dict[int, int]) -> None:
        self._draft = draft
        # By picture: its piece of this band, or the one that the band before has kept.
        self.made = made
        self._slices: dict[tuple[int, Box, bool], int] = {}

    def get(self, tensor: int, box: Box, *, copy: bool = False) -> int:
        """Return a part of a picture, from the piece of this band or from the whole."""
        piece = self.made.get(tensor, tensor)
        key = (piece, box, copy)
        if key not in self._slices:
            self._slices[key] = self._draft.slice(piece, box, copy=copy)
        return self._slices[key]


def _share(size: int, bands: int, fewest: int) -> list[Span]:
    """Return the bands of a picture; the picture with the fewest rows decides where they begin."""
    ends = [at * fewest // bands * size // fewest for at in range(bands + 1)]
    return list(pairwise(ends))
