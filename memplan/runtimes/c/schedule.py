"""The steps of a program in bands, as tables in C, for kernels that the user has.

    net_step   {operator, first input, number of inputs, bytes of a point, output, planes}
    net_piece  {offset, top, bottom, left, right}: a part of a picture, and where it lies

A step runs an operator of the program for some rows and columns of its result. It copies nothing
that lies at its place already. Rows around a picture that a window reaches are not in the arena:
a kernel counts them from the rows of its input and of its result. Constants are not in the arena
either, and no inputs of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memplan.levers.rewrite.bands import Action, Cut, Do
from memplan.programs.graph import Kind
from memplan.runtimes.c import names as c

__all__ = ["Schedule"]

_INPUTS: Final = (
    "/* Inputs of a step are the pictures in the arena that its operator reads, in its order;",
    " * where it joins them, those of which this part has rows and columns. What is not in the",
    " * arena (constants, and inputs that the caller keeps) is no input: the kernel knows where it",
    " * is. A step that reads nothing in the arena has one input without rows. */",
)


@dataclass(frozen=True)
class Schedule:
    """The steps of a program in bands."""

    found: Cut  # the program in bands
    # By tensor of the cut that is in the arena: its offset there in bytes.
    offsets: Mapping[int, int]
    # By operator of the cut: its number in the user's program, if that is another one.
    order: Sequence[int] | None = None

    def declare(self, lower: str) -> Iterator[str]:
        """Yield the types, and the declarations of the tables."""
        steps, pieces = self._count()
        yield from (
            *self._describe_pieces(),
            f"typedef struct {lower}_piece {{",
            "  uint64_t offset;",
            "  int32_t top, bottom, left, right; /* rows [top, bottom), columns [left, right) */",
            f"}} {lower}_piece;",
            *_INPUTS,
            f"typedef struct {lower}_step {{",
            "  int32_t operator_; /* its number in the program; -1: copy inputs to output */",
            "  uint32_t first; /* its inputs in the table of inputs */",
            "  uint32_t count; /* 0 for an operator that runs as a whole, on all its inputs */",
            "  uint32_t point; /* bytes of a row and column of its output; 0 for a whole one */",
            f"  {lower}_piece output;",
            "  uint32_t planes; /* of its output, one after the other; 0 for a whole one */",
            f"}} {lower}_step;",
            f"#define {lower.upper()}_STEPS_COUNT {steps}u",
            f"#define {lower.upper()}_INPUTS_COUNT {pieces}u",
        )

    def _describe_pieces(self) -> tuple[str, ...]:
        if self.found.uncut.rows_are_apart:
            return ("/* A part of a picture, NHWC: row by row, channels of a point together. */",)
        return ("/* A part of a picture, NCHW: a plane for each channel, each row by row. */",)

    def names(self, lower: str) -> tuple[str, str]:
        """Return the tables with their types: the steps, and their inputs."""
        return (
            f"{lower}_step {lower}_steps[{lower.upper()}_STEPS_COUNT]",
            f"{lower}_piece {lower}_inputs[{lower.upper()}_INPUTS_COUNT + 1]",
        )

    def define(self, lower: str) -> Iterator[str]:
        """Yield the definitions of the tables."""
        steps, inputs = self.names(lower)
        graph = self.found.uncut.graph
        first = 0
        yield f"const {steps} = {{"
        for action in self._iterate_actions():
            count = len(self._list_inputs(action))
            operator = graph.operators[action.step] if action.step >= 0 else None
            name = operator.name or operator.type if operator else "copy"
            piece = self._piece(-1 if self._has_results(action) else action.output)
            comment = c.escape_comment(name)
            point, planes = self._count_point_bytes(action), self._count_planes(action)
            yield (
                f"    {{{self._number(action)}, {first}u, {count}u, {point}u, {piece}, {planes}u}},"
                f" /* {comment} */"
            )
            first += count
        yield from ("};", f"const {inputs} = {{")
        for action in self._iterate_actions():
            for tensor in self._list_inputs(action):
                name = "" if tensor < 0 else graph.tensors[self.found.origin(tensor)].name
                yield f"    {self._piece(tensor)}, /* {c.escape_comment(name)} */"
        yield from ("    {0, 0, 0, 0, 0}, /* the end */", "};")

    def _count(self) -> tuple[int, int]:
        actions = list(self._iterate_actions())
        return len(actions), sum(len(self._list_inputs(action)) for action in actions)

    def _iterate_actions(self) -> Iterator[Action]:
        """Yield the steps, without the copies of what lies at its place."""
        for action in self.found.actions:
            if action.step >= 0 or self._list_inputs(action):
                yield action

    def _list_inputs(self, action: Action) -> list[int]:
        """Return the pieces that a step reads; -1 for one without rows, where it reads none."""
        if action.do is Do.WHOLE:
            return []
        if action.do is Do.PART:
            return [tensor for tensor in action.inputs if tensor >= 0] or [-1]
        assert action.do is not Do.PAD, "no kernel asks for zeros around its input"
        if action.do is Do.SLICE:
            (whole,) = action.inputs
            return [] if self._is_at_its_place(action.output, whole) else [whole]
        joined = action.output
        return [part for part in action.inputs if not self._is_at_its_place(part, joined)]

    def _is_at_its_place(self, part: int, whole: int) -> bool:
        """Return whether a part of a picture lies in the memory of another part, at its place."""
        tensor, box = self.found.part(part)
        _, (rows, columns) = self.found.part(whole)
        if not self.found.uncut.rows_are_apart or box[1] != columns:
            return False
        above = self.found.uncut.bytes_of(tensor, ((rows[0], box[0][0]), columns))
        return self.offsets[part] == self.offsets[whole] + above

    def _number(self, action: Action) -> int:
        """Return the number of a step's operator in the user's program, or -1 for a copy."""
        return action.step if action.step < 0 or self.order is None else self.order[action.step]

    def _has_results(self, action: Action) -> bool:
        """Return whether a step has several results, none of which can be said to be its output."""
        if action.do is not Do.WHOLE:
            return False
        graph = self.found.uncut.graph
        made = (graph.tensors[t].kind for t in graph.operators[action.step].outputs)
        return sum(kind is not Kind.WORKSPACE for kind in made) > 1

    def _count_point_bytes(self, action: Action) -> int:
        if action.do is Do.WHOLE:
            return 0
        _, ((top, bottom), (left, right)) = self.found.part(action.output)
        return self.found.bytes_of(action.output) // ((bottom - top) * (right - left))

    def _count_planes(self, action: Action) -> int:
        if action.do is Do.WHOLE:
            return 0
        uncut = self.found.uncut
        return 1 if uncut.rows_are_apart else uncut.depths[self.found.origin(action.output)]

    def _piece(self, tensor: int) -> str:
        at = self.offsets.get(tensor)
        if at is None:  # it is not in the arena, or there is none
            return "{0u, 0, 0, 0, 0}"
        if self.found.uncut.sizes[self.found.origin(tensor)] is None:
            return f"{{{at}u, 0, 0, 0, 0}}"
        _, ((top, bottom), (left, right)) = self.found.part(tensor)
        return f"{{{at}u, {top}, {bottom}, {left}, {right}}}"
