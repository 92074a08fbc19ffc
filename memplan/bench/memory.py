"""The largest resident memory of a process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_rss_mib() -> float:
    """Return the peak of this process so far, in MiB.

    Linux starts a child's `ru_maxrss` at the size of the process that launched it, so a small
    solver launched from a large sweep would look large: there, `VmHWM` is asked instead.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return maxrss_mib(resource.getrusage(resource.RUSAGE_SELF))
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def maxrss_mib(usage: resource.struct_rusage) -> float:
    """Return `ru_maxrss` in MiB; it is in KiB everywhere but on macOS."""
    return usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
