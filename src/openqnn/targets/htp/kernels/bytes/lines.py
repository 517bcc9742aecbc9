"""Functions of one byte that a line and rounding give: one pass from bytes to bytes.

HTP's sum or product of a tensor and one number is such a function. Several that follow each other are one,
too, where a line still fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from openqnn.ir import Array
from openqnn.ops.onnx_writer import Body

BYTES = 256
LAST = BYTES - 1
MARGIN = 1e-4  # steps between a line and where it would round to others: far more than float32 is off
CLOSE = 4e-4  # steps from half way between two results where float32 decides
CANDIDATES, MOVES = 40, (0, 1, -1, 2, -2, 4, -4, 6, -6)  # zero points and last bits of ratios that are tried
PARTS = np.arange(17) / 16  # of the range of slopes
SEARCH = 12  # times that it is narrowed to an eighth


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
    slope = float(table[inside[-1]] - table[inside[0]]) / float(inside[-1] - inside[0])
    spare = 1.0 / float(inside[-1] - inside[0])
    low, high = max(slope - spare, 0.0), slope + spare
    for _ in range(SEARCH):  # the room for the height is concave in the slope
        slopes = low + (high - low) * PARTS
        best = int(np.argmax(_room(table, slopes)[0]))
        low, high = float(slopes[max(best - 1, 0)]), float(slopes[min(best + 1, PARTS.size - 1)])
    slope = (low + high) / 2
    room, height = _room(table, np.asarray([slope]))
    return (slope, float(height[0])) if room[0] > 2 * MARGIN else None


def _room(table: Array, slopes: Array) -> tuple[Array, Array]:
    """How far lines of these slopes can be moved, and their heights in the middle."""
    lines = np.multiply.outer(slopes, np.arange(BYTES))
    low, high = table > 0, table < LAST
    least = (table[low] - 0.5 - lines[:, low]).max(axis=1)
    most = (table[high] + 0.5 - lines[:, high]).min(axis=1)
    return most - least, (most + least) / 2


def _line(b: Body, x: str, slope: float, height: float) -> str:
    """Bytes times a number plus another one, rounded: the sum with a byte that is one, or less than none."""
    zero, one = b.const(0, np.uint8), b.const(1, np.uint8)
    scale, size, unit = (b.const(v, np.float32) for v in (slope, abs(height), 1.0))
    other = (one, size, zero) if height > 0 else (zero, size, one)
    return b.op("QLinearAdd", x, scale, zero, *other, unit, zero, domain="com.microsoft")


def by_sum(
    b: Body, x: Sequence[str], ratios: Sequence[float], shift: float, rule: Callable[[Array, Array], Array]
) -> str | None:
    """Two tensors of bytes times a ratio each, and a shift, rounded: ONNX Runtime's own sum of bytes.

    It has no shift but that of three zero points. Those that come next to it are half a unit off: moving the
    ratios by a bit or two tells what is half way between two results. Whatever is tried is held against the
    rule with all pairs of bytes; None if nothing holds.
    """
    if min(ratios) <= 0:
        return None
    pairs = np.stack(np.meshgrid(np.arange(BYTES), np.arange(BYTES), indexing="ij")).reshape(2, -1)
    wanted = np.clip(rule(*pairs.astype(np.float64)), 0, LAST)
    part = (np.asarray(ratios) @ pairs + shift) % 1
    hard = np.abs(part - 0.5) < CLOSE
    bits = np.spacing(np.asarray(ratios, np.float32))
    near = np.asarray(ratios, np.float32) + np.asarray(list(product(MOVES, repeat=2)), np.float32) * bits
    for zeros in _zero_points(ratios, shift):
        for each in near[_adds_up(near, zeros, pairs[:, hard], wanted[hard])]:
            if _adds_up(each[None], zeros, pairs, wanted).all():
                return _sum(b, x, each, zeros)
    return None


def _sum(b: Body, x: Sequence[str], ratios: Array, zeros: Sequence[int]) -> str:
    scales = [b.const(v, np.float32) for v in (*ratios, 1.0)]
    offsets = [b.const(v, np.uint8) for v in zeros]
    first, second, last = zip(scales, offsets, strict=True)
    return b.op("QLinearAdd", x[0], *first, x[1], *second, *last, domain="com.microsoft")


def _zero_points(ratios: Sequence[float], shift: float) -> Iterator[tuple[int, int, int]]:
    """Zero points that come nearest to the shift, best first."""
    every = np.arange(BYTES, dtype=np.float64)
    last = (shift + ratios[0] * every[:, None] + ratios[1] * every).reshape(-1)  # the result's zero point
    off = np.where((last > -0.5) & (last < LAST + 0.5), np.abs(last - np.rint(last)), np.inf)
    close = np.flatnonzero(off < CLOSE)
    for i in close[np.argsort(off[close], kind="stable")][:CANDIDATES].tolist():
        yield i // BYTES, i % BYTES, int(np.rint(last[i]))


def _adds_up(ratios: Array, zeros: Sequence[int], pairs: Array, wanted: Array) -> Array:
    """Which rows of ratios give sums in float32 that round to the wanted ones.

    They do with products that are rounded before they are added, and without.
    """
    r, z = ratios.T[:, :, None], np.asarray(zeros, np.float32)
    first, second = pairs.astype(np.float32)

    def added(a: Array, by: Array, more: Array, once: bool) -> Array:
        if once:
            return (a.astype(np.float64) * by + more).astype(np.float32)
        return a * by + more

    good = np.ones(len(ratios), np.bool_)
    for outer, inner in product((False, True), repeat=2):
        fixed = z[2] - added(z[:1], r[0], z[1] * r[1], outer)
        found = added(second, r[1], added(first, r[0], fixed, inner), inner)
        good &= (np.clip(np.rint(found), 0, LAST) == wanted).all(axis=1)
    return good
