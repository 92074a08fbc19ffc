"""Builds an `Exported` from the JSON of a serialized program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memplan.base.errors import GraphError, quoted
from memplan.programs.graph import Kind
from memplan.programs.sources.origin import line_in
from memplan.runtimes.torch.read import aten
from memplan.runtimes.torch.read.fields import Json, get, get_only, plain, slots, tensors
from memplan.runtimes.torch.read.guards import parse_assertion
from memplan.runtimes.torch.read.pictures import keep_options
from memplan.runtimes.torch.read.program import Autocast, Body, Exported, Given, Node
from memplan.runtimes.torch.read.sizes import Range, Sizes
from memplan.runtimes.torch.read.values import DTYPES, Meta, Value

__all__ = ["program_of"]

_STRIDED = 7
_MOST_AXES = 64


def program_of(
    model: Json, name: str, given: Mapping[str, int], places: Mapping[str, str]
) -> Exported:
    """Return the program of a model's JSON, with sizes for its symbols.

    `places` says by the user's name of a weight where it lies in the archive: see `read_model`.
    """
    module = get(model, "graph_module", dict, "the file")
    graph = get(module, "graph", dict, "the graph module")
    signature = get(module, "signature", dict, "the graph module")
    scopes = list(_scopes(graph, ""))
    metas = {scope: _metas(inner) for scope, inner in scopes}
    named = ((scope + name, meta) for scope, _ in scopes for name, meta in metas[scope].items())
    sizes = Sizes(named, _ranges(model), given)
    guards = model.get("guards_code")  # older files have none
    stated = [one for one in guards if isinstance(one, str)] if isinstance(guards, list) else []
    conditions = [*stated, *_find_asserted(scopes)]
    return _Reader(sizes, metas, places).program(name, graph, signature, conditions)


class _Reader:
    """Reads graphs into nodes; names of a sub-graph's tensors begin with the path to it."""

    def __init__(
        self,
        sizes: Sizes,
        metas: Mapping[str, Mapping[str, Meta]],
        places: Mapping[str, str],
    ) -> None:
        self._sizes = sizes
        self._places = places
        self._metas = metas
        self._values = {
            scope: {name: sizes.value(scope + name, meta) for name, meta in found.items()}
            for scope, found in metas.items()
        }

    def program(
        self, name: str, graph: Json, signature: Json, conditions: Iterable[str]
    ) -> Exported:
        inputs, names = self._inputs(get(signature, "input_specs", list, "the signature"))
        arguments = {given.value.name: given.value for given in inputs if given.kind is Kind.INPUT}
        self._sizes.check(conditions, arguments)
        outputs, updates = [], []
        for spec in get(signature, "output_specs", list, "the signature"):
            role, fields = get_only(spec, "an output")
            for result in tensors(fields.get("arg"), bare=True):
                if not role.endswith("mutation"):
                    outputs.append(result)
                elif (changed := names.get(_label_in(fields))) is not None:
                    updates.append((result, changed))
                else:
                    raise GraphError(f"tensor {quoted(result)} replaces an unknown input")
        nodes = self._nodes(graph, "")
        device = next((meta.device for meta in self._metas[""].values()), "cpu")
        notes = self._sizes.notes()
        return Exported(name, inputs, nodes, tuple(outputs), tuple(updates), notes, device)

    def _inputs(self, specs: list[Any]) -> tuple[tuple[Given, ...], dict[str, str]]:
        """Return the inputs, and a map from the user's names of weights to the program's."""
        found, names = [], {}
        first: dict[str, str] = {}  # by place of a weight: its first name
        for spec in specs:
            role, fields = get_only(spec, "an input")
            label = _label_in(fields)
            kind = Kind.INPUT if role == "user_input" else Kind.CONSTANT
            for name in tensors(fields.get("arg"), bare=True):
                value = self._value("", name)
                trained = role == "parameter" and self._metas[""][name].trained
                owner = first.setdefault(self._places.get(label, f"name {name}"), name)
                found.append(Given(value, kind, label, trained, "" if owner == name else owner))
                names[label or name] = name
        return tuple(found), names

    def _value(self, scope: str, name: str) -> Value:
        value = self._values[scope].get(name)
        if value is None:
            raise GraphError(f"tensor {quoted(scope + name)} has no size in the file")
        return value

    def _nodes(self, graph: Json, scope: str) -> tuple[Node, ...]:
        nodes = get(graph, "nodes", list, "a graph")
        return tuple(self._node(node, scope, index) for index, node in enumerate(nodes))

    def _node(self, node: Any, scope: str, index: int) -> Node:
        target = get(node, "target", str, "a node").removeprefix("torch.ops.")
        arguments: list[tuple[str, Json]] = [
            (get(record, "name", str, target), get(record, "arg", dict, target))
            for record in get(node, "inputs", list, target)
        ]
        outputs = tuple(
            self._value(scope, name)
            for record in _find_made(get(node, "outputs", list, target), arguments)
            for name in tensors(record)
        )
        call = self._call(target, arguments, scope)
        bodies = tuple(
            self._body(argument["as_graph"], _scope_of(scope, node, index, argument["as_graph"]))
            for _, argument in arguments
            if "as_graph" in argument
        )
        metadata = node.get("metadata")
        origin = metadata if isinstance(metadata, dict) else {}
        module = _module(origin.get("nn_module_stack"))
        name = _name(node, scope, outputs)
        return Node(
            name=scope + (f"{module}.{name}" if module else name),
            target=target,
            inputs=tuple(value.name for value in call.tensors),
            outputs=outputs,
            shares=tuple(aten.shares(call, value, place) for place, value in enumerate(outputs)),
            writes=aten.writes(call),
            bodies=bodies,
            operands=tuple(self._operands(arguments, scope)) if bodies else (),
            module=module,
            line=line_in(origin.get("stack_trace")),
            autocast=_autocast(arguments) if target.endswith("wrap_with_autocast") else None,
            origin=scope + name,
            options=keep_options(target, ((key, plain(one)) for key, one in arguments)),
        )

    def _call(self, target: str, arguments: list[tuple[str, Json]], scope: str) -> aten.Call:
        values: list[Value] = []
        flags: dict[str, float] = {}
        named: dict[str, Value] = {}
        for name, argument in arguments:
            found = [self._value(scope, tensor) for tensor in tensors(argument)]
            values += found
            flag = next(iter(argument.values()), None)
            if isinstance(flag, (bool, int, float)):
                flags[name] = flag
            if "as_tensor" in argument:
                named[name] = found[0]
        return aten.Call(target, tuple(values), flags, named)

    def _body(self, record: Json, scope: str) -> Body:
        graph = get(record, "graph", dict, "a sub-graph")
        inputs = tuple(
            None if name is None else self._value(scope, name)
            for argument in get(graph, "inputs", list, "a sub-graph")
            for name in slots(argument)
        )
        outputs = tuple(
            None if name is None else scope + name
            for argument in get(graph, "outputs", list, "a sub-graph")
            for name in slots(argument)
        )
        return Body(scope.rstrip("/"), inputs, self._nodes(graph, scope), outputs)

    def _operands(self, arguments: list[tuple[str, Json]], scope: str) -> Iterator[str | None]:
        """Yield the arguments after the last sub-graph: they are the operands of its parameters."""
        last = max(i for i, (_, argument) in enumerate(arguments) if "as_graph" in argument)
        for _, argument in arguments[last + 1 :]:
            for name in slots(argument):
                yield None if name is None else scope + name


def _find_made(outputs: list[Any], arguments: list[tuple[str, Json]]) -> list[Any]:
    """Return the outputs that an operator makes, without those that its mask does not ask for."""
    for name, argument in arguments:
        mask = argument.get("as_bools")
        if name in aten.MASKS and isinstance(mask, list) and len(mask) == len(outputs):
            return [record for record, wanted in zip(outputs, mask, strict=True) if wanted]
    return outputs


def _label_in(fields: Json) -> str:
    """Return the user's name of a weight or of an argument, or an empty text if it has none."""
    keys = ("parameter_name", "buffer_name", "tensor_constant_name", "user_input_name")
    return next((fields[key] for key in keys if isinstance(fields.get(key), str)), "")


def _scopes(graph: Json, scope: str) -> Iterator[tuple[str, Json]]:
    """Yield a graph and its sub-graphs, with the prefix that their tensors get."""
    yield scope, graph
    for index, node in enumerate(get(graph, "nodes", list, "a graph")):
        for record in get(node, "inputs", list, "a node"):
            inner = get(record, "arg", dict, "an argument").get("as_graph")
            if inner is not None:
                below = get(inner, "graph", dict, "a sub-graph")
                yield from _scopes(below, _scope_of(scope, node, index, inner))


def _scope_of(scope: str, node: Json, index: int, record: Any) -> str:
    name = node.get("name")
    owner = name if isinstance(name, str) else str(index)
    return f"{scope}{owner}.{get(record, 'name', str, 'a sub-graph')}/"


def _find_asserted(scopes: Iterable[tuple[str, Json]]) -> Iterator[str]:
    """Yield the conditions on sizes that the graphs assert while they run."""
    for _, graph in scopes:
        for node in get(graph, "nodes", list, "a graph"):
            if get(node, "target", str, "a node").endswith("aten._assert_scalar.default"):
                for record in get(node, "inputs", list, "a node"):
                    message = get(record, "arg", dict, "an argument").get("as_string")
                    condition = parse_assertion(message) if isinstance(message, str) else ""
                    if condition:
                        yield condition


def _metas(graph: Json) -> dict[str, Meta]:
    return {
        name: _meta(name, record)
        for name, record in get(graph, "tensor_values", dict, "a graph").items()
    }


def _meta(name: str, record: Any) -> Meta:
    where = f"tensor {quoted(name)}"
    code = get(record, "dtype", int, where)
    if code not in DTYPES:
        raise GraphError(f"{where} has an unknown element type ({code})")
    if get(record, "layout", int, where) != _STRIDED:
        raise GraphError(f"{where} is sparse: its size in memory is not in the file")
    dtype, itemsize = DTYPES[code]
    sizes, strides = (get(record, field, list, where) for field in ("sizes", "strides"))
    if len(sizes) > _MOST_AXES:
        raise GraphError(f"{where} has {len(sizes)} dimensions; torch allows {_MOST_AXES}")
    return Meta(
        dtype,
        itemsize,
        tuple(_size(size, where) for size in sizes),
        tuple(_size(step, where) for step in strides),
        _size(get(record, "storage_offset", dict, where), where),
        trained=record.get("requires_grad") is True,
        device=_device(record),
    )


def _device(record: Json) -> str:
    device = record.get("device")
    kind = device.get("type") if isinstance(device, dict) else None
    return kind if isinstance(kind, str) else "cpu"


def _autocast(arguments: list[tuple[str, Json]]) -> Autocast:
    """Return the region: its first arguments are device, type, and whether it is on and caches."""
    given = [next(iter(argument.items()), ("", None)) for _, argument in arguments]
    before = [role for role, _ in given].index("as_graph")
    values = [value for _, value in given[:before]] + [None] * 4
    device = values[0] if isinstance(values[0], str) else "cpu"
    code = values[1] if given[1:2] and given[1][0] == "as_scalar_type" else None
    dtype = DTYPES[code][0] if isinstance(code, int) and code in DTYPES else _default_type(device)
    return Autocast(device, dtype, values[2] is not False, values[3] is True)


def _default_type(device: str) -> str:
    return "bfloat16" if device == "cpu" else "float16"


def _size(record: Any, where: str) -> int | str:
    if isinstance(record, dict) and "as_expr" in record:
        return get(record["as_expr"], "expr_str", str, where)
    return get(record, "as_int", int, where)


def _ranges(model: Json) -> dict[str, Range]:
    found: dict[str, Range] = {}
    for symbol, record in get(model, "range_constraints", dict, "the file").items():
        ends = [
            record.get(key) if isinstance(record, dict) else None for key in ("min_val", "max_val")
        ]
        least, most = (end if isinstance(end, int) else None for end in ends)
        found[symbol] = least, most
    return found


def _name(node: Json, scope: str, outputs: tuple[Value, ...]) -> str:
    """Return the name of a node in its graph."""
    name = node.get("name")
    if isinstance(name, str):
        return name
    return outputs[0].name.removeprefix(scope) if outputs else ""


def _module(stack: object) -> str:
    """Return the innermost module of a stack, which has entries "key,path,class" between ";"."""
    fields = stack.rsplit(";", 1)[-1].split(",") if isinstance(stack, str) else []
    return fields[1] if len(fields) > 1 else ""
