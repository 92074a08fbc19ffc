"""Assembles a step of training: the two passes, all-reduces, and updates of parameters."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Literal

from memplan.graph import Graph, Kind, Operator, Tensor, View
from memplan.sources.torch_training.buckets import fill_buckets, find_places
from memplan.sources.torch_training.capture import Captured

__all__ = ["ALL_REDUCE", "Optimizer", "assemble"]

Optimizer = Literal["sgd", "adam"]

ALL_REDUCE = "all_reduce"
_ALIGNMENT = 512  # of PyTorch's allocator for accelerators
_STATE = {"sgd": ("momentum",), "adam": ("first moment", "second moment")}


def assemble(captured: Captured, optimizer: Optimizer, bucket_bytes: int, *, early: bool) -> Graph:
    """Return the whole step on one stream.

    Parameters
    ----------
    captured
        The two passes.
    optimizer, bucket_bytes
        As `training_step` has them.
    early
        Whether parameters are updated right after the all-reduce of their bucket; otherwise all
        are updated at the end, in the module's order.
    """
    return _Step(captured, optimizer).graph(bucket_bytes, early)


class _Step:
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
        place = find_places(graph, list(gradients.values()))
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
