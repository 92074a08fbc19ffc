"""Damaged files for every reader: small ones that are right, and what changes them.

A mutant is decided by one number, so that whatever it does can be seen again. What changes a file
knows its structure where that pays: messages of protocol buffers keep their lengths, archives their
checksums, JSON its brackets, so that most mutants come further than the first check.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import struct
import zipfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import openvino_models

from memplan import Problem
from memplan.base.files import of_file
from memplan.extensions import cuda_snapshot, minimalloc, openvino, xla
from memplan.extensions import ggml as ggml_events
from memplan.machine.apart.penalties import take_penalties
from memplan.machine.memories.text import parse_memories
from memplan.problem import Buffer, formats
from memplan.problem.formats import json as json_format
from memplan.problem.formats import minimalloc_csv, trace_json
from memplan.problem.plan import Plan
from memplan.programs import sources
from memplan.programs.sources import (
    graph_json,
)
from memplan.programs.sources.loaded import of_graph
from memplan.programs.sources.options import Options
from memplan.referee import verify_proof
from memplan.runtimes.onnx import read as onnx_source
from memplan.runtimes.tflm import read as tflite
from memplan.runtimes.torch import read as torch_export

__all__ = ["Mutant", "Mutants"]

NUMBERS = [
    *(0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 4095, 65535, 65536, 2**31 - 1, 2**31),
    *(2**32 - 1, 2**32, 2**53, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, 2**63, 2**64 - 1, 10**30),
]
WORDS = ["", " ", "a", "\0", "\n", '"', ",", "#", "-1", "1e400", "NaN", "é", "\ud7ff", "x" * 300]
Read = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A damaged file, the function that reads it, and what puts it where commands find it."""

    reader: str
    content: bytes | str
    read: Read
    place: Callable[[Any], Path] | None


@dataclass(frozen=True, slots=True)
class _Reader:
    name: str
    weight: int
    seeds: Sequence[Any]
    change: Callable[[Random, Any], bytes | str]
    read: Read
    place: Callable[[Any], Path] | None


class Mutants:
    """All mutants of all readers, by number.

    Parameters
    ----------
    folder
        Where mutants are written that are read from a file.
    only
        The readers, by name; all of them if it is empty.
    """

    def __init__(self, folder: Path, only: Sequence[str] = ()) -> None:
        self._readers = [one for one in _readers(folder) if not only or one.name in only]
        total = 0
        self._ends = []
        for reader in self._readers:
            total += reader.weight
            self._ends.append(total)

    def __getitem__(self, number: int) -> Mutant:
        random = Random(number)
        place = random.randrange(self._ends[-1])
        reader = next(r for r, end in zip(self._readers, self._ends, strict=True) if place < end)
        content = reader.change(random, random.choice(reader.seeds))
        return Mutant(reader.name, content, reader.read, reader.place)


# What changes bytes


def change_bytes(random: Random, data: bytes) -> bytes:
    """Change a few places of bytes, without knowing what they are."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at = random.randrange(len(found) + 1)
        kind = random.randrange(7)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << random.randrange(8)
        elif kind == 1 and at < len(found):
            found[at] = random.randrange(256)
        elif kind == 2:
            size = random.choice((1, 2, 4, 8))
            number = random.choice(NUMBERS) % (1 << 8 * size)
            found[at : at + size] = number.to_bytes(size, random.choice(("little", "big")))
        elif kind == 3:
            del found[at : at + random.randrange(1, 9)]
        elif kind == 4:
            start = random.randrange(len(found) + 1)
            found[at:at] = found[start : start + random.randrange(1, 33)]
        elif kind == 5:
            found[at:at] = random.randbytes(random.randrange(1, 5))
        elif random.randrange(4) == 0:
            del found[at:]
    return bytes(found)


def change_words(random: Random, data: bytes) -> bytes:
    """Change aligned numbers: offsets, lengths and values of a FlatBuffer."""
    if random.randrange(4) == 0:
        return change_bytes(random, data)
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        size = random.choice((2, 4, 4, 4))
        at = random.randrange(len(found) // size) * size
        old = int.from_bytes(found[at : at + size], "little")
        near = old + random.choice((-8, -4, -2, -1, 1, 2, 4, 8))
        new = random.choice(
            (near, random.randrange(len(found)), random.choice(NUMBERS), -random.randrange(1, 64))
        )
        found[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(found)


# What changes text

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9.eE+-]+|\w+|\s+|.', re.DOTALL)


def change_text(random: Random, text: str) -> str:
    """Change a few words of a text."""
    tokens = _TOKEN.findall(text)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at = random.randrange(len(tokens)) if tokens else 0
        kind = random.randrange(8)
        if not tokens or kind == 0:
            tokens.insert(at, random.choice(WORDS))
        elif kind == 1:
            tokens[at] = str(random.choice(NUMBERS) * random.choice((1, -1)))
        elif kind == 2:
            del tokens[at]
        elif kind == 3:
            tokens.insert(at, random.choice(tokens))
        elif kind == 4:
            other = random.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 5:
            start = random.randrange(len(tokens))
            tokens[at:at] = tokens[start : start + random.randrange(1, 20)]
        elif kind == 6:
            tokens[at] = random.choice(tokens)
        elif random.randrange(8) == 0:
            del tokens[at:]
        elif tokens[at].strip('-"').isdigit():
            tokens[at] = str(int(tokens[at].strip('-"')) + random.choice((-1, 1, 2)))
    return "".join(tokens)


def change_json(random: Random, text: str) -> str:
    """Change a few values of a document, and seldom its text."""
    if random.randrange(5) == 0:
        return change_text(random, text)
    document = json.loads(text)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        document = _with_change(random, document)
    return json.dumps(document)


def _with_change(random: Random, document: Any) -> Any:
    """Walk to a random place, and change what is there."""
    if not isinstance(document, (dict, list)) or not document:
        return _value(random, document, document)
    place = document
    while True:
        keys: Any = list(place) if isinstance(place, dict) else range(len(place))
        key = random.choice(keys)
        inner = place[key]
        if isinstance(inner, (dict, list)) and inner and random.randrange(6):
            place = inner
            continue
        break
    kind = random.randrange(6)
    if kind == 0:
        del place[key]
    elif kind == 1 and isinstance(place, list):
        place.insert(random.randrange(len(place) + 1), deepcopy(inner))
    elif kind == 1:
        place[random.choice((*keys, "kind", "memplan", ""))] = deepcopy(inner)
    elif kind == 2:
        place[key] = deepcopy(place[random.choice(keys)])
    else:
        place[key] = _value(random, inner, document)
    return document


def _value(random: Random, old: Any, document: Any) -> Any:
    if isinstance(old, bool):
        return not old
    if type(old) is int and random.randrange(2):
        return old + random.choice((-2, -1, 1, 2, 2**32))
    kind = random.randrange(7)
    if kind == 0:
        return random.choice(NUMBERS) * random.choice((1, -1))
    if kind == 1:
        return random.choice(WORDS)
    if kind == 2:
        return random.choice((None, True, False, 0.5, [], {}, [[]], {"a": []}))
    if kind == 3:
        return [deepcopy(old) for _ in range(random.choice((1, 2, 70)))]
    if kind == 4:
        return {"as_int": deepcopy(old)}
    if kind == 5 and isinstance(document, dict):
        return deepcopy(document[random.choice(list(document))]) if document else None
    return str(old)


# What changes messages of protocol buffers

_Field = tuple[int, int, Any]  # number, wire type, and a number, bytes, or fields


def _fields_of(data: bytes, depth: int = 0) -> list[_Field] | None:
    """Return what bytes hold as a message, or None if they are none."""
    found: list[_Field] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number == 0 or at > len(data):
            return None
        if wire == 0:
            value, at = _varint(data, at)
            found.append((number, wire, value))
        elif wire == 2:
            size, at = _varint(data, at)
            body = data[at : at + size]
            if len(body) < size:
                return None
            inner = _fields_of(body, depth + 1) if size and depth < 8 else None
            found.append((number, wire, body if inner is None else inner))
            at += size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            found.append((number, wire, data[at : at + size]))
            at += size
        else:
            return None
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    return value, len(data) + 1


def _message(fields: Sequence[_Field]) -> bytes:
    found = bytearray()
    for number, wire, value in fields:
        found += _as_varint(number << 3 | wire)
        if wire == 0:
            found += _as_varint(value)
            continue
        body = _message(value) if isinstance(value, list) else value
        found += (_as_varint(len(body)) if wire == 2 else b"") + body
    return bytes(found)


def _as_varint(value: int) -> bytes:
    found = bytearray()
    value %= 1 << 64
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _walk(fields: list[_Field]) -> list[tuple[list[_Field], int]]:
    found = []
    for at, (_, _, value) in enumerate(fields):
        found.append((fields, at))
        if isinstance(value, list):
            found += _walk(value)
    return found


def change_message(random: Random, data: bytes) -> bytes:
    """Change a few fields of a message, whose lengths stay right; seldom its bytes."""
    if random.randrange(5) == 0:
        return change_bytes(random, data)
    fields = _fields_of(data) or []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = _walk(fields)
        if not places:
            break
        parent, at = random.choice(places)
        number, wire, value = parent[at]
        kind = random.randrange(7)
        if kind == 0:
            del parent[at]
        elif kind == 1:
            parent.insert(random.randrange(len(parent) + 1), deepcopy(parent[at]))
        elif kind == 2:
            other, there = random.choice(places)
            if there < len(other):
                _, kind_there, inside = other[there]
                parent[at] = number, kind_there, deepcopy(inside)
        elif kind == 3:
            parent[at] = random.choice((number + 1, random.randrange(1, 40))), wire, value
        elif wire == 0:
            near = value + random.choice((-1, 1, 2))
            parent[at] = number, wire, random.choice((near, random.choice(NUMBERS), -1))
        elif wire == 2 and isinstance(value, bytes):
            parent[at] = number, wire, change_bytes(random, value)
        elif kind == 4 and wire == 2:
            parent[at] = number, wire, random.choice(WORDS).encode()
    return _message(fields) if _depth(fields) < 60 else data


def _depth(fields: list[_Field]) -> int:
    return 1 + max((_depth(v) for _, _, v in fields if isinstance(v, list)), default=0)


# What changes pickles and archives

_OPCODES = bytes.fromhex(
    "80952830314e88894a4b4d8a8b478c588d5d616529748586877d7375947172686a63696f62528192932e"
)


def change_pickle(random: Random, data: bytes) -> bytes:
    """Put opcodes in place of others, or change bytes."""
    if random.randrange(2):
        return change_bytes(random, data)
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(found))
        if random.randrange(2):
            found[at] = random.choice(_OPCODES)
        else:
            found[at:at] = bytes([random.choice(_OPCODES), *random.randbytes(random.randrange(3))])
    return bytes(found)


def change_archive(random: Random, model: str) -> bytes:
    """Change the graph of an archive, or the archive, or both."""
    text = change_json(random, model) if random.randrange(4) else model
    file = io.BytesIO()
    method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(file, "w", method) as zipped:
        zipped.writestr("m/archive_format", "pt2")
        zipped.writestr("m/models/model.json", text.encode(errors="replace"))
    data = file.getvalue()
    return change_bytes(random, data) if text is model or random.randrange(8) == 0 else data


# The readers, each with small files that it reads


def _readers(folder: Path) -> list[_Reader]:
    path = folder / "mutant"
    beside = folder / "m.buffer-assignment.txt"

    def place(content: bytes | str) -> Path:
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        path.write_bytes(data)
        return path

    def on_disk(read: Callable[[Path, Options], object]) -> Read:
        return lambda content: read(place(content), Options())

    def place_report(content: str) -> Path:
        first, _, second = content.partition("HloLiveRange")
        beside.write_text(first, "utf-8", "replace")
        (folder / "m.live-range.txt").write_text("HloLiveRange" + second, "utf-8", "replace")
        return beside

    def graph(text: str) -> object:
        with of_file(path):
            return of_graph(graph_json.read_graph(text, "mutant"))

    def door(content: bytes | str) -> object:
        return sources.load(place(content))

    def either(random: Random, seed: bytes | str) -> bytes | str:
        if isinstance(seed, bytes) or random.randrange(4) == 0:
            return change_bytes(random, seed.encode() if isinstance(seed, str) else seed)
        return change_text(random, seed)

    problem, plan = _five()
    csv_problems = [minimalloc_csv.write_problem(problem, d) for d in minimalloc_csv.DIALECTS]
    rich = json_format.write_problem(_rich())
    proof = _proof(problem, folder)
    table = minimalloc_csv.write_plan(problem, plan)
    plan_csv = f"{table}\n{minimalloc_csv.write_claims(plan, table).rpartition(' ')[0]}\n"
    plan_json = json_format.write_plan(plan)
    models, pickles, messages = _onnx_models(), _snapshots(), [_hlo()]
    text, archive = _report(), json.dumps(_program())
    every = [*csv_problems, rich, plan_json, _trace(), _graph(), text, *models, *pickles]
    every += [*messages, *_tflites()]
    return [
        _Reader("csv", 260, [*csv_problems, _RICH_CSV], change_text,
                lambda t: minimalloc_csv.read_problem(t, "mutant"), place),
        _Reader("plan csv", 90, [plan_csv], change_text,
                lambda t: minimalloc_csv.read_plan(t, "mutant"), place),
        _Reader("planned csv", 50, [plan_csv], change_text,
                lambda t: minimalloc_csv.read_planned(t, "mutant"), place),
        _Reader("json", 100, [rich], change_json,
                lambda t: json_format.read_problem(t, "mutant"), place),
        _Reader("plan json", 60, [plan_json], change_json,
                lambda t: json_format.read_plan(t, "mutant"), place),
        _Reader("trace", 60, [_trace()], change_json,
                lambda t: trace_json.read_trace(t, "mutant"), place),
        _Reader("graph", 60, [_graph()], change_json, graph, place),
        _Reader("pickle", 80, pickles, change_pickle, on_disk(cuda_snapshot.read), place),
        _Reader("tflite", 60, _tflites(), change_words, on_disk(tflite.read), place),
        _Reader("xla proto", 30, messages, change_message, on_disk(xla.read), place),
        _Reader("xla text", 30, [text], change_text,
                lambda t: xla.read(place_report(t), Options()), place_report),
        _Reader("proof", 50, [proof], change_text,
                lambda t: verify_proof(problem, t.splitlines(keepends=True)), None),
        _Reader("pt2", 15, [archive], change_archive, on_disk(torch_export.read), place),
        _Reader("onnx", 25, models, change_message, on_disk(onnx_source.read), place),
        _Reader("openvino", 40, [openvino_models.small()], change_text,
                on_disk(openvino.read), place),
        _Reader("ggml events", 30, [_GGML_EVENTS], change_text,
                lambda t: ggml_events.parse(t, "mutant"), place),
        _Reader("penalties", 20, ["first,second,cost\nb0,b1,5\nb2,b3,0\n"], change_text,
                lambda t: take_penalties(_five()[0], place(t)), None),
        _Reader("memories", 20, [_MEMORIES], change_text,
                lambda t: parse_memories(t.split("\n")), None),
        _Reader("drop-in", 20, [*csv_problems, _RICH_CSV], change_text, minimalloc.from_csv, None),
        _Reader("door", 15, every, either, door, place),
    ]  # fmt: skip


_GGML_EVENTS = """\
ggml-events 1
alignment 32
limit 96
ggml 96 64
+ 96
+ 32
- 0 64
+ 32
- 0
- 1
"""
_MEMORIES = "sram=256KiB,base=0x1000\npsram=8MiB,read=80MB/s,write=40MB/s,base=0x60000000"
_RICH_CSV = """\
# a comment
id,lower,upper,size,alignment,hint,gaps,offset
b1,0,30,4,4,8,3-7@0:2 9-12,
"b,2",3,9,4,1,-1,,0
b3,0,9,4,2,,5-6,8
"""


def _five() -> tuple[Problem, Plan]:
    rows = ((0, 3), (3, 9), (0, 9), (9, 21), (0, 21))
    problem = Problem([Buffer(f"b{at}", start=a, end=b, size=4) for at, (a, b) in enumerate(rows)])
    return problem, Plan.of(problem, [8, 8, 4, 4, 0], lower_bound=12, solver="exact")


def _rich() -> Problem:
    return formats.json.read_problem(
        """{"memplan": {"kind": "problem", "version": 1}, "capacity": 64,
        "reserved": [[16, 32]], "groups": [["b1", "b3"]], "buffers": [
        {"id": "b1", "start": 0, "end": 3, "size": 4},
        {"id": "b2", "start": 3, "end": 9, "size": 4, "alignment": 4, "pin": 0, "hint": 8,
         "conflicts": ["b3"], "gaps": [{"start": 4, "end": 5},
         {"start": 6, "end": 7, "window": [0, 2]}]},
        {"id": "b3", "start": 9, "end": 12, "size": 4}]}""",
        "seed",
    )


def _proof(problem: Problem, folder: Path) -> str:
    from memplan import solve

    path = folder / "seed.proof"
    solve(problem, solver="exact", proof=path)
    return path.read_text()


def _trace() -> str:
    return """{"memplan": {"kind": "trace", "version": 1}, "alignment": 64, "about": {"m": "R"},
    "frames": [{"name": ".", "ordinal": 0, "parent": null},
     {"name": ".c", "ordinal": 0, "parent": 0}, {"name": "aten::c", "ordinal": 0, "parent": 1}],
    "allocations": [
     {"start": 0, "end": 3, "size": 100, "frame": 2, "ordinal": 0, "address": 9},
     {"start": 1, "end": 4, "size": 64, "frame": 0, "ordinal": 0, "thread": 1, "outlives": true,
      "address": 640}]}"""


def _graph() -> str:
    return """{"memplan_graph": 1, "name": "net", "alignment": 16,
    "planned": ["input", "output", "intermediate", "workspace"], "inputs": ["x"],
    "outputs": ["y"], "tensors": [{"name": "x", "dtype": "float32", "shape": [1, 8]},
     {"name": "a", "bytes": 64, "pin": 0}, {"name": "head", "bytes": 32},
     {"name": "z", "bytes": 32}, {"name": "y", "bytes": 32},
     {"name": "v", "bytes": 32}, {"name": "w", "bytes": 32},
     {"name": "p", "dtype": "int8", "shape": [1, 2, 4, 4], "kind": "input"},
     {"name": "q", "dtype": "int8", "shape": [1, 2, 2, 4]}], "row_axis": 2,
    "views": [{"tensor": "head", "of": "a", "offset": 32}], "aliases": [["x", "z"]],
    "groups": [["x", "y"]], "operators": [
     {"type": "Gemm", "inputs": ["x"], "outputs": ["a"], "workspace": 256},
     {"name": "loop", "inputs": ["a"], "outputs": ["z"], "loop": true, "stream": 1,
      "blocks": [{"name": "b", "inputs": ["v"], "outputs": ["w"],
       "operators": [{"inputs": ["v"], "outputs": ["w"]}]}]},
     {"name": "pool", "inputs": ["p"], "outputs": ["q"], "macs": 9, "reads": [{"tensor": "p",
      "rows": {"window": {"kernel": 2, "stride": 2, "padding": "same"}}, "columns": "each"}]},
     {"name": "relu", "inputs": ["head"], "outputs": ["y"], "in_place": [["head", "y"]],
      "why_whole": "it sorts"}]}"""


def _snapshots() -> list[bytes]:
    frames = [{"filename": "/m.py", "line": 12, "name": "f"}]
    events = [
        {"action": "alloc", "addr": 512, "size": 512, "stream": 0, "frames": frames},
        {"action": "segment_alloc", "addr": 0, "size": 4096},
        {"action": "alloc", "addr": 1024, "size": 100, "frames": frames},
        {"action": "free_requested", "addr": 512, "size": 512},
        {"action": "free_completed", "addr": 512, "size": 512},
    ]
    blocks = [{"size": 512, "state": "inactive"}, {"size": 512, "state": "active_allocated"}]
    segments = [{"device": 0, "address": 0, "total_size": 4096, "stream": 0, "blocks": blocks}]
    whole = {"segments": segments, "device_traces": [events, []]}
    return [pickle.dumps(whole, protocol) for protocol in (2, 4)] + [pickle.dumps(segments, 4)]


def _hlo() -> bytes:
    from xla_dumps import hlo

    data: bytes = hlo().SerializeToString()
    return data


def _report() -> str:
    from xla_dumps import ASSIGNMENT, RANGES

    return ASSIGNMENT + RANGES


def _tflites() -> list[bytes]:
    from tflite_models import Writer, chain

    from memplan.runtimes.tflm.read.model import Model, OperatorInfo, SubGraph, TensorInfo

    one = TensorInfo("x", "float32", (1, 4))
    flag = TensorInfo("c", "bool", (1,))
    inner = SubGraph("t", (one, one), (OperatorInfo("RELU", (0,), (1,)),), (0,), (1,))
    branch = OperatorInfo("IF", (0, 1), (2,), (1, 2))
    main = SubGraph("main", (flag, one, one), (branch,), (0, 1), (2,))
    writer = Writer({"IF": (92, {0: ("i", 1), 1: ("i", 2)})})
    planned = chain("RELU", "ADD")
    pins = Model("m", planned.subgraphs, tuple(range(0, 16 * planned.first[-1], 16)))
    return [
        Writer().write(chain("RELU", "CONV_2D", "SOFTMAX")),
        Writer().write(pins),
        writer.write(Model("m", (main, inner, inner))),
    ]


def _onnx_models() -> list[bytes]:
    from offenders import called
    from onnx.helper import make_tensor
    from onnx_models import FLOAT, branching, ints, looping, model, node, value, weight
    from ort_models import decoder

    small = model(
        [node("Shape", "x", "s"), node("Concat", "s k", "t", axis=0), node("Reshape", "x t", "y")],
        [value("x", [2, "N"])],
        [value("y", None)],
        [ints("k", [1])],
    )
    pictures = model(
        [
            node("Pad", "x p", "a"),
            node("Conv", "a w b", "c", pads=[1, 1, 1, 1], strides=[1, 1], group=1),
            node("Relu", "c", "d"),
            node("MaxPool", "d", "e", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
            node("ConvTranspose", "e u", "f", strides=[2, 2], output_padding=[0, 0]),
            node("Resize", "f - s", "g", mode="nearest"),
            node("Concat", "g g", "h", axis=1),
            node("AveragePool", "h", "y", kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
        ],
        [value("x", [1, 1, 6, 6])],
        [value("y", None)],
        [
            ints("p", [0, 0, 1, 1, 0, 0, 1, 1]),
            weight("w", [2, 1, 3, 3]),
            weight("b", [2]),
            weight("u", [2, 1, 2, 2]),
            make_tensor("s", FLOAT, [4], [1.0, 1.0, 2.0, 2.0]),
        ],
    )
    conditional = branching([node("Neg", "a", "r")], [node("Abs", "a", "r")])
    models = [small, pictures, conditional, looping([], []), decoder(1)]
    return [*(each.SerializeToString() for each in models), called()]


def _program() -> dict[str, Any]:
    from torch_records import S, model, node, tensor

    program = model(S)
    graph = program["graph_module"]["graph"]
    graph["tensor_values"]["x4"] = tensor(1, 1, 8, 4)
    graph["tensor_values"]["pool"] = tensor(1, 1, 4, 2)
    options = {"kernel_size": {"as_ints": [2, 2]}, "stride": {"as_ints": []}}
    options |= {"padding": {"as_int": 0}, "ceil_mode": {"as_bool": False}}
    graph["nodes"] += [
        node("aten.full.default", [], ["x4"]),
        node("aten.max_pool2d.default", ["x4"], ["pool"], **options),
    ]
    return program


def scratch_folder() -> str | None:
    """Return a folder in memory, where there is one: mutants are written and read at once."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def packed(number: int) -> bytes:
    """Return a number as eight bytes."""
    return struct.pack("<q", number)
