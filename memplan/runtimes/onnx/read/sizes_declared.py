"""The shapes that a file declares for tensors other than its inputs: evidence, which can be stale.

People who change the batch of a model edit its inputs and outputs, and do not edit the shapes of
the tensors between; exporters store the length that they traced with. So these shapes are removed
before the inference, and compared with its results. Where the inference finds no shape, the
declared one counts, unless the sizes that it depends on were changed after it was written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import prod
from typing import Any, NamedTuple

from memplan.base.errors import MemplanError, listed, quoted, suggest
from memplan.base.extras import require
from memplan.base.notes import Code, Note
from memplan.runtimes.onnx.read.protos import (
    copy,
    initializers,
    is_standard,
    make_type,
    opsets_of,
    tensor_type,
    walk_graphs,
    walk_nodes,
)
from memplan.runtimes.onnx.read.shapes_runtime import has_rule
from memplan.runtimes.onnx.read.sizes_data import Size
from memplan.runtimes.onnx.read.sizes_expressions import evaluate, names_in
from memplan.runtimes.onnx.read.sizes_lineage import Lineage

__all__ = ["Ask", "Evidence", "Open", "make_note"]

# Exporters write these where a dimension has no name.
_NAMELESS = frozenset({"", "?", "*", "-1", "None"})
_LISTED = 5  # shapes that a note lists
_SENTENCE = 260  # characters of a note before it says how many more there are

_Shape = tuple[int | str, ...]  # sizes and names; "" stands for neither
# The dimension to give, and where it is; where a whole shape is missing, nothing and a sentence.
Ask = tuple[str, str]


class Open(NamedTuple):
    """A value that the inference leaves open though all that it comes from is known."""

    name: str
    type: Any | None  # its `TypeProto`, if there is one
    maker: str  # the operator that makes it, in words; empty for an input
    sizes: list[Size] | None = None  # what is known of them whatever the data is
    places: tuple[str, ...] = ()  # where its sizes are asked for: equal ones in one place
    elements: int | None = None  # their number, where it is known

    def get_size(self, axis: int) -> Size:
        """Return what is known of a size."""
        return Size() if self.sizes is None else self.sizes[axis]

    def find_place(self, axis: int) -> str:
        """Return where a size is asked for, "TENSOR:AXIS"."""
        return self.places[axis] if axis < len(self.places) else f"{self.name}:{axis}"

    def list_axes(self) -> range:
        """Return the axes of its shape, as far as their number is known."""
        declared = tensor_type(self.type)
        rank = 0 if declared is None else len(declared.shape.dim)
        return range(rank if self.sizes is None else min(rank, len(self.sizes)))


@dataclass
class Evidence:
    """The sizes that a model declares and a user gives, to complete what the inference finds."""

    # Sizes that the user gives, by the name of a dimension or by "TENSOR:AXIS".
    dims: Mapping[str, int]
    named: frozenset[str]
    _lineage: Lineage
    # By tensor: the declared shapes, for each graph that has a tensor of this name. Graphs that
    # declare the same shapes count once, as there may be thousands of them.
    _shapes: dict[str, dict[tuple[_Shape, ...], None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _elements: dict[str, int] = field(default_factory=dict)  # declared types of elements
    _bare: bool = False  # whether the element types are removed too
    # By tensor and axis: the sizes that are declared, and those that are the most that can be.
    _believed: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _bounded: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _filled: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))  # axes
    _empty: list[str] = field(default_factory=list)  # sizes of inputs that are 0 in the file
    _names: dict[str, str] = field(default_factory=dict)  # of sizes, by "TENSOR:AXIS"
    _used: set[str] = field(default_factory=set)  # of `dims`
    _sizes: dict[str, int | None] = field(default_factory=dict)  # of expressions

    @staticmethod
    def take(model: Any, dims: Mapping[str, int]) -> Evidence:
        """Remove all shapes from a model except those of its inputs, and set the sizes of these.

        A dimension that is negative, or contradicts the size that an input has, is refused.
        """
        for name, value in dims.items():
            if value < 0:
                raise MemplanError(f"dimension {quoted(name)} is {value}; it must be 0 or more")
        types = [one for value in _walk_values(model.graph) if (one := tensor_type(value.type))]
        params = {dim.dim_param for one in types for dim in one.shape.dim} - {""}
        params = params.union(*map(names_in, params))
        _require_there(model.graph, dims, params)
        for dim in (dim for one in types for dim in one.shape.dim):
            if dim.dim_value < 0:  # some exporters write -1 for an unknown size
                dim.ClearField("dim_value")
        found = Evidence(dims, frozenset(params - _NAMELESS), Lineage.of(model.graph, dims))
        for graph in walk_graphs(model.graph):
            found._strip(graph, inner=graph is not model.graph)
        found._settle(model.graph)
        found._keep_foreign(model.graph, opsets_of(model))
        return found

    def _strip(self, graph: Any, *, inner: bool) -> None:
        """Remove declared shapes; the element types stay, as the inference may need them."""
        weights = initializers(graph)
        inputs = {value.name for value in graph.input}
        outputs = {value.name for value in graph.output}
        groups: dict[str, list[_Shape]] = defaultdict(list)
        for value in (*graph.value_info, *graph.output, *(graph.input if inner else ())):
            if value.name in weights or (value.name in inputs and not inner):
                continue
            declared = tensor_type(value.type)
            if declared is None:
                _forget_shape(value.type)
                continue
            if declared.HasField("shape"):
                groups[value.name].append(_read_shape(declared))
            declared.ClearField("shape")
            if not inner:
                self._elements[value.name] = declared.elem_type
        for name, shapes in groups.items():
            self._shapes[name][tuple(shapes)] = None
        twice = inputs | outputs | weights.keys()
        once = [copy(one) for one in graph.value_info if one.name not in twice]
        del graph.value_info[:]
        graph.value_info.extend(once)

    def _settle(self, graph: Any) -> None:
        """Give the inputs of the model the sizes that the user gives, or their weights have."""
        weights = initializers(graph)
        for value in graph.input:
            declared = tensor_type(value.type)
            if declared is None:
                continue
            if value.name in weights:
                declared.shape.CopyFrom(make_type(*weights[value.name]).tensor_type.shape)
                continue
            if not declared.HasField("shape"):
                while f"{value.name}:{len(declared.shape.dim)}" in self.dims:
                    declared.shape.dim.add()
            for axis, dim in enumerate(declared.shape.dim):
                given = self._find_given(dim.dim_param, f"{value.name}:{axis}")
                if given is None:
                    if dim.HasField("dim_value") and dim.dim_value == 0:
                        self._empty.append(f"{value.name}:{axis}")
                    continue
                # Some exporters write 0 for a size that is open.
                if dim.HasField("dim_value") and dim.dim_value not in (0, given):
                    raise _make_error(value.name, axis, dim.dim_value, given)
                dim.dim_value = given

    def _keep_foreign(self, graph: Any, opsets: Mapping[str, int]) -> None:
        """Keep the declared results of operators that neither the library nor a rule infers."""
        has = require("onnx.defs", extra="onnx").has
        for one in walk_graphs(graph):
            types = {value.name: value.type for value in (*one.value_info, *one.output)}
            for node in one.node:
                there = has(node.op_type, "" if is_standard(node) else node.domain)
                if not there and not has_rule(node, opsets):
                    for name in node.output:
                        self.fill(Open(name, types.get(name), node.op_type))

    def fill(self, one: Open) -> bool:
        """Complete an open shape with the sizes that the user gives, that are known, or declared.

        A size that stays open is named after its place, so that the inference carries the name to
        all that have this size. Returns whether that changed anything.
        """
        declared = tensor_type(one.type)
        if declared is None:
            return False
        evidence = self._find_declared(one.name, declared)
        changed = False
        if not declared.HasField("shape"):
            rank = self._find_rank(one, evidence)
            if rank is None:
                return False
            declared.shape.SetInParent()
            for _ in range(rank):
                declared.shape.dim.add()
            changed = True
        if one.sizes is not None and len(one.sizes) != len(declared.shape.dim):
            one = one._replace(sizes=None, places=())
        if evidence is not None and not _is_possible(evidence, one, len(declared.shape.dim)):
            evidence = None
        for axis, dim in enumerate(declared.shape.dim):
            if not dim.HasField("dim_value"):
                changed |= self._fill_axis(
                    one, axis, dim, "" if evidence is None else evidence[axis]
                )
        return changed

    def _find_rank(self, one: Open, evidence: _Shape | None) -> int | None:
        """Return the number of axes of a value, if it is known, declared, or given."""
        if one.sizes is not None:
            return len(one.sizes)
        if evidence is not None:
            return len(evidence)
        return next(at for at in count() if f"{one.name}:{at}" not in self.dims) or None

    def _fill_axis(self, one: Open, axis: int, dim: Any, size: int | str) -> bool:
        """Set an open size of a value, which a file declares as `size`, or name it."""
        known, most = one.get_size(axis)[:2]
        place = one.find_place(axis)
        if known is None:
            known = self._find_given(size if isinstance(size, str) else "", f"{one.name}:{axis}")
        if known is None:
            known = self._find_given(self._names.get(place, ""), place)
        if known is not None:
            dim.dim_value = known
        elif most is not None:
            dim.dim_value = most
            self._bounded[one.name][axis] = most
        elif isinstance(size, int):
            dim.dim_value = size
            self._believed[one.name][axis] = size
        elif not one.maker or dim.dim_param == place:
            return False
        else:
            dim.dim_param = place
        self._filled[one.name].add(axis)
        return True

    def read_names(self, graph: Any, open: Iterable[Open]) -> None:
        """Find the names that a file declares, behind the operators that make them, for open sizes.

        `graph` has been inferred after `fill` has named these sizes after their places.
        """
        places = {one.find_place(axis) for one in open for axis in one.list_axes()}
        for value in _walk_values(graph) if places else ():
            declared = tensor_type(value.type)
            if declared is None:
                continue
            found = self._find_declared(value.name, declared)
            if found is not None and len(found) == len(declared.shape.dim):
                for dim, name in zip(declared.shape.dim, found, strict=True):
                    if dim.dim_param in places and name in self.named:
                        self._names.setdefault(dim.dim_param, str(name))

    def _find_given(self, name: str, place: str) -> int | None:
        """Return the size that the user gives: by a name, by "TENSOR:AXIS", or inside a name."""
        key = name if name in self.dims else place
        if key in self.dims:
            self._used.add(key)
            return self.dims[key]
        size = self._evaluate(name)
        if size is not None:
            self._used |= names_in(name)
        return size

    def _evaluate(self, name: str) -> int | None:
        """Return the size of an expression, as far as the user gives what it is computed from."""
        if name not in self._sizes:
            self._sizes[name] = evaluate(name, self.dims)
        return self._sizes[name]

    def forget_inferred(self, graph: Any) -> None:
        """Remove all shapes that were neither given nor believed, so that they are inferred again.

        An early round of inference knows only some sizes, and a later round may contradict it.
        """
        for value in _walk_inferred(graph):
            declared = tensor_type(value.type)
            if declared is None or not declared.HasField("shape"):
                continue
            if value.name not in self._filled:
                declared.ClearField("shape")
                continue
            for axis, dim in enumerate(declared.shape.dim):
                if axis not in self._filled[value.name]:
                    dim.Clear()

    def forget_names(self, graph: Any) -> None:
        """Remove the names that the inference made up, so that those of places take their room."""
        for value in _walk_inferred(graph):
            declared = tensor_type(value.type)
            filled = self._filled.get(value.name, ())
            for axis, dim in enumerate(() if declared is None else declared.shape.dim):
                if dim.dim_param and axis not in filled:
                    dim.Clear()

    def forget_elements(self, graph: Any) -> bool:
        """Remove the element types too, as some are stale; return `False` if they already were."""
        new, self._bare = not self._bare, True
        for value in (*graph.value_info, *graph.output) if new else ():
            if value.type.HasField("tensor_type") and value.name not in self._filled:
                value.type.tensor_type.Clear()
        return new

    def find_other_elements(self, graph: Any) -> list[str]:
        """Return the tensors that have another element type than the file declares."""
        return [
            value.name
            for value in (*graph.value_info, *graph.output)
            if self._elements.get(value.name, 0) not in (0, value.type.tensor_type.elem_type)
            and value.type.HasField("tensor_type")
        ]

    def ask(self, one: Open) -> Iterator[Ask]:
        """Yield the dimensions of an open value that a user has to give."""
        declared = tensor_type(one.type)
        if declared is None or declared.elem_type == 0 or not declared.HasField("shape"):
            yield "", _ask_for_shape(one, has_elements=bool(declared and declared.elem_type))
            return
        evidence = self._find_declared(one.name, declared)
        for axis, dim in enumerate(declared.shape.dim):
            if dim.HasField("dim_value"):
                continue
            # The inference makes up names too, but not for inputs.
            names = ("" if one.maker else dim.dim_param, "" if evidence is None else evidence[axis])
            place, where = one.find_place(axis), f"axis {axis} of {quoted(one.name)}"
            key = next((str(name) for name in names if name in self.named), "")
            if not key and place in self._names:
                key, where = self._names[place], place
            # An expression is asked for by its names; by itself, if they give it no size.
            for name in sorted(names_in(key) - self.dims.keys()) or [key or place]:
                yield name, where

    def _find_declared(self, name: str, declared: Any) -> _Shape | None:
        """Return the declared shape that agrees with all known sizes, if there is exactly one."""
        groups = self._shapes.get(name, ())
        shapes = {shape for group in groups for shape in group}
        if declared.HasField("shape"):
            shapes = {shape for shape in shapes if self._agree(shape, _read_shape(declared))}
        return shapes.pop() if len(shapes) == 1 else None

    def _agree(self, declared: _Shape, found: _Shape) -> bool:
        """Whether one tensor can have both shapes; a name without a size agrees with any size."""
        return len(declared) == len(found) and all(
            one == other or isinstance(one, str) or isinstance(other, str)
            for one, other in zip(self._insert_sizes(declared), found, strict=True)
        )

    def _insert_sizes(self, shape: _Shape) -> _Shape:
        return tuple(self._insert_size(one) if isinstance(one, str) else one for one in shape)

    def _insert_size(self, name: str) -> int | str:
        size = self.dims.get(name, self._evaluate(name))
        return name if size is None else size

    def find_overridden(self, graph: Any) -> dict[str, tuple[_Shape, _Shape]]:
        """Return the declared shapes that do not count: by tensor, the declared and the true shape.

        `graph` is the model's, with the shape of every tensor.
        """
        found: dict[str, tuple[_Shape, _Shape]] = {}
        seen: set[tuple[str, _Shape]] = set()
        for value in _walk_values(graph):
            declared = tensor_type(value.type)
            groups = self._shapes.get(value.name)
            if declared is None or not groups or not declared.HasField("shape"):
                continue
            shape = _read_shape(declared)
            if (value.name, shape) in seen:
                continue
            seen.add((value.name, shape))
            wrong = [[one for one in group if not self._agree(one, shape)] for group in groups]
            if all(wrong):  # else the declaration is for a tensor of this name in another graph
                found.setdefault(value.name, (self._insert_sizes(wrong[0][0]), shape))
        return found

    def find_doubtful(self, overridden: Iterable[str]) -> Iterator[Ask]:
        """Yield the sizes that only a declaration gives, and that may be stale.

        A declaration may have been written for other inputs in two cases: another declared shape
        that depends on one of the same inputs is overridden, or the user gives the size of a
        dimension that the tensor depends on and the declaration has a number in its place.
        """
        changed, inputs = set(overridden), 0
        for name in changed:
            if not self._lineage.parents[name] & changed:
                inputs |= self._lineage.inputs[name]
        for name, axes in self._believed.items():
            declared = {dim for group in self._shapes[name] for shape in group for dim in shape}
            inside = (names_in(dim) for dim in declared if isinstance(dim, str))
            sizes = set(self._lineage.names(self._lineage.sizes[name])).difference(
                declared, *inside
            )
            if "" in declared:  # sizes without a name may be any of the unnamed ones
                sizes &= self.named
            if self._lineage.inputs[name] & inputs or sizes:
                for axis in sorted(axes):
                    yield (
                        f"{name}:{axis}",
                        f"axis {axis} of {quoted(name)}, declared for other sizes",
                    )

    def require_used(self, graph: Any) -> None:
        """Raise `MemplanError` if the user gives a size for a dimension that the model lacks."""
        left = self.dims.keys() - self._used
        for value in _walk_values(graph) if left else ():
            declared = tensor_type(value.type)
            for axis, size in enumerate(() if declared is None else _read_shape(declared)):
                names = {
                    shape[axis]
                    for group in self._shapes.get(value.name, ())
                    for shape in group
                    if axis < len(shape)
                }
                for key in left & {*names, f"{value.name}:{axis}"}:
                    if size != self.dims[key]:
                        raise _make_error(value.name, axis, size, self.dims[key])
        for key in left - self.named:
            name, _, number = key.rpartition(":")
            if not any(value.name == name and _has(value, number) for value in _walk_values(graph)):
                raise MemplanError(
                    f"tensor {quoted(name)} has no axis {axis}, as {quoted(key)} says"
                )

    def make_notes(self) -> Iterator[Note]:
        """Yield notes on sizes that neither the user gives nor the inputs determine."""
        for sizes, what in (
            (self._bounded, "depend on data are planned at the most that they can be"),
            (self._believed, "only the file declares are planned so, though data may change them"),
        ):
            first = next((f"{name}:{axis}" for name, axes in sizes.items() for axis in axes), "")
            if first:
                each = [f"{name}:{at} = {axes[at]}" for name, axes in sizes.items() for at in axes]
                text = f"sizes that {what}: {listed(each, quote=False)}"
                text += f"; --dim {first}=N plans another"
                yield Note(Code.DIM_ASSUMED, text, tuple(sizes))
        if self._empty:
            yield Note(
                Code.DIM_ASSUMED,
                f"sizes of inputs are 0 in the file: {listed(self._empty, quote=False)}; "
                f"--dim {self._empty[0]}=N gives another",
                tuple(dict.fromkeys(one.rpartition(":")[0] for one in self._empty)),
            )


def _require_there(graph: Any, dims: Mapping[str, int], named: set[str]) -> None:
    """Refuse a dimension that is neither a name in the file nor "TENSOR:AXIS"."""
    if dims.keys() <= named:
        return
    tensors = {value.name for value in _walk_values(graph)}
    tensors |= {name for node in walk_nodes(graph) for name in node.output if name}
    for key in dims.keys() - named:
        name, _, axis = key.rpartition(":")
        if not axis.isdecimal() or name not in tensors:
            there = listed(sorted(named - _NAMELESS)) or "none by name"
            near = suggest(key, [*named, *(f"{one}:{axis}" for one in tensors if name)])
            raise MemplanError(f"the model has no dimension {quoted(key)}; it has {there}{near}")


def _is_possible(declared: _Shape, one: Open, rank: int) -> bool:
    """Whether a value with this many axes, and as many elements as it has, can be as declared."""
    sizes = [size for size in declared if isinstance(size, int)]
    is_open = one.elements is None or len(sizes) < len(declared)
    return len(declared) == rank and (is_open or prod(sizes) == one.elements)


def _ask_for_shape(one: Open, *, has_elements: bool) -> str:
    maker = f" (made by {one.maker})" if one.maker else ""
    advice = "write the shape into the file"
    if has_elements:
        advice = f"give a size for each axis, like --dim {one.name}:0=2 --dim {one.name}:1=16"
    return f"tensor {quoted(one.name)}{maker} has no known shape; {advice}"


def make_note(overridden: Mapping[str, tuple[_Shape, _Shape]]) -> Note:
    """Return the note on declared shapes that do not count."""
    text = "declared shapes that contradict the inputs are ignored: "
    shown = 0
    for name, (declared, shape) in overridden.items():
        one = f"{quoted(name)} is {_format_shape(shape)}, not {_format_shape(declared)}"
        if shown and (shown == _LISTED or len(text) + len(one) > _SENTENCE):
            break
        text += f"; {one}" if shown else one
        shown += 1
    more = f"; and {len(overridden) - shown:,} more" if len(overridden) > shown else ""
    return Note(Code.SHAPE_OVERRIDDEN, text + more, tuple(overridden))


def _format_shape(shape: _Shape) -> str:
    return f"[{', '.join(str(one) or '?' for one in shape)}]"


def _walk_values(graph: Any) -> Iterator[Any]:
    """Yield all declarations, also those of inner graphs."""
    for one in walk_graphs(graph):
        yield from (*one.input, *one.value_info, *one.output)


def _walk_inferred(graph: Any) -> Iterator[Any]:
    """Yield all declarations but those of the inputs of the model."""
    for one in walk_graphs(graph):
        yield from (*one.value_info, *one.output, *(one.input if one is not graph else ()))


def _read_shape(declared: Any) -> _Shape:
    names = ("" if dim.dim_param in _NAMELESS else dim.dim_param for dim in declared.shape.dim)
    pairs = zip(declared.shape.dim, names, strict=True)
    return tuple(dim.dim_value if dim.HasField("dim_value") else name for dim, name in pairs)


def _forget_shape(declared: Any) -> None:
    """Remove the shape of the elements from the type of a sequence."""
    while declared.HasField("sequence_type") or declared.HasField("optional_type"):
        inner = "sequence_type" if declared.HasField("sequence_type") else "optional_type"
        declared = getattr(declared, inner).elem_type
    if declared.HasField("tensor_type"):
        declared.tensor_type.ClearField("shape")


def _has(value: Any, axis: str) -> bool:
    declared = tensor_type(value.type)
    there = () if declared is None else declared.shape.dim
    return axis.isdecimal() and int(axis) < len(there)


def _make_error(name: str, axis: int, size: int | str, given: int) -> MemplanError:
    return MemplanError(f"axis {axis} of {quoted(name)} has the size {size}; it cannot be {given}")
