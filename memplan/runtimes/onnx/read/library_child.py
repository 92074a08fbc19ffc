"""Runs the compiled code of the library onnx on what its parent sends, until that says no more.

Started by `memplan.runtimes.onnx.read.library` as a program, with the path of the extension module,
which needs no other module of the library: so it starts in a few hundredths of a second. It reads
messages of `marshal` from standard input, which its parent wrote. What it writes depends on a file
that may be hostile, so the parent reads nothing from it but lengths and bytes.
"""

from __future__ import annotations

import marshal
import os
import struct
import sys
import time
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

TYPE_CHECKING = False  # without an import of `typing`, which takes a third of the start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, BinaryIO

DONE, FAILED = b"d", b"f"
_BYTES = 1 << 30  # of memory, beside a share of what is sent
_SECONDS = 3  # of processor time, beside a share of what is sent
_SHARE = 100  # bytes of memory for each byte that is sent
_SPEED = 100_000  # bytes that are sent for one more second


def main() -> None:
    """Answer until standard input ends."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)  # a failed assertion says there what its parent says better
    library = _load_extension(sys.argv[1])
    _answer(sink, DONE, [])
    while header := source.read(8):
        (size,) = struct.unpack("<Q", header)
        _limit(size)
        function, *given = marshal.loads(source.read(size))
        try:
            found = FUNCTIONS[function](library, *given)
        except MemoryError:
            os._exit(1)
        except Exception as error:  # the native library raises types of its own, and bare ones
            _answer(sink, FAILED, [str(error).encode(errors="replace")])
        else:
            _answer(sink, DONE, found)


def _load_extension(path: str) -> Any:
    name = "onnx_cpp2py_export"
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, path))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _answer(sink: BinaryIO, state: bytes, parts: Sequence[bytes]) -> None:
    sink.write(state + struct.pack("<Q", len(parts)))
    for part in parts:
        sink.write(struct.pack("<Q", len(part)) + part)
    sink.flush()


def _limit(sent: int) -> None:
    """Limit memory and processor time for one call, where the system can."""
    try:
        import resource
    except ImportError:
        return
    seconds = int(time.process_time()) + _SECONDS + 1 + sent // _SPEED
    for kind, amount in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, _BYTES + _SHARE * sent),
        (resource.RLIMIT_CPU, seconds),
    ):
        most = resource.getrlimit(kind)[1]
        amount = amount if most == resource.RLIM_INFINITY else min(amount, most)
        try:
            resource.setrlimit(kind, (amount, most))
        except (OSError, ValueError):  # a system that does not have this limit
            continue


def _infer_shapes(library: Any, model: bytes, strict: bool, follow_data: bool) -> list[bytes]:
    return [library.shape_inference.infer_shapes(model, False, strict, follow_data)]


def _infer_node(
    library: Any,
    schema: tuple[str, int, str],
    node: bytes,
    types: dict[str, bytes],
    data: dict[str, bytes],
    opsets: dict[str, int],
    version: int,
) -> list[bytes]:
    asked = library.defs.get_schema(*schema)
    found = asked._infer_node_outputs(node, types, data, {}, opsets, version)
    return [part for name, one in found.items() for part in (name.encode(), one)]


def _inline(library: Any, model: bytes) -> list[bytes]:
    return [library.inliner.inline_local_functions(model, False)]


FUNCTIONS: dict[str, Callable[..., list[bytes]]] = {
    "infer_shapes": _infer_shapes,
    "infer_node": _infer_node,
    "inline": _inline,
}

if __name__ == "__main__":
    main()
