"""What an operator does to the memory of its inputs: it hands it on, or it writes into it."""

from __future__ import annotations

from memplan.graph.model import Graph, Kind, Operator

__all__ = ["find_state", "is_view", "updates"]

# Their results are parts of an input: they write nothing.
_VIEWS = frozenset(
    {
        *("bitcast", "expand", "expand_dims", "flatten", "identity", "permute", "reshape"),
        *("select", "slice", "split", "squeeze", "transpose", "unsqueeze", "view"),
    }
)


def updates(operator: Operator) -> bool:
    """Return whether an operator writes to one of its inputs, by the rule of PyTorch's names."""
    name = operator.type.rsplit("::", 1)[-1].split(".")
    return any(word.endswith("_") and not word.endswith("__") for word in name)


def is_view(graph: Graph, operator: Operator, is_declared: bool) -> bool:
    """Return whether a result, if it is in the memory of an input, is a part of it, unchanged.

    `is_declared` says whether the result is one of `graph.views`.
    """
    if graph.source == "torch":
        # The reader makes views of what PyTorch says to share memory, and aliases of new state.
        return is_declared and not updates(operator)
    return operator.type.lower() in _VIEWS


def find_state(graph: Graph, operator: Operator) -> set[int]:
    """Return the inputs that an operator replaces: TFLite's kernels read their state, and write it.

    In other formats an operator that writes says so, by its results.
    """
    if graph.source != "tflite":
        return set()
    return {each for each in operator.inputs if graph.tensors[each].kind is Kind.VARIABLE}
