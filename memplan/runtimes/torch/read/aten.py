"""What PyTorch's operators do with the memory of their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memplan.runtimes.torch.operators import find_row
from memplan.runtimes.torch.read.values import Value, view_strides

__all__ = [
    "MASKS",
    "Call",
    "copies_storage",
    "has_scratch",
    "in_place_inputs",
    "is_update",
    "operator_of",
    "shares",
    "writes",
]


# The kernels of these may allocate scratch memory, or call other operators, and the program shows
# neither. `memplan.runtimes.torch.measure.run` found which operators allocate
# more than their results.
_SCRATCH = (
    *("conv", "scaled_dot_product", "_scaled_dot_product", "lstm", "gru", "rnn", "linalg_", "fft_"),
    *(
        "layer_norm",
        "group_norm",
        "batch_norm",
        "instance_norm",
        "rms_norm",
        "max_pool",
        "upsample",
    ),
    *("adaptive_", "im2col", "unfold", "cross_entropy_loss", "mse_loss", "nll_loss", "cosine_"),
    *("embedding_bag", "sort", "repeat", "multi_head", "_native_multi_head", "cdist", "einsum"),
)
# A backward operator makes only the gradients that its argument of this name asks for, though its
# fake kernel may make all of them.
MASKS = frozenset({"grad_input_mask", "output_mask"})
_KNOWN = ("aten", "autocast", "higher_order", "_operator", "prims")


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with its arguments."""

    target: str  # the full name, such as "aten.slice.Tensor"
    tensors: tuple[Value, ...] = ()  # every tensor argument, in order
    # Arguments that are numbers, by the names of the operator's schema.
    flags: Mapping[str, float] = field(default_factory=dict)
    # Arguments that are one tensor, by name.
    named: Mapping[str, Value] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """The name without namespace and overload; empty if it is not ATen's."""
        return operator_of(self.target)


def operator_of(target: str) -> str:
    """Return the name of an operator without namespace and overload; empty if it is not ATen's."""
    parts = target.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "aten" else ""


def shares(call: Call, output: Value, position: int) -> str | None:
    """Return the argument that a result shares its storage with, or `None` if it has its own."""
    name = call.operator
    if not name or not call.tensors:
        return None
    first = call.tensors[0]
    if "out" in call.named:
        return call.named["out"].name
    way = find_row(call.target).shares
    if way == "view" or _is_in_place(name):
        return first.name
    if way == "each":
        return call.tensors[position].name if position < len(call.tensors) else None
    if way == "same":
        return first.name if output.is_same(first) and not call.flags.get("copy") else None
    if way == "dropout":
        return None if call.flags.get("train") and call.flags.get("p", 0) else first.name
    if way == "reshape" and output.dtype == first.dtype and output.offset == first.offset:
        steps = view_strides(first.sizes, first.strides, output.sizes)
        if steps is not None and output.layout == _with(output, steps).layout:
            return first.name
    return None


def writes(call: Call) -> tuple[str, ...]:
    """Return the names of the arguments that an operator changes."""
    name = call.operator
    found = [call.named["out"].name] if "out" in call.named else []
    if _is_in_place(name) and call.tensors:
        found.append(call.tensors[0].name)
    if "batch_norm" in name and call.flags.get("training", call.flags.get("train", 0)):
        statistics = ("running_mean", "running_var")
        found += [call.named[key].name for key in statistics if key in call.named]
    return tuple(found)


def in_place_inputs(target: str, inputs: tuple[Value, ...], output: Value) -> tuple[str, ...]:
    """Return the inputs over which an operator can write its result without errors.

    The caller must check that an input is not needed any more, and has a storage of its own.
    """
    which = find_row(target).in_place
    if which == "first":
        inputs = inputs[:1]
    elif not which:
        return ()
    return tuple(value.name for value in inputs if value.layout == output.layout)


def copies_storage(target: str, first: Value, output: Value) -> bool:
    """Whether an operator copies the whole storage that its first input is a view of."""
    if not find_row(target).copies_storage or output.strides != first.strides:
        return False
    return all(step or size == 1 for size, step in zip(first.sizes, first.strides, strict=True))


def is_update(target: str) -> bool:
    """Whether an operator reads its other inputs while it changes the first."""
    return find_row(target).in_place == "first"


def has_scratch(target: str, inputs: Sequence[Value]) -> bool:
    """Whether an operator's kernel may take memory that the program does not show.

    Products first copy inputs that are not dense, and element-wise operators convert inputs of
    another floating-point type to that of the result.
    """
    name, row = operator_of(target), find_row(target)
    if row.packs and not all(value.is_dense for value in inputs[:1]):
        return True
    if row.in_place == "any" and len({v.dtype for v in inputs if "float" in v.dtype}) > 1:
        return True
    return name.startswith(_SCRATCH) or target.split(".")[0] not in _KNOWN


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _with(value: Value, strides: tuple[int, ...]) -> Value:
    return Value(value.name, value.dtype, value.itemsize, value.sizes, strides, value.offset)
