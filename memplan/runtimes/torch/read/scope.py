"""Runs the graphs of a program in memory once, with fake tensors.

Fake tensors have storages but no elements. So the run shows which tensors share a storage, also for
operators that no table has.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from memplan.base.errors import GraphError, quoted
from memplan.base.extras import require
from memplan.runtimes.torch.read.aten import MASKS
from memplan.runtimes.torch.read.values import Meta

__all__ = ["Scope", "bodies", "name_arguments", "never_drops", "results_of", "scopes"]


class Scope:
    """A graph module; its tensors get a prefix, and the names that torch gives them in files."""

    def __init__(self, module: Any, prefix: str) -> None:
        self.module = module
        self.prefix = prefix
        # Its nodes, without the output node and those that take one result of several.
        self.nodes: list[Any] = []
        self.results: list[Any] = []  # what it returns, in the module's structure
        self.metas: dict[str, Meta] = {}  # its tensors by name
        self.storages: dict[str, int] = {}  # by tensor: a key of the storage that it is in
        self._made: dict[Any, Any] = {}  # by node: a name, `None`, or nested lists of them
        self._run = _run(module)  # kept alive, or two storages could get one key
        for node in module.graph.nodes:
            if node.op == "output":
                self.results = node.args[0]
            elif _is_item(node):
                self._made[node] = self._made[node.args[0]][node.args[1]]
            else:
                self.nodes.append(node)
                self._describe(node)

    def _describe(self, node: Any) -> None:
        value = results_of(node, node.meta.get("val"))
        self._made[node] = _name_results(value, node, self.prefix, f"{node.name}_unused")
        if value is None:
            return
        results = _leaves(value), _leaves(self._run[node])
        for name, fake, run in zip(_leaves(self._made[node]), *results, strict=True):
            if name is not None:
                self.metas[name] = _meta(name, fake, run)
                self.storages[name] = run.untyped_storage()._cdata

    def slots(self, argument: Any) -> Iterator[str | None]:
        """Yield the values in an argument one after the other: a tensor's name, or `None`."""
        if isinstance(argument, (list, tuple)):
            for one in argument:
                yield from self.slots(one)
        elif isinstance(argument, dict):
            yield from self.slots(list(argument.values()))
        elif not isinstance(argument, str):
            yield from _leaves(self._made.get(argument) if hasattr(argument, "op") else None)

    def tensors(self, argument: Any) -> list[str]:
        """Return the names of the tensors in an argument."""
        return [name for name in self.slots(argument) if name is not None]


def scopes(module: Any, prefix: str = "") -> Iterator[tuple[str, Scope]]:
    """Yield a module and its sub-graphs, by the prefixes of their tensors."""
    yield prefix, Scope(module, prefix)
    for node in module.graph.nodes:
        for inner, body in bodies(module, prefix, node):
            yield from scopes(body, inner)


def bodies(module: Any, prefix: str, node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the sub-graphs of a higher-order operator, by the prefixes of their tensors."""
    for argument in node.args if node.op == "call_function" else ():
        if getattr(argument, "op", "") == "get_attr":
            body = getattr(module, argument.target)
            if hasattr(body, "graph"):
                yield f"{prefix}{node.name}.{argument.target}/", body


def name_arguments(node: Any, *, defaults: bool = False) -> dict[str, Any]:
    """Return the arguments of a call by name, in the order of its schema; none if it has none.

    With `defaults`, those are among them that the call leaves to the schema.
    """
    schema = getattr(getattr(node, "target", None), "_schema", None)
    if schema is None:
        return {}
    names = [one.name for one in schema.arguments]
    given = {one.name: one.default_value for one in schema.arguments} if defaults else {}
    given |= dict(zip(names, node.args, strict=False)) | node.kwargs
    return {name: given[name] for name in names if name in given}


def never_drops(node: Any) -> bool:
    """Return whether an operator that may draw random numbers does not, as its dropout is 0."""
    return name_arguments(node, defaults=True).get("dropout_p") == 0


def results_of(node: Any, made: Any) -> Any:
    """Return what an operator made, with `None` for each result that its mask does not ask for.

    Kernels return an undefined tensor for such a result, or one that has no meaning.
    """
    if not isinstance(made, (list, tuple)):
        return made
    arguments = name_arguments(node)
    mask = next((arguments[name] for name in MASKS if name in arguments), None)
    if mask is None or len(mask) != len(made):
        return made
    return [one if wanted else None for one, wanted in zip(made, mask, strict=True)]


def _run(module: Any) -> dict[Any, Any]:
    """Run a graph with fake tensors, and return what every node makes."""
    torch = require("torch", extra="torch")
    interpreter: Any = require("torch.fx", extra="torch").Interpreter
    symbols = require("torch.fx.experimental.symbolic_shapes", extra="torch")
    inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
    mode = require("torch._guards", extra="torch").detect_fake_mode(inputs)
    found: dict[Any, Any] = {}

    class Record(interpreter):  # type: ignore[misc]
        def run_node(self, n: Any) -> Any:
            if any(True for _ in bodies(module, "", n)):
                found[n] = n.meta.get("val")  # its sub-graphs have runs of their own
            else:
                try:
                    found[n] = super().run_node(n)
                except RuntimeError:  # some kernels take no symbolic sizes; they make new storages
                    found[n] = n.meta.get("val")
                    return found[n]
                # Autocast is off in this run. Another type means a cast, with its own storage.
                if _types(found[n]) != _types(n.meta.get("val")):
                    found[n] = n.meta.get("val")
                if mode is not None:
                    symbols.rebind_unbacked(mode.shape_env, n, found[n])
            return found[n]

    with mode or nullcontext(), torch.no_grad():
        # Inputs are detached, so operators that change a shape in place do not change the program.
        given = [one.detach() if _is_tensor(one) else one for one in inputs]
        Record(module, garbage_collect_values=False).run(*given, enable_io_processing=False)
    return found


def _name_results(value: Any, node: Any, prefix: str, unused: str) -> Any:
    """Return a name for every tensor in a result, as torch does when it writes a file.

    One result of several has the name of the node that takes it, or `unused` with its position.
    """
    if isinstance(value, (list, tuple)):
        users = [user for user in node.users if _is_item(user)] if node is not None else []
        items = {user.args[1]: user for user in reversed(users)}
        return [
            _name_results(one, items.get(index), prefix, f"{unused}_{index}")
            for index, one in enumerate(value)
        ]
    if not _is_tensor(value):
        return None
    return prefix + (unused if node is None else node.name)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _leaves(one)
    else:
        yield value


def _meta(name: str, fake: Any, run: Any) -> Meta:
    """Describe a tensor; its place in the storage is from the run, as the graph lacks it."""
    if str(fake.layout) != "torch.strided":
        raise GraphError(f"tensor {quoted(name)} is sparse: its size is known only at run time")
    storage = run.untyped_storage().nbytes()
    return Meta(
        str(fake.dtype).removeprefix("torch."),
        fake.itemsize,
        tuple(_size(size) for size in fake.shape),
        tuple(_size(step) for step in fake.stride()),
        _size(run.storage_offset()),
        storage if isinstance(storage, int) else 0,
        bool(fake.requires_grad),
        str(fake.device.type),
    )


def _size(size: Any) -> int | str:
    if isinstance(size, int):
        return size
    return str(require("sympy", extra="torch").srepr(size.node.expr))


def _types(value: Any) -> list[Any]:
    return [one.dtype for one in _leaves(value) if _is_tensor(one)]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, require("torch", extra="torch").Tensor)


def _is_item(node: Any) -> bool:
    return node.op == "call_function" and node.target is operator.getitem
