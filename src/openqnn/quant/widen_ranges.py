"""Room beyond what was seen: data to come reaches further than the data of calibration.

A tensor of which few numbers were seen, such as ten scores a sample, will exceed its extremes, and a clipped
score costs more than a slightly coarser step. The law is that of bell-shaped data: the largest of n numbers
grows with the root of log n. In 16 bits a bit of resolution is no price at all.
"""

from __future__ import annotations

from math import log, sqrt

ENOUGH = 1e5  # numbers whose extremes are taken as they are
MOST = 1.25  # the widest an 8-bit range becomes
WIDE = 2.0  # what 16-bit ranges are widened by
FEW = 2000  # numbers that say nothing yet of an end that is near zero


def widening(width: int, count: int) -> float:
    """The factor for both ends of a range that `count` numbers of a tensor of that bit width gave."""
    if width == 16:
        return WIDE
    return min(max(sqrt(log(ENOUGH) / log(max(count, 2))), 1.0), MOST)


def widened(low: float, high: float, width: int, count: int, level: bool = False) -> tuple[float, float]:
    """A range with room for more: the same on both sides of zero for few numbers of 16 bits.

    A level, as in decibels, gets none below: what the square of a small number leaves nothing of is minus
    infinity there, and the farther the end is from the quietest sound, the more such a number counts.
    """
    if level:
        return low, max(high, high * widening(width, count))
    by = widening(width, count)
    if width == 16 and count < FEW and low < 0 < high:
        room = (by - 1) * max(-low, high)
        return low - room, high + room
    return low * by, high * by
