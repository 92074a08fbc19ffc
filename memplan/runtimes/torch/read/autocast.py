"""Adds the casts of inputs and weights that autocast makes, and that the graph does not show.

An exported graph shows an operator of float32 tensors with a bfloat16 result; between them PyTorch
casts every floating-point input. Casts of weights that need a gradient are kept until the outermost
region ends (`cached_cast` in ATen/autocast_mode.cpp), casts of everything else for one operator:

    cast of weight ─┐                       ┌─ end of autocast
    linear(x, w) ───┴─ ... linear(y, w) ... ┘  the cast of the weight lives from here to there

This module lists by name which operators cast, and to which type, on CPUs and on CUDA; the tests
compare the names with the kernels of an installed torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from memplan.base.notes import Code, Note
from memplan.runtimes.torch.operators import find_row
from memplan.runtimes.torch.read.program import Autocast, Body, Exported, Node
from memplan.runtimes.torch.read.values import DTYPES, Value, dense_strides

__all__ = ["CAST", "END", "get_region", "with_casts"]

CAST = "autocast.cast"
END = "autocast.end"

_LOWER = ("bfloat16", "float16")
_ELIGIBLE = ("float32", *_LOWER)
_BYTES = dict(DTYPES.values())
_LOOPS = ("while_loop", "scan", "map", "map_impl")


def with_casts(program: Exported) -> Exported:
    """Return a program with an operator for every cast, and one where each region ends.

    A program that was exported *under* autocast has no region, but it has results with types that
    float32 inputs do not explain. Then the whole program is one region, and a note says so.
    """
    whole = get_region(program)
    casts = _Casts(program)
    region = casts.cast_outside if whole is None else partial(casts.cast_region, autocast=whole)
    nodes = region(program.nodes)
    if nodes == program.nodes:
        return program
    return replace(program, nodes=nodes, notes=(*program.notes, *casts.notes(whole)))


def get_region(program: Exported) -> Autocast | None:
    """Return the region that a program was exported under, or `None` if there was none."""
    dtype = next(_find_unexplained(program.nodes, program.values), None)
    return None if dtype is None else Autocast(program.device, dtype, cache=True)


def _find_unexplained(nodes: Iterable[Node], values: Mapping[str, Value]) -> Iterator[str]:
    """Yield the types of results that only autocast makes, outside of every region."""
    for node in nodes:
        if node.autocast is not None:
            continue
        for body in node.bodies:
            yield from _find_unexplained(body.nodes, values)
        is_reduced = find_row(node.target).autocast == "reduced"
        if node.outputs and node.outputs[0].dtype in _LOWER and is_reduced:
            given = (values[name].dtype for name in node.inputs if name in values)
            if "float32" in given:
                yield node.outputs[0].dtype


@dataclass
class _Casts:
    """Walks through a program; the casts of a region are kept until its end."""

    program: Exported
    found: list[Value] = field(default_factory=list)  # the casts that are cached
    assumed: bool = False  # whether a region says that it caches nothing
    _outer: dict[str, str] = field(default_factory=dict)  # by parameter of a body: its operand
    _cached: dict[tuple[str, str], Value] | None = None  # by weight and type; None outside
    _early: list[Node] = field(default_factory=list)  # casts to make in front of this operator

    def cast_outside(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Return operators that are in no region, and the ends of the regions among them.

        `torch.export` splits a region at an inner region that is switched off, or at `no_grad`. So
        regions with no operators between them count as one.
        """
        done: list[Node] = []
        for node in nodes:
            if _is_region(node):
                self._cached = {} if self._cached is None else self._cached
            elif not find_row(node.target).is_metadata:
                done += self._end()
            done += self._cast_steps([node], None)
        return (*done, *self._end())

    def cast_region(self, nodes: Iterable[Node], autocast: Autocast) -> tuple[Node, ...]:
        """Return the operators of one region, followed by its end."""
        self._cached = {}
        return (*self._cast_steps(nodes, autocast), *self._end())

    def _end(self) -> list[Node]:
        kept = tuple(value.name for value in (self._cached or {}).values())
        self._cached = None
        return [Node("end of autocast", END, kept, (), ())] if kept else []

    def _cast_steps(self, nodes: Iterable[Node], autocast: Autocast | None) -> list[Node]:
        """Return operators, each after the casts that it is the first to need."""
        done: list[Node] = []
        for node in nodes:
            inner = self._cast_inputs(node, autocast)
            done += self._early
            done += inner
            self._early = []
        return done

    def notes(self, whole: Autocast | None) -> Iterator[Note]:
        """Yield notes on what was assumed about cached casts."""
        total = sum(value.span for value in self.found)
        weights = f"autocast's copies of {len(self.found)} weights ({total} bytes)"
        names = tuple(value.name for value in self.found)
        if whole is not None:
            text = (
                "the program was exported under autocast and is planned as it runs under "
                f"torch.autocast({whole.device!r}, torch.{whole.dtype}): {weights} live to "
                "its end"
            )
            yield Note(Code.AUTOCAST_ASSUMED, text, names)
        elif self.assumed:
            text = (
                f"{weights} live to the end of their region, as in the module; the exported "
                "program has no such cache and repeats every cast"
            )
            yield Note(Code.AUTOCAST_ASSUMED, text, names)

    def _cast_inputs(self, node: Node, autocast: Autocast | None) -> list[Node]:
        """Return an operator of a region, after the casts of its inputs."""
        if node.bodies:
            bodies = (self._body(node, body, autocast) for body in node.bodies)
            return [replace(node, bodies=tuple(bodies))]
        dtype = _find_run_type(node, autocast)
        if dtype is None or autocast is None:
            return [node]
        done, renamed = [], {}
        for name in dict.fromkeys(node.inputs):
            value = self.program.values.get(name)  # the graph reports missing tensors
            if value is None or value.dtype not in _ELIGIBLE or value.dtype == dtype:
                continue
            cast = self._cast_once(name, dtype, autocast)
            if cast is None:
                cast = _convert(value, f"{node.name}: {name} as {dtype}", dtype)
                done.append(_cast(name, cast, node))
            renamed[name] = cast.name
        inputs = tuple(renamed.get(name, name) for name in node.inputs)
        return [*done, replace(node, inputs=inputs)]

    def _cast_once(self, name: str, dtype: str, autocast: Autocast) -> Value | None:
        """Return the cast that the region keeps, or `None` if it keeps no cast of this tensor."""
        weight = self._outer.get(name, name)
        given = self.program.trained.get(weight)
        if self._cached is None or given is None or dtype != autocast.dtype:
            return None
        if given.value.dtype != "float32":
            return None
        if (weight, dtype) not in self._cached:
            cast = _convert(given.value, f"{given.label or weight} as {dtype}", dtype)
            self.found.append(cast)
            self.assumed |= not autocast.cache
            self._cached[weight, dtype] = cast
            self._early.append(_cast(weight, cast, None))
        return self._cached[weight, dtype]

    def _body(self, node: Node, body: Body, autocast: Autocast | None) -> Body:
        bound = len(node.operands) == len(body.inputs)
        loop = node.target.rpartition(".")[2] in _LOOPS
        if bound and not loop:
            for value, operand in zip(body.inputs, node.operands, strict=True):
                if value is not None and operand is not None:
                    self._outer[value.name] = self._outer.get(operand, operand)
        if node.autocast is not None:
            autocast = node.autocast if node.autocast.enabled else None
        if self._cached is None:
            return replace(body, nodes=self.cast_outside(body.nodes))
        if len(node.bodies) == 1 and not loop:
            return replace(body, nodes=tuple(self._cast_steps(body.nodes, autocast)))
        # A cast of one branch or round is cached for the others, so it goes before the operator.
        steps = (one for inner in body.nodes for one in self._cast_inputs(inner, autocast))
        return replace(body, nodes=tuple(steps))


def _is_region(node: Node) -> bool:
    """Whether an operator is a region, or contains only regions."""
    inside = (each for body in node.bodies for each in body.nodes)
    inner = [each for each in inside if not find_row(each.target).is_metadata]
    return node.autocast is not None or (bool(inner) and all(map(_is_region, inner)))


def _find_run_type(node: Node, autocast: Autocast | None) -> str | None:
    """Return the type to which an operator casts its inputs, or `None` if it casts none."""
    made = next((value.dtype for value in node.outputs if value.dtype in _ELIGIBLE), None)
    if autocast is None or made is None:
        return None
    way = find_row(node.target).autocast
    if way == "reduced":
        return made if made in _LOWER else None
    of_device = "plain on cpu" if autocast.device == "cpu" else "plain on cuda"
    return made if way in ("plain", of_device) else None


def _convert(value: Value, name: str, dtype: str) -> Value:
    """Return a copy in another type, which keeps the strides if they leave no gaps."""
    kept = value.span == prod(value.sizes) * value.itemsize
    strides = value.strides if kept else dense_strides(value.sizes)
    return Value(name, dtype, _BYTES[dtype], value.sizes, strides)


def _cast(source: str, made: Value, node: Node | None) -> Node:
    where = ("", "") if node is None else (node.module, node.line)
    return Node(f"cast to {made.name}", CAST, (source,), (made,), (None,), (), (), (), *where)
