"""Groups gradients into buckets and finds their places (Li et al. 2020, section 3.2.3)."""

from __future__ import annotations

from collections.abc import Sequence

from memplan.graph import Graph, Kind, Tensor

__all__ = ["BUCKET_BYTES", "fill_buckets", "find_places"]

BUCKET_BYTES = 25 << 20  # of DistributedDataParallel
_FIRST_BYTES = 1 << 20  # so that communication begins early


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


def find_places(graph: Graph, gradients: Sequence[int]) -> dict[int, int]:
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
