"""How one problem of the corpus is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from memplan.problem import Problem

if TYPE_CHECKING:
    from memplan_lab.corpus.runs import Ready

__all__ = ["Network", "Recipe"]

# By function of `memplan_lab.corpus.runs`: what it does, for the provenance of records.
_WAYS = {
    "inference": "inference in eager mode",
    "generation": "a prompt, and tokens one by one with a cache, in eager mode",
    "training": "forward and backward pass in eager mode",
    "int8": "compiled inference, quantised; float32 where TensorFlow Lite has no kernel for int8",
    "scratchpad": "the same from a scratchpad, in tiles, with transfers beside computation",
    "streams": "compiled step of data-parallel training on parallel streams",
}


_QUANTISED = ("int8", "scratchpad")


@dataclass(frozen=True)
class Recipe:
    """A problem, not yet made; it can be sent to another process."""

    name: str  # distinct among all recipes
    family: str  # where it is from
    provenance: Mapping[str, str]  # how it is made, in words
    make: Callable[[], Problem]  # makes it, always the same; fails as its library does


@dataclass(frozen=True)
class Network:
    """A network of PyTorch with its input, not yet built."""

    library: str  # that has it: "timm"
    model: str  # its name there
    build: Callable[[], Ready]  # builds it; can be sent to another process
    # batch, size: Of the input; the size is the side of an image, or a number of tokens.
    batch: int
    size: int
    dtype: str = "float32"  # of weights and activations: "float32" or "bfloat16"
    variant: str = ""  # what else is special: "checkpointed"

    def recipe(self, family: str, way: str, **options: str | int) -> Recipe:
        """Return the recipe of running the network in a way of `memplan_lab.corpus.runs`."""
        dtype = "int8" if way in _QUANTISED else self.dtype
        words = (way, self.variant, *options.values(), f"b{self.batch}", self.size, dtype)
        provenance = {
            "library": self.library,
            "model": self.model,
            "run": _WAYS[way],
            "batch": str(self.batch),
            "size": str(self.size),
            "dtype": dtype,
            **({"variant": self.variant} if self.variant else {}),
            **{name: str(value) for name, value in options.items()},
        }
        name = "-".join(str(word) for word in (self.library, self.model, *words) if word)
        return Recipe(name, family, provenance, partial(_run, way, self.build, options))


def _run(way: str, build: Callable[[], Ready], options: Mapping[str, object]) -> Problem:
    from memplan_lab.corpus import runs  # it needs torch, which a list of recipes does not

    problem: Problem = getattr(runs, way)(build, **options)
    return problem
