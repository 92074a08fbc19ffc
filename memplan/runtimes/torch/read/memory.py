"""Builds an `Exported` from an exported program in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memplan.base.extras import require
from memplan.programs.graph import Kind
from memplan.programs.sources.origin import line_in
from memplan.runtimes.torch.read import aten
from memplan.runtimes.torch.read.guards import parse_assertion
from memplan.runtimes.torch.read.pictures import keep_options
from memplan.runtimes.torch.read.program import Autocast, Body, Exported, Given, Node, Option
from memplan.runtimes.torch.read.scope import Scope, bodies, name_arguments, scopes
from memplan.runtimes.torch.read.sizes import Range, Sizes
from memplan.runtimes.torch.read.values import Value

__all__ = ["program_in_memory"]

_WEIGHTS = ("PARAMETER", "BUFFER", "CONSTANT_TENSOR")


def program_in_memory(program: Any, given: Mapping[str, int]) -> Exported:
    """Return the program of a `torch.export.ExportedProgram`.

    Sparse tensors are refused, as their memory is not known before the run.
    """
    require("torch", extra="torch")
    return _Reader(program, given).program()


class _Reader:
    def __init__(self, program: Any, given: Mapping[str, int]) -> None:
        self._signature = program.graph_signature
        self._weights = {**program.constants, **program.state_dict}
        self._guards = getattr(program, "_guards_code", None) or []
        self._scopes = dict(scopes(program.graph_module))
        metas = {name: meta for one in self._scopes.values() for name, meta in one.metas.items()}
        ranges = {str(key): _range(value) for key, value in program.range_constraints.items()}
        self._sizes = Sizes(metas.items(), ranges, given)
        self._values = {name: self._sizes.value(name, meta) for name, meta in metas.items()}

    def program(self) -> Exported:
        inputs, names = self._inputs()
        arguments = {given.value.name: given.value for given in inputs if given.kind is Kind.INPUT}
        self._sizes.check([*self._guards, *self._find_asserted()], arguments)
        outputs, updates = [], []
        for spec in self._signature.output_specs:
            result = getattr(spec.arg, "name", "")
            if result not in self._values:
                continue
            if spec.kind.name.endswith("MUTATION"):
                updates.append((result, names[spec.target]))
            else:
                outputs.append(result)
        scope = self._scopes[""]
        nodes = tuple(self._nodes(scope))
        device = next((meta.device for meta in scope.metas.values()), "cpu")
        notes, name = self._sizes.notes(), _module_name(scope)
        return Exported(name, inputs, nodes, tuple(outputs), tuple(updates), notes, device)

    def _find_asserted(self) -> Iterator[str]:
        """Yield the conditions on sizes that the graphs assert while they run."""
        for scope in self._scopes.values():
            for node in scope.nodes:
                if str(node.target) == "aten._assert_scalar.default":
                    texts = (one for one in node.args if isinstance(one, str))
                    yield from filter(None, map(parse_assertion, texts))

    def _inputs(self) -> tuple[tuple[Given, ...], dict[str, str]]:
        """Return the inputs, and a map from the user's names of weights to the program's."""
        found, names = [], {}
        first: dict[object, str] = {}  # by place of a weight: its first name
        for spec in self._signature.input_specs:
            value = self._values.get(getattr(spec.arg, "name", ""))
            if value is None:
                continue
            label = spec.target if spec.kind.name in _WEIGHTS else ""
            kind = Kind.CONSTANT if label else Kind.INPUT
            trained = spec.kind.name == "PARAMETER" and self._scopes[""].metas[value.name].trained
            place = _find_place(self._weights.get(label)) or value.name
            owner = first.setdefault(place, value.name)
            same = "" if owner == value.name else owner
            found.append(Given(value, kind, label, trained, same))
            names[label or value.name] = value.name
        return tuple(found), names

    def _nodes(self, scope: Scope) -> Iterator[Node]:
        first: dict[int, str] = {}  # by storage: the tensor that it was made for
        for node in scope.nodes:
            names = scope.tensors(node)
            owners = [first.setdefault(scope.storages[name], name) for name in names]
            if node.op == "call_function":
                pairs = zip(names, owners, strict=True)
                shares = tuple(None if owner == name else owner for name, owner in pairs)
                yield self._node(scope, node, tuple(self._values[name] for name in names), shares)

    def _node(
        self, scope: Scope, node: Any, outputs: tuple[Value, ...], shares: tuple[str | None, ...]
    ) -> Node:
        arguments = name_arguments(node)
        call = self._call(scope, node, arguments)
        inner = tuple(prefix for prefix, _ in bodies(scope.module, scope.prefix, node))
        graphs = [i for i, one in enumerate(node.args) if getattr(one, "op", "") == "get_attr"]
        operands = node.args[graphs[-1] + 1 :] if inner else ()
        stack = [path for path, _ in node.meta.get("nn_module_stack", {}).values()]
        module = stack[-1] if stack else ""
        return Node(
            name=scope.prefix + (f"{module}.{node.name}" if module else node.name),
            target=call.target,
            inputs=tuple(value.name for value in call.tensors),
            outputs=outputs,
            shares=shares,
            writes=aten.writes(call),
            bodies=tuple(self._body(prefix) for prefix in inner),
            operands=tuple(scope.slots(operands)),
            module=module,
            line=line_in(node.meta.get("stack_trace")),
            autocast=_autocast(node.args) if call.target.endswith("wrap_with_autocast") else None,
            origin=scope.prefix + node.name,
            options=keep_options(
                call.target, ((key, _plain(one)) for key, one in arguments.items())
            ),
        )

    def _call(self, scope: Scope, node: Any, arguments: Mapping[str, Any]) -> aten.Call:
        names = scope.tensors(list(arguments.values()) or (node.args, node.kwargs))
        named = {
            key: self._values[scope.tensors(one)[0]]
            for key, one in arguments.items()
            if hasattr(one, "op") and scope.tensors(one)
        }
        flags = {key: one for key, one in arguments.items() if isinstance(one, (bool, int, float))}
        tensors = tuple(self._values[name] for name in names)
        return aten.Call(str(node.target), tensors, flags, named)

    def _body(self, prefix: str) -> Body:
        scope = self._scopes[prefix]
        inputs = [node for node in scope.nodes if node.op == "placeholder"]
        return Body(
            prefix.rstrip("/"),
            tuple(self._values.get(name or "") for name in scope.slots(inputs)),
            tuple(self._nodes(scope)),
            tuple(scope.slots(scope.results)),
        )


def _find_place(weight: Any) -> tuple[object, ...] | None:
    """Return where the elements of a weight lie; `None` if it is no tensor with strides."""
    if str(getattr(weight, "layout", "")) != "torch.strided":
        return None
    storage = weight.untyped_storage()._cdata
    return storage, weight.storage_offset(), tuple(weight.shape), weight.stride(), weight.dtype


def _plain(argument: Any) -> Option:
    """Return an argument that is no tensor; `...` for what is known only at run time."""
    if isinstance(argument, (list, tuple)):
        return tuple(map(_plain, argument))
    known = argument is None or type(argument) in (bool, int, float, str)
    return argument if known else ...


def _autocast(args: Sequence[Any]) -> Autocast:
    """Return the region of `wrap_with_autocast(device, dtype, enabled, cache, body, ...)`."""
    device, dtype, enabled, cache = args[:4]
    if dtype is None:
        dtype = require("torch", extra="torch").get_autocast_dtype(device)
    return Autocast(device, str(dtype).removeprefix("torch."), bool(enabled), bool(cache))


def _range(constraint: Any) -> Range:
    return _end(constraint.lower), _end(constraint.upper)


def _end(value: Any) -> int | None:
    return int(value) if getattr(value, "is_Integer", False) else None


def _module_name(scope: Scope) -> str:
    """Return the class of the user's module."""
    for node in scope.nodes:
        for _, type_ in node.meta.get("nn_module_stack", {}).values():
            return str(type_).rsplit(".", 1)[-1]
    return "program"
