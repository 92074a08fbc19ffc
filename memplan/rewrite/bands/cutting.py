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

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memplan.graph import Kind, Operator, Tensor
from memplan.graph.pictures import Map, Read, Span, Window
from memplan.rewrite.bands.cuts import Action, Cut, Do, Region, find_part
from memplan.rewrite.bands.uncut import (
    Box,
    Uncut,
    area,
    hull,
    is_empty,
    is_inside,
    whole,
)

__all__ = ["cut", "cut_region"]


def _part_of(uncut: Uncut, at: int, wanted: Box, *, pads: bool) -> tuple[Box, tuple[Box, ...]]:
    """Return what an operator makes of a wanted part, and the part that each input is fed.

    With `pads`, windows get zeros around that part. Bands of other regions ask for the same again.
    """
    key = (at, wanted, pads)
    if key not in uncut.parts:
        uncut.parts[key] = _find_part_of(uncut, uncut.operators[at], wanted, pads=pads)
    return uncut.parts[key]


def _find_part_of(
    uncut: Uncut, operator: Operator, wanted: Box, *, pads: bool
) -> tuple[Box, tuple[Box, ...]]:
    axes = []
    pads = pads and _pads_zeros(operator)
    for axis in (0, 1):
        feeds = [
            _rule(uncut, read, axis, pads).feed(
                wanted[axis], uncut.size(read.tensor)[axis], uncut.size(operator.makes)[axis]
            )
            for read in operator.reads
        ]
        made = {feed.made for feed in feeds} or {wanted[axis]}
        if len(made) != 1:
            raise ValueError("its inputs are padded in different ways")
        axes.append((made.pop(), [feed.fed for feed in feeds]))
    (rows, top), (columns, left) = axes
    return (rows, columns), tuple(zip(top, left, strict=True))


def _rule(uncut: Uncut, read: Read, axis: int, pads: bool) -> Map:
    rule = read.columns if axis else read.rows
    if pads and isinstance(rule, Window):
        return rule.free(uncut.size(read.tensor)[axis])
    return rule


def _pads_zeros(operator: Operator) -> bool:
    """Return whether a step is a window that may get zeros around its input from a copy."""
    if len(operator.reads) != 1:
        return False
    rules = (operator.reads[0].rows, operator.reads[0].columns)
    return all(isinstance(rule, Window) and rule.zeros for rule in rules)


def _find_crossing(uncut: Uncut, region: Region) -> list[int]:
    """Return the tensors that a region makes and later operators read, or the caller."""
    graph = uncut.graph
    later = set(graph.outputs)
    later.update(t for operator in graph.operators[region.last :] for t in _iterate_read(operator))
    return [
        tensor
        for operator in graph.operators[region.first : region.last]
        for tensor in operator.outputs
        if tensor in later
    ]


def _iterate_read(operator: Operator) -> Iterator[int]:
    for inner in operator.walk():
        yield from inner.inputs
        for block in inner.blocks:
            yield from block.outputs


def cut(uncut: Uncut, regions: Sequence[Region]) -> Cut:
    """Cut regions, of which no two share an operator, into bands.

    Raises
    ------
    ValueError
        If an operator of a region can only be done as a whole, if nothing that a region makes is
        read outside of it, or if a picture has fewer rows or columns than there are bands.
    """
    draft = _Draft(uncut)
    at = 0
    for region in sorted(regions, key=lambda region: region.first):
        draft.take(range(at, region.first))
        draft.cut(region)
        at = region.last
    draft.take(range(at, len(uncut.operators)))
    return draft.make_cut(tuple(regions))


def cut_region(uncut: Uncut, region: Region) -> Cut:
    """Cut one region into bands, without the operators around it, to measure it.

    Raises
    ------
    ValueError
        As `cut` does.
    """
    draft = _Draft(uncut)
    draft.cut(region)
    return draft.make_cut((region,))


@dataclass(slots=True)
class _Task:
    """A step in a band: the right part of its result, what it makes, and what it is fed."""

    right: Box
    made: Box
    feeds: tuple[Box, ...]


class _Draft:
    """Collects the actions of a program in bands."""

    def __init__(self, uncut: Uncut) -> None:
        self._uncut = uncut
        self._known = len(uncut.graph.tensors)
        self.parts: list[tuple[int, Box]] = []
        self.actions: list[Action] = []
        self.views: dict[int, tuple[int, int]] = {}
        self.macs = 0
        self.copied = 0
        self._kept: set[int] = set()  # pieces that live from one band to the next

    def make_cut(self, regions: tuple[Region, ...]) -> Cut:
        """Return what was added."""
        parts, actions = tuple(self.parts), tuple(self.actions)
        return Cut(self._uncut, regions, parts, actions, self.views, self.macs, self.copied)

    def take(self, operators: Iterable[int]) -> None:
        """Add operators as they are."""
        for at in operators:
            operator = self._uncut.operators[at]
            self.actions.append(Action(Do.WHOLE, (), operator.makes, at))
            self.macs += operator.macs

    def cut(self, region: Region) -> None:
        """Add the bands of a region."""
        for operator in self._uncut.operators[region.first : region.last]:
            if operator.why_whole:
                raise ValueError(operator.why_whole)
        crossing = _find_crossing(self._uncut, region)
        if not crossing:
            raise ValueError("nothing that it makes is read outside of it")
        bands = list(self._iterate_bands(crossing, region))
        tasks = self._find_tasks(region, bands)
        joined: dict[int, list[int]] = {tensor: [] for tensor in crossing}
        if region.kept:
            self._cut_and_keep(region, tasks, joined)
        else:
            for band, found in zip(bands, tasks, strict=True):
                pieces = _Pieces(self)
                for at in sorted(found):
                    self._compute(at, found[at], pieces, pads=region.pads)
                for tensor, box in band.items():
                    joined[tensor].append(self.place(pieces.get(tensor, box, copy=True)))
        for tensor in crossing:
            self._join_picture(tensor, joined[tensor], region.bands[1])

    def _iterate_bands(self, crossing: Sequence[int], region: Region) -> Iterator[dict[int, Box]]:
        """Yield the part of each crossing picture that a band makes."""
        sizes = [self._uncut.size(tensor) for tensor in crossing]
        if any(min(size[axis] for size in sizes) < region.bands[axis] for axis in (0, 1)):
            raise ValueError("there are more bands than rows or columns")
        for row in range(region.bands[0]):
            for column in range(region.bands[1]):
                yield {
                    tensor: (
                        _share(size[0], row, region.bands[0], min(s[0] for s in sizes)),
                        _share(size[1], column, region.bands[1], min(s[1] for s in sizes)),
                    )
                    for tensor, size in zip(crossing, sizes, strict=True)
                }

    def _find_tasks(
        self, region: Region, bands: Sequence[dict[int, Box]]
    ) -> list[dict[int, _Task]]:
        """Return by band what each step of the region does, from the last step to the first."""
        uncut, done = self._uncut, dict.fromkeys(region.kept, 0)
        operators, makes = uncut.operators, uncut.made
        found = []
        for number, band in enumerate(bands):
            is_last = number == len(bands) - 1
            wanted: dict[int, list[Box]] = defaultdict(list)
            for tensor, box in band.items():
                wanted[tensor].append(box)
            tasks: dict[int, _Task] = {}
            for at in range(region.last - 1, region.first - 1, -1):
                result = makes[at]
                if result not in wanted:
                    continue
                right = hull(wanted[result])
                if result in done:  # rows are kept in their whole width
                    rows, columns = uncut.size(result)
                    end = max(right[0][1], done[result])
                    if is_last and result in band:
                        end = rows
                    right = ((done[result], end), (0, columns))
                    done[result] = end
                    if is_empty(right):
                        continue
                made, feeds = _part_of(uncut, at, right, pads=region.pads)
                tasks[at] = _Task(right, made, feeds)
                for read, fed in zip(operators[at].reads, feeds, strict=True):
                    if not is_empty(fed):
                        wanted[read.tensor].append(fed)
            found.append(tasks)
        return found

    def _cut_and_keep(
        self, region: Region, tasks: Sequence[dict[int, _Task]], joined: dict[int, list[int]]
    ) -> None:
        """Add the bands of a region that keep rows for the next one."""
        makes = self._uncut.made
        lowest = self._find_lowest(region, tasks)
        kept: dict[int, int] = {}
        for number, found in enumerate(tasks):
            pieces = _Pieces(self, dict(kept))
            done = {}
            for at in sorted(found):
                task, tensor = found[at], makes[at]
                self._compute(at, task, pieces, pads=region.pads)
                if tensor in region.kept:
                    new = pieces.get(tensor, task.right, copy=tensor in joined)
                    if tensor in joined:
                        joined[tensor].append(self.place(new))
                    if tensor in kept:
                        pieces.put(tensor, self._join_pieces([kept[tensor], new], 0))
                    done[tensor] = task.right[0][1]
            for tensor, piece in pieces.made.items():
                if tensor not in region.kept:
                    continue
                _, box = self.part(piece)
                end = done.get(tensor, box[0][1])
                begin = max(lowest[number].get(tensor, end), box[0][0])
                kept.pop(tensor, None)
                if begin < end:
                    columns = self._uncut.size(tensor)[1]
                    rows = ((begin, end), (0, columns))
                    kept[tensor] = self.slice(piece, rows, copy=True)
                    self._kept.add(kept[tensor])

    def _find_lowest(
        self, region: Region, tasks: Sequence[dict[int, _Task]]
    ) -> list[dict[int, int]]:
        """Return by band the first row of each picture that a later band reads."""
        found: list[dict[int, int]] = [{}]
        for task in reversed(tasks[1:]):
            lowest = dict(found[-1])
            for at, each in task.items():
                for read, fed in zip(self._uncut.operators[at].reads, each.feeds, strict=True):
                    if not is_empty(fed):
                        row = lowest.get(read.tensor, fed[0][0])
                        lowest[read.tensor] = min(row, fed[0][0])
            found.append(lowest)
        return found[::-1]

    def _compute(self, at: int, task: _Task, pieces: _Pieces, *, pads: bool) -> None:
        operator = self._uncut.operators[at]
        inputs = tuple(
            -1 if is_empty(fed) else pieces.get(read.tensor, fed)
            for read, fed in zip(operator.reads, task.feeds, strict=True)
        )
        padded = pads and _pads_zeros(operator)
        if padded:
            inputs = (self._pad(operator.reads[0], task, inputs[0]),)
        output = self.add(operator.makes, task.made)
        self.actions.append(Action(Do.PART, inputs, output, at, task.feeds, padded=padded))
        size = self._uncut.size(operator.makes)
        self.macs += -(-operator.macs * area(task.made) // area(whole(size)))
        pieces.put(operator.makes, output)

    def _pad(self, read: Read, task: _Task, piece: int) -> int:
        """Return what a window is fed, with zeros around it where it lacks rows or columns."""
        box = []
        for axis, fed in enumerate(task.feeds[0]):
            rule = _rule(self._uncut, read, axis, True)
            assert isinstance(rule, Window)
            before, after = rule.pads(fed, task.made[axis])
            box.append((fed[0] - before, fed[1] + after))
        if tuple(box) == task.feeds[0]:
            return piece
        output = self.add(read.tensor, (box[0], box[1]))
        self._copy(Action(Do.PAD, (piece,), output))
        return output

    def _copy(self, action: Action) -> None:
        """Add an operator that copies."""
        self.actions.append(action)
        tensor, box = self.part(action.output)
        self.copied += self._uncut.depth(tensor) * area(box)

    def part(self, tensor: int) -> tuple[int, Box]:
        """Return the picture that a tensor is a part of, and which part."""
        return find_part(self._uncut, self.parts, tensor)

    def add(self, tensor: int, box: Box) -> int:
        """Return a new tensor, for a part of a picture."""
        self.parts.append((tensor, box))
        return self._known + len(self.parts) - 1

    def slice(self, piece: int, box: Box, *, copy: bool = False) -> int:
        """Return a part of a piece, which is a view of it unless it is to be a copy."""
        tensor, all_ = self.part(piece)
        if box == all_:
            return piece
        output = self.add(tensor, box)
        begin = (box[0][0] - all_[0][0], box[1][0] - all_[1][0])
        self._copy(Action(Do.SLICE, (piece,), output, begin=begin))
        given = self._uncut.graph.tensors[piece] if piece < self._known else None
        if not copy and self._is_run(box, all_) and (given is None or _is_planned(given)):
            self.views[output] = (piece, self._offset(tensor, box, all_))
        return output

    def join(self, inputs: Sequence[int], output: int, axis: int) -> None:
        """Join pieces to a tensor; those that nothing else holds lie at their place in it."""
        inputs, fan_in = list(inputs), self._uncut.fan_in
        while len(inputs) > fan_in:  # an operator joins so many: join groups first
            groups = [inputs[at : at + fan_in] for at in range(0, len(inputs), fan_in)]
            inputs = []
            for group in groups:
                inputs += [self._join_pieces(group, axis)] if len(group) > 1 else group
        self._add_join(inputs, output, axis)

    def place(self, piece: int) -> int:
        """Return a piece of a picture that is joined later; it lies at its place there."""
        tensor, box = self.part(piece)
        all_ = whole(self._uncut.size(tensor))
        if piece not in self.views and self._is_run(box, all_):
            self.views[piece] = (tensor, self._offset(tensor, box, all_))
        return piece

    def _join_pieces(self, pieces: Sequence[int], axis: int) -> int:
        """Return a new tensor of pieces that lie side by side."""
        tensor, _ = self.part(pieces[0])
        output = self.add(tensor, hull([self.part(piece)[1] for piece in pieces]))
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

    def _add_join(self, inputs: Sequence[int], output: int, axis: int) -> None:
        """Join pieces; those of this band alone lie at their place in what they are joined to."""
        self._copy(Action(Do.JOIN, tuple(inputs), output, axis=axis))
        tensor, all_ = self.part(output)
        for piece in inputs:
            _, box = self.part(piece)
            free = piece not in self.views and piece not in self._kept and piece >= self._known
            if free and self._is_run(box, all_):
                self.views[piece] = (output, self._offset(tensor, box, all_))

    def _is_run(self, box: Box, other: Box) -> bool:
        """Return whether a part of a picture is one piece of the memory of another part."""
        return self._uncut.rows_are_apart and box[1] == other[1] and is_inside(box, other)

    def _offset(self, tensor: int, box: Box, other: Box) -> int:
        return self._uncut.bytes_of(tensor, ((other[0][0], box[0][0]), other[1]))


class _Pieces:
    """The pieces of pictures that there are in a band."""

    def __init__(self, draft: _Draft, made: dict[int, int] | None = None) -> None:
        self._draft = draft
        self.made = made or {}
        self._slices: dict[tuple[int, Box, bool], int] = {}

    def put(self, tensor: int, piece: int) -> None:
        """Make this the piece of a picture that is read from now on."""
        self.made[tensor] = piece

    def get(self, tensor: int, box: Box, *, copy: bool = False) -> int:
        """Return a part of a picture, from the piece of this band or from the whole."""
        piece = self.made.get(tensor, tensor)
        key = (piece, box, copy)
        if key not in self._slices:
            self._slices[key] = self._draft.slice(piece, box, copy=copy)
        return self._slices[key]


def _share(size: int, at: int, bands: int, fewest: int) -> Span:
    """Return a band of a picture; the picture with the fewest rows decides where bands begin."""
    return (
        at * fewest // bands * size // fewest,
        (at + 1) * fewest // bands * size // fewest,
    )


def _is_planned(tensor: Tensor) -> bool:
    return tensor.kind not in (Kind.CONSTANT, Kind.VARIABLE)
