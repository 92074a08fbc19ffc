"""Checks the limits that a caller gives: time, nodes, threads and seeds."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np

from memplan.base.errors import MemplanError, shown

MAX_COUNT = (1 << 63) - 1  # nodes, in the core
MAX_SEED = (1 << 64) - 1
MAX_THREADS = 1 << 10  # more are of no use, and a typo must not exhaust the machine


def check_seconds(timeout: float | None) -> float | None:
    """Return a time limit as a float; raise if it is not a valid limit."""
    if timeout is None:
        return None
    number = isinstance(timeout, (int, float, np.integer, np.floating))
    if not number or isinstance(timeout, bool) or not timeout >= 0:
        raise MemplanError(f"timeout is {shown(timeout)}; it must be seconds, 0 or more")
    try:
        return float(timeout)
    except OverflowError:  # an int beyond all floats
        return math.inf


def check_whole(value: int, name: str, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`; errors call it `name`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise MemplanError(
            f"{name} is {shown(value)}; it must be a whole number from {least} to {most}"
        )
    return int(value)


def check_number(value: float | Fraction, name: str, least: int, most: int) -> Fraction:
    """Return a number from `least` to `most` as it is written: 0.1 is a tenth."""
    known = isinstance(value, (int, float, Fraction, np.integer, np.floating))
    if not known or isinstance(value, bool) or not least <= value <= most:
        raise MemplanError(f"{name} is {shown(value)}; it must be a number from {least} to {most}")
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def count_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), MAX_THREADS)
    return min(os.cpu_count() or 1, MAX_THREADS)
