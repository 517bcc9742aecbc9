"""Functions of one byte that a line and rounding give: one pass from bytes to bytes.

HTP's sum or product of a tensor and one number is such a function. Several that follow each other are one,
too, where a line still fits.
"""

from __future__ import annotations

import numpy as np

from openqnn.ir import Array
from openqnn.ops.body import Body

BYTES = 256
LAST = BYTES - 1
MARGIN = 1e-4  # steps between a line and where it would round to others: far more than float32 is off
SEARCH = 60  # times that the range of slopes is narrowed


def by_line(b: Body, x: str, table: Array) -> str | None:
    """The table by unsigned byte, applied to bytes; None if no line rounds to it."""
    source, made = b.tables.get(x, (x, np.arange(BYTES)))
    for name, whole in ((source, table[made]), (x, table)):
        line = fitted(whole)
        if line is not None:
            found = _line(b, name, *line)
            b.tables[found] = (name, whole)
            return found
    return None


def fitted(table: Array) -> tuple[float, float] | None:
    """Slope and height of a line that rounds to an increasing table, clipped at its ends."""
    inside = np.flatnonzero((table > 0) & (table < LAST))
    if inside.size < 2 or (np.diff(table) < 0).any():
        return None
    slope = (table[inside[-1]] - table[inside[0]]) / (inside[-1] - inside[0])
    spare = 1.0 / (inside[-1] - inside[0])
    low, high = max(slope - spare, 0.0), slope + spare
    for _ in range(SEARCH):  # the room for the height is concave in the slope
        first, second = low + (high - low) / 3, high - (high - low) / 3
        if _room(table, first)[0] < _room(table, second)[0]:
            low = first
        else:
            high = second
    slope = (low + high) / 2
    room, height = _room(table, slope)
    return (slope, height) if room > 2 * MARGIN else None


def _room(table: Array, slope: float) -> tuple[float, float]:
    """How far a line of that slope can be moved, and its height in the middle."""
    line = slope * np.arange(BYTES)
    least = np.where(table > 0, table - 0.5 - line, -np.inf).max()
    most = np.where(table < LAST, table + 0.5 - line, np.inf).min()
    return most - least, (most + least) / 2


def _line(b: Body, x: str, slope: float, height: float) -> str:
    """Bytes times a number plus another one, rounded: the sum with a byte that is one, or less than none."""
    zero, one = b.const(0, np.uint8), b.const(1, np.uint8)
    scale, size, unit = (b.const(v, np.float32) for v in (slope, abs(height), 1.0))
    other = (one, size, zero) if height > 0 else (zero, size, one)
    return b.op("QLinearAdd", x, scale, zero, *other, unit, zero, domain="com.microsoft")
