"""Tests of memplan.extensions.cuda_snapshot, on pickles in the layout that PyTorch documents."""

from __future__ import annotations

import copyreg
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memplan.analysis.inspection import inspect
from memplan.base.errors import FormatError, MemplanError
from memplan.base.notes import Code
from memplan.extensions.cuda_snapshot import matches, read
from memplan.extensions.cuda_snapshot.plain_pickle import PickleError, load
from memplan.programs import sources
from memplan.programs.graph import Kind
from memplan.programs.sources.loaded import Failure, Figure, Loaded
from memplan.programs.sources.options import Options

pytestmark = pytest.mark.slow

A, B, C = 0x7F064C000000, 0x7F064C000200, 0x7F064C100000
MB = 1 << 20

FRAMES = [
    {"filename": "??", "line": 0, "name": "unwind"},
    {"filename": "/site-packages/torch/nn/modules/linear.py", "line": 125, "name": "forward"},
    {"filename": "/home/me/model.py", "line": 12, "name": "forward"},
    {"filename": "/home/me/train.py", "line": 3, "name": "<module>"},
]


def event(action: str, addr: int, size: int, **more: Any) -> dict[str, Any]:
    """Return an entry of a trace."""
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 1, **more}


def freed(addr: int, size: int) -> list[dict[str, Any]]:
    """Return both entries of a free."""
    return [event("free_requested", addr, size), event("free_completed", addr, size)]


def segment(address: int, total: int, *blocks: dict[str, Any], device: int = 0) -> dict[str, Any]:
    """Return a segment."""
    return {
        "device": device,
        "address": address,
        "total_size": total,
        "stream": 0,
        "segment_type": "small",
        "segment_pool_id": (0, 0),
        "blocks": list(blocks),
    }


def snapshot(*traces: list[dict[str, Any]], segments: Any = ()) -> dict[str, Any]:
    """Return a snapshot."""
    return {
        "device_traces": list(traces),
        "segments": list(segments),
        "allocator_settings": {"expandable_segments": False, "roundup_power2_divisions": {"1": 0}},
    }


def loaded(tmp_path: Path, what: object, protocol: int = 4, *, part: int | None = None) -> Loaded:
    """Write a snapshot, and read it."""
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(what, protocol))
    assert matches(path.read_bytes()[:4096], path)
    return read(path, Options(part=part))


def lifetimes(result: Loaded) -> dict[str, tuple[int, int, int]]:
    """Return (start, end, size) by id."""
    return {b.id: (b.start, b.end, b.size) for b in result.problem.buffers}


class TestTraces:
    """From entries to buffers."""

    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_one_address_twice(self, tmp_path: Path, protocol: int) -> None:
        """Tests that a lifetime goes from alloc to free_completed, and names are the viewer's."""
        trace = [
            event("segment_alloc", A, 2 * MB),
            event("alloc", A, 100, frames=FRAMES),
            event("alloc", B, 300),
            *freed(A, 100),
            event("alloc", A, 50, frames=FRAMES[:2]),
            *freed(B, 300),
            event("snapshot", 0, 0),
            *freed(A, 50),
        ]
        result = loaded(tmp_path, snapshot(trace, segments=[segment(A, 2 * MB)]), protocol)
        assert lifetimes(result) == {
            "b7f064c000000_0": (0, 2, 100),
            "b7f064c000200_0": (1, 4, 300),
            "b7f064c000000_1": (3, 5, 50),
        }
        assert result.problem.alignment.tolist() == [512] * 3
        assert [label.made_by for label in result.labels] == [
            "model.py:12 forward",
            "",
            "linear.py:125 forward",
        ]
        assert [label.line for label in result.labels] == ["model.py:12", "", "linear.py:125"]
        assert (result.source, result.tensors, result.notes) == ("cuda-snapshot", 3, ())
        assert {label.kind for label in result.labels} == {str(Kind.INTERMEDIATE)}

    def test_as_a_trace(self, tmp_path: Path) -> None:
        """Tests that addresses and lines of Python are there, and all of it is planned."""
        trace = [event("alloc", A, 100, frames=FRAMES), event("alloc", B, 300), *freed(A, 100)]
        result = loaded(tmp_path, snapshot(trace)).trace
        assert result is not None
        assert result.address is not None
        assert result.address.tolist() == [A, B]
        assert result.scopes == ((("model.py:12 forward", 0),), ())
        assert (result.planned.tolist(), result.alignment) == ([0, 1], 512)

    def test_reserved(self, tmp_path: Path) -> None:
        """Tests that the most that was reserved is found from the end, through maps and frees."""
        trace = [
            event("segment_alloc", A, 2 * MB),
            event("segment_map", C, 20 * MB),
            event("alloc", A, 100),
            event("segment_unmap", C, 15 * MB),
            event("segment_free", A, 2 * MB),
        ]
        result = loaded(tmp_path, snapshot(trace, segments=[segment(C, 8 * MB)]))
        # 8 MB are left; so there were 3 MB before the trace.
        assert result.figures == (
            Figure("CUDA caching allocator", 25 * MB, "recorded", "reserved, in whole segments"),
        )

    def test_a_lost_beginning(self, tmp_path: Path) -> None:
        """Tests that what the trace does not allocate is live from 0, and the user is told."""
        trace = [event("alloc", A, 10), *freed(B, 20), event("alloc", B, 30)]
        blocks = [
            {"address": A, "size": 512, "requested_size": 10, "state": "active_allocated"},
            {"address": B, "size": 512, "requested_size": 30, "state": "active_allocated"},
            {"address": C, "size": 512, "requested_size": 70, "state": "active_pending_free"},
            {"address": C + 512, "size": 512, "requested_size": 9, "state": "inactive"},
        ]
        result = loaded(tmp_path, snapshot(trace, segments=[segment(A, 2 * MB, *blocks)]))
        assert lifetimes(result) == {
            "b7f064c000200_0": (0, 1, 20),
            "b7f064c100000_0": (0, 3, 70),
            "b7f064c000000_0": (0, 3, 10),
            "b7f064c000200_1": (2, 3, 30),
        }
        (note,) = result.notes
        assert note.text.startswith("2 buffers are older than the trace")

    def test_segments_alone(self, tmp_path: Path) -> None:
        """Tests that a list of segments, blocks without addresses, is one moment."""
        blocks = [
            {"size": 512, "state": "active_allocated"},
            {"size": 1024, "state": "inactive"},
            {"size": 512, "requested_size": 4, "state": "active_allocated"},
        ]
        result = loaded(tmp_path, [segment(A, 2 * MB, *blocks)])
        assert lifetimes(result) == {
            "b7f064c000000_0": (0, 1, 512),
            "b7f064c000600_0": (0, 1, 4),
        }
        assert result.figures[0].bytes == 2 * MB

    def test_devices(self, tmp_path: Path) -> None:
        """Tests that the device with the most bytes is read, or the one that is asked for."""
        few, many = [event("alloc", A, 30)], [event("alloc", A, 20), *freed(A, 20)] * 3
        segments = [segment(A, 2 * MB, device=0), segment(A, 4 * MB, device=1)]
        what = snapshot(few, many, segments=segments)
        result = loaded(tmp_path, what)
        assert result.problem.size.tolist() == [30]
        assert result.figures[0].bytes == 2 * MB
        (note,) = result.notes
        assert note.code is Code.PARTLY_READ
        assert "only device 0 is planned, which held the most (30 bytes at once)" in note.text
        assert "also has 1 (20 bytes): choose one with --read device=N" in note.text
        other = loaded(tmp_path, what, part=1)
        assert (other.problem.size.tolist(), other.notes) == ([20] * 3, ())
        with pytest.raises(MemplanError, match="has no device 2; it has 0, 1"):
            loaded(tmp_path, what, part=2)

    def test_the_most_bytes_at_once(self, tmp_path: Path) -> None:
        """Tests that blocks without a trace count, and that memory ran out elsewhere is said."""
        block = {"address": A, "size": 512, "requested_size": 400, "state": "active_allocated"}
        ends = [event("alloc", A, 200), event("oom", 0, 900, device_free=10), *freed(A, 200)]
        segments = [segment(A, 2 * MB, block, device=2)]
        result = loaded(tmp_path, snapshot(ends, [], segments=segments))
        assert result.problem.size.tolist() == [400]
        assert result.notes[0].text.startswith("only device 2 is planned")
        assert result.notes[0].text.endswith("; memory ran out on 0")

    def test_out_of_memory(self, tmp_path: Path) -> None:
        """Tests requests that were refused, with what was free and reserved at that time."""
        trace = [
            event("segment_alloc", A, 4 * MB),
            event("alloc", A, 3 * MB),
            event("oom", 0, 5 * MB, device_free=MB, frames=FRAMES),
            *freed(A, 3 * MB),
            event("segment_free", A, 4 * MB),
            event("segment_map", C, 2 * MB),
            event("oom", 0, 7 * MB, device_free=3 * MB),
        ]
        result = loaded(tmp_path, snapshot(trace, segments=[segment(C, 2 * MB)]))
        assert lifetimes(result) == {"b7f064c000000_0": (0, 2, 3 * MB)}
        assert result.failures == (
            Failure(1, 5 * MB, MB, 4 * MB, "model.py:12 forward", 512),
            Failure(3, 7 * MB, 3 * MB, 2 * MB, alignment=512),
        )
        (note,) = result.notes
        assert note.code is Code.OUT_OF_MEMORY
        assert "ran out of memory 2 times, the largest at time 3: it asked for 7,340" in note.text

    @pytest.mark.parametrize(("free", "fits"), [(2, True), (1, False), (0, False)])
    def test_whether_a_plan_had_room(self, tmp_path: Path, free: int, fits: bool) -> None:
        """Tests a request that fails since 3 of 6 MB lie in two holes, and nothing is left."""
        trace = [
            event("segment_alloc", A, 6 * MB),
            *(event("alloc", A + at * MB, MB) for at in range(6)),
            *freed(A + 1 * MB, MB),
            *freed(A + 3 * MB, MB),
            event("oom", 0, 4 * MB, device_free=free * MB),
            event("alloc", A + 3 * MB, MB),
        ]
        found = inspect(loaded(tmp_path, snapshot(trace, segments=[segment(A, 6 * MB)])))
        (refusal,) = found.refusals
        assert (refusal.live, refusal.fits) == (4 * MB, fits)
        assert [each.bytes for each in refusal.held] == [MB] * 4
        peaks = (None if refusal.plan is None else refusal.plan.peak, refusal.failure.room)
        assert peaks == ((8 * MB, 8 * MB) if fits else (None, (6 + free) * MB))

    def test_private_pools(self, tmp_path: Path) -> None:
        """Tests that the memory of a CUDA graph is one buffer that no later one may use."""
        trace = [
            event("segment_alloc", A, 4 * MB),
            event("alloc", A, 3 * MB),
            *freed(A, 3 * MB),
            event("alloc", A + MB, MB),
            *freed(A + MB, MB),
            event("alloc", C + 9 * MB, 2 * MB),
        ]
        segments = [
            segment(A, 4 * MB) | {"segment_pool_id": (0, 1)},
            segment(C + 9 * MB, 2 * MB),
            segment(C + 20 * MB, MB) | {"segment_pool_id": (7, 0)},  # older than the trace
        ]
        result = loaded(tmp_path, snapshot(trace, segments=segments))
        assert lifetimes(result) == {
            "pool_0_1": (0, 5, 3 * MB),
            "pool_7_0": (0, 5, MB),
            f"b{C + 9 * MB:x}_0": (4, 5, 2 * MB),
        }
        (note,) = result.notes
        assert (note.code, note.tensors) == (Code.PRIVATE_POOL, ("pool_0_1", "pool_7_0"))
        assert note.text.startswith("2 allocations are in private pools")

    def test_pools_that_events_name(self, tmp_path: Path) -> None:
        """Tests that an event's own pool counts, and that an address may change its pool."""
        trace = [
            event("segment_alloc", A, 2 * MB),
            event("alloc", A, 100, pool_id=(0, 0)),
            *freed(A, 100),
            event("segment_free", A, 2 * MB),
            event("segment_alloc", A, 2 * MB),
            event("alloc", A, 200, pool_id=[0, 4]),
            *freed(A, 200),
        ]
        result = loaded(tmp_path, snapshot(trace))
        assert lifetimes(result) == {"b7f064c000000_0": (0, 1, 100), "pool_0_4": (2, 4, 512)}
        for one in trace:
            one.pop("pool_id", None)
        pool = segment(A, 2 * MB) | {"segment_pool_id": (0, 4)}
        assert lifetimes(loaded(tmp_path, snapshot(trace, segments=[pool]))) == lifetimes(result)

    def test_json_and_torch_save(self, tmp_path: Path) -> None:
        """Tests that other ways to save the same snapshot give the same problem."""
        torch = pytest.importorskip("torch")
        trace = [event("alloc", A, 100, frames=FRAMES), event("alloc", B, 300), *freed(A, 100)]
        what = snapshot(trace, segments=[segment(A, 2 * MB)])
        wanted = loaded(tmp_path, what)
        (tmp_path / "snapshot.json").write_text(json.dumps(what))
        torch.save(what, tmp_path / "snapshot.pt")
        for name in ("snapshot.json", "snapshot.pt"):
            assert sources.detect(tmp_path / name) == "cuda-snapshot"
            result = sources.load(tmp_path / name)
            assert result.problem == wanted.problem
            assert result.labels == wanted.labels
        torch.save({"weight": torch.ones(2)}, tmp_path / "weights.pt")
        with pytest.raises(FormatError, match=r"this is a torch\.save file"):
            sources.detect(tmp_path / "weights.pt")
        (tmp_path / "cut.json").write_text(json.dumps(what)[:-9])
        with pytest.raises(FormatError, match="the file is not JSON, or is cut off"):
            sources.load(tmp_path / "cut.json")

    def test_no_bytes(self, tmp_path: Path) -> None:
        """Tests that nothing is made of allocations of nothing, and no figure of no segments."""
        trace = [event("alloc", A, 0), event("alloc", B, 1), {"action": "oom", "size": 5}]
        result = loaded(tmp_path, snapshot(trace))
        assert lifetimes(result) == {"b7f064c000200_0": (1, 3, 1)}
        assert result.figures == ()

    def test_profiles(self, tmp_path: Path) -> None:
        """Tests a snapshot that PyTorch itself makes of a profile, without a GPU."""
        torch = pytest.importorskip("torch")
        viz = pytest.importorskip("torch.cuda._memory_viz")
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(
            activities=activities, profile_memory=True, record_shapes=True, with_stack=True
        ) as profile:
            x = torch.ones(64, 128)
            y = (x @ torch.ones(128, 256)).relu()
            del x
            (y * 2).sum()
        made = viz._profile_to_snapshot(profile)
        result = loaded(tmp_path, made)
        allocs = [e for trace in made["device_traces"] for e in trace if e["action"] == "alloc"]
        assert len(allocs) >= 4
        assert len(result.problem) >= len([e for e in allocs if e["size"]])
        assert 64 * 256 * 4 in result.problem.size
        assert result.problem.max_load >= 2 * 64 * 256 * 4


class TestBadSnapshots:
    """One sentence each."""

    @pytest.mark.parametrize(
        ("what", "sentence"),
        [
            (5, "this is a pickle, but not a memory snapshot: it has no segments"),
            ({"model": {}}, "this is a pickle, but not a memory snapshot: it has no segments"),
            ({"segments": 5}, "segments is 5; it must be a list"),
            ({"segments": [[]]}, "segments[0] is a list; it must be a dictionary"),
            ({"segments": []}, "the memory snapshot has no allocations"),
            ({"segments": [], "device_traces": {}}, "device_traces is a dict; it must be a list"),
            (snapshot([event("alloc", A, -1)]), "device_traces[0][0].size is -1; it must be a who"),
            (snapshot([event("alloc", A, True)]), "device_traces[0][0].size is True; it must be"),
            (snapshot([event("alloc", 1.5, 1)]), "device_traces[0][0].addr is 1.5; it must be"),
            (
                {"segments": [segment(A, 1, *[{"size": 1}] * 999)] * 999},
                "is damaged: it has more entries than bytes",
            ),
            (snapshot([{"addr": A}]), "device_traces[0][0].action is None; it must be a string"),
            (snapshot([event("alloc", A, 1 << 63)]), "size is 9223372036854775808; that does not"),
            (snapshot(segments=[{"device": "0"}]), 'segments[0].device is "0"; it must be a whole'),
            (
                snapshot([event("alloc", A, 1, pool_id=(0, -1))]),
                "device_traces[0][0].pool_id is a tuple; it must be two whole numbers",
            ),
            (
                snapshot(segments=[{"address": 1, "total_size": 2, "segment_pool_id": 3}]),
                "segments[0].segment_pool_id is 3; it must be two whole numbers",
            ),
            (snapshot(segments=[segment(A, 1, {})]), "segments[0].blocks[0].size is None; it must"),
        ],
    )
    def test_bad_fields(self, tmp_path: Path, what: object, sentence: str) -> None:
        """Tests that a field that is wrong is named with its place."""
        with pytest.raises(FormatError) as caught:
            loaded(tmp_path, what)
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_no_file(self, tmp_path: Path) -> None:
        """Tests that a file that is not there is a sentence, too."""
        with pytest.raises(FormatError, match="cannot be read"):
            read(tmp_path / "none.pickle", Options())

    @given(st.data())
    def test_damage(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        """Tests that a snapshot that is cut off or damaged is read, or refused in a sentence."""
        trace = [event("alloc", A, 10, frames=FRAMES), *freed(A, 10), event("alloc", B, 7)]
        good = pickle.dumps(snapshot(trace, segments=[segment(A, 2 * MB)]), 4)
        bad = bytearray(good[: data.draw(st.integers(0, len(good)))])
        for _ in range(data.draw(st.integers(0, 3)) if bad else 0):
            bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
        path = tmp_path_factory.mktemp("damage") / "s"
        path.write_bytes(bytes(bad))
        assert "\n" not in outcome(path)


def outcome(path: Path) -> str:
    """Return the sentence with which a file is refused, or nothing."""
    try:
        read(path, Options())
    except FormatError as error:
        return str(error)
    return ""


class Touch:
    """Pickles as a call that makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return open, (str(self.path), "w")


class TestNothingExecutes:
    """Pickles that do more than hold data."""

    @pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
    def test_a_reducer(self, tmp_path: Path, protocol: int) -> None:
        """Tests that a pickle that would write a file writes none, and is refused."""
        target = tmp_path / "written"
        payload = pickle.dumps(snapshot([], segments=[Touch(target)]), protocol)
        path = tmp_path / "evil.pickle"
        path.write_bytes(payload)
        assert outcome(path) != ""
        assert not target.exists()
        pickle.loads(payload).clear()
        assert target.exists(), "the pickle was harmless"
        if protocol >= 2:
            assert "would run code when it is read" in outcome(path)

    @pytest.mark.parametrize("code", [b"c", b"i", b"o", b"b", b"R", b"P", b"Q"] + [
        bytes([code]) for code in (0x81, 0x82, 0x83, 0x84, 0x92, 0x93)
    ])  # fmt: skip
    def test_every_opcode_that_runs(self, code: bytes) -> None:
        """Tests that each opcode that finds, calls or fills in an object is refused."""
        body = b"\x80\x04}\x8c\x02os\x8c\x06systemq\x00(" + code + b"os\nsystem\n\x85."
        with pytest.raises(PickleError, match="would run code"):
            load(body)

    def test_the_extension_registry(self) -> None:
        """Tests that not even what a program has registered is found."""
        copyreg.add_extension("os", "getcwd", 7)
        try:
            with pytest.raises(PickleError, match="opcode EXT1"):
                load(b"\x80\x04\x82\x07)R.")
        finally:
            copyreg.remove_extension("os", "getcwd", 7)

    @pytest.mark.parametrize(
        "what", [{1, 2}, b"bytes", bytearray(b"x"), 1j, frozenset(), Kind.INPUT]
    )
    def test_more_than_plain_data(self, what: object) -> None:
        """Tests that sets, bytes and objects are not made."""
        with pytest.raises(PickleError):
            load(pickle.dumps(what, 4))

    @pytest.mark.parametrize(
        "bomb",
        [
            b"\x80\x04\x8d" + b"\xff" * 8 + b".",  # text of 2^64 bytes
            b"\x80\x04X\xff\xff\xff\xffabc.",
            b"\x80\x04\x8b\xff\xff\xff\x7f.",  # a number of 2 GB
            b"\x80\x04\x8a\xff" + b"\x01" * 255 + b".",
            b"\x80\x04Nr\xff\xff\xff\xff.",  # a place in the memo that would take 32 GB
            b"\x80\x04\x96" + b"\xff" * 8 + b".",
            b"\x80\x04h\x00.",
            b"\x80\x04(((.",
            b"\x80\x04e.",
            b"\x80\x04]}(K\x01s.",
            b"\x80\x04}]K\x01s.",
            b"\x80\x04}(K\x01u.",
            b"\x80\x04NN.",
            b"\x80\x04",
            b"",
        ],
    )
    def test_bombs_and_nonsense(self, bomb: bytes) -> None:
        """Tests that what a file claims is not believed further than it reaches."""
        with pytest.raises(PickleError):
            load(bomb)

    def test_a_list_that_holds_itself(self, tmp_path: Path) -> None:
        """Tests that a structure without an end is looked at only where a snapshot has fields."""
        loop: list[Any] = []
        loop.append(loop)
        trace = [event("alloc", A, 1, frames=loop)]
        assert loaded(tmp_path, snapshot(trace)).labels[0].made_by == ""
        deep: list[Any] = []
        for _ in range(200):
            deep = [deep]
        assert outcome_of(tmp_path, {"segments": deep}) != ""

    @given(st.binary(max_size=60))
    @example(b"\x80\x04cos\nsystem\n(S'true'\ntR.")
    def test_any_bytes(self, data: bytes) -> None:
        """Tests that any bytes are plain data or refused, and that no module is imported."""
        before = set(sys.modules)
        for head in (b"", b"\x80\x04", b"\x80\x04]("):
            try:
                value = load(head + data)
            except PickleError:
                continue
            assert type(value) in (dict, list, tuple, str, int, float, bool, type(None))
        assert set(sys.modules) <= before | {"pickletools"}


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 100), 1 << 100) | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=30,
)


@given(PLAIN, st.sampled_from([2, 3, 4, 5]))
def test_plain_pickles_are_read_as_pickle_reads_them(value: object, protocol: int) -> None:
    """Tests the reader of pickles against Python's own, on data that is shared and nested."""
    data = pickle.dumps([value, {"again": value}], protocol)
    assert repr(load(data)) == repr(pickle.loads(data))


def outcome_of(tmp_path: Path, what: object) -> str:
    """Write a pickle, and return the sentence with which it is refused, or nothing."""
    path = tmp_path / "what.pickle"
    path.write_bytes(pickle.dumps(what, 4))
    return outcome(path)
