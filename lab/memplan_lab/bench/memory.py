"""The largest resident memory of a process."""

from __future__ import annotations

import resource
import sys


def peak_rss_mib() -> float:
    """Return the peak of this process so far, in MiB.

    Linux starts a child's `ru_maxrss` at the size of the process that launched it, so a small
    solver launched from a large sweep would look large. So `VmHWM` is used on Linux.
    """
    try:
        with open("/proc/self/status", "rb", buffering=0) as file:
            status = file.read()
    except OSError:
        return maxrss_mib(resource.getrusage(resource.RUSAGE_SELF))
    return int(status.partition(b"VmHWM:")[2].split(maxsplit=1)[0]) / 1024


def maxrss_mib(usage: resource.struct_rusage) -> float:
    """Return `ru_maxrss` in MiB; the system gives KiB, on macOS bytes."""
    return usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
