"""Assembles a step of training: the two passes, all-reduces of buckets, updates, and streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from memplan.extensions.streams.training.capture import Captured
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View

__all__ = [
    "ALL_REDUCE",
    "BUCKET_BYTES",
    "LIMIT",
    "Optimizer",
    "Streams",
    "assemble",
    "assign_streams",
    "fill_buckets",
]

Optimizer = Literal["sgd", "adam"]
Streams = Literal["ddp", "overlap", "category", "one"]

ALL_REDUCE = "all_reduce"
BUCKET_BYTES = 25 << 20  # of DistributedDataParallel
LIMIT = 512  # operators on a stream of a category
_FIRST_BYTES = 1 << 20  # of the first bucket, so that communication begins early
_ALIGNMENT = 512  # of PyTorch's allocator for accelerators
_STATE = {"sgd": ("momentum",), "adam": ("first moment", "second moment")}


def assemble(captured: Captured, optimizer: Optimizer, bucket_bytes: int, *, early: bool) -> Graph:
    """Return the whole step on one stream, with what `training_step` was asked.

    With `early`, parameters are updated right after the all-reduce of their bucket; otherwise all
    are updated at the end, in the module's order.
    """
    return _StepBuilder(captured, optimizer).graph(bucket_bytes, early)


class _StepBuilder:
    def __init__(self, captured: Captured, optimizer: Optimizer) -> None:
        self._captured = captured
        self._optimizer = optimizer
        self._tensors = list(captured.graph.tensors)
        self._views = list(captured.graph.views)
        self._operators: list[Operator] = []

    def graph(self, bucket_bytes: int, early: bool) -> Graph:
        graph = self._captured.graph
        gradients = self._gather()
        order = list(gradients)
        sizes = [self._tensors[gradients[parameter]] for parameter in order]
        buckets = [[order[i] for i in bucket] for bucket in fill_buckets(sizes, bucket_bytes)]
        waiting = self._group_by_last(gradients, buckets)
        last_read = self._find_last_readers(order) if early else {}
        updates: list[tuple[int, int]] = []
        operators, self._operators = self._operators, []
        for number, operator in enumerate(operators):
            self._operators.append(operator)
            for bucket in waiting[number]:
                reduced = self._all_reduce(buckets[bucket], gradients, bucket)
                updates += list(reduced.items())
            if early:
                ready = [one for one in updates if last_read.get(one[0], 0) <= number]
                self._update(ready)
                updates = [one for one in updates if one not in ready]
        self._update(sorted(updates))
        return replace(
            graph,
            tensors=tuple(self._tensors),
            operators=tuple(self._operators),
            views=tuple(self._views),
            groups=tuple(tuple(gradients[parameter] for parameter in each) for each in buckets),
            alignment=_ALIGNMENT,
        )

    def _gather(self) -> dict[int, int]:
        """Copy gradients that cannot be made in a bucket; return by parameter its tensor there.

        The order is the one in which the backward pass makes the gradients.
        """
        graph, gradients = self._captured.graph, self._captured.gradients
        place = _find_places(graph, list(gradients.values()))
        base = {view.tensor: view.base for view in graph.views}
        maker = {index: at for at, op in enumerate(graph.operators) for index in op.outputs}
        made: dict[int, list[int]] = defaultdict(list)  # by operator, its parameters
        for parameter, gradient in gradients.items():
            root = base.get(gradient, gradient)
            made[maker.get(gradient, maker.get(root, 0))].append(parameter)
        found: dict[int, int] = {}
        for number, operator in enumerate(graph.operators):
            self._operators.append(operator)
            for parameter in made[number]:
                gradient = gradients[parameter]
                copied = gradient not in place
                found[parameter] = self._copy(parameter, gradient) if copied else place[gradient]
        return found

    def _copy(self, parameter: int, gradient: int) -> int:
        given = self._tensors[parameter]
        index = self._add(replace(given, name=f"gradient of {given.name}", kind=Kind.INTERMEDIATE))
        name = f"copy of the gradient of {given.name}"
        self._operators.append(Operator(name, "aten.clone", (gradient,), (index,)))
        return index

    def _group_by_last(
        self, gradients: dict[int, int], buckets: list[list[int]]
    ) -> dict[int, list[int]]:
        """Return by operator the buckets that are complete after it has run."""
        maker = {index: at for at, op in enumerate(self._operators) for index in op.outputs}
        found: dict[int, list[int]] = defaultdict(list)
        for number, bucket in enumerate(buckets):
            found[max(maker[gradients[parameter]] for parameter in bucket)].append(number)
        return found

    def _find_last_readers(self, parameters: list[int]) -> dict[int, int]:
        """Return by parameter the last operator that reads it, also through a view.

        The backward pass may use a parameter after it has made the gradient.
        """
        base = {view.tensor: view.base for view in self._views}
        wanted = set(parameters)
        found = {}
        for number, operator in enumerate(self._operators):
            roots = {base.get(index, index) for index in operator.inputs}
            found.update(dict.fromkeys(roots & wanted, number))
        return found

    def _all_reduce(
        self, bucket: list[int], gradients: dict[int, int], number: int
    ) -> dict[int, int]:
        """Reduce a bucket in place; return by parameter its reduced gradient."""
        reduced = {}
        for parameter in bucket:
            given = self._tensors[parameter]
            tensor = replace(
                self._tensors[gradients[parameter]], name=f"reduced gradient of {given.name}"
            )
            reduced[parameter] = self._add(tensor)
            self._views.append(View(reduced[parameter], gradients[parameter]))
        inputs = tuple(gradients[parameter] for parameter in bucket)
        operator = Operator(f"bucket {number}", ALL_REDUCE, inputs, tuple(reduced.values()))
        self._operators.append(operator)
        return reduced

    def _update(self, reduced: list[tuple[int, int]]) -> None:
        """Update parameters, each by an operator of its own."""
        for parameter, gradient in reduced:
            given = self._tensors[parameter] = replace(self._tensors[parameter], kind=Kind.VARIABLE)
            state = [
                self._add(replace(given, name=f"{what} of {given.name}"))
                for what in _STATE[self._optimizer]
            ]
            scratch = given.bytes if self._optimizer == "adam" else 0
            inputs = (parameter, gradient, *state)
            name = f"update of {given.name}"
            self._operators.append(Operator(name, self._optimizer, inputs, workspace=scratch))

    def _add(self, tensor: Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1


# Buckets of gradients (Li et al. 2020, section 3.2.3)


def fill_buckets(tensors: Sequence[Tensor], limit: int) -> list[list[int]]:
    """Return the indices of tensors of each bucket: in their order, one type of elements each.

    A bucket is full when it has reached its limit, and the next one of the type begins.
    """
    buckets: list[list[int]] = []
    filling: dict[str, list[int]] = {}
    filled: dict[str, int] = {}
    limits: dict[str, int] = {}
    for index, tensor in enumerate(tensors):
        dtype = tensor.dtype
        if dtype not in filling:
            filling[dtype], filled[dtype] = [], 0
            buckets.append(filling[dtype])
        filling[dtype].append(index)
        filled[dtype] += tensor.bytes
        if filled[dtype] >= limits.get(dtype, min(_FIRST_BYTES, limit)):
            limits[dtype] = limit
            del filling[dtype]
    return buckets


def _find_places(graph: Graph, gradients: Sequence[int]) -> dict[int, int]:
    """Return by gradient the tensor that can be its place in a bucket, where there is one.

    An operator can write a gradient directly into its bucket if the gradient fills its storage,
    and no operator reads that storage. Other gradients have to be copied into the bucket.
    """
    base = {view.tensor: view.base for view in graph.views}
    at = {view.tensor: view.offset for view in graph.views}
    made = {index for operator in graph.operators for index in operator.outputs}
    read = {base.get(index, index) for op in graph.walk() for index in op.inputs}
    read.update(index for pair in graph.aliases for index in pair)
    found: dict[int, int] = {}
    for gradient in gradients:
        root = base.get(gradient, gradient)
        whole = at.get(gradient, 0) == 0
        whole = whole and graph.tensors[gradient].bytes == graph.tensors[root].bytes
        own = root in made and graph.tensors[root].kind is Kind.INTERMEDIATE
        if own and whole and root not in read and root not in found.values():
            found[gradient] = root
    return found


# Streams


def assign_streams(graph: Graph, streams: Streams, limit: int) -> Graph:
    """Return a step on several streams, made from one on a single stream; see `training_step`."""
    if streams == "category":
        numbers = _number_streams(graph, limit)
    else:
        side = {"one": (), "ddp": ("communication",), "overlap": ("communication", "update")}
        numbers = [int(_get_category(one) in side[streams]) for one in graph.operators]
    operators = zip(graph.operators, numbers, strict=True)
    return replace(graph, operators=tuple(replace(one, stream=at) for one, at in operators))


def _number_streams(graph: Graph, limit: int) -> list[int]:
    """Return by operator a stream that has only its category; a new stream follows a full one.

    Streams are numbered as they begin.
    """
    open_: dict[str, int] = {}
    left: dict[str, int] = {}
    numbers = []
    begun = 0
    for operator in graph.operators:
        category = _get_category(operator)
        if not left.get(category):
            open_[category], left[category] = begun, limit
            begun += 1
        left[category] -= 1
        numbers.append(open_[category])
    return numbers


def _get_category(operator: Operator) -> str:
    if operator.type == ALL_REDUCE:
        return "communication"
    return "update" if operator.type in get_args(Optimizer) else "compute"
