"""Tests of slabs that are shared, held, left and closed: nothing leaks, nothing is corrupted."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from slab_models import (  # noqa: E402
    Calls,
    convolutions,
    cpu_allocator,
    image,
    missed,
    slab_of,
)
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("native", "without_gradients")]


def keeping(self: Any, x: Any) -> Any:
    """Convolve, and keep what is in between where the caller finds it."""
    hidden = self.conv(x)
    if self.keeps:
        self.kept.append(hidden)
    return functional.relu(hidden).sum()


def keeper() -> Any:
    """Return a model that can be switched to keep its activations."""
    torch.manual_seed(0)
    model = Calls(keeping, conv=nn.Conv2d(3, 8, 3))
    model.kept, model.keeps = [], False
    return model


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Do work in new threads; raises what any of them raises."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            with torch.no_grad():
                work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_what_outlives_the_call_keeps_its_bytes(native: Any) -> None:
    """Tests that a slab serves no other call while a tensor in it lives, and then does again."""
    model, x = keeper(), image()
    with slab_of(model, x) as fast:
        model.keeps = True
        fast(x)
        (kept,) = model.kept
        assert native.is_in_slab(kept.data_ptr())
        want = model.conv(x)
        model.keeps = False
        for seed in range(5):
            fast(torch.full_like(x, seed))
        assert torch.equal(kept, want)
        assert fast.stats().slabs == 2
        del kept
        model.kept.clear()
        model.keeps = True
        fast(x)
        fast(x)
        assert fast.stats().slabs == 2
        assert missed(fast) == 0
        assert len({tensor.data_ptr() for tensor in model.kept}) == 2


def test_arrays_keep_the_bytes_of_what_is_returned() -> None:
    """Tests that a result that a NumPy array looks at is not moved from under it."""

    def forward(self: Any, x: Any) -> Any:
        hidden = self.conv(x)
        if not self.keeps:
            return functional.relu(hidden).sum()
        self.kept.append(hidden.numpy())
        return hidden

    x = image()
    model = Calls(forward, conv=nn.Conv2d(3, 8, 3))
    model.kept, model.keeps = [], False
    with slab_of(model, x) as fast:
        want = model.conv(x)
        model.keeps = True
        got = fast(x)
        model.keeps = False
        fast(x + 1)
        assert torch.equal(got, want)
        assert torch.equal(torch.from_numpy(model.kept[0]), want)
        assert fast.stats().slabs == 2
        model.kept.clear()


def test_a_hook_may_keep_activations() -> None:
    """Tests that hooks work as ever, and what they keep is right."""
    model, x = convolutions(), image()
    with slab_of(model, x) as fast:
        kept: list[Any] = []
        handle = model[3].register_forward_hook(lambda _, __, output: kept.append(output))
        inputs = [image() * scale for scale in range(1, 4)]
        for value in inputs:
            fast(value)
        handle.remove()
        for tensor, value in zip(kept, inputs, strict=True):
            # Normalised in place after the hook: not in eval mode; so it is the convolution's.
            assert torch.equal(tensor, model[:4](value))
        assert fast.stats().slabs == 3


def test_the_last_release_may_be_on_another_thread() -> None:
    """Tests that a slab comes back whatever thread lets its last tensor go."""
    model, x = keeper(), image()
    with slab_of(model, x) as fast:
        model.keeps = True
        for _ in range(20):
            fast(x)
            in_threads(1, lambda _: model.kept.clear())
        assert fast.stats().slabs == 1


def test_exceptions_leave_nothing_behind() -> None:
    """Tests that a call that raises, deep inside, gives its slab back, and the next is right."""

    def forward(self: Any, x: Any, fails: bool) -> Any:
        x = self.first(x)
        if fails:
            raise KeyError("in the middle")
        return self.second(x)

    model = Calls(
        lambda self, x, fails: self.inner(x, fails),
        inner=Calls(forward, first=convolutions()[:6], second=nn.Conv2d(16, 4, 3)),
    )
    x = image()
    want = model(x, False)
    with slab_of(model, x, False) as fast:
        for _ in range(50):
            with pytest.raises(KeyError, match="in the middle"):
                fast(x, True)
            with pytest.raises(RuntimeError, match=r"size|channels"):
                fast(x[:, :2], False)
            assert torch.equal(fast(x, False), want)
        stats = fast.stats()
        assert stats.calls == 150
        assert stats.slabs == 1
        assert stats.occupied == stats.unknown == 0


def test_threads_share_the_slabs() -> None:
    """Tests that threads that come and go get right results from as many slabs as they are."""
    model = convolutions()
    inputs = [image() * scale for scale in range(1, 9)]
    wants = [model(x) for x in inputs]
    with slab_of(model, inputs[0]) as fast:

        def work(number: int) -> None:
            for call in range(20):
                which = (number + call) % len(inputs)
                assert torch.equal(fast(inputs[which]), wants[which])

        for _ in range(4):
            in_threads(4, work)
        stats = fast.stats()
        assert stats.calls == 4 * 4 * 20
        assert 1 <= stats.slabs <= 4
        assert missed(fast) == 0


def test_slabs_are_as_many_as_is_said() -> None:
    """Tests that calls for which no slab is left run in ordinary memory, and are counted."""
    model, x = keeper(), image()
    with slab_of(model, x, slabs=1) as fast:
        want = fast(x)
        model.keeps = True
        for _ in range(3):
            assert torch.equal(fast(x), want)
        stats = fast.stats()
        assert (stats.slabs, stats.calls, stats.without) == (1, 2, 2)
        model.kept.clear()
        fast(x)
        assert fast.stats().calls == 3


def test_a_call_may_call_again() -> None:
    """Tests that a model may call its own slab: the inner call has a slab of its own."""

    def forward(self: Any, x: Any, deeper: int) -> Any:
        hidden = self.conv(x)
        inner = self.runs[0](x, deeper - 1) if deeper else 0
        return functional.relu(hidden).sum() + inner

    torch.manual_seed(0)
    model = Calls(forward, conv=nn.Conv2d(3, 8, 3))
    model.runs, x = [model], image()
    want = model(x, 3)
    with slab_of(model, x, 0) as fast:
        model.runs = [fast]
        for _ in range(3):
            assert torch.equal(fast(x, 3), want)
        stats = fast.stats()
        assert stats.calls == 12
        assert stats.slabs == 4
        assert stats.occupied == stats.resized == 0


def test_gradients_are_those_of_eager() -> None:
    """Tests that what a backward pass needs is alive until it ran, and the slab comes back."""
    model, x = convolutions(), image()
    with slab_of(model, x) as fast, torch.enable_grad():
        grads = []
        for run in (model, fast, fast):
            loss = run(x).square().sum()
            loss.backward()
            grads.append([parameter.grad.clone() for parameter in model.parameters()])
            model.zero_grad()
            del loss
        for got in grads[1:]:
            assert all(torch.equal(a, b) for a, b in zip(grads[0], got, strict=True))
        gc.collect()
        assert fast.stats().slabs == 1
        two = fast(x), fast(x * 2)  # both graphs are alive
        assert fast.stats().slabs == 2
        (two[0] + two[1]).sum().backward()


def test_other_threads_of_a_model_have_ordinary_memory() -> None:
    """Tests that a pool of threads inside of a model is left alone, and no result is wrong."""
    executor = ThreadPoolExecutor(4)

    def parts(self: Any, x: Any) -> Any:
        chunks = executor.map(lambda part: torch.exp(part).cumsum(0), x.chunk(8))
        return self.last(torch.cat(list(chunks))).sum(dim=0)

    model = Calls(parts, last=nn.Linear(64, 64))
    x = torch.randn(256, 64)
    want = model(x)
    torch.set_num_threads(2)  # and PyTorch's own threads inside of kernels
    with slab_of(model, x) as fast:
        for _ in range(20):
            assert torch.equal(fast(x), want)
        assert fast.stats().hits > 0
        assert missed(fast) == 0
    executor.shutdown()


def test_ten_thousand_calls_leak_nothing() -> None:
    """Tests results, the number of slabs and the memory of the process over 10 000 calls."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.Softmax(-1)).eval()
    x = torch.randn(4, 32)
    want = model(x)
    with slab_of(model, x) as fast:
        for _ in range(500):
            fast(x)
        before = resident()
        assert all(torch.equal(fast(x), want) for _ in range(10_000))
        # A leak of 100 bytes a call would be 1 MB; what Python itself gathers is less.
        assert resident() - before < 1_000_000
        assert fast.stats().slabs == 1
        assert missed(fast) == 0


def resident() -> int:
    """Return the bytes of memory of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_planned_tensors_fault_no_pages() -> None:
    """Tests that after the first call the kernel is not asked for memory any more."""
    model = convolutions(32)[:-2]
    model.append(nn.AdaptiveAvgPool2d(1))  # so that the result is small
    x = image(192)

    def faults(run: Any) -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(10):
            run(x)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    with slab_of(model, x) as fast:
        fast(x)
        pages = fast.stats().hit_bytes // 4096  # of one call
        assert pages > 2000
        # Not planned are the result and Python's own objects: a page now and then. One planned
        # tensor that were mapped again by every call would be hundreds.
        assert faults(fast) < 100
        assert missed(fast) == 0


def test_the_allocator_that_was_there_comes_back() -> None:
    """Tests that closing the last slab restores it, when no tensor of a slab lives any more."""
    gc.collect()
    model, x = keeper(), image()
    ordinary = cpu_allocator()
    with slab_of(model, x) as one:
        slabs = cpu_allocator()
        assert slabs != ordinary
        with slab_of(model, x) as two:
            assert torch.equal(one(x), two(x))
        assert cpu_allocator() == slabs
        model.keeps = True
        one(x)
    want = model.conv(x)
    assert cpu_allocator() == slabs  # a library may free by the allocator that is there
    assert torch.equal(model.kept[0], want)
    model.kept.clear()
    assert cpu_allocator() == ordinary


NO_MEMORY = """
import ctypes, os, resource, sys
sys.path.insert(0, sys.argv[1])
from slab_models import cpu_allocator
from memplan.extensions.slab.extension import load

native = load()
rows = [((), 0, 64, 0)] * (1 << 22)
ordinary = cpu_allocator()
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 26), resource.RLIM_INFINITY))
for _ in range(2):
    try:
        native.Pool(rows, 1)
    except MemoryError:
        print(cpu_allocator() == ordinary)
"""


def test_a_table_without_memory_is_an_error_of_python() -> None:
    """Tests that the process lives on, with the allocator that was there before."""
    run = subprocess.run(
        [sys.executable, "-c", NO_MEMORY, str(Path(__file__).parents[1] / "helpers")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "True\n" * 2


def test_a_slab_that_is_dropped_is_closed() -> None:
    """Tests that nothing stays behind of a slab that was not closed."""
    gc.collect()
    model, x = convolutions(), image()
    ordinary = cpu_allocator()
    slab_of(model, x)(x)
    gc.collect()
    assert "forward" not in model[0].__dict__
    assert cpu_allocator() == ordinary


def test_a_slab_may_be_closed_during_a_call() -> None:
    """Tests that a call that is under way ends as if nothing were."""
    model, x = convolutions(), image()
    ordinary = cpu_allocator()
    fast = slab_of(model, x)
    fast.open()
    want = model(x)
    closing = model[3].register_forward_pre_hook(lambda *_: fast.close())
    assert torch.equal(fast(x), want)
    closing.remove()
    assert fast.stats().calls == 1
    assert cpu_allocator() == ordinary
