"""Lets a training step of PyTorch run operators again, so that it needs less memory.

    step = memplan.runtimes.torch.write.recompute(training_program(model, args, loss), "60MiB")
    loss = step(*args)  # and the gradients are in the parameters
    optimizer.step()

It is the functional graph of the step that is rewritten: new statistics of batch norm are results
of it, and so are states of the generator of random numbers. So an operator that runs again changes
nothing. The same kernel makes the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memplan.base.errors import GraphError, quoted
from memplan.base.extras import require
from memplan.levers.rewrite import Recomputed
from memplan.levers.rewrite import recompute as search
from memplan.levers.rewrite.again.costs import Costs
from memplan.programs.graph import Graph, Kind, Operator, Tensor, View
from memplan.programs.sources.dialects import Shared
from memplan.runtimes.torch.operators import DIALECT
from memplan.runtimes.torch.read.builder import shorten_type
from memplan.runtimes.torch.read.scope import never_drops
from memplan.runtimes.torch.write.moves import Moves
from memplan.runtimes.torch.write.parts import HELPERS, take_apart

__all__ = ["Step", "measured_graph", "recompute"]


@dataclass(frozen=True, repr=False)
class Step:
    """A training step in which operators run again.

    Attributes
    ----------
    program
        The `torch.export.ExportedProgram` of the step, as it was given.
    module
        The `torch.fx.GraphModule` with copied nodes. It takes what the placeholders of the program
        stand for, and returns its results: the loss, gradients, new values of buffers.
    found
        What runs again, what it costs, and what it costs at least. Its loads are those of all that
        the step allocates: results and scratch, without parameters and inputs.
    costs
        Seconds by the name of an operator, by which it was decided what runs again. With these,
        `recompute` finds the same again, and `verify_recompute` checks it.
    """

    program: Any
    module: Any
    found: Recomputed
    costs: Costs

    def __repr__(self) -> str:
        return f"<Step: {self.found.summary()}>"

    def __call__(self, *args: Any) -> Any:
        """Do the step: return the loss, add gradients to those of the parameters, set buffers.

        The optimizer is the caller's. Parameters and buffers are those of the model.
        """
        torch: Any = require("torch", extra="torch")
        given = self.inputs(*args)
        with torch.no_grad():
            results = self.module(*given)
            signature = self.program.graph_signature
            names = {spec.arg.name: at for at, spec in enumerate(signature.input_specs)}
            loss = None
            for spec, result in zip(signature.output_specs, results, strict=True):
                if spec.kind.name == "LOSS_OUTPUT":
                    loss = result
                elif spec.kind.name == "GRADIENT_TO_PARAMETER":
                    _add_gradient(self.program.state_dict[spec.target], result)
                elif spec.kind.name == "BUFFER_MUTATION":
                    self.program.state_dict[spec.target].copy_(result)
                elif spec.kind.name == "USER_INPUT_MUTATION":
                    given[names[spec.target]].copy_(result)
        return loss

    def inputs(self, *args: Any) -> list[Any]:
        """Return what the placeholders stand for: parameters, buffers, and these arguments."""
        return _collect_inputs(self.program, args)


def recompute(
    program: Any,
    capacity: int | str,
    args: tuple[Any, ...] | None = None,
    *,
    costs: Costs | None = None,
    spill: str | None = None,
    order: bool = True,
    timeout: float | None = None,
    states: int | None = None,
    pure: Iterable[str] = (),
) -> Step:
    """Return a training step that allocates no more than a capacity, by running operators again.

    With `spill`, it also moves results to host memory and back: pinned memory for a GPU; for a CPU,
    memory that PyTorch does not allocate.

    The step runs a few times as it is, on the CPU, to find what its kernels take in memory and
    time, and which tensors share memory. This needs the memory of the plain step.

    Parameters
    ----------
    program
        The joint graph of `memplan.runtimes.torch.read.training.training_program`.
    capacity
        The most bytes that the step may allocate: for results, gradients among them, and scratch.
    args
        Arguments of the model, as it was traced with; by default those.
    costs
        As of `memplan.levers.rewrite.recompute`; by default the times of these runs. Operators have
        the names of nodes.
    spill, order, timeout, states, pure
        As of `memplan.levers.rewrite.recompute`.

    Returns
    -------
    Step
        All its results are bit-equal to those of the given program.

    Raises
    ------
    GraphError
        If a node has sub-graphs, writes into its inputs, or may have side effects.
    PlanError
        If the capacity is below the floor, or no re-runs are found that fit.
    MemplanError
        If torch is not installed, or the program does not run on the CPU.
    """
    module, graph, times = _measure(program, args)
    costs = times if costs is None else costs
    found = search(
        graph,
        capacity,
        costs=costs,
        spill=spill,
        order=order,
        timeout=timeout,
        states=states,
        pure=pure,
    )
    return Step(program, _emit(module, found), found, costs)


def measured_graph(
    program: Any, args: tuple[Any, ...] | None = None
) -> tuple[Graph, dict[str, float]]:
    """Return the graph of a program as runs of it show it, and the seconds of its operators.

    It has the storages of a run, the scratch of kernels, and states of the generator of random
    numbers.

    Parameters
    ----------
    program, args
        As of `recompute`.
    """
    return _measure(program, args)[1:]


def _measure(program: Any, args: tuple[Any, ...] | None) -> tuple[Any, Graph, dict[str, float]]:
    """Return the module that was run, its graph, and the seconds of each operator."""
    require("torch", extra="torch")
    # These need torch, and `memplan.runtimes.choosing` does not.
    from memplan.runtimes.torch.measure.nodes import measure_nodes

    for node in program.graph.nodes:
        _check(node)
    if args is None:
        args = program.example_inputs[0]

    def draws(node: Any) -> bool:
        return DIALECT.shared_by(_name_type(node)) is Shared.GENERATOR

    module = take_apart(program.graph_module, draws)
    run = measure_nodes(module, _collect_inputs(program, args))
    graph = _Builder(program, module, run).graph()
    return module, graph, {each.name: run[each.name].seconds for each in graph.operators}


def _check(node: Any) -> None:
    """Refuse what is not functional."""
    if node.op in ("placeholder", "output", "get_attr"):
        return
    schema = getattr(node.target, "_schema", None)
    if schema is not None and schema.is_mutable:
        raise GraphError(
            f"node {quoted(node.name)} writes into its inputs; only a functional graph can run "
            "operators again: take that of training_program"
        )
    operators: Any = require("torch._ops", extra="torch")
    if isinstance(node.target, operators.HigherOrderOperator):
        raise GraphError(
            f"node {quoted(node.name)} is of {node.target}, which runs programs of its own, so "
            "what it touches is not known; trace the model without it"
        )
    if node.op != "call_function" or (schema is None and node.target is not operator.getitem):
        raise GraphError(
            f"node {quoted(node.name)} is no operator of PyTorch, so what it touches is not known"
        )


def _collect_inputs(program: Any, args: tuple[Any, ...]) -> list[Any]:
    torch: Any = require("torch", extra="torch")
    given = iter(torch.utils._pytree.tree_leaves(args))
    found = []
    for spec in program.graph_signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            found.append(next(given))
        elif spec.target in program.constants:
            found.append(program.constants[spec.target])
        else:
            found.append(program.state_dict[spec.target])
    return [one.detach() if isinstance(one, torch.Tensor) else one for one in found]


def _add_gradient(parameter: Any, gradient: Any) -> None:
    if parameter.grad is None:
        parameter.grad = gradient
    else:
        parameter.grad += gradient


# From the run to a graph


class _Builder:
    """Makes a graph of a program and its run."""

    def __init__(self, program: Any, module: Any, run: Mapping[str, Any]) -> None:
        self._program, self._module, self._run = program, module, run
        self._tensors: list[Tensor] = []
        self._views: list[View] = []
        self._base: dict[int, int] = {}  # by storage: the tensor that fills it
        self._made: dict[Any, list[int]] = {}  # by node: its tensors, by position

    def graph(self) -> Graph:
        """Return the graph; each of its operators is from the node of the same name."""
        user = set(self._program.graph_signature.user_inputs)
        operators: list[Operator] = []
        inputs: list[int] = []
        outputs: list[int] = []
        for node in self._module.graph.nodes:
            if node.op == "output":
                outputs = [tensor for each in node.all_input_nodes for tensor in self._made[each]]
            elif node.target is operator.getitem:
                self._made[node] = self._made[node.args[0]][node.args[1] : node.args[1] + 1]
            elif node.op != "call_function":
                kind = Kind.INPUT if node.name in user else Kind.CONSTANT
                self._make(node, kind)
                inputs += self._made[node] if kind is Kind.INPUT else ()
            else:
                operators.append(self._operator(node))
        for tensor in outputs:
            if self._tensors[tensor].kind is Kind.INTERMEDIATE:
                self._tensors[tensor] = replace(self._tensors[tensor], kind=Kind.OUTPUT)
        return Graph(
            "training step",
            tuple(self._tensors),
            tuple(operators),
            inputs=tuple(inputs),
            outputs=tuple(dict.fromkeys(outputs)),
            views=tuple(self._views),
            alignment=64,
            planned=frozenset({Kind.OUTPUT, Kind.INTERMEDIATE, Kind.WORKSPACE}),
            source="torch",
        )

    def _operator(self, node: Any) -> Operator:
        read = (tensor for each in node.all_input_nodes for tensor in self._made[each])
        inputs = tuple(dict.fromkeys(read))
        self._make(node, Kind.INTERMEDIATE)
        return Operator(
            node.name,
            _name_type(node),
            inputs,
            tuple(self._made[node]),
            workspace=self._run[node.name].scratch,
            origin=node.name,
        )

    def _make(self, node: Any, kind: Kind) -> None:
        """Add the results of a node; a number is a result without memory."""
        results = self._run[node.name].results
        made = self._made[node] = []
        for at, result in enumerate(results):
            made.append(len(self._tensors))
            name = node.name if len(results) == 1 else f"{node.name}[{at}]"
            if result is None:
                self._tensors.append(Tensor(name, 0, kind))
                continue
            base = self._base.setdefault(result.storage, made[-1])
            size = result.storage_bytes if base == made[-1] else result.bytes
            self._tensors.append(Tensor(name, size, kind, result.dtype, result.shape))
            if base != made[-1]:
                self._views.append(View(made[-1], base, result.start))


def _name_type(node: Any) -> str:
    name = HELPERS.get(node.target) or shorten_type(str(node.target))
    return f"{name} without dropout" if never_drops(node) else name


# From the graph to nodes


def _emit(module: Any, found: Recomputed) -> Any:
    """Return the module that runs the operators of the graph with copies, in their order.

    Code of fx deletes each value after its last reader, so no value may hold more than the plan
    says: a tuple is taken apart as it is made, and views are made again with each copy.
    """
    fx: Any = require("torch.fx", extra="torch")
    nodes = {node.name: node for node in module.graph.nodes}
    graph = fx.Graph()
    now: dict[Any, Any] = {}
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            now[node] = graph.node_copy(node)
    moves = Moves(graph, now)
    for each in found.graph.operators:
        if each.origin is None:
            moves.write(each)
            continue
        node = nodes[each.origin]
        now[node] = graph.node_copy(node, now.__getitem__)
        moves.note_results(node, each)
        for part in node.users:
            if part.target is operator.getitem:
                now[part] = graph.node_copy(part, now.__getitem__)
    (end,) = (node for node in module.graph.nodes if node.op == "output")
    graph.output(fx.node.map_arg(end.args[0], now.__getitem__))
    for node in reversed(graph.nodes):
        if node.target is operator.getitem and not node.users:
            graph.erase_node(node)
    graph.lint()
    return fx.GraphModule(module, graph)
