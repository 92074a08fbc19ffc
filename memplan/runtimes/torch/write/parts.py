"""Rewrites a functional graph of PyTorch so that more of it may run again, in smaller parts.

The state of the generator of random numbers, which is that of the CPU, becomes a value. What draws
numbers then computes its results, and the next state, from a state that it reads: it may run again,
and draws the same numbers. Dropout and the backward pass of a convolution become two operators
each, which take as long together, and make the same bits.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from memplan.base.extras import require
from memplan.runtimes.torch.read.scope import name_arguments

__all__ = ["HELPERS", "take_apart"]


def read_generator() -> Any:
    """Return the state of the generator, before the first draw."""
    return require("torch", extra="torch").get_rng_state()


def write_generator(state: Any) -> None:
    """Leave the generator in the state after the last draw."""
    require("torch", extra="torch").set_rng_state(state)


def draw(state: Any, call: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Return the state after a call of an operator that draws numbers, and then its results."""
    with _from(state):
        results = call(*args, **kwargs)
        after = read_generator()
    return (after, *(results if isinstance(results, (list, tuple)) else (results,)))


def draw_mask(
    state: Any, size: tuple[int, ...], steps: tuple[int, ...], keep: float
) -> tuple[Any, Any]:
    """Return the state after a draw, and which elements dropout keeps, as `native_dropout` draws.

    Its product is an operator of its own, as it takes much less time to do that again.
    """
    torch: Any = require("torch", extra="torch")
    with _from(state):
        mask = torch.empty_strided(size, steps, dtype=torch.bool).bernoulli_(keep)
        return read_generator(), mask


@contextmanager
def _from(state: Any) -> Iterator[None]:
    """Draw from a state; a draw may run again after the last state was written."""
    before = read_generator()
    write_generator(state)
    try:
        yield
    finally:
        write_generator(before)


# By function: its name as the type of an operator.
HELPERS = {
    each: f"memplan.{each.__name__}" for each in (read_generator, write_generator, draw, draw_mask)
}


def take_apart(module: Any, draws: Callable[[Any], bool]) -> Any:
    """Return a functional module that does the same, of operators that may run again.

    `draws` says whether a node draws random numbers.
    """
    fx: Any = require("torch.fx", extra="torch")
    graph = copy.deepcopy(module.graph)
    state = None
    for node in [node for node in graph.nodes if node.op == "call_function"]:
        with graph.inserting_before(node):
            if draws(node):
                if state is None:
                    state = graph.call_function(read_generator)
                made = _split_dropout(graph, node, state) or _hand_on(graph, node, state)
                state = graph.call_function(operator.getitem, (made, 0))
                graph.erase_node(node)
            elif _split_convolution(graph, node):
                graph.erase_node(node)
    if state is not None:
        with graph.inserting_after(state):
            graph.call_function(write_generator, (state,))
    graph.lint()
    return fx.GraphModule(module, graph)


def _hand_on(graph: Any, node: Any, state: Any) -> Any:
    """Replace a node by one that reads a state, and return this."""
    made = graph.call_function(draw, (state, node.target, node.args, node.kwargs))
    parts = [user for user in node.users if user.target is operator.getitem]
    if parts:
        for part in parts:
            part.args = (made, part.args[1] + 1)
    else:
        node.replace_all_uses_with(graph.call_function(operator.getitem, (made, 1)))
    return made


def _split_dropout(graph: Any, node: Any, state: Any) -> Any:
    """Replace dropout by the draw of its mask, which is returned, and a product."""
    aten: Any = require("torch", extra="torch").ops.aten
    if node.target is not aten.native_dropout.default:
        return None
    given = name_arguments(node, defaults=True)
    like = node.meta["val"][1]
    sizes = (*like.shape, *like.stride())
    if given["train"] is False or not all(isinstance(each, int) for each in sizes):
        return None
    keep = 1.0 - given["p"]
    made = graph.call_function(draw_mask, (state, tuple(like.shape), like.stride(), keep))
    mask = graph.call_function(operator.getitem, (made, 1))
    scale = 1.0 / keep if keep else 0.0
    product = graph.call_function(
        aten.native_dropout_backward.default, (given["input"], mask, scale)
    )
    _replace_parts(graph, node, (product, mask))
    return made


def _split_convolution(graph: Any, node: Any) -> bool:
    """Replace the backward pass of a convolution by that to its weights and that to its input."""
    aten: Any = require("torch", extra="torch").ops.aten
    if node.target is not aten.convolution_backward.default:
        return False
    *given, (image, weight, bias) = name_arguments(node, defaults=True).values()
    if not (image and (weight or bias)):
        return False
    parts = []
    for mask in ([False, weight, bias], [True, False, False]):
        made = graph.call_function(node.target, (*given, mask))
        parts += [
            graph.call_function(operator.getitem, (made, at)) if mask[at] else None
            for at in range(3)
        ]
    _replace_parts(graph, node, (parts[3], *parts[1:3]))
    return True


def _replace_parts(graph: Any, node: Any, parts: tuple[Any, ...]) -> None:
    """Let the users of the parts of a tuple use other nodes."""
    for part in list(node.users):
        part.replace_all_uses_with(parts[part.args[1]])
        graph.erase_node(part)
