"""Tests of slabs on CUDA devices: on a runtime that only counts, and on a device if one is here."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compilers import require_compiler

pytest.importorskip("torch")
import torch
from torch import nn

import memplan
from memplan.base.errors import MemplanError
from memplan.extensions.slab import cuda, record
from memplan.extensions.slab.extension import load
from memplan.problem.trace import Trace

pytestmark = pytest.mark.slow

COMPILER = os.environ.get("CXX", "c++")
FAKE = Path(__file__).parents[1] / "native" / "fake_cudart.cpp"
STREAM, OTHER = 0x1000, 0x2000

needs_compiler = pytest.mark.usefixtures("native")
_REAL = "the real CUDA runtime is in this process"
without_cuda = pytest.mark.skipif(torch.version.cuda is not None, reason=_REAL)
needs_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


class Device:
    """Memory as PyTorch asks for it: what our C functions give, on a stream that is current."""

    def __init__(self, runtime: ctypes.CDLL, slab: ctypes.CDLL) -> None:
        self.runtime = runtime
        runtime.fake_used.restype = ctypes.c_size_t
        self._slab = slab
        slab.memplan_cuda_allocate.restype = ctypes.c_void_p
        self.stream = STREAM

    def allocate(self, size: int, stream: int | None = None, device: int = 0) -> int:
        """Return the address of so many bytes."""
        stream = self.stream if stream is None else stream
        found = self._slab.memplan_cuda_allocate(
            ctypes.c_size_t(size), device, ctypes.c_void_p(stream)
        )
        return found or 0

    def release(self, memory: int, size: int, stream: int | None = None, device: int = 0) -> None:
        """Give it back."""
        stream = self.stream if stream is None else stream
        self._slab.memplan_cuda_release(
            ctypes.c_void_p(memory), ctypes.c_size_t(size), device, ctypes.c_void_p(stream)
        )

    def use_on(self, memory: int, stream: int) -> None:
        """As `Tensor.record_stream`."""
        self._slab.memplan_cuda_record_stream(ctypes.c_void_p(memory), ctypes.c_void_p(stream))

    def trim(self) -> None:
        """As `torch.cuda.empty_cache`."""
        self._slab.memplan_cuda_trim()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Device:
    """Build a CUDA runtime that is none, before ours looks for one, once in each process."""
    built = tmp_path_factory.mktemp("cuda") / "libcudart.so"
    flags = ["-std=c++17", "-shared", "-fPIC"]
    compiler = require_compiler(COMPILER, flags=flags)
    subprocess.run([compiler, *flags, str(FAKE), "-o", str(built)], check=True)
    runtime = ctypes.CDLL(str(built), mode=ctypes.RTLD_GLOBAL)
    return Device(runtime, ctypes.CDLL(str(load().__file__)))


@pytest.fixture
def device(native: Any, library: Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """Return the device; nothing of it may be in use when the test is over."""
    if torch.version.cuda is not None:
        pytest.skip(_REAL)
    library.stream = STREAM
    monkeypatch.setattr(cuda, "_get_stream", lambda: (0, library.stream))
    monkeypatch.setattr(cuda, "_is_installed", lambda: True)
    monkeypatch.setattr(cuda, "_make_workspaces", lambda where: None)
    yield library
    library.trim()
    assert library.runtime.fake_used() == 0


class Layer(nn.Module):
    """Takes scratch, and makes an output; calls an operator, so that there is a frame around it."""

    def __init__(self, device: Device, size: int) -> None:
        super().__init__()
        self.device = device
        self.size = size

    def forward(self, before: int) -> int:
        """Return the address of the output, `before` being that of the input."""
        scratch = self.device.allocate(100)
        output = self.device.allocate(self.size)
        torch.zeros(1)  # memory of the host is no matter of this slab
        self.device.release(scratch, 100)
        self.device.release(before, self.size)
        self.seen = (scratch, output)
        return output


class Network(nn.Module):
    """Four layers, of which each releases what the one before it made."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.device = device
        self.layers = nn.ModuleList(Layer(device, 5000) for _ in range(4))
        self.keeps = False

    def forward(self, between: Callable[[], None] = lambda: None) -> int | None:
        """Return the address of the last output if it is to be kept."""
        at = self.device.allocate(5000)
        for layer in self.layers:
            at = layer(at)
            between()
        if self.keeps:
            return at
        self.device.release(at, 5000)
        return None

    def addresses(self) -> list[int]:
        """Return where the layers' memory was in the last pass, in the order of asking."""
        return [address for layer in self.layers for address in layer.seen]


def recorded(model: Any) -> Trace:
    """Return what a model asks of the device."""
    return record(model, device="cuda")


@pytest.fixture
def model(device: Device) -> Network:
    """Return a network on the device."""
    return Network(device)


@pytest.fixture
def fast(model: Network) -> Iterator[cuda.CudaSlab]:
    """Return the network in the slab of its plan."""
    trace = recorded(model)
    with cuda.CudaSlab(memplan.solve(trace.problem()), trace) as made:
        yield made


def test_the_recorder_sees_devices_apart(device: Device, model: Network) -> None:
    """Tests that a trace has the memory of the host or that of the device, in modules."""
    trace = recorded(model)
    assert trace.size.tolist() == [5000, *([100, 5000] * 4)]
    assert trace.alignment == 512
    assert trace.ids[:3] == (".#0", ".layers.0#0", ".layers.0#1")
    assert not trace.outlives.any()
    host = record(model)
    assert host.size.tolist() == [4] * 4
    assert host.alignment == 64


def test_a_pass_runs_in_one_block_of_the_device(device: Device, model: Network) -> None:
    """Tests that planned memory is one allocation, of which every part is where the plan says."""
    trace = recorded(model)
    plan = memplan.solve(trace.problem())
    assert plan.peak == 2 * 5120 + 100
    with cuda.CudaSlab(plan, trace) as fast:
        fast()
        before = device.runtime.fake_mallocs()
        for _ in range(3):
            fast()
        assert device.runtime.fake_mallocs() == before
        seen = model.addresses()
        offsets = [plan.offset(name) for name in trace.problem().ids][1:]
        assert {address - offset for address, offset in zip(seen, offsets, strict=True)} == {
            seen[0] - offsets[0]
        }
        stats = fast.stats()
        assert (stats.calls, stats.hits, stats.slabs) == (4, 36, 1)
        assert stats.other_bytes == 0
    assert fast.stats() == stats
    assert all("forward" not in module.__dict__ for module in model.modules())


def test_streams_have_slabs_of_their_own(
    device: Device, model: Network, fast: cuda.CudaSlab
) -> None:
    """Tests that no memory passes from one stream to another, and that counts are summed."""
    ranges = []
    for stream in (STREAM, OTHER):
        device.stream = stream
        fast()
        ranges.append(set(model.addresses()))
    assert not ranges[0] & ranges[1]
    stats = fast.stats()
    assert (stats.calls, stats.hits, stats.slabs, stats.elsewhere) == (2, 18, 2, 0)


def test_other_streams_in_a_call_are_served_from_elsewhere(
    device: Device, model: Network, fast: cuda.CudaSlab
) -> None:
    """Tests that a model that changes the stream keeps its places, and that it is counted."""
    fast()
    inside = set(model.addresses())

    def change() -> None:
        device.stream = OTHER if device.stream == STREAM else STREAM

    fast(change)
    stats = fast.stats()
    assert (stats.hits, stats.elsewhere, stats.unknown) == (9 + 5, 4, 0)
    assert stats.other_bytes == 2 * (100 + 5000)
    for layer in (model.layers[1], model.layers[3]):
        assert not inside & set(layer.seen)


def test_what_is_kept_alive_keeps_its_memory(
    device: Device, model: Network, fast: cuda.CudaSlab
) -> None:
    """Tests a result that was not planned for: the next call takes another slab."""
    model.keeps = True
    kept = fast()
    first = set(model.addresses())
    assert kept in first
    model.keeps = False
    fast()
    assert not first & set(model.addresses())
    assert fast.stats().slabs == 2
    device.release(kept, 5000)
    fast()
    assert (fast.stats().slabs, fast.stats().hits) == (2, 27)


def test_a_workspace_of_a_stream_is_not_in_the_slab(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests a library that keeps what its first use on a stream makes: it holds no slab."""
    kept: dict[int, int] = {}

    def make_workspace() -> None:
        if device.stream not in kept:
            kept[device.stream] = device.allocate(5000)

    monkeypatch.setattr(cuda, "_make_workspaces", lambda where: make_workspace())
    model = Network(device)
    trace = recorded(model)
    model.layers[0].register_forward_pre_hook(lambda *_: make_workspace())
    with cuda.CudaSlab(memplan.solve(trace.problem()), trace) as fast:
        for stream in (STREAM, OTHER):
            device.stream = stream
            fast()
            fast()
        stats = fast.stats()
        assert (stats.hits, stats.unknown, stats.occupied, stats.slabs) == (4 * 9, 0, 0, 2)
    for stream, memory in kept.items():
        device.release(memory, 5000, stream)


def test_memory_without_a_plan_is_kept_by_size_and_stream(device: Device) -> None:
    """Tests that only an equal request gets what was given back, until it is trimmed."""
    first = device.allocate(1000)
    device.release(first, 1000)
    assert device.runtime.fake_used() == 1000
    others = [(999, STREAM, 0), (1000, OTHER, 0), (1000, STREAM, 1)]
    got = [device.allocate(*request) for request in others]
    assert first not in got
    assert device.allocate(1000) == first
    for memory, request in zip([first, *got], [(1000, STREAM, 0), *others], strict=True):
        device.release(memory, *request)
    device.trim()
    assert device.runtime.fake_used() == 0
    assert device.allocate(0) == 0


def test_a_full_device_gets_back_what_is_kept(device: Device) -> None:
    """Tests one more try without what is kept, and that CUDA's error is not left for others."""
    kept = device.allocate(1000)
    device.release(kept, 1000)
    device.runtime.fake_limit(ctypes.c_size_t(1500))
    try:
        second = device.allocate(1400)
        assert device.runtime.fake_used() == 1400
        assert device.runtime.fake_pending_error() == 0
    finally:
        device.runtime.fake_limit(ctypes.c_size_t(2**64 - 1))
    device.release(second, 1400)


def test_a_call_that_gets_no_slab_runs_all_the_same(device: Device, model: Network) -> None:
    """Tests a device that is too full for the plan: every tensor is asked for by itself."""
    trace = recorded(model)
    device.trim()
    device.runtime.fake_limit(ctypes.c_size_t(10_200))  # enough for one at a time
    try:
        with cuda.CudaSlab(memplan.solve(trace.problem()), trace) as fast:
            fast()
            assert (fast.stats().without, fast.stats().calls) == (1, 0)
    finally:
        device.runtime.fake_limit(ctypes.c_size_t(2**64 - 1))


def test_what_other_streams_use_is_waited_for(device: Device) -> None:
    """Tests `record_stream`: one wait for each other stream, when the memory is given back."""
    memory = device.allocate(1000)
    device.use_on(memory, OTHER)
    device.use_on(memory, 0x3000)
    device.use_on(memory, OTHER)
    before = device.runtime.fake_waits()
    device.release(memory, 1000)
    assert device.runtime.fake_waits() == before + 2
    device.release(device.allocate(1000), 1000)
    assert device.runtime.fake_waits() == before + 2


def test_a_result_that_cannot_be_moved_is_an_error(
    device: Device, model: Network, fast: cuda.CudaSlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests PyTorch's own error, that the slab is given back, and the next call."""
    fast()
    model.keeps = True
    with monkeypatch.context() as patch:
        patch.setattr(fast, "_move_out", lambda storage, stream: 0)
        patch.setattr(cuda, "iterate_tensors", lambda result, kind: [torch.ones(5)])
        with pytest.raises(torch.cuda.OutOfMemoryError, match="out of memory: 20 bytes"):
            fast()
    device.release(model.addresses()[-1], 5000)
    model.keeps = False
    fast()
    assert (fast.stats().slabs, fast.stats().hits) == (1, 27)


def test_what_only_looks_at_a_slab_is_not_moved(
    device: Device, model: Network, fast: cuda.CudaSlab
) -> None:
    """Tests a tensor around memory of others, which has no allocator to move it by."""
    model.keeps = True
    kept = fast()
    around = torch.frombuffer((ctypes.c_char * 5000).from_address(kept), dtype=torch.uint8)
    assert fast._move_out(around.untyped_storage()._cdata, STREAM) == 1
    assert around.data_ptr() == kept
    device.release(kept, 5000)


def printed_by(program: str, *arguments: str) -> str:
    """Return what a program prints that would take the tests along if it went wrong."""
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


# What the device gives out as the slab is the memory of a tensor of the host: so it is in the slab,
# and its own allocator is to move it.
NOTHING_LEFT = """
import ctypes, os, resource, sys
runtime = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
import torch
from memplan.extensions.slab.extension import load

native = load()
move_out = ctypes.CDLL(native.__file__).memplan_cuda_move_out
move_out.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
tensor = torch.empty(1 << 28, dtype=torch.uint8)
runtime.fake_next(ctypes.c_void_p(tensor.data_ptr()))
pool = native.Pool([((), 0, 256, 0)], 1, 0, 0x1000)
native.Runner(pool, lambda: None, None, None)()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 26), resource.RLIM_INFINITY))
print(move_out(tensor.untyped_storage()._cdata, 0x1000))
sys.stdout.flush()
os._exit(0)
"""


@needs_compiler
@without_cuda
def test_no_memory_to_move_a_result_to(library: Device) -> None:
    """Tests that the allocator's exception ends where Python calls."""
    assert printed_by(NOTHING_LEFT, library.runtime._name) == "0\n"


NO_RUNTIME = """
from memplan.extensions.slab.extension import load
try:
    load().Pool([((), 0, 256, 0)], 1, 0, 0x1000)
except RuntimeError as error:
    print(error)
"""


@needs_compiler
@without_cuda
def test_a_pool_on_no_device_is_refused() -> None:
    """Tests that the sentence comes at once, and not when a call looks for memory."""
    assert "cudaMalloc is not in this process" in printed_by(NO_RUNTIME)


@without_cuda
def test_without_a_device_it_says_so() -> None:
    """Tests the sentence of `install` on a machine without CUDA."""
    with pytest.raises(MemplanError, match="there is no CUDA device"):
        cuda.install()


@needs_compiler
def test_wrong_arguments_are_refused() -> None:
    """Tests no model, no slabs, and an unknown device."""
    trace = Trace.from_arrays([0], [1], [8], [()], alignment=512)
    plan = memplan.solve(trace.problem())
    with pytest.raises(MemplanError, match="this trace has no model"):
        cuda.CudaSlab(plan, trace)
    with pytest.raises(MemplanError, match="slabs is 0"):
        cuda.CudaSlab(plan, trace, nn.Identity(), slabs=0)
    with pytest.raises(MemplanError, match=r"call memplan\.extensions\.slab\.cuda\.install\(\)"):
        cuda.CudaSlab(plan, trace, nn.Identity())
    with pytest.raises(MemplanError, match='device is "tpu"; it must be one of cpu, cuda'):
        record(nn.Identity(), torch.ones(1), device="tpu")


ON_A_DEVICE = """
import torch
from torch import nn
import memplan
from memplan.extensions.slab import record
from memplan.extensions.slab import cuda

cuda.install()
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10)
).eval().cuda()
x = torch.randn(4, 3, 32, 32, device="cuda")
torch.backends.cudnn.deterministic = True
with torch.no_grad():
    expected = model(x)
    trace = record(model, (x,), device="cuda")
    plan = memplan.solve(trace.problem())
    with cuda.CudaSlab(plan, trace) as fast:
        for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                fast(x)
                before = fast.stats()
                results = [fast(x) for _ in range(10)]
            torch.cuda.synchronize()
            assert all(torch.equal(y, expected) for y in results)
            stats = fast.stats().since(before)
            assert stats.hits == 10 * len(trace.planned) > 0, stats
            assert stats.unknown + stats.resized + stats.occupied + stats.elsewhere == 0, stats
        assert fast.stats().slabs == 2, fast.stats()
        assert fast.stats().unknown == 0, fast.stats()
torch.cuda.empty_cache()
assert torch.equal(model(x), expected)
print("as without")
"""


@needs_device
@needs_compiler
def test_a_network_on_a_device_runs_in_its_slab() -> None:
    """Tests bits and counts of a real network, in a process whose allocator is ours."""
    run = subprocess.run([sys.executable, "-c", ON_A_DEVICE], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "as without\n"


NETWORK = """
import sys
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    return model.eval().cuda(), torch.randn(16, 3, 128, 128, device="cuda")

torch.backends.cudnn.deterministic = True
torch.set_grad_enabled(False)
"""

CACHING = """
model, x = make()
for _ in range(3):
    model(x)  # workspaces and kernels
torch.cuda.synchronize()
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()  # of what is reserved before, the rest serves the call
model(x)
torch.cuda.synchronize()
print(torch.cuda.max_memory_reserved() - before)
"""

PLANNED = """
import memplan
from memplan.extensions.slab import record
from memplan.extensions.slab import cuda

cuda.install()
model, x = make()
trace = record(model, (x,), device="cuda", warmup=3)
plan = memplan.solve(trace.problem())
with cuda.CudaSlab(plan, trace) as fast:
    fast(x)
    assert fast.stats().slab_bytes == plan.peak
results = int(trace.size[trace.outlives].sum())
print(plan.peak + results)
"""

GRAPH = """
import memplan
from memplan.extensions.slab import record
from memplan.extensions.slab import cuda

cuda.install()
model, x = make()
trace = record(model, (x,), device="cuda", warmup=3)
with cuda.CudaSlab(memplan.solve(trace.problem()), trace) as fast:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            fast(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=side, capture_error_mode="relaxed"):
            y = fast(x)
    except RuntimeError as error:
        print("refused", str(error).splitlines()[0])
        sys.exit()
    for seed in range(3):
        torch.manual_seed(seed)
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, model(x)), seed
print("equal")
"""


def run_on_device(program: str, **variables: str) -> str:
    """Return what a program prints in a process of its own, as an allocator is for a process."""
    run = subprocess.run(
        [sys.executable, "-c", NETWORK + program],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@needs_device
@needs_compiler
def test_the_peak_on_a_device_is_below_that_of_the_caching_allocator() -> None:
    """Tests a plan and its results beside what expandable segments reserve for the same call."""
    caching = run_on_device(CACHING, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    assert 0 < int(run_on_device(PLANNED)) <= int(caching)


@needs_device
@needs_compiler
def test_a_graph_captured_from_a_slab_replays_there() -> None:
    """Tests that a captured call has the same results from its slab, if PyTorch captures it."""
    said = run_on_device(GRAPH)
    if said.startswith("refused"):
        pytest.skip(f"PyTorch captures no graph with a pluggable allocator: {said}")
    assert said == "equal"
