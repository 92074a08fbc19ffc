"""The formats that memplan reads, and the writers of other packages; each is loaded when asked for.

Ours are in tables: those of `memplan.runtimes` and of this folder here, those of extensions in
`memplan.extensions.sources`, which may be missing. Those of other packages are entry points, which
cost time: so they are looked up only for a file that none of ours recognises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from memplan.base.errors import MemplanError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "Source",
    "find_extension",
    "find_format",
    "find_others",
    "find_source",
    "find_writer",
    "import_fitting",
    "import_runtime",
    "list_sources",
]

_SOURCES_OF_OTHERS: Final = "memplan.sources"
_WRITERS_OF_OTHERS: Final = "memplan.writers"
_EXTENSIONS: Final = "memplan.extensions"


@dataclass(frozen=True, slots=True)
class Source:
    """A format of files.

    Attributes
    ----------
    module
        The module that reads it. `matches(head, path)` says whether a file with these first 4,096
        bytes has this format, and `read(path, options)` returns it as a `memplan.Loaded`. It may
        have `open_graphs` (see `programs.sources.open_graphs`), and `needs_library(path)`: whether
        the extra of the name of the format has to be installed for this file.
    what
        What such a file is: "an OpenVINO model".
    bare
        What it has in place of operators, if it has none: "an XLA dump".
    binary
        What a sentence about unknown binary files calls it; empty for formats of text.
    takes
        The options of `memplan.load` that are not for all formats: "dims", if sizes may depend on
        symbolic dimensions; "part", if a file may hold several problems, of which one is planned;
        "runtime_order", "fused" and "board".
    dialect
        The module with the `programs.sources.dialects.Dialect` of its operators, as `DIALECT`.
    runtime
        The package of its own runtime, of which the module `measure` gives figures; its function
        `settle` says which of sizes that contradict each other are true.
    suffix
        That of the files of which the runtime takes a plan or another order.
    has_arena
        Whether the runtime has one block of memory for all that it needs, which a capacity limits:
        the module `arena` of its package knows what is beside the plan.
    """

    module: str
    what: str
    bare: str = ""
    binary: str = ""
    takes: tuple[str, ...] = ()
    dialect: str = ""
    runtime: str = ""
    suffix: str = ""
    has_arena: bool = False


# They are asked in this order; those that recognise their files for certain come first.
_CERTAIN: Final = {
    "tflite": Source(
        "memplan.runtimes.tflm.read",
        "a TensorFlow Lite model",
        binary="TFLite",
        takes=("dims", "board"),
        dialect="memplan.runtimes.tflm.effects",
        runtime="memplan.runtimes.tflm",
        suffix=".tflite",
        has_arena=True,
    ),
    "torch": Source(
        "memplan.runtimes.torch.read",
        "a PyTorch program of torch.export",
        binary="torch.export",
        takes=("dims",),
        dialect="memplan.runtimes.torch.operators",
        runtime="memplan.runtimes.torch",
    ),
    "trace": Source(
        "memplan.programs.sources.trace_json", "a recorded run of a PyTorch model", "a recorded run"
    ),
    "graph": Source("memplan.programs.sources.graph_json", "a graph in memplan's own format"),
}
_LAST: Final = {
    "onnx": Source(
        "memplan.runtimes.onnx.read",
        "an ONNX model",
        binary="ONNX",
        takes=("dims", "runtime_order", "fused"),
        dialect="memplan.runtimes.onnx.operators",
        runtime="memplan.runtimes.onnx",
        suffix=".onnx",
    ),
}


@cache
def list_sources() -> Mapping[str, Source]:
    """Return ours by name, in the order in which they are asked."""
    extension = find_extension("sources")
    return {**_CERTAIN, **(extension.SOURCES if extension else {}), **_LAST}


@cache
def find_extension(name: str) -> Any | None:
    """Return an extension of memplan's own; `None` if it is not installed."""
    full = f"{_EXTENSIONS}.{name}"
    try:
        return import_module(full)
    except ModuleNotFoundError as error:
        if error.name not in (_EXTENSIONS, full):
            raise
        return None


@cache
def find_others() -> Mapping[str, Source]:
    """Return the sources of other packages, by name.

    Raises
    ------
    MemplanError
        If a package cannot be loaded, or declares something else.
    """
    found = _load_all(_SOURCES_OF_OTHERS)
    for name, each in found.items():
        if not isinstance(each, Source):
            raise MemplanError(
                f"the entry point {name} of {_SOURCES_OF_OTHERS} leads to no "
                "memplan.programs.sources.registry.Source"
            )
    return {name: each for name, each in found.items() if name not in list_sources()}


_PROBLEMS: Final = {
    "csv": Source("", "a problem in CSV", bare="a problem"),
    "json": Source("", "a problem in JSON", bare="a problem"),
    "memory": Source("", "a problem", bare="a problem"),
}
_UNKNOWN: Final = Source("", "a file")


def find_format(name: str) -> Source:
    """Return what is known of a format, by `Loaded.source`; no module reads one of problems."""
    return {**_PROBLEMS, **list_sources()}.get(name) or find_others().get(name, _UNKNOWN)


def find_source(name: str) -> Any:
    """Return the module that reads a format, or `None` if there is no such format."""
    module = find_format(name).module
    return import_module(module) if module else None


def import_runtime(name: str, module: str) -> Any:
    """Return a module of a format's own runtime, which is not loaded before it is asked."""
    return import_module(f"{find_format(name).runtime}.{module}")


def import_fitting() -> Any:
    """Return the module that makes programs of any format fit, with the writers of all runtimes."""
    return import_module("memplan.runtimes.fitting")


def find_writer(suffix: str) -> Callable[..., Any] | None:
    """Return what makes writers of files with a suffix (".bin"), if another package does.

    It is called with a `memplan.Loaded` and the name of the program, and returns a
    `memplan.levers.writers.Writer`.
    """
    found: Callable[..., Any] | None = _load_all(_WRITERS_OF_OTHERS).get(suffix.removeprefix("."))
    return found


@cache
def _load_all(group: str) -> dict[str, Any]:
    from importlib.metadata import entry_points

    entries = sorted(entry_points(group=group), key=lambda entry: entry.name)
    return {entry.name: _load(entry, group) for entry in entries}


def _load(entry: EntryPoint, group: str) -> Any:
    package = entry.dist.name if entry.dist is not None else entry.value
    try:
        return entry.load()
    except Exception as error:  # the import of another package may raise any exception
        reason = f"{type(error).__name__}: {error}"
        raise MemplanError(
            f"the entry point {entry.name} of {group} of the package {package} cannot be loaded: "
            f"{reason[:150]}"
        ) from error
