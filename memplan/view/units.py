"""Bytes and times as people read them."""

from __future__ import annotations

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human(count: int) -> str:
    """Return bytes in the largest unit that fits: `96 KiB` is exact, `96.00 KiB` is rounded."""
    unit = min(max(0, count.bit_length() - 1) // 10, len(_UNITS) - 1)
    if unit == 0:
        return f"{count} byte" if count == 1 else f"{count} bytes"
    whole, rest = divmod(count, 1 << 10 * unit)
    # The number is cut, not rounded, because 1,048,575 bytes must not read as 1 MiB.
    return (
        f"{whole}.{rest * 100 >> 10 * unit:02} {_UNITS[unit]}"
        if rest
        else f"{whole} {_UNITS[unit]}"
    )


def exact(count: int) -> str:
    """Return bytes to the last one, and in a unit that can be grasped."""
    if count < 1024:
        return human(count)
    return f"{count:,} bytes ({human(count)})"


def percent(part: int, whole: int) -> str:
    """Return a share with one decimal; `-` of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def lifetime(start: int, end: int) -> str:
    """Return a half-open time."""
    return f"[{start}, {end})"


def seconds(value: float) -> str:
    """Return a duration with three digits and its unit."""
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s" if value < 1000 else f"{value:,.0f} s"


def buffers_hold(count: int) -> str:
    """Return the beginning of a sentence: `1 buffer holds`, `2 buffers hold`."""
    return f"{plural(count, 'buffer')} {'holds' if count == 1 else 'hold'}"


def plural(count: int, noun: str) -> str:
    """Return a number and its noun: `1 buffer`, `2 buffers`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
